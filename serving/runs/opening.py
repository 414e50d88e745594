"""Making and continuing run folders: of a set, of a server, of people's answers.

A folder is continued only by what made it: the same set, seed and agents. Otherwise one folder would hold answers that
are not comparable, and nobody would see it. What differs is named, and the user chooses another folder.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from agents.errors import IdentityError, InputError, Problem
from serving.files.atomic_files import lock, writing
from serving.runs.run import PERSON, Run, refuse_other_folder
from serving.runs.run_json import changed_code, difference, new_run_json, read_run_json, take_code
from serving.sets.checking import CheckedSet, check_set
from serving.sets.set_rows import Choose


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


class PreparedRun(NamedTuple):
    """A run folder that is ready for the answers to a set."""

    run: Run
    """The folder, with its ``run.json``."""
    stimuli: CheckedSet
    """The set, whose rows are in the folder."""


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
) -> PreparedRun:
    """Check the set ``source``; make or continue the run folder, which the caller has locked. Raises InputError with
    every problem of the set, IdentityError if the folder was made from something else, StorageError."""
    meta = _load_meta(folder)
    before = []
    agents = dict(described)
    if meta is not None:
        if not meta["set"]:
            raise InputError(f"{folder} holds what a server kept, and no set; choose another folder")
        _same_seed_and_agents(folder, meta, seed, described, accept_changed_code)
        before = meta["set"].get("tasks", [])
        agents = {**meta["agents"], **described}
    if task is not None and source.is_dir():
        choose = _always(task)  # beside it the run's other tasks are asked
        task = None
    tasks = _PictureTasks(before, agents, choose)
    earlier = None if meta is None else meta["set"]
    stimuli = check_set(source, folder, task=task, choose=tasks, skip_invalid=skip_invalid, earlier=earlier)
    if meta is None:
        meta = new_run_json(secrets.token_hex(6), seed or 0, samples)
    meta["set"] = {
        "source": str(source),
        "root": str(stimuli.root),
        "count": len(stimuli.kinds),
        "sha256": stimuli.sha256,
    }
    if tasks.all:
        meta["set"]["tasks"] = tasks.all
    for name, entry in described.items():
        kept = meta["agents"].get(name)
        if kept is None or not _has_begun(folder, name):
            kept = meta["agents"][name] = {**entry, "samples": samples}
        take_code(kept, entry)
        kept["samples"] = max(samples, kept.get("samples", 1))
    meta["samples"] = max(samples, meta["samples"])
    run = Run(folder, meta)
    run.save()
    return PreparedRun(run, stimuli)


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
    """Make a run folder for people's answers to the set ``source``, without agents. Raises as :func:`prepare_run`."""
    (folder / "records").mkdir(parents=True)
    with lock(folder):
        run = prepare_run(folder, source, task=None, seed=0, samples=0, described={}).run
    (folder / "lock").unlink()
    return run


def _always(task: str) -> Choose:
    """A choice of tasks for a picture that is always ``task``."""
    return lambda tasks: [task]


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
                problems = [Problem("agents", None, name, message)]
                raise InputError("in a run an agent has a single task about the same pictures", problems)


def _load_meta(folder: Path) -> dict[str, Any] | None:
    if not (folder / "run.json").exists():
        orphans = [file.name for file in sorted((folder / "records").glob("*.jsonl")) if file.stat().st_size]
        if orphans:
            raise InputError(
                f"{folder} has records ({', '.join(orphans[:3])}) but no run.json that says what made them; "
                "choose another folder"
            )
        return None
    meta = read_run_json(folder)
    return None if meta.get("imports_only") else meta  # a folder of imports has no set and no seed yet


def _has_begun(folder: Path, name: str) -> bool:
    names = (name, f"{PERSON}~{name}", f"{name}~{PERSON}")
    files = (folder / part / f"{stem}.jsonl" for part in ("records", "turns") for stem in names)
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
            what = (
                "the file of its class has changed since; accept_changed_code (--accept-changed-code) goes on with it "
                "as it is now"
            )
            problems.append(Problem(where, None, f"agents.{name}", what))
    if problems:
        raise IdentityError(f"{folder} was made from something else; choose another folder", problems)
