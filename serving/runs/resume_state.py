"""Which answers a run already has: one byte per stimulus and sample, read from the record files."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from agents.errors import InputError
from serving.runs.atomic_files import replacing
from serving.runs.positions import Positions, id_keys, task_key
from serving.runs.reader import NumberedRecord, numbered_records
from serving.runs.records import problems
from serving.runs.row_problems import shown

NONE, OK, REJECTED, FAILED = 0, 1, 2, 3  # from FAILED on each code of a failure has a number
STATUS = {"ok": OK, "rejected": REJECTED}
MOST = 255
CHUNK = 64  # records at a time: the garbage collector looks at each that is held


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
    """The state of every (stimulus, sample) of one agent that is asked for, and ``lines``, what stands in its file."""

    state: NDArray[np.uint8]
    codes: list[str]
    lines: RecordLines

    @classmethod
    def read(cls, path: Path, positions: Positions, samples: int, maker: Maker, kept: int = 0) -> ResumeState:
        """Read a record file, its torn tail already cut; the last line of a key counts. The run has ``kept`` samples,
        if it has more than are asked for. Raises InputError for a line that is no record of ``maker``."""
        found = cls(np.zeros((len(positions), samples), dtype=np.uint8), [], RecordLines(max(samples, kept)))
        flat = found.state.reshape(-1)
        codes: dict[str, int] = {}
        end = 0
        for records, at, sample in _chunks(path, positions):
            cells = np.where((at >= 0) & (sample < samples), at * samples + sample, -1)
            found.lines.extend(at, sample)
            states = np.zeros(len(records), dtype=np.uint8)
            for place, (number, line, record) in enumerate(records):
                end += len(line)
                if (fault := maker.fault(record, end)) is not None:
                    raise InputError(f"{path}:{number} {fault}")
                if record["status"] == "failed":
                    states[place] = codes.setdefault(record["error"]["code"], min(MOST, FAILED + len(codes)))
                else:
                    states[place] = STATUS[record["status"]]
            known = cells >= 0
            flat[cells[known]] = states[known]  # numpy keeps the last of repeated cells
        found.codes = list(codes)
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


def _chunks(
    path: Path, positions: Positions
) -> Iterator[tuple[list[NumberedRecord], NDArray[np.int64], NDArray[np.int64]]]:
    """Some of the records of a file, if there is one, at a time; and of each the position of its stimulus, -1 for one
    that is not of the run, and its sample."""
    if not path.exists():
        return
    with path.open("rb") as file:
        records = numbered_records(file, path)
        while chunk := list(islice(records, CHUNK)):
            tasks = np.array([task_key(record["task"]) for _, _, record in chunk], dtype=np.uint64)
            at = positions.find(id_keys(record["stimulus"] for _, _, record in chunk) ^ tasks).astype(np.int64)
            yield chunk, at, np.array([record["sample"] for _, _, record in chunk], dtype=np.int64)


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
