"""Stimuli by name, left on disk: for joining records with what was shown."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Any

import orjson

from serving.runs.hash_join import ordered_pairs
from serving.runs.reader import RunFolder


class Lookup:
    """The stimuli of a run by (task, ``field``), ``field`` being "id" or "benchmark_id".

    Holds 16 bytes per stimulus and reads a row when it is asked for. Where several have one name the first counts.
    A context manager; raises InputError if the set's rows are damaged.
    """

    def __init__(self, folder: RunFolder, field: str = "id") -> None:
        self._field = field
        hashes, starts = array("q"), array("q")
        for start, row in folder.located_stimuli():
            name = row.get(field)
            if isinstance(name, str):
                hashes.append(hash((row.get("task"), name)))
                starts.append(start)
        self._hashes, self._starts = ordered_pairs(hashes, starts)
        self._file = (folder.path / "stimuli.jsonl").open("rb") if len(hashes) else None

    def __enter__(self) -> Lookup:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, task: str, name: str) -> dict[str, Any] | None:
        """The stimulus of that task and name, or None."""
        if self._file is None:
            return None
        wanted = hash((task, name))
        at = bisect_left(self._hashes, wanted)
        while at < len(self._hashes) and self._hashes[at] == wanted:
            self._file.seek(self._starts[at])
            row: dict[str, Any] = orjson.loads(self._file.readline())
            if row.get("task") == task and row.get(self._field) == name:
                return row
            at += 1
        return None
