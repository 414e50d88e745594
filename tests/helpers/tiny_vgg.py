"""VGG16 and DeepGaze with random weights, saved under the names that the published files have."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torchvision.models import vgg16

# VGG16's layers with an eighth of its channels, for ``torchvision.models.vgg.cfgs["D"]``.
NARROW = [8, 8, "M", 16, 16, "M", 32, 32, 32, "M", 64, 64, 64, "M", 64, 64, 64, "M"]


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


def deepgaze(folder: Path) -> Path:
    """A file of weights under which another picture, or another fixation, gives another density."""
    from agents.attention.models import deepgaze

    torch.manual_seed(0)
    model: Any = deepgaze.build()
    for name, value in model.state_dict().items():
        if "finalizers" not in name and value.is_floating_point() and value.ndim == 1 and "running" not in name:
            value.add_(0.3 * torch.randn(value.shape))
    for finalizer in model.finalizers:
        finalizer.gauss.sigma.data.fill_(2.0)
    for network in model.fixation_selection_networks:
        network.conv2.weight.data.mul_(20)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: value.contiguous().clone() for name, value in model.state_dict().items()}, folder / "w.safetensors"
    )
    (folder / "RANDOM_WEIGHTS").touch()
    return folder / "w.safetensors"
