"""The index of a run's stimuli: 24 bytes a row, beside ``stimuli.jsonl``.

Hashes of the id, of the content (canonical row and image bytes) and of the image files' size and time: with them a
resumed run sees what has changed without reading any image again.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from agents.errors import IdentityError, InputError, Problem
from serving.runs.atomic_files import replacing
from serving.runs.checking import check_set
from serving.runs.stimulus_set import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAMED = 10  # how many changed stimuli a message names
TOLD = 10_000  # invalid rows whose reasons are kept
UNTOLD = ("invalid_stimulus", "the set has too many problems to tell each: see `turinglike check`")
MAGIC = b"turinglike.index/2\n"
Reasons = dict[int, tuple[str, str]]  # place in stimuli.jsonl -> why the row is invalid: (code, message)


@dataclass(slots=True)
class Index:
    """Per stimulus, in the order of ``stimuli.jsonl``: hashes of the id, of the content (0 where the row or an image
    could not be read) and of the image files' size and time (0 without images), 64 bits each."""

    key: NDArray[np.uint64]
    content: NDArray[np.uint64]
    signature: NDArray[np.uint64]

    @property
    def sha256(self) -> str:
        """The set's hash: over its rows sorted by id, so that neither order nor file format matters."""
        import numpy as np

        order = _order(self.key)
        digest = hashlib.sha256()
        for start in range(0, len(order), 65536):
            rows = order[start : start + 65536]
            digest.update(np.column_stack([self.key[rows], self.content[rows]]).astype(">u8").tobytes())
        return digest.hexdigest()

    def save(self, path: Path, source: Path) -> None:
        """Write beside ``source`` (stimuli.jsonl), whose size tells whether the two belong together."""
        with replacing(path) as file:
            file.write(MAGIC + orjson.dumps([len(self.key), source.stat().st_size]) + b"\n")
            for part in (self.key, self.content, self.signature):
                file.write(part.tobytes())

    @classmethod
    def load(cls, path: Path, source: Path) -> Index | None:
        """The index of ``source``, or None if there is none that belongs to it."""
        import numpy as np

        try:
            with path.open("rb") as file:
                if file.readline() != MAGIC:
                    return None
                count, size = orjson.loads(file.readline())
                if size != source.stat().st_size:
                    return None
                words = np.fromfile(file, dtype=np.uint64, count=3 * count)
        except (OSError, ValueError, TypeError):
            return None
        if len(words) != 3 * count:
            return None
        return cls(words[:count], words[count : 2 * count], words[2 * count :])


class Builder:
    """Collects index and rows while the set is checked. ``skipped`` rows have no readable id or task."""

    def __init__(self, rows: BinaryIO, known: Index | None) -> None:
        self.rows = rows
        self.key, self.content, self.signature = array("Q"), array("Q"), array("Q")
        self.invalid: Reasons = {}
        self.skipped = 0
        self._known = known
        self._order: NDArray[np.int32] | None = None

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
        self.rows.write((row.canonical or row.raw) + b"\n")

    def known(self, key: int, signature: int) -> bytes | None:
        """The content digest of a row whose files have the same size and time as when they were last read."""
        import numpy as np

        index = self._known
        if index is None or not len(index.key) or not signature:
            return None
        if self._order is None:
            self._order = _order(index.key)
        place = int(np.searchsorted(index.key, np.uint64(key), sorter=self._order))
        if place == len(self._order):
            return None
        found = self._order[place]
        if int(index.key[found]) != key or int(index.signature[found]) != signature or not index.content[found]:
            return None
        return int(index.content[found]).to_bytes(8, "big")

    def index(self) -> Index:
        """The index of the rows so far; the builder takes no more."""
        import numpy as np

        self._order = self._known = None
        return Index(*(np.frombuffer(part, dtype=np.uint64) for part in (self.key, self.content, self.signature)))


def _order(keys: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The places that sort ``keys``."""
    import numpy as np

    return np.argsort(keys, kind="stable").astype(np.int32)


def without_repeats(path: Path, repeating: Builder) -> Builder:
    """Leave out every row whose id stands in an earlier one: it could not have a record of its own."""
    import numpy as np

    _, firsts = np.unique(np.frombuffer(repeating.key, dtype=np.uint64), return_index=True)
    keep = np.zeros(len(repeating.key), dtype=bool)
    keep[firsts] = True
    with replacing(path) as rows, path.open("rb") as before:
        builder = Builder(rows, None)
        builder.skipped = repeating.skipped + int((~keep).sum())
        for at, line in enumerate(before):
            if keep[at]:
                if at in repeating.invalid:
                    builder.invalid[len(builder.key)] = repeating.invalid[at]
                builder.key.append(repeating.key[at])
                builder.content.append(repeating.content[at])
                builder.signature.append(repeating.signature[at])
                rows.write(line)
    return builder


def rebuild(folder: Path, root: Path) -> Index:
    """The index of a folder that has lost it, from its rows and the images where they were. Raises InputError."""
    source = folder / "stimuli.jsonl"
    with source.open("rb") as rows:
        for number, line in enumerate(rows, start=1):
            try:
                readable = isinstance(orjson.loads(line).get("id"), str) and line.endswith(b"\n")
            except (orjson.JSONDecodeError, AttributeError):
                readable = False
            if not readable:
                raise InputError(
                    f"{source}:{number} is damaged, and the set that is given is not the one that the run was made "
                    "from: give that one, or choose another --out"
                )
    with Path(os.devnull).open("wb") as nowhere:
        builder = Builder(nowhere, None)
        check_set(source, root=root, hash_images=True, on_row=builder.add)
    return builder.index()


def merge(folder: Path, old: Index, new: Index, invalid: Reasons) -> tuple[Index, Reasons]:
    """Keep the old rows' places, add new rows at the end. Raises IdentityError for missing or changed stimuli.

    A row that cannot be read now keeps what is known of it: it must be the same when it can be read again.
    """
    import numpy as np

    if np.array_equal(old.key, new.key):
        found: Any = slice(None)
        missing = np.zeros(len(old.key), dtype=bool)
        place: NDArray[np.int32] | None = None
        fresh = missing
    else:
        found, missing, place, fresh = _match(old, new)
    content = new.content[found]
    changed = ~missing & (old.content != 0) & (content != 0) & (content != old.content)
    if missing.any() or changed.any():
        raise IdentityError(
            f"{folder} was made from another set; choose another --out", _name_changes(folder, missing, changed)
        )
    mended = np.flatnonzero((old.content == 0) & (content != 0))
    if len(mended) or fresh.any():
        _merge_rows(folder, mended, fresh, place)
    index = Index(
        np.concatenate([old.key, new.key[fresh]]),
        np.concatenate([np.where(content != 0, content, old.content), new.content[fresh]]),
        np.concatenate([np.where(content != 0, new.signature[found], old.signature), new.signature[fresh]]),
    )
    return index, invalid if place is None else {int(place[at]): reason for at, reason in invalid.items()}


def _match(old: Index, new: Index) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.int32], NDArray[np.bool_]]:
    """(place in ``new`` of each old row, which old rows are missing, place in the merged set of each new row, which
    new rows are fresh)."""
    import numpy as np

    order = _order(new.key)
    at = np.searchsorted(new.key, old.key, sorter=order).astype(np.int32)
    at[at == len(order)] = 0
    found = order[at]
    del order, at
    missing = new.key[found] != old.key
    fresh = np.ones(len(new.key), dtype=bool)
    fresh[found[~missing]] = False
    place = np.empty(len(new.key), dtype=np.int32)
    place[found] = np.arange(len(old.key), dtype=np.int32)
    place[fresh] = np.arange(len(old.key), len(old.key) + int(fresh.sum()), dtype=np.int32)
    return found, missing, place, fresh


def _merge_rows(
    folder: Path, mended: NDArray[np.intp], fresh: NDArray[np.bool_], place: NDArray[np.int32] | None
) -> None:
    """Write ``stimuli.jsonl`` anew: old rows in their places, those that can be read now as they are now, then the
    fresh ones."""
    wanted = set(mended.tolist())
    with (folder / "stimuli.new").open("rb") as rows:
        better = {
            at: line
            for number, line in enumerate(rows if wanted else ())
            if (at := number if place is None else int(place[number])) in wanted
        }
        rows.seek(0)
        with replacing(folder / "stimuli.jsonl") as merged:
            with (folder / "stimuli.jsonl").open("rb") as before:
                for number, line in enumerate(before):
                    merged.write(better.get(number, line))
            for number, line in enumerate(rows):
                if fresh[number]:
                    merged.write(line)


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
