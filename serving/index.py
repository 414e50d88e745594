"""The index of a run's stimuli: 32 bytes a row, beside ``stimuli.jsonl``.

Hashes of the id, of the content (canonical row and image bytes) and of the image files' size and time: with them a
resumed run sees what has changed without reading any image again.
"""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from agents.errors import IdentityError, Problem
from serving.checking import check_set
from serving.files import replacing
from serving.stimulus_set import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAMED = 10  # how many changed stimuli a message names
MAGIC = b"understudy.index/1\n"
Reasons = dict[int, tuple[str, str]]  # place in stimuli.jsonl -> why the row is invalid: (code, message)


@dataclass(slots=True)
class Index:
    """Per stimulus, in the order of ``stimuli.jsonl``: hash of the id, content digest (two words, zero where the row
    or an image could not be read), and signature of the image files."""

    key: NDArray[np.uint64]
    content: NDArray[np.uint64]
    signature: NDArray[np.uint64]

    @property
    def sha256(self) -> str:
        """The set's hash: over its rows sorted by id, so that neither order nor file format matters."""
        import numpy as np

        order = np.argsort(self.key, kind="stable")
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
                words = np.fromfile(file, dtype=np.uint64, count=4 * count)
        except (OSError, ValueError):
            return None
        if len(words) != 4 * count:
            return None
        return cls(words[:count], words[count : 3 * count].reshape(count, 2), words[3 * count :])


class Builder:
    """Collects index and rows while the set is checked."""

    def __init__(self, rows: Any, known: Index | None) -> None:
        self.rows = rows
        self.key, self.content, self.signature = array("Q"), array("Q"), array("Q")
        self.invalid: Reasons = {}
        self.skipped = 0
        self._known = known
        self._order: NDArray[np.intp] | None = None

    def add(self, row: Row, content: bytes | None, signature: int) -> None:
        """Take one row, in file order."""
        if row.id is None or row.task is None:
            self.skipped += 1
            return
        if row.problems:
            first = row.problems[0]
            self.invalid[len(self.key)] = (
                "invalid_stimulus",
                "; ".join(str(p) for p in row.problems[:3]) or str(first),
            )
        self.key.append(row.key)
        words = content or bytes(16)
        self.content.append(int.from_bytes(words[:8], "big"))
        self.content.append(int.from_bytes(words[8:16], "big"))
        self.signature.append(signature)
        self.rows.write((row.canonical or row.raw) + b"\n")

    def known(self, key: int, signature: int) -> bytes | None:
        """The content digest of a row whose files have the same size and time as when they were last read."""
        import numpy as np

        index = self._known
        if index is None or not len(index.key) or not signature:
            return None
        if self._order is None:
            self._order = np.argsort(index.key, kind="stable")
        place = int(np.searchsorted(index.key, np.uint64(key), sorter=self._order))
        if place == len(self._order):
            return None
        found = self._order[place]
        if int(index.key[found]) != key or int(index.signature[found]) != signature or not index.content[found].any():
            return None
        return bytes(index.content[found].astype(">u8").tobytes())

    def index(self) -> Index:
        import numpy as np

        content = np.frombuffer(self.content, dtype=np.uint64).reshape(-1, 2)
        return Index(np.frombuffer(self.key, dtype=np.uint64), content, np.frombuffer(self.signature, dtype=np.uint64))


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
                builder.content.extend(repeating.content[2 * at : 2 * at + 2])
                builder.signature.append(repeating.signature[at])
                rows.write(line)
    return builder


def rebuild(folder: Path, root: Path) -> Index:
    """The index of a folder that has lost it, from its rows and the images where they were."""
    with replacing(folder / "stimuli.index.rows") as rows:
        builder = Builder(rows, None)
        check_set(folder / "stimuli.jsonl", root=root, hash_images=True, on_row=builder.add)
    (folder / "stimuli.index.rows").unlink()
    return builder.index()


def merge(folder: Path, old: Index, new: Index, invalid: Reasons) -> tuple[Index, Reasons]:
    """Keep the old rows' places, add new rows at the end. Raises IdentityError for missing or changed stimuli."""
    import numpy as np

    order = np.argsort(new.key, kind="stable")
    place = np.searchsorted(new.key, old.key, sorter=order)
    place[place == len(order)] = 0
    found = order[place] if len(order) else np.zeros(len(old.key), dtype=np.intp)
    missing = new.key[found] != old.key if len(order) else np.ones(len(old.key), dtype=bool)
    both_known = old.content.any(axis=1) & ~missing
    if len(order):
        both_known &= new.content[found].any(axis=1)
        changed = both_known & (new.content[found] != old.content).any(axis=1)
    else:
        changed = np.zeros(len(old.key), dtype=bool)
    if missing.any() or changed.any():
        raise IdentityError(
            f"{folder} was made from another set; choose another --out", _name_changes(folder, missing, changed)
        )
    fresh = np.ones(len(new.key), dtype=bool)
    fresh[found] = False
    with replacing(folder / "stimuli.merged") as merged, (folder / "stimuli.new").open("rb") as rows:
        new_place = np.empty(len(new.key), dtype=np.intp)
        new_place[found] = np.arange(len(old.key))
        new_place[fresh] = len(old.key) + np.arange(int(fresh.sum()))
        replaced = {int(i) for i in np.flatnonzero(~old.content.any(axis=1))}
        kept = {int(new_place[i]): line for i, line in enumerate(rows) if int(new_place[i]) in replaced}
        with (folder / "stimuli.jsonl").open("rb") as before:
            for at, line in enumerate(before):
                merged.write(kept.get(at, line))
        rows.seek(0)
        for at, line in enumerate(rows):
            if fresh[at]:
                merged.write(line)
    (folder / "stimuli.merged").replace(folder / "stimuli.jsonl")
    index = Index(
        np.concatenate([old.key, new.key[fresh]]),
        np.concatenate([new.content[found], new.content[fresh]]),
        np.concatenate([new.signature[found], new.signature[fresh]]),
    )
    return index, {int(new_place[at]): reason for at, reason in invalid.items()}


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
