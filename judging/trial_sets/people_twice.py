"""People whose answers to the same stimuli stand in two run folders.

A table that was saved again in another form, and imported into another folder, doubles its people: each answer stands
in two trials, and intervals become too narrow. The same names may also be other people, each lab counting from "1".
Nothing here can know which, so trials are drawn as they are, and a sentence says how many answers are concerned.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from serving.files.words import count, shown


class PeopleTwice:
    """Collects people's answers by folder. ``names`` are the folders' names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._first: dict[tuple[str, str, str], tuple[int, bytes]] = {}
        self._again: Counter[tuple[int, int]] = Counter()
        self._equal: Counter[tuple[int, int]] = Counter()
        self._people: dict[tuple[int, int], dict[str, None]] = {}

    def add(self, folder: int, record: Mapping[str, Any], stimulus: str) -> None:
        """Note a person's answer to ``stimulus`` in a folder, which is given by its place in ``names``."""
        person = record["agent"]
        answer = orjson.dumps(record["answer"], option=orjson.OPT_SORT_KEYS)
        first, before = self._first.setdefault((record["task"], stimulus, person), (folder, answer))
        if first == folder:
            return
        both = (first, folder)
        self._again[both] += 1
        self._people.setdefault(both, {})[person] = None
        if answer == before:
            self._equal[both] += 1

    def sentences(self) -> list[str]:
        """A sentence for each two folders that share people and stimuli."""
        lines = []
        for (first, second), number in self._again.items():
            people = sorted(self._people[first, second])
            others = f" and {count(len(people) - 1, 'other')}" if len(people) > 1 else ""
            lines.append(
                f"{shown(people[0])}{others} answered the same stimuli in {self._names[first]} and in "
                f"{self._names[second]}: {count(number, 'answer')}, {self._equal[first, second]:,} of them equal. "
                "If one folder is a copy of the other, give only one of them. If different people have the same name, "
                "rename them in a table and import this table again"
            )
        return lines
