"""The lengths of a file's lines, of which there may be millions."""

from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 1 << 24  # bytes of a file that are looked at together


def line_lengths(path: Path) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The length in bytes of each line, newline included; a last line without one does not count."""
    ends = []
    offset = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            ends.append(np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + offset)
            offset += len(block)
    return np.diff(np.concatenate([[-1], *ends]).astype(np.int64))
