"""The papers' figures (``published_scores.json``) beside ours, and how our classifiers differ from theirs."""

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import orjson

from agents import catalogue
from agents.errors import InputError
from judging.judges.papers_classifiers import differences_from_paper
from judging.statistics.ledger import SettingsByJudge
from judging.statistics.measures import ALL, Score
from judging.statistics.tables import Estimate, Table
from judging.statistics.verdict_table import PEOPLE, PUBLISHED_PREFIX

Paper = Literal["2022", "2025"]
PAPERS: tuple[Paper, ...] = get_args(Paper)
# kinds of judges, beside people
MODEL = "language model"
CLASSIFIER = "classifier"
MEASURES = {"p_human": "p(H|H)", "p_machine": "p(M|M)", "detectability": "detectability"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigure:
    """A figure that a paper printed, and ours."""

    paper: str
    """Which, of :data:`PAPERS`."""
    task: str
    """The task that was answered."""
    agent: str
    """The agent as the paper calls it; "all" for all its agents."""
    measure: str
    """A name of :data:`MEASURES`."""
    only: str
    """The part of the trials that the figure is of, such as "catch trials"; "" for all."""
    kind: str
    """The kind of their judge: "people", :data:`MODEL` or :data:`CLASSIFIER`."""
    published: float
    """Their figure, a share of 0 to 1."""
    source: str
    """Where the paper prints it, such as "L177, Fig. 5A"."""
    note: str
    """What must be known of the printed figure itself; "" for nothing."""
    judge: str | None = None
    """Our judge of that kind; None without a figure of ours."""
    our_agent: str | None = None
    """Our agent, or "all"; None without a figure of ours."""
    ours: float = math.nan
    """Our figure, 0 to 1; NaN for none."""
    low: float = math.nan
    """The lower end of our 95 % interval; NaN for none."""
    high: float = math.nan
    """Its upper end, likewise."""
    inside: bool | None = None
    """Whether theirs lies in our interval; None without a figure of ours."""
    why: str
    """In what the two are unlike ("" for nothing known), or why there is none of ours."""

    @property
    def has_ours(self) -> bool:
        """Whether there is a figure of ours beside it."""
        return not math.isnan(self.ours)

    @property
    def inside_word(self) -> str:
        """Whether theirs lies in our interval, in a word."""
        return "inside" if self.inside else "outside"

    @property
    def name(self) -> str:
        """The measure as papers write it."""
        return MEASURES[self.measure]

    @property
    def interval(self) -> Estimate:
        """Our figure with its 95 % interval."""
        return Estimate(self.ours, self.low, self.high)


@cache
def published() -> Mapping[str, Any]:
    """The papers' figures (``cells``), how they call agents (``agents``), and their citations (``papers``)."""
    content: Mapping[str, Any] = orjson.loads(Path(__file__).with_name("published_scores.json").read_bytes())
    return content


def beside_published(
    paper: Paper, scores: Sequence[Score], settings: SettingsByJudge, cues: Collection[str] = ()
) -> Table[PublishedFigure]:
    """Each figure of a paper (of :data:`PAPERS`) with ours of the same task, kind of judge and agent. ``cues`` are the
    judges by a single cue, of which the papers had none."""
    rows = []
    for cell in published()["cells"]:
        if cell["paper"] == paper:
            theirs = {name: cell.get(name, "") for name in ("paper", "agent", "measure", "only", "source", "note")}
            theirs |= {"task": cell["asked"], "kind": cell["judge"], "published": cell["value"]}
            rows += [PublishedFigure(**theirs, **ours) for ours in _ours(cell, scores, settings, cues)]
    return Table(rows)


def _ours(
    cell: Mapping[str, Any], scores: Sequence[Score], settings: SettingsByJudge, cues: Collection[str]
) -> Iterator[dict[str, Any]]:
    task = cell["asked"]
    agent = cell["agent"]
    of_task = [score for score in scores if score.task == task]
    alike = [score for score in of_task if kind(score.judge, settings, cues) == cell["judge"]]
    same = [score for score in alike if agent == (ALL if score.agent == ALL else stands_for(score.agent, task))]
    with_figure = [score for score in same if not math.isnan(getattr(score, cell["measure"]).value)]
    if "only" in cell:
        yield {"why": f"it is of {cell['only']} alone"}
    elif not of_task:
        yield {"why": "no trials of this task"}
    elif not alike:
        yield {"why": "no people judged" if cell["judge"] == PEOPLE else f"no {cell['judge']} judged"}
    elif not with_figure:
        yield {"why": f"no verdicts on {'any agent' if agent == ALL else agent}"}
    else:
        for score in with_figure:
            ours: Estimate = getattr(score, cell["measure"])
            agents = [other.agent for other in alike if other.judge == score.judge and other.agent != ALL]
            why = [*_other_agents(cell, score.agent, agents), *_other_judge(cell, score.judge, settings)]
            place = {"judge": score.judge, "our_agent": score.agent, "why": "; ".join(why)}
            is_inside = ours.low <= cell["value"] <= ours.high
            yield {**place, "ours": ours.value, "low": ours.low, "high": ours.high, "inside": is_inside}


def kind(judge: str, settings: SettingsByJudge, cues: Collection[str] = ()) -> str | None:
    """The kind of our judge in the papers' terms; None of a judge by a single cue (``cues``) and of any other.

    A setting ``prompt`` makes a judge a language model, a setting ``split`` a classifier."""
    settings_of_judge = settings.get(judge, {})
    if judge == PEOPLE:
        return PEOPLE
    if "prompt" in settings_of_judge:
        return MODEL
    return CLASSIFIER if "split" in settings_of_judge and judge not in cues else None


def stands_for(agent: str, task: str) -> str | None:
    """The papers' name of an agent that answered a task."""
    imported = agent.removeprefix(PUBLISHED_PREFIX).casefold()
    for entry in published()["agents"]:
        if task in entry["asked"] and (imported in entry["imported"] or agent in entry["ours"]):
            return str(entry["name"])
    return None


def _other_agents(cell: Mapping[str, Any], agent: str, agents: Sequence[str]) -> Iterator[str]:
    if agent == ALL:
        theirs = published()["papers"][cell["paper"]]["agents"][cell["asked"]]
        named = {name: stands_for(name, cell["asked"]) for name in agents}
        if lacking := [name for name in theirs if name not in named.values()]:
            yield f"without {', '.join(lacking)}"
        if more := [name for name in agents if named[name] not in theirs]:
            yield f"also of {', '.join(more)}"
    elif not agent.startswith(PUBLISHED_PREFIX):
        with contextlib.suppress(InputError):  # a pair, or an agent that is not installed here
            if catalogue.get(agent).in_paper != "compared":
                yield f"{agent} is not quite theirs: other weights or parts"


def _other_judge(cell: Mapping[str, Any], judge: str, settings: SettingsByJudge) -> Iterator[str]:
    if cell["judge"] == MODEL:
        yield "another model, theirs is withdrawn"
        if settings[judge]["prompt"] != "papers":
            yield "asked in other words"
    elif cell["judge"] == CLASSIFIER:
        yield from differences_from_paper(cell["paper"], cell["asked"], settings[judge])
