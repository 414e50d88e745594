"""``turinglike score``: from verdicts to tables, tests, plots and a page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.stimuli import TASKS
from judging.judges.papers_classifiers import differences_from_paper
from judging.scores.conclusions import SCOPE, Conclusion, conclude, sentences
from judging.scores.figures import TASK_NAMES, figures, who_judged, without_repetition
from judging.scores.page import methods, page
from judging.scores.papers.published import CLASSIFIER, beside_published, kind
from judging.scores.papers.significance import Agreement, agreement, all_tests
from judging.scores.scores import BOUNDS, Alike, CatchRate, PerceivedSex, Scores
from judging.scores.verdicts import (
    further_verdicts,
    holds_answers,
    open_verdicts,
    read_answers,
    read_verdicts,
    settings_of,
)
from judging.statistics.answer_statistics import answer_statistics, caption_measures
from judging.statistics.by_margin import Ranking, rankings
from judging.statistics.contrasts import AgainstPeople, Test
from judging.statistics.jackknife import rates
from judging.statistics.measures import (
    ALL,
    LOG_LINEAR,
    Correction,
    Score,
    SettingsByJudge,
    Worth,
    clusters,
    ledger,
    summarize,
)
from judging.statistics.pass_rate import pass_rates, words_per_message
from judging.statistics.populations import read_populations
from judging.statistics.populations import sentences as population_sentences
from judging.statistics.tables import Estimate, Table, as_json
from judging.statistics.verdict_table import AND, BOTH, ELSEWHERE, PEOPLE, by_judge, counted
from judging.trial_sets.same_rules import SameRules
from judging.trial_sets.trial_set import VERDICTS
from serving.files.csv_tables import write_rows
from serving.files.output_paths import new_folder

if TYPE_CHECKING:
    import pandas as pd

PACKAGES = ("matplotlib", "pandas", "sacrebleu", "sklearn", "statsmodels")
SCORES_FILE = "scores.json"
PLAIN = ("length", "place", "phase", "agent", "folder")  # columns of all verdicts that scores may be told by
DIGITS = 9  # of shares
# No columns to score by.
OUTCOMES = ("truth", "beside_truth", "verdict", "confidence", "reason", "catch", "swapped", "repeat_of", "sample")


def score(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Run the command; returns its exit code. Raises TuringlikeError."""
    for name in PACKAGES:
        if not is_installed(name):
            raise UnavailableError(f"the package {name} is not installed: pip install 'turinglike[judging]'")
    answered = [folder for folder in options.verdicts if holds_answers(folder)]
    judged = [folder for folder in options.verdicts if folder not in answered]
    if not judged and (options.by or options.key or options.against):
        raise InputError("--by, --key and --against go with verdicts, and these folders hold answers alone")
    if options.as_written and not answered:
        raise InputError("--as-written goes with answers, and these folders hold verdicts, whose trials are made")
    table, scores = _of_verdicts(options, judged) if judged else (None, Scores())
    rules = SameRules(as_written=options.as_written)
    scores.populations = read_populations(answered, rules)
    if answered and not scores.populations:
        raise InputError(f"{answered[0]}: no stimulus has answers of an agent and of two people")
    with new_folder(options.out, marker=SCORES_FILE, force=options.force) as folder:
        _write(folder, table, scores)
    for sentence in rules.sentences():
        say(sentence)
    _print(scores, say)
    if table is not None and (excluded := table["excluded"].value_counts()).any():
        counts = ", ".join(f"{rules.replace(' ', ' and ')} {number:,}" for rules, number in excluded.items())
        kept = int(table["excluded"].isna().sum())
        say(f"{kept:,} of {len(table):,} verdicts count; excluded by the study's rules: {counts}")
    if table is not None:
        for sentence in further_verdicts(table):
            say(sentence)
    if options.against:
        say(f"beside the paper's {len(scores.published):,} figures: {options.out / 'published.csv'}")
    say(f"scores: {options.out / 'index.html'}")
    return 0


def _of_verdicts(options: argparse.Namespace, folders: Sequence[Path]) -> tuple[pd.DataFrame, Scores]:
    """The verdicts in ``folders``, excluded ones too, and their scores."""
    runs = open_verdicts(folders, options.key)
    table = read_verdicts(runs)
    table, by = with_columns(table, options.by or "")
    if not table["verdict"].isin(VERDICTS).any():
        counts = ", ".join(f"{number:,} {why}" for why, number in table["verdict"].value_counts().items())
        raise InputError(f"no verdict can be scored: {counts}")
    kept = table[table["excluded"].isna()]
    if not kept["verdict"].isin(VERDICTS).any():
        raise InputError("the study's rules exclude every verdict; `turinglike study status` says which and when")
    settings = settings_of(runs)
    scores = compute_scores(kept, by, settings, options.bounds, options.dprime_correction)
    constant = [judge for judge, chosen in settings.items() if chosen.get("cue") == "constant"]  # which catches nothing
    scores.catch = catch_rates(table[~table["judge"].isin(constant)])
    answers = read_answers(runs)
    if scores.pairs is not None:
        scores.pairs.words = words_per_message(answers)
    answers = [answer for answer in answers if answer["beside_truth"] is None]
    scores.statistics = answer_statistics(answers)
    scores.captions = caption_measures(answers, scores.scores)
    for row in scores.scores.where(agent=ALL):
        if kind(row.judge, settings) == CLASSIFIER:
            differences = list(differences_from_paper("2025", row.task, settings[row.judge]))
            scores.instead.setdefault(row.task, {})[row.judge] = differences
    if options.against:
        scores.published = beside_published(options.against, scores.scores.data, settings)
    sets = {run.key.resolve(): run.about for run in runs}
    scores.methods = methods(table, settings, list(sets.values()), options.bounds, options.dprime_correction)
    return table, scores


def compute_scores(
    table: pd.DataFrame,
    by: Sequence[str],
    settings: SettingsByJudge | None = None,
    bounds: float = BOUNDS,
    correction: Correction = LOG_LINEAR,
) -> Scores:
    """The figures of verdicts that count, of several of a judge on a trial the first; ``bounds`` as in
    :func:`judging.statistics.contrasts.of_agents`, ``correction`` of d' and the criterion."""
    settings = settings or {}
    trained = {judge for judge, chosen in settings.items() if "split" in chosen}
    samples = _alike(table, table[table["sample"] > 0], "trial")
    table = table[table["sample"] == 0]  # a judge's further verdicts on a trial are no further trials
    repeats = _alike(table, table[table["repeat_of"].notna()], "repeat_of")
    main = table[~table["catch"] & table["repeat_of"].isna()]
    is_pair = main["beside_truth"].notna()
    pairs = pass_rates(main[is_pair], by, correction) if is_pair.any() else None
    main = main[~is_pair]
    if "phase" in main.columns and main["phase"].nunique() > 1 and "phase" not in by:
        by = [*by, "phase"]
    rows = list[Score]()
    by_columns = list[Score]()
    worth = list[Worth]()
    ranked = list[Ranking]()
    sexes = list[PerceivedSex]()
    agreements = dict[str, Agreement]()
    tests = dict[str, dict[str, Table[Test]]]()
    conclusions = dict[str, Table[Conclusion]]()
    for task in (*TASKS, ELSEWHERE):
        of_phases = main[main["asked"] == task]
        of_task = counted(of_phases)
        if of_task.empty:
            continue
        agents = sorted(of_task["agent"][of_task["truth"] == "machine"].unique())
        of_judges = []
        for judge, of_judge in by_judge(of_phases):
            verdicts = counted(of_judge)
            of_all = summarize(verdicts, agents, correction=correction)
            of_judges += [replace(row, task=task, judge=judge) for row in of_all]
            ranked += [replace(row, task=task, judge=judge) for row in rankings(verdicts)]
            sexes += perceived_sexes(task, judge, verdicts)
            for column in by:
                place: dict[str, Any] = {"task": task, "judge": judge, "column": column}
                whole = counted(of_judge, column)
                drawn = clusters(whole).drawn()
                for value, part in whole.groupby(column):
                    of_value = summarize(part, agents, drawn, correction)
                    by_columns += [replace(row, **place, value=value) for row in of_value]
        rows += of_judges
        worth += ledger(of_task, of_judges, settings)
        agreements[task] = agreement(of_task)
        kinds = all_tests(of_phases, agents, by, bounds)
        tests[task] = {name: Table(of_kind) for name, of_kind in kinds.items()}
        beside_people = [test for test in kinds["against_people"] if isinstance(test, AgainstPeople)]
        by_answers = [test for test in beside_people if "cue" not in settings.get(test.judge or "", {})]
        conclusions[task] = Table(conclude(of_judges, by_answers, trained, bounds))
    return Scores(
        Table(rows, omit=("column", "value")),
        Table(by_columns),
        Table(repeats),
        Table(samples),
        Table(worth),
        agreements,
        tests,
        conclusions,
        bounds,
        pairs,
        Table(ranked),
        Table(sexes),
        dprime_correction=correction,
    )


def perceived_sexes(task: str, judge: str, verdicts: pd.DataFrame) -> list[PerceivedSex]:
    """Of all speakers, of people and machines, and of those who were taken for either."""
    if "sex" not in verdicts.columns or (known := verdicts[verdicts["sex"].notna()]).empty:
        return []
    kinds = {"all": known["truth"].notna()}
    for column, word in (("truth", "{}"), ("verdict", "judged {}")):
        kinds |= {word.format(kind): known[column] == kind for kind in VERDICTS}
    result = rates((known["sex"] == "male").to_numpy(float), np.array(list(kinds.values())), clusters(known))
    ends = result.interval(np.arange(len(kinds))[:, None], np.ones(1))
    figures = np.array([result.value, *ends]).T.round(DIGITS).tolist()
    return [
        PerceivedSex(task, judge, of, int(number), Estimate(*of_kind))
        for of, number, of_kind in zip(kinds, result.number, figures, strict=True)
    ]


def catch_rates(table: pd.DataFrame) -> Table[CatchRate]:
    """By task, kind and truth, of all people together, excluded ones too, and of each other judge."""
    catch = table[table["catch"] & (table["sample"] == 0) & table["verdict"].isin(VERDICTS)]
    rows = []
    for (task, swapped, truth), verdicts in catch.groupby(["asked", "swapped", "truth"]):
        name = "swapped" if swapped else "catch"
        for judge, part in by_judge(verdicts):
            right = float((part["verdict"] == part["truth"]).mean())
            trials = int(part.groupby("judge")["trial"].nunique().sum())
            rows.append(CatchRate(task, name, truth, judge, int(part["judge"].nunique()), trials, right))
    return Table(rows)


def with_columns(table: pd.DataFrame, names: str) -> tuple[pd.DataFrame, list[str]]:
    """The table with the columns of ``--by`` under the names that it has there, and these names; ``A*B`` has the values
    of both, and with ``agent`` those of machines alone. Raises InputError for what no verdict has."""
    listed = [name.strip(f" {AND}") for name in names.split(",") if name.strip(f" {AND}")]
    columns = {name.removeprefix("meta.").removeprefix("judge."): name for name in table.columns if "." in name}
    columns |= {name: name for name in table.columns if "." not in name and name not in (*OUTCOMES, "part")}
    known = {name: column for name, column in columns.items() if table[column].notna().any()}
    unknown = [part for name in listed for part in name.split(AND) if part not in known]
    if unknown:
        there = [name for name in PLAIN if name in known]
        there += [name for name, column in known.items() if name != column]
        raise InputError(f"--by: the verdicts have no {', '.join(unknown)}; they have {', '.join(there)}")
    table = table.assign(**{part: table[known[part]] for name in listed for part in name.split(AND)})
    for name in listed:
        if AND in name:
            parts = name.split(AND)
            texts = [table[part].astype(str) for part in parts]
            is_known = table[parts].notna().all(axis=1) & ((table["truth"] == "machine") | ("agent" not in parts))
            table[name] = texts[0].str.cat(texts[1:], sep=BOTH).where(is_known)
    return table, listed


def _alike(table: pd.DataFrame, again: pd.DataFrame, first: str) -> list[Alike]:
    import pandas as pd

    before = table[(table["sample"] == 0) & table["verdict"].isin(VERDICTS)].drop_duplicates(["judge", "trial"])
    again = again[again["verdict"].isin(VERDICTS)].drop_duplicates(["judge", "trial", "sample"])
    both = pd.merge(again, before, left_on=["judge", first], right_on=["judge", "trial"], suffixes=("", "_first"))
    is_alike = both["verdict"] == both["verdict_first"]
    return [
        Alike(task, judge, len(part), float(is_alike[part.index].mean()))
        for (task, judge), part in both.groupby(["asked", "judge"])
    ]


def _write(folder: Path, table: pd.DataFrame | None, scores: Scores) -> None:
    if table is not None:
        with (folder / "verdicts.csv").open("w", encoding="utf-8", newline="") as file:
            write_rows(file, table.columns, table.itertuples(index=False, name=None))
    of_names = ((entry.name, getattr(scores, entry.name)) for entry in fields(scores))
    tables: dict[str, Table[Any]] = {name: value for name, value in of_names if isinstance(value, Table)}
    if scores.captions is not None:
        tables["captions"] = scores.captions.agents
    if scores.pairs is not None:
        tables |= {"pass_rates": scores.pairs.rates, "pass_rates_by": scores.pairs.by, "words": scores.pairs.words}
    for name, of_kind in tables.items():
        of_kind.write_csv(folder / f"{name}.csv")
    values = {name: {} if value is None else value for name, value in as_json(scores).items()}
    form = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    (folder / SCORES_FILE).write_bytes(orjson.dumps(values, option=form))
    cues = [row.judge for row in scores.ledger if row.is_cue]
    drawn = figures(scores, cues)
    if table is not None:
        drawn |= who_judged(table[table["excluded"].isna()])
    (folder / "figures").mkdir()
    for name, svg in drawn.items():
        (folder / "figures" / f"{name}.svg").write_text(svg, encoding="utf-8")
    (folder / "index.html").write_text(page(scores, drawn), encoding="utf-8")


def _print(scores: Scores, say: Callable[[str], None]) -> None:
    rows = [
        row
        for _, of_judge in groupby(scores.scores, key=lambda row: (row.task, row.judge))
        for row in without_repetition(of_judge)
    ]
    view = {
        "task": "task",
        "judge": "judge",
        "agent": "name",
        "p(H|H)": "p_human.value",
        "p(M|M)": "p_machine.value",
        "detectability": "detectability",
        "d'": "dprime.value",
        "c": "criterion.value",
    }
    if any(row.missing for row in rows):
        view["missing"] = "missing"
    Table(rows).grid(view).print()
    if scores.pairs is not None:
        view = {"judge": "judge", "agent": "name", "mode": "mode", "turns": "turns", "pass rate": "pass_rate"}
        scores.pairs.rates.grid(view | {name: name for name in ("pairs", "judges", "verdicts", "interval")}).print()
    for task, conclusions in scores.conclusions.items():
        for reasons in sentences(conclusions).values():
            say(" ".join(f"{headline} ({TASK_NAMES[task].lower()}): {why}." for headline, why in reasons))
    if any(row.judge == PEOPLE for conclusions in scores.conclusions.values() for row in conclusions):
        say(SCOPE)
    view_of_populations = "task agent measure people beside_people itself difference holm"
    scores.populations.grid(view_of_populations).print()
    for task in scores.populations.distinct("task"):
        for sentence in population_sentences(scores.populations.where(task=task)):
            say(f"{TASK_NAMES[task]}: {sentence}")
