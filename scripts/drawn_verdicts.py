"""Verdicts on people and machines with known rates, drawn from a probit model.

Judges differ by bias and by sensitivity; stimuli, answers and the people who answered differ by how hard they are.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from judging.statistics.jackknife import Codes

NAMES = np.array(["human", "machine"], dtype=object)


@dataclass(frozen=True)
class Design:
    """How a study is drawn. Standard deviations are in units of the verdicts' noise."""

    judges: int
    """How many judge."""
    stimuli: int
    """How many were answered, by people and by each machine."""
    per_judge: int
    """How many answers of people each judge gets; of each machine as many."""
    rates: tuple[float, ...] = (0.6, 0.6)
    """The shares of right verdicts over all judges: p(H|H), then p(M|M) of each machine."""
    of_bias: float = 0.5
    """The standard deviation of judges' leaning to "human"."""
    of_sensitivity: float = 0.3
    """The standard deviation of how well judges tell the two apart."""
    of_stimuli: float = 0.4
    """The standard deviation of how hard stimuli are."""
    of_answers: float = 0.3
    """The standard deviation of how hard single answers are."""
    people: int = 1
    """Who answered: each of them a part of the stimuli, or all if ``is_crossed``."""
    of_people: float = 0.0
    """The standard deviation of how hard people are to recognise."""
    is_crossed: bool = False
    """Whether every person answered every stimulus."""

    def __str__(self) -> str:
        seen = f" ({self.per_judge} each)" if self.per_judge < self.stimuli else ""
        rates = " and ".join(f"{rate:.2f}" for rate in self.rates[:2])
        people = f", {self.people} people of sd {self.of_people}" if self.people > 1 else ""
        people += " on all" if self.is_crossed else ""
        return f"{self.judges} judges, {self.stimuli} stimuli{seen}, {rates}, answers' sd {self.of_answers}{people}"


def drawn(design: Design, study: int) -> tuple[pd.DataFrame, list[float]]:
    """Verdicts, and the true rates: of all judges, or of the single judge who is drawn."""
    chance = np.random.default_rng([study, 1])
    number = len(design.rates)
    bias, sensitivity = chance.normal(0, 1, (2, design.judges)) * [[design.of_bias], [design.of_sensitivity]]
    judge, agent, _ = np.indices((design.judges, number, design.per_judge)).reshape(3, -1)
    order = np.argsort(chance.random((design.judges, number, design.stimuli)), axis=-1)
    stimulus = order[..., : design.per_judge].ravel()
    person = np.where(agent == 0, (stimulus + judge * design.is_crossed) % design.people, 0)
    of_answers = [design.of_stimuli, design.of_answers, 1.0]
    scale = np.full(number, math.hypot(design.of_bias, design.of_sensitivity, *of_answers))
    scale[0] = math.hypot(scale[0], design.of_people)
    side = np.where(np.arange(number) > 0, -1, 1)[:, None]
    middle = (scale * ndtri(design.rates))[:, None] + sensitivity + side * bias
    difficulty = chance.normal(0, design.of_stimuli, design.stimuli)[:, None]
    difficulty = difficulty + chance.normal(0, design.of_answers, (number, design.stimuli, design.people))
    difficulty[0] += chance.normal(0, design.of_people, design.people)
    right = middle[agent, judge] + difficulty[agent, stimulus, person] + chance.normal(size=len(judge)) > 0
    truth = ndtr(middle[:, 0] / math.hypot(*of_answers)) if design.judges == 1 else np.array(design.rates)
    return verdicts(judge, stimulus, agent, right == (agent > 0), person), truth.tolist()


def verdicts(
    judge: Codes, stimulus: Codes, agent: Codes, says_machine: NDArray[Any], person: Codes | int = 0
) -> pd.DataFrame:
    """Verdicts on answers to each stimulus by each agent; 0 are people, of whom each is a ``person``."""
    number = agent.max(initial=0) + 1
    person = np.broadcast_to(person, agent.shape)
    trial = (stimulus * number + agent) * (person.max() + 1) + person
    names = [f"a{of - 1}" if of else f"human:{who + 1}" for of, who in zip(agent, person, strict=True)]
    words = {"truth": NAMES[(agent > 0).astype(int)], "verdict": NAMES[says_machine.astype(int)], "judge_kind": "human"}
    return pd.DataFrame({"judge": judge, "stimulus": stimulus, "trial": trial, "agent": names} | words)
