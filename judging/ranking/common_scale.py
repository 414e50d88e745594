"""``turinglike rank``: judges and agents of one or more studies on a common scale."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.stimuli import TASKS
from judging.scores.figures import BAND, HUMAN, MACHINE, TASK_NAMES, label, svg, width_for, with_bars
from judging.scores.verdicts import open_verdicts, read_verdicts, settings_of
from judging.statistics.jackknife import Floats
from judging.statistics.tables import NO_FIGURE, Estimate, Table, as_json
from judging.statistics.verdict_table import ELSEWHERE, PEOPLE, counted
from judging.trial_sets.trial_set import VERDICTS
from serving.files.csv_tables import read_back, unguarded, write_rows
from serving.files.output_paths import check_new_folder, new_folder

if TYPE_CHECKING:
    import pandas as pd

    from judging.ranking.model import Fit

FORM = "turinglike.ranking/1"
RANKING_FILE = "ranking.json"
VERDICTS_FILE = "verdicts.csv"
KEPT = ("asked", "folder", "judge", "judge_kind", "trial", "stimulus", "truth", "agent", "verdict")  # of a verdict
BEFORE = "before: "  # in the names of an earlier ranking's folders, if these are not the same that have grown
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
    right: float
    predicted: Estimate


@dataclass(frozen=True, slots=True)
class RankedJudge:
    """``skill`` is the judge's d' for the mean agent; ``criterion`` positive with a bias to "human"."""

    task: str
    judge: str
    verdicts: int
    skill: Estimate
    criterion: Estimate


def rank(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Run the command; returns its exit code. Raises TuringlikeError."""
    for name in ("jax", "matplotlib", "numpyro", "pandas"):
        if not is_installed(name):
            raise UnavailableError(f"the package {name} is not installed: pip install 'turinglike[rank]'")
    if options.out is not None:
        check_new_folder(options.out, marker=RANKING_FILE, force=options.force)
    verdicts = _read(options, say)
    agents = list[RankedAgent]()
    judges = list[RankedJudge]()
    checks = dict[str, Mapping[str, float]]()
    for task in (*TASKS, ELSEWHERE):
        of_task = verdicts[verdicts["asked"] == task].reset_index(drop=True)
        name = TASK_NAMES[task].lower()
        number = of_task["judge"].nunique()
        if number > 1 and set(of_task["truth"]) == set(VERDICTS):
            from judging.ranking.model import LIMITS, fit

            say(f"{name}: {len(of_task):,} verdicts of {number:,} judges")
            result = fit(of_task)
            checks[task] = check = result.convergence
            say(
                f"{name}: R-hat {check['rhat']:.3f}, {check['ess']:,.0f} effective draws of {check['draws']:,}, "
                f"{check['divergent']:,} divergent"
            )
            if check["is_converged"]:
                agents += _agents(task, of_task, result)
                judges += _judges(task, of_task, result)
            else:
                say(f"{name} has no figure, as the model did not converge ({LIMITS}); more judges or stimuli help")
        elif number:
            say(f"{name} is not ranked: that takes two judges, and verdicts on people's and on machines' answers")
    if not checks:
        none = "no verdict counts: those of judges by a cue, on pairs and with feedback do not"
        raise InputError("nothing can be ranked" if len(verdicts) else none)
    ranked = Table(agents)
    skilled = Table(judges)
    ranked.grid("task agent humanness detectability verdicts right predicted").print()
    skilled.grid("task judge skill criterion verdicts").print()
    if agents and options.out is not None:
        values = {"form": FORM, "agents": ranked, "judges": skilled, "convergence": checks}
        with new_folder(options.out, marker=RANKING_FILE, force=options.force) as folder:
            ranked.write_csv(folder / "agents.csv")
            skilled.write_csv(folder / "judges.csv")
            with (folder / VERDICTS_FILE).open("w", encoding="utf-8", newline="") as file:
                write_rows(file, KEPT, verdicts[[*KEPT]].itertuples(index=False, name=None))
            (folder / "ranking.svg").write_text(svg(partial(_caterpillar, ranked, skilled)), encoding="utf-8")
            (folder / RANKING_FILE).write_bytes(orjson.dumps(as_json(values), option=orjson.OPT_APPEND_NEWLINE))
        say(f"ranking: {options.out / 'ranking.svg'}")
    return 0 if all(check["is_converged"] for check in checks.values()) else 1


def _read(options: argparse.Namespace, say: Callable[[str], None]) -> pd.DataFrame:
    """Each judge's first verdict on each single answer, without those of judges that go by a cue; with those of an
    earlier ranking, whose posterior they make this model's prior. Raises InputError."""
    import pandas as pd

    old = pd.DataFrame(columns=[*KEPT]) if options.prior is None else _earlier(options.prior)
    runs = open_verdicts(options.verdicts, options.key)
    table = read_verdicts(runs)
    table = counted(table[table["excluded"].isna() & (table["sample"] == 0) & table["verdict"].isin(VERDICTS)])
    table = table[~table["catch"].astype(bool) & table["repeat_of"].isna() & table["beside_truth"].isna()]
    cues = {name for name, chosen in settings_of(runs).items() if "cue" in chosen}
    table = table[~table["judge"].isin(cues)].drop_duplicates(["judge", "trial"])[[*KEPT]]
    table = table.map(lambda cell: read_back(cell) if isinstance(cell, str) else cell)  # as --prior will read it
    # What is known goes whatever its verdict: to go by that would select. People without a name have several answers.
    same = ["asked", "judge", "agent", "stimulus"]
    known, rows = (pd.MultiIndex.from_frame(of[same].assign(at=of.groupby(same).cumcount())) for of in (old, table))
    is_new = ~rows.isin(known)
    if options.prior is not None:
        if not is_new.any():
            raise InputError(f"{options.prior} has all these verdicts already")
        say(f"{len(old):,} verdicts of {options.prior}; {(~is_new).sum():,} of {len(is_new):,} here are among them")
    has_grown = old["folder"].isin(table["folder"][~is_new])
    old["folder"] = old["folder"].where(has_grown, BEFORE + old["folder"])
    return pd.concat([old, table[is_new]], ignore_index=True)


def _earlier(ranking: Path) -> pd.DataFrame:
    import pandas as pd

    file = ranking / VERDICTS_FILE
    try:
        verdicts = pd.read_csv(file, dtype=str, keep_default_na=False)[[*KEPT]].map(unguarded)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError):
        verdicts = pd.DataFrame({"truth": ["unknown"], "verdict": ["unknown"]})
    if not verdicts[["truth", "verdict"]].isin(VERDICTS).all(axis=None):
        raise InputError(f"{file} is not a table that `turinglike rank --out` wrote")
    return verdicts


def _agents(task: str, verdicts: pd.DataFrame, result: Fit) -> list[RankedAgent]:
    """People first, then by humanness."""
    rows = []
    for at, agent in enumerate([PEOPLE, *result.agents]):
        part = verdicts[verdicts["truth"] == "human"] if at == 0 else verdicts[verdicts["agent"] == agent]
        counts = len(part), int(part["judge"].nunique()), int(part["stimulus"].nunique())
        draws = (result.draws["humanness"], result.draws["detectability"])
        humanness, detectability = (_estimate(of[:, at - 1]) if at else NO_FIGURE for of in draws)
        right = float((part["verdict"] == part["truth"]).mean())
        predicted = _estimate(result.draws["right"][:, at])
        rows.append(RankedAgent(task, agent, *counts, humanness, detectability, right, predicted))
    return [rows[0], *sorted(rows[1:], key=lambda row: -row.humanness.value)]


def _judges(task: str, verdicts: pd.DataFrame, result: Fit) -> list[RankedJudge]:
    number = verdicts["judge"].value_counts()
    draws = result.draws
    rows = [
        RankedJudge(task, judge, int(number[judge]), _estimate(skill), _estimate(criterion))
        for judge, skill, criterion in zip(result.judges, draws["skill"].T, draws["criterion"].T, strict=True)
    ]
    return sorted(rows, key=lambda row: -row.skill.value)


def _estimate(draws: Floats) -> Estimate:
    low, high = np.quantile(draws, (0.025, 0.975))
    return Estimate(float(draws.mean()), float(low), float(high))


def _caterpillar(agents: Table[RankedAgent], judges: Table[RankedJudge], figure: Any) -> None:
    """Humanness of agents above, skill of judges below, in order; of more judges than ``MOST`` so many, evenly."""
    tasks = agents.distinct("task")
    ending = {task: f" ({TASK_NAMES[task].lower()})" if len(tasks) > 1 else "" for task in tasks}
    drawn = [judges.data[at] for at in np.unique(np.linspace(0, len(judges) - 1, MOST).round().astype(int))]
    panels: list[tuple[str, str, list[tuple[str, Estimate]]]] = [
        (
            "humanness (0: as people)",
            MACHINE,
            [(label(row.agent) + ending[row.task], row.humanness) for row in agents if row.agent != PEOPLE],
        ),
        ("judges' skill (d'; 0: chance)", HUMAN, [(label(row.judge) + ending[row.task], row.skill) for row in drawn]),
    ]
    names = [name for *_, rows in panels for name, _ in rows]
    figure.set_size_inches(width_for(names), 1.6 + 0.22 * len(names))
    axes = figure.subplots(2, 1, height_ratios=[len(rows) + 0.5 for *_, rows in panels])
    for axis, (about, colour, rows) in zip(axes, panels, strict=True):
        value, errors = with_bars([of for _, of in rows])
        axis.errorbar(value, range(len(rows)), xerr=errors, color=colour, fmt="o", markersize=4, elinewidth=1.3)
        axis.axvline(0, color=BAND, linewidth=1)
        axis.set(ylim=(len(rows) - 0.5, -0.5), xlabel=about)
        axis.set_yticks(range(len(rows)), [name for name, _ in rows])
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
