"""Which answers a run already has: one byte per stimulus and sample, read from the record files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agents.errors import InputError
from serving.runs.atomic_files import replacing
from serving.runs.positions import Positions, id_keys
from serving.runs.reader import numbered_records

NONE, OK, REJECTED, FAILED = 0, 1, 2, 3
STATUS = {"ok": OK, "rejected": REJECTED, "failed": FAILED}
CHUNK = 4096


@dataclass(slots=True)
class ResumeState:
    """The state of every (stimulus, sample) of one agent; ``duplicates`` tells that a key has more than one line."""

    state: NDArray[np.uint8]
    duplicates: bool = False

    @classmethod
    def read(cls, path: Path, positions: Positions, samples: int, digest: str) -> ResumeState:
        """Read a record file, its torn tail already cut; the last line of a key counts. Raises InputError for a line
        that is no record of an agent of this ``digest``."""
        found = cls(np.zeros((len(positions), samples), dtype=np.uint8))
        flat = found.state.reshape(-1)
        for chunk in _chunks(path, positions, samples, digest):
            known = chunk.cells >= 0
            cells = chunk.cells[known]
            found.duplicates |= bool(flat[cells].any()) or len(np.unique(cells)) != len(cells)
            # numpy keeps the last of repeated cells, as the last line of a key counts
            flat[cells] = np.array(chunk.states, dtype=np.uint8)[known]
        return found

    def counts(self, limit: int | None = None) -> Counter[str]:
        """Records by status among the first ``limit`` stimuli."""
        state = self.state[:limit]
        return Counter({name: int((state == value).sum()) for name, value in STATUS.items()})


def compact(path: Path, positions: Positions, samples: int) -> int:
    """Leave one line per key, the last, in one atomic replacement; lines of no key of the run stay. Returns how many
    lines went."""
    last = np.zeros(len(positions) * samples, dtype=np.int64)
    for chunk in _chunks(path, positions, samples):
        known = chunk.cells >= 0
        last[chunk.cells[known]] = np.array(chunk.numbers)[known]
    dropped = 0
    with replacing(path) as out:
        for chunk in _chunks(path, positions, samples):
            for number, line, cell in zip(chunk.numbers, chunk.lines, chunk.cells.tolist(), strict=True):
                if cell < 0 or last[cell] == number:
                    out.write(line)
                else:
                    dropped += 1
    return dropped


@dataclass(slots=True)
class _Chunk:
    """Some thousand lines, and of each its number, its status, and its cell in the flattened (stimulus, sample) table;
    -1 for a key that is not of the run. (Records themselves are not kept: the garbage collector would look at each.)
    """

    numbers: list[int] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    cells: NDArray[np.int64] = field(init=False)


def _chunks(path: Path, positions: Positions, samples: int, digest: str | None = None) -> Iterator[_Chunk]:
    """The lines of a record file, if there is one. Raises InputError for a record of another ``digest``."""
    if not path.exists():
        return
    with path.open("rb") as file:
        records = numbered_records(file, path)
        while True:
            chunk = _Chunk()
            ids: list[str] = []
            samples_here: list[int] = []
            for number, line, record in islice(records, CHUNK):
                if digest is not None and record["provenance"].get("digest") != digest:
                    raise InputError(
                        f"{path}:{number} was made with other settings than run.json says; choose another --out"
                    )
                chunk.numbers.append(number)
                chunk.lines.append(line)
                chunk.states.append(STATUS[record["status"]])
                ids.append(record["stimulus"])
                samples_here.append(record["sample"])
            if not ids:
                return
            at, sample = positions.find(id_keys(ids)), np.array(samples_here, dtype=np.int64)
            chunk.cells = np.where((at >= 0) & (sample < samples), at.astype(np.int64) * samples + sample, -1)
            yield chunk
