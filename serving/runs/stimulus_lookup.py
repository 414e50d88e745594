"""Stimuli by name, left on disk: for joining records with what was shown."""

from __future__ import annotations

from array import array
from typing import Any

import orjson

from serving.runs.positions import Positions, joint_key
from serving.runs.reader import RunFolder


class Lookup:
    """The stimuli of a run by (task, ``field``), ``field`` being "id" or "benchmark_id".

    Holds 20 bytes per stimulus and reads a row when it is wanted. Where several have one name the first counts.
    A context manager; raises InputError if the set's rows are damaged.
    """

    def __init__(self, folder: RunFolder, field: str = "id") -> None:
        keys, self._starts = array("Q"), array("q")
        for start, row in folder.located_stimuli():
            name = row.get(field)
            if isinstance(name, str):
                keys.append(joint_key(str(row.get("task")), name))
                self._starts.append(start)
        self._positions = Positions(keys)
        self._file = (folder.path / "stimuli.jsonl").open("rb") if keys else None

    def __enter__(self) -> Lookup:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, task: str, name: str) -> dict[str, Any] | None:
        """The stimulus of that task and name, or None."""
        [position] = self._positions.find([joint_key(task, name)])
        if self._file is None or position < 0:
            return None
        self._file.seek(self._starts[position])
        row: dict[str, Any] = orjson.loads(self._file.readline())
        return row
