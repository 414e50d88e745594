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
from agents.stimuli import SHORT
from serving.files.atomic_files import lock, writing
from serving.runs.run import PERSON, Run, refuse_other_folder
from serving.runs.run_json import changed_code, difference, new_run_json, read_run_json, take_code
from serving.sets.checking import CheckedSet, check_set
from serving.sets.kinds import tasks_asked
from serving.sets.set_rows import Choose, only, own_ids


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
    tasks: Sequence[str] = (),
    choose: Choose | None = None,
    seed: int | None,
    samples: int,
    described: Mapping[str, dict[str, Any]],
    skip_invalid: bool = False,
    accept_changed_code: bool = False,
) -> PreparedRun:
    """Check the set ``source``; make or continue the run folder, which the caller has locked. ``tasks`` are those that
    are asked of rows that name none; ``choose`` picks among them. Raises InputError with every problem of the set,
    IdentityError if the folder was made from something else, StorageError."""
    meta = _load_meta(folder)
    before: list[str] = []
    agents_before: dict[str, Any] = {}
    if meta is not None:
        if not meta["set"]:
            raise InputError(f"{folder} holds what a server kept, and no set; choose another folder")
        _same_seed_and_agents(folder, meta, seed, described, accept_changed_code)
        before = meta["set"].get("tasks", [])
        agents_before = meta["agents"]
        described = _with_earlier_tasks(folder, described, agents_before)
    # A single task is that of the whole table. Of a folder, and with several, the run's other tasks are asked, too.
    task = tasks[0] if len(tasks) == 1 and not source.is_dir() else None
    asked = _PictureTasks(folder, before, agents_before, {**agents_before, **described}, choose)
    earlier = None if meta is None else meta["set"]
    stimuli = check_set(source, folder, task=task, choose=asked, skip_invalid=skip_invalid, earlier=earlier)
    if meta is None:
        meta = new_run_json(secrets.token_hex(6), seed or 0, samples)
    meta["set"] = {
        "source": str(source),
        "root": str(stimuli.root),
        "count": len(stimuli.kinds),
        "sha256": stimuli.sha256,
    }
    if asked.all:
        meta["set"]["tasks"] = asked.all
    for name, entry in described.items():
        kept = meta["agents"].get(name)
        if kept is None or not _has_begun(folder, name):
            kept = meta["agents"][name] = {**entry, "samples": samples}
        kept["task"] = entry["task"]
        take_code(kept, entry)
        kept["samples"] = max(samples, kept.get("samples", 1))
    meta["samples"] = max(samples, meta["samples"])
    run = Run(folder, meta)
    run.save()
    return PreparedRun(run, stimuli)


def _with_earlier_tasks(
    folder: Path, described: Mapping[str, dict[str, Any]], before: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The agents' entries, each also with the tasks that it has answered in the run already."""
    entries = {}
    for name, entry in described.items():
        tasks = [*entry["task"]]
        if name in before and _has_begun(folder, name):
            tasks = [*before[name]["task"], *(task for task in tasks if task not in before[name]["task"])]
        entries[name] = {**entry, "task": tasks}
    return entries


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


def new_people_run(folder: Path, source: Path, task: str) -> Run:
    """Make a run folder for people's answers to the set ``source``, without agents.

    ``task`` is what people were asked about rows that name no task: pictures of a folder, words of a list. Without it
    nobody could know whether a picture was shown for its colour or for its caption. Raises as :func:`prepare_run`.
    """
    (folder / "records").mkdir(parents=True)
    with lock(folder):
        run = prepare_run(folder, source, choose=only(task), seed=0, samples=0, described={}).run
    (folder / "lock").unlink()
    return run


class _PictureTasks:
    """Chooses the tasks of pictures that name none: the run's own, and those that ``choose`` adds. ``all`` has each."""

    def __init__(
        self,
        folder: Path,
        tasks_before: Sequence[str],
        agents_before: Mapping[str, dict[str, Any]],
        agents: Mapping[str, dict[str, Any]],
        choose: Choose | None,
    ) -> None:
        self.all: list[str] = []
        self._folder = folder
        self._before = tasks_before
        self._by_agent_before = {name: tasks_asked(entry) for name, entry in agents_before.items()}
        self._by_agent = {name: tasks_asked(entry) for name, entry in agents.items()}
        self._choose = choose
        self._chosen: dict[Sequence[str], dict[str, bool]] = {}

    def __call__(self, tasks: Sequence[str]) -> Mapping[str, bool]:
        if tasks not in self._chosen:
            before = [task for task in self._before if task in tasks]
            more = () if self._choose is None else self._choose(tasks)
            self._chosen[tasks] = own_ids([*dict.fromkeys([*before, *more])], self._by_agent)
            self.all = [*dict.fromkeys([*self.all, *self._chosen[tasks]])]
            self._refuse_other_ids(before, self._chosen[tasks])
        return self._chosen[tasks]

    def _refuse_other_ids(self, before: Sequence[str], now: Mapping[str, bool]) -> None:
        """Refuse an agent of several tasks where a picture's rows have one id until now, since there are records."""
        earlier = own_ids(before, self._by_agent_before)
        if all(now[task] == has_own_id for task, has_own_id in earlier.items()):
            return
        problems = []
        example = ""
        for name, tasks in self._by_agent.items():
            several = [task for task in now if task in tasks]
            if len(several) > 1:
                problems.append(Problem("agents", None, name, f"would answer {' and '.join(several)}"))
                example = example or next(short for short, task in SHORT.items() if task == several[0])
        raise InputError(
            f"in {self._folder} each agent answers one task about a picture. Give an agent of several tasks one of "
            f"them by its name and =, such as AGENT={example}, or choose another folder (--out)",
            problems,
        )


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
