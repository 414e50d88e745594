"""Judges and agents of one or more studies on a common scale: :func:`rank`, on which ``turinglike rank`` stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.stimuli import TASKS
from judging.ranking.ranking import KEPT_COLUMNS, VERDICTS_FILE, RankedAgent, RankedJudge, Ranking
from judging.scores.verdicts import open_verdicts, read_verdicts, single_cues
from judging.statistics.jackknife import Floats
from judging.statistics.tables import NO_FIGURE, Estimate, Table
from judging.statistics.verdict_table import ELSEWHERE, PEOPLE, TASK_NAMES, as_drawn, counted
from judging.trial_sets.trial_set import VERDICTS
from serving.files.csv_tables import read_back, unguarded

if TYPE_CHECKING:
    import pandas as pd

    from judging.ranking.model import Posterior

Folder = str | PathLike[str]
SCOPE = (
    "These intervals hold for judges, stimuli and participants like these, as those of `turinglike score` do. They "
    "rest on a statistical model of all verdicts, and score's do not, so the two may differ."
)
OF_STUDIES = " With several folders they also hold for other studies like these, so they are wider."
BEFORE = "before: "  # in the names of an earlier ranking's folders, if these are not the same that have grown


def rank(
    verdicts: Folder | Sequence[Folder],
    *,
    key: Folder | None = None,
    prior: Folder | None = None,
    report: Callable[[str], None] | None = None,
) -> Ranking:
    """Judges and agents of all folders of verdicts on a common scale, by a probit mixed model of each task.

    >>> ranking = rank(["verdicts", "more-verdicts"], report=print)
    >>> ranking.write("ranking")

    ``verdicts`` are run folders of verdicts. ``key`` is the trials' key, where these do not say where the trials are.
    ``prior`` is the folder of an earlier ranking, whose verdicts are added. Judges by a cue, pairs and trials with
    feedback are left out. Fitting takes minutes; ``report`` gets a line before and after each task.

    Raises InputError where nothing can be ranked, UnavailableError without the extra ``rank``."""
    for name in ("matplotlib", "numba", "nutpie", "pandas"):
        if not is_installed(name):
            raise UnavailableError(f"the package {name} is not installed: pip install 'turinglike[rank]'")
    remarks: list[str] = []

    def say(line: str) -> None:
        remarks.append(line)
        if report is not None:
            report(line)

    folders = [Path(verdicts)] if isinstance(verdicts, str | PathLike) else [Path(folder) for folder in verdicts]
    table = _read(folders, None if key is None else Path(key), None if prior is None else Path(prior), say)
    agents = list[RankedAgent]()
    judges = list[RankedJudge]()
    checks = dict[str, Mapping[str, float]]()
    for task in (*TASKS, ELSEWHERE):
        of_task = table[table["asked"] == task].reset_index(drop=True)
        name = TASK_NAMES[task].lower()
        number = of_task["judge"].nunique()
        if number > 1 and set(of_task["truth"]) == set(VERDICTS):
            from judging.ranking.model import LIMITS, fit

            say(f"{name}: {len(of_task):,} verdicts of {number:,} judges")
            result = fit(of_task)
            check = result.convergence
            checks[task] = check
            say(
                f"{name}: R-hat {check['rhat']:.3f}, {check['ess']:,.0f} effective draws of {check['draws']:,}, "
                f"{check['divergent']:,} divergent"
            )
            if check["is_converged"]:
                agents += _agents(task, of_task, result)
                judges += _judges(task, of_task, result)
            else:
                say(
                    f"{name} has no numbers, because the model did not converge ({LIMITS}); more judges or stimuli help"
                )
        elif number:
            say(f"{name} is not ranked: a ranking needs two judges, and answers from people and from machines")
    if agents:
        say(SCOPE + (OF_STUDIES if table["folder"].nunique() > 1 else ""))
    if not checks:
        none = "no verdict counts: verdicts of cue-… judges, on pairs and with feedback are left out"
        raise InputError("nothing can be ranked" if len(table) else none)
    return Ranking(Table(agents), Table(judges), checks, table, remarks)


def _read(folders: Sequence[Path], key: Path | None, prior: Path | None, say: Callable[[str], None]) -> pd.DataFrame:
    """Each judge's first verdict on each single answer, without those of judges that go by a cue; with those of an
    earlier ranking, whose posterior they make this model's prior. Raises InputError."""
    import pandas as pd

    old = pd.DataFrame(columns=[*KEPT_COLUMNS]) if prior is None else _earlier(prior)
    runs = open_verdicts(folders, key)
    table = read_verdicts(runs)
    table = as_drawn(table)
    table = counted(table[table["excluded"].isna() & (table["sample"] == 0) & table["verdict"].isin(VERDICTS)])
    table = table[~table["catch"].astype(bool) & table["repeat_of"].isna() & table["beside_truth"].isna()]
    table = table[~table["judge"].isin(single_cues(runs))].drop_duplicates(["judge", "trial"])[[*KEPT_COLUMNS]]
    table = table.map(lambda cell: read_back(cell) if isinstance(cell, str) else cell)  # as --prior will read it
    # What is known goes whatever its verdict: to go by that would select. People without a name have several answers.
    same = ["asked", "judge", "agent", "stimulus"]

    def numbered(verdicts: pd.DataFrame) -> pd.MultiIndex:
        return pd.MultiIndex.from_frame(verdicts[same].assign(number=verdicts.groupby(same).cumcount()))

    is_new = ~numbered(table).isin(numbered(old))
    if prior is not None:
        if not is_new.any():
            raise InputError(f"{prior} has all these verdicts already")
        say(f"{prior} has {len(old):,} verdicts; it has {(~is_new).sum():,} of the {len(is_new):,} given now")
    has_grown = old["folder"].isin(table["folder"][~is_new])
    old["folder"] = old["folder"].where(has_grown, BEFORE + old["folder"])
    return pd.concat([old, table[is_new]], ignore_index=True)


def _earlier(ranking: Path) -> pd.DataFrame:
    import pandas as pd

    file = ranking / VERDICTS_FILE
    try:
        verdicts = pd.read_csv(file, dtype=str, keep_default_na=False)[[*KEPT_COLUMNS]].map(unguarded)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError):
        verdicts = pd.DataFrame({"truth": ["unknown"], "verdict": ["unknown"]})
    if not verdicts[["truth", "verdict"]].isin(VERDICTS).all(axis=None):
        raise InputError(f"{file} is not the table of verdicts that a ranking has")
    return verdicts


def _agents(task: str, verdicts: pd.DataFrame, result: Posterior) -> list[RankedAgent]:
    """People first, then by humanness."""
    rows = []
    draws = result.draws
    for number, agent in enumerate([PEOPLE, *result.agents]):
        is_people = number == 0
        part = verdicts[verdicts["truth"] == "human"] if is_people else verdicts[verdicts["agent"] == agent]
        rows.append(
            RankedAgent(
                task=task,
                agent=agent,
                verdicts=len(part),
                judges=int(part["judge"].nunique()),
                stimuli=int(part["stimulus"].nunique()),
                humanness=NO_FIGURE if is_people else _estimate(draws["humanness"][:, number - 1]),
                detectability=NO_FIGURE if is_people else _estimate(draws["detectability"][:, number - 1]),
                right=float((part["verdict"] == part["truth"]).mean()),
                predicted=_estimate(draws["right"][:, number]),
            )
        )
    return [rows[0], *sorted(rows[1:], key=lambda row: -row.humanness.value)]


def _judges(task: str, verdicts: pd.DataFrame, result: Posterior) -> list[RankedJudge]:
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
