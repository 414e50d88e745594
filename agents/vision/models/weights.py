"""Weights into modules: every name and every shape is looked at before anything is loaded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from agents import checkpoints

COUNTER = "num_batches_tracked"  # over how many batches a norm's averages were taken: of no use, and not in every file


def layers_of(names: Collection[str], prefix: str) -> int:
    """How many numbers follow ``prefix`` in ``names``: "layer1.0.x", "layer1.1.x" are 2 of "layer1."."""
    return len({name[len(prefix) :].split(".")[0] for name in names if name.startswith(prefix)})


def assign(module: nn.Module, weights: Mapping[str, Tensor], path: Path, prefix: str = "") -> None:
    """Make ``weights``, in float32, those of ``module``, which may be on the meta device.

    ``prefix`` stands before each name in the file ``path``. Raises UnavailableError, naming weights that are missing,
    superfluous or of another shape.
    """
    needed = {name: value for name, value in module.state_dict().items() if not name.endswith(COUNTER)}
    found = {name: value for name, value in weights.items() if not name.endswith(COUNTER)}
    checkpoints.check_names(
        path,
        missing=[prefix + name for name in needed if name not in found],
        unexpected=[prefix + name for name in found if name not in needed],
        reshaped=[
            f"{prefix}{name} {list(found[name].shape)} for {list(value.shape)}"
            for name, value in needed.items()
            if name in found and found[name].shape != value.shape
        ],
    )
    # Copied: as they are mapped from the file their places in memory are odd, and so would be the rounding of sums.
    state = {name: value.to(torch.float32, copy=True) for name, value in found.items()}
    counters = {name: torch.zeros((), dtype=torch.int64) for name in module.state_dict() if name.endswith(COUNTER)}
    module.load_state_dict(state | counters, assign=True)
    module.requires_grad_(False).eval()
