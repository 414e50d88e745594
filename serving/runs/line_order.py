"""The order of a record file's lines: those of a finished run stand as its set does, each key once."""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from serving.runs.atomic_files import replacing

OTHER = (1 << 64) - 1  # the place of a line whose key is not of the run
PIECE = 1 << 20


@dataclass(slots=True)
class RecordLines:
    """The key of each line of one file, in the order of the lines, as its place among all keys of the run: 8 bytes.
    Each stimulus has ``samples``."""

    samples: int
    _places: array[int] = field(init=False, default_factory=lambda: array("Q"))

    def add(self, position: int, sample: int) -> None:
        """Note a line that is written at the end of the file."""
        self._places.append(position * self.samples + sample)

    def extend(self, positions: NDArray[np.int64], samples: NDArray[np.int64]) -> None:
        """Note several lines; where the stimulus is not of the run its position is -1."""
        places = (positions * self.samples + samples).astype(np.uint64)
        places[(positions < 0) | (samples >= self.samples)] = OTHER
        self._places.frombytes(places.tobytes())

    def in_order(self) -> bool:
        """Whether the lines stand as the set does, each key once; those of other keys at the end."""
        places = np.frombuffer(self._places, dtype=np.uint64)
        return bool(((places[1:] > places[:-1]) | (places[1:] == OTHER)).all())

    def tidy(self, path: Path) -> None:
        """Put the lines of the file in order, of each key the last, in one atomic replacement. A file that has not the
        lines that were noted is left as it is. Raises StorageError."""
        places = np.frombuffer(self._places, dtype=np.uint64)
        with path.open("rb") as file:
            ends = np.cumsum(np.fromiter(map(len, file), dtype=np.int64))
            if len(ends) != len(places) or not len(ends):
                return
            order: NDArray[Any] = np.argsort(places, kind="stable")
            there = places[order]
            kept = order[np.append(there[1:] != there[:-1], True) | (there == OTHER)]
            # Lines that stay together are copied together.
            first = np.flatnonzero(np.append(True, np.diff(kept) != 1))
            last = np.append(first[1:], len(kept)) - 1
            starts = np.append(0, ends)
            with replacing(path) as out:
                for begin, end in zip(starts[kept[first]].tolist(), ends[kept[last]].tolist(), strict=True):
                    _copy(file, begin, end, out)


def _copy(file: BinaryIO, begin: int, end: int, out: BinaryIO) -> None:
    while begin < end:
        piece = os.pread(file.fileno(), min(end - begin, PIECE), begin)
        out.write(piece)
        begin += len(piece)
