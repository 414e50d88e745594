"""Which answers a run already has: one byte per stimulus and sample, read from the record files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.errors import InputError
from serving.runs.atomic_files import replacing
from serving.runs.positions import Positions, id_keys
from serving.runs.reader import numbered_records
from serving.runs.records import problems
from serving.runs.row_problems import shown

NONE, OK, REJECTED, FAILED = 0, 1, 2, 3  # from FAILED on each code of a failure has a number
STATUS = {"ok": OK, "rejected": REJECTED}
MOST = 255
CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Maker:
    """Whose records a file has: of an agent or a pair, of these tasks, with this digest. A checksum tells that the
    first ``known`` bytes of the file are what was written."""

    name: str
    tasks: Container[str]
    digest: str
    known: int = 0

    def fault(self, record: Mapping[str, Any], end: int) -> str | None:
        """What tells that a record, whose line ends at so many bytes, is none or is of another."""
        if record["agent"] != self.name or record["task"] not in self.tasks:
            return f"is a record of {shown(record['agent'])} in {shown(record['task'])}: it belongs elsewhere"
        if record["provenance"].get("digest") != self.digest:
            return "was made with other settings than run.json says; choose another --out"
        if end > self.known and (wrong := problems(record)):
            return f"is not a record: {': '.join(filter(None, (wrong[0].field, wrong[0].message)))}"
        return None


@dataclass(slots=True)
class ResumeState:
    """The state of every (stimulus, sample) of one agent; ``duplicates`` tells that a key has more than one line."""

    state: NDArray[np.uint8]
    codes: list[str]
    duplicates: bool = False

    @classmethod
    def read(cls, path: Path, positions: Positions, samples: int, maker: Maker) -> ResumeState:
        """Read a record file, its torn tail already cut; the last line of a key counts. Raises InputError for a line
        that is no record of ``maker``."""
        found = cls(np.zeros((len(positions), samples), dtype=np.uint8), [])
        flat = found.state.reshape(-1)
        for chunk in _chunks(path, positions, samples, maker, found.codes):
            known = chunk.cells >= 0
            cells = chunk.cells[known]
            found.duplicates |= bool(flat[cells].any()) or len(np.unique(cells)) != len(cells)
            # numpy keeps the last of repeated cells, as the last line of a key counts
            flat[cells] = np.array(chunk.states, dtype=np.uint8)[known]
        return found

    def counts(self, limit: int | None = None) -> Counter[str]:
        """Records by status among the first ``limit`` stimuli."""
        state = self.state[:limit]
        counts = Counter({name: int((state == value).sum()) for name, value in STATUS.items()})
        counts["failed"] = int((state >= FAILED).sum())
        return counts

    def code(self, value: int) -> str:
        """The code of the failure that a number in ``state`` stands for; "" for none."""
        return self.codes[value - FAILED] if FAILED <= value < MOST else ""


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


def _chunks(
    path: Path, positions: Positions, samples: int, maker: Maker | None = None, codes: list[str] | None = None
) -> Iterator[_Chunk]:
    """The lines of a record file, if there is one; ``codes`` are those of failures by their numbers, and grow. Raises
    InputError for a record of another than ``maker``."""
    numbers: dict[str, int] = {}
    end = 0
    if not path.exists():
        return
    with path.open("rb") as file:
        records = numbered_records(file, path)
        while True:
            chunk = _Chunk()
            ids: list[str] = []
            samples_here: list[int] = []
            for number, line, record in islice(records, CHUNK):
                end += len(line)
                if maker is not None and (fault := maker.fault(record, end)) is not None:
                    raise InputError(f"{path}:{number} {fault}")
                chunk.numbers.append(number)
                chunk.lines.append(line)
                status = record["status"]
                if status == "failed":
                    code = record["error"]["code"]
                    if code not in numbers and codes is not None:
                        numbers[code] = min(MOST, FAILED + len(codes))
                        codes.append(code)
                    chunk.states.append(numbers.get(code, FAILED))
                else:
                    chunk.states.append(STATUS[status])
                ids.append(record["stimulus"])
                samples_here.append(record["sample"])
            if not ids:
                return
            at, sample = positions.find(id_keys(ids)), np.array(samples_here, dtype=np.int64)
            chunk.cells = np.where((at >= 0) & (sample < samples), at.astype(np.int64) * samples + sample, -1)
            yield chunk
