"""CLIP's image towers (Radford et al. 2021): transformers' ViT, and the ResNets that it lacks (section 2.4).

Names of weights are those of OpenAI's state dicts (``visual.conv1.weight``), which open_clip keeps; sizes are read off
the weights.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torchvision import transforms
from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

from agents import checkpoints
from agents.errors import UnavailableError
from agents.loading import load_pretrained
from agents.vision.network_tools import assign, layers_of

MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)
HEAD_WIDTH = 64
STRIDE = 32  # pixels of the image per cell of a ResNet's last feature map
PREFIX = "visual."
OPEN_CLIP = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
CPU = torch.device("cpu")


class ClipPixels:
    """CLIP's input for a tower that takes ``size`` x ``size`` pixels, as OpenAI's ``clip.load`` prepares it:
    transformers' image processor rounds the corner of the crop otherwise."""

    def __init__(self, size: int, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION) -> None:
        shorter = transforms.Resize(size, transforms.InterpolationMode.BICUBIC)
        normalise = transforms.Normalize(mean, deviation)
        self._transform = transforms.Compose([shorter, transforms.CenterCrop(size), transforms.ToTensor(), normalise])

    def __call__(self, pixels: NDArray[np.uint8]) -> Tensor:
        prepared: Tensor = self._transform(Image.fromarray(pixels))
        return prepared


class Bottleneck(nn.Module):
    """A stride is an average pool after the second convolution."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.stride = stride
        self.downsample = None
        if stride > 1 or inputs != outputs:
            convolution, norm = nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
            self.downsample = nn.Sequential(OrderedDict({"-1": nn.AvgPool2d(stride), "0": convolution, "1": norm}))

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu(self.bn1(self.conv1(x)))
        inner = functional.relu(self.bn2(self.conv2(inner)))
        if self.stride > 1:
            inner = functional.avg_pool2d(inner, self.stride)
        inner = self.bn3(self.conv3(inner))
        shortcut = x if self.downsample is None else self.downsample(x)
        return functional.relu(inner + shortcut)


class AttentionPool(nn.Module):
    """Attention from the mean of all cells to it and them: [batch, width, grid, grid] to [batch, outputs]."""

    def __init__(self, grid: int, width: int, outputs: int) -> None:
        super().__init__()
        self.positional_embedding = nn.Parameter(torch.empty(grid**2 + 1, width))
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.c_proj = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        cells = x.flatten(2).transpose(1, 2)
        tokens = torch.cat((cells.mean(dim=1, keepdim=True), cells), dim=1) + self.positional_embedding
        query, key, value = self.q_proj(tokens[:, :1]), self.k_proj(tokens), self.v_proj(tokens)
        query, key, value = (part.unflatten(-1, (-1, HEAD_WIDTH)).transpose(1, 2) for part in (query, key, value))
        pooled = functional.scaled_dot_product_attention(query, key, value)
        return self.c_proj(pooled.transpose(1, 2).flatten(1))  # type: ignore[no-any-return]


class ClipResNet(nn.Module):
    """Prepared pixels [batch, 3, size, size] to features [batch, ``outputs``]; ``blocks`` of each of four stages."""

    def __init__(self, width: int, blocks: tuple[int, ...], grid: int, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.conv1 = nn.Conv2d(3, width // 2, 3, stride=2, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width // 2, width // 2, 3, padding=1, bias=False)
        self.conv3 = nn.Conv2d(width // 2, width, 3, padding=1, bias=False)
        self.bn1, self.bn2, self.bn3 = nn.BatchNorm2d(width // 2), nn.BatchNorm2d(width // 2), nn.BatchNorm2d(width)
        inputs = width
        for stage, count in enumerate(blocks):
            inner = width * 2**stage
            strides = [1 if stage == 0 else 2, *[1] * (count - 1)]
            layer = [Bottleneck(inputs if n == 0 else 4 * inner, inner, stride) for n, stride in enumerate(strides)]
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layer))
            inputs = 4 * inner
        self.attnpool = AttentionPool(grid, inputs, outputs)

    def forward(self, pixels: Tensor) -> Tensor:
        x = functional.relu(self.bn1(self.conv1(pixels)))
        x = functional.relu(self.bn2(self.conv2(x)))
        x = functional.avg_pool2d(functional.relu(self.bn3(self.conv3(x))), 2)
        for stage in (1, 2, 3, 4):
            x = self.get_submodule(f"layer{stage}")(x)
        pooled: Tensor = self.attnpool(x)
        return pooled


def load_tower(path: Path) -> nn.Module:
    """A folder of transformers' form, or a ResNet from a file or folder of open_clip's. Raises UnavailableError."""
    if file := _resnet_file(path):
        return load_resnet(file)
    return load_pretrained(CLIPVisionModelWithProjection, path, CPU, torch.float32)  # type: ignore[no-any-return]


def input_size(path: Path) -> int:
    """Height and width of the images that the tower at ``path`` takes. Raises UnavailableError."""
    if file := _resnet_file(path):
        return _grid(_resnet_weights(file)) * STRIDE
    if wrong := checkpoints.problem(path, ("config.json", checkpoints.WEIGHTS), ("clip", "clip_vision_model")):
        raise UnavailableError(f"{path} {wrong}")
    return int(CLIPVisionConfig.from_pretrained(path, local_files_only=True).image_size)  # type: ignore[arg-type]


def load_resnet(path: Path) -> ClipResNet:
    """The ResNet tower in a weights file of a CLIP model. Raises UnavailableError."""
    weights = _resnet_weights(path)
    with torch.device("meta"):
        tower = ClipResNet(
            width=weights["layer1.0.conv1.weight"].shape[0],
            blocks=tuple(layers_of(weights, f"layer{stage}.") for stage in (1, 2, 3, 4)),
            grid=_grid(weights),
            outputs=weights["attnpool.c_proj.weight"].shape[0],
        )
    assign(tower, weights, path, PREFIX)
    return tower


def _resnet_file(path: Path) -> Path | None:
    files = [path] if path.is_file() else [path / name for name in OPEN_CLIP if (path / name).is_file()]
    return files[0] if files else None


def _resnet_weights(path: Path) -> dict[str, Tensor]:
    weights = checkpoints.read_weights(path)
    weights = {name.removeprefix(PREFIX): value for name, value in weights.items() if name.startswith(PREFIX)}
    sized = ("conv1.weight", "layer1.0.conv1.weight", "attnpool.positional_embedding", "attnpool.c_proj.weight")
    if lacking := [PREFIX + name for name in sized if name not in weights]:
        raise UnavailableError(
            f"{path} is not a ResNet tower of CLIP in OpenAI's or open_clip's layout: {', '.join(lacking)} missing"
        )
    return weights


def _grid(weights: dict[str, Tensor]) -> int:
    """Cells per side of the last feature map; one more position is that of their mean."""
    return math.isqrt(weights["attnpool.positional_embedding"].shape[0] - 1)
