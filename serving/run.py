"""A run's identity: what a run folder was made from, and whether it may go on with what is given now.

``run.json`` fixes the seed and, per agent, the digest of its settings and checkpoint. The folder keeps the set's rows
(``stimuli.jsonl``) and, beside them, 32 bytes a row (``stimuli.index``): hashes of the id, of the content (canonical
row and image bytes) and of the image files' size and time, so that a resumed run sees what has changed without
reading any image again.
"""

from __future__ import annotations

import hashlib
import secrets
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

import agents
from agents.catalogue import Entry
from agents.contract import Agent
from agents.errors import IdentityError, InputError, Problem
from serving.checking import CheckResult, check_set
from serving.files import replacing, write_json
from serving.items import now
from serving.stimulus_set import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = "understudy.run/1"
NAMED = 10  # how many changed stimuli a message names
MAGIC = b"understudy.index/1\n"


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


class _Builder:
    """Collects index and rows while the set is checked."""

    def __init__(self, rows: Any, known: Index | None) -> None:
        self.rows = rows
        self.key, self.content, self.signature = array("Q"), array("Q"), array("Q")
        self.invalid: dict[int, tuple[str, str]] = {}
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


@dataclass(slots=True)
class Run:
    """An open run folder. ``invalid`` maps places in ``stimuli.jsonl`` to (code, message)."""

    folder: Path
    meta: dict[str, Any]
    index: Index
    invalid: dict[int, tuple[str, str]] = field(default_factory=dict)
    skipped: int = 0

    @property
    def stimuli(self) -> Path:
        return self.folder / "stimuli.jsonl"

    @property
    def root(self) -> str:
        """The folder that image paths are relative to."""
        return str(self.meta["set"]["root"])

    def records(self, agent: str) -> Path:
        return self.folder / "records" / f"{agent}.jsonl"

    def journal(self, pair: str) -> Path:
        return self.folder / "turns" / f"{pair}.jsonl"

    def rows(self) -> Iterator[bytes]:
        """The set's rows in order, without their newlines."""
        with self.stimuli.open("rb") as file:
            for line in file:
                yield line[:-1]

    def save(self) -> None:
        write_json(self.folder / "run.json", self.meta)


def digest(members: Sequence[tuple[Entry, Agent[Any]]]) -> dict[str, Any]:
    """What ``run.json`` keeps of an agent, or of the two of a pair."""
    about = []
    for entry, agent in members:
        checkpoint, revision = agent.checkpoint()
        settings = agent.settings.model_dump(mode="json")
        identity = {"agent": entry.agent, "settings": settings, "checkpoint": checkpoint, "revision": revision}
        sha256 = hashlib.sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)).hexdigest()
        about.append(
            {
                "task": list(entry.tasks),
                "kind": entry.role,
                "digest": sha256,
                "settings": settings,
                "checkpoint": checkpoint,
                "revision": revision,
            }
        )
    if len(about) == 1:
        return about[0]
    both = hashlib.sha256(orjson.dumps([one["digest"] for one in about])).hexdigest()
    names = [agent.name for _, agent in members]
    return {
        "task": ["conversation"],
        "kind": "control" if "control" in {one["kind"] for one in about} else "machine",
        "digest": both,
        "settings": {},
        "checkpoint": None,
        "revision": None,
        "members": dict(zip(names, about, strict=True)),
    }


def open_run(
    folder: Path,
    source: Path,
    *,
    task: str | None,
    seed: int | None,
    samples: int,
    described: Mapping[str, dict[str, Any]],
    skip_invalid: bool = False,
    progress: Any = None,
) -> tuple[Run, CheckResult | None]:
    """Check the set, make or continue the run folder (which the caller has locked), and return both.

    Raises InputError with every problem of the set, IdentityError if the folder was made from something else.
    The check is left out, and None returned for it, where the very same text has been checked before.
    """
    meta = _load_meta(folder / "run.json")
    old = None
    if meta is not None:
        _same_seed_and_agents(folder, meta, seed, described)
        old = Index.load(folder / "stimuli.index", folder / "stimuli.jsonl")
    before = None if meta is None else meta.get("set", {}).get("file_sha256")
    file_sha256 = _file_sha256(source)
    if meta is not None and old is not None and before is not None and before == [file_sha256, task]:
        _note_agents(meta, described, samples)
        run = Run(folder, meta, old)
        run.save()
        return run, None
    if meta is not None and old is None and (folder / "stimuli.jsonl").exists():
        old = _rebuild(folder, meta)
    try:
        builder, result = _check_into(folder / "stimuli.new", source, task, old, skip_invalid, progress)
        index, invalid = builder.index(), builder.invalid
        if old is None:
            (folder / "stimuli.new").replace(folder / "stimuli.jsonl")
        else:
            index, invalid = _merge(folder, old, index, invalid)
    finally:
        (folder / "stimuli.new").unlink(missing_ok=True)
    index.save(folder / "stimuli.index", folder / "stimuli.jsonl")
    if meta is None:
        meta = {
            "schema": SCHEMA,
            "run": secrets.token_hex(6),
            "created": now(),
            "understudy": agents.__version__,
            "seed": 0 if seed is None else seed,
            "samples": samples,
            "set": {},
            "agents": {},
        }
    # A set with images is looked at again each time, for the images; so is one with problems.
    unchanging = not result.total_problems and not index.signature.any()
    meta["set"] = {
        "source": str(source),
        "root": str(source.resolve() if source.is_dir() else source.resolve().parent),
        "count": len(index.key),
        "sha256": index.sha256,
        "file_sha256": [file_sha256, task] if unchanging and file_sha256 else None,
    }
    _note_agents(meta, described, samples)
    run = Run(folder, meta, index, invalid, builder.skipped)
    run.save()
    return run, result


def _check_into(
    path: Path, source: Path, task: str | None, old: Index | None, skip_invalid: bool, progress: Any
) -> tuple[_Builder, CheckResult]:
    """Check the set and write its rows to ``path``; raises InputError for problems that may not be skipped."""
    with replacing(path) as rows:
        builder = _Builder(rows, old)
        result = check_set(
            source, task=task, hash_images=True, on_row=builder.add, known=builder.known, progress=progress
        )
        if result.total_problems and not skip_invalid:
            raise InputError(
                f"{source}: {result.total_problems} problem{'s' * (result.total_problems > 1)}; nothing was started "
                "(--skip-invalid goes on without them)",
                result.problems,
            )
    return (_without_repeats(path, builder) if result.duplicates else builder), result


def _without_repeats(path: Path, repeating: _Builder) -> _Builder:
    """Leave out every row whose id stands in an earlier one: it could not have a record of its own."""
    import numpy as np

    _, firsts = np.unique(np.frombuffer(repeating.key, dtype=np.uint64), return_index=True)
    keep = np.zeros(len(repeating.key), dtype=bool)
    keep[firsts] = True
    with replacing(path) as rows, path.open("rb") as before:
        builder = _Builder(rows, None)
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


def _load_meta(path: Path) -> dict[str, Any] | None:
    try:
        meta = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path} is damaged ({error}); choose another --out") from None
    if not isinstance(meta, dict) or meta.get("schema") != SCHEMA:
        raise InputError(f"{path} is not of this version ({SCHEMA}); choose another --out")
    # A folder that holds imported answers alone has no set and no seed yet.
    return None if meta.get("imports_only") else meta


def _same_seed_and_agents(
    folder: Path, meta: dict[str, Any], seed: int | None, described: Mapping[str, dict[str, Any]]
) -> None:
    where = str(folder / "run.json")
    problems = []
    if seed is not None and seed != meta["seed"]:
        problems.append(Problem(where, None, "seed", f"the run has {meta['seed']}, given is {seed}"))
    for name, about in described.items():
        begun = meta["agents"].get(name)
        if begun is not None and begun["digest"] != about["digest"]:
            problems.append(Problem(where, None, f"agents.{name}", _difference(begun, about)))
    if problems:
        raise IdentityError(f"{folder} was made from something else; choose another --out", problems)


def _difference(begun: dict[str, Any], about: dict[str, Any]) -> str:
    if "members" in begun:
        parts = [
            f"{name}: {_difference(begun['members'][name], about['members'][name])}"
            for name in begun["members"]
            if begun["members"][name]["digest"] != about["members"][name]["digest"]
        ]
        return "; ".join(parts)
    found = [
        f"{key} was {begun[key]!r}, is {about[key]!r}" for key in ("checkpoint", "revision") if begun[key] != about[key]
    ]
    was, given = begun["settings"], about["settings"]
    found += [
        f"setting {key} was {was.get(key)!r}, is {given.get(key)!r}"
        for key in sorted({*was, *given})
        if was.get(key) != given.get(key)
    ]
    return "; ".join(found) or "another implementation"


def _note_agents(meta: dict[str, Any], described: Mapping[str, dict[str, Any]], samples: int) -> None:
    for name, about in described.items():
        begun = meta["agents"].setdefault(name, {**about, "samples": samples})
        begun["samples"] = max(samples, begun["samples"])
    meta["samples"] = max(samples, meta["samples"])


def _file_sha256(source: Path) -> str | None:
    if not source.is_file():
        return None
    with source.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rebuild(folder: Path, meta: dict[str, Any]) -> Index:
    """The index of a folder that has lost it, from its rows and the images where they were."""
    with replacing(folder / "stimuli.index.rows") as rows:
        builder = _Builder(rows, None)
        check_set(folder / "stimuli.jsonl", root=Path(meta["set"]["root"]), hash_images=True, on_row=builder.add)
    (folder / "stimuli.index.rows").unlink()
    return builder.index()


def _merge(
    folder: Path, old: Index, new: Index, invalid: dict[int, tuple[str, str]]
) -> tuple[Index, dict[int, tuple[str, str]]]:
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
