"""What a run folder holds: how far each agent is, what failed and why, what was rejected and for what."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from agents.errors import printable
from serving.runs.display_text import count
from serving.runs.eligibility import Kind, is_asked, kind_of
from serving.runs.positions import Positions, joint_key
from serving.runs.reader import Damage, RunFolder
from serving.runs.run_json import is_changed

SHOWN = 200  # characters of a message or of a rejected text
SHORTEST = 2.0  # seconds between the first and the last record before they say anything of a rate
STATUSES = ("ok", "rejected", "failed")


def status(path: Path | str) -> dict[str, Any]:
    """Count a run folder's records. Raises InputError if ``path`` is not a run folder.

    The keys of the result are ``path, run, seed, samples, created, turinglike, stimuli, agents, answered_by_all,
    answered_by_none, imports, complete``. For an agent:

    - ``ok``, ``rejected``, ``failed``: its records of each status; the last of a key counts.
    - ``unanswered``: keys (stimulus of its tasks, sample) of the run without a record; ``outside`` counts records of
      no such key (none, where a folder has no set, as a server's has not).
    - ``attempts_per_answer``: attempts made, rejected ones included, over records. (In a conversation the rejected
      attempts at its turns count, its accepted turns together count as one.)
    - ``rate``: records per second between the first and the last record's time, pauses included; None if that is less
      than two seconds.
    - ``failures``: by code, most frequent first, with the first example. ``rejections``: by filter, in how
      many records (``answers``) it rejected how many attempts (``count``), with the first example.
    - ``damaged``: lines that are not records, and the first of them, or None. ``changed``: whether the file is not what
      the run wrote, by its checksum in ``run.json``.

    ``answered_by_all`` counts for each task the stimuli for which every agent of that task has an ok answer in every
    sample (an agent that is asked one mode of attention prediction alone has none in the other).
    ``answered_by_none`` counts the stimuli of tasks that no agent of the run has.
    ``complete`` says that nothing failed, is unanswered, damaged or changed.
    """
    folder = RunFolder(path)
    meta = folder.meta
    stimuli = _Stimuli.read(folder)
    agents: dict[str, Any] = {}
    complete: dict[str, dict[str, NDArray[np.bool_]]] = {}  # task -> agent -> stimuli ok in every sample
    recorded = folder.agents()
    for name in dict.fromkeys([*meta["agents"], *recorded]):
        entry = meta["agents"].get(name, {})
        samples: int = entry.get("samples", meta["samples"])
        eligible = stimuli.of_agent(entry)
        tally = _Tally()
        if name in recorded:
            tally.add(folder.latest(name, tally.damage))
        within, full = tally.coverage(stimuli, eligible, samples)
        expected = samples * int(eligible.sum())
        agents[name] = {
            "kind": entry.get("kind"),
            "task": entry.get("task", []),
            **tally.report(),
            "expected": expected,
            "unanswered": expected - within,
            "outside": tally.statuses.total() - within if folder.has_stimuli() else 0,
            "changed": is_changed(folder.records_path(name), entry.get("records")),
        }
        for task in stimuli.tasks_among(eligible):
            complete.setdefault(task, {})[name] = full & stimuli.of_task(task)
    imports = {name: _imported(folder, name) for name in folder.imports()}
    counts = {task: int(stimuli.of_task(task).sum()) for task in stimuli.tasks()}
    return {
        "path": str(folder.path),
        "run": meta["run"],
        "seed": meta["seed"],
        "samples": meta["samples"],
        "created": meta.get("created"),
        "turinglike": meta.get("turinglike"),
        "stimuli": counts,
        "agents": agents,
        "answered_by_all": {
            task: {"agents": list(by_agent), "stimuli": int(np.logical_and.reduce(list(by_agent.values())).sum())}
            for task, by_agent in complete.items()
        },
        "answered_by_none": {task: number for task, number in counts.items() if task not in complete},
        "imports": imports,
        "complete": not any(agent["failed"] or agent["unanswered"] or agent["changed"] for agent in agents.values())
        and not any(item["damaged"] for item in [*agents.values(), *imports.values()]),
    }


def print_status(path: Path | str, json: bool = False) -> int:
    """Print :func:`status` for a person, or as JSON. Returns 0, or 1 if a file is damaged or changed."""
    found = status(path)
    if json:
        sys.stdout.write(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())
    else:
        _print(found)
    files = [*found["agents"].values(), *found["imports"].values()]
    return 1 if any(file["damaged"] or file.get("changed") for file in files) else 0


@dataclass(slots=True)
class _Stimuli:
    """The stimuli of a set by position: the key of (task, id), and the kind as an index into ``kinds``. A row that
    was so invalid that it has neither task nor id is left out."""

    positions: Positions
    kind: NDArray[np.uint16]
    kinds: list[Kind]

    @classmethod
    def read(cls, folder: RunFolder) -> _Stimuli:
        keys, kind, kinds = array("Q"), array("H"), dict[Kind, int]()
        for _, row in folder.stimuli():
            task, name = row.get("task"), row.get("id")
            if isinstance(task, str) and isinstance(name, str):
                keys.append(joint_key(task, name))
                kind.append(kinds.setdefault(kind_of(row), len(kinds)))
        return cls(Positions(keys), np.array(kind, dtype=np.uint16), list(kinds))

    def tasks(self) -> list[str]:
        """The tasks of the set, in the order in which they come."""
        return list(dict.fromkeys(task for task, _ in self.kinds))

    def of_task(self, task: str) -> NDArray[np.bool_]:
        """Which stimuli are of a task."""
        return np.isin(self.kind, [at for at, kind in enumerate(self.kinds) if kind[0] == task])

    def of_agent(self, entry: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Which stimuli the agent of an entry of ``run.json`` is asked."""
        return np.isin(self.kind, [at for at, kind in enumerate(self.kinds) if is_asked(entry, kind)])

    def tasks_among(self, chosen: NDArray[np.bool_]) -> list[str]:
        """The tasks of the chosen stimuli."""
        return [task for task in self.tasks() if (self.of_task(task) & chosen).any()]


@dataclass(slots=True)
class _Tally:
    """Counts over one agent's records. Memory: 17 bytes per record."""

    statuses: Counter[str] = field(default_factory=Counter)
    rejected_attempts: int = 0
    all_rejected: int = 0  # records that have no further attempt beside the rejected ones
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)
    rejections: dict[str, dict[str, Any]] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None
    keys: array[int] = field(default_factory=lambda: array("Q"))
    samples: array[int] = field(default_factory=lambda: array("q"))
    ok: bytearray = field(default_factory=bytearray)
    damage: Damage = field(default_factory=Damage)

    def add(self, records: Iterable[dict[str, Any]]) -> None:
        """Count records, of which no two have one key."""
        for record in records:
            self.statuses[record["status"]] += 1
            self.keys.append(joint_key(record["task"], record["stimulus"]))
            self.samples.append(record["sample"])
            self.ok.append(record["status"] == "ok")
            created = record["created"]
            if isinstance(created, str):
                self.first = min(self.first or created, created)
                self.last = max(self.last or created, created)
            if record["status"] == "failed":
                self._failure(record)
            if record["attempts"]:
                self._rejections(record)

    def _failure(self, record: dict[str, Any]) -> None:
        message = str(record["error"].get("message"))[:SHOWN]
        example = {"stimulus": record["stimulus"], "sample": record["sample"], "message": message}
        entry = self.failures.setdefault(record["error"]["code"], {"count": 0, "example": example})
        entry["count"] += 1

    def _rejections(self, record: dict[str, Any]) -> None:
        """Count rejected attempts. An attempt may also stand there because a filter noted something and let it be."""
        before = self.rejected_attempts
        here: set[str] = set()
        for attempt in record["attempts"]:
            verdicts = [verdict for verdict in attempt["verdicts"] if verdict["rejected"]]
            self.rejected_attempts += bool(verdicts)
            for verdict in verdicts:
                example = {
                    "stimulus": record["stimulus"],
                    "text": _said(attempt)[:SHOWN],
                    "found": str(verdict["found"])[:SHOWN],
                }
                entry = self.rejections.setdefault(verdict["filter"], {"count": 0, "answers": 0, "example": example})
                entry["count"] += 1
                entry["answers"] += verdict["filter"] not in here
                here.add(verdict["filter"])
        if record["status"] == "rejected":
            self.all_rejected += self.rejected_attempts > before

    def coverage(self, stimuli: _Stimuli, eligible: NDArray[np.bool_], samples: int) -> tuple[int, NDArray[np.bool_]]:
        """How many records are of eligible stimuli and below ``samples``, and which of those stimuli are ok in every
        sample."""
        at = stimuli.positions.find(self.keys)
        within = (at >= 0) & (np.asarray(self.samples) < samples)
        within[within] = eligible[at[within]]
        answered = at[within & np.frombuffer(self.ok, dtype=bool)]
        full = eligible & (np.bincount(answered, minlength=len(eligible)) >= samples)
        return int(within.sum()), full

    def report(self) -> dict[str, Any]:
        """What :func:`status` says of the records alone."""
        total = self.statuses.total()
        attempts = total - self.all_rejected + self.rejected_attempts
        return {
            **{state: self.statuses[state] for state in STATUSES},
            "attempts_per_answer": round(attempts / total, 4) if total else None,
            "rate": _rate(total, self.first, self.last),
            "first": self.first,
            "last": self.last,
            "failures": _most_frequent_first(self.failures, "code"),
            "rejections": _most_frequent_first(self.rejections, "filter"),
            "damaged": self.damage.told(),
        }


def _imported(folder: RunFolder, name: str) -> dict[str, Any]:
    damage = Damage()
    agents: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    for record in folder.records(name, damage):
        agents[record["agent"]] += 1
        tasks[record["task"]] += 1
    return {"records": agents.total(), "agents": len(agents), "tasks": dict(tasks), "damaged": damage.told()}


def _rate(records: int, first: str | None, last: str | None) -> float | None:
    try:
        span = (datetime.fromisoformat(last or "") - datetime.fromisoformat(first or "")).total_seconds()
    except (ValueError, TypeError):
        return None
    return round((records - 1) / span, 3) if span >= SHORTEST else None


def _most_frequent_first(groups: dict[str, dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [{name: key, **entry} for key, entry in sorted(groups.items(), key=lambda item: -item[1]["count"])]


def _said(attempt: dict[str, Any]) -> str:
    """What a rejected attempt said; of a conversation its last message, with which the attempt ended."""
    said = attempt.get("answer")
    if isinstance(said, dict) and isinstance(said.get("messages"), list):
        said = (said["messages"] or [None])[-1]
    texts = [said.get(key) for key in ("text", "word", "color")] if isinstance(said, dict) else []
    for text in texts:
        if isinstance(text, str) and text:
            return text
    return orjson.dumps(attempt.get("raw") or said).decode()


def _print(found: dict[str, Any]) -> None:
    """The report for a person. Tables are as wide as a terminal, and as wide as they need to be in a file or a pipe."""
    found = _printable(found)
    console = Console(width=None if sys.stdout.isatty() else 10_000, markup=False, highlight=False, emoji=False)
    agents: dict[str, Any] = found["agents"]
    stimuli = ", ".join(f"{task} {number:,}" for task, number in found["stimuli"].items()) or "none"
    head = f"run {found['run']} in {found['path']}, seed {found['seed']}; stimuli: {stimuli}"
    console.print(head, soft_wrap=True)

    table = _table("", "agent", "kind", *STATUSES, "unanswered", "attempts/answer", "answers/s")
    failures = _table("failures", "agent", "code", "records", "example")
    rejections = _table("rejected attempts", "agent", "filter", "attempts", "answers", "example")
    for name, agent in agents.items():
        counts = [f"{agent[key]:,}" for key in (*STATUSES, "unanswered")]
        rates = ["-" if agent[key] is None else f"{agent[key]:,.2f}" for key in ("attempts_per_answer", "rate")]
        table.add_row(name, agent["kind"] or "-", *counts, *rates)
        for item in agent["failures"]:
            stimulus, message = item["example"]["stimulus"], item["example"]["message"]
            example = f"{stimulus}: {message.removeprefix(f'{stimulus}: ')}"  # an error of a picture names it already
            failures.add_row(name, item["code"], f"{item['count']:,}", example)
        total = sum(agent[state] for state in STATUSES)
        for item in agent["rejections"]:
            answers = f"{item['answers']:,} of {total:,} ({item['answers'] / total:.1%})"
            example = "{stimulus}: “{text}” ({found})".format(**item["example"])
            rejections.add_row(name, item["filter"], f"{item['count']:,}", answers, example)
    shared = _table("answered by every agent of the task", "task", "answered", "stimuli", "agents")
    for task, item in found["answered_by_all"].items():
        shared.add_row(task, f"{item['stimuli']:,}", f"{found['stimuli'][task]:,}", ", ".join(item["agents"]))
    for one in (table, failures, rejections, shared):
        if one.row_count:
            console.print()
            console.print(one)
    for text in _remarks(found):
        console.print(f"\n{text}", soft_wrap=True)


def _printable(value: Any) -> Any:
    """``value`` with all texts in it as they may reach a terminal."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_printable(key): _printable(part) for key, part in value.items()}
    return [_printable(part) for part in value] if isinstance(value, list) else value


def _table(title: str, *columns: str) -> Table:
    """Numbers flush right, all else flush left."""
    table = Table(
        title=title or None, box=None, pad_edge=False, title_justify="left", title_style="", header_style="bold"
    )
    for name in columns:
        text = name in ("agent", "kind", "code", "filter", "task", "agents", "example")
        table.add_column(name, justify="left" if text else "right", overflow="fold")
    return table


def _remarks(found: dict[str, Any]) -> Iterator[str]:
    """What is said in sentences: stimuli without an agent, imports, damage, and what a run lacks."""
    for task, number in found["answered_by_none"].items():
        them = "it" if number == 1 else "them"
        yield f"{task}: {count(number, 'stimulus', 'stimuli')}, no agent answers {them}"
    for name, item in found["imports"].items():
        whose = "participant" if name == "humans" else "machine"
        yield f"imported {name}: {count(item['records'], 'answer')} of {count(item['agents'], whose)}"
    for name, item in [*found["agents"].items(), *found["imports"].items()]:
        if item["damaged"]:
            yield f"{name}: {count(item['damaged']['lines'], 'damaged line')}; {item['damaged']['first']}"
        if item.get("outside"):
            yield f"{name}: {count(item['outside'], 'record')} of stimuli or samples that are not in the run"
        if item.get("changed"):
            yield f"{name}: the records are not those that the run wrote (their checksum is another)"
    if not found["complete"]:
        yield _state(found)


def _state(found: dict[str, Any]) -> str:
    """What a run that is not complete lacks. One that only has failed records is at its end, though not well."""
    agents = found["agents"].values()
    lacking = {key: sum(agent[key] for agent in agents) for key in ("unanswered", "failed")}
    lacking["damaged"] = sum(
        item["damaged"]["lines"] for item in [*agents, *found["imports"].values()] if item["damaged"]
    )
    lacking["changed"] = sum(agent["changed"] for agent in agents)
    told = ", ".join(f"{number:,} {what}" for what, number in lacking.items() if number)
    if told == f"{lacking['failed']:,} failed":
        return f"finished: {told}, none unanswered (generate --retry-failed answers failed ones again)"
    return f"not complete: {told}"
