"""Verdicts joined with the key of their trials: a table with a row per verdict."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ValidationError

from agents.answers import VerdictAnswer
from agents.errors import InputError, Problem
from judging.statistics.measures import ALL, NAMELESS
from judging.statistics.verdict_table import AND, BOTH, ELSEWHERE, FEEDBACK, PEOPLE, PUBLISHED_PREFIX, TEST, UNJUDGED
from judging.trial_sets.trial_set import (
    TRIALS_FILE,
    VERSION_COLUMNS,
    Keys,
    about_of_key,
    check_trials,
    key_path,
    read_about,
    read_trial_key,
    refused,
)
from serving.files.words import count
from serving.runs.run import Run, numbered_records
from serving.runs.run_json import is_changed
from serving.sets.kinds import is_asked
from serving.sets.stimulus_set import read_rows

if TYPE_CHECKING:
    import pandas as pd

TASK = "judgement"
OUR_ROWS = frozenset(
    {PEOPLE, ALL, "all agents", "people's answers", "human"}
)  # what our tables call rows that are no single machine
STIMULI = "stimuli.jsonl"  # a run's
PLAIN_COLUMNS = ("length", "place", "phase", "agent", "folder")  # columns of all verdicts that scores may be told by
AGES = ("age", "person.age")  # of who judged and who answered: numbers, where they are not groups
# No columns to score by.
OF_TRIALS = ("trial", "repeat_of", "version_of")  # columns with ids of trials
OUTCOMES = (
    "moves",
    "truth",
    "beside_truth",
    "verdict",
    "confidence",
    "reason",
    "catch",
    "swapped",
    "repeat_of",
    "version",
    "version_of",
    "block",
    "sample",
)


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A folder of verdicts with the key of its trials."""

    folder: Run
    """The run whose records are verdicts."""
    name: str
    """The folder's name; its path where two folders have the same name."""
    key: Path
    """The file of the key; ``import.json`` where verdicts are on other studies' stimuli."""
    prefix: str
    """What comes before trials' ids, which are the same numbers in several sets; "" where there is one set."""
    rows: Keys
    """The key's rows, by trial."""
    notes: Mapping[str, Any]
    """How the trial set was made; empty where verdicts are on other studies' stimuli."""
    trials: Sequence[Mapping[str, Any]]
    """What judges saw; none where verdicts are on other studies' stimuli."""


def open_verdicts(folders: Sequence[Path], key: Path | None = None) -> list[JudgedRun]:
    """The folders with their trials' keys, by default beside the trial sets. Raises InputError for folders without
    verdicts, and for keys or trials that do not fit or were changed."""
    runs = list(map(Run, folders))
    number = Counter(run.path.name for run in runs)
    names = [run.path.name if number[run.path.name] == 1 else str(run.path) for run in runs]
    sources = []
    for run in runs:
        elsewhere = _rows_elsewhere(run) if key is None else {}
        sources.append((run.path / "import.json" if elsewhere else _key_of(run, key), elsewhere))
    keys = list(dict.fromkeys(path.resolve() for path, _ in sources))
    judged = []
    for run, name, (path, elsewhere) in zip(runs, names, sources, strict=True):
        prefix = f"{keys.index(path.resolve()) + 1}:" if len(keys) > 1 else ""
        if elsewhere:
            judged.append(JudgedRun(run, name, path, prefix, elsewhere, {}, []))
        else:
            judged.append(JudgedRun(run, name, path, prefix, *_read_checked(run, path)))
    return [replace(run, rows=_told_apart(run.rows)) for run in judged]


def _told_apart(rows: Keys) -> Keys:
    """The rows of a key, in which no machine has the name of a row of our tables.

    Others may call a machine "people" or "all", and tables would have two rows of that name. Such a machine gets the
    prefix of published machines."""
    apart = {}
    for trial, row in rows.items():
        changed = dict(row)
        for truth, agent in (("truth", "agent"), ("beside_truth", "beside_agent")):
            is_ours = row[agent] in OUR_ROWS or str(row[agent]).startswith("human:")
            if row[truth] == "machine" and is_ours:
                changed[agent] = f"{PUBLISHED_PREFIX}{row[agent]}"
        apart[trial] = changed
    return apart


def holds_answers(folder: Path) -> bool:
    """Whether a run folder holds answers that may be judged, and no verdicts."""
    run = Run(folder)
    firsts = (record for name in [*run.agents(), *run.imports()] for record in islice(run.records(name), 1))
    return any(record["task"] != TASK for record in firsts)


def read_verdicts(runs: Sequence[JudgedRun]) -> pd.DataFrame:
    """The verdicts with their rows of the key: the table whose columns :mod:`judging.statistics.verdict_table` lists.
    Raises InputError for records that were changed, verdicts on unknown trials, and two verdicts on a trial."""
    import pandas as pd

    paths = [
        (run.folder.records_path(name), run.folder.meta["agents"].get(name, {}).get("records"))
        for run in runs
        for name in run.folder.agents()
    ]
    if changed := [path for path, checksum in paths if is_changed(path, checksum)]:
        problems = [Problem(str(path), None, None, "its checksum is not that in run.json") for path in changed]
        raise InputError("records are not those that the run wrote: restore the files, or judge again", problems)
    rows = [row for run in runs for row in _verdicts(run)]
    counts = Counter((row["judge"], row["trial"], row["sample"], row.get("part")) for row in rows)
    twice = sorted({judge for (judge, *_), number in counts.items() if number > 1})
    if twice:
        raise InputError(
            f"two verdicts of {', '.join(twice)} on the same trials: a run is given twice, or two runs have the judge; "
            "score them apart, or judge with a variant of another name (--config)"
        )
    if not rows:
        raise InputError(f"{', '.join(str(run.folder.path) for run in runs)}: no verdicts")
    table = pd.DataFrame.from_records(rows)
    if all(row.get("version") is None for row in rows):  # tables of sets without versions are as they always were
        table = table.drop(columns=list(VERSION_COLUMNS), errors="ignore")
    return table


def with_columns(table: pd.DataFrame, names: str) -> tuple[pd.DataFrame, list[str]]:
    """The table with the columns of ``by`` under the names that it has there, and these names; ``A*B`` has the values
    of both, and with ``agent`` those of machines alone. Raises InputError for what no verdict has."""
    listed = [name.strip(f" {AND}") for name in names.split(",") if name.strip(f" {AND}")]
    filled = [name for name in table.columns if table[name].notna().any()]
    column_of = {name.removeprefix("meta.").removeprefix("judge."): name for name in filled if "." in name}
    column_of |= {name: name for name in filled if "." not in name and name not in (*OUTCOMES, "part")}
    unknown = [part for name in listed for part in name.split(AND) if part not in column_of]
    if unknown:
        there = [name for name in PLAIN_COLUMNS if name in column_of]
        there += [name for name, column in column_of.items() if name != column]
        raise InputError(f"by: the verdicts have no {', '.join(unknown)}; they have {', '.join(there)}")
    table = table.assign(**{part: table[column_of[part]] for name in listed for part in name.split(AND)})
    for name in AGES:
        if name in table.columns:
            table[name] = _as_numbers(table[name])
    for name in listed:
        if AND in name:
            factors = name.split(AND)
            texts = [table[part].astype(str) for part in factors]
            is_known = table[factors].notna().all(axis=1) & ((table["truth"] == "machine") | ("agent" not in factors))
            table[name] = texts[0].str.cat(texts[1:], sep=BOTH).where(is_known)
    return table, listed


def _as_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of texts as numbers, where each is one; tables have "31" for an age. Groups such as "21-25" stay."""
    import pandas as pd

    known = column.dropna()
    numbers = pd.to_numeric(known, errors="coerce")
    if numbers.isna().any():
        return column
    as_numbers = {}
    for value, number in zip(known, numbers, strict=True):
        as_numbers[value] = int(number) if number == int(number) else float(number)
    return pd.Series([as_numbers.get(value) for value in column], column.index, dtype=object)


def read_answers(runs: Sequence[JudgedRun], *, in_versions: bool = False) -> list[dict[str, Any]]:
    """The judged trials, each once, as the answers were drawn: without catch trials and repeats, and without other
    versions of answers unless ``in_versions``."""
    answers: dict[str, dict[str, Any]] = {}
    for run in runs:
        for trial in run.trials:
            row = run.rows[trial["id"]]
            if "answer" not in trial or row["catch"] or row["repeat_of"] is not None:
                continue
            first = row["version_of"]
            if first is not None and not in_versions:
                continue
            name = f"{run.prefix}{trial['id']}"
            answers[name] = {**trial, **row, "trial": name, "version_of": first and f"{run.prefix}{first}"}
    return list(answers.values())


def settings_of(runs: Sequence[JudgedRun]) -> dict[str, dict[str, Any]]:
    """The settings of each judge, from ``run.json``."""
    agents = [agent for run in runs for agent in run.folder.meta["agents"].items()]
    return {name: entry["settings"] for name, entry in agents if entry.get("settings")}


def single_cues(runs: Sequence[JudgedRun]) -> frozenset[str]:
    """The judges that go by one cue alone, by ``single_cue`` of ``run.json``.

    Runs of version 0.2 have no such field. There it is a judge with a setting ``cue``, as all these judges had."""
    agents = [agent for run in runs for agent in run.folder.meta["agents"].items()]
    return frozenset(name for name, entry in agents if entry.get("single_cue", "cue" in (entry.get("settings") or {})))


def further_verdicts(table: pd.DataFrame) -> list[str]:
    """A sentence on people's further verdicts on the same trials, where there are any.

    The first alone counts. Many under one name are often several people, whom an import without names took for one."""
    further = table[(table["sample"] > 0) & (table["judge_kind"] == "human")]
    if further.empty:
        return []
    judges = sorted(further["judge"].unique())
    named = count(len(judges), "person", "people")
    sentence = (
        f"{count(len(further), 'verdict')} of {named} are further ones on the same trials and count only in "
        "samples.csv; if rows of practice or of other pages were imported, import the file again without them "
        "(`import --rows`)"
    )
    nameless = [judge for judge in judges if judge in NAMELESS]
    if nameless:
        sentence += f"; {', '.join(nameless)} may be several people: import the file again, with their names"
    return [sentence]


def _key_of(folder: Run, key: Path | None) -> Path:
    if not (folder.path / STIMULI).is_file():
        if key is not None:
            return key
        raise InputError(f"{folder.path} does not hold the trials: give the key beside them, TRIALS.key.csv, as key")
    if any(row["task"] != TASK for row in islice(folder.stimuli(), 1)):
        raise InputError(f"{folder.path} holds no verdicts: `turinglike judge` writes them")
    places = _set_folders(folder)
    path = key or next(filter(Path.is_file, map(key_path, places)), key_path(places[-1]) if places else None)
    if path is None:
        raise InputError(f"{folder.path} does not say which trials it judges; give their key as key")
    return path


def _rows_elsewhere(folder: Run) -> dict[str, dict[str, Any]]:
    """Rows of a key, rebuilt from ``raw["truth"]`` of imported verdicts on other studies' stimuli; {} for any other
    run.

    Such verdicts name no trial of ours. Their stimulus stands for the trial. :mod:`judging.statistics.verdict_table`
    says what the columns mean."""
    rows: dict[str, dict[str, Any]] = {}
    if folder.has_stimuli():
        return rows
    for name in folder.imports():
        for record in folder.latest(name):
            raw = record["raw"]
            if record["task"] != TASK or not isinstance(raw, dict) or "truth" not in raw:
                return {}
            beside = {"human": "machine", "machine": "human"}[raw["truth"]] if raw["pair"] else None
            same = {name: raw[name] for name in ("truth", "agent", "stimulus")}
            beside_it = {"beside_truth": beside, "beside_agent": raw["agent"] if raw["pair"] else None}
            none = {"catch": False, "swapped": False, "length": None, "turns": None}
            none |= dict.fromkeys(("repeat_of", "version", "version_of", "block"))
            rows[record["stimulus"]] = {"trial": record["stimulus"], "asked": ELSEWHERE, **same, **beside_it, **none}
    return rows


def _set_folders(folder: Run) -> list[Path]:
    source = folder.meta["set"]
    if not source.get("source"):
        return []
    there = Path(source.get("root") or Path(source["source"]).parent)
    return [there, folder.path.parent / there.name]


def _verdicts(run: JudgedRun) -> Iterator[dict[str, Any]]:
    """The rows of the table of verdicts, with the columns that :mod:`judging.statistics.verdict_table` lists.

    A row for each trial that a machine has still to judge comes after those of its verdicts."""
    omitted = ("delays", "objects")
    keys = {trial: {name: row[name] for name in row if name not in omitted} for trial, row in run.rows.items()}
    if run.prefix:
        for row in keys.values():
            row |= {name: row[name] and f"{run.prefix}{row[name]}" for name in (*OF_TRIALS, "block")}
    for name in [*run.folder.agents(), *run.folder.imports()]:
        entry = run.folder.meta["agents"].get(name)  # none of people, whose lists the run does not know
        left = {trial for trial, row in keys.items() if entry and is_asked(entry, (TASK, row["asked"]))}
        wrong: dict[tuple[Any, ...], Sequence[Any]] = {}
        for record in run.folder.latest(name):
            if record["task"] != TASK:
                continue
            trial = record["stimulus"]
            left.discard(trial)
            if trial not in keys:
                raise InputError(f"{run.key} has no trial {trial!r}, which {record['agent']} has judged")
            answer = record["answer"] or {}
            if record["status"] == "ok" or answer:
                try:
                    VerdictAnswer.model_validate(answer, strict=True)
                except ValidationError as error:
                    errors = error.errors(include_url=False, include_context=False)
                    wrong[record["agent"], trial, record["sample"]] = errors
                    continue
            raw = record["raw"] if isinstance(record["raw"], dict) else {}
            verdict = {
                "judge": record["agent"],
                "judge_kind": record["kind"],
                "sample": record["sample"],
                "verdict": "failed",
                "confidence": None,
                "reason": None,
                **answer,
                "margin": raw.get("margin"),
                "fold": raw.get("fold"),
            }
            if "moves" in raw:  # of sets with several versions of answers
                verdict["moves"] = raw["moves"]
            context = {**_of_study(record), **keys[trial], "folder": run.name}
            if "parts" not in raw:
                yield verdict | context
                continue
            for number, part in enumerate(raw["parts"]):  # on sentences, or by seeds
                own = {"part": number, "verdict": "machine" if part["margin"] > 0 else "human"}
                yield verdict | part | own | context
        if wrong:
            _refuse_answers(run.folder.records_path(name), wrong)
        for trial in sorted(left):
            yield {"judge": name, "judge_kind": "machine", "sample": 0, "verdict": UNJUDGED, **keys[trial]}


def _of_study(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a study says of a person's verdict; other verdicts have None.

    These are the rules that exclude it, its place among the judge's trials, the perceived sex, its phase, and what the
    judge answered to questions, or what an imported table tells about the judge."""
    raw = record["raw"] if record["kind"] == "human" and isinstance(record["raw"], dict) else {}
    rules = raw.get("rules")
    place = raw.get("trial_index")
    about_judge = [raw.get(name) for name in ("meta", "questions")]
    fields = {
        "excluded": " ".join(map(str, rules)) if isinstance(rules, list) and rules else None,
        "place": place if isinstance(place, int) else None,
        "sex": raw.get("sex"),
        "phase": FEEDBACK if raw.get("phase") == FEEDBACK else TEST,
    }
    for told in about_judge:
        if isinstance(told, dict):
            fields |= {f"judge.{name}": value for name, value in told.items()}
    return fields


def _refuse_answers(path: Path, wrong: Mapping[tuple[Any, ...], Sequence[Any]]) -> None:
    line_of = {}
    with path.open("rb") as file:
        for line, _, record in numbered_records(file, path):
            if record["task"] == TASK:
                line_of[record["agent"], record["stimulus"], record["sample"]] = line  # the last of a key counts
    problems = [
        Problem(str(path), line_of[key], f"answer.{'.'.join(map(str, error['loc']))}", str(error["msg"]))
        for key, errors in wrong.items()
        for error in errors
    ]
    raise refused("records that hold no verdict as judges give it", problems)


def _trials(folder: Run, key: Path) -> tuple[Path, Iterator[tuple[int | None, bytes]]]:
    """The file of the trials, the run's or else that beside the key, and its lines in canonical JSON."""
    if (copy := folder.path / STIMULI).is_file():
        return copy, enumerate(copy.read_bytes().splitlines(), start=1)
    source = key.with_name(key.name.removesuffix(".key.csv")) / TRIALS_FILE
    return source, ((row.line, row.canonical) for row in read_rows(source) if row.canonical is not None)


def _read_checked(folder: Run, path: Path) -> tuple[Keys, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    keys = read_trial_key(path)
    notes = read_about(path)
    for place in _set_folders(folder):  # if the key lies elsewhere
        notes = notes or read_about(key_path(place))
    if not notes and not about_of_key(path).exists():
        raise InputError(
            f"{path} cannot be trusted: {about_of_key(path).name}, which has its checksum, is not beside it; copy it "
            "from where `turinglike trials` wrote both"
        )
    if notes.get("key_sha256") != hashlib.sha256(path.read_bytes()).hexdigest():
        raise InputError(
            f"{path} cannot be trusted: its checksum is not that (key_sha256) in TRIALS.trials.json beside it; put "
            "both back as `turinglike trials` wrote them"
        )
    source, lines = _trials(folder, path)
    trials = [(number, orjson.loads(line), line) for number, line in lines]
    check_trials(source, ((number, trial["id"], line) for number, trial, line in trials), keys, path)
    rows = {trial: {name: row[name] for name in row if name != "sha256"} for trial, row in keys.items()}
    return rows, notes, [trial for _, trial, _ in trials]
