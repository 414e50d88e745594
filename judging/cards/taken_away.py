"""Tells of a card: from the scores of versions in which a property is taken away, to the parts of the card."""

import math
from collections.abc import Mapping
from typing import Any

from agents.stimuli import Asked
from judging.cards.card import Figure, Remaining, Tell
from judging.cards.steps import tells_of
from judging.tells.registry import TRANSFORMATIONS

Scores = Mapping[str, Any]
"""The content of a ``scores.json``; empty where no tells were looked for."""
RULED = (
    "No property was taken away. The rules that all answers pass have taken away case, marks and inflection, and left "
    "one word; nothing else can be taken away from a word."
)
NOT_JUDGED = (
    "No property was taken away: no judge of this card learns anew from such answers, or they could not be judged."
)


def tells(scores: Scores, agent: str, task: Asked) -> list[Tell]:
    """The tells of an agent in a task, those with the smallest p first."""
    found = []
    for row in scores.get("tells", ()):
        if row["agent"] == agent and row["asked"] == task and row["taken"] in ("alone", "last"):
            found.append(
                Tell(
                    tell=row["tell"],
                    judge=row["judge"],
                    taken=row["taken"],
                    summary=TRANSFORMATIONS[row["tell"]].takes,
                    before=row["before"],
                    after=row["after"],
                    change=_figure(row, "change"),
                    p=row["holm"],
                )
            )
    return sorted(found, key=lambda tell: (math.inf if tell.p is None else tell.p, -(tell.change.value or 0)))


def remaining(scores: Scores, agent: str, task: Asked) -> list[Remaining]:
    """What each judge still tells when all properties are gone."""
    found = []
    for row in scores.get("tells_left", ()):
        if row["agent"] == agent and row["asked"] == task:
            found.append(Remaining(judge=row["judge"], detectability=_figure(row, "remains")))
    return found


def no_tells(scores: Scores, task: Asked) -> str:
    """Why no property was taken away from the answers to a task; "" where some were."""
    if not tells_of(task):
        return RULED
    if not any(row["asked"] == task for row in scores.get("tells", ())):
        return NOT_JUDGED
    return ""


def _figure(row: Mapping[str, Any], name: str) -> Figure:
    return Figure(value=row[name], low=row[f"{name}_low"], high=row[f"{name}_high"])
