"""A stimulus on its way through a run: the line of JSON that a set has of it, with what a reader needs to route it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import orjson

from agents.stimuli import Stimulus, Task, canonical, parse_row
from serving.sets.kinds import Kind, kind_of


@dataclass(slots=True, eq=False)
class StimulusRow:
    """One stimulus as canonical JSON, with its id and kind, which are read here and nowhere else.

    Whoever needs the stimulus itself calls :meth:`parsed`. The first call parses the JSON, and later ones get the same
    object: in a process a row is parsed at most once, however many samples, attempts and filters ask for it. Parsing
    waits until then because a run's main process hands rows on to workers and seldom looks inside.
    """

    id: str
    """The stimulus's id, unique in its set and task."""
    kind: Kind
    """Task and detail, which decide who is asked; see :data:`serving.sets.kinds.Kind`."""
    json: bytes
    """The canonical JSON without a newline, as ``stimuli.jsonl`` has it."""
    position: int = 0
    """The place in its set, from 0."""
    root: str | None = None
    """The folder in which its pictures' paths begin; None where they came with the request, or there are none."""
    files: Mapping[str, bytes] | None = None
    """The bytes of pictures that came with a request, by the names that the row has for them."""
    stimulus: Stimulus | None = None
    """The parsed stimulus, once somebody had it parsed; read it by :meth:`parsed`."""

    @classmethod
    def of_line(cls, line: bytes, position: int, root: str | None) -> StimulusRow:
        """The row of a line of ``stimuli.jsonl``, which was checked when the set was read."""
        fields = orjson.loads(line)
        return cls(str(fields["id"]), kind_of(fields), line, position, root)

    @classmethod
    def of(cls, stimulus: Stimulus, files: Mapping[str, bytes] | None = None) -> StimulusRow:
        """The row of a stimulus that was parsed already; ``files`` has the bytes of its pictures."""
        return cls(stimulus.id, kind_of(vars(stimulus)), canonical(stimulus), files=files, stimulus=stimulus)

    @property
    def task(self) -> Task:
        """The task that the stimulus belongs to, as records have it."""
        return cast(Task, self.kind[0])

    def parsed(self) -> Stimulus:
        """The stimulus. Raises ``pydantic.ValidationError`` for a row that is none.

        Threads may call this at once: each would parse the same bytes, and the last one's object stays."""
        if self.stimulus is None:
            self.stimulus = parse_row(self.json, root=self.root, files=self.files)
        return self.stimulus
