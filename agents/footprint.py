"""How much memory a checkpoint needs, found from its files' headers, without reading the weights."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable
from pathlib import Path

HEADER_LIMIT = 100_000_000  # of a safetensors file, in bytes; larger ones are refused by its own library too


def parameters(paths: Iterable[Path]) -> int:
    """The number of weights in safetensors and torch files, and in the folders' files of these kinds.

    Of a torch file only its size is known: two bytes a weight are assumed, so that the number is rather too large. In
    a folder torch files count only where there is no safetensors file, as loading does. Files that cannot be read
    count 0: to say what is wrong with them is the loader's part.
    """
    return sum(_of_folder(path) if path.is_dir() else _of_file(path) for path in paths)


def _of_folder(path: Path) -> int:
    safe = sorted(path.glob("*.safetensors"))
    return sum(map(_of_file, safe or sorted(path.glob("pytorch_model*.bin"))))


def _of_file(path: Path) -> int:
    try:
        if path.suffix != ".safetensors":
            return path.stat().st_size // 2
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length)) if length <= HEADER_LIMIT else {}
        return sum(math.prod(about["shape"]) for name, about in header.items() if name != "__metadata__")
    except (OSError, ValueError, struct.error, KeyError, TypeError, AttributeError):
        return 0
