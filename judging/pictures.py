"""Features of pictures by ResNet18 (He et al. 2016; torchvision's weights on ImageNet), as the papers' judge of colours
had: the 512 numbers of its last pooling, or the 64 of its first block, averaged over the picture ("5th layer" of the
2025 paper, which is its fifth child [?])."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from agents import checkpoints
from agents.images import Image
from agents.loading import load_weights
from agents.pretrained import torch_hub_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

Layer = Literal["deep", "early"]
FILE = "resnet18-f37072fd.pth"  # torchvision's IMAGENET1K_V1
TOGETHER = 32
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def published() -> Path:
    """Where torchvision's weights are, or would be if they were fetched."""
    return torch_hub_path(FILE)


class PictureFeatures:
    """ResNet18 up to ``layer``. ``root`` is the folder that pictures are relative to. Raises UnavailableError."""

    def __init__(self, weights: Path, layer: Layer, root: Path, device: str) -> None:
        import torch
        from torchvision.models import resnet18

        model = resnet18(weights=None)
        load_weights(model, checkpoints.read_weights(weights), weights)
        parts = list(model.children())
        stages = parts[:5] if layer == "early" else parts[:8]
        self._net = torch.nn.Sequential(*stages, torch.nn.AdaptiveAvgPool2d(1)).eval().requires_grad_(False).to(device)
        self._root, self._device = root, torch.device(device)

    def vectors(self, names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The features of each picture. Raises ImageError."""
        import torch

        distinct = list(dict.fromkeys(names))
        by_name: dict[str, NDArray[np.float32]] = {}
        for begin in range(0, len(distinct), TOGETHER):
            part = distinct[begin : begin + TOGETHER]
            batch = torch.stack([self._pixels(name) for name in part]).to(self._device)
            with torch.inference_mode():
                by_name |= dict(zip(part, self._net(batch).flatten(1).cpu().numpy(), strict=True))
        return by_name

    def _pixels(self, name: str) -> Any:
        """The picture as torchvision's weights want it: the shorter side 256, the centre 224 x 224, normalised."""
        import torch
        from PIL import Image as PILImage
        from torchvision.transforms import functional

        picture = PILImage.fromarray(Image(name, root=self._root).decode())
        resized = functional.resize(picture, [256])
        pixels = functional.pil_to_tensor(functional.center_crop(resized, [224, 224])).to(torch.float32) / 255
        return functional.normalize(pixels, MEAN, DEVIATION)
