"""CLIP's image towers (Radford et al. 2021, arXiv 2103.00020): ViTs by transformers, ResNets (section 2.4) by timm."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

from agents.errors import UnavailableError
from agents.models import model_folders, random_weights, weight_files
from agents.models.hub import OPEN_CLIP
from agents.models.loading import load_pretrained
from agents.vision.weights import assign, layers_of

STRIDE = 32
"""Pixels of the image for each cell of a ResNet's last feature map, along a side."""
PREFIX = "visual."
"""What stands before the tower's weights in a file of a whole CLIP."""
CPU = torch.device("cpu")
"""Where weights are read."""
DESCRIPTION = "open_clip_config.json"
"""The file in which open_clip says what a tower's sizes are."""


class ResNetSizes(NamedTuple):
    """The sizes of CLIP's ResNet."""

    width: int
    """Channels of the first stage, as its 3 x 3 convolutions count them."""
    blocks: tuple[int, ...]
    """Blocks of each of the four stages."""
    side: int
    """Height and width of an image, in pixels."""
    outputs: int
    """Features of an image."""


def load_tower(path: Path, device: torch.device = CPU, dtype: torch.dtype = torch.float32) -> nn.Module:
    """The tower in a folder of transformers' form, or in open_clip's file of a ResNet, on ``device`` in ``dtype``; a
    folder of :func:`random_weights.make_folder` gives random weights. Raises UnavailableError.

    A ResNet's sizes are read from the shapes of its weights, those of random weights from open_clip's description.
    """
    if (drawn := _drawn_sizes(path)) is not None:
        return random_weights.draw(lambda: make_resnet(drawn), device, dtype)  # type: ignore[no-any-return]
    weights = _resnet_weights(path)
    if weights is None:
        return load_pretrained(CLIPVisionModelWithProjection, path, device, dtype)  # type: ignore[no-any-return]
    from timm.models.byobnet import checkpoint_filter_fn

    sizes = ResNetSizes(
        width=len(weights[f"{PREFIX}layer1.0.conv1.weight"]),
        blocks=tuple(layers_of(weights, f"{PREFIX}layer{stage}.") for stage in (1, 2, 3, 4)),
        side=STRIDE * _grid(weights),
        outputs=len(weights[f"{PREFIX}attnpool.c_proj.weight"]),
    )
    with torch.device("meta"):
        tower = make_resnet(sizes)
    assign(tower, checkpoint_filter_fn(weights, tower), path)
    moved: nn.Module = tower.to(device, dtype)
    return moved


def make_resnet(sizes: ResNetSizes) -> Any:
    """CLIP's ResNet of these sizes, by timm; it takes images [batch, 3, side, side] and gives [batch, outputs]."""
    from timm.models.byobnet import ByoBlockCfg, ByobNet, ByoModelCfg

    width = sizes.width
    blocks = tuple(
        ByoBlockCfg("bottle", d=count, c=4 * width * 2**stage, s=min(stage + 1, 2), br=0.25)
        for stage, count in enumerate(sizes.blocks)
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
    return ByobNet(config, num_classes=sizes.outputs, img_size=sizes.side)


def output_size(tower: Any) -> int:
    """How many features a tower gives of an image."""
    return int(tower.num_classes if hasattr(tower, "num_classes") else tower.config.projection_dim)


def input_size(path: Path) -> int:
    """The side, in pixels, of the square images that the tower at ``path`` takes. Raises UnavailableError."""
    if (drawn := _drawn_sizes(path)) is not None:
        return drawn.side
    if (weights := _resnet_weights(path)) is not None:
        return _grid(weights) * STRIDE
    needs = ("config.json",) if random_weights.is_made(path) else ("config.json", model_folders.WEIGHTS)
    if wrong := model_folders.problem(path, needs, ("clip", "clip_vision_model")):
        raise UnavailableError(f"{path} {wrong}")
    return int(CLIPVisionConfig.from_pretrained(path, local_files_only=True).image_size)


def _drawn_sizes(path: Path) -> ResNetSizes | None:
    """The sizes of a ResNet whose weights are to be drawn, or None for any other tower."""
    description = path / DESCRIPTION
    if not (random_weights.is_made(path) and description.is_file()):
        return None
    model = json.loads(description.read_bytes())["model_cfg"]
    vision = model["vision_cfg"]
    return ResNetSizes(vision["width"], tuple(vision["layers"]), vision["image_size"], model["embed_dim"])


def _resnet_weights(path: Path) -> dict[str, Tensor] | None:
    files = [path] if path.is_file() else [path / name for name in OPEN_CLIP if (path / name).is_file()]
    if not files:
        return None
    weights = weight_files.read_weights(files[0])
    sized = ("conv1.weight", "layer1.0.conv1.weight", "attnpool.positional_embedding", "attnpool.c_proj.weight")
    weight_files.check_names(path, [PREFIX + name for name in sized if PREFIX + name not in weights])
    return weights


def _grid(weights: dict[str, Tensor]) -> int:
    return math.isqrt(len(weights[f"{PREFIX}attnpool.positional_embedding"]) - 1)
