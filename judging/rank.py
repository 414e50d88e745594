"""``turinglike rank``: judges and agents of one or more studies on a common scale."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.stimuli import TASKS
from judging.figures import BAND, HUMAN, MACHINE, TASK_NAMES, svg, width_for
from judging.jackknife import Floats
from judging.tables import NO_FIGURE, Estimate, Table, as_json
from judging.trial_set import VERDICTS
from judging.verdicts import ELSEWHERE, PEOPLE, counted, open_verdicts, read_verdicts, settings_of
from serving.runs.output_paths import new_folder

if TYPE_CHECKING:
    import pandas as pd

    from judging.rank_model import Fit

FORM, RANKING_FILE = "turinglike.ranking/1", "ranking.json"
NOT_CONVERGED = 1  # exit code
MOST = 40  # judges in the figure


@dataclass(frozen=True, slots=True)
class RankedAgent:
    """``humanness`` is less d': 0 as people, negative where judges tell the agent from them. ``right`` is the share of
    verdicts that are, and ``predicted`` what the model expects on the same trials; without humanness it is people."""

    task: str
    agent: str
    verdicts: int
    judges: int
    stimuli: int
    humanness: Estimate
    detectability: Estimate
    right: float | None
    predicted: Estimate


@dataclass(frozen=True, slots=True)
class RankedJudge:
    """``skill`` is the judge's d' for the mean agent; ``criterion`` positive with a bias to "human"."""

    task: str
    judge: str
    verdicts: int
    skill: Estimate
    criterion: Estimate


@dataclass(frozen=True, slots=True)
class Convergence:
    task: str
    verdicts: int
    draws: int
    rhat: float
    ess: int
    divergent: int
    is_converged: bool


def rank(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Run the command; returns its exit code. Raises TuringlikeError."""
    for name in ("matplotlib", "numpyro", "pandas"):
        if not is_installed(name):
            raise UnavailableError(f"the package {name} is not installed: pip install 'turinglike[rank]'")
    old = _read_prior(options.prior) if options.prior else {"verdicts": [], "tasks": {}}
    runs = open_verdicts(options.verdicts, options.key)
    table = read_verdicts(runs)
    of_tasks, refusals = _of_tasks(table, {name for name, chosen in settings_of(runs).items() if "cue" in chosen})
    if not of_tasks:
        raise InputError(refusals[0] if refusals else "no verdict on a single answer counts")
    digests = [_digest(part) for verdicts in of_tasks.values() for _, part in verdicts.groupby("folder")]
    if set(digests) & set(old["verdicts"]):
        raise InputError(f"{options.prior} knows these verdicts already: give new ones alone")
    for reason in refusals:
        say(f"not ranked: {reason}")
    from judging.rank_model import design, fit

    agents, judges, checks = list[RankedAgent](), list[RankedJudge](), list[Convergence]()
    tasks: dict[str, Any] = dict(old["tasks"])
    for task, verdicts in of_tasks.items():
        say(f"{TASK_NAMES[task].lower()}: {len(verdicts):,} verdicts of {verdicts['judge'].nunique():,} judges")
        result = fit(design(verdicts, old["tasks"].get(task)))
        checks.append(Convergence(task, len(verdicts), result.draws, result.rhat, int(result.ess), result.divergent,
                                  result.is_converged))  # fmt: skip
        agents += _agents(task, verdicts, result)
        judges += _judges(task, verdicts, result)
        tasks[task] = result.posterior
    Table(checks).grid(
        {"task": "task", "draws": "draws", "R-hat": "rhat", "ESS": "ess", "divergent": "divergent"}
    ).print()
    if failed := [check.task for check in checks if not check.is_converged]:
        say(f"{', '.join(failed)}: the model did not converge, so there is no figure; more judges or stimuli help")
        return NOT_CONVERGED
    ranked, skilled = Table(agents), Table(judges)
    ranked.grid({"task": "task", "agent": "agent", "humanness": "humanness", "detectability": "detectability",
                 "verdicts": "verdicts", "right": "right", "predicted": "predicted"}).print()  # fmt: skip
    skilled.grid("task judge skill criterion verdicts").print()
    if options.out is not None:
        values = {"form": FORM, "agents": ranked, "judges": skilled, "convergence": Table(checks)}
        values |= {"verdicts": [*old["verdicts"], *digests], "tasks": tasks}
        with new_folder(options.out, marker=RANKING_FILE, force=options.force) as folder:
            ranked.write_csv(folder / "agents.csv")
            skilled.write_csv(folder / "judges.csv")
            written = orjson.dumps(as_json(values), option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
            (folder / RANKING_FILE).write_bytes(written)
            (folder / "ranking.svg").write_text(svg(partial(_caterpillar, ranked, skilled)), encoding="utf-8")
        say(f"ranking: {options.out / 'ranking.svg'}")
    return 0


def _read_prior(path: Path) -> dict[str, Any]:
    """Raises InputError for what is no ranking."""
    file = path / RANKING_FILE if path.is_dir() else path
    try:
        values = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read as a ranking: {error}") from error
    if not isinstance(values, dict) or values.get("form") != FORM:
        raise InputError(f"{file}: form: must be {FORM!r}, as `turinglike rank --out` writes it")
    return values


def _of_tasks(table: pd.DataFrame, cues: Collection[str]) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Of each task that can be ranked each judge's first verdict on each single answer, without those of judges that go
    by a cue; why others cannot."""
    table = counted(table[table["excluded"].isna() & (table["sample"] == 0) & table["verdict"].isin(VERDICTS)])
    table = table[~table["catch"] & table["repeat_of"].isna() & table["beside_truth"].isna()]
    table = table[~table["judge"].isin(cues)].drop_duplicates(["judge", "trial"])
    of_tasks, refusals = {}, []
    for task in (*TASKS, ELSEWHERE):
        verdicts = table[table["asked"] == task].reset_index(drop=True)
        missing = set(VERDICTS) - set(verdicts["truth"])
        if len(verdicts) and missing:
            whose = {"human": "a person's", "machine": "a machine's"}[missing.pop()]
            refusals.append(f"{TASK_NAMES[task].lower()}: no verdict is on {whose} answer, so nothing can be compared")
        elif verdicts["judge"].nunique() == 1:
            judge = verdicts["judge"].iloc[0]
            refusals.append(
                f"{TASK_NAMES[task].lower()}: of judges that read answers {judge} alone has judged; a scale wants two"
            )
        elif len(verdicts):
            of_tasks[task] = verdicts
    return of_tasks, refusals


def _digest(verdicts: pd.DataFrame) -> str:
    rows = sorted(zip(*(verdicts[name] for name in ("judge", "agent", "stimulus", "verdict")), strict=True))
    return hashlib.sha256(orjson.dumps(rows)).hexdigest()


def _agents(task: str, verdicts: pd.DataFrame, result: Fit) -> list[RankedAgent]:
    """People first, then by humanness; agents of the prior, too."""
    rows = []
    for at, agent in enumerate([PEOPLE, *result.names["agents"]]):
        part = verdicts[verdicts["truth"] == "human"] if at == 0 else verdicts[verdicts["agent"] == agent]
        counts = len(part), int(part["judge"].nunique()), int(part["stimulus"].nunique())
        figures = (NO_FIGURE, NO_FIGURE)
        if at:
            figures = _estimate(result.humanness[:, at - 1]), _estimate(result.detectability[:, at - 1])
        right = float((part["verdict"] == part["truth"]).mean()) if len(part) else None
        predicted = _estimate(result.right[:, at]) if len(part) else NO_FIGURE
        rows.append(RankedAgent(task, agent, *counts, *figures, right, predicted))
    return [rows[0], *sorted(rows[1:], key=lambda row: -row.humanness.value)]


def _judges(task: str, verdicts: pd.DataFrame, result: Fit) -> list[RankedJudge]:
    number = verdicts["judge"].value_counts()
    rows = [
        RankedJudge(task, judge, int(number[judge]), _estimate(result.skill[:, at]), _estimate(result.criterion[:, at]))
        for at, judge in enumerate(result.names["judges"])
    ]
    return sorted(rows, key=lambda row: -row.skill.value)


def _estimate(draws: Floats) -> Estimate:
    low, high = np.quantile(draws, (0.025, 0.975))
    return Estimate(float(draws.mean()), float(low), float(high))


def _caterpillar(agents: Table[RankedAgent], judges: Table[RankedJudge], figure: Any) -> None:
    """Humanness of agents above, skill of judges below, each with its interval, in their order; of more judges than
    ``MOST`` so many, evenly."""
    of_agents = [row for row in agents if row.agent != PEOPLE]
    drawn = [judges.data[at] for at in np.unique(np.linspace(0, len(judges) - 1, MOST).round().astype(int))]
    panels = [("humanness (0: as people)", [(row.agent, row.humanness) for row in of_agents], MACHINE),
              ("judges' skill (d'; 0: chance)", [(row.judge, row.skill) for row in drawn], HUMAN)]  # fmt: skip
    figure.set_size_inches(
        width_for([name for _, rows, _ in panels for name, _ in rows]), 1.6 + 0.22 * len(of_agents + drawn)
    )
    axes = figure.subplots(2, 1, height_ratios=[len(rows) + 0.5 for _, rows, _ in panels])
    for axis, (label, rows, colour) in zip(axes, panels, strict=True):
        value, low, high = np.array([(of.value, of.low, of.high) for _, of in rows]).T
        style = {"color": colour, "marker": "o", "markersize": 4, "linestyle": "none", "elinewidth": 1.3}
        axis.errorbar(value, range(len(rows)), xerr=[value - low, high - value], **style)
        axis.axvline(0, color=BAND, linewidth=1)
        axis.set(ylim=(len(rows) - 0.5, -0.5), xlabel=label)
        axis.set_yticks(range(len(rows)), [name for name, _ in rows])
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
