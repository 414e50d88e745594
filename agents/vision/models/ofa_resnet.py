"""The image embedding of OFA: the first three stages of a ResNet (He et al. 2016, "Deep residual learning for image
recognition"), with the stride in the 3 x 3 convolution, as torchvision has it ("ResNet V1.5").

Names of the weights are those of torchvision, which the published checkpoints keep.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from agents.vision.models.ofa_config import RESNET_BLOCKS

EXPANSION = 4


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3, 1 x 1 convolutions, each with batch normalisation, around which the input is added."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = width * EXPANSION
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, images: Tensor) -> Tensor:
        inner = torch.relu(self.bn1(self.conv1(images)))
        inner = torch.relu(self.bn2(self.conv2(inner)))
        inner = self.bn3(self.conv3(inner))
        return torch.relu(inner + (images if self.downsample is None else self.downsample(images)))


class ResNet(nn.Module):
    """[B, 3, H, W] -> [B, 1024, H / 16, W / 16] (rounded up). ``kind`` is a key of RESNET_BLOCKS."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        blocks = RESNET_BLOCKS[kind]
        self.layer1 = self._stage(64, 64, blocks[0], stride=1)
        self.layer2 = self._stage(256, 128, blocks[1], stride=2)
        self.layer3 = self._stage(512, 256, blocks[2], stride=2)

    @staticmethod
    def _stage(channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
        first = Bottleneck(channels, width, stride)
        return nn.Sequential(first, *(Bottleneck(width * EXPANSION, width, 1) for _ in range(blocks - 1)))

    def forward(self, images: Tensor) -> Tensor:
        stem: Tensor = self.maxpool(torch.relu(self.bn1(self.conv1(images))))
        embedded: Tensor = self.layer3(self.layer2(self.layer1(stem)))
        return embedded
