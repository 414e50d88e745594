"""Whether participants wrote their answers themselves: from the scores of a card's agents to the parts of the card."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.stimuli import Asked
from judging.cards.card import Figure, PoolContamination

Scores = Mapping[str, Any]
"""The content of a ``scores.json``; empty where the answers could not be judged."""


def contamination(scores: Sequence[Scores], task: Asked) -> PoolContamination | None:
    """The contamination of the pool's answers to a task; None where the pool has no traces. All agents have the same,
    as it is estimated from the participants' answers alone."""
    for of_agent in scores:
        for row in of_agent.get("contamination", ()):
            if row["asked"] == task and row["answers"]:
                return PoolContamination(
                    rate=Figure(value=row["rate"], low=row["rate_low"], high=row["rate_high"]),
                    answers=row["answers"],
                    persons=row["persons"],
                    why="" if row["rate"] is not None else row["why"],
                )
    return None


def corrected(scores: Scores, agent: str, task: Asked, judge: str) -> Figure | None:
    """A judge's detectability of an agent, corrected for answers that participants did not write; None where nothing
    was corrected."""
    for row in scores.get("contamination", ()):
        if (row["asked"], row["judge"], row["agent"]) == (task, judge, agent) and not row["why"]:
            name = "detectability_corrected"
            return Figure(value=row[name], low=row[f"{name}_low"], high=row[f"{name}_high"])
    return None
