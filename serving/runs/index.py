"""The index of a run's stimuli: 25 bytes a row, beside ``stimuli.jsonl``.

Hashes of the id, of the content (canonical row and image bytes) and of the image files' size and time: with them a
resumed run sees what has changed without reading any image again. And each row's kind, so that no row needs to be
decoded to know who answers it.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from agents.errors import IdentityError, InputError, Problem
from serving.runs.atomic_files import replacing
from serving.runs.checking import check_set
from serving.runs.eligibility import Kind, kind_of
from serving.runs.positions import Keys, Positions, first_of_each, task_key
from serving.runs.schemas import INDEX
from serving.runs.set_rows import Row

NAMED = 10  # how many changed stimuli a message names
TOLD = 10_000  # invalid rows whose reasons are kept
UNTOLD = ("invalid_stimulus", "the set has too many problems to tell each: see `turinglike check`")
Reasons = dict[int, tuple[str, str]]  # position in stimuli.jsonl -> why the row is invalid: (code, message)


@dataclass(slots=True)
class Index:
    """Per stimulus, in the order of ``stimuli.jsonl``: hashes of the id, of the content (0 where the row or an image
    could not be read) and of the image files' size and time (0 without images), 64 bits each; and the kind's place in
    ``kinds``."""

    key: Keys
    content: Keys
    signature: Keys
    kind: NDArray[np.uint8]
    kinds: list[Kind]

    @property
    def task_and_id(self) -> Keys:
        """The key of each stimulus's task and id together: no two stimuli of a set share it."""
        of_kind = np.array([task_key(task) for task, _ in self.kinds], dtype=np.uint64)
        return self.key ^ of_kind[self.kind]

    def count_kinds(self, limit: int | None = None) -> Counter[Kind]:
        """How many of the first ``limit`` stimuli are of each kind."""
        numbers = np.bincount(self.kind[:limit], minlength=len(self.kinds)).tolist()
        return Counter({kind: number for kind, number in zip(self.kinds, numbers, strict=True) if number})

    def of_kinds(self, chosen: Callable[[Kind], bool]) -> NDArray[np.bool_]:
        """Which stimuli are of a chosen kind."""
        return np.isin(self.kind, [at for at, kind in enumerate(self.kinds) if chosen(kind)])

    @property
    def sha256(self) -> str:
        """The set's hash: over its rows sorted by id, so that neither order nor file format matters."""
        order = np.lexsort((self.content, self.key)).astype(np.int32)
        digest = hashlib.sha256()
        for start in range(0, len(order), 65536):
            rows = order[start : start + 65536]
            digest.update(np.column_stack([self.key[rows], self.content[rows]]).astype(">u8").tobytes())
        return digest.hexdigest()

    def save(self, path: Path, source: Path) -> None:
        """Write beside ``source`` (stimuli.jsonl), whose size tells whether the two belong together."""
        with replacing(path) as file:
            file.write(INDEX + orjson.dumps([len(self.key), source.stat().st_size, self.kinds]) + b"\n")
            for part in (self.key, self.content, self.signature, self.kind):
                file.write(part.tobytes())

    @classmethod
    def load(cls, path: Path, source: Path) -> Index | None:
        """The index of ``source``, or None if there is none that belongs to it."""
        try:
            with path.open("rb") as file:
                if file.readline() != INDEX:
                    return None
                count, size, kinds = orjson.loads(file.readline())
                if size != source.stat().st_size:
                    return None
                hashes = np.fromfile(file, dtype=np.uint64, count=3 * count).reshape(3, count)
                kind = np.fromfile(file, dtype=np.uint8, count=count)
                if len(kind) != count or kind.max(initial=0) >= len(kinds):
                    return None
                return cls(hashes[0], hashes[1], hashes[2], kind, [(task, mode) for task, mode in kinds])
        except (OSError, ValueError, TypeError):
            return None

    def carry_over(self, folder: Path, old: Index) -> None:
        """See that this set, which is about to take the place of ``old`` in ``folder``, holds every row of it
        unchanged. Raises IdentityError for missing or changed stimuli.

        A row that cannot be read now keeps what is known of it: it must be the same when it can be read again.
        """
        position = Positions(self.task_and_id).find(old.task_and_id)
        missing = position < 0
        content = self.content[position]
        changed = ~missing & (old.content != 0) & (content != 0) & (content != old.content)
        if missing.any() or changed.any():
            raise IdentityError(
                f"{folder} was made from another set; choose another --out", _name_changes(folder, missing, changed)
            )
        unread = content == 0
        self.content[position[unread]] = old.content[unread]
        self.signature[position[unread]] = old.signature[unread]


class Builder:
    """Collects index and rows while the set is checked. ``skipped`` rows have no readable id or task."""

    def __init__(self, rows: BinaryIO, known: Index | None) -> None:
        self.rows = rows
        self.key, self.content, self.signature, self.kind = array("Q"), array("Q"), array("Q"), array("B")
        self.kinds: dict[Kind, int] = {}
        self.invalid: Reasons = {}
        self.skipped = 0
        self._known = known
        self._positions = None if known is None else Positions(known.task_and_id)

    def add(self, row: Row, content: bytes | None, signature: int) -> None:
        """Take one row, in file order."""
        if row.id is None or row.task is None:
            self.skipped += 1
            return
        if row.problems:
            why = "; ".join(str(one) for one in row.problems[:3])
            self.invalid[len(self.key)] = ("invalid_stimulus", why) if len(self.invalid) < TOLD else UNTOLD
        self.key.append(row.key)
        self.content.append(0 if content is None else int.from_bytes(content[:8], "big") or 1)
        self.signature.append(signature)
        line = row.canonical or row.raw
        plain = row.canonical is not None and row.task not in ("attention_prediction", "conversation", "judgement")
        kind = (row.task, None) if plain else kind_of(orjson.loads(line))
        self.kind.append(self.kinds.setdefault(kind, len(self.kinds)))
        self.rows.write(line + b"\n")

    def known(self, key: int, signature: int) -> bytes | None:
        """The content digest of a row whose files have the same size and time as when they were last read."""
        index = self._known
        if index is None or self._positions is None or not signature:
            return None
        [found] = self._positions.find([key])
        if found < 0 or int(index.signature[found]) != signature or not index.content[found]:
            return None
        return int(index.content[found]).to_bytes(8, "big")

    def index(self) -> Index:
        """The index of the rows so far; the builder takes no more."""
        self._known = self._positions = None
        key, content, signature = (
            np.frombuffer(part, dtype=np.uint64) for part in (self.key, self.content, self.signature)
        )
        return Index(key, content, signature, np.frombuffer(self.kind, dtype=np.uint8), list(self.kinds))


def without_repeats(path: Path, repeating: Builder) -> Builder:
    """Leave out every row whose id stands in an earlier one: it could not have a record of its own."""
    keep = first_of_each(repeating.key)
    with replacing(path) as rows, path.open("rb") as before:
        builder = Builder(rows, None)
        builder.skipped = repeating.skipped + int((~keep).sum())
        builder.kinds = repeating.kinds
        for at in np.flatnonzero(keep).tolist():
            if at in repeating.invalid:
                builder.invalid[len(builder.key)] = repeating.invalid[at]
            for name in ("key", "content", "signature", "kind"):
                getattr(builder, name).append(getattr(repeating, name)[at])
        rows.writelines(compress(before, keep))
    return builder


def rebuild(folder: Path, root: Path) -> Index:
    """The index of a folder that has lost it, from its rows and the images where they were. Raises InputError."""
    source = folder / "stimuli.jsonl"
    with Path(os.devnull).open("wb") as nowhere:
        builder = Builder(nowhere, None)
        found = check_set(source, root=root, hash_images=True, on_row=builder.add)
    if builder.skipped:
        raise InputError(
            f"{source} is damaged, and the set that is given is not the one that the run was made from: "
            "give that one, or choose another --out",
            found.problems,
        )
    return builder.index()


def _name_changes(folder: Path, missing: NDArray[np.bool_], changed: NDArray[np.bool_]) -> list[Problem]:
    """One problem for each of the first few stimuli that are missing or changed, and how many more there are."""
    problems: list[Problem] = []
    total = int(missing.sum() + changed.sum())
    with (folder / "stimuli.jsonl").open("rb") as rows:
        for at, line in enumerate(rows):
            if missing[at] or changed[at]:
                what = "is missing from the set" if missing[at] else "has changed since the run began"
                name = orjson.loads(line).get("id")
                problems.append(Problem(str(folder / "stimuli.jsonl"), at + 1, name, what))
                if len(problems) == NAMED:
                    break
    if total > len(problems):
        problems.append(Problem(str(folder / "stimuli.jsonl"), None, None, f"and {total - len(problems)} more"))
    return problems
