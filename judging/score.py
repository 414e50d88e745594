"""``turinglike score``: from verdicts to tables, tests, plots and one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.stimuli import SHORT, TASKS
from judging.agreement import agreement, krippendorff_alpha, said_by
from judging.answer_statistics import answer_statistics
from judging.caption_measures import caption_measures
from judging.figures import figures
from judging.ledger import ledger
from judging.measures import ALL, MISSING, summarize
from judging.methods import methods
from judging.paper_judges import instead
from judging.pass_rate import pass_rates, words_per_message
from judging.published import CLASSIFIER, beside_published, kind, print_published
from judging.scores_page import page
from judging.significance import (
    against_chance,
    among_agents,
    between_agents,
    between_judges,
    between_values,
    by_equations,
    corrected,
)
from judging.trial_set import read_about
from judging.verdicts import SAID, by_judge, keys_of, read_answers, read_verdicts, settings_of
from serving.runs.csv_tables import write_rows
from serving.runs.output_paths import new_folder
from serving.terminal import plain_table, print_table

if TYPE_CHECKING:
    import pandas as pd

PACKAGES = ("matplotlib", "pandas", "sacrebleu", "sklearn", "statsmodels")
MARKER = "scores.json"
# No columns to score by.
OUTCOMES = ("truth", "beside_truth", "verdict", "confidence", "reason", "catch", "swapped", "repeat_of", "sample")


@dataclass(slots=True)
class ScoreOptions:
    """What the command line says."""

    verdicts: Sequence[Path]
    out: Path
    key: Path | None = None
    by: str | None = None
    against: str | None = None
    seed: int = 0
    force: bool = False


def score(options: ScoreOptions, say: Callable[[str], None]) -> int:
    """Run the command; returns its exit code. Raises TuringlikeError."""
    for name in PACKAGES:
        if not is_installed(name):
            raise UnavailableError(f"the package {name} is not installed: pip install 'turinglike[judging]'")
    table = read_verdicts(options.verdicts, options.key)
    by = [name.strip() for name in (options.by or "").split(",") if name.strip()]
    by = [name if name in table.columns else f"meta.{name}" for name in by]
    unknown = [name for name in by if name not in table.columns or name in OUTCOMES]
    if unknown:
        there = [name.removeprefix("meta.") for name in table.columns if name.startswith("meta.")]
        names = ", ".join(name.removeprefix("meta.") for name in unknown)
        raise InputError(f"--by: the verdicts have no {names}; they have {', '.join(['length', 'agent', *there])}")
    empty = [name.removeprefix("meta.") for name in by if table[name].isna().all()]
    if empty:
        raise InputError(f"--by: no verdict has a value of {', '.join(empty)}")
    if not table["verdict"].isin(SAID).any():
        counts = ", ".join(f"{number:,} {why}" for why, number in table["verdict"].value_counts().items())
        raise InputError(f"no verdict can be scored: {counts}")
    if len(options.verdicts) > 1:
        say(_common(table))
    excluded = table["excluded"].value_counts()
    counted = table[table["excluded"].isna()]
    if not counted["verdict"].isin(SAID).any():
        raise InputError("the study's rules exclude every verdict; `turinglike study status` says which and when")
    settings = settings_of(options.verdicts)
    scores = measure(counted, by, options.seed, settings) | {"catch": catch_rates(table)}
    answers = read_answers(options.verdicts, options.key)
    if scores["pairs"]:
        scores["pairs"]["words"] = words_per_message(answers)
    answers = [answer for answer in answers if answer["beside_truth"] is None]
    scores["statistics"] = answer_statistics(answers)
    scores["captions"] = caption_measures(answers, scores["scores"])
    scores["instead"] = {
        asked: {judge: list(instead("2025", asked, settings[judge])) for judge in judges}
        for asked, judges in _classifiers(scores["scores"], settings).items()
    }
    scores["published"] = beside_published(options.against, scores["scores"], settings) if options.against else []
    sets = [read_about(path) for path in keys_of(options.verdicts, options.key)]
    scores["methods"] = methods(table, settings, sets, options.seed)
    with new_folder(options.out, marker=MARKER, force=options.force) as folder:
        _write(folder, table, scores)
    _print(scores["scores"])
    _print_pairs(scores["pairs"])
    if len(excluded):
        counts = ", ".join(f"{rules.replace(' ', ' and ')} {number:,}" for rules, number in excluded.items())
        say(f"{len(counted):,} of {len(table):,} verdicts count; excluded by the study's rules: {counts}")
    if options.against:
        print_published(scores["published"], say)
    say(f"scores: {options.out / 'index.html'}")
    return 0


def measure(
    table: pd.DataFrame, by: Sequence[str], seed: int, settings: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """All figures, as plain values: ``scores``, ``by``, ``repeats``, ``samples``, ``agreement``, ``tests``, ``ledger``,
    and of ``pairs`` of conversations :func:`judging.pass_rate.pass_rates`. Of several verdicts of a judge on a trial
    the first counts. ``settings`` are those of the judges (:func:`judging.verdicts.settings_of`)."""
    settings = settings or {}
    scores: dict[str, Any] = {"scores": [], "by": [], "repeats": [], "agreement": {}, "tests": {}}
    scores["samples"] = _alike(table, table[table["sample"] > 0], "trial")
    table = table[table["sample"] == 0]  # a judge's further verdicts on a trial are no further trials
    main = table[~table["catch"] & table["repeat_of"].isna()]
    pairs = main[main["beside_truth"].notna()]
    scores["pairs"] = pass_rates(pairs, by, seed) if len(pairs) else {}
    main = main[main["beside_truth"].isna()]
    scores["ledger"] = []
    for asked in TASKS:
        of_task = main[main["asked"] == asked]
        if of_task.empty:
            continue
        agents = sorted(of_task["agent"][of_task["truth"] == "machine"].unique())
        for judge, verdicts in by_judge(of_task):
            about = {"asked": asked, "judge": judge}
            scores["scores"] += [{**about, **row} for row in summarize(verdicts, agents, seed)]
            for name in by:
                for value, part in verdicts.groupby(name):
                    about_value = {**about, "column": name.removeprefix("meta."), "value": value}
                    scores["by"] += [{**about_value, **row} for row in summarize(part, agents, seed)]
        task_scores = [row for row in scores["scores"] if row["asked"] == asked]
        scores["ledger"] += [{"asked": asked, **row} for row in ledger(of_task, task_scores, settings, seed)]
        # People are too many to be compared two by two, and few of them see the same trials: of them there is alpha.
        named = of_task[of_task["judge_kind"] != "human"]
        scores["agreement"][asked] = {**agreement(named), "alpha": krippendorff_alpha(said_by(of_task).to_numpy())}
        scores["tests"][asked] = {
            "against_chance": [
                {"judge": judge, **row, **_of_trained(row, settings.get(judge, {}))}
                for judge, of_judge in by_judge(of_task)
                for row in against_chance(of_judge, agents)
            ],
            "by_equations": [
                {"judge": judge, **row} for judge, of_judge in by_judge(of_task) for row in by_equations(of_judge)
            ],
            "between_judges": between_judges(named),
            "among_agents": [
                {"judge": judge, **row}
                for judge, of_judge in by_judge(of_task)
                for row in among_agents(of_judge, agents)
            ],
            "between_values": corrected(
                [
                    {"judge": judge, **row}
                    for judge, of_judge in by_judge(of_task)
                    for name in by
                    for row in between_values(of_judge, name)
                ]
            ),
            "between_agents": [
                {"judge": judge, **row}
                for judge, of_judge in by_judge(of_task)
                for row in between_agents(of_judge, agents)
            ],
        }
    scores["repeats"] = _alike(table, table[table["repeat_of"].notna()], "repeat_of")
    return scores


def _common(table: pd.DataFrame) -> str:
    judged = {judge: set(part["trial"]) for judge, part in by_judge(table)}
    common = len(set.intersection(*judged.values()))
    return f"{common:,} of {table['trial'].nunique():,} trials have verdicts of all of {', '.join(judged)}"


def catch_rates(table: pd.DataFrame) -> list[dict[str, Any]]:
    """How many catch trials, and swapped scanpaths, were told for what they are (``right``), by task, kind and truth:
    by all people together, whom rules exclude too, and by each other judge (2025 paper, Table S3)."""
    catch = table[table["catch"] & (table["sample"] == 0) & table["verdict"].isin(SAID)]
    return [
        {
            "asked": asked,
            "kind": "swapped" if swapped else "catch",
            "truth": truth,
            "judge": judge,
            "judges": int(part["judge"].nunique()),
            "trials": len(part),
            "right": float((part["verdict"] == part["truth"]).mean()),
        }
        for (asked, swapped, truth), every in catch.groupby(["asked", "swapped", "truth"])
        for judge, part in by_judge(every)
    ]


def _classifiers(
    scores: Sequence[Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[str]]:
    """By task the judges that stand where the papers had classifiers."""
    judges: dict[str, list[str]] = {}
    for row in scores:
        if row["agent"] == ALL and kind(row["judge"], settings) == CLASSIFIER:
            judges.setdefault(row["asked"], []).append(row["judge"])
    return judges


def _alike(table: pd.DataFrame, again: pd.DataFrame, first: str) -> list[dict[str, Any]]:
    """How often a judge's verdicts ``again`` are those of the first time, whose trial the column ``first`` names."""
    import pandas as pd

    before = table[(table["sample"] == 0) & table["verdict"].isin(SAID)]
    again = again[again["verdict"].isin(SAID)]
    both = pd.merge(again, before, left_on=["judge", first], right_on=["judge", "trial"], suffixes=("", "_first"))
    is_alike = both["verdict"] == both["verdict_first"]
    return [
        {"asked": asked, "judge": judge, "verdicts": len(part), "alike": float(is_alike[part.index].mean())}
        for (asked, judge), part in both.groupby(["asked", "judge"])
    ]


def _of_trained(row: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, str]:
    """What is left out of a fold is a little likelier to be told wrongly."""
    is_below = "split" in settings and row["direction"] == "below chance"
    return {"direction": "below 0.5, which says nothing of a trained judge"} if is_below else {}


def _write(folder: Path, table: pd.DataFrame, scores: dict[str, Any]) -> None:
    import pandas as pd

    _write_csv(folder / "verdicts.csv", table)
    names = ("scores", "ledger", "by", "catch", "repeats", "samples", "statistics", "published")
    more = {"captions": scores["captions"].get("agents")}
    if scores["pairs"]:
        more |= {"pass_rates": scores["pairs"]["rates"], "pass_rates_by": scores["pairs"]["by"]}
        more |= {"words": scores["pairs"]["words"]}
    for name, rows in [*((name, scores[name]) for name in names), *more.items()]:
        if rows:
            _write_csv(folder / f"{name}.csv", pd.DataFrame(rows))
    if is_installed("pyarrow"):
        table.astype({name: "string" for name in table.columns if table[name].dtype == object}).to_parquet(
            folder / "verdicts.parquet", index=False
        )
    (folder / MARKER).write_bytes(
        orjson.dumps(scores, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
    )
    cues = [row["judge"] for row in scores["ledger"] if row["is_cue"]]
    drawn = figures(scores["scores"], cues, scores["pairs"].get("rates", ()))
    (folder / "figures").mkdir()
    for name, svg in drawn.items():
        (folder / "figures" / f"{name}.svg").write_text(svg, encoding="utf-8")
    (folder / "index.html").write_text(page(scores, drawn), encoding="utf-8")


def _write_csv(path: Path, table: pd.DataFrame) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, table.columns, table.itertuples(index=False, name=None))


def _print(scores: Sequence[dict[str, Any]]) -> None:
    """The scores as a table, that of all agents together where there are several."""
    if not scores:
        return
    short = {task: name for name, task in SHORT.items()}
    agents = Counter((row["asked"], row["judge"]) for row in scores)
    missing = {id(row): sum(row[why] for why in MISSING) for row in scores}
    more = ["missing"] if any(missing.values()) else []
    table = plain_table("task", "judge", "agent", "p(H|H)", "p(M|M)", "detectability", "d'", "c", *more)
    for row in scores:
        if row["agent"] == ALL and agents[row["asked"], row["judge"]] == 2:
            continue
        rates = [_figure(row[name]) for name in ("p_human", "p_machine")]
        detected, low, high = (_figure(row[f"detectability{end}"]) for end in ("", "_low", "_high"))
        table.add_row(
            short.get(row["asked"], row["asked"]),
            row["judge"],
            "all agents" if row["agent"] == ALL else row["agent"],
            *rates,
            detected if low == "–" else f"{detected} ({low} to {high})",
            *(_figure(row[name]) for name in ("dprime", "criterion")),
            *([str(missing[id(row)])] if more else []),
        )
    print_table(table)


def _print_pairs(pairs: Mapping[str, Any]) -> None:
    if not pairs:
        return
    table = plain_table("judge", "agent", "mode", "turns", "pass rate", "pairs", "judges", "verdicts", "interval")
    for row in pairs["rates"]:
        rate, low, high = (f"{row[f'pass_rate{end}']:.2f}" for end in ("", "_low", "_high"))
        numbers = [f"{row[name]:,}" for name in ("pairs", "judges", "verdicts")]
        agent = "all agents" if row["agent"] == ALL else row["agent"]
        cell = [str(row["mode"] or "–"), str("–" if row["turns"] is None else row["turns"])]
        rate = f"{rate} ({low} to {high})" if row["verdicts"] else "–"
        table.add_row(row["judge"], agent, *cell, rate, *numbers, row["interval"])
    print_table(table)


def _figure(value: float) -> str:
    return "–" if value != value else f"{round(value, 2) + 0.0:.2f}"  # no -0.00
