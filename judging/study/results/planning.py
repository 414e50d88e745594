"""How many judges a study needs for intervals of a wanted width, as in :mod:`judging.statistics.measures`.

A rate of n verdicts has the variance (judges') sum(n_judge^2) / n^2 + (stimuli's) sum(n_stimulus^2) / n^2 +
(rest) / n; detectability has a quarter of the sum of both rates' variances."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from agents.errors import InputError
from judging.statistics.jackknife import CONFIDENCE, Clusters, Floats, rates
from judging.statistics.measures import DETECTABILITY
from judging.study.results.stopping import decide
from serving.files.words import count

PlannedMeasure = Literal["p_machine", "detectability"]
"""What the interval is of: P(said human | machine), or how well a judge tells both apart."""
MOST_JUDGES = 1_000_000
"""A width that this number of judges does not reach is out of reach."""

MOST_STOPPED = 1000
"""Judges of a simulated study that stops early; one that is still open then counts as open."""

JUDGES_VARIANCE = 0.0135
STIMULI_VARIANCE = 0.018
REST = 0.2185
"""The parts of the variance of a verdict's being right, together .25, that of a rate of a half.

Judges: the 2025 paper's captions have detectability .57 with a standard deviation of .11 over 293 online judges of 44
trials. That is a variance of .0121. Binomial noise of p(H|H) .67 and p(M|M) .46 explains .0053 of it, which leaves
.0068. Either rate has twice as much if the two are independent. Stimuli: no paper tells. A standard deviation of .134
is assumed, which is .4 of the verdicts' noise in a probit model.
"""


def half_width(judges: int, per_human: float, per_machine: float, stimuli: int, measure: PlannedMeasure) -> float:
    """Half the width of an agent's 95 % interval.

    ``per_human`` and ``per_machine`` are the verdicts of each judge on people's answers, and on those of each agent.
    """
    human = _variance_of_rate(per_human, judges, stimuli)
    machine = _variance_of_rate(per_machine, judges, stimuli)
    variance = machine if measure == "p_machine" else (human + machine) / 4
    return float(stdtrit(min(judges, stimuli) - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)


def _variance_of_rate(per_judge: float, judges: int, stimuli: int) -> float:
    number = per_judge * judges
    return JUDGES_VARIANCE * _squares(number, judges) + STIMULI_VARIANCE * _squares(number, stimuli) + REST / number


def _squares(number: float, clusters: int) -> float:
    """The sum of squared shares, where ``number`` verdicts are spread over clusters as evenly as whole numbers can."""
    per_cluster = number / clusters
    over = per_cluster % 1
    return (1 + over * (1 - over) / per_cluster**2) / clusters


def plan(
    wanted: float, agents: int, per_judge: int, stimuli: int, *, measure: PlannedMeasure
) -> tuple[int | None, float]:
    """The fewest judges that bring the half-width of each agent's interval to ``wanted``, and the one that is reached.

    None where no number of judges does, for the stimuli are too few. ``per_judge`` is the number of trials of a judge,
    half of them people's. Raises InputError for numbers with which nothing can be planned.
    """
    if not 0 < wanted < 0.5 or per_judge < 2 or stimuli < 2:
        raise InputError("a plan has a half-width between 0 and 0.5, and at least two trials per judge and two stimuli")

    def reached(judges: int) -> float:
        return half_width(judges, per_judge / 2, per_judge / 2 / agents, stimuli, measure)

    judges = 2 + bisect_left(range(2, MOST_JUDGES), True, key=lambda number: reached(number) <= wanted)
    return (judges if reached(judges) <= wanted else None), reached(judges)


def simulate(
    judges: int, agents: int, per_judge: int, stimuli: int, bounds: float, *, studies: int = 400, seed: int = 1
) -> tuple[float, float]:
    """Two shares of simulated studies, whose judges and answers are drawn with the variances above.

    In the first an agent whose detectability is 0.5 passes within ``bounds`` (Schuirmann 1987, at 0.05). In the second
    a detectability of 0.5 + ``bounds`` is above 0.5 (two-sided, at 0.05). Raises InputError.
    """
    of_kinds = np.array([per_judge // 2, max(1, per_judge // 2 // agents)])  # a judge's trials: people's, the agent's
    if judges < 2 or of_kinds[0] < 1 or of_kinds[0] > stimuli or not 0 < bounds < 0.5:
        raise InputError("a simulation has at least 2 judges, 2 trials of each, as many stimuli, bounds below 0.5")
    chance = np.random.default_rng(seed)
    both = np.array([[0, 1]])
    judge = np.repeat(np.arange(judges), of_kinds.sum())
    is_machine = np.tile(np.arange(of_kinds.sum()) >= of_kinds[0], judges)
    side = is_machine.astype(int)

    def interval(detectability: float, confidence: float) -> tuple[float, float]:
        """The interval of the detectability that one simulated study finds."""
        of_judge = math.sqrt(JUDGES_VARIANCE) * chance.standard_normal((2, judges))
        of_answer = math.sqrt(STIMULI_VARIANCE) * chance.standard_normal((2, stimuli))
        order = chance.random((judges, stimuli)).argsort(axis=1)
        stimulus = np.hstack([order[:, : of_kinds[0]], order[:, ::-1][:, : of_kinds[1]]]).ravel()
        rate: Floats = detectability + of_judge[side, judge] + of_answer[side, stimulus]
        right = (chance.random(len(rate)) < rate).astype(np.float64)
        drawn_from = Clusters(judge, stimulus, np.full(len(right), -1), np.ones(len(right)))
        result = rates(right, np.array([~is_machine, is_machine]), drawn_from)
        low, high = result.interval(both, DETECTABILITY, confidence)
        return float(low[0]), float(high[0])

    passes = 0
    for _ in range(studies):
        low, high = interval(0.5, 2 * CONFIDENCE - 1)
        if max(0.5 - low, high - 0.5) <= bounds:
            passes += 1
    power = 0
    for _ in range(studies):
        low, _ = interval(0.5 + bounds, CONFIDENCE)
        if low > 0.5:
            power += 1
    return passes / studies, power / studies


@dataclass(frozen=True, slots=True)
class EarlyStopping:
    """When simulated studies decide about an agent, by the rule of ``turinglike study status``."""

    detectability: float
    """The agent's true detectability for the study's stimuli."""
    decision: str
    """The decision that is right: "passes" or "fails"."""
    right: float
    """The share of studies that come to it, however long they go on."""
    typical: int | None
    """After how many judges half of the studies are decided; None if they are not after :data:`MOST_STOPPED`."""
    most: int | None
    """After how many judges 90 % of the studies are decided; None likewise."""
    planned: int | None = None
    """How many judges are planned; None without a plan."""
    by_planned: float = math.nan
    """The share of studies that are decided once as many have finished; NaN without a plan."""

    def in_words(self) -> str:
        """When studies decide, in sentences."""
        found = f"an agent with detectability {self.detectability:g} {self.decision}"
        if self.typical is None:
            sentences = f"{found}, but fewer than half of the studies decide this within {MOST_STOPPED:,} judges."
        else:
            most = f"more than {MOST_STOPPED:,}" if self.most is None else f"{self.most:,}"
            sentences = (
                f"{found} after {count(self.typical, 'judge')} in half of the studies, and after {most} in 90 %. The "
                f"decision is right in {self.right:.0%}."
            )
        if self.planned is None:
            return sentences
        return f"{sentences} After {count(self.planned, 'judge')}, {self.by_planned:.0%} of the studies are decided."


def simulate_stopping(
    agents: int,
    per_judge: int,
    stimuli: int,
    bounds: float,
    *,
    judges: int | None = None,
    studies: int = 200,
    seed: int = 1,
) -> list[EarlyStopping]:
    """After how many judges a study that stops early decides about an agent whose detectability is 0.5, and about one
    whose detectability is 0.5 + 2 ``bounds``, or midway between 0.5 + ``bounds`` and 1 if that is less.

    Judges join one by one, and after each :func:`judging.study.results.stopping.decide` is asked, as ``study status``
    asks it: of detectabilities by judge, with ``agents`` that share the probability of an error. Judges and answers are
    drawn with the variances above. The rule decides for the study's stimuli, so the mean over these is the truth.
    ``per_judge`` is the number of trials of a judge, half of them people's; ``judges`` is the planned number. Raises
    InputError."""
    of_kinds = (per_judge // 2, max(1, per_judge // 2 // agents))
    if of_kinds[0] < 1 or of_kinds[0] > stimuli or not 0 < bounds < 0.5:
        raise InputError("early stopping has at least 2 trials of each judge, as many stimuli, and bounds below 0.5")
    found = []
    for true, decision in ((0.5, "passes"), (min(0.5 + 2 * bounds, 0.75 + bounds / 2), "fails")):
        chance = np.random.default_rng(seed)
        results = []
        for _ in range(studies):
            shares = [_shares_of_judges(true, number, stimuli, chance) for number in of_kinds]
            results.append(decide(((shares[0] + shares[1]) / 2).tolist(), bounds, agents))
        after = np.sort([math.inf if name == "open" else number for name, number in results])
        typical = _after_a_share(after, 0.5)
        most = _after_a_share(after, 0.9)
        right = sum(name == decision for name, _ in results) / studies
        by_planned = math.nan if judges is None else float((after <= judges).mean())
        found.append(EarlyStopping(true, decision, right, typical, most, judges, by_planned))
    return found


def _after_a_share(after: Floats, share: float) -> int | None:
    """After how many judges a ``share`` of studies is decided, of the numbers of all in order; None for never."""
    number = float(after[math.ceil(share * len(after)) - 1])
    return None if math.isinf(number) else int(number)


def _shares_of_judges(rate: float, number: int, stimuli: int, chance: np.random.Generator) -> Floats:
    """The share of right verdicts of each of :data:`MOST_STOPPED` judges, each on ``number`` of the stimuli's answers
    of one kind, whose mean ``rate`` is the truth."""
    of_judge = math.sqrt(JUDGES_VARIANCE) * chance.standard_normal((MOST_STOPPED, 1))
    of_answer = math.sqrt(STIMULI_VARIANCE) * chance.standard_normal(stimuli)
    of_answer -= of_answer.mean()
    seen = chance.random((MOST_STOPPED, stimuli)).argsort(axis=1)[:, :number]
    right: Floats = (chance.random((MOST_STOPPED, number)) < rate + of_judge + of_answer[seen]).mean(axis=1)
    return right
