"""Statistics of the answers themselves, people's and each agent's, whatever judges said of them (2025 paper, Table S5).

By task, of each answer (of a conversation, each message of the judged speaker), the numbers of
:mod:`agents.answer_numbers`.

An agent's difference from people is told as Cohen's d (the difference of the means in pooled standard deviations) and
as Cliff's delta (Cliff 1993): the probability that an answer of the agent's has more than one of people's, less the
probability that it has less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.answer_numbers import cliffs_delta, cohens_d, numbers, rounding
from agents.stimuli import TASKS
from judging.verdicts import PEOPLE, Answers


def answer_statistics(answers: Answers) -> list[dict[str, Any]]:
    """By task (``asked``), ``statistic`` and ``of`` (people, then each agent): ``number`` of answers, ``mean``, ``sd``
    (of a sample; None of fewer than two), and for agents ``d``, ``delta`` and ``direction`` (more, less, or as people).
    Both are None where people gave no answers, ``d`` also where nothing varies or fewer than two answers were given.

    ``answers`` are those of :func:`judging.verdicts.read_answers`. A message that stands in several excerpts of one
    conversation counts once.
    """
    rows = []
    for asked in TASKS:
        values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for answer in _without_shorter_excerpts([label for label in answers if label["asked"] == asked]):
            group = PEOPLE if answer["truth"] == "human" else answer["agent"]
            for name, value in numbers(asked, answer["answer"], answer["speaker"]):
                values[name][group].append(value)
        for name, by in values.items():
            for group in sorted(by, key=lambda label: (label != PEOPLE, label)):
                group_values = np.array(by[group])
                row = {
                    "asked": asked,
                    "statistic": name,
                    "of": group,
                    "number": len(group_values),
                    "mean": float(group_values.mean()),
                }
                row |= {"sd": float(group_values.std(ddof=1)) if len(group_values) > 1 else None}
                row |= _effects(group_values, np.array(by.get(PEOPLE, []))) if group != PEOPLE else NO_EFFECTS
                rows.append(row)
    return rows


NO_EFFECTS: Mapping[str, Any] = {"d": None, "delta": None, "direction": None}


def _effects(agent: NDArray[np.float64], people: NDArray[np.float64]) -> Mapping[str, Any]:
    if not len(people):
        return NO_EFFECTS
    difference = float(agent.mean() - people.mean())
    is_other = abs(difference) > rounding(agent, people)
    direction = ("more" if difference > 0 else "less") if is_other else "as people"
    return {"d": cohens_d(agent, people), "delta": cliffs_delta(agent, people), "direction": direction}


def _without_shorter_excerpts(answers: Answers) -> Answers:
    """Without the excerpts of a conversation that are the beginning of another of the same speaker's."""
    kept: dict[tuple[Any, ...], list[Sequence[Any]]] = defaultdict(list)
    longest = []
    for answer in sorted(answers, key=lambda candidate: -len(candidate["answer"].get("messages") or ())):
        if (messages := answer["answer"].get("messages")) is not None:
            longer = kept[answer["stimulus"], answer["agent"], answer["speaker"]]
            if any(other[: len(messages)] == messages for other in longer):
                continue
            longer.append(messages)
        longest.append(answer)
    return longest
