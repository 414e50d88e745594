"""CLIP's image towers (Radford et al. 2021, arXiv 2103.00020): ViTs by transformers, ResNets (section 2.4) by timm."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

from agents.errors import UnavailableError
from agents.models import checkpoints
from agents.models.hub import OPEN_CLIP
from agents.models.loading import load_pretrained
from agents.vision.weights import assign, layers_of

STRIDE = 32
"""Pixels of the image for each cell of a ResNet's last feature map, along a side."""
PREFIX = "visual."
"""What stands before the tower's weights in a file of a whole CLIP."""
CPU = torch.device("cpu")
"""Where weights are read."""


def load_tower(path: Path) -> nn.Module:
    """The tower in a folder of transformers' form, or in open_clip's file of a ResNet; float32 on the CPU. Raises
    UnavailableError.

    A ResNet's sizes are read from the shapes of its weights.
    """
    weights = _resnet_weights(path)
    if weights is None:
        return load_pretrained(CLIPVisionModelWithProjection, path, CPU, torch.float32)  # type: ignore[no-any-return]
    from timm.models.byobnet import ByoBlockCfg, ByobNet, ByoModelCfg, checkpoint_filter_fn

    width = len(weights[f"{PREFIX}layer1.0.conv1.weight"])
    stages = [layers_of(weights, f"{PREFIX}layer{stage}.") for stage in (1, 2, 3, 4)]
    blocks = tuple(
        ByoBlockCfg("bottle", d=count, c=4 * width * 2**stage, s=min(stage + 1, 2), br=0.25)
        for stage, count in enumerate(stages)
    )
    # As timm's own "resnet50_clip" and its sisters are described, at the sizes of these weights.
    parts: dict[str, Any] = {
        "stem_type": "",
        "stem_pool": "avg2",
        "downsample": "avg",
        "aa_layer": "avg",
        "head_type": "attn_abs",
    }
    config = ByoModelCfg(blocks, stem_chs=(width // 2, width // 2, width), **parts)
    outputs = len(weights[f"{PREFIX}attnpool.c_proj.weight"])
    with torch.device("meta"):
        tower: Any = ByobNet(config, num_classes=outputs, img_size=STRIDE * _grid(weights))
    assign(tower, checkpoint_filter_fn(weights, tower), path)
    return tower  # type: ignore[no-any-return]


def output_size(tower: Any) -> int:
    """How many features a tower gives of an image."""
    return int(tower.num_classes if hasattr(tower, "num_classes") else tower.config.projection_dim)


def input_size(path: Path) -> int:
    """The side, in pixels, of the square images that the tower at ``path`` takes. Raises UnavailableError."""
    if (weights := _resnet_weights(path)) is not None:
        return _grid(weights) * STRIDE
    if wrong := checkpoints.problem(path, ("config.json", checkpoints.WEIGHTS), ("clip", "clip_vision_model")):
        raise UnavailableError(f"{path} {wrong}")
    return int(CLIPVisionConfig.from_pretrained(path, local_files_only=True).image_size)


def _resnet_weights(path: Path) -> dict[str, Tensor] | None:
    files = [path] if path.is_file() else [path / name for name in OPEN_CLIP if (path / name).is_file()]
    if not files:
        return None
    weights = checkpoints.read_weights(files[0])
    sized = ("conv1.weight", "layer1.0.conv1.weight", "attnpool.positional_embedding", "attnpool.c_proj.weight")
    checkpoints.check_names(path, [PREFIX + name for name in sized if PREFIX + name not in weights])
    return weights


def _grid(weights: dict[str, Tensor]) -> int:
    return math.isqrt(len(weights[f"{PREFIX}attnpool.positional_embedding"]) - 1)
