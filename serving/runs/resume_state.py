"""Which answers a run already has: one byte per stimulus and sample, read from the record files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from agents.errors import InputError
from serving.runs.atomic_files import replacing
from serving.runs.checking import id_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NONE, OK, REJECTED, FAILED = 0, 1, 2, 3
STATUS = {"ok": OK, "rejected": REJECTED, "failed": FAILED}
CHUNK = 16384


@dataclass(slots=True)
class Places:
    """Finds a stimulus's place in the set by its id."""

    key: NDArray[np.uint64]
    _order: NDArray[np.intp] = field(init=False)
    _sorted: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        import numpy as np

        self._order = np.argsort(self.key, kind="stable").astype(np.int32 if len(self.key) < 2**31 else np.int64)
        self._sorted = self.key[self._order]

    def find(self, ids: list[str]) -> NDArray[np.intp]:
        """The place of each id, -1 where it is not in the set."""
        import numpy as np

        if not len(self.key):
            return np.full(len(ids), -1, dtype=np.intp)
        keys = np.fromiter((id_key(one) for one in ids), dtype=np.uint64, count=len(ids))
        at = np.searchsorted(self._sorted, keys)
        at[at == len(self._sorted)] = 0
        return np.where(self._sorted[at] == keys, self._order[at], -1).astype(np.intp)


@dataclass(slots=True)
class Done:
    """The state of every (stimulus, sample) of one agent; ``duplicates`` tells that a key has more than one line."""

    state: NDArray[np.uint8]
    duplicates: bool = False

    @classmethod
    def read(cls, path: Path, places: Places, samples: int, digest: str) -> Done:
        """Read a record file, its torn tail already cut; the last line of a key counts. Raises InputError for a line
        that is no record of an agent of this ``digest``."""
        import numpy as np

        done = cls(np.zeros((len(places.key), samples), dtype=np.uint8))
        for ids, numbers, states in _chunks(path, digest):
            at = places.find(ids)
            sample = np.array(numbers, dtype=np.int64)
            state = np.array(states, dtype=np.uint8)
            known = (at >= 0) & (sample >= 0) & (sample < samples)
            cells = at[known] * samples + sample[known]
            done.duplicates |= bool(done.state.reshape(-1)[cells].any()) or len(np.unique(cells)) != len(cells)
            # numpy keeps the last of repeated places, as the last line of a key counts
            done.state.reshape(-1)[cells] = state[known]
        return done

    def counts(self, limit: int | None = None) -> Counter[str]:
        """Records by status among the first ``limit`` stimuli."""
        state = self.state if limit is None else self.state[:limit]
        return Counter({name: int((state == value).sum()) for name, value in STATUS.items()})


def _chunks(path: Path, digest: str) -> Iterator[tuple[list[str], list[int], list[int]]]:
    if not path.exists():
        return
    line = 0
    with path.open("rb") as file:
        while lines := list(islice(file, CHUNK)):
            ids, numbers, states = [], [], []
            for text in lines:
                line += 1
                try:
                    record = orjson.loads(text)
                    ids.append(record["stimulus"])
                    numbers.append(record["sample"])
                    states.append(STATUS[record["status"]])
                    if record["provenance"]["digest"] != digest:
                        raise InputError(
                            f"{path}:{line} was made with other settings than run.json says; choose another --out"
                        )
                except (orjson.JSONDecodeError, KeyError, TypeError):
                    raise InputError(f"{path}:{line} is not a record; take the line out, then resume") from None
            yield ids, numbers, states


def compact(path: Path, places: Places, samples: int) -> int:
    """Leave one line per key, the last, in one atomic replacement; lines of no key of the run stay. Returns how many
    lines went."""
    import numpy as np

    last = np.full(len(places.key) * samples, -1, dtype=np.int64)
    for number, (cell, _) in enumerate(_cells(path, places, samples)):
        if cell >= 0:
            last[cell] = number
    dropped = 0
    with replacing(path) as out:
        for number, (cell, line) in enumerate(_cells(path, places, samples)):
            if cell < 0 or last[cell] == number:
                out.write(line)
            else:
                dropped += 1
    return dropped


def _cells(path: Path, places: Places, samples: int) -> Iterator[tuple[int, bytes]]:
    """Each line with its place in the flattened (stimulus, sample) table, -1 if it has none."""
    with path.open("rb") as file:
        while lines := list(islice(file, CHUNK)):
            records = [orjson.loads(line) for line in lines]
            at = places.find([record["stimulus"] for record in records]).tolist()
            for place, record, line in zip(at, records, lines, strict=True):
                known = place >= 0 and 0 <= record["sample"] < samples
                yield (place * samples + record["sample"] if known else -1), line
