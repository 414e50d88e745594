"""Weights into modules: every name and every shape is looked at before anything is loaded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from agents.errors import UnavailableError

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin")
NAMED = 5  # how many weights of each kind a message names


def layers_of(names: Collection[str], prefix: str) -> int:
    """How many numbers follow ``prefix`` in ``names``: "layer1.0.x", "layer1.1.x" are 2 of "layer1."."""
    return len({name[len(prefix) :].split(".")[0] for name in names if name.startswith(prefix)})


def check(module: nn.Module, weights: Mapping[str, Tensor], path: Path, prefix: str = "") -> None:
    """Raises one UnavailableError that names the weights which ``module`` lacks, has no use for, or has otherwise
    shaped. ``prefix`` stands before each name in the file ``path``."""
    wanted = module.state_dict()
    shaped = [
        f"{prefix}{name} {list(weights[name].shape)} for {list(value.shape)}"
        for name, value in wanted.items()
        if name in weights and weights[name].shape != value.shape
    ]
    found = {
        "missing": [prefix + name for name in wanted if name not in weights],
        "unknown": [prefix + name for name in weights if name not in wanted],
        "of another shape": shaped,
    }
    parts = [
        f"{len(names)} {what}: {', '.join(names[:NAMED])}{', …' * (len(names) > NAMED)}"
        for what, names in found.items()
        if names
    ]
    if parts:
        raise UnavailableError(f"{path} does not fit this model. Weights {'; '.join(parts)}")


def assign(module: nn.Module, weights: Mapping[str, Tensor], path: Path, prefix: str = "") -> None:
    """Make ``weights``, in float32, those of ``module``, which may be on the meta device.

    Raises UnavailableError as :func:`check` does.
    """
    check(module, weights, path, prefix)
    # Copied: as they are mapped from the file their places in memory are odd, and so would be the rounding of sums.
    copies = {name: value.to(torch.float32, copy=True) for name, value in weights.items()}
    module.load_state_dict(copies, assign=True)
    module.requires_grad_(False).eval()


def weights_file(path: Path) -> Path:
    """``path``, or the one file of weights in the folder ``path``. Raises UnavailableError."""
    if path.is_file():
        return path
    found = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    if len(found) != 1:
        raise UnavailableError(f"{path} holds {len(found)} files of weights ({', '.join(SUFFIXES)}); name one")
    return found[0]
