"""The figures of scores: confusion matrices, as in Figures 4 to 6 of the 2025 paper, and intervals."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from judging.measures import ALL
from serving.web.viewer_provenance import TASK_NAMES

HUMAN, MACHINE, INK = "#0072b2", "#d55e00", "#333333"  # of Okabe and Ito's colours, told apart by the colour-blind
COLOURS = (HUMAN, MACHINE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
PASS_RATES = "pass-rates"
Row = dict[str, Any]


def figures(scores: Sequence[Row], cues: Sequence[str], pass_rates: Sequence[Row] = ()) -> dict[str, str]:
    """SVGs by name: for each task and judge ``TASK-JUDGE``, ``overview``, in which judges in ``cues`` are left out, and
    ``pass-rates`` of pairs. ``scores`` and ``pass_rates`` are the rows of :func:`judging.score.measure`."""
    drawn = {
        f"{asked}-{judge}": _svg(partial(_by_agent, list(rows)))
        for (asked, judge), rows in groupby(scores, key=lambda row: (row["asked"], row["judge"]))
    }
    if pass_rates:
        drawn[PASS_RATES] = _svg(partial(_by_turns, pass_rates))
    overall = [row for row in scores if row["agent"] == ALL and row["judge"] not in cues]
    return {"overview": _svg(partial(_overview, overall)), **drawn} if overall else drawn


def _overview(rows: Sequence[Row], figure: Any) -> None:
    """As Figure 4: a matrix for each task and judge, of all agents together."""
    tasks, judges = (list(dict.fromkeys(row[name] for row in rows)) for name in ("asked", "judge"))
    figure.set_size_inches(1.0 + 1.75 * len(tasks), 0.5 + 1.6 * len(judges))
    axes = figure.subplots(len(judges), len(tasks), squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    named: set[str] = set()
    for row in rows:
        down, across = judges.index(row["judge"]), tasks.index(row["asked"])
        axis = axes[down, across]
        axis.set_axis_on()
        halves = [(row[f"{name}_high"] - row[f"{name}_low"]) / 2 for name in ("p_human", "p_machine")]
        _matrix(axis, [_of_people(row), _of_machines(row)], ["people's", "machines'"], halves)
        axis.set_title(TASK_NAMES[row["asked"]] if down == 0 else "", fontsize=9)
        if row["judge"] not in named:
            axis.set_ylabel(row["judge"], fontsize=9)
            named.add(row["judge"])
        if down == len(judges) - 1:
            axis.set_xlabel("said")


def _by_agent(rows: Sequence[Row], figure: Any) -> None:
    """As Figures 5 and 6: a row of the matrix for people and for each agent, the one that passes most often framed;
    beside it each agent's detectability."""
    known = [row for row in rows if row["detectability"] == row["detectability"]]
    figure.set_size_inches(9, 1.3 + 0.32 * (1 + len(known)))
    matrix, dots = figure.subplots(1, 2, width_ratios=(1, 2.2), sharey=True)
    names = ["people", *("all agents" if row["agent"] == ALL else row["agent"] for row in known)]
    _matrix(matrix, [_of_people(rows[0]), *map(_of_machines, known)], names)
    matrix.set_xlabel("said")
    agents = [row for row in known if row["agent"] != ALL]
    if len(agents) > 1:
        best = 1 + known.index(max(agents, key=lambda row: 1 - row["p_machine"]))
        matrix.add_patch(_frame(best))
    for at, row in enumerate(known, start=1):
        for name, colour, marker, shift in (("detectability", INK, "o", -0.12), ("p_machine", MACHINE, "s", 0.18)):
            ends = [[max(0, row[name] - row[f"{name}_low"])], [max(0, row[f"{name}_high"] - row[name])]]
            style = {"color": colour, "marker": marker, "markersize": 5, "linestyle": "none", "elinewidth": 1.2}
            label = {"detectability": "detectability", "p_machine": "p(M|M)"}[name] if at == 1 else None
            dots.errorbar([row[name]], [at + shift], xerr=ends, label=label, **style)
    dots.axvline(0.5, color="#888888", linestyle=":", linewidth=1)
    dots.set(xlim=(0, 1), xlabel="share (dotted: chance; bars: 95 % intervals)")
    dots.spines[["top", "right", "left"]].set_visible(False)
    dots.tick_params(axis="y", length=0, labelleft=False)
    if known:
        dots.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _by_turns(rows: Sequence[Row], figure: Any) -> None:
    """Pass rates by turns, a panel for each judge and a line for each agent and mode."""
    known = [row for row in rows if row["turns"] is not None and row["verdicts"] and row["agent"] != ALL]
    judges = list(dict.fromkeys(row["judge"] for row in known))
    turns = sorted({row["turns"] for row in known})
    lines = list(dict.fromkeys((row["agent"], row["mode"] or "") for row in known))
    figure.set_size_inches(2.6 + 3 * len(judges), 3.2)
    [panels] = figure.subplots(1, max(1, len(judges)), squeeze=False, sharey=True)
    for panel, judge in zip(panels, judges, strict=False):
        for at, line in enumerate(lines):
            of_line = [row for row in known if (row["judge"], row["agent"], row["mode"] or "") == (judge, *line)]
            places = [turns.index(row["turns"]) + 0.06 * (at - (len(lines) - 1) / 2) for row in of_line]
            ends = [[abs(row["pass_rate"] - row[f"pass_rate_{end}"]) for row in of_line] for end in ("low", "high")]
            style = {"color": COLOURS[at % len(COLOURS)], "marker": "o", "markersize": 5}
            style["linestyle"] = "--" if line[1] == "burst" else "-"
            label = ", ".join(filter(None, line)) if panel is panels[0] else None
            panel.errorbar(places, [row["pass_rate"] for row in of_line], ends, label=label, **style)
        panel.axhline(0.5, color="#888888", linestyle=":", linewidth=1)
        panel.set(ylim=(0, 1), xlabel="turns", title=judge)
        panel.set_xticks(range(len(turns)), map(str, turns))
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("pass rate (dotted: chance)")
    if lines:
        figure.legend(loc="outside right upper", frameon=False)


def _matrix(
    axes: Any, shares: Sequence[tuple[float, float]], names: Sequence[str], halves: Sequence[float] = ()
) -> None:
    """Shares that were said to be human and machine, a row for each of ``names``; with half the length of each row's
    interval."""
    axes.imshow(shares, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for down, row in enumerate(shares):
        for across, value in enumerate(row):
            shown = "–" if value != value else f"{value:.2f}"
            if halves and halves[down] == halves[down]:
                shown += f"\n± {halves[down]:.2f}"
            axes.text(across, down, shown, ha="center", va="center", color="white" if value > 0.6 else "black")
    axes.set_xticks((0, 1), ("human", "machine"))
    axes.set_yticks(range(len(names)), names)


def _frame(row: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((-0.49, row - 0.47), 1.98, 0.94, fill=False, edgecolor="black", linewidth=1.5, zorder=3)


def _of_people(row: Row) -> tuple[float, float]:
    return row["p_human"], 1 - row["p_human"]


def _of_machines(row: Row) -> tuple[float, float]:
    return 1 - row["p_machine"], row["p_machine"]


def _svg(draw: Callable[[Any], None]) -> str:
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # The same bytes every time, and text that stays text.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "turinglike", "font.size": 9}):
        figure = Figure(layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return buffer.getvalue()
