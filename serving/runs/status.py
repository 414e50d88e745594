"""What a run folder holds: how far each agent is, what failed and why, what was rejected and for what."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from agents.errors import printable
from serving.runs.eligibility import is_asked
from serving.runs.row_problems import count
from serving.runs.run import Damage, Run
from serving.runs.run_json import is_changed

LONGEST = 200  # characters of a message or of a rejected text
SHORTEST = 2.0  # seconds between the first and the last record before they say anything of a rate
STATUSES = ("ok", "rejected", "failed")

StimulusKey = tuple[str, str]  # task and id


def status(path: Path | str) -> dict[str, Any]:
    """Count a run folder's records. Raises InputError if ``path`` is not a run folder.

    The keys of the result are ``path, run, seed, samples, created, turinglike, stimuli, agents, answered_by_all,
    answered_by_none, imports, complete``. For an agent:

    - ``ok``, ``rejected``, ``failed``: its records of each status; the last of a key counts.
    - ``unanswered``: keys (stimulus of its tasks, sample) of the run without a record; ``outside``: records of no such
      key (0 where a folder has no set).
    - ``attempts_per_answer``: attempts made, rejected ones included, over records.
    - ``rate``: records per second between the first and the last record's time; None below two seconds.
    - ``failures``: by code, most frequent first, with the first example. ``rejections``: by filter, in how many records
      (``answers``) it rejected how many attempts (``count``), with the first example.
    - ``damaged``: lines that are no records, and the first of them, or None. ``changed``: whether the file differs from
      its checksum in ``run.json``.

    ``answered_by_all`` counts for each task the stimuli for which every agent of that task has an ok answer in every
    sample; ``answered_by_none`` the stimuli of tasks that no agent has. ``complete``: nothing failed, is unanswered,
    damaged or changed.
    """
    run = Run(path)
    meta = run.meta
    counts = dict(Counter(task for task, _ in run.kinds))
    agents: dict[str, Any] = {}
    answered: dict[str, dict[str, set[StimulusKey]]] = {}  # task -> agent -> stimuli that are ok in every sample
    recorded = run.agents()
    for name in dict.fromkeys([*meta["agents"], *recorded]):
        entry = meta["agents"].get(name, {})
        samples: int = entry.get("samples", meta["samples"])
        asked = {key for key, kind in run.kinds.items() if is_asked(entry, kind)}
        tally = _Tally(asked, samples)
        if name in recorded:
            tally.add(run.latest(name, tally.damage))
        expected = samples * len(asked)
        agents[name] = {
            "kind": entry.get("kind"),
            "task": entry.get("task", []),
            **tally.report(),
            "expected": expected,
            "unanswered": expected - tally.within,
            "outside": tally.statuses.total() - tally.within if run.has_stimuli() else 0,
            "changed": is_changed(run.records_path(name), entry.get("records")),
        }
        answered_here = {key for key in asked if tally.ok[key] >= samples}
        tasks_asked = {task for task, _ in asked}
        for task in filter(tasks_asked.__contains__, counts):
            answered.setdefault(task, {})[name] = {key for key in answered_here if key[0] == task}
    imports = {name: _imported(run, name) for name in run.imports()}
    return {
        "path": str(run.path),
        "run": meta["run"],
        "seed": meta["seed"],
        "samples": meta["samples"],
        "created": meta.get("created"),
        "turinglike": meta.get("turinglike"),
        "stimuli": counts,
        "agents": agents,
        "answered_by_all": {
            task: {"agents": list(by_agent), "stimuli": len(set.intersection(*by_agent.values()))}
            for task, by_agent in answered.items()
        },
        "answered_by_none": {task: number for task, number in counts.items() if task not in answered},
        "imports": imports,
        "complete": not any(agent["failed"] or agent["unanswered"] or agent["changed"] for agent in agents.values())
        and not any(item["damaged"] for item in [*agents.values(), *imports.values()]),
    }


def print_status(path: Path | str, json: bool = False) -> int:
    """Print :func:`status` for a person, or as JSON. Returns 0, or 1 if a file is damaged or changed."""
    report = status(path)
    if json:
        sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())
    else:
        _print(_printable(report))
    files = [*report["agents"].values(), *report["imports"].values()]
    return 1 if any(file["damaged"] or file.get("changed") for file in files) else 0


@dataclass(slots=True)
class _Tally:
    """Counts over one agent's records; ``within`` are those of the stimuli that it is asked, in the run's samples, and
    ``ok`` counts by stimulus those of them that are ok."""

    asked: set[StimulusKey]
    samples: int
    within: int = 0
    ok: Counter[StimulusKey] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    rejected_attempts: int = 0
    all_rejected: int = 0  # records that have no further attempt beside the rejected ones
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)
    rejections: dict[str, dict[str, Any]] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None
    damage: Damage = field(default_factory=Damage)

    def add(self, records: Iterable[dict[str, Any]]) -> None:
        """Count records, of which no two have one key."""
        for record in records:
            key = (record["task"], record["stimulus"])
            self.statuses[record["status"]] += 1
            if key in self.asked and record["sample"] < self.samples:
                self.within += 1
                self.ok[key] += record["status"] == "ok"
            created = record["created"]
            if isinstance(created, str):
                self.first = min(self.first or created, created)
                self.last = max(self.last or created, created)
            if record["status"] == "failed":
                self._failure(record)
            if record["attempts"]:
                self._rejections(record)

    def _failure(self, record: dict[str, Any]) -> None:
        message = str(record["error"].get("message"))[:LONGEST]
        example = {"stimulus": record["stimulus"], "sample": record["sample"], "message": message}
        entry = self.failures.setdefault(record["error"]["code"], {"count": 0, "example": example})
        entry["count"] += 1

    def _rejections(self, record: dict[str, Any]) -> None:
        """Count rejected attempts. An attempt may also stand there because a filter noted something and let it be."""
        before = self.rejected_attempts
        filters: set[str] = set()
        for attempt in record["attempts"]:
            verdicts = [verdict for verdict in attempt["verdicts"] if verdict["rejected"]]
            self.rejected_attempts += bool(verdicts)
            for verdict in verdicts:
                example = {
                    "stimulus": record["stimulus"],
                    "text": _text(attempt)[:LONGEST],
                    "found": str(verdict["found"])[:LONGEST],
                }
                entry = self.rejections.setdefault(verdict["filter"], {"count": 0, "answers": 0, "example": example})
                entry["count"] += 1
                entry["answers"] += verdict["filter"] not in filters
                filters.add(verdict["filter"])
        if record["status"] == "rejected":
            self.all_rejected += self.rejected_attempts > before

    def report(self) -> dict[str, Any]:
        """The part of :func:`status` that the records alone say."""
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
            "damaged": self.damage.summary(),
        }


def _imported(run: Run, name: str) -> dict[str, Any]:
    damage = Damage()
    agents: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    for record in run.records(name, damage):
        agents[record["agent"]] += 1
        tasks[record["task"]] += 1
    return {"records": agents.total(), "agents": len(agents), "tasks": dict(tasks), "damaged": damage.summary()}


def _rate(records: int, first: str | None, last: str | None) -> float | None:
    try:
        span = (datetime.fromisoformat(last or "") - datetime.fromisoformat(first or "")).total_seconds()
    except (ValueError, TypeError):
        return None
    return round((records - 1) / span, 3) if span >= SHORTEST else None


def _most_frequent_first(groups: dict[str, dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [{name: key, **entry} for key, entry in sorted(groups.items(), key=lambda item: -item[1]["count"])]


def _text(attempt: dict[str, Any]) -> str:
    """The text of a rejected attempt; of a conversation its last message, with which the attempt ended."""
    answer = attempt.get("answer")
    if isinstance(answer, dict) and isinstance(answer.get("messages"), list):
        answer = (answer["messages"] or [None])[-1]
    texts = [answer.get(key) for key in ("text", "word", "color")] if isinstance(answer, dict) else []
    for text in texts:
        if isinstance(text, str) and text:
            return text
    return orjson.dumps(attempt.get("raw") or answer).decode()


def _print(report: dict[str, Any]) -> None:
    """The report for a person. Tables are as wide as a terminal, and as wide as they need to be in a file or a pipe."""
    console = Console(width=None if sys.stdout.isatty() else 10_000, markup=False, highlight=False, emoji=False)
    agents: dict[str, Any] = report["agents"]
    stimuli = ", ".join(f"{task} {number:,}" for task, number in report["stimuli"].items()) or "none"
    head = f"run {report['run']} in {report['path']}, seed {report['seed']}; stimuli: {stimuli}"
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
    for task, item in report["answered_by_all"].items():
        shared.add_row(task, f"{item['stimuli']:,}", f"{report['stimuli'][task]:,}", ", ".join(item["agents"]))
    for part in (table, failures, rejections, shared):
        if part.row_count:
            console.print()
            console.print(part)
    for text in _remarks(report):
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


def _remarks(report: dict[str, Any]) -> Iterator[str]:
    """Sentences on stimuli without an agent, imports, damage, and what a run lacks."""
    for task, number in report["answered_by_none"].items():
        them = "it" if number == 1 else "them"
        yield f"{task}: {count(number, 'stimulus', 'stimuli')}, no agent answers {them}"
    for name, item in report["imports"].items():
        whose = "participant" if name == "humans" else "machine"
        yield f"imported {name}: {count(item['records'], 'answer')} of {count(item['agents'], whose)}"
    for name, item in [*report["agents"].items(), *report["imports"].items()]:
        if item["damaged"]:
            yield f"{name}: {count(item['damaged']['lines'], 'damaged line')}; {item['damaged']['first']}"
        if item.get("outside"):
            yield f"{name}: {count(item['outside'], 'record')} of stimuli or samples that are not in the run"
        if item.get("changed"):
            yield f"{name}: the records are not those that the run wrote (their checksum is another)"
    if not report["complete"]:
        yield _state(report)


def _state(report: dict[str, Any]) -> str:
    """What a run that is not complete lacks. One that only has failed records is at its end, though not well."""
    agents = report["agents"].values()
    lacking = {key: sum(agent[key] for agent in agents) for key in ("unanswered", "failed")}
    lacking["damaged"] = sum(
        item["damaged"]["lines"] for item in [*agents, *report["imports"].values()] if item["damaged"]
    )
    lacking["changed"] = sum(agent["changed"] for agent in agents)
    lacks = ", ".join(f"{number:,} {what}" for what, number in lacking.items() if number)
    if lacks == f"{lacking['failed']:,} failed":
        return f"finished: {lacks}, none unanswered (generate --retry-failed answers failed ones again)"
    return f"not complete: {lacks}"
