"""VGG16 with random weights at its real size, saved once for a session under the names that torchvision's file has."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torchvision.models import vgg16


def weights(folder: Path, seed: int = 0) -> Path:
    """A file of weights in ``folder``, random and said to be so; the classifier's are there, but small.

    Drawn as torchvision draws those of a new model (He et al. 2015), so that features keep their size with depth, with
    biases that are not zero.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in vgg16(weights=None).features.state_dict().items()}
    state = {}
    for name, shape in shapes.items():
        if name.endswith("weight"):
            deviation = (2 / (shape[1] * shape[2] * shape[3])) ** 0.5
            state[f"features.{name}"] = torch.randn(shape, generator=generator) * deviation
        else:
            state[f"features.{name}"] = torch.randn(shape, generator=generator) * 0.05
    state["classifier.0.weight"] = torch.zeros(2, 3)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vgg16.safetensors"
    save_file(state, path)
    (folder / "RANDOM_WEIGHTS").touch()
    return path
