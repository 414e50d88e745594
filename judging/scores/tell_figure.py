"""The figure of tells: how much detectability falls without each property, alone and last, by judge and agent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from judging.scores.score_tables import ScoreTables
from judging.scores.svg import BAND, COLOURS, INK, MARKERS, Draw, figure_labels, label, width_for, with_bars
from judging.statistics.tell_changes import ALONE, LAST, PLANTED, TellChange
from judging.statistics.verdict_table import TASK_NAMES

TELLS = "tells"
WAYS = {ALONE: "taken away alone", LAST: "last, when all others are gone", PLANTED: "people's planted"}


def tell_figures(tables: ScoreTables, cues: Collection[str]) -> dict[str, Draw]:
    """By name (``tells-TASK``) a figure for each task of which properties were taken away; none of ``cues``."""
    rows = [row for row in tables.tells if row.judge not in cues and row.change.value == row.change.value]
    return {
        f"{TELLS}-{task}": partial(_changes, list(of_task)) for task, of_task in groupby(rows, key=lambda row: row.task)
    }


def _changes(rows: Sequence[TellChange], figure: Any) -> None:
    """A panel for each judge; in it a block for each agent with a line for each property, and a mark for each way."""
    judges = list(dict.fromkeys(row.judge for row in rows))
    ways = [way for way in WAYS if any(row.taken == way for row in rows)]
    names, places = _lines(rows)
    height = 0.9 + 0.27 * len(names)
    across = min(len(judges), 2)
    down = -(-len(judges) // across)
    texts = [name for name, _ in names]
    figure.set_size_inches(width_for(texts) + 3.0 * (across - 1), 0.5 + height * down)
    axes = figure.subplots(down, across, squeeze=False, sharex=True).ravel()
    for at, (axis, judge) in enumerate(zip(axes, judges, strict=False)):
        labels = figure_labels(texts) if at % across == 0 else [""] * len(texts)
        axis.axvline(0, color=BAND, linewidth=1)
        for number, way in enumerate(ways):
            of_way = [row for row in rows if row.judge == judge and row.taken == way]
            if not of_way:
                continue
            value, bars = with_bars([row.change for row in of_way])
            shift = 0.24 * (number - (len(ways) - 1) / 2)
            heights = [places[row.agent, row.tell] + shift for row in of_way]
            style = {"color": COLOURS[number], "marker": MARKERS[number], "linestyle": "none"}
            axis.errorbar(value, heights, xerr=bars, markersize=5, elinewidth=1.4, **style)
        axis.set_title(f"{TASK_NAMES[rows[0].task]}, judged by {label(judge)}", loc="left", fontsize=10)
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.set_yticks(range(len(names)), labels)
        for text, (_, weight) in zip(axis.get_yticklabels(), names, strict=True):
            text.set_fontweight(weight)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
        axis.tick_params(axis="x", labelbottom=True)
    for axis in axes[len(judges) :]:
        axis.remove()
    figure.supxlabel("fall of detectability; bars: 95 % intervals", fontsize=10, color=INK)
    _legend(figure, ways)


def _lines(rows: Sequence[TellChange]) -> tuple[list[tuple[str, str]], dict[tuple[str, str], int]]:
    """The lines of a panel, as texts with their weight: an agent's name, then its properties; and their places."""
    names: list[tuple[str, str]] = []
    places: dict[tuple[str, str], int] = {}
    for agent in dict.fromkeys(row.agent for row in rows):
        names.append((agent, "bold"))
        for tell in dict.fromkeys(row.tell for row in rows if row.agent == agent):
            places[agent, tell] = len(names)
            names.append((tell, "normal"))
    return names, places


def _legend(figure: Any, ways: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color=COLOURS[number], marker=MARKERS[number], linestyle="none", label=WAYS[way])
        for number, way in enumerate(ways)
    ]
    figure.legend(handles=marks, loc="outside upper center", ncols=min(len(marks), 3), frameon=False)
