"""What a run folder holds."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agents.errors import LASTING, printable
from serving.files.terminal import plain_table, print_json
from serving.files.words import count, duration, per_second
from serving.runs.estimates import Estimate
from serving.runs.forecast import row_lengths
from serving.runs.pace import Pace
from serving.runs.run import Damage, Run
from serving.runs.run_json import is_changed
from serving.sets.kinds import is_asked

JUDGEMENT = "judgement"  # the task of trials, which `turinglike judge` has judged
LONGEST = 200  # characters of a message
STATUSES = ("ok", "rejected", "failed")
COUNTED = (*STATUSES, "unanswered")
TOKENS = {"prompt": "prompt_tokens", "reply": "tokens", "reasoning": "reasoning_tokens"}  # names in a record's raw
TEXTS = ("agent", "kind", "code", "filter", "example")  # columns that are flush left

Groups = dict[str, dict[str, Any]]  # by code or filter: how many, and the first


def status(path: Path | str) -> dict[str, Any]:
    """Count a run folder's records. Raises InputError if ``path`` is not a run folder.

    - ``ok``, ``rejected``, ``failed``: an agent's records by status; the last of a key counts.
    - ``unanswered``: keys (stimulus, sample) without a record; ``outside``: records of no such key.
    - ``attempts_per_answer``: attempts, rejected ones included, over records.
    - ``failures`` by code and ``rejections`` (attempts) by filter, most frequent first, with the first example.
    - ``notes``: attempts of which a filter noted something that did not reject them, by filter in the same way.
    - ``verdicts``, of judges alone: how many answers are ``human``, ``machine``, ``refused`` or ``unparsed``; the last
      two are no verdicts.
    - ``tokens``: of prompts, replies and, where servers count it, reasoning (part of the replies), of all attempts.
    - ``damaged``: lines that are no records, and the first; ``changed``: whether it differs from its checksum.
    - ``rate``: answers in a second lately, while answers lack; ``left``: the seconds that these take at that pace, with
      ``low`` and ``high``, between which they are in 9 of 10 runs. None where records say too little.
    - ``complete``: nothing failed, is unanswered, damaged or changed.
    """
    run = Run(path)
    meta = run.meta
    agents = {name: _of_agent(run, name) for name in dict.fromkeys([*meta["agents"], *run.agents()])}
    imports = {name: _imported(run, name) for name in run.imports()}
    return {
        "path": str(run.path),
        "run": meta["run"],
        "seed": meta["seed"],
        "samples": meta["samples"],
        "created": meta.get("created"),
        "turinglike": meta.get("turinglike"),
        "stimuli": dict(Counter(task for task, _ in run.kinds)),
        "agents": agents,
        "imports": imports,
        "complete": not any(agent["failed"] or agent["unanswered"] or agent["changed"] for agent in agents.values())
        and not any(item["damaged"] for item in [*agents.values(), *imports.values()]),
    }


def _of_agent(run: Run, name: str) -> dict[str, Any]:
    entry = run.meta["agents"].get(name, {})
    samples: int = entry.get("samples", run.meta["samples"])
    keys = {key for key, kind in run.kinds.items() if is_asked(entry, kind)}
    statuses: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    failures: Groups = {}
    rejections: Groups = {}
    notes: Groups = {}
    tokens: Counter[str] = Counter()
    position_of = {key: position for position, key in enumerate(run.kinds)}
    missing = [samples * (key in keys) for key in run.kinds]
    pace = Pace(position_of)
    within = 0
    attempts = 0
    damage = Damage()
    records = run.latest(name, damage) if name in run.agents() else iter(())
    for record in records:
        statuses[record["status"]] += 1
        if record["task"] == JUDGEMENT and record["status"] == "ok":
            verdicts[record["answer"]["verdict"]] += 1
        key = (record["task"], record["stimulus"])
        if key in keys and record["sample"] < samples:
            within += 1
            missing[position_of[key]] -= 1
            pace.note(record)
        rejected = 0
        for attempt in record["attempts"]:  # one may stand there because a filter noted something and let it be
            for verdict in attempt["verdicts"]:
                _add(rejections if verdict["rejected"] else notes, verdict["filter"], record, found=verdict["found"])
            rejected += any(verdict["rejected"] for verdict in attempt["verdicts"])
        attempts += rejected + (not rejected or record["status"] != "rejected")
        if record["status"] == "failed":
            _add(failures, record["error"]["code"], record, message=record["error"].get("message"))
        for text in texts_of(record):
            tokens.update({kind: text[key] for kind, key in TOKENS.items() if isinstance(text.get(key), int)})
    total = statuses.total()
    expected = samples * len(keys)
    return {
        "kind": entry.get("kind"),
        "task": entry.get("task", []),
        **{state: statuses[state] for state in STATUSES},
        **({"verdicts": dict(sorted(verdicts.items()))} if verdicts else {}),
        "attempts_per_answer": round(attempts / total, 4) if total else None,
        "tokens": {kind: tokens[kind] for kind in TOKENS} if tokens.total() else None,
        "failures": _most_frequent_first(failures, "code"),
        "rejections": _most_frequent_first(rejections, "filter"),
        "notes": _most_frequent_first(notes, "filter"),
        "damaged": damage.summary(),
        "expected": expected,
        "unanswered": expected - within,
        "outside": total - within if run.has_stimuli() else 0,
        **_what_is_left(run, name, pace, missing),
        "changed": is_changed(run.records_path(name), entry.get("records")),
    }


def _what_is_left(run: Run, name: str, pace: Pace, missing: list[int]) -> dict[str, Any]:
    """The keys ``rate`` and ``left`` of an agent's report."""
    rate = None
    left = None
    if pace.answers and any(missing):
        forecast = pace.forecast(missing, row_lengths(run.path / "stimuli.jsonl"), in_turns="~" in name)
        rate = forecast.rate()
        left = forecast.left()
    return {
        "rate": None if rate is None else float(f"{rate:.4g}"),
        "left": None if left is None else {name: _rounded(value) for name, value in asdict(left).items()},
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def texts_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What models wrote for a record, each text once."""
    texts = []
    kept = list(_texts(record["raw"]))
    for text in _texts([attempt.get("raw") for attempt in record["attempts"]]):
        texts.append(text)
        if text in kept:  # the last attempt, which a filter noted
            kept.remove(text)
    return texts + kept


def _texts(raw: Any) -> Iterator[dict[str, Any]]:
    if isinstance(raw, dict) and isinstance(raw.get("tokens", raw), int | None):
        yield raw
    elif isinstance(raw, dict | list):
        parts = raw.values() if isinstance(raw, dict) else raw
        for part in parts:
            yield from _texts(part)


def _add(groups: Groups, key: str, record: dict[str, Any], **texts: Any) -> None:
    example = {name: str(text)[:LONGEST] for name, text in texts.items()}
    example = {"stimulus": record["stimulus"], "sample": record["sample"], **example}
    groups.setdefault(key, {"count": 0, "example": example})["count"] += 1


def _most_frequent_first(groups: Groups, name: str) -> list[dict[str, Any]]:
    return [{name: key, **entry} for key, entry in sorted(groups.items(), key=lambda item: -item[1]["count"])]


def _imported(run: Run, name: str) -> dict[str, Any]:
    damage = Damage()
    agents: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    for record in run.records(name, damage):
        agents[record["agent"]] += 1
        tasks[record["task"]] += 1
    return {"records": agents.total(), "agents": len(agents), "tasks": dict(tasks), "damaged": damage.summary()}


def print_status(path: Path | str, json: bool = False) -> int:
    """Print :func:`status`. Returns 0, or 1 if a file is damaged or changed."""
    report = status(path)
    if json:
        print_json(report)
    else:
        _print(_printable(report))
    files = [*report["agents"].values(), *report["imports"].values()]
    return 1 if any(file["damaged"] or file.get("changed") for file in files) else 0


def _print(report: dict[str, Any]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 10_000, markup=False, highlight=False, emoji=False)
    stimuli = ", ".join(f"{task} {number:,}" for task, number in report["stimuli"].items()) or "none"
    head = f"run {report['run']} in {report['path']}, seed {report['seed']}; stimuli: {stimuli}"
    console.print(head, soft_wrap=True)
    table = _table("", "agent", "kind", *COUNTED, "attempts/answer")
    used = _table("tokens", "agent", *TOKENS)
    failures = _table("failures", "agent", "code", "records", "example")
    rejections = _table("rejected attempts", "agent", "filter", "attempts", "example")
    notes = _table("noted, not rejected", "agent", "filter", "attempts", "example")
    for name, agent in report["agents"].items():
        attempts = "-" if agent["attempts_per_answer"] is None else f"{agent['attempts_per_answer']:,.2f}"
        table.add_row(name, agent["kind"] or "-", *(f"{agent[key]:,}" for key in COUNTED), attempts)
        if agent["tokens"]:
            used.add_row(name, *(f"{number:,}" for number in agent["tokens"].values()))
        for item in agent["failures"]:
            stimulus = item["example"]["stimulus"]
            message = item["example"]["message"]
            example = f"{stimulus}: {message.removeprefix(f'{stimulus}: ')}"  # an error of a picture names it already
            failures.add_row(name, item["code"], f"{item['count']:,}", example)
        for found, part in ((agent["rejections"], rejections), (agent["notes"], notes)):
            for item in found:
                example = "{stimulus}: {found}".format(**item["example"])
                part.add_row(name, item["filter"], f"{item['count']:,}", example)
    for part in (table, used, failures, rejections, notes):
        if part.row_count:
            console.print()
            console.print(part)
    for text in _remarks(report):
        console.print(f"\n{text}", soft_wrap=True)


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_printable(key): _printable(part) for key, part in value.items()}
    return [_printable(part) for part in value] if isinstance(value, list) else value


def _table(title: str, *columns: str) -> Table:
    table = plain_table()
    table.title = title or None
    table.title_justify = "left"
    table.title_style = ""
    table.show_header = True
    for name in columns:
        table.add_column(name, justify="left" if name in TEXTS else "right", overflow="fold")
    return table


def _remarks(report: dict[str, Any]) -> Iterator[str]:
    for name, item in report["imports"].items():
        whose = "participant" if name == "humans" else "machine"
        yield f"imported {name}: {count(item['records'], 'answer')} of {count(item['agents'], whose)}"
    for name, item in [*report["agents"].items(), *report["imports"].items()]:
        if item["damaged"]:
            yield f"{name}: {count(item['damaged']['lines'], 'damaged line')}; {item['damaged']['first']}"
        if item.get("outside"):
            yield f"{name}: {count(item['outside'], 'record')} of stimuli or samples that do not belong to the run"
        if item.get("changed"):
            yield f"{name}: the file of records has changed since the run wrote it (the checksum differs)"
    for name, agent in report["agents"].items():
        yield from without_verdict(name, agent.get("verdicts", {}))
    if not report["complete"]:
        lacking = {key: sum(agent[key] for agent in report["agents"].values()) for key in ("unanswered", "failed")}
        lacks = ", ".join(f"{number:,} {what}" for what, number in lacking.items() if number)
        yield f"not complete: {lacks or 'damaged'}"
        for name, agent in report["agents"].items():
            if agent["left"] is not None and agent["rate"] is not None:
                left = Estimate(**agent["left"]).text(duration)
                yield f"{name}: {per_second(agent['rate'])} lately; at this pace the rest takes {left}"
        yield from _retries(report)


def without_verdict(judge: str, verdicts: Mapping[str, int]) -> Iterator[str]:
    """A sentence on the answers of a judge that are no verdict, if there are any; ``verdicts`` has the number of
    answers by what they say."""
    none = {word: number for word, number in verdicts.items() if word not in ("human", "machine")}
    if none:
        total = sum(verdicts.values())
        parts = ", ".join(f"{number:,} {word}" for word, number in none.items())
        yield f"{judge}: {sum(none.values()):,} of {count(total, 'answer')} are no verdict ({parts})"


def _retries(report: dict[str, Any]) -> Iterator[str]:
    """Which failures the command that made the run may mend, and which come again whenever they are asked."""
    failures = [item for agent in report["agents"].values() for item in agent["failures"]]
    lasting = [item for item in failures if item["code"] in LASTING]
    if lasting:
        number = sum(item["count"] for item in lasting)
        codes = ", ".join(dict.fromkeys(item["code"] for item in lasting))
        yield f"{count(number, 'failure')} would occur again with the same stimuli and settings: {codes}"
    if len(failures) > len(lasting):
        which = "other failures" if lasting else "failures"
        if not report["samples"]:  # a server's: no command knows what it was asked
            yield f"to try the {which} again: send these requests to the server again"
            return
        is_of_verdicts = JUDGEMENT in report["stimuli"]
        command = "judge" if is_of_verdicts else "generate"
        yield f"to try the {which} again: turinglike {command} … --retry-failed"
