"""``stimuli.index``: what each stimulus of a run was when it was checked.

A run may be continued weeks later, when the set's file has grown and pictures have been touched. The index says, for
each stimulus, a hash of its content (canonical row and bytes of pictures) and a hash of its pictures' names, sizes and
times. Where the second is as before nobody reads the pictures again; where the first has changed the run is refused,
because its answers would be to another stimulus.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import orjson

from agents.errors import IdentityError, InputError, Problem
from serving.files.atomic_files import replacing
from serving.files.words import count
from serving.sets.checking import check_rows
from serving.sets.set_rows import OTHER_TASK, Row

HEAD = b"turinglike.index/4"  # the first line of the file
UNREAD = "0" * 16  # in place of a hash of content
NAMED = 10  # changed stimuli that a message names

StimulusKey = tuple[str, str]
"""Task and id."""
IndexEntry = tuple[str, int]
"""The content's hash, or UNREAD; the hash of the files' sizes and times (0 without images)."""
Index = dict[StimulusKey, IndexEntry]
"""By key, in the set's order."""


@dataclass(slots=True)
class CheckedSet:
    """A set's rows, checked and written to a run folder."""

    known: Index
    """The index of the run's earlier start; empty for a new one."""
    rows: BinaryIO
    """Gets the rows, a line each."""
    entries: Index = field(default_factory=dict)
    """The index of the rows written."""
    invalid: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Why rows cannot be asked (code, message), by their positions. They stand in the set, and have failed records."""
    skipped: int = 0
    """Rows that are left out: without a readable id or task, or with an id that stands earlier."""

    def add_all(self, rows: Iterator[Row], source: str, skip_invalid: bool) -> None:
        """Check and write all. Raises InputError with every problem, unless ``skip_invalid``."""
        result = check_rows(rows, hash_images=True, on_row=self._add, known=self._known_content)
        self.skipped += result.duplicates
        if result.total_problems and not skip_invalid:
            problems = [*dict.fromkeys(result.problems)]  # a picture's are the same in every task
            total = result.total_problems - len(result.problems) + len(problems)
            if all(problem.field == "task" and OTHER_TASK in problem.message for problem in problems):
                others = f"{count(total, 'row')} with another task than --task says"
                raise InputError(f"{source}: {others}: leave out --task, which is for rows that name none")
            raise InputError(
                f"{source}: {count(total, 'problem')}; nothing was started (--skip-invalid goes on without them)",
                problems,
            )

    def _add(self, row: Row, content: bytes | None, signature: int) -> None:
        if row.id is None or row.task is None:
            self.skipped += 1
            return
        if row.problems:
            reasons = "; ".join(str(problem) for problem in row.problems[:3])
            self.invalid[len(self.entries)] = ("invalid_stimulus", reasons)
        key = row.task, row.id
        self.entries[key] = UNREAD if content is None else content[:8].hex(), signature
        self.rows.write((row.canonical or row.raw) + b"\n")

    def _known_content(self, task: str, id: str, signature: int) -> bytes | None:
        content, before = self.known.get((task, id), (UNREAD, 0))
        return bytes.fromhex(content) if content != UNREAD and before == signature else None

    def sha256(self) -> str:
        """A hash over rows sorted by id: order and file format do not matter."""
        pairs = (
            hashlib.sha256(id.encode()).digest()[:8] + bytes.fromhex(content)
            for (_, id), (content, _) in self.entries.items()
        )
        return hashlib.sha256(b"".join(sorted(pairs))).hexdigest()


def load_index(folder: Path) -> Index | None:
    """The index of a run folder; None where there is none that can be read."""
    try:
        form, _, entries = (folder / "stimuli.index").read_bytes().partition(b"\n")
        if form != HEAD:
            return None
        return {(task, id): (content, signature) for (task, id), (content, signature) in orjson.loads(entries)}
    except (OSError, ValueError, TypeError):
        return None


def save_index(folder: Path, index: Index) -> None:
    """Write the index of a run to ``stimuli.index`` in its ``folder``, over an older one. Raises StorageError."""
    with replacing(folder / "stimuli.index") as file:
        file.write(HEAD + b"\n" + orjson.dumps([*index.items()]))


def carry_over(folder: Path, old: Index, new: Index) -> None:
    """Give stimuli of ``new`` that cannot be read now their entry in ``old``. Raises IdentityError unless ``new`` has
    all others of ``old`` unchanged."""
    problems: list[Problem] = []
    path = str(folder / "stimuli.jsonl")
    for line, (key, (content, signature)) in enumerate(old.items(), start=1):
        now = new.get(key)
        if now is None or (UNREAD not in (content, now[0]) and content != now[0]):
            what = "is missing from the set" if now is None else "has changed since the run began"
            problems.append(Problem(path, line, key[1], what))
        elif now[0] == UNREAD:
            new[key] = content, signature
    if problems:
        changed = count(len(problems), "stimulus", "stimuli")
        raise IdentityError(f"{folder} was made from another set ({changed}); choose another --out", problems[:NAMED])
