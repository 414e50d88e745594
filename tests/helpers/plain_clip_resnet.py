"""CLIP's ResNet (Radford et al. 2021, section 2.4) under OpenAI's names of weights, as a plain program."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.resnet import Bottleneck

HEAD_WIDTH = 64


class PooledConvolution(nn.Conv2d):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(inputs, outputs, 1, bias=False)
        self.pool = stride

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(functional.avg_pool2d(x, self.pool) if self.pool > 1 else x)


class ClipBottleneck(Bottleneck):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        outputs = 4 * width
        downsample = None
        if stride > 1 or inputs != outputs:
            downsample = nn.Sequential(PooledConvolution(inputs, outputs, stride), nn.BatchNorm2d(outputs))
        super().__init__(inputs, width, downsample=downsample)
        self.conv3 = PooledConvolution(width, outputs, stride)


class AttentionPool(nn.Module):
    """The mean attends to all cells: [batch, width, grid, grid] to [batch, outputs]."""

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
        query = self.q_proj(tokens[:, :1])
        key = self.k_proj(tokens)
        value = self.v_proj(tokens)
        heads = [part.unflatten(-1, (-1, HEAD_WIDTH)).transpose(1, 2) for part in (query, key, value)]
        pooled = functional.scaled_dot_product_attention(*heads).transpose(1, 2)
        return self.c_proj(pooled.flatten(1))


class ClipResNet(nn.Module):
    """Pixels [batch, 3, size, size] to [batch, ``outputs``]."""

    def __init__(self, width: int, blocks: tuple[int, ...], grid: int, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.conv1 = nn.Conv2d(3, width // 2, 3, stride=2, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width // 2, width // 2, 3, padding=1, bias=False)
        self.conv3 = nn.Conv2d(width // 2, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width // 2)
        self.bn2 = nn.BatchNorm2d(width // 2)
        self.bn3 = nn.BatchNorm2d(width)
        inputs = width
        for stage, count in enumerate(blocks):
            inner = width * 2**stage
            first = ClipBottleneck(inputs, inner, 1 if stage == 0 else 2)
            inputs = 4 * inner
            others = (ClipBottleneck(inputs, inner, 1) for _ in range(count - 1))
            self.add_module(f"layer{stage + 1}", nn.Sequential(first, *others))
        self.attnpool = AttentionPool(grid, inputs, outputs)

    def forward(self, pixels: Tensor) -> Tensor:
        x = functional.relu(self.bn1(self.conv1(pixels)))
        x = functional.relu(self.bn2(self.conv2(x)))
        x = functional.avg_pool2d(functional.relu(self.bn3(self.conv3(x))), 2)
        for stage in (1, 2, 3, 4):
            x = self.get_submodule(f"layer{stage}")(x)
        return self.attnpool(x)
