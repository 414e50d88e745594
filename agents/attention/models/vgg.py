"""VGG16, whose features are what several attention agents look at (Simonyan and Zisserman 2015, arXiv 1409.1556).

torchvision numbers the parts of ``vgg16().features`` from 0 to 30; the papers speak of blocks:

=======================  ==========================================================  ========================
name                     index of the last part that is applied                      channels, stride
=======================  ==========================================================  ========================
relu1_2, pool1           3, 4                                                        64, 1 and 2
relu2_2, pool2           8, 9                                                        128, 2 and 4
relu3_3, pool3           15, 16                                                      256, 4 and 8
relu4_3, pool4           22, 23                                                      512, 8 and 16
relu5_3, pool5           29, 30                                                      512, 16 and 32
=======================  ==========================================================  ========================
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ConfigDict

from agents import checkpoints
from agents.attention.scanpath import ScanSettings
from agents.contract import MIB
from agents.errors import UnavailableError
from agents.weights_file import (
    WeightsFileAgent,
    WeightsFileSettings,
    download_torchvision,
    torch_hub_path,
)

if TYPE_CHECKING:
    import torch
    from torch import nn

FILE = "vgg16-397923af.pth"  # torchvision's IMAGENET1K_V1, named without importing it
LAYERS = {
    "relu1_2": 3,
    "pool1": 4,
    "relu2_2": 8,
    "pool2": 9,
    "relu3_3": 15,
    "pool3": 16,
    "relu4_3": 22,
    "pool4": 23,
    "relu5_3": 29,
    "pool5": 30,
}
CAFFE_MEAN = (103.939, 116.779, 123.68)  # of blue, green, red, in 0..255
IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of red, green, blue, in 0..1


Preprocessing = Literal["imagenet", "caffe"]


class VGGSettings(ScanSettings, WeightsFileSettings):
    """The weights of VGG16, and how maps are turned into fixations."""

    model_config = ConfigDict(use_attribute_docstrings=True)


V = TypeVar("V", bound=WeightsFileSettings)


class VGGAgent(WeightsFileAgent[V]):
    """Base of the agents that look at VGG16's features: ``features`` is torchvision's ``vgg16().features`` on
    ``device``, in evaluation mode and fp32; the classifier in the file is left out."""

    licence = "BSD-3-Clause"
    extra = "attention"
    packages = ("torch", "torchvision")
    memory = 2048 * MIB
    device_memory = 4096 * MIB
    batch_size = 8
    features: nn.Sequential
    device: torch.device

    def published(self) -> Path:
        return torch_hub_path(FILE)

    def download(self, path: Path) -> None:
        download_torchvision(path)

    def load(self, device: str) -> None:
        import torch
        from torchvision.models import vgg16

        from agents.attention.models.winograd import quicker

        if (lacking := self.missing()) is not None:
            raise UnavailableError(lacking)
        with torch.device("meta"):
            features = vgg16(weights=None).features
        features.to_empty(device="cpu")
        self.give_weights(features, _read, ("classifier.",))
        self.device = torch.device(device)
        if self.device.type == "cuda":
            torch.backends.cudnn.allow_tf32 = False  # the only 19-bit arithmetic that is on unless it is switched off
        self.features = quicker(features.eval().requires_grad_(False)).to(self.device)

    def provenance(self) -> dict[str, Any]:
        import torch
        import torchvision

        return {**super().provenance(), "torchvision": torchvision.__version__, "torch": torch.__version__}

    def close(self) -> None:
        self.__dict__.pop("features", None)


def _read(path: Path) -> dict[str, torch.Tensor]:
    """The weights in ``path`` by the names that they have in ``features``."""
    return {name.removeprefix("features."): value for name, value in checkpoints.read_weights(path).items()}


def normalise(pixels: torch.Tensor, way: Preprocessing) -> torch.Tensor:
    """RGB images [batch, 3, height, width] in 0..255 as VGG16 takes them, float32.

    ``caffe``: blue, green, red minus their means, not scaled (the original model). ``imagenet``: divided by 255, minus
    mean and divided by deviation (torchvision's weights).
    """
    import torch

    pixels = pixels.to(torch.float32)
    if way == "caffe":
        return pixels.flip(1) - pixels.new_tensor(CAFFE_MEAN)[:, None, None]
    mean, deviation = (pixels.new_tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_DEVIATION))
    return (pixels / 255 - mean) / deviation
