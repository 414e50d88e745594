"""Base of the agents that look at VGG16's features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agents.contract import MIB, Declaration
from agents.models import checkpoints
from agents.models.loading import use_full_float32
from agents.models.pretrained import WeightsFileAgent, WeightsFileSettings, download_torchvision, torch_hub_path

if TYPE_CHECKING:
    import torch
    from torch import nn

FILE = "vgg16-397923af.pth"  # torchvision's IMAGENET1K_V1, named without importing it
V = TypeVar("V", bound=WeightsFileSettings)


class VGGAgent(WeightsFileAgent[V]):
    """``features`` is torchvision's ``vgg16().features`` on ``device``, in evaluation mode and fp32."""

    declares = Declaration(
        tasks=("attention_prediction",),
        extra="attention",
        packages=("torch", "torchvision"),
        reports=("torch", "torchvision"),
        memory=2048 * MIB,
        device_memory=4096 * MIB,
        batch_size=8,
    )
    licence = "BSD-3-Clause"
    features: nn.Sequential
    device: torch.device

    def published(self) -> Path:
        return torch_hub_path(FILE)

    def download(self, path: Path) -> None:
        download_torchvision(path)

    def load(self, device: str) -> None:
        import torch
        from torchvision.models import vgg16

        from agents.attention.models.vgg import memory_format

        with torch.device("meta"):
            features = vgg16(weights=None).features
        features.to_empty(device="cpu")
        self.give_weights(features, _read, ("classifier.",))  # which is left out
        self.device = torch.device(device)
        use_full_float32(self.device.type)
        features = features.eval().requires_grad_(False)
        self.features = features.to(self.device, memory_format=memory_format(self.device))

    def close(self) -> None:
        self.__dict__.pop("features", None)


def _read(path: Path) -> dict[str, torch.Tensor]:
    return {name.removeprefix("features."): value for name, value in checkpoints.read_weights(path).items()}
