"""The page of scores, its figures (2025 paper, Figures 4 to 6), and the paragraph on methods."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import metadata
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from agents import __version__
from judging.measures import ALL, Score, SettingsByJudge
from judging.pass_rate import PassRate
from judging.published import published
from judging.tables import Estimate, Grid, Table
from judging.trial_set import VERDICTS
from judging.two_way import Floats
from judging.verdicts import ELSEWHERE
from serving.runs.row_problems import count
from serving.web.report import render
from serving.web.viewer_provenance import TASK_NAMES as NAMES_OF_TASKS

if TYPE_CHECKING:
    import pandas as pd

    from judging.score import Scores

TASK_NAMES = NAMES_OF_TASKS | {ELSEWHERE: "Stimuli of others"}
HUMAN, MACHINE, INK = "#0072b2", "#d55e00", "#333333"  # of Okabe and Ito's colours, which the colour-blind tell apart
COLOURS = (HUMAN, MACHINE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
PASS_RATES = "pass-rates"
FITS = "min-width:34rem;max-width:100%;height:auto"  # on a phone it is moved sideways, not made too small to read


def page(scores: Scores, figures: Mapping[str, str]) -> str:
    return render(
        "judging",
        "scores.html",
        title="Scores",
        scores=scores,
        figures=figures,
        task_names=TASK_NAMES,
        papers=published()["papers"],
        all_agents=ALL,
        count=count,
        picture=_picture,
        judges_by_agents=_judges_by_agents,
    )


def _picture(svg: str, label: str) -> Markup:
    start = Markup('<svg role="img" aria-label="{}" style="{}"').format(label, FITS)
    return Markup(svg[svg.index("<svg") :].replace("<svg", start, 1))


def _judges_by_agents(scores: Table[Score]) -> Grid | None:
    agents = [agent for agent in scores.distinct("agent") if agent != ALL]
    judges = scores.distinct("judge")
    if len(agents) < 2 or len(judges) < 2:
        return None
    rates = {(score.judge, score.agent): score.p_machine.value for score in scores}
    rows = [[judge, *(rates.get((judge, agent)) for agent in agents)] for judge in judges]
    return Grid("p(M|M) by judge and agent", ["judge", *agents], rows)


def methods(table: pd.DataFrame, settings: SettingsByJudge, sets: Sequence[Mapping[str, Any]]) -> str:
    """The paragraph; ``sets`` are the contents of ``TRIALS.trials.json``."""
    excluded = table["excluded"].dropna()
    is_paired = table["beside_truth"].notna()
    libraries = ("numpy", "scipy", "statsmodels", "scikit-learn")
    text = render(
        "judging",
        "methods.txt",
        version=__version__,
        packages=", ".join(f"{name} {metadata.version(name)}" for name in libraries),
        verdicts=count(len(table), "verdict"),
        judges=count(table["judge"].nunique(), "judge"),
        trials=count(table["trial"].nunique(), "trial"),
        stimuli=count(table["stimulus"].nunique(), "stimulus", "stimuli"),
        missing=f"{int((~table['verdict'].isin(VERDICTS)).sum()):,}",
        rules=sorted({rule for rules in excluded.unique() for rule in rules.split()}),
        excluded=count(len(excluded), "verdict"),
        sets=[about for about in sets if "seed" in about],
        settings={name: settings[name] for name in sorted(set(table["judge"]) & settings.keys())},
        has_single=not is_paired.all(),
        has_pairs=is_paired.any(),
    )
    return " ".join(text.split())


def figures(scores: Table[Score], cues: Collection[str], pass_rates: Sequence[PassRate] = ()) -> dict[str, str]:
    """SVGs by name: ``TASK-JUDGE``, ``overview`` without ``cues``, ``pass-rates``."""
    drawn = {
        f"{task}-{judge}": _svg(partial(_by_agent, list(rows)))
        for (task, judge), rows in groupby(scores, key=lambda score: (score.task, score.judge))
    }
    if pass_rates:
        drawn[PASS_RATES] = _svg(partial(_by_turns, pass_rates))
    overall = [score for score in scores if score.agent == ALL and score.judge not in cues]
    return {"overview": _svg(partial(_overview, overall)), **drawn} if overall else drawn


def _overview(scores: Sequence[Score], figure: Any) -> None:
    tasks = list(dict.fromkeys(score.task for score in scores))
    judges = list(dict.fromkeys(score.judge for score in scores))
    figure.set_size_inches(1.0 + 1.75 * len(tasks), 0.5 + 1.6 * len(judges))
    axes = figure.subplots(len(judges), len(tasks), squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    named: set[str] = set()
    for score in scores:
        down, across = judges.index(score.judge), tasks.index(score.task)
        axis = axes[down, across]
        axis.set_axis_on()
        human, machine = score.p_human, score.p_machine
        ends = [[(human.low, human.high), (1 - human.high, 1 - human.low)],
                [(1 - machine.high, 1 - machine.low), (machine.low, machine.high)]]  # fmt: skip
        _matrix(axis, [score.shares_of_people, score.shares_of_machines], ["people's", "machines'"], ends)
        axis.set_title(TASK_NAMES[score.task] if down == 0 else "", fontsize=9)
        if score.judge not in named:
            axis.set_ylabel(score.judge, fontsize=9)
            named.add(score.judge)
        if down == len(judges) - 1:
            axis.set_xlabel("said")


def _by_agent(scores: Sequence[Score], figure: Any) -> None:
    known = [score for score in scores if not math.isnan(score.detectability.value)]
    figure.set_size_inches(9, 1.3 + 0.32 * (1 + len(known)))
    matrix, dots = figure.subplots(1, 2, width_ratios=(1, 2.2), sharey=True)
    names = ["people", *(score.name for score in known)]
    _matrix(matrix, [scores[0].shares_of_people, *(score.shares_of_machines for score in known)], names)
    matrix.set_xlabel("said")
    places = np.arange(1, len(known) + 1)
    rates = {"detectability": (INK, "o", places - 0.12), "p(M|M)": (MACHINE, "s", places + 0.18)}
    for label, (color, marker, heights) in rates.items():
        value, bars = _bars([score.p_machine if label == "p(M|M)" else score.detectability for score in known])
        style = {"color": color, "marker": marker, "markersize": 5, "linestyle": "none", "elinewidth": 1.2}
        dots.errorbar(value, heights, xerr=bars, label=label, **style)
    dots.axvline(0.5, color="#888888", linestyle=":", linewidth=1)
    dots.set(xlim=(0, 1), xlabel="share (dotted: a half; bars: 95 % intervals)")
    dots.spines[["top", "right", "left"]].set_visible(False)
    dots.tick_params(axis="y", length=0, labelleft=False)
    if known:
        dots.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _by_turns(rates: Sequence[PassRate], figure: Any) -> None:
    known = [rate for rate in rates if rate.turns is not None and rate.verdicts and rate.agent != ALL]
    judges = list(dict.fromkeys(rate.judge for rate in known))
    turns = sorted({rate.turns for rate in known if rate.turns is not None})
    lines = list(dict.fromkeys((rate.agent, rate.mode or "") for rate in known))
    figure.set_size_inches(2.6 + 3 * len(judges), 3.2)
    [panels] = figure.subplots(1, max(1, len(judges)), squeeze=False, sharey=True)
    for panel, judge in zip(panels, judges, strict=False):
        for at, line in enumerate(lines):
            of_line = [rate for rate in known if (rate.judge, rate.agent, rate.mode or "") == (judge, *line)]
            places = [turns.index(rate.turns or 0) + 0.06 * (at - (len(lines) - 1) / 2) for rate in of_line]
            value, bars = _bars([rate.pass_rate for rate in of_line])
            style = {"color": COLOURS[at % len(COLOURS)], "marker": "o", "markersize": 5}
            style["linestyle"] = "--" if line[1] == "burst" else "-"
            label = ", ".join(filter(None, line)) if panel is panels[0] else None
            panel.errorbar(places, value, bars, label=label, **style)
        panel.axhline(0.5, color="#888888", linestyle=":", linewidth=1)
        panel.set(ylim=(0, 1), xlabel="turns", title=judge)
        panel.set_xticks(range(len(turns)), map(str, turns))
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("pass rate (dotted: chance)")
    if lines:
        figure.legend(loc="outside right upper", frameon=False)


def _bars(estimates: Sequence[Estimate]) -> tuple[Floats, Floats]:
    value, low, high = np.array([(rate.value, rate.low, rate.high) for rate in estimates]).reshape(-1, 3).T
    return value, np.abs([value - low, high - value])


def _matrix(
    axes: Any,
    shares: Sequence[tuple[float, float]],
    names: Sequence[str],
    ends: Sequence[Sequence[tuple[float, float]]] = (),
) -> None:
    axes.imshow(shares, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for down, row in enumerate(shares):
        for across, value in enumerate(row):
            text = "–" if value != value else f"{value:.2f}"
            if ends and ends[down][across][0] == ends[down][across][0]:
                text += "\n{:.2f}–{:.2f}".format(*ends[down][across])
            axes.text(across, down, text, ha="center", va="center", color="white" if value > 0.6 else "black")
    axes.set_xticks((0, 1), ("human", "machine"))
    axes.set_yticks(range(len(names)), names)


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
