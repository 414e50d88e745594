"""What a run folder holds: how far each agent is, what failed and why, what was rejected and for what."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from serving.runs.display_text import count
from serving.runs.eligibility import Kind, is_asked, kind_of
from serving.runs.hash_join import any_twice, common, covered, ordered
from serving.runs.reader import Damage, RunFolder

SHOWN = 200  # characters of a message or of a rejected text
SHORTEST = 2.0  # seconds between the first and the last record before they say anything of a rate


def status(path: Path | str) -> dict[str, Any]:
    """Count a run folder's records. Raises InputError if ``path`` is not a run folder.

    The keys of the result are ``path, run, seed, samples, created, turinglike, stimuli, agents, answered_by_all,
    answered_by_none, imports, complete``. For an agent:

    - ``ok``, ``rejected``, ``failed``: its records of each status; the last of a key counts.
    - ``unanswered``: keys (stimulus of its tasks, sample) of the run without a record; ``outside`` counts records of
      no such key.
    - ``attempts_per_answer``: attempts made, rejected ones included, over records. (In a conversation the rejected
      attempts at its turns count, its accepted turns together count as one.)
    - ``rate``: records per second between the first and the last record's time, pauses included; None if that is less
      than two seconds.
    - ``failures``: by code, most frequent first, with the first example. ``rejections``: by filter, in how
      many records (``answers``) it rejected how many attempts (``count``), with the first example.
    - ``damaged``: lines that are not records, and the first of them, or None.

    ``answered_by_all`` counts for each task the stimuli for which every agent of that task has an ok answer in every
    sample (an agent that is asked one mode of attention prediction alone has none in the other).
    ``answered_by_none`` counts the stimuli of tasks that no agent of the run has.
    ``complete`` says that nothing failed, is unanswered or damaged.
    """
    folder = RunFolder(path)
    meta = folder.meta
    kinds = _stimuli_by_kind(folder)
    stimuli = _by_task(kinds)
    agents: dict[str, Any] = {}
    answered: dict[str, dict[str, array[int]]] = {}
    names = list(dict.fromkeys([*meta["agents"], *folder.agents()]))
    recorded = set(folder.agents())
    for name in names:
        entry = meta["agents"].get(name, {})
        tasks: list[str] = entry.get("task", [])
        its = {kind: hashes for kind, hashes in kinds.items() if is_asked(entry, kind)}
        asked = {task: stimuli[task] for task, _ in its}
        if sum(map(len, asked.values())) != sum(map(len, its.values())):  # of a task not all
            asked = _by_task(its)
        samples: int = entry.get("samples", meta.get("samples", 1))
        tally = _tally(folder, name) if name in recorded else _Tally()
        agents[name] = {
            "kind": entry.get("kind") or tally.kind,
            "task": tasks or sorted(tally.tasks),
            **tally.report(),
            "expected": samples * sum(len(hashes) for hashes in asked.values()),
        }
        within = 0
        for task, hashes in asked.items():
            known, full = tally.coverage(hashes, samples)
            within += known
            answered.setdefault(task, {})[name] = full
        agents[name]["unanswered"] = agents[name]["expected"] - within
        agents[name]["outside"] = sum(tally.statuses.values()) - within
    imports = {name: _imported(folder, name) for name in folder.imports()}
    return {
        "path": str(folder.path),
        "run": meta["run"],
        "seed": meta.get("seed"),
        "samples": meta.get("samples"),
        "created": meta.get("created"),
        "turinglike": meta.get("turinglike"),
        "stimuli": {task: len(hashes) for task, hashes in stimuli.items()},
        "agents": agents,
        "answered_by_all": {
            task: {"agents": list(by_agent), "stimuli": common(list(by_agent.values()))}
            for task, by_agent in answered.items()
        },
        "answered_by_none": {task: len(hashes) for task, hashes in stimuli.items() if task not in answered},
        "imports": imports,
        "complete": not any(agent["failed"] or agent["unanswered"] for agent in agents.values())
        and not any(item["damaged"] for item in [*agents.values(), *imports.values()]),
    }


def print_status(path: Path | str, json: bool = False) -> int:
    """Print :func:`status` for a person, or as JSON. Returns 0 if the run is complete, otherwise 1."""
    found = status(path)
    if json:
        sys.stdout.write(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(found)))
    return 0 if found["complete"] else 1


class _Tally:
    """Counts over one agent's records. Memory: 24 bytes per record, for the hashes of keys and stimuli."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.kind: str | None = None
        self.tasks: set[str] = set()
        self.rejected_attempts = 0
        self.all_rejected = 0  # records that have no further attempt beside the rejected ones
        self.failures: dict[str, dict[str, Any]] = {}
        self.rejections: dict[str, dict[str, Any]] = {}
        self.first: str | None = None
        self.last: str | None = None
        self.keys = array("q")
        self.stimuli = array("q")
        self.samples = array("q")
        self.ok = bytearray()
        self.damage = Damage()

    def add(self, records: Iterable[dict[str, Any]]) -> None:
        for record in records:
            state, sample = record["status"], record["sample"]
            stimulus = hash((record["task"], record["stimulus"]))
            self.statuses[state] += 1
            self.keys.append(hash((stimulus, record["agent"], sample)))
            self.stimuli.append(stimulus)
            self.samples.append(sample)
            self.ok.append(state == "ok")
            created = record["created"]
            if isinstance(created, str):
                if self.first is None or created < self.first:
                    self.first = created
                if self.last is None or created > self.last:
                    self.last = created
            if state == "failed":
                self._failure(record)
            if record["attempts"]:
                self._rejections(record)
        if self.keys:
            self.kind = record["kind"]
            self.tasks.add(record["task"])

    def _failure(self, record: dict[str, Any]) -> None:
        error = record["error"] or {}
        entry = self.failures.setdefault(str(error.get("code")), {"count": 0, "example": None})
        entry["count"] += 1
        if entry["example"] is None:
            message = str(error.get("message"))[:SHOWN]
            entry["example"] = {"stimulus": record["stimulus"], "sample": record["sample"], "message": message}

    def _rejections(self, record: dict[str, Any]) -> None:
        """Count rejected attempts. An attempt may also stand there because a filter noted something and let it be."""
        before = self.rejected_attempts
        here: set[str] = set()
        for attempt in record["attempts"]:
            verdicts = [verdict for verdict in attempt["verdicts"] if verdict["rejected"]]
            self.rejected_attempts += bool(verdicts)
            for verdict in verdicts:
                entry = self.rejections.setdefault(verdict["filter"], {"count": 0, "answers": 0, "example": None})
                entry["count"] += 1
                entry["answers"] += verdict["filter"] not in here
                here.add(verdict["filter"])
                if entry["example"] is None:
                    entry["example"] = {
                        "stimulus": record["stimulus"],
                        "text": _said(attempt)[:SHOWN],
                        "found": str(verdict["found"])[:SHOWN],
                    }
        if record["status"] == "rejected":
            self.all_rejected += self.rejected_attempts > before

    def repeats(self) -> bool:
        """Whether a key came more than once."""
        return any_twice(self.keys)

    def coverage(self, known: array[int], samples: int) -> tuple[int, array[int]]:
        """How many records are of stimuli in ``known`` (ascending hashes) and below ``samples``, and the hashes of
        those stimuli that are ok in every sample, ascending."""
        return covered(known, self.stimuli, self.samples, self.ok, samples)

    def report(self) -> dict[str, Any]:
        total = sum(self.statuses.values())
        attempts = total - self.all_rejected + self.rejected_attempts
        return {
            **{state: self.statuses[state] for state in ("ok", "rejected", "failed")},
            "attempts_per_answer": round(attempts / total, 4) if total else None,
            "rate": _rate(total, self.first, self.last),
            "first": self.first,
            "last": self.last,
            "failures": _grouped(self.failures, "code"),
            "rejections": _grouped(self.rejections, "filter"),
            "damaged": None
            if self.damage.first is None
            else {"lines": self.damage.lines, "first": str(self.damage.first)},
        }


def _tally(folder: RunFolder, name: str) -> _Tally:
    """One pass over the file; only if it turns out to hold a key twice, two more over the lines that count."""
    tally = _Tally()
    tally.add(folder.records(name, tally.damage))
    if tally.repeats():
        tally = _Tally()
        tally.add(folder.latest(name, tally.damage))
    return tally


def _stimuli_by_kind(folder: RunFolder) -> dict[Kind, array[int]]:
    """Hashes of (task, id), by kind. A row that was so invalid that it has neither belongs to no agent."""
    found: dict[Kind, array[int]] = {}
    for _, row in folder.stimuli():
        task, name = row.get("task"), row.get("id")
        if isinstance(task, str) and isinstance(name, str):
            found.setdefault(kind_of(row), array("q")).append(hash((task, name)))
    return found


def _by_task(kinds: Mapping[Kind, array[int]]) -> dict[str, array[int]]:
    """The same, ascending, by task."""
    found: dict[str, array[int]] = {}
    for (task, _), hashes in kinds.items():
        found.setdefault(task, array("q")).extend(hashes)
    return {task: ordered(hashes) for task, hashes in found.items()}


def _imported(folder: RunFolder, name: str) -> dict[str, Any]:
    damage = Damage()
    agents: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    for record in folder.records(name, damage):
        agents[record["agent"]] += 1
        tasks[record["task"]] += 1
    damaged = None if damage.first is None else {"lines": damage.lines, "first": str(damage.first)}
    return {"records": agents.total(), "agents": len(agents), "tasks": dict(tasks), "damaged": damaged}


def _rate(records: int, first: str | None, last: str | None) -> float | None:
    try:
        span = (datetime.fromisoformat(last or "") - datetime.fromisoformat(first or "")).total_seconds()
    except (ValueError, TypeError):
        return None
    return round((records - 1) / span, 3) if span >= SHORTEST else None


def _grouped(groups: dict[str, dict[str, Any]], name: str) -> list[dict[str, Any]]:
    ordered = sorted(groups.items(), key=lambda item: -item[1]["count"])
    return [{name: key, **entry} for key, entry in ordered]


def _said(attempt: dict[str, Any]) -> str:
    """What a rejected attempt said, as text; of a conversation its last message, with which the attempt ended."""
    answer, raw = attempt.get("answer"), attempt.get("raw")
    found = [answer.get(key) for key in ("text", "word", "color")] if isinstance(answer, dict) else []
    if isinstance(answer, dict) and isinstance(answer.get("messages"), list):
        found += [
            f"{one.get('speaker')}: {one.get('text')}" for one in answer["messages"][-1:] if isinstance(one, dict)
        ]
    found += [raw.get("text") if isinstance(raw, dict) else raw]
    texts = [value for value in found if isinstance(value, str)]
    if texts:
        return next(filter(None, texts), "")
    return orjson.dumps(answer if answer is not None else raw).decode()


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """The report for a person."""
    agents: dict[str, Any] = found["agents"]
    stimuli = ", ".join(f"{task} {count:,}" for task, count in found["stimuli"].items()) or "none"
    yield f"run {found['run']} in {_plain(found['path'])}, seed {found['seed']}; stimuli: {stimuli}"
    if agents:
        head = ["agent", "kind", "ok", "rejected", "failed", "unanswered", "attempts/answer", "answers/s"]
        rows = [
            [
                name,
                str(agent["kind"]),
                *(f"{agent[key]:,}" for key in ("ok", "rejected", "failed", "unanswered")),
                *("-" if agent[key] is None else f"{agent[key]:,.2f}" for key in ("attempts_per_answer", "rate")),
            ]
            for name, agent in agents.items()
        ]
        yield ""
        yield from _table(head, rows)
    failures = [(name, item) for name, agent in agents.items() for item in agent["failures"]]
    if failures:
        yield "\nfailures"
    for name, item in failures:
        example = item["example"]
        yield f"  {name}  {_plain(item['code'])}  {item['count']:,}  e.g. {_plain(example['stimulus'])}: " + _plain(
            example["message"]
        )
    rejections = [(name, item) for name, agent in agents.items() for item in agent["rejections"]]
    if rejections:
        yield "\nrejected attempts"
    for name, item in rejections:
        example, agent = item["example"], agents[name]
        total = sum(agent[state] for state in ("ok", "rejected", "failed"))
        rate = f"{item['count']:,} in {item['answers']:,} of {count(total, 'answer')} ({item['answers'] / total:.1%})"
        yield f"  {name}  {_plain(item['filter'])}  {rate}  e.g. {_plain(example['stimulus'])}: " + (
            f"“{_plain(example['text'])}” ({_plain(example['found'])})"
        )
    if found["answered_by_all"]:
        yield "\nanswered by every agent of the task"
    for task, shared in found["answered_by_all"].items():
        yield f"  {task}  {shared['stimuli']:,} of {found['stimuli'][task]:,}  ({', '.join(shared['agents'])})"
    for task, number in found["answered_by_none"].items():
        yield f"\n{_plain(task)}: {count(number, 'stimulus', 'stimuli')}, no agent answers {_them(number)}"
    for name, imported in found["imports"].items():
        whose = "participant" if name == "humans" else "machine"
        yield f"\nimported {name}: {count(imported['records'], 'answer')} of {count(imported['agents'], whose)}"
    for name, item in [*agents.items(), *found["imports"].items()]:
        if item["damaged"]:
            damaged = item["damaged"]
            yield f"\n{name}: {count(damaged['lines'], 'damaged line')}; {_plain(damaged['first'])}"
        if item.get("outside"):
            yield f"\n{name}: {count(item['outside'], 'record')} of stimuli or samples that are not in the run"
    if not found["complete"]:
        yield f"\n{_state(found)}"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


def _state(found: dict[str, Any]) -> str:
    """What a run that is not complete lacks. One that only has failed records is at its end, though not well."""
    agents = found["agents"].values()
    failed, unanswered = (sum(agent[key] for agent in agents) for key in ("failed", "unanswered"))
    damaged = sum(item["damaged"]["lines"] for item in [*agents, *found["imports"].values()] if item["damaged"])
    if not unanswered and not damaged:
        return f"finished: {failed:,} failed, none unanswered (generate --retry-failed answers failed ones again)"
    lacking = [f"{unanswered:,} unanswered"] if unanswered else []
    lacking += [f"{failed:,} failed"] if failed else []
    lacking += [count(damaged, "damaged line")] if damaged else []
    return f"not complete: {', '.join(lacking)}"


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Columns as wide as their widest cell; the first two flush left, numbers flush right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _plain(text: str) -> str:
    """Text from models and files must not steer a terminal: control characters become escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
