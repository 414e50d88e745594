"""Weights of the authors' own files: pickles that are read without executing them, and tensors that are given to a
module."""

import pickle
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from agents.errors import UnavailableError
from agents.models import checkpoints

COUNTER = "num_batches_tracked"
"""A norm's number of batches in training; it is of no use, and does not stand in every file."""
INERT = re.compile(
    r"argparse\.Namespace|omegaconf\.[\w.]+|fairseq\.[\w.]+|typing\.Any|pathlib\.\w*Path|_codecs\.encode"
    r"|numpy\.(_?core\.multiarray\.(scalar|_reconstruct)|dtype|ndarray)"
    r"|(__builtin__|builtins)\.(bool|bytes|dict|float|int|list|object|set|str|tuple)"
)
"""What programs of torch and fairseq pickle beside weights and words. Each is replaced by :class:`Inert`."""


class Inert:
    """Stands for any object of a training program, and does nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


def read_pickle(path: Path, allowed: Collection[str] = (), inert: re.Pattern[str] | None = None) -> Any:
    """The object in a pickle. Only the names ``allowed`` are imported, and what ``inert`` matches becomes
    :class:`Inert`.

    Anything else, and a damaged file, raises UnavailableError: a pickle can run any program when it is read, so that a
    list of names is the only safe way.
    """

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            full = f"{module}.{name}"
            if inert is not None and inert.fullmatch(full):
                return Inert
            if full not in allowed:
                raise UnavailableError(f"{path} asks for {full}, of which there is no need; nothing was executed")
            return super().find_class(module, name)

    try:
        with path.open("rb") as file:
            return Unpickler(file, encoding="latin1").load()
    except UnavailableError:
        raise
    except Exception as error:  # a damaged pickle raises a dozen types
        raise UnavailableError(f"{path} cannot be read: {checkpoints.short_text(error)}") from None


def layers_of(names: Collection[str], prefix: str) -> int:
    """How many layers there are: different parts, up to the next full stop, behind ``prefix`` in ``names``."""
    return len({name[len(prefix) :].split(".")[0] for name in names if name.startswith(prefix)})


def assign(module: nn.Module, weights: Mapping[str, Tensor], path: Path, prefix: str = "") -> None:
    """Give ``module`` the weights, in float32 and without gradients, in evaluation mode.

    ``prefix`` is what stands before the names in the file, for messages. Raises UnavailableError with the names that
    are missing, unexpected or of another shape.
    """
    needed = {name: value for name, value in module.state_dict().items() if not name.endswith(COUNTER)}
    weights = {name: value for name, value in weights.items() if not name.endswith(COUNTER)}
    checkpoints.check_names(
        path,
        missing=[prefix + name for name in needed if name not in weights],
        unexpected=[prefix + name for name in weights if name not in needed],
        reshaped=[
            f"{prefix}{name} {list(weights[name].shape)} for {list(value.shape)}"
            for name, value in needed.items()
            if name in weights and weights[name].shape != value.shape
        ],
    )
    # Copied: as they are mapped from the file their places in memory are odd, and so would be the rounding of sums.
    state = {name: value.to(torch.float32, copy=True) for name, value in weights.items()}
    counters = {name: torch.zeros((), dtype=torch.int64) for name in module.state_dict() if name.endswith(COUNTER)}
    module.load_state_dict(state | counters, assign=True)
    module.requires_grad_(False).eval()
