"""The page of scores, its figures (2025 paper, Figures 4 to 6), and the paragraph on methods."""

from __future__ import annotations

import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from importlib import metadata
from itertools import groupby, product
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from agents import __version__
from judging.conclusions import sentences
from judging.jackknife import Floats
from judging.measures import ALL, Score, SettingsByJudge
from judging.pass_rate import PassRate
from judging.published import published
from judging.tables import Estimate, Grid, Table
from judging.trial_set import VERDICTS
from judging.verdicts import ELSEWHERE
from serving.runs.row_problems import count
from serving.web.report import render
from serving.web.viewer_provenance import TASK_NAMES as NAMES_OF_TASKS

if TYPE_CHECKING:
    import pandas as pd

    from judging.answer_statistics import CaptionScore
    from judging.score import Scores

TASK_NAMES = NAMES_OF_TASKS | {ELSEWHERE: "Stimuli of others"}
HUMAN, MACHINE, INK = "#0072b2", "#d55e00", "#333333"  # of Okabe and Ito's colours, which the colour-blind tell apart
COLOURS = (HUMAN, MACHINE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vP"
BAND = "#9a9a9a"
PASS_RATES, CAPTIONS, CAPTION_TASK = "pass-rates", "captions", "image_captioning"
ACROSS = 2  # panels of a figure
Panels = dict[str, dict[str, list[tuple[Any, Estimate]]]]  # points by panel and series
FITS = "display:block;max-width:100%;height:auto"


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
        sentences=sentences,
        figure_of=figure_of,
        without_repetition=without_repetition,
        as_table=Table,
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


def without_repetition(scores: Iterable[Score]) -> list[Score]:
    """A judge's scores in a task; without those of all agents where there is a single agent."""
    rows = list(scores)
    return [row for row in rows if row.agent != ALL or len(rows) != 2]


def methods(table: pd.DataFrame, settings: SettingsByJudge, sets: Sequence[Mapping[str, Any]], bounds: float) -> str:
    """The paragraph; ``sets`` are the contents of ``TRIALS.trials.json``."""
    excluded = table["excluded"].dropna()
    is_paired = table["beside_truth"].notna()
    libraries = ("numpy", "scipy", "statsmodels", "scikit-learn")
    text = render(
        "judging",
        "methods.txt",
        version=__version__,
        bounds=bounds,
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


def figures(scores: Scores, cues: Collection[str]) -> dict[str, str]:
    """SVGs by name: ``TASK-JUDGE``, ``overview`` without ``cues``, ``pass-rates``, ``by-COLUMN``, ``captions``."""
    drawn = {
        f"{task}-{judge}": svg(partial(_by_agent, list(rows)))
        for (task, judge), rows in groupby(scores.scores, key=lambda score: (score.task, score.judge))
    }
    if scores.pairs is not None and (panels := _by_turns(scores.pairs.rates)):
        drawn[PASS_RATES] = svg(partial(_over, panels, "turns", "pass rate"))
    told = [score for score in scores.by if score.judge not in cues]
    for column in dict.fromkeys(str(score.column) for score in told):
        panels = _by_column([score for score in told if score.column == column])
        if any(len(points) > 1 for of_panel in panels.values() for points in of_panel.values()):
            drawn[figure_of(column)] = svg(partial(_over, panels, column, "judged rightly"))
    if scores.captions is not None and (panels := _by_measure(scores.captions.agents, scores.scores)):
        drawn[CAPTIONS] = svg(partial(_over, panels, "BLEU-4 or CIDEr-D", "detectability"))
    each = [score for score in scores.scores if score.agent != ALL and score.judge not in cues and _is_known(score)]
    return {"overview": svg(partial(_overview, each, scores.bounds)), **drawn} if each else drawn


def figure_of(column: str) -> str:
    return "by-" + re.sub(r"[^\w.-]", "-", column)


def _is_known(score: Score) -> bool:
    return not math.isnan(score.detectability.value)


def _overview(scores: Sequence[Score], bounds: float, figure: Any) -> None:
    """Detectability: a row for each agent of a task, a mark for each judge; ``bounds`` around 0.5 are shaded."""
    judges = list(dict.fromkeys(score.judge for score in scores))
    rows = list(dict.fromkeys((score.task, score.agent) for score in scores))
    height = max(1.0, 0.55 * len(judges))  # of a row, in lines of text
    places, names, top = {}, [], 0.0
    for task, of_task in groupby(rows, key=lambda row: row[0]):
        names.append((top, TASK_NAMES[task], "bold"))
        for at, row in enumerate(of_task):
            places[row] = top + 1 + height * at
            names.append((places[row], row[1], "normal"))
        top = places[row] + height
    figure.set_size_inches(width_for([name for _, name, _ in names]), 1.1 + 0.24 * top)
    axis = figure.subplots()
    axis.axvspan(0.5 - bounds, 0.5 + bounds, color=BAND, alpha=0.35, linewidth=0)
    axis.axvline(0.5, color=BAND, linewidth=1)
    for at, judge in enumerate(judges):
        of_judge = [score for score in scores if score.judge == judge]
        value, bars = _bars([score.detectability for score in of_judge])
        shift = 0.5 * (at - (len(judges) - 1) / 2)
        heights = [places[score.task, score.agent] + shift for score in of_judge]
        style = {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[at % len(MARKERS)], "markersize": 5}
        axis.errorbar(value, heights, xerr=bars, label=judge, linestyle="none", elinewidth=1.4, **style)
    axis.set(xlim=(-0.01, 1.01), ylim=(top, -0.7), xlabel="trials judged rightly; bars: 95 % intervals")
    axis.set_xticks(np.linspace(0, 1, 5), ["0", "25 %", "chance", "75 %", "100 %"])
    axis.set_yticks([place for place, _, _ in names], [name for _, name, _ in names])
    for label, (_, _, weight) in zip(axis.get_yticklabels(), names, strict=True):
        label.set_fontweight(weight)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)


def _by_agent(scores: Sequence[Score], figure: Any) -> None:
    known = list(filter(_is_known, without_repetition(scores)))
    names = ["people", *(score.name for score in known)]
    figure.set_size_inches(width_for(names), 1.2 + 0.32 * (1 + len(known)))
    matrix, dots = figure.subplots(1, 2, width_ratios=(1, 2), sharey=True)
    _matrix(matrix, [scores[0].shares_of_people, *(score.shares_of_machines for score in known)], names)
    matrix.set_xlabel("said")
    places = np.arange(1, len(known) + 1)
    rates = {"detectability": (INK, "o", places - 0.12), "p(M|M)": (MACHINE, "s", places + 0.18)}
    for label, (color, marker, heights) in rates.items():
        value, bars = _bars([score.p_machine if label == "p(M|M)" else score.detectability for score in known])
        style = {"color": color, "marker": marker, "markersize": 5, "linestyle": "none", "elinewidth": 1.2}
        dots.errorbar(value, heights, xerr=bars, label=label, **style)
    dots.axvline(0.5, color=BAND, linestyle=":", linewidth=1)
    dots.set(xlim=(0, 1), xlabel="share; bars: 95 % intervals")
    dots.spines[["top", "right", "left"]].set_visible(False)
    dots.tick_params(axis="y", length=0, labelleft=False)
    if known:
        dots.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _by_turns(rates: Iterable[PassRate]) -> Panels:
    panels: Panels = defaultdict(lambda: defaultdict(list))
    for rate in rates:
        if rate.turns is not None and rate.verdicts and rate.agent != ALL:
            series = ", ".join(filter(None, (rate.agent, rate.mode)))
            panels[rate.judge][series].append((rate.turns, rate.pass_rate))
    return panels


def _by_column(scores: Sequence[Score]) -> Panels:
    """A panel for each task: of a single judge each agent, where colours are enough; or else all agents by judge. It is
    p(M|M) where people have no value, as in columns of agents."""
    panels: Panels = defaultdict(lambda: defaultdict(list))
    for task in dict.fromkeys(score.task for score in scores):
        of_task = [score for score in scores if score.task == task]
        judges, agents = ({getattr(score, name) for score in of_task} for name in ("judge", "agent"))
        measure = "detectability" if any(map(_is_known, of_task)) else "p_machine"
        are_agents = measure == "detectability" and len(judges) == 1 and 1 < len(agents) <= len(COLOURS)
        for score in of_task:
            estimate: Estimate = getattr(score, measure)
            if (are_agents or score.agent == ALL) and not math.isnan(estimate.value):
                title = TASK_NAMES[task] if measure == "detectability" else f"{TASK_NAMES[task]}: p(M|M)"
                panels[title][score.name if are_agents else score.judge].append((score.value, estimate))
    return panels


def _by_measure(captions: Iterable[CaptionScore], scores: Table[Score]) -> Panels:
    """Detectability beside BLEU and CIDEr-D: a panel for each judge and measure, a point for each agent (2025 paper,
    Fig. 8)."""
    panels: Panels = defaultdict(lambda: defaultdict(list))
    for caption, (name, measure) in product(captions, {"BLEU-4": "bleu", "CIDEr-D": "cider_d"}.items()):
        for score in scores.where(task=CAPTION_TASK, agent=caption.of):
            if (value := getattr(caption, measure)) is not None and _is_known(score):
                panels[f"{score.judge}, {name}"][caption.of].append((value, score.detectability))
    return panels


def _over(panels: Panels, about: str, what: str, figure: Any) -> None:
    """Points with intervals: a panel for each key, a series for each of its keys of (place, estimate). Words and few
    numbers stand evenly, in their order; numbers of single points to scale."""
    from matplotlib.lines import Line2D

    points = [(place, series) for of_panel in panels.values() for series, of in of_panel.items() for place, _ in of]
    names, places = list(dict.fromkeys(series for _, series in points)), list(dict.fromkeys(at for at, _ in points))
    are_numbers = all(isinstance(place, Real) for place in places)
    places.sort(key=None if are_numbers else _numbers_in_order)
    is_scale = are_numbers and len(points) == len(names) * len(panels)
    across = min(len(panels), ACROSS)
    down = math.ceil(len(panels) / across)
    figure.set_size_inches(2.6 + (2 + 0.16 * min(len(places), 30)) * across, 0.9 + 2.3 * down)
    axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axis, (title, of_panel) in zip(axes, panels.items(), strict=False):
        for series, of_series in of_panel.items():
            at = names.index(series)
            shift = 0.0 if is_scale else 0.5 * ((at + 0.5) / len(names) - 0.5)
            values = [(place if is_scale else places.index(place) + shift, estimate) for place, estimate in of_series]
            values.sort(key=lambda point: point[0])
            value, bars = _bars([estimate for _, estimate in values])
            style = {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[at % len(MARKERS)], "markersize": 4}
            style["linestyle"] = "none" if not are_numbers or is_scale else "--" if series.endswith("burst") else "-"
            axis.errorbar([place for place, _ in values], value, bars, elinewidth=1.2, linewidth=1, **style)
        axis.axhline(0.5, color=BAND, linestyle=":", linewidth=1)
        axis.set(ylim=(-0.01, 1.01), xlabel=about, title=title)
        if not is_scale:
            texts = [f"{place:g}" if are_numbers else str(place) for place in places]
            is_long = sum(map(len, texts)) > 24
            axis.set_xticks(range(len(places)), texts, **({"rotation": 30, "ha": "right"} if is_long else {}))
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(panels) :]:
        axis.remove()
    axes[0].set_ylabel(f"{what} (dotted: chance)")
    marks = [
        Line2D([], [], color=COLOURS[at % len(COLOURS)], marker=MARKERS[at % len(MARKERS)], linestyle="none")
        for at in range(len(names))
    ]
    figure.legend(marks, names, loc="outside right upper", frameon=False)


def _numbers_in_order(place: Any) -> list[str]:
    return [part.zfill(9) if part.isdigit() else part for part in re.split(r"(\d+)", str(place))]


def width_for(names: Sequence[str]) -> float:
    """Inches of a figure in whose margin the names of its rows stand."""
    return max(5.2, 4 + 0.085 * max(map(len, names)))


def _bars(estimates: Sequence[Estimate]) -> tuple[Floats, Floats]:
    value, low, high = np.array([(rate.value, rate.low, rate.high) for rate in estimates]).reshape(-1, 3).T
    return value, np.abs([value - low, high - value])


def _matrix(axes: Any, shares: Sequence[tuple[float, float]], names: Sequence[str]) -> None:
    axes.imshow(shares, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for down, row in enumerate(shares):
        for across, value in enumerate(row):
            text = "–" if value != value else f"{value:.2f}"
            axes.text(across, down, text, ha="center", va="center", color="white" if value > 0.6 else "black")
    axes.set_xticks((0, 1), ("human", "machine"))
    axes.set_yticks(range(len(names)), names)


def svg(draw: Callable[[Any], None]) -> str:
    """The same bytes every time, text that stays text, and ink of the page's colour, light or dark."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    ink: Any = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "turinglike", "font.size": 10, **ink}):
        figure = Figure(layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        buffer = io.StringIO()
        about = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=about)
    return buffer.getvalue().replace(INK, "currentColor")
