"""Which answers a run folder has, so that a run goes on where it ended.

A file of records grows in the order in which answers came. :func:`read_states` reads each file once, before anything is
asked: which keys are there, with which status, and in which line. From that ``generate`` knows what is left, and at the
end :meth:`ResumeState.tidy` puts the lines in the set's order.
"""

from __future__ import annotations

import hashlib
import mmap
import sys
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.errors import InputError
from serving.files.atomic_files import repair_tail, replacing
from serving.files.line_lengths import line_lengths
from serving.files.words import shown
from serving.runs.records import problems, structural_fault
from serving.runs.run import Run, numbered_lines, open_to_read
from serving.runs.run_json import is_changed
from serving.sets.kinds import tasks_asked

AnswerKey = tuple[int, int]
"""The position of the stimulus in the set, and the sample."""


@dataclass(frozen=True, slots=True)
class Maker:
    """The agent or pair that a file of records belongs to."""

    name: str
    """The agent's name, or the pair's."""
    tasks: Container[str]
    """The tasks that it answers."""
    digest: str
    """The digest of run.json, which each record must have."""
    known: Mapping[str, Any] | None = None
    """``bytes`` and ``sha256`` of the part of the file that was validated in an earlier start; None: nothing was. Its
    lines are only looked at, the others are validated: a full validation of a large run would take minutes."""

    def fault(self, record: Any, *, known: bool) -> str | None:
        """Why a line is no record of this maker, or None."""
        if not known and (wrong := problems(record)):
            return f"is not a record: {': '.join(filter(None, (wrong[0].field, wrong[0].message)))}"
        if known and (wrong_form := structural_fault(record)) is not None:
            return wrong_form
        if record["agent"] != self.name or record["task"] not in self.tasks:
            return f"is a record of {shown(record['agent'])} in {shown(record['task'])}: it belongs elsewhere"
        if record["provenance"].get("digest") != self.digest:
            return "was made with other settings than run.json says; choose another folder"
        return None


class ResumeState:
    """What is in a file of records."""

    def __init__(self, samples: int) -> None:
        """``samples`` to each stimulus are in the file or will be."""
        self.status: dict[AnswerKey, str] = {}
        """The status of each answer."""
        self.codes: dict[AnswerKey, str] = {}
        """The codes of the failures among them."""
        self._samples = samples
        self._places = array("q")  # of each line its key's place in the set's order; -1 for a key of no stimulus

    @classmethod
    def read(
        cls, path: Path, positions: Mapping[tuple[str, str], int], samples: int, maker: Maker, kept: int = 0
    ) -> ResumeState:
        """Read a record file. ``positions`` are by (task, id); ``kept`` samples are in the file, ``samples`` are
        wanted. Raises InputError for a line that is no record of ``maker``, and for other bytes than it knows."""
        state = cls(max(samples, kept))
        if not path.exists():
            return state
        known = maker.known or {"bytes": 0, "sha256": hashlib.sha256().hexdigest()}
        end = 0
        sha256 = hashlib.sha256()
        try:
            with open_to_read(path) as file:
                for number, line, record in numbered_lines(file, path):
                    end += len(line)
                    if is_known := end <= known["bytes"]:
                        sha256.update(line)
                    if (fault := maker.fault(record, known=is_known)) is not None:
                        raise InputError(f"{path}:{number} {fault}")
                    position = positions.get((record["task"], record["stimulus"]), -1)
                    sample = record["sample"]
                    state.note(position, sample)
                    if position >= 0 and sample < samples:
                        state.status[position, sample] = sys.intern(record["status"])
                        if record["status"] == "failed":
                            state.codes[position, sample] = sys.intern(record["error"]["code"])
            changed = sha256.hexdigest() != known["sha256"]
        except InputError:
            if not is_changed(path, maker.known):
                raise
            changed = True
        if changed:
            raise InputError(
                f"{path} is not what this run wrote (its checksum is another): restore it, or remove it to have all of "
                f"{maker.name} answered again"
            )
        return state

    def note(self, position: int, sample: int) -> None:
        """Note the key of the last line; position -1 is no stimulus of the set."""
        is_of_run = position >= 0 and sample < self._samples
        self._places.append(position * self._samples + sample if is_of_run else -1)

    def counts(self, limit: int | None = None) -> Counter[str]:
        """Answers by status to the first ``limit`` stimuli."""
        counts = Counter({"ok": 0, "rejected": 0, "failed": 0})
        counts.update(status for (position, _), status in self.status.items() if limit is None or position < limit)
        return counts

    def is_in_order(self) -> bool:
        """Whether lines stand as the set does, each key once, those of no stimulus at the end."""
        places = np.array(self._places)
        before = places[:-1]
        after = places[1:]
        return bool(np.all((after == -1) | ((before > -1) & (before < after))))

    def tidy(self, path: Path) -> None:
        """Put the last line of each key in order, unless other lines are there. Raises StorageError.

        Most lines stand behind the one that they belong behind. So what is written at once are whole pieces of the
        file, and not lines, of which there may be a million."""
        if not self._places:
            return
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            ends = np.cumsum(line_lengths(path))
            if len(ends) != len(self._places) or ends[-1] != len(content):
                return
            order = _last_lines(np.array(self._places))
            starts = np.concatenate([[0], ends[:-1]])
            first = np.flatnonzero(np.diff(order, prepend=-2) != 1)
            last = np.concatenate([first[1:], [len(order)]]) - 1
            with replacing(path) as out:
                for begin, end in zip(starts[order[first]].tolist(), ends[order[last]].tolist(), strict=True):
                    out.write(content[begin:end])


def _last_lines(places: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The numbers of the lines that stay, in the order of their ``places``: the last line of each place, then all
    those of no stimulus, whose place is -1."""
    _, from_end = np.unique(places[::-1], return_index=True)
    lines = len(places) - 1 - from_end
    return np.concatenate([lines[places[lines] != -1], np.flatnonzero(places == -1)])


def read_states(
    run: Run, names: Iterable[str], positions: Mapping[tuple[str, str], int], samples: int, *, repair: bool = True
) -> dict[str, ResumeState]:
    """What a run's files of records have, by the ``names`` of agents and pairs. With ``repair`` torn last lines are cut
    off; without it nothing is written, and they do not count.

    ``positions`` are those of the run's stimuli by (task, id), ``samples`` are wanted of each. Raises InputError for
    records that are not the run's."""
    states = {}
    for name in names:
        entry = run.meta["agents"][name]
        path = run.records_path(name)
        maker = Maker(name, tasks_asked(entry), entry["digest"], entry.get("records"))
        states[name] = ResumeState.read(path, positions, samples, maker, entry["samples"])
        if repair:
            repair_tail(path)
    return states
