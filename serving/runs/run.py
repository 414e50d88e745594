"""A run's identity: what a run folder was made from, and whether it may go on with what is given now.

``run.json`` fixes the seed and, per agent, the digest of its settings and checkpoint. The folder keeps the set's rows
(``stimuli.jsonl``) and an index of them (:mod:`serving.runs.index`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agents.catalogue import Entry
from agents.contract import Agent
from agents.errors import IdentityError, InputError, Problem, StorageError
from agents.tasks import MODES
from serving.runs.atomic_files import replacing, sync_folder, write_json
from serving.runs.checking import check_set
from serving.runs.columns import Choose
from serving.runs.display_text import count
from serving.runs.index import Builder, Index, Reasons, rebuild, without_repeats
from serving.runs.run_json import new_run_json, read_run_json
from serving.runs.stimulus_set import is_image_folder

# what a folder may have in which no run has begun yet, or one is just beginning
PERSON = "human"
OURS = frozenset({"lock", "records", "turns", "stimuli.jsonl", "stimuli.index", "stimuli.new"})
LEFTOVER = re.compile(r"\.(stimuli|run|.*\.jsonl).*\.\w{8}")


@dataclass(slots=True)
class Run:
    """An open run folder. ``invalid`` maps positions in ``stimuli.jsonl`` to (code, message)."""

    folder: Path
    meta: dict[str, Any]
    index: Index
    invalid: Reasons = field(default_factory=dict)
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


def digest(members: Sequence[tuple[Entry, Agent[Any]]], pair: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What ``run.json`` keeps of an agent, or of the two of a pair with the settings ``pair``."""
    about = []
    for entry, agent in members:
        checkpoint, revision = agent.checkpoint()
        kinds = set[str](agent.judges or agent.modes)
        settings = agent.settings.model_dump(mode="json")
        identity = {
            "agent": entry.identity,
            "settings": agent.settings.identity(),
            "checkpoint": checkpoint,
            "revision": revision,
        }
        sha256 = hashlib.sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)).hexdigest()
        about.append(
            {
                "task": list(entry.tasks),
                **({} if kinds == set(MODES) else {"modes": sorted(kinds)}),
                "kind": entry.role,
                "digest": sha256,
                "settings": settings,
                "checkpoint": checkpoint,
                "revision": revision,
            }
        )
    if len(about) == 1:
        return about[0]
    parts = [*(one["digest"] for one in about), pair]
    both = hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()
    names = [agent.name for _, agent in members]
    return {
        "task": ["conversation"],
        "kind": "control" if "control" in {one["kind"] for one in about} else "machine",
        "digest": both,
        "settings": pair,
        "checkpoint": None,
        "revision": None,
        "members": dict(zip(names, about, strict=True)),
    }


def open_run(
    folder: Path,
    source: Path,
    *,
    task: str | None,
    choose: Choose | None = None,
    seed: int | None,
    samples: int,
    described: Mapping[str, dict[str, Any]],
    skip_invalid: bool = False,
) -> Run:
    """Check the set (``task`` and ``choose`` as of :func:`serving.runs.stimulus_set.read_rows`), and make or continue
    the run folder, which the caller has locked. What is asked about pictures that name no task is asked beside what the
    run asked about them before.

    Raises InputError with every problem of the set, IdentityError if the folder was made from something else,
    StorageError if it cannot be written.
    """
    _remove_leftovers(folder)
    meta, old = _load_meta(folder), None
    if meta is not None and not meta["set"]:
        raise InputError(f"{folder} holds what a server kept, and no set; choose another --out")
    if meta is not None:
        _same_seed_and_agents(folder, meta, seed, described)
        old = Index.load(folder / "stimuli.index", folder / "stimuli.jsonl")
    asked = _Asked(meta, described, choose)
    if task is not None and is_image_folder(source):
        asked.task, task = task, None
    try:
        builder = _check_into(folder / "stimuli.new", source, task, asked, old, skip_invalid)
        index = builder.index()
        if meta is not None and old is None and index.sha256 != meta["set"].get("sha256"):
            old = rebuild(folder, Path(meta["set"].get("root") or source.parent))
        if old is not None:
            index.carry_over(folder, old)
        # An index must never stand beside rows in another order, whenever the process is killed.
        try:
            (folder / "stimuli.index").unlink(missing_ok=True)
            sync_folder(folder)
            (folder / "stimuli.new").replace(folder / "stimuli.jsonl")
        except OSError as error:
            raise StorageError(f"cannot write to {folder}: {error.strerror}") from error
    finally:
        (folder / "stimuli.new").unlink(missing_ok=True)
    index.save(folder / "stimuli.index", folder / "stimuli.jsonl")
    if meta is None:
        meta = new_run_json(secrets.token_hex(6), seed or 0, samples)
    meta["set"] = {
        "source": str(source),
        "root": str(source.resolve() if source.is_dir() else source.resolve().parent),
        "count": len(index.key),
        "sha256": index.sha256,
        **({"tasks": asked.tasks} if asked.tasks else {}),
    }
    _note_agents(folder, meta, described, samples)
    run = Run(folder, meta, index, builder.invalid, builder.skipped)
    run.save()
    return run


def open_served(folder: Path, seed: int, described: Mapping[str, dict[str, Any]]) -> str:
    """Make or continue the folder of a server that keeps records, which the caller has locked; returns the run's id.

    Raises InputError for the run of a set, IdentityError for another seed, or an agent that has changed.
    """
    _remove_leftovers(folder)
    meta = _load_meta(folder)
    if meta is None:
        meta = new_run_json(secrets.token_hex(6), seed, 0)
    elif meta["set"]:
        raise InputError(f"{folder} is the run of a set; what a server keeps has a folder of its own")
    else:
        _same_seed_and_agents(folder, meta, seed, described)
    for name, about in described.items():
        meta["agents"][name] = {**about, "samples": 0}
    write_json(folder / "run.json", meta)
    return str(meta["run"])


def is_ours(name: str) -> bool:
    """Whether a file in a folder without ``run.json`` is of a run that has not begun."""
    return name in OURS or LEFTOVER.fullmatch(name) is not None


def _remove_leftovers(folder: Path) -> None:
    """Remove what :func:`serving.runs.atomic_files.replacing` could not when its process was killed."""
    for part in (folder, folder / "records"):
        for path in part.glob(".*"):
            if LEFTOVER.fullmatch(path.name):
                path.unlink(missing_ok=True)
    (folder / "stimuli.new").unlink(missing_ok=True)


class _Asked:
    """What is asked of stimuli that name no task and that several tasks may be asked about: what the run asked before,
    and the ``task`` or what ``choose`` says. ``tasks`` are all that were asked."""

    def __init__(
        self, meta: Mapping[str, Any] | None, described: Mapping[str, dict[str, Any]], choose: Choose | None
    ) -> None:
        self.task: str | None = None
        self.tasks: list[str] = []
        self._before: list[str] = [] if meta is None else meta["set"].get("tasks", [])
        self._agents = {**({} if meta is None else meta["agents"]), **described}
        self._choose = choose
        self._known: dict[Sequence[str], list[str]] = {}

    def __call__(self, tasks: Sequence[str]) -> list[str]:
        if tasks not in self._known:
            before = [task for task in self._before if task in tasks]
            more: Sequence[str] = [self.task] if self.task is not None else ()
            if self.task is None and self._choose is not None:
                more = self._choose(tasks)
            self._known[tasks] = [*dict.fromkeys([*before, *more])]
            self.tasks = [*dict.fromkeys([*self.tasks, *self._known[tasks]])]
            _one_task_each(self.tasks, self._agents)
        return self._known[tasks]


def _one_task_each(tasks: Sequence[str], agents: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise InputError for an agent that would answer one picture, which has one id, in two tasks: its answers could
    not be told apart."""
    problems = [
        Problem(
            "--agents", None, name, f"answers {' and '.join(asked)}; ask it one of them in a run of its own (--task)"
        )
        for name, about in agents.items()
        if len(asked := [task for task in tasks if task in about["task"]]) > 1
    ]
    if problems:
        raise InputError("in one run an agent is asked one task about the same pictures", problems)


def _check_into(
    path: Path, source: Path, task: str | None, choose: Choose, old: Index | None, skip_invalid: bool
) -> Builder:
    """Check the set and write its rows to ``path``. Raises InputError for problems that may not be skipped."""
    with replacing(path) as rows:
        builder = Builder(rows, old)
        result = check_set(source, task=task, choose=choose, hash_images=True, on_row=builder.add, known=builder.known)
        if result.total_problems and not skip_invalid:
            problems = [*dict.fromkeys(result.problems)]  # those of a picture are its own, whatever is asked about it
            total = result.total_problems - len(result.problems) + len(problems)
            raise InputError(
                f"{source}: {count(total, 'problem')}; nothing was started (--skip-invalid goes on without them)",
                problems,
            )
    return without_repeats(path, builder) if result.duplicates else builder


def _load_meta(folder: Path) -> dict[str, Any] | None:
    """``run.json``; None for a folder in which no run has begun. Raises InputError if it cannot be trusted."""
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
    """Whether the agent has answered anything in this run, or said anything to a person."""
    names = (name, f"{PERSON}~{name}", f"{name}~{PERSON}")
    files = (folder / kind / f"{each}.jsonl" for kind in ("records", "turns") for each in names)
    return any(path.exists() and path.stat().st_size for path in files)


def _same_seed_and_agents(
    folder: Path, meta: dict[str, Any], seed: int | None, described: Mapping[str, dict[str, Any]]
) -> None:
    where = str(folder / "run.json")
    problems = []
    if seed is not None and seed != meta["seed"]:
        problems.append(Problem(where, None, "seed", f"the run has {meta['seed']}, given is {seed}"))
    for name, about in described.items():
        begun = meta["agents"].get(name)
        if begun is not None and begun["digest"] != about["digest"] and _has_begun(folder, name):
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
    return "; ".join(found) or "another implementation, or a file that its settings name has changed"


def _note_agents(folder: Path, meta: dict[str, Any], described: Mapping[str, dict[str, Any]], samples: int) -> None:
    for name, about in described.items():
        begun = meta["agents"].get(name)
        if begun is None or not _has_begun(folder, name):
            begun = meta["agents"][name] = {**about, "samples": samples}
        begun["samples"] = max(samples, begun.get("samples", 1))
    meta["samples"] = max(samples, meta["samples"])
