"""``turinglike score``: from verdicts to tables, tests, plots and one page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from agents import __version__
from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.stimuli import TASKS
from judging.agreement import agreement, krippendorff_alpha, said_by
from judging.answer_statistics import answer_statistics
from judging.caption_measures import caption_measures
from judging.figures import figures
from judging.ledger import ledger
from judging.measures import ALL, MISSING, REPETITIONS, summarize
from judging.published import beside_published, print_published
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
from judging.verdicts import SAID, read_answers, read_verdicts, settings_of
from serving.runs.output_paths import new_folder
from serving.terminal import plain_table, print_table

if TYPE_CHECKING:
    import pandas as pd

PACKAGES = ("matplotlib", "pandas", "sacrebleu", "scipy", "statsmodels")
MARKER = "scores.json"


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
    unknown = [name for name in by if name not in table.columns]
    if unknown:
        there = [name.removeprefix("meta.") for name in table.columns if name.startswith("meta.")]
        names = ", ".join(name.removeprefix("meta.") for name in unknown)
        raise InputError(f"--by: the verdicts have no {names}; they have {', '.join(['length', 'agent', *there])}")
    empty = [name.removeprefix("meta.") for name in by if table[name].isna().all()]
    if empty:
        raise InputError(f"--by: no verdict has a value of {', '.join(empty)}")
    if not table["verdict"].isin(SAID).any():
        told = ", ".join(f"{number:,} {why}" for why, number in table["verdict"].value_counts().items())
        raise InputError(f"no verdict can be scored: {told}")
    settings = settings_of(options.verdicts)
    found = measure(table, by, options.seed, settings)
    answers = read_answers(options.verdicts, options.key)
    found["statistics"] = answer_statistics(answers)
    found["captions"] = caption_measures(answers, found["scores"])
    found["published"] = beside_published(options.against, found["scores"], settings) if options.against else []
    found["methods"] = methods(table, options)
    with new_folder(options.out, marker=MARKER, force=options.force) as folder:
        _write(folder, table, found)
    _print(found["scores"])
    if options.against:
        print_published(found["published"], say)
    say(f"scores: {options.out / 'index.html'}")
    return 0


def measure(
    table: pd.DataFrame, by: Sequence[str], seed: int, settings: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """All figures, as plain values: ``scores``, ``by``, ``catch``, ``repeats``, ``agreement``, ``tests``, ``ledger``.
    ``settings`` are those of the judges (:func:`judging.verdicts.settings_of`)."""
    import pandas as pd

    main = table[~table["catch"] & table["repeat_of"].isna()]
    found: dict[str, Any] = {"scores": [], "by": [], "catch": [], "repeats": [], "agreement": {}, "tests": {}}
    found["ledger"] = []
    for asked in TASKS:
        some = main[main["asked"] == asked]
        if some.empty:
            continue
        agents = sorted(some["agent"][some["truth"] == "machine"].unique())
        for judge, verdicts in _judges(some):
            about = {"asked": asked, "judge": judge}
            found["scores"] += [{**about, **row} for row in summarize(verdicts, agents, seed)]
            for name in by:
                for value, part in verdicts.groupby(name):
                    told = {**about, "column": name.removeprefix("meta."), "value": value}
                    found["by"] += [{**told, **row} for row in summarize(part, agents, seed)]
        told_of = [row for row in found["scores"] if row["asked"] == asked]
        found["ledger"] += [{"asked": asked, **row} for row in ledger(some, told_of, settings or {}, seed)]
        # People are too many to be compared two by two, and few of them see the same trials: of them there is alpha.
        named = some[some["judge_kind"] != "human"]
        found["agreement"][asked] = {**agreement(named), "alpha": krippendorff_alpha(said_by(some).to_numpy())}
        found["tests"][asked] = {
            "against_chance": [
                {"judge": judge, **row} for judge, one in _judges(some) for row in against_chance(one, agents)
            ],
            "by_equations": [{"judge": judge, **row} for judge, one in _judges(some) for row in by_equations(one)],
            "between_judges": between_judges(named),
            "among_agents": [
                {"judge": judge, **row} for judge, one in _judges(some) for row in among_agents(one, agents)
            ],
            "between_values": corrected(
                [
                    {"judge": judge, **row}
                    for judge, one in _judges(some)
                    for name in by
                    for row in between_values(one, name)
                ]
            ),
            "between_agents": [
                {"judge": judge, **row} for judge, one in _judges(some) for row in between_agents(one, agents)
            ],
        }
    for (asked, judge), part in table[table["catch"]].groupby(["asked", "judge"]):
        given = part[part["verdict"].isin(SAID)]
        caught = float((given["verdict"] == "machine").mean()) if len(given) else None
        found["catch"].append({"asked": asked, "judge": judge, "trials": len(given), "caught": caught})
    again = table[table["repeat_of"].notna()]
    first = pd.merge(again, table, left_on=["judge", "repeat_of"], right_on=["judge", "trial"], suffixes=("", "_first"))
    for (asked, judge), part in first.groupby(["asked", "judge"]):
        alike = float((part["verdict"] == part["verdict_first"]).mean())
        found["repeats"].append({"asked": asked, "judge": judge, "trials": len(part), "alike": alike})
    return found


def _judges(some: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each judge's verdicts; of people, who are many, all together as one."""
    people = some[some["judge_kind"] == "human"]
    if not people.empty:
        yield "people", people
    for judge, verdicts in some[some["judge_kind"] != "human"].groupby("judge"):
        yield str(judge), verdicts


def methods(table: pd.DataFrame, options: ScoreOptions) -> str:
    """A paragraph that says how the figures came about, for a paper."""
    judges = ", ".join(sorted(table["judge"].unique())[:10])
    missing = int((~table["verdict"].isin(SAID)).sum())
    return (
        f"{len(table):,} verdicts of {table['judge'].nunique():,} judges ({judges}) on {table['trial'].nunique():,} "
        f"trials were scored with Turinglike {__version__}. {missing:,} verdicts are missing (refused, unparsed, "
        "failed, or not judged yet), are counted, and are part of no rate. Detectability is the mean of p(H|H), the "
        "share of people's "
        "answers said to be a person's, and p(M|M), the share of an agent's answers said to be a machine's; d' and the "
        "criterion use the log-linear correction (Hautus 1995). 95 % intervals are by three Poisson bootstraps of "
        f"{REPETITIONS:,} repetitions each, over judges, stimuli and verdicts, whose variances are combined as by "
        "Cameron, Gelbach and Miller (2011); the rates of a single judge have exact binomial intervals. Catch trials "
        "and repeated trials are part of no rate. p values are corrected by Holm and by Bonferroni within each table. "
        f"Seed {options.seed}."
    )


def _write(folder: Path, table: pd.DataFrame, found: dict[str, Any]) -> None:
    import pandas as pd

    table.to_csv(folder / "verdicts.csv", index=False)
    names = ("scores", "ledger", "by", "catch", "repeats", "statistics", "published")
    for name, rows in [*((name, found[name]) for name in names), ("captions", found["captions"].get("agents"))]:
        if rows:
            pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
    if is_installed("pyarrow"):
        table.astype({name: "string" for name in table.columns if table[name].dtype == object}).to_parquet(
            folder / "verdicts.parquet", index=False
        )
    (folder / MARKER).write_bytes(
        orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
    )
    drawn = figures(found["scores"], [row["judge"] for row in found["ledger"] if row["is_cue"]])
    (folder / "figures").mkdir()
    for name, svg in drawn.items():
        (folder / "figures" / f"{name}.svg").write_text(svg, encoding="utf-8")
    (folder / "index.html").write_text(page(found, drawn), encoding="utf-8")


def _print(scores: Sequence[dict[str, Any]]) -> None:
    shown = plain_table("task", "judge", "agent", "p(H|H)", "p(M|M)", "detectability", "95 %", "d'", "c", "missing")
    for row in scores:
        missing = sum(row[why] for why in MISSING)
        agent = "all agents" if row["agent"] == ALL else row["agent"]
        interval = f"{row['detectability_low']:.2f} to {row['detectability_high']:.2f}"
        rates = [_figure(row[name]) for name in ("p_human", "p_machine", "detectability")]
        others = [_figure(row[name]) for name in ("dprime", "criterion")]
        shown.add_row(row["asked"], row["judge"], agent, *rates, interval, *others, str(missing))
    print_table(shown)


def _figure(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # no -0.00
