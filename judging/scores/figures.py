"""The figures of scores: Figures 4 to 6, 5E, 8, S5 and S8 of the 2025 paper. Each is a function that draws it, which
:mod:`judging.scores.svg` makes a file."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, product
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from judging.scores.svg import (
    BAND,
    COLOURS,
    HUMAN,
    INK,
    MACHINE,
    MARKERS,
    Draw,
    beyond_usual,
    figure_labels,
    label,
    numbers_in_order,
    width_for,
    with_bars,
)
from judging.statistics.measures import ALL, Score
from judging.statistics.pass_rate import PassRate
from judging.statistics.tables import Estimate, Table
from judging.statistics.verdict_table import AND, BOTH, TASK_NAMES
from judging.trial_sets.about_judges import OPTIONS
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

    from judging.scores.score_tables import ScoreTables
    from judging.statistics.answer_statistics import CaptionScore

MOST_SERIES = 8
OVERVIEW = "overview"
PASS_RATES = "pass-rates"
CAPTIONS = "captions"
CAPTION_TASK = "image_captioning"
TRAINED_ON = "trained_on"  # the column of judges that are trained on a single agent
WHO = {f"judge.{name}": OPTIONS[name] for name in ("gender", "age", "education")}  # columns, answers in their order
ACROSS = 2  # panels of a figure
SPEAKERS = "people's answers"  # a series beside those of agents
Panels = dict[tuple[str, str], dict[str, list[tuple[Any, Estimate]]]]  # points by title, what is across, and series


def overview(scores: ScoreTables, cues: Collection[str]) -> dict[str, Draw]:
    """``overview``: the detectability of each agent by each judge that is none of ``cues``, by its name; nothing
    where no detectability is known."""
    shown = [score for score in scores.scores if score.agent != ALL and score.judge not in cues and _is_known(score)]
    return {OVERVIEW: partial(_overview, shown, scores.bounds)} if shown else {}


def figures(scores: ScoreTables, cues: Collection[str]) -> dict[str, Draw]:
    """Figures by name: ``overview`` without ``cues``, ``TASK-JUDGE``, ``pass-rates``, ``by-COLUMN``, ``captions``."""
    drawn = overview(scores, cues)
    drawn |= {
        f"{task}-{judge}": partial(_by_agent, list(rows))
        for (task, judge), rows in groupby(scores.scores, key=lambda score: (score.task, score.judge))
    }
    if scores.pairs is not None and (panels := _by_turns(scores.pairs.rates)):
        drawn[PASS_RATES] = partial(_over, panels, "pass rate")
    told = [score for score in scores.by if score.judge not in cues]
    for column in dict.fromkeys(str(score.column) for score in told):
        of_column = [score for score in told if score.column == column]
        panels = curves(of_column, column)
        if column == TRAINED_ON:
            drawn[figure_of(column)] = partial(_by_trained_on, of_column)
        elif any(len(points) > 1 for of_panel in panels.values() for points in of_panel.values()):
            drawn[figure_of(column)] = partial(_over, panels, "share of verdicts")
    if scores.captions is not None and (panels := _by_measure(scores.captions.agents, scores.scores)):
        drawn[CAPTIONS] = partial(_over, panels, "detectability")
    return drawn


def who_judged(verdicts: pd.DataFrame) -> dict[str, Draw]:
    """``who``: how many of the people who judged a task gave each answer about themselves (2025 paper, Figs. S2, S4 and
    S7), as bars; nothing where no export has the answers."""
    people = verdicts[verdicts["judge_kind"] == "human"].drop_duplicates(["asked", "judge"])
    columns = [column for column in WHO if column in people.columns and people[column].notna().any()]
    return {"who": partial(_bars_of_judges, people, columns)} if columns else {}


def _bars_of_judges(people: pd.DataFrame, columns: Sequence[str], figure: Any) -> None:
    tasks = people["asked"].unique()
    answers = people[columns].map(_answer)
    order = {column: [name for name in WHO[column] if name in {*answers[column]}] for column in columns}
    for column, names in order.items():  # those of other forms
        names += sorted({*answers[column]} - {*names}, key=numbers_in_order)
    longer = sum(beyond_usual(list(map(label, names))) for names in order.values())
    figure.set_size_inches(3 * len(columns) + 0.085 * longer, (1 + 0.24 * max(map(len, order.values()))) * len(tasks))
    axes = figure.subplots(len(tasks), len(columns), squeeze=False, sharey="col")
    for (task, of_task), row in zip(answers.groupby(people["asked"], sort=False), axes, strict=True):
        for column, axis in zip(columns, row, strict=True):
            counts = of_task[column].value_counts()
            places = range(len(order[column]))
            bars = axis.barh(places, [int(counts.get(name, 0)) for name in order[column]], color=HUMAN)
            axis.bar_label(bars, padding=3)
            axis.set_yticks(places, list(map(label, order[column])))
            axis.margins(x=0.2)
            axis.set(title=f"{TASK_NAMES[task]}:\n{label(column.removeprefix('judge.'))}", xticks=())
            axis.spines[["top", "right", "bottom"]].set_visible(False)
    for axis in axes[0]:
        axis.invert_yaxis()


def _answer(value: Any) -> str:
    if value is None or value != value:
        return "not said"
    return f"{value:.15g}" if isinstance(value, Real) else str(value)


def without_repetition(scores: Iterable[Score]) -> list[Score]:
    """A judge's scores in a task; without those of all agents where there is a single agent."""
    rows = list(scores)
    return [row for row in rows if row.agent != ALL or len(rows) != 2]


def figure_of(column: str) -> str:
    """The name of the figure that shows scores by a column, as its file has it."""
    return "by-" + re.sub(r"[^\w.-]", "-", column)


def _is_known(score: Score) -> bool:
    return not math.isnan(score.detectability.value)


def _overview(scores: Sequence[Score], bounds: float, figure: Any) -> None:
    """Detectability: a row for each agent of a task, a mark for each judge; ``bounds`` around 0.5 are shaded."""
    judges = list(dict.fromkeys(score.judge for score in scores))
    rows = list(dict.fromkeys((score.task, score.agent) for score in scores))
    height = max(1.0, 0.55 * len(judges))  # of a row, in lines of text
    places = {}
    names = []
    top = 0.0
    for task, of_task in groupby(rows, key=lambda row: row[0]):
        names.append((top, TASK_NAMES[task], "bold"))
        for number, row in enumerate(of_task):
            places[row] = top + 1 + height * number
            names.append((places[row], row[1], "normal"))
        top = places[row] + height
    figure.set_size_inches(width_for([name for _, name, _ in names]), 1.1 + 0.24 * top)
    axis = figure.subplots()
    axis.axvspan(0.5 - bounds, 0.5 + bounds, color=BAND, alpha=0.35, linewidth=0)
    axis.axvline(0.5, color=BAND, linewidth=1)
    marks = []
    for number, judge in enumerate(judges):
        of_judge = [score for score in scores if score.judge == judge]
        value, bars = with_bars([score.detectability for score in of_judge])
        shift = 0.5 * (number - (len(judges) - 1) / 2)
        heights = [places[score.task, score.agent] + shift for score in of_judge]
        marks.append(axis.errorbar(value, heights, xerr=bars, markersize=5, elinewidth=1.4, **_style(number)))
    axis.set(xlim=(-0.01, 1.01), ylim=(top, -0.7), xlabel="trials judged rightly; bars: 95 % intervals")
    axis.set_xticks(np.linspace(0, 1, 5), ["0", "25 %", "chance", "75 %", "100 %"])
    axis.set_yticks([place for place, _, _ in names], figure_labels([name for _, name, _ in names]))
    for text, (_, _, weight) in zip(axis.get_yticklabels(), names, strict=True):
        text.set_fontweight(weight)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    _legend(figure, marks, list(map(label, judges)), loc="outside upper center", ncols=3)


def _by_agent(scores: Sequence[Score], figure: Any) -> None:
    rated = list(filter(_is_known, without_repetition(scores)))
    names = figure_labels(["people", *(score.name for score in rated)])
    figure.set_size_inches(width_for(names), 1.2 + 0.32 * (1 + len(rated)))
    matrix, dots = figure.subplots(1, 2, width_ratios=(1, 2), sharey=True)
    shares = [scores[0].shares_of_people, *(score.shares_of_machines for score in rated)]
    figure.colorbar(_matrix(matrix, shares, VERDICTS, names), ax=matrix, ticks=(0, 0.5, 1))
    matrix.set_xlabel("said")
    places = np.arange(1, len(rated) + 1)
    rates = {"detectability": (INK, "o", places - 0.12), "p(M|M)": (MACHINE, "s", places + 0.18)}
    for measure, (color, marker, heights) in rates.items():
        value, bars = with_bars([score.p_machine if measure == "p(M|M)" else score.detectability for score in rated])
        style = {"color": color, "marker": marker, "markersize": 5, "linestyle": "none", "elinewidth": 1.2}
        dots.errorbar(value, heights, xerr=bars, label=measure, **style)
    dots.axvline(0.5, color=BAND, linestyle=":", linewidth=1)
    dots.set(xlim=(0, 1), xlabel="share; bars: 95 % intervals")
    dots.spines[["top", "right", "left"]].set_visible(False)
    dots.tick_params(axis="y", length=0, labelleft=False)
    if rated:
        dots.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _by_turns(rates: Iterable[PassRate]) -> Panels:
    panels: Panels = defaultdict(lambda: defaultdict(list))
    for rate in rates:
        if rate.turns is not None and rate.verdicts and rate.agent != ALL:
            series = ", ".join(filter(None, (rate.agent, rate.mode)))
            panels[label(rate.judge), "turns"][series].append((rate.turns, rate.pass_rate))
    return panels


def curves(scores: Sequence[Score], column: str) -> Panels:
    """Panels of each task: detectability, and how often answers of people and of machines were judged a person's.

    They are as in Figs. 5E and S5 of the 2025 paper. There is one series, a line, for each value of A in a column
    ``A*B``. Otherwise, with one judge, there is one for each agent (at most MOST_SERIES); else one for each judge."""
    panels: Panels = defaultdict(lambda: defaultdict(list))
    pairs = _pairs_of_values({score.value for score in scores}, column)
    across = column.partition(AND)[2] if pairs else column
    for task in dict.fromkeys(score.task for score in scores):
        of_task = [score for score in scores if score.task == task]
        judges = {score.judge for score in of_task}
        agents = {score.agent for score in of_task}
        are_agents = not pairs and len(judges) == 1 and 1 < len(agents) <= MOST_SERIES
        if not are_agents:
            of_task = [score for score in of_task if score.agent == ALL]
        for score in of_task:
            title = TASK_NAMES[task]
            if pairs and len(judges) > 1:
                title += f", {label(score.judge)}"
            series, place = pairs.get(score.value, (score.name if are_agents else score.judge, score.value))
            people = ("judged human", SPEAKERS) if are_agents else ("people judged human", series)
            machines = ("judged human" if are_agents else "machines judged human", series)
            estimates = {people: score.p_human} if score.agent == ALL else {}
            if not are_agents or score.agent != ALL or len(agents) > 2:  # a single agent is all agents
                estimates |= {machines: _rest(score.p_machine), ("detectability", series): score.detectability}
            for (measure, name), estimate in estimates.items():
                if not math.isnan(estimate.value):
                    panels[f"{title}:\n{measure}", across][name].append((place, estimate))
    return panels


def _rest(share: Estimate) -> Estimate:
    return replace(share, value=1 - share.value, low=1 - share.high, high=1 - share.low)


def _pairs_of_values(values: Collection[Any], column: str) -> dict[str, tuple[str, Any]]:
    """By a value of a column ``A*B`` those of A and of B, numbers if all are; nothing where A's are too many."""
    pairs = {value: str(value).split(BOTH) for value in values} if column.count(AND) == 1 else {}
    if any(len(both) != 2 for both in pairs.values()) or len({first for first, *_ in pairs.values()}) > MOST_SERIES:
        return {}
    are_numbers = all(re.fullmatch(r"-?\d+(\.\d+)?", second) for _, second in pairs.values())
    return {value: (first, float(second) if are_numbers else second) for value, (first, second) in pairs.items()}


def _by_measure(captions: Iterable[CaptionScore], scores: Table[Score]) -> Panels:
    """Detectability beside BLEU and CIDEr-D: a panel for each judge and measure, a point for each agent (2025 paper,
    Fig. 8)."""
    panels: Panels = defaultdict(lambda: defaultdict(list))
    for caption, (name, measure) in product(captions, {"BLEU-4": "bleu", "CIDEr-D": "cider_d"}.items()):
        for score in scores.where(task=CAPTION_TASK, agent=caption.of):
            if (value := getattr(caption, measure)) is not None and _is_known(score):
                panels[label(score.judge), name][caption.of].append((value, score.detectability))
    return panels


def _over(panels: Panels, what: str, figure: Any) -> None:
    """Points with intervals: a panel for each key, a series for each of its keys of (place, estimate). Words and few
    numbers stand evenly, in their order; numbers of single points to scale."""
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(chain.from_iterable(panels.values())))
    all_series = [points for of_panel in panels.values() for points in of_panel.values()]
    places = list(dict.fromkeys(place for points in all_series for place, _ in points))
    are_numbers = all(isinstance(place, Real) for place in places)
    places.sort(key=None if are_numbers else numbers_in_order)
    styles = dict(zip(names, map(_style, range(len(names))), strict=True)) | {SPEAKERS: {"color": INK, "marker": "*"}}
    is_scale = are_numbers and all(len(points) == 1 for points in all_series)
    across = min(len(panels), ACROSS)
    down = math.ceil(len(panels) / across)
    room = len(places) * max(1, len(names) / 4)
    texts = [f"{place:.15g}" if are_numbers else label(str(place)) for place in places]
    is_long = not is_scale and sum(map(len, texts)) > 24
    longer = beyond_usual(texts) if is_long else 0  # letters, tilted below each panel
    longest = max(map(len, figure_labels(names)))  # letters of the key beside the panels
    width = max(2.6, 1.2 + 0.085 * longest) + (2 + 0.16 * min(room, 30) + 0.075 * longer) * across
    figure.set_size_inches(width, 0.9 + (2.3 + 0.045 * longer) * down)
    axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axis, ((title, place_name), of_panel) in zip(axes, panels.items(), strict=False):
        for series, of_series in of_panel.items():
            shift = 0.0 if is_scale else 0.5 * ((names.index(series) + 0.5) / len(names) - 0.5)
            values = [(place if is_scale else places.index(place) + shift, estimate) for place, estimate in of_series]
            values.sort(key=lambda point: point[0])
            value, bars = with_bars([estimate for _, estimate in values])
            line = "none" if not are_numbers or is_scale else "--" if series.endswith("burst") else "-"
            style = styles[series] | {"linestyle": line, "markersize": 4, "elinewidth": 1.2, "linewidth": 1}
            axis.errorbar([place for place, _ in values], value, bars, **style)
        axis.axhline(0.5, color=BAND, linestyle=":", linewidth=1)
        axis.set(ylim=(-0.01, 1.01), xlabel=label(place_name), title=title)
        if not is_scale:
            axis.set_xticks(range(len(places)), texts, **({"rotation": 30, "ha": "right"} if is_long else {}))
            axis.set_xlim(-0.5, len(places) - 0.5)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(panels) :]:
        axis.remove()
    axes[0].set_ylabel(f"{what} (dotted: 0.5)")
    marks = [Line2D([], [], **styles[name] | {"linestyle": "none"}) for name in names]
    _legend(figure, marks, figure_labels(names), loc="outside right upper")


def _by_trained_on(scores: Sequence[Score], figure: Any) -> None:
    """Detectability by the agent trained on and the agent judged: a matrix for each task and judge (2025 paper, Fig.
    S8)."""
    of_agents = [score for score in scores if score.agent != ALL]
    panels = [list(of_judge) for _, of_judge in groupby(of_agents, key=lambda score: (score.task, score.judge))]
    trained = sorted({score.value for score in of_agents})
    judged = sorted({score.agent for score in of_agents})
    figure.set_size_inches(width_for(trained) + 0.3 * len(judged), 0.6 + (1.4 + 0.32 * len(trained)) * len(panels))
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True).ravel()
    for axis, of_panel in zip(axes, panels, strict=True):
        rates = {(score.value, score.agent): score.detectability.value for score in of_panel}
        shares = [[rates.get((taught_by, agent), math.nan) for agent in judged] for taught_by in trained]
        key = _matrix(axis, shares, figure_labels(judged), figure_labels(trained))
        axis.set(
            ylabel="trained on", title=f"{TASK_NAMES[of_panel[0].task]}, {label(of_panel[0].judge)}: detectability"
        )
    axes[-1].tick_params(axis="x", rotation=30)
    axes[-1].set_xlabel("judged")
    figure.colorbar(key, ax=axes, ticks=(0, 0.5, 1))


def _legend(figure: Any, marks: Sequence[Any], names: Sequence[str], **where: Any) -> None:
    """The names are set afterwards, as matplotlib hides a mark whose label begins with an underline."""
    legend = figure.legend(marks, [str(number) for number in range(len(marks))], frameon=False, **where)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)


def _style(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "linestyle": "none"}


def _matrix(axes: Any, shares: Sequence[Sequence[float]], columns: Sequence[str], rows: Sequence[str]) -> Any:
    """Draw the matrix; returns what a colour key is made of."""
    image = axes.imshow(shares, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for down, row in enumerate(shares):
        for across, value in enumerate(row):
            if math.isnan(value):
                text = "–"
                color = INK
            else:
                text = f"{value:.2f}"
                color = "white" if value > 0.6 else "black"
            axes.text(across, down, text, ha="center", va="center", color=color)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    return image
