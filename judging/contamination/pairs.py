"""Pass rates of pairs of conversations, corrected for people's conversations that participants did not write.

A pair shows a conversation with a machine beside one of people. The second is *foreign* if the messages of either
participant are: then the judge sees two conversations with something that is no person. Both participants' messages are
marked by themselves, and foreign independently of each other: with the probability 1 - (1 - a)(1 - b).

**With traces** the corrected pass rate is the end of the line of wrong verdicts on this probability
(:mod:`judging.contamination.line`). **With a known rate** nobody knows which conversations are foreign. Between two
machines a judge can only guess, so that half of these verdicts are wrong by assumption: the corrected rate is
(observed - c / 2) / (1 - c), where c is the rate of foreign conversations.

The person who talks with the machine may paste, too. This is not corrected: the machine speaks in that conversation
all the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judging.contamination.asked import KnownRate, Traced
from judging.contamination.line import fitted_line, joined, shifts, student, with_errors
from judging.contamination.rate_of_task import NOWHERE, RateOfTask, probabilities, source_and_rate
from judging.statistics.jackknife import CONFIDENCE, Codes, Drawn
from judging.statistics.measures import ALL
from judging.statistics.pass_rate import (
    PEOPLE_COLUMN,
    cells_of_pairs,
    clusters_of_pairs,
    drawn_of_pairs,
    rate_of_pairs,
    verdicts_on_pairs,
)
from judging.statistics.tables import NO_FIGURE, Estimate
from judging.statistics.verdict_table import by_judge
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

BY_CHANCE = 0.5  # of verdicts on two conversations with machines are wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaminatedPairs:
    """The pass rate of a judge and agent as it is, and corrected for conversations that people did not write."""

    judge: str
    """Who judged; "people" are all people together."""
    agent: str
    """The machine that speaks in one of the two conversations; "all" are all agents together."""
    turns: int | None = None
    """How many turns the machine's conversation has, with those that it wrote itself beforehand; None if unknown."""
    mode: str | None = None
    """How the conversations went, such as "ping-pong" or "burst"; None if unknown."""
    source: str
    """Where the rate comes from: "traces" or "known rate"."""
    rate: Estimate = NO_FIGURE
    """The contamination rate of what one participant writes in a conversation, 0 to 1; of a known one its bounds."""
    persons: int = 0
    """How many participants have messages with traces."""
    answers: int = 0
    """How many times a participant wrote a conversation's messages, with traces."""
    foreign_answers: int = 0
    """How many of these are more probably foreign than not."""
    pairs: int
    """How many pairs have a verdict."""
    foreign_pairs: int = 0
    """In how many of them the conversation of people is more probably foreign than not."""
    verdicts: int
    """How many verdicts there are."""
    judged_without_traces: int = 0
    """How many of them are on pairs in which a participant beside the machine's conversation has no traces. The
    corrected figure does without them: who refuses traces may paste more often than others, and nobody knows."""
    pass_rate: Estimate = NO_FIGURE
    """The share of wrong verdicts as it is, 0 to 1."""
    pass_rate_corrected: Estimate = NO_FIGURE
    """The same beside conversations that people wrote themselves."""
    pass_rate_foreign: float = float("nan")
    """The share of wrong verdicts beside foreign conversations; by a known rate 0.5, by assumption."""
    pass_rate_at_low: float = float("nan")
    """The corrected pass rate if the rate is at the lower end of its interval."""
    pass_rate_at_high: float = float("nan")
    """The same at the upper end."""
    why: str = ""
    """Why nothing is corrected; "" where it is."""

    @property
    def name(self) -> str:
        """The agent as tables call it."""
        return "all agents" if self.agent == ALL else self.agent

    @property
    def of_foreign(self) -> Estimate:
        """``pass_rate_foreign`` as tables write figures."""
        return Estimate(self.pass_rate_foreign)

    @property
    def at_ends(self) -> str:
        """The corrected pass rate at both ends of the rate's interval, in words."""
        if math.isnan(self.pass_rate_at_low):
            return "–"
        return f"{Estimate(self.pass_rate_at_low)} to {Estimate(self.pass_rate_at_high)}"


def contaminated_pairs(
    verdicts: pd.DataFrame, asked: KnownRate | Traced, of_conversations: RateOfTask | None
) -> list[ContaminatedPairs]:
    """The rows of the table, in the order of :func:`judging.statistics.pass_rate.pass_rates`.

    ``verdicts`` are on pairs of conversations; those on pairs of two machines, or of none, are not used.
    ``of_conversations`` is what the traces of conversations say; None where they have none, or the rate is known."""
    if verdicts.empty:
        return []
    pairs = verdicts_on_pairs(verdicts)
    common, why = source_and_rate(asked, of_conversations)
    agents = sorted(pairs["agent"].unique())
    rows = []
    for judge, of_judge in by_judge(pairs):
        drawn = drawn_of_pairs(of_judge)
        for cell, part in cells_of_pairs(of_judge, agents):
            plain = rate_of_pairs(part, drawn)
            row: dict[str, Any] = {
                **common,
                "judge": judge,
                **cell,
                "pairs": plain.pairs,
                "verdicts": plain.verdicts,
                "pass_rate": plain.pass_rate,
                "why": why,
            }
            if not why and not plain.verdicts:
                row["why"] = "no verdicts"
            elif not why and isinstance(asked, KnownRate):
                row |= pass_rate_by_known_rate(plain.pass_rate, (asked.low, asked.high))
                if math.isnan(row["pass_rate_corrected"].value):
                    row["why"] = "the rate does not fit these verdicts"
            elif not why:
                assert of_conversations is not None
                row |= _by_traces(part, drawn, of_conversations)
            rows.append(ContaminatedPairs(**row))
    return rows


def shows_any(verdicts: pd.DataFrame, of_conversations: RateOfTask | None) -> bool:
    """Whether any of the ``verdicts`` on pairs is beside a conversation of people that has traces."""
    if of_conversations is None or PEOPLE_COLUMN not in verdicts.columns:
        return False
    known = _patterns_of_people(of_conversations)
    return any(_found(name, known) is not None for name in verdicts[PEOPLE_COLUMN].dropna().unique())


def conversation_rate(rate: float) -> float:
    """The rate of foreign conversations of two people, of whom each writes foreign messages with the ``rate``."""
    return 1 - (1 - rate) ** 2


def pass_rate_by_known_rate(plain: Estimate, bounds: tuple[float, float]) -> dict[str, Any]:
    """The corrected pass rate at a rate between ``bounds``, with its name in the table; at their middle the value.

    An interval reaches from its lowest end at either bound to the highest. Where a whole interval lies beyond 0 or 1,
    the rate does not fit: the figure is NaN."""
    found = []
    for rate in (sum(bounds) / 2, *bounds):
        foreign = conversation_rate(rate)
        ends = (np.array([plain.value, plain.low, plain.high]) - foreign * BY_CHANCE) / (1 - foreign)
        known = ends[~np.isnan(ends)]
        if known.min() > 1 or known.max() < 0:
            return {"pass_rate_corrected": NO_FIGURE}
        found.append(Estimate(*np.clip(ends, 0, 1).tolist()))
    middle, at_low, at_high = found
    return {
        "pass_rate_corrected": Estimate(middle.value, min(at_low.low, at_high.low), max(at_low.high, at_high.high)),
        "pass_rate_foreign": BY_CHANCE,
        "pass_rate_at_low": at_low.value,
        "pass_rate_at_high": at_high.value,
    }


def _by_traces(part: pd.DataFrame, drawn: Drawn, of_conversations: RateOfTask) -> dict[str, Any]:
    """The corrected pass rate of ``part`` of the verdicts, with its names in the table. ``drawn`` says which dimensions
    are several among all verdicts."""
    judged = part[part["verdict"].isin(VERDICTS)]
    patterns = _patterns_beside(judged, of_conversations)
    has_traces = (patterns != NOWHERE).all(axis=0)
    without_traces = int((~has_traces).sum())
    if not has_traces.any():
        why = "no conversation of people that was judged has traces of both participants"
        return {"judged_without_traces": without_traces, "why": why}
    judged = judged[has_traces]
    patterns = patterns[:, has_traces]
    plain = rate_of_pairs(judged, drawn).pass_rate
    wrong = (judged["verdict"] != judged["truth"]).to_numpy(dtype=np.float64)
    foreign = 1 - np.prod([1 - probabilities(of_conversations.rate, of_one) for of_one in patterns], axis=0)
    is_foreign = foreign[0] > 0.5
    lines = [fitted_line(np.ones(len(wrong)), wrong, of_rate) for of_rate in foreign]
    clusters = clusters_of_pairs(judged)
    moves = shifts(lines, np.ones(len(wrong), dtype=bool), clusters)[:2]
    line = lines[0]
    value = line.within(len(wrong))
    interval = (plain.low, plain.high)
    if line.has_slope and not math.isnan(plain.low):
        interval = student(with_errors([value], [line], clusters), 0, CONFIDENCE)
    at_low, at_high = np.clip([of_end.own for of_end in lines[1:3]], 0, 1).tolist()
    return {
        "foreign_pairs": int(judged["trial"][is_foreign].nunique()),
        "judged_without_traces": without_traces,
        "pass_rate_corrected": joined(value, interval, moves),
        "pass_rate_foreign": float(np.clip(line.foreign, 0, 1)),
        "pass_rate_at_low": at_low,
        "pass_rate_at_high": at_high,
    }


def _patterns_beside(judged: pd.DataFrame, of_conversations: RateOfTask) -> Codes:
    """The patterns [2, verdicts] of both participants in the conversation of people beside the machine's."""
    if PEOPLE_COLUMN not in judged.columns:
        return np.full((2, len(judged)), NOWHERE)
    known = _patterns_of_people(of_conversations)
    of_name = {name: _found(name, known) for name in judged[PEOPLE_COLUMN].dropna().unique()}
    found = [of_name.get(name) or (NOWHERE, NOWHERE) for name in judged[PEOPLE_COLUMN]]
    return np.array(found, dtype=np.int64).reshape(len(judged), 2).T


def _patterns_of_people(of_conversations: RateOfTask) -> dict[str, tuple[int, int]]:
    """By conversation of people the patterns of both, with the name that a pair has for it, but for its run."""
    by_name: dict[str, list[int]] = {}
    for key, pattern in of_conversations.pattern_of.items():
        by_name.setdefault(f" {key.stimulus} {key.record} {key.sample}", []).append(pattern)
    return {name: (of_both[0], of_both[1]) for name, of_both in by_name.items() if len(of_both) == 2}


def _found(name: str, known: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    """The patterns of a conversation by the name that a pair has for it: its run, a space, and the rest."""
    for at, character in enumerate(name):
        if character == " " and name[at:] in known:
            return known[name[at:]]
    return None
