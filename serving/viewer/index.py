"""The viewer's index: what the page needs of every stimulus and record to list, filter and search them, in columns.

A column holds a number for each stimulus or record. Names and texts stand once, and columns hold their places: an
answer that a thousand agents gave takes the room of one.
"""

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from serving.runs.words_by_rules import in_words
from serving.viewer.records import answer_line, flags_of

COLUMNS = ("mode", "type", "asked", "source")  # fields of a stimulus that the page can filter by, beside its ``meta``
MOST_COLUMNS = 30  # fields that the page can filter by
MOST_VALUES = 300  # a field with more values is not offered
STATUSES = ("ok", "rejected", "failed")


class ValueNumbers(dict[str, int]):
    """A number for each value, from 0 in the order in which they come."""

    def __missing__(self, value: str) -> int:
        return self.setdefault(value, len(self))


class ViewerIndex:
    """Takes in stimuli in their order, each after its records, and gives :meth:`columns`."""

    def __init__(self) -> None:
        self.chunks = [0]  # the first stimulus of each chunk, and where the last one ends
        self.tasks = ValueNumbers()
        self.texts = ValueNumbers()
        self.flags = ValueNumbers()
        self.per_stimulus: dict[str, list[Any]] = {
            name: [] for name in ("id", "task", "title", "picture", "alike", "row")
        }
        self.per_record: dict[str, array[int]] = {
            name: array("i") for name in ("agent", "sample", "status", "flags", "text", "attempts")
        }
        self.first = array("I", [0])
        self.meta: dict[str, tuple[ValueNumbers, array[int]]] = {}
        self.flags["[]"]

    def record(
        self, agent: int, record: Mapping[str, Any], longest: int, by_rules: Mapping[str, str | None] | None
    ) -> None:
        """Take in a record of the agent with that label. Its answer is kept in a line of ``longest`` characters;
        ``by_rules`` is what the papers' rules make of a word, or None."""
        columns = self.per_record
        line = in_words(answer_line(record), by_rules)
        columns["agent"].append(agent)
        columns["sample"].append(min(record["sample"], 2**31 - 1))
        columns["status"].append(STATUSES.index(record["status"]))
        columns["flags"].append(self.flags[orjson.dumps(flags_of(record)).decode()])
        columns["text"].append(self.texts[line[:longest]])
        columns["attempts"].append(len(record["attempts"]))

    def stimulus(
        self, row: Mapping[str, Any], picture: int, records: int, alike: float | None, page_row: tuple[int, str]
    ) -> None:
        """Take in the stimulus of the last ``records`` records: its fields, the number of its picture (-1 without one),
        how alike its answers are (0 to 1, or None), and the number and the name of its row on the page."""
        named = [row.get(name) for name in ("cue", "topic", "image")]
        title = next((name for name in named if isinstance(name, str) and name), "")
        self.per_stimulus["id"].append(str(row.get("id")))
        self.per_stimulus["task"].append(self.tasks[str(row.get("task"))])
        self.per_stimulus["title"].append("" if title == page_row[1] else title[:200])
        self.per_stimulus["picture"].append(picture)
        self.per_stimulus["alike"].append(-1 if alike is None else round(100 * alike))
        self.per_stimulus["row"].append(page_row[0])
        meta = row.get("meta")
        columns = {name: row[name] for name in COLUMNS if name in row}
        if isinstance(meta, dict):
            columns |= meta
        place = len(self.first) - 1
        for name, value in columns.items():
            if isinstance(value, str | int | float) and (name in self.meta or len(self.meta) < MOST_COLUMNS):
                codes, column = self.meta.setdefault(name, (ValueNumbers(), array("i")))
                column.extend([-1] * (place - len(column)))
                column.append(codes[value[:200] if isinstance(value, str) else orjson.dumps(value).decode()])
        self.first.append(self.first[-1] + records)

    def columns(self) -> dict[str, Any]:
        """The index for the page: each name and text once, and columns of their numbers, by stimulus and by record."""
        stimuli = len(self.first) - 1
        for _, column in self.meta.values():
            column.extend([-1] * (stimuli - len(column)))
        return {
            "tasks": [*self.tasks],
            "texts": [*self.texts],
            "flags": [orjson.loads(flags) for flags in self.flags],
            "stimuli": {**self.per_stimulus, "first": np.asarray(self.first)},
            "records": {name: np.asarray(column) for name, column in self.per_record.items()},
            "meta": [
                [name, [*codes], np.asarray(column)]
                for name, (codes, column) in self.meta.items()
                if len(codes) <= MOST_VALUES
            ],
            "chunks": self.chunks,
        }
