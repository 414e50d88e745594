"""Making and continuing run folders, and which answers are in them. ``stimuli.index`` has hashes of each stimulus's
content (canonical row and image bytes) and of its image files' sizes and times."""

from __future__ import annotations

import hashlib
import mmap
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from agents.errors import IdentityError, InputError, Problem
from serving.files.atomic_files import lock, replacing, writing
from serving.files.words import count, shown
from serving.runs.records import problems as problems_of
from serving.runs.records import structural_fault
from serving.runs.run import PERSON, Run, numbered_lines, open_to_read, refuse_other_folder
from serving.runs.run_json import changed_code, difference, is_changed, new_run_json, read_run_json, take_code
from serving.sets.checking import check_rows
from serving.sets.set_rows import Choose, Row
from serving.sets.stimulus_set import read_rows

INDEX = b"turinglike.index/4"
UNREAD = "0" * 16  # in place of a hash of content
NAMED = 10  # changed stimuli that a message names

Key = tuple[str, str]  # task and id
AnswerKey = tuple[int, int]  # position of the stimulus in the set, sample
IndexEntry = tuple[str, int]  # the content's hash, or UNREAD; the hash of the files' sizes and times (0 without images)
Index = dict[Key, IndexEntry]


@contextmanager
def folder_of_run(out: Path, names: Sequence[str]) -> Iterator[None]:
    """Make the folder of agents' and pairs' answers; remove a new one after InputError. Raises StorageError, too."""
    parts = ["records"]
    if any("~" in name for name in names):
        parts.append("turns")
    fresh = not out.exists()
    with writing(f"to {out}"):
        refuse_other_folder(out)
        for part in parts:
            (out / part).mkdir(parents=True, exist_ok=True)
    try:
        yield
    except InputError:
        if fresh:  # nothing was answered: input is found wrong before anything starts
            shutil.rmtree(out)
        raise


def prepare_run(
    folder: Path,
    source: Path,
    *,
    task: str | None,
    choose: Choose | None = None,
    seed: int | None,
    samples: int,
    described: Mapping[str, dict[str, Any]],
    skip_invalid: bool = False,
    accept_changed_code: bool = False,
) -> Run:
    """Check the set ``source``; make or continue the run folder, which the caller has locked. Raises InputError with
    every problem of the set, IdentityError if the folder was made from something else, StorageError."""
    meta = _load_meta(folder)
    old: Index | None = None
    if meta is not None:
        if not meta["set"]:
            raise InputError(f"{folder} holds what a server kept, and no set; choose another --out")
        _same_seed_and_agents(folder, meta, seed, described, accept_changed_code)
        old = _load_index(folder)
    before, agents = (meta["set"].get("tasks", []), meta["agents"]) if meta is not None else ([], {})
    of_folder = [task] if task is not None and source.is_dir() else []  # beside it the run's other tasks are asked
    tasks = _PictureTasks(before, {**agents, **described}, (lambda tasks: of_folder) if of_folder else choose)
    rows = read_rows(source, None if of_folder else task, choose=tasks)
    checked = _Checked(known=old or {})
    try:
        with replacing(folder / "stimuli.new") as checked.rows:
            checked.add_all(rows, str(source), skip_invalid)
        if old is not None:
            _carry_over(folder, old, checked.entries)
        elif meta is not None and checked.sha256() != meta["set"].get("sha256"):
            raise IdentityError(f"{folder} was made from another set, and has no index of it; give the set as it was")
        with writing(f"to {folder}"):
            (folder / "stimuli.new").replace(folder / "stimuli.jsonl")
    finally:
        (folder / "stimuli.new").unlink(missing_ok=True)
    with replacing(folder / "stimuli.index") as file:
        file.write(INDEX + b"\n" + orjson.dumps([*checked.entries.items()]))
    if meta is None:
        meta = new_run_json(secrets.token_hex(6), seed or 0, samples)
    meta["set"] = {
        "source": str(source),
        "root": str(source.resolve() if source.is_dir() else source.resolve().parent),
        "count": len(checked.entries),
        "sha256": checked.sha256(),
        **({"tasks": tasks.all} if tasks.all else {}),
    }
    for name, entry in described.items():
        kept = meta["agents"].get(name)
        if kept is None or not _has_begun(folder, name):
            kept = meta["agents"][name] = {**entry, "samples": samples}
        take_code(kept, entry)
        kept["samples"] = max(samples, kept.get("samples", 1))
    meta["samples"] = max(samples, meta["samples"])
    run = Run(folder, meta)
    run.invalid = checked.invalid
    run.skipped = checked.skipped
    run.save()
    return run


def open_served(
    folder: Path, seed: int, described: Mapping[str, dict[str, Any]], accept_changed_code: bool = False
) -> Run:
    """Make or continue a run that a server records. Raises InputError and IdentityError."""
    meta = _load_meta(folder)
    if meta is None:
        meta = new_run_json(secrets.token_hex(6), seed, 0)
    elif meta["set"]:
        raise InputError(f"{folder} is the run of a set; what a server keeps has a folder of its own")
    else:
        _same_seed_and_agents(folder, meta, seed, described, accept_changed_code)
    for name, entry in described.items():
        before = meta["agents"].get(name, {}) if _has_begun(folder, name) else {}
        codes = {key: before[key] for key in ("code", "earlier_code") if key in before}
        meta["agents"][name] = {**entry, **codes, "samples": 0}
        take_code(meta["agents"][name], entry)
    run = Run(folder, meta)
    run.save()
    return run


def new_people_run(folder: Path, source: Path) -> Run:
    (folder / "records").mkdir(parents=True)
    with lock(folder):
        run = prepare_run(folder, source, task=None, seed=0, samples=0, described={})
    (folder / "lock").unlink()
    return run


class _PictureTasks:
    """Chooses the tasks of pictures that name none: the run's own, and those that ``choose`` adds. ``all`` has each."""

    def __init__(self, before: Sequence[str], agents: Mapping[str, dict[str, Any]], choose: Choose | None) -> None:
        self.all: list[str] = []
        self._before = before
        self._agents = agents
        self._choose = choose
        self._chosen: dict[Sequence[str], list[str]] = {}

    def __call__(self, tasks: Sequence[str]) -> list[str]:
        if tasks not in self._chosen:
            before = [task for task in self._before if task in tasks]
            more = () if self._choose is None else self._choose(tasks)
            self._chosen[tasks] = [*dict.fromkeys([*before, *more])]
            self.all = [*dict.fromkeys([*self.all, *self._chosen[tasks]])]
            self._refuse_two_tasks()
        return self._chosen[tasks]

    def _refuse_two_tasks(self) -> None:
        for name, entry in self._agents.items():
            tasks = [task for task in self.all if task in entry["task"]]
            if len(tasks) > 1:
                message = f"answers {' and '.join(tasks)}; each task needs a run of its own (--task)"
                problems = [Problem("--agents", None, name, message)]
                raise InputError("in a run an agent has a single task about the same pictures", problems)


@dataclass(slots=True)
class _Checked:
    known: Index
    entries: Index = field(default_factory=dict)
    invalid: dict[int, tuple[str, str]] = field(default_factory=dict)
    skipped: int = 0  # rows without a readable id or task, or with an id that stands earlier
    rows: BinaryIO = field(init=False)

    def add_all(self, rows: Iterator[Row], source: str, skip_invalid: bool) -> None:
        result = check_rows(rows, hash_images=True, on_row=self._add, known=self._known_content)
        self.skipped += result.duplicates
        if result.total_problems and not skip_invalid:
            problems = [*dict.fromkeys(result.problems)]  # a picture's are the same in every task
            total = result.total_problems - len(result.problems) + len(problems)
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


def _load_index(folder: Path) -> Index | None:
    try:
        form, _, entries = (folder / "stimuli.index").read_bytes().partition(b"\n")
        if form != INDEX:
            return None
        return {(task, id): (content, signature) for (task, id), (content, signature) in orjson.loads(entries)}
    except (OSError, ValueError, TypeError):
        return None


def _carry_over(folder: Path, old: Index, new: Index) -> None:
    """Raise IdentityError unless ``new`` has all of ``old`` unchanged; unreadable stimuli keep their old entry."""
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


def _load_meta(folder: Path) -> dict[str, Any] | None:
    if not (folder / "run.json").exists():
        orphans = [file.name for file in sorted((folder / "records").glob("*.jsonl")) if file.stat().st_size]
        if orphans:
            raise InputError(
                f"{folder} has records ({', '.join(orphans[:3])}) but no run.json that says what made them; "
                "choose another --out"
            )
        return None
    meta = read_run_json(folder)
    return None if meta.get("imports_only") else meta  # a folder of imports has no set and no seed yet


def _has_begun(folder: Path, name: str) -> bool:
    names = (name, f"{PERSON}~{name}", f"{name}~{PERSON}")
    files = (folder / part / f"{each}.jsonl" for part in ("records", "turns") for each in names)
    return any(path.exists() and path.stat().st_size for path in files)


def _same_seed_and_agents(
    folder: Path,
    meta: dict[str, Any],
    seed: int | None,
    described: Mapping[str, dict[str, Any]],
    accept_changed_code: bool,
) -> None:
    where = str(folder / "run.json")
    problems = []
    if seed is not None and seed != meta["seed"]:
        problems.append(Problem(where, None, "seed", f"the run has {meta['seed']}, not {seed}"))
    for name, entry in described.items():
        before = meta["agents"].get(name)
        if before is None or not _has_begun(folder, name):
            continue
        if before["digest"] != entry["digest"]:
            problems.append(Problem(where, None, f"agents.{name}", difference(before, entry)))
        elif changed_code(before, entry) and not accept_changed_code:
            what = "the file of its class has changed since; --accept-changed-code goes on with it as it is now"
            problems.append(Problem(where, None, f"agents.{name}", what))
    if problems:
        raise IdentityError(f"{folder} was made from something else; choose another --out", problems)


@dataclass(frozen=True, slots=True)
class Maker:
    """Whose records a file has; ``known`` has the size and checksum of its first bytes, whose records were checked."""

    name: str
    tasks: Container[str]
    digest: str
    known: Mapping[str, Any] | None = None

    def fault(self, record: Any, *, known: bool) -> str | None:
        """Why a line is no record of this maker, or None."""
        if not known and (wrong := problems_of(record)):
            return f"is not a record: {': '.join(filter(None, (wrong[0].field, wrong[0].message)))}"
        if known and (wrong_form := structural_fault(record)) is not None:
            return wrong_form
        if record["agent"] != self.name or record["task"] not in self.tasks:
            return f"is a record of {shown(record['agent'])} in {shown(record['task'])}: it belongs elsewhere"
        if record["provenance"].get("digest") != self.digest:
            return "was made with other settings than run.json says; choose another --out"
        return None


class ResumeState:
    """``status`` and failure ``codes`` by (position of the stimulus, sample)."""

    def __init__(self, samples: int) -> None:
        self.status: dict[AnswerKey, str] = {}
        self.codes: dict[AnswerKey, str] = {}
        self._samples = samples
        self._places: list[int] = []  # of each line its key's place in the set's order; -1 for a key of no stimulus

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
        return all(place == -1 or -1 < before < place for before, place in pairwise(self._places))

    def tidy(self, path: Path) -> None:
        """Put the last line of each key in order, unless other lines are there. Raises StorageError."""
        if not self._places:
            return
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            starts = [0, *accumulate(len(line) for line in file)]
            if len(starts) != len(self._places) + 1:
                return
            last = {place: line for line, place in enumerate(self._places)}
            others = [line for line, place in enumerate(self._places) if place == -1]
            last.pop(-1, None)
            with replacing(path) as out:
                for line in [*(last[place] for place in sorted(last)), *others]:
                    out.write(content[starts[line] : starts[line + 1]])
