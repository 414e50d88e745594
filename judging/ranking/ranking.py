"""Judges and agents on a common scale: what :func:`judging.rank` gives."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from judging.scores.svg import BAND, HUMAN, MACHINE, label, svg, width_for, with_bars
from judging.statistics.tables import Estimate, Grid, Table, as_json
from judging.statistics.verdict_table import PEOPLE, TASK_NAMES
from serving.files.csv_tables import write_rows
from serving.files.output_paths import new_folder

if TYPE_CHECKING:
    import pandas as pd

FORM = "turinglike.ranking/1"
RANKING_FILE = "ranking.json"
VERDICTS_FILE = "verdicts.csv"
KEPT_COLUMNS = (
    "asked",
    "folder",
    "judge",
    "judge_kind",
    "trial",
    "stimulus",
    "truth",
    "agent",
    "verdict",
)  # of a verdict
MOST = 40  # judges in the figure


@dataclass(frozen=True, slots=True)
class RankedAgent:
    """An agent of a task on the common scale, or "people", who have no humanness."""

    task: str
    """The task that was answered."""
    agent: str
    """The agent's name, or "people"."""
    verdicts: int
    """How many verdicts there are on its answers."""
    judges: int
    """How many judges gave them."""
    stimuli: int
    """How many stimuli these answers are to."""
    humanness: Estimate
    """Minus d': 0 as people, negative where judges tell the agent from them. NaN for people."""
    detectability: Estimate
    """The mean share of right verdicts on people and on this agent, 0 to 1, as all judges together see it."""
    right: float
    """The share of right verdicts, 0 to 1."""
    predicted: Estimate
    """What the model expects as ``right`` on the same trials; if the two are far apart, the model does not fit."""


@dataclass(frozen=True, slots=True)
class RankedJudge:
    """A judge of a task on the common scale."""

    task: str
    """The task that was answered."""
    judge: str
    """The judge's name; people are ranked one by one."""
    verdicts: int
    """How many verdicts it gave."""
    skill: Estimate
    """Its d' for the mean agent; 0 is chance."""
    criterion: Estimate
    """Its bias: positive towards "human", negative towards "machine"."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Agents by humanness and judges by skill, task by task.

    >>> ranking = rank(["verdicts", "more-verdicts"])
    >>> ranking.to_pandas()["agents"]
    """

    agents: Table[RankedAgent]
    """By task people first, then agents from the most human."""
    judges: Table[RankedJudge]
    """By task from the most able."""
    convergence: Mapping[str, Mapping[str, float]]
    """By task R-hat (``rhat``), effective draws (``ess``), ``draws``, ``divergent`` ones, and ``is_converged``."""
    verdicts: pd.DataFrame
    """The verdicts that were ranked by, with those of an earlier ranking: the columns :data:`KEPT_COLUMNS`."""
    remarks: Sequence[str]
    """What was fitted, task by task, and what could not be."""

    @property
    def is_converged(self) -> bool:
        """Whether the model converged in every task; a task in which it did not has no rows."""
        return all(check["is_converged"] for check in self.convergence.values())

    def sentences(self) -> list[str]:
        """What `turinglike rank` says in words: how many verdicts of each task, and whether the model converged."""
        return list(self.remarks)

    def grids(self) -> list[Grid]:
        """The tables that `turinglike rank` prints."""
        agents = self.agents.grid("task agent humanness detectability verdicts right predicted")
        return [agents, self.judges.grid("task judge skill criterion verdicts")]

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """``agents``, ``judges`` (columns as in the CSV files; an estimate has NAME, NAME_low and NAME_high) and
        ``verdicts``."""
        import pandas as pd

        agents = pd.DataFrame(self.agents.records())
        return {"agents": agents, "judges": pd.DataFrame(self.judges.records()), "verdicts": self.verdicts}

    def write(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Write tables, figure and verdicts to a new ``folder``, which a later ``rank(prior=…)`` reads.

        ``force`` replaces an earlier ranking there. Raises InputError for a folder that is something else, and
        StorageError."""
        values = {"form": FORM, "agents": self.agents, "judges": self.judges, "convergence": self.convergence}
        with new_folder(Path(folder), marker=RANKING_FILE, force=force) as made:
            self.agents.write_csv(made / "agents.csv")
            self.judges.write_csv(made / "judges.csv")
            with (made / VERDICTS_FILE).open("w", encoding="utf-8", newline="") as file:
                write_rows(file, KEPT_COLUMNS, self.verdicts[[*KEPT_COLUMNS]].itertuples(index=False, name=None))
            (made / "ranking.svg").write_text(self._figure(), encoding="utf-8")
            (made / RANKING_FILE).write_bytes(orjson.dumps(as_json(values), option=orjson.OPT_APPEND_NEWLINE))

    def _figure(self) -> str:
        return svg(partial(_caterpillar, self.agents, self.judges))

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.remarks)
        drawn = self._figure() if self.agents else ""
        tables = "".join(grid.html() for grid in self.grids() if grid.rows)
        return f"<ul>{items}</ul>{drawn[drawn.find('<svg') :] if drawn else ''}{tables}"


def _caterpillar(agents: Table[RankedAgent], judges: Table[RankedJudge], figure: Any) -> None:
    """Humanness of agents above, skill of judges below, in order. Of more than
    ``MOST`` judges, ``MOST`` are drawn, evenly spaced."""
    tasks = agents.distinct("task")
    ending = {task: f" ({TASK_NAMES[task].lower()})" if len(tasks) > 1 else "" for task in tasks}
    drawn = [judges.data[place] for place in np.unique(np.linspace(0, len(judges) - 1, MOST).round().astype(int))]
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
    for axis, (title, colour, rows) in zip(axes, panels, strict=True):
        value, errors = with_bars([estimate for _, estimate in rows])
        axis.errorbar(value, range(len(rows)), xerr=errors, color=colour, fmt="o", markersize=4, elinewidth=1.3)
        axis.axvline(0, color=BAND, linewidth=1)
        axis.set(ylim=(len(rows) - 0.5, -0.5), xlabel=title)
        axis.set_yticks(range(len(rows)), [name for name, _ in rows])
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
