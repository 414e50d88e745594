"""The papers' figures (``published_scores.json``) with ours beside them, each or with the reason why there is none.

A reader of ``published.csv`` must be able to trust that nothing was passed over: each figure of the paper has a row. It
has ours where our verdicts have that part (:mod:`judging.scores.papers.parts`), whatever columns were asked for, and
otherwise says what is missing."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from agents import catalogue
from agents.errors import InputError
from judging.judges.papers_classifiers import differences_from_paper
from judging.scores.papers.parts import PARTS, Part, PartOfCatchTrials, PartOfJudges, PartOfVerdicts
from judging.scores.papers.published import CLASSIFIER, MODEL, Paper, PublishedFigure, kind, published, stands_for
from judging.statistics.ledger import SettingsByJudge
from judging.statistics.measures import ALL, LOG_LINEAR, Correction, Score, clusters, summarize
from judging.statistics.pass_rate import WordsPerMessage, drawn_of_pairs, rate_of_pairs
from judging.statistics.tables import Estimate, Table
from judging.statistics.verdict_table import PEOPLE, PUBLISHED_PREFIX, by_judge, counted

if TYPE_CHECKING:
    import pandas as pd

OF_PAIRS = ("pass_rate", "words")  # measures of pairs of conversations


@dataclass(frozen=True, kw_only=True)
class OurFigures:
    """What we found, beside which a paper's figures are put."""

    scores: Sequence[Score]
    """By task, judge and agent, of all verdicts."""
    settings: SettingsByJudge = field(default_factory=dict)
    """Those of trained and language models' judges."""
    cues: Collection[str] = ()
    """The judges by a single cue, of which the papers had none."""
    verdicts: pd.DataFrame | None = None
    """The verdicts on single answers behind ``scores``, with all columns; None leaves out parts of them."""
    catch: Mapping[str, Sequence[Score]] = field(default_factory=dict)
    """The rates of catch trials, by their kind in ``catch.csv``."""
    pairs: pd.DataFrame | None = None
    """The verdicts on pairs (:func:`judging.statistics.pass_rate.verdicts_on_pairs`); None where there are none."""
    words: Sequence[WordsPerMessage] = ()
    """Words per message in these pairs."""
    correction: Correction = LOG_LINEAR
    """That of d'."""

    @cached_property
    def _of_parts(self) -> dict[tuple[str, str], list[Score]]:
        return {}

    def of_part(self, task: str, only: str, part: Part | None) -> list[Score]:
        """The scores of a task's verdicts in a ``part`` named ``only``; None is all of them."""
        of_task = [score for score in self.scores if score.task == task]
        if part is None:
            return of_task
        if isinstance(part, PartOfJudges):
            return [score for score in of_task if part.chosen(self.settings.get(score.judge, {}))]
        if isinstance(part, PartOfCatchTrials):
            return [score for score in self.catch.get(part.kind, ()) if score.task == task]
        if (task, only) not in self._of_parts:
            self._of_parts[task, only] = list(self._summarized(task, part))
        return self._of_parts[task, only]

    def _summarized(self, task: str, part: PartOfVerdicts) -> Iterator[Score]:
        """The scores of the verdicts in a part, as ``--by`` of its column would have them."""
        if self.verdicts is None:
            return
        of_task = self.verdicts[self.verdicts["asked"] == task]
        agents = sorted(of_task["agent"][of_task["truth"] == "machine"].unique())
        for judge, of_judge in by_judge(of_task):
            is_chosen = part.chosen(of_judge)
            if is_chosen.any():
                drawn = clusters(counted(of_judge)).drawn()
                scores = summarize(counted(of_judge[is_chosen]), agents, drawn, self.correction)
                yield from (replace(score, task=task, judge=judge) for score in scores)

    def has_trained_people(self, task: str) -> bool:
        """Whether some people judged after feedback."""
        part = PARTS["judges after feedback"]
        return any(score.judge == PEOPLE for score in self.of_part(task, "judges after feedback", part))


class _Ours(NamedTuple):
    judge: str
    agent: str
    figure: Estimate
    why: Sequence[str]


def beside_published(paper: Paper, ours: OurFigures) -> Table[PublishedFigure]:
    """Each figure of a paper (of :data:`judging.scores.papers.published.PAPERS`) with ours of the same task, kind of
    judge, agent and part, a row for each judge and agent of ours; or with the reason why there is none."""
    rows = []
    for cell in published()["cells"]:
        if cell["paper"] != paper:
            continue
        theirs = {name: cell.get(name, "") for name in ("paper", "agent", "measure", "only", "source", "note")}
        theirs |= {"task": cell["asked"], "kind": cell["judge"], "published": cell["value"]}
        found = _of_pairs(cell, ours) if cell["measure"] in OF_PAIRS else _of_answers(cell, ours)
        if isinstance(found, str):
            rows.append(PublishedFigure(**theirs, why=found))
            continue
        for own in found:
            figure = own.figure
            is_inside = None if math.isnan(figure.low) else figure.low <= cell["value"] <= figure.high
            rows.append(
                PublishedFigure(
                    **theirs,
                    judge=own.judge,
                    our_agent=own.agent,
                    ours=figure.value,
                    low=figure.low,
                    high=figure.high,
                    inside=is_inside,
                    why="; ".join(own.why),
                )
            )
    return Table(rows)


def compared(rows: Table[PublishedFigure]) -> tuple[int, int]:
    """How many of a paper's figures have one of ours beside them, and how many there are."""
    figures = {(row.task, row.kind, row.agent, row.measure, row.only): False for row in rows}
    for row in rows.where(has_ours=True):
        figures[row.task, row.kind, row.agent, row.measure, row.only] = True
    return sum(figures.values()), len(figures)


def _of_answers(cell: Mapping[str, Any], ours: OurFigures) -> list[_Ours] | str:
    """Our figures of single answers; or why there are none."""
    task = cell["asked"]
    agent = cell["agent"]
    only = cell.get("only", "")
    part = PARTS[only] if only else None
    judged = {score.judge for score in ours.of_part(task, "", None)}
    caught = {score.judge for of_kind in ours.catch.values() for score in of_kind if score.task == task}
    if not judged | caught:
        return "no trials of this task"
    if not any(kind(judge, ours.settings, ours.cues) == cell["judge"] for judge in judged | caught):
        return "no people judged" if cell["judge"] == PEOPLE else f"no {cell['judge']} judged"
    of_part = ours.of_part(task, only, part)
    alike = [score for score in of_part if kind(score.judge, ours.settings, ours.cues) == cell["judge"]]
    if not alike:
        return f"no {cell['judge']} judged with {part.setting}" if isinstance(part, PartOfJudges) else _lacking(part)
    same = [score for score in alike if agent == (ALL if score.agent == ALL else stands_for(score.agent, task))]
    found = []
    for score in same:
        figure: Estimate = getattr(score, cell["measure"])
        if not math.isnan(figure.value):
            of_judge = [row for row in alike if row.judge == score.judge and row.agent != ALL]
            agents = [row.agent for row in of_judge if not math.isnan(row.p_machine.value)]
            is_of_no_agent = score.agent == ALL and part is not None and not agents  # catch trials, people's talks
            why = [] if is_of_no_agent else [*_other_agents(cell, score.agent, agents)]
            found.append(_Ours(score.judge, score.agent, figure, [*why, *_other_judge(cell, score.judge, ours)]))
    among = f" among {only}" if isinstance(part, PartOfVerdicts) else ""
    answers = "people's answers" if cell["measure"] == "p_human" else "any agent's answers"
    return found or f"no verdicts on {answers if agent == ALL else agent}{among}"


def _lacking(part: PartOfVerdicts | PartOfCatchTrials | None) -> str:
    return "no verdict counts" if part is None else part.lacking


def _of_pairs(cell: Mapping[str, Any], ours: OurFigures) -> list[_Ours] | str:
    """Our figures of pairs of conversations; or why there are none."""
    agent = cell["agent"]
    if cell["measure"] == "words":
        rows = [row for row in ours.words if stands_for(row.agent, cell["asked"]) == agent]
        found = [
            _Ours("", row.agent, row.difference, list(_other_agents(cell, row.agent, ())))
            for row in rows
            if row.turns == cell["turns"] and row.mode == cell["mode"]
        ]
        return found or ("no pairs of conversations" if ours.pairs is None else f"no pairs of {agent}, {cell['only']}")
    if ours.pairs is None:
        return "no pairs of conversations were judged"
    found = []
    has_judge = False
    for judge, of_judge in by_judge(ours.pairs):
        if kind(judge, ours.settings, ours.cues) != cell["judge"]:
            continue
        has_judge = True
        is_chosen = of_judge["turns"] == cell["turns"]
        if "mode" in cell:
            is_chosen &= of_judge["mode"] == cell["mode"]
        for name, part in of_judge[is_chosen].groupby("agent"):
            if stands_for(str(name), cell["asked"]) == agent:
                rate = rate_of_pairs(part, drawn_of_pairs(of_judge), ours.correction)
                if rate.verdicts:
                    why = [*_other_agents(cell, str(name), ()), *_other_judge(cell, judge, ours)]
                    found.append(_Ours(judge, str(name), rate.pass_rate, why))
    if not has_judge:
        return "no people judged pairs" if cell["judge"] == PEOPLE else f"no {cell['judge']} judged pairs"
    return found or f"no verdicts on pairs of {agent}, {cell['only']}"


def _other_agents(cell: Mapping[str, Any], agent: str, agents: Sequence[str]) -> Iterator[str]:
    """In what our ``agents``, or the one ``agent``, are unlike theirs."""
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


def _other_judge(cell: Mapping[str, Any], judge: str, ours: OurFigures) -> Iterator[str]:
    settings = ours.settings.get(judge, {})
    only = cell.get("only", "")
    if cell["judge"] == MODEL and cell["measure"] in OF_PAIRS:
        yield f"another model or other words than theirs, {cell['model']}"
    elif cell["judge"] == MODEL:
        yield "another model, theirs is withdrawn"
        if settings["prompt"] != "papers":
            yield "asked in other words"
        if settings.get("example") is not None and not only:
            yield "with an example, theirs without"
    elif cell["judge"] == CLASSIFIER:
        yield from differences_from_paper(cell["paper"], cell["asked"], settings, only)
    elif not only and cell["measure"] not in OF_PAIRS and ours.has_trained_people(cell["asked"]):
        yield "also of judges after feedback"
