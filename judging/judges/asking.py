"""``turinglike judge``: ``generate`` over a trial set; fills in the judges' settings ``key`` and ``trials``."""

import argparse
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from agents.catalogue.named_models import ANTHROPIC_MODEL, SERVER_MODEL
from agents.catalogue.selection import read_names, resolve
from agents.contract import Entry
from agents.errors import LASTING, InputError, Problem
from judging.judges.classifier import TASKS_OF_CUES
from judging.trial_sets.trial_set import TRIALS_FILE, check_trials, key_path, read_trial_key
from serving.commands.command_line import from_options
from serving.files.words import count
from serving.generation.generate import GenerateOptions, generate
from serving.runs.run import Run
from serving.sets.stimulus_set import read_rows

WHOSE = {"human": "of people", "machine": "of machines"}
JUDGES = {SERVER_MODEL: "OpenAIJudge", ANTHROPIC_MODEL: "AnthropicJudge"}


def judge(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Run the command; returns its exit code. Raises TuringlikeError."""
    folder: Path = options.trials
    source = folder / TRIALS_FILE
    key = key_path(folder)
    if not source.is_file():
        raise InputError(f"{folder} is no trial set: it has no {TRIALS_FILE}; `turinglike trials` makes one")
    names = read_names("--judges", _with_cues(options.judges, source), "asked")
    chosen = resolve(names, options.settings, options.config, "--judges")
    entries = {name: _as_judge(entry) for name, entry in chosen.entries.items()}
    settings = chosen.settings
    rows = read_trial_key(key) if key.is_file() else None
    problems = []
    for name, entry in entries.items():
        fields = entry.load_class().Settings.model_fields
        if "judgement" not in entry.tasks:
            problems.append(Problem("--judges", None, name, f"is no judge: it answers {', '.join(entry.tasks)}"))
        elif "key" in fields and rows is None:
            problems.append(Problem(str(key), None, name, "is trained on the trials, and their key is not there"))
        elif "key" in fields and rows is not None and (why := _untrainable(rows.values())):
            problems.append(Problem(str(key), None, name, f"cannot be trained: {why}"))
        paths = {"trials": str(source), "key": str(key)}
        settings[name] = {field: path for field, path in paths.items() if field in fields} | settings.get(name, {})
    if problems:
        raise InputError("the judges cannot be used as asked", problems)
    if rows is not None:
        lines = ((row.line, row.id, row.canonical) for row in read_rows(source))
        trials = ((line, name, trial) for line, name, trial in lines if name is not None and trial is not None)
        check_trials(source, trials, rows, key)
    changes = {"source": source, "task": None, "agents": chosen.names, "entries": entries, "settings": settings}
    then = ("score", str(options.out), "--out", f"{options.out}-scores")
    code = generate(from_options(GenerateOptions, options, **changes), say, then)
    for sentence in not_judged(Run(options.out), chosen.names, rows or {}):
        say(sentence)
    return code


def not_judged(run: Run, judges: Iterable[str], keys: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Of each judge that leaves out trials by what they are (:data:`agents.errors.LASTING`) a sentence: how many, by
    whom they were answered, and why. They come in no rate: where they are people's alone, as short scanpaths may be,
    the others are no longer drawn as the machines' are."""
    for judge in judges:
        left_out: Counter[str] = Counter()
        judged: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        examples: dict[str, str] = {}
        for record in run.latest(judge) if judge in run.agents() else ():
            truth = keys.get(record["stimulus"], {}).get("truth", "")
            judged[truth] += 1
            if record["status"] == "failed" and (code := record["error"]["code"]) in LASTING:
                left_out[truth] += 1
                reasons[code] += 1
                examples.setdefault(code, f"{record['stimulus']}: {record['error']['message']}")
        if not left_out:
            continue
        whose = [f"{left_out[truth]:,} of {judged[truth]:,} {words}" for truth, words in WHOSE.items() if judged[truth]]
        why = "; ".join(f"{code} {number:,}, as {examples[code]}" for code, number in reasons.items())
        by_whom = f" ({', '.join(whose)})" if whose else ""
        yield (
            f"{judge} did not judge {left_out.total():,} of {count(judged.total(), 'trial')}{by_whom}. "
            f"They count in no rate. Why: {why}"
        )


def _as_judge(entry: Entry) -> Entry:
    """A model by its name judges; others are as they are."""
    if not entry.typed or "judgement" in entry.tasks:
        return entry
    judge = JUDGES.get(entry.agent, "LocalJudge")
    entry = replace(entry, agent=f"judging.judges.llm_judge:{judge}", tasks=("judgement",))
    fields = entry.load_class().Settings.model_fields
    return replace(entry, settings={name: value for name, value in entry.settings.items() if name in fields})


def _with_cues(names: str, trials: Path) -> str:
    if "cues" not in names.split(","):
        return names
    tasks = {orjson.loads(line)["asked"] for line in trials.read_bytes().splitlines()}
    cues = ",".join(f"cue-{cue}" for cue, of_cue in TASKS_OF_CUES.items() if tasks.intersection(of_cue))
    return ",".join(cues if name == "cues" else name for name in names.split(","))


def _untrainable(rows: Collection[Mapping[str, Any]]) -> str | None:
    if any(row["beside_truth"] is not None for row in rows):
        return "pairs of conversations are judged by people and language models"
    for task in {row["asked"] for row in rows}:
        of_task = [row for row in rows if row["asked"] == task]
        if any(len({row[name] for row in of_task}) < 2 for name in ("truth", "stimulus")):
            return f"{task} lacks answers of people and of machines, to two stimuli at least"
    return None
