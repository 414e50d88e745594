"""Verdicts joined with the key of their trials: one table, one row per verdict."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ValidationError

from agents.answers import VerdictAnswer
from agents.errors import InputError, Problem
from judging.trial_set import COLUMNS, FEWEST, key_path, read_about
from serving.runs.csv_tables import by_line, load_table, unguarded
from serving.runs.eligibility import is_asked
from serving.runs.run import Run, numbered_records
from serving.runs.run_json import is_changed

if TYPE_CHECKING:
    import pandas as pd

TASK = "judgement"
SAID = ("human", "machine")  # verdicts; any other says why there is none
UNJUDGED = "unjudged"  # a trial that a judge of an unfinished run has still before it
MOST_NAMED = 20
PEOPLE = "people"  # whoever they are, together
SWAPPED = "swapped"  # in a key's `catch`: a scanpath on another picture
Answers = Sequence[Mapping[str, Any]]
BESIDE = ("beside_agent", "beside_truth", "beside_speaker")
TABLE = (
    "judge",
    "judge_kind",
    "trial",
    "sample",
    "asked",
    "truth",
    "agent",
    "stimulus",
    "speaker",
    "length",
    *BESIDE,
    "turns",
    "catch",
    "swapped",
    "repeat_of",
    "said",
    "verdict",
    "confidence",
    "reason",
    "excluded",
)
"""The columns of the table, before the stimuli's own (``meta``, topic, domain …)."""


def read_verdicts(folders: Sequence[Path], key: Path | None = None) -> pd.DataFrame:
    """All verdicts of the run folders, joined with the key of their trial set, wherever that lies: beside the set that
    the run was made from unless ``key`` is given. Columns: :data:`TABLE`, and the stimuli's.

    ``verdict`` is human, machine, refused, unparsed, failed, or unjudged; nothing is dropped. Trials of several sets,
    whose ids are the same numbers, are told apart by the set's number. Raises InputError for what is no run of
    verdicts, where records or the key are not as they were written, where a key is missing or of other trials, where a
    record holds no verdict, and where a judge has two verdicts on a trial.
    """
    import pandas as pd

    runs = [Run(path) for path in folders]
    keys = keys_of(folders, key)
    problems = [problem for run in runs for problem in _changed(run)]
    if problems:
        raise InputError("records are not those that the run wrote: restore the files, or judge again", problems)
    rows = []
    for run in runs:
        number = keys.index(_key_of(run, key).resolve()) + 1
        for row in _rows(run, key):
            if len(keys) > 1:
                row |= {name: row[name] and f"{number}:{row[name]}" for name in ("trial", "repeat_of")}
            rows.append(row)
    _check_once(rows)
    if not rows:
        raise InputError(f"{', '.join(map(str, folders))}: no verdicts")
    table = pd.DataFrame.from_records(rows)
    first = [name for name in TABLE if name in table.columns]
    return table[[*first, *(name for name in table.columns if name not in first)]]


def keys_of(folders: Sequence[Path], key: Path | None = None) -> list[Path]:
    """The keys of the trial sets that the runs are about, each once."""
    return list(dict.fromkeys(_key_of(Run(path), key).resolve() for path in folders))


def settings_of(folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """The settings of each judge that has any, from ``run.json``."""
    return {
        name: about["settings"]
        for path in folders
        for name, about in Run(path).meta["agents"].items()
        if about.get("settings")
    }


def read_answers(folders: Sequence[Path], key: Path | None = None) -> list[dict[str, Any]]:
    """The answers that were judged, each once, without catch trials, repeats, and trials whose answer is not known: the
    trials as the run folders keep them, with their rows of the key. ``trial`` is as in the table of
    :func:`read_verdicts`, which says what is raised."""
    answers: dict[tuple[Path, str], dict[str, Any]] = {}
    every = keys_of(folders, key)
    for folder in map(Run, folders):
        path = _key_of(folder, key)
        number = f"{every.index(path.resolve()) + 1}:" if len(every) > 1 else ""
        keys = _read_checked(folder, path)
        with (folder.path / "stimuli.jsonl").open("rb") as file:
            for line in file:
                trial = orjson.loads(line)
                row = keys[trial["id"]]
                if "answer" in trial and not row["catch"] and row["repeat_of"] is None:
                    answers[path, trial["id"]] = {**trial, **row, "trial": f"{number}{trial['id']}"}
    return list(answers.values())


def by_judge(some: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each judge's verdicts; of people, who are many, all together as one."""
    people = some[some["judge_kind"] == "human"]
    if not people.empty:
        yield PEOPLE, people
    for judge, verdicts in some[some["judge_kind"] != "human"].groupby("judge"):
        yield str(judge), verdicts


def _check_once(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise InputError where a judge has two verdicts on a trial, of a run given twice or of two runs."""
    seen = Counter((row["judge"], row["trial"], row["sample"]) for row in rows)
    twice = sorted({judge for (judge, _, _), number in seen.items() if number > 1})
    if twice:
        raise InputError(
            f"two verdicts of {', '.join(twice)} on the same trials: a run is given twice, or two runs have the judge; "
            "score them apart, or judge with a variant of another name (--config)"
        )


def _key_of(folder: Run, given: Path | None) -> Path:
    if any(row["task"] != TASK for row in islice(folder.stimuli(), 1)):
        raise InputError(f"{folder.path} holds no verdicts: `turinglike judge` writes them")
    source = folder.meta["set"].get("source")
    path = given or (key_path(_folder_of(folder, source)) if source else None)
    if path is None:
        raise InputError(f"{folder.path} does not say which trials it judges; give their key with --key")
    return path


def _rows(folder: Run, given: Path | None) -> Iterator[dict[str, Any]]:
    path = _key_of(folder, given)
    keys = {
        trial: {name: row[name] for name in row if name not in ("delays", "objects")}
        for trial, row in _read_checked(folder, path).items()
    }
    for name in [*folder.agents(), *folder.imports()]:
        left = _asked(folder, name, keys)
        wrong: dict[tuple[Any, ...], Sequence[Any]] = {}
        for record in folder.latest(name):
            if record["task"] != TASK:
                continue
            left.discard(record["stimulus"])
            row = keys.get(record["stimulus"])
            if row is None:
                raise InputError(f"{path} has no trial {record['stimulus']!r}, which {record['agent']} has judged")
            answer = record["answer"] or {}
            if record["status"] == "ok" or answer:
                try:
                    VerdictAnswer.model_validate(answer, strict=True)
                except ValidationError as error:
                    key = (record["agent"], record["stimulus"], record["sample"])
                    wrong[key] = error.errors(include_url=False, include_context=False)
                    continue
            yield {
                "judge": record["agent"],
                "judge_kind": record["kind"],
                "sample": record["sample"],
                **row,
                "verdict": answer.get("verdict", "failed"),
                "confidence": answer.get("confidence"),
                "reason": answer.get("reason"),
                "excluded": _excluded(record),
            }
        _check_answers(folder, name, wrong)
        for trial in sorted(left):
            yield {"judge": name, "judge_kind": "machine", "sample": 0, **keys[trial], "verdict": UNJUDGED}


def _excluded(record: Mapping[str, Any]) -> str | None:
    """The names of the rules by which a study excludes a person's verdict; None where it counts."""
    raw = record["raw"]
    rules = raw.get("rules") if record["kind"] == "human" and isinstance(raw, dict) else None
    return " ".join(map(str, rules)) if isinstance(rules, list) and rules else None


def _changed(folder: Run) -> Iterator[Problem]:
    """A problem for each file of records that is not as ``run.json`` knows it. Imported ones are not known there."""
    for name in folder.agents():
        path = folder.records_path(name)
        if is_changed(path, folder.meta["agents"].get(name, {}).get("records")):
            yield Problem(str(path), None, None, "its checksum is not that in run.json")


def _check_answers(folder: Run, name: str, wrong: Mapping[tuple[Any, ...], Sequence[Any]]) -> None:
    """Raise InputError that names file, line and field of each of the ``wrong`` records, if there are any."""
    if not wrong:
        return
    path, line_of = folder.records_path(name), {}
    with path.open("rb") as file:
        for line, _, record in numbered_records(file, path):
            key = (record["agent"], record["stimulus"], record["sample"])
            if key in wrong and record["task"] == TASK:
                line_of[key] = line  # the last line of a key counts
    problems = [
        Problem(str(path), line_of[key], f"answer.{'.'.join(map(str, error['loc']))}", str(error["msg"]))
        for key, errors in wrong.items()
        for error in errors
    ]
    more = f"; {len(problems) - MOST_NAMED:,} more" if len(problems) > MOST_NAMED else ""
    raise InputError(f"records that hold no verdict as judges give it{more}", problems[:MOST_NAMED])


def _asked(folder: Run, judge: str, keys: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The trials that a judge of the run is to judge; none of people, whose lists the run does not know."""
    about = folder.meta["agents"].get(judge)
    if about is None:
        return set()
    return {trial for trial, row in keys.items() if is_asked(about, (TASK, row["asked"]))}


def _folder_of(folder: Run, source: str) -> Path:
    """The trial set's folder: where it was when the run was made, or beside the run, if both have moved."""
    there = Path(folder.meta["set"].get("root") or Path(source).parent)
    return there if key_path(there).is_file() else folder.path.parent / there.name


def _about(folder: Run, key: Path) -> dict[str, Any]:
    """What stands beside the key, or beside the run's trials if the key lies elsewhere."""
    about, source = read_about(key), folder.meta["set"].get("source")
    if not about and source:
        there = Path(folder.meta["set"].get("root") or Path(source).parent)
        about = read_about(key_path(there)) or read_about(key_path(folder.path.parent / there.name))
    return about


def read_key(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of a key by trial; the stimuli's own columns as ``meta.NAME``. Raises InputError."""
    if not path.is_file():
        raise InputError(f"there is no key {path}: give it with --key")
    table = load_table(path)
    if len(table.names) < FEWEST or tuple(table.names) != COLUMNS[: len(table.names)]:
        raise InputError(f"{path} is no key of trials: its columns are others")
    rows: dict[str, dict[str, Any]] = {}
    wrong = table.problems
    for line, cells in table.rows:
        try:
            row = _typed(cells)
        except ValueError as error:
            wrong.append(Problem(str(path), line, None, f"cannot be read: {error}"))
            continue
        if row["truth"] not in SAID or row["beside_truth"] not in (None, *SAID):
            wrong.append(Problem(str(path), line, "truth", f"{row['truth']!r} is neither human nor machine"))
        if rows.setdefault(cells["trial"], row) is not row:
            wrong.append(Problem(str(path), line, "trial", f"{cells['trial']!r} stands in two rows"))
    if wrong:
        raise InputError(f"{path} is no key of trials", by_line(wrong)[:MOST_NAMED])
    return rows


def _typed(row: Mapping[str, str]) -> dict[str, Any]:
    columns = orjson.loads(row["columns"] or "{}")
    names = ("trial", "sha256", "asked", "truth", "agent", "stimulus", "speaker", "repeat_of", "said", *BESIDE)
    return {
        **{name: unguarded(row.get(name) or "") or None for name in names},
        "catch": row["catch"] in ("1", SWAPPED),
        "swapped": row["catch"] == SWAPPED,
        **{name: int(row[name]) if row.get(name) else None for name in ("length", "turns")},
        **{name: orjson.loads(row.get(name) or "{}") for name in ("delays", "objects")},
        **{f"meta.{name}": value for name, value in columns.items()},
    }


def _read_checked(folder: Run, path: Path) -> dict[str, dict[str, Any]]:
    """The rows of the key at ``path``. Raises InputError unless the trials of the run are those of the key."""
    keys, about = read_key(path), _about(folder, path)
    if "key_sha256" not in about:
        raise InputError(
            f"{path} cannot be trusted: beside it there is no TRIALS.trials.json with its checksum (key_sha256): put "
            "back the one that `turinglike trials` wrote"
        )
    if about["key_sha256"] != hashlib.sha256(path.read_bytes()).hexdigest():
        raise InputError(f"{path} is not as `turinglike trials` wrote it")
    stimuli = folder.path / "stimuli.jsonl"
    if not stimuli.is_file() and folder.meta.get("imports_only"):
        raise InputError(f"{folder.path} has imported answers alone: import them into the folder that `judge` wrote")
    if not stimuli.is_file():
        raise InputError(f"{folder.path} is damaged: it has no stimuli.jsonl")
    with stimuli.open("rb") as file:
        lines = ((number, line.rstrip(b"\n")) for number, line in enumerate(file, start=1))
        check_trials(stimuli, ((number, orjson.loads(line)["id"], line) for number, line in lines), keys, path)
    return {trial: {name: row[name] for name in row if name != "sha256"} for trial, row in keys.items()}


def check_trials(
    source: Path, trials: Iterable[tuple[int | None, str, bytes]], keys: Mapping[str, Mapping[str, Any]], path: Path
) -> None:
    """Raise InputError unless all ``trials`` (line, id, canonical JSON) of ``source`` are in the key at ``path``."""
    problems = [
        Problem(str(source), number, name, f"is no trial of {path}")
        for number, name, trial in trials
        if name not in keys or keys[name]["sha256"] != hashlib.sha256(trial).hexdigest()
    ]
    if problems:
        more = f"; {len(problems) - MOST_NAMED:,} more" if len(problems) > MOST_NAMED else ""
        raise InputError(f"{path} is the key of other trials{more}", problems[:MOST_NAMED])
