"""Files of weights: what they hold, by their headers, and tensors read from them without executing anything."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.errors import UnavailableError, short_text

if TYPE_CHECKING:
    import torch

WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".pkl", ".ckpt")
"""Endings of files of weights; no id of the hub ends like this."""

MARKER = "RANDOM_WEIGHTS"
"""A file of this name beside weights says that they were drawn at random."""


def random_weights(path: Path) -> bool:
    """Whether :data:`MARKER` lies in the folder, or beside the file."""
    return ((path if path.is_dir() else path.parent) / MARKER).exists()


def weights_file(path: Path) -> Path:
    """The file itself, or the only file of weights in a folder. Raises UnavailableError if there are none or
    several."""
    if not path.is_dir():
        return path
    files = sorted(file for file in path.iterdir() if file.suffix in WEIGHT_SUFFIXES)
    if len(files) != 1:
        raise UnavailableError(f"{path} holds {len(files)} files of weights ({', '.join(WEIGHT_SUFFIXES)}); name one")
    return files[0]


def count_weights(path: Path) -> int:
    """Weights in a file, or in the files of a folder, by their headers alone. A torch file, whose header does not say,
    is counted as if a weight had two bytes; an unreadable file has 0."""
    if path.is_dir():
        return sum(map(count_weights, sorted(path.glob("*.safetensors")) or sorted(path.glob("pytorch_model*.bin"))))
    try:
        if path.suffix != ".safetensors":
            return path.stat().st_size // 2
        from safetensors import safe_open

        with safe_open(path, "np") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except Exception:  # safetensors is not installed, or the file is damaged
        return 0


def largest_file(path: Path) -> int:
    """Bytes of the largest file of weights."""
    files = (
        [path]
        if path.is_file()
        else [file for file in path.glob("*") if file.suffix in WEIGHT_SUFFIXES and file.is_file()]
    )
    return max((file.stat().st_size for file in files), default=0)


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Tensors by name, on the CPU, mapped from the file where it can be. Raises UnavailableError for a damaged file,
    and for one that holds anything else than tensors: nothing of it is executed."""
    if path.suffix != ".safetensors":
        content = read_torch(path)
    else:
        from safetensors.torch import load_file

        try:
            content = load_file(path)
        except Exception as error:  # SafetensorError, and whatever torch raises for the sizes in a damaged header
            raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    weights = {name: value for name, value in content.items() if hasattr(value, "detach")}
    if not weights:
        raise UnavailableError(f"{path} holds no weights by name")
    return weights


def read_torch(path: Path) -> dict[str, Any]:
    """The mapping that a torch file holds, read with ``weights_only=True``. Raises UnavailableError."""
    import pickle

    import torch

    try:
        with path.open("rb") as file:
            is_archive = file.read(2) == b"PK"  # which can be mapped instead of read
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=is_archive)
    except pickle.UnpicklingError as error:
        raise not_executed(path, error) from None
    except Exception as error:  # a damaged file raises a dozen types, IndexError and struct.error among them
        raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    if not isinstance(content, Mapping):
        raise UnavailableError(f"{path} holds a {type(content).__name__}, not weights by name")
    return dict(content)


def not_executed(path: Path, error: Exception) -> UnavailableError:
    """What to say of a file that torch refused, with the class that the file wanted to import."""
    named = re.search(r"GLOBAL ([\w.]+)", str(error))
    what = f" ({named.group(1)})" if named else ""
    return UnavailableError(
        f"{path} is damaged, or holds code or objects{what} beside weights; it was not executed. "
        "Save its tensors alone, as safetensors"
    )


def check_names(
    path: Path | str, missing: Sequence[str], unexpected: Sequence[str] = (), reshaped: Sequence[str] = ()
) -> None:
    """Raises UnavailableError for a checkpoint ``path`` of another architecture: if names of weights are ``missing``,
    ``unexpected`` or ``reshaped``. It names three of each."""
    kinds = ((missing, "are missing"), (unexpected, "are none of the model's"), (reshaped, "are of another shape"))
    parts = [f"{len(names)} weights {what} ({some(sorted(names))})" for names, what in kinds if names]
    if parts:
        raise UnavailableError(f"{path} is not a checkpoint of this architecture: {' and '.join(parts)}")


def some(names: Sequence[str]) -> str:
    """The first three names of a list, and an ellipsis where there are more."""
    first = ", ".join(names[:3])
    return f"{first} …" if len(names) > 3 else first
