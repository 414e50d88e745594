"""The papers' figures (``published_scores.json``): what they are of, and which agents and judges of ours are theirs."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import orjson

from judging.statistics.ledger import SettingsByJudge
from judging.statistics.tables import Estimate
from judging.statistics.verdict_table import PEOPLE, PUBLISHED_PREFIX

Paper = Literal["2022", "2025", "x-turing"]
PAPERS: tuple[Paper, ...] = get_args(Paper)
# kinds of judges, beside people
MODEL = "language model"
CLASSIFIER = "classifier"
MEASURES = {
    "p_human": "p(H|H)",
    "p_machine": "p(M|M)",
    "detectability": "detectability",
    "pass_rate": "pass rate",
    "words": "words per message, more than the person",
}
INSIDE = {True: "inside", False: "outside", None: "no interval"}


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
    """The part of the verdicts that the figure is of, such as "catch trials" or "110 turns"; "" for all."""
    kind: str
    """The kind of their judge: "people", :data:`MODEL` or :data:`CLASSIFIER`."""
    published: float
    """Their figure: a share of 0 to 1, or a number of words."""
    source: str
    """Where the paper prints it, such as "L177, Fig. 5A"."""
    note: str
    """What must be known of the printed figure itself; "" for nothing."""
    judge: str | None = None
    """Our judge of that kind; None without a figure of ours."""
    our_agent: str | None = None
    """Our agent, or "all"; None without a figure of ours."""
    ours: float = math.nan
    """Our figure, in the same unit; NaN for none."""
    low: float = math.nan
    """The lower end of our 95 % interval; NaN for none."""
    high: float = math.nan
    """Its upper end, likewise."""
    inside: bool | None = None
    """Whether theirs lies in our interval; None without an interval of ours."""
    why: str
    """In what the two are unlike ("" for nothing known), or why there is none of ours."""

    @property
    def has_ours(self) -> bool:
        """Whether there is a figure of ours beside it."""
        return not math.isnan(self.ours)

    @property
    def inside_word(self) -> str:
        """Whether theirs lies in our interval, in a word."""
        return INSIDE[self.inside]

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
