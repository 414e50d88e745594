"""Two classes of answers, own and foreign, fitted to marks: the likelihood at any rate, and how its score varies.

**The model.** An answer is foreign with probability c. Within a class the marks are independent: mark k stands on
own answers with probability f_k, and on foreign ones with s_k (Lazarsfeld, Henry 1968; Hui, Walter 1980, with two
marks). Answers of the laboratory are all own ones, and share the f_k. A mark that was not recorded says nothing.
Two assumptions say which class is which, and how far the rate may reach: s_k is at least f_k, and at least the
``least`` of the mark.

The likelihood is that of single answers, as if each were of another person: a composite one, right whatever persons are
like (Varin, Reid, Firth 2011). :func:`spread` says by how much its score varies more than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CYCLES = 200  # of three steps of the fit each, at most
TOLERANCE = 1e-4  # of the log-likelihood in a cycle, at which the fit ends
EDGE = 1e-6  # probabilities stay this far from 0 and 1
LEAST_SPREAD = 0.7  # of the score: chance alone makes it seem smaller


@dataclass(frozen=True, slots=True)
class Counts:
    """Answers by person and by pattern of marks."""

    patterns: Floats
    """[patterns, marks] 1, 0, or NaN where the mark was not recorded."""
    field: Floats
    """[persons, patterns] how many answers of each participant have the pattern."""
    laboratory: Floats
    """[persons, patterns] how many of each person in the laboratory; [0, patterns] without one."""
    least: Floats
    """[marks] the share of foreign answers that have the mark, at least."""


@dataclass(slots=True)
class Fit:
    """The model at several rates: ``rate`` [n], ``own`` and ``foreign`` [n, marks]."""

    rate: Floats
    own: Floats
    foreign: Floats
    likelihood: Floats
    """[n] the logarithm of the composite likelihood."""
    posterior: Floats
    """[n, patterns]"""


class Marks:
    """Patterns of the marks that are used, as the steps of the fit need them.

    ``used`` [marks] says which marks of ``counts`` these are."""

    def __init__(self, counts: Counts, used: NDArray[np.bool_]) -> None:
        patterns = counts.patterns[:, used]
        number = counts.field.sum(axis=0)
        self.yes = (patterns == 1).astype(np.float64)
        self.no = (patterns == 0).astype(np.float64)
        self.known = self.yes + self.no
        self.yes_and_no = np.concatenate([self.yes, self.no], axis=1).T
        self.yes_and_known = np.concatenate([self.yes, self.known], axis=1)
        self.number = number
        self.least = counts.least[used]
        self.weight = _worth(counts, self.yes, self.known)
        in_laboratory = counts.laboratory.sum(axis=0)
        self.laboratory_yes = in_laboratory @ self.yes * self.weight
        self.laboratory_known = in_laboratory @ self.known * self.weight
        self.all_yes = number @ self.yes
        self.all_known = number @ self.known

    def densities(self, own: Floats, foreign: Floats) -> tuple[Floats, Floats]:
        """The logarithms of the probability of each pattern in both classes, [n, patterns] each."""
        both = np.concatenate([own, foreign])
        logarithms = np.log(np.concatenate([both, 1 - both], axis=1)) @ self.yes_and_no
        return logarithms[: len(own)], logarithms[len(own) :]

    def of_laboratory(self, own: Floats) -> Floats:
        """The logarithm of the likelihood [n] of the laboratory's answers."""
        no = self.laboratory_known - self.laboratory_yes
        return np.asarray(np.log(own) @ self.laboratory_yes + np.log1p(-own) @ no)

    def allowed(
        self, own_yes: Floats, own_known: Floats, foreign_yes: Floats, foreign_known: Floats
    ) -> tuple[Floats, Floats]:
        """The most likely f and s [n, marks] among those with s ≥ f and s ≥ ``least``, from numbers of answers."""
        own = own_yes / np.maximum(own_known, EDGE)
        foreign = foreign_yes / np.maximum(foreign_known, EDGE)
        both = (own_yes + foreign_yes) / np.maximum(own_known + foreign_known, EDGE)
        is_crossed = np.maximum(foreign, self.least) < own
        together = np.maximum(both, self.least)
        foreign = np.where(is_crossed, together, np.maximum(foreign, self.least))
        own = np.where(is_crossed, np.minimum(own, together), own)
        return np.clip(own, EDGE, 1 - EDGE), np.clip(foreign, EDGE, 1 - EDGE)


def fitted(marks: Marks, rate: Floats, is_free: bool = False, start: Fit | None = None) -> Fit:
    """The model at each of the rates [n] by expectation and maximization (Dempster, Laird, Rubin 1977); with
    ``is_free`` the rates are fitted, too.

    Alone these steps are small where marks hardly separate: hundreds of them end far from the maximum, and the interval
    of the rate is too short. Every third step is taken from where the two before it lead (Varadhan, Roland 2008, scheme
    S3), unless the likelihood is lower there."""
    if start is None:
        at = _start(marks, np.array(rate, dtype=np.float64))
    else:
        at = np.column_stack([start.rate, start.own, start.foreign])
    before = np.full(len(at), -np.inf)
    for _ in range(CYCLES):
        first, fit = _step(marks, at, is_free)
        if np.all(fit.likelihood - before < TOLERANCE):
            break
        before = fit.likelihood
        second, of_first = _step(marks, first, is_free)
        change = first - at
        turn = second - first - change
        with np.errstate(invalid="ignore", divide="ignore"):
            length = -np.linalg.norm(change, axis=1) / np.linalg.norm(turn, axis=1)
        length = np.where(np.isfinite(length), np.minimum(length, -1), -1.0)[:, None]
        beyond = _within(marks, at - 2 * length * change + length**2 * turn)
        third, of_beyond = _step(marks, beyond, is_free)
        is_better = of_beyond.likelihood >= of_first.likelihood
        at = np.where(is_better[:, None], third, second)
    return fit


def _start(marks: Marks, rate: Floats) -> Floats:
    """Where the fit begins [n, 1 + 2 marks]: the rates, f_k and s_k."""
    share = (marks.all_yes + marks.laboratory_yes + 0.5) / (marks.all_known + marks.laboratory_known + 1)
    own = np.clip(share * 0.6, 0.01, 0.4)
    foreign = np.maximum(0.6, own)
    return _within(marks, np.column_stack([rate, np.tile(np.concatenate([own, foreign]), (len(rate), 1))]))


def _within(marks: Marks, at: Floats) -> Floats:
    """The nearest values that are allowed."""
    number = len(marks.least)
    own = np.clip(at[:, 1 : number + 1], EDGE, 1 - EDGE)
    foreign = np.clip(at[:, number + 1 :], np.maximum(own, marks.least), 1 - EDGE)
    return np.column_stack([np.clip(at[:, 0], 0, 1), own, foreign])


def _step(marks: Marks, at: Floats, is_free: bool) -> tuple[Floats, Fit]:
    """One step from ``at`` [n, 1 + 2 marks], and the model there."""
    number = len(marks.least)
    rate = at[:, 0]
    own = at[:, 1 : number + 1]
    foreign = at[:, number + 1 :]
    log_own, log_foreign = marks.densities(own, foreign)
    of_foreign = rate[:, None] * np.exp(log_foreign)
    density = (1 - rate)[:, None] * np.exp(log_own) + of_foreign
    posterior = of_foreign / density
    likelihood = np.log(density) @ marks.number + marks.of_laboratory(own)
    weight = posterior * marks.number
    foreign_yes, foreign_known = np.split(weight @ marks.yes_and_known, 2, axis=1)
    own_yes = marks.all_yes + marks.laboratory_yes - foreign_yes
    own_known = marks.all_known + marks.laboratory_known - foreign_known
    next_own, next_foreign = marks.allowed(own_yes, own_known, foreign_yes, foreign_known)
    next_rate = weight.sum(axis=1) / marks.number.sum() if is_free else rate
    return np.column_stack([next_rate, next_own, next_foreign]), Fit(rate, own, foreign, likelihood, posterior)


def maximum(marks: Marks, grid: Fit) -> Fit:
    """The most likely rate, from the best of the grid on."""
    best = int(np.argmax(grid.likelihood))
    start = Fit(*(values[[best]] for values in (grid.rate, grid.own, grid.foreign, grid.likelihood, grid.posterior)))
    if best == 0:
        return start
    return fitted(marks, start.rate, is_free=True, start=start)


@dataclass(frozen=True, slots=True)
class Score:
    """The efficient score of the rate at several rates [n]: without what the marks' probabilities explain of it."""

    field: Floats
    """[n, patterns] of an answer in the field, centred."""
    laboratory: Floats
    """[n, patterns] of an answer in the laboratory, centred."""
    information: Floats
    """[n] its variance, if all answers were independent."""
    variance: Floats
    """[n] its variance, as persons vary."""

    @property
    def spread(self) -> Floats:
        """[n] by how much it varies more between persons than between independent answers."""
        return np.asarray(np.maximum(self.variance / np.maximum(self.information, EDGE), LEAST_SPREAD))


def efficient_score(marks: Marks, counts: Counts, fit: Fit, foreign: Floats) -> Score:
    """The score at the rates of ``fit``, with ``foreign`` [n, marks] in place of its own s_k."""
    log_own, log_foreign = marks.densities(fit.own, foreign)
    density = (1 - fit.rate)[:, None] * np.exp(log_own) + fit.rate[:, None] * np.exp(log_foreign)
    of_own = (1 - fit.rate)[:, None] * np.exp(log_own) / density
    of_foreign = fit.rate[:, None] * np.exp(log_foreign) / density
    of_rate = (np.exp(log_foreign) - np.exp(log_own)) / density
    of_own_marks = _slopes(marks, fit.own)
    of_marks = np.concatenate([of_own[:, :, None] * of_own_marks, of_foreign[:, :, None] * _slopes(marks, foreign)], 2)
    in_laboratory = np.concatenate([of_own_marks * marks.weight, np.zeros_like(of_own_marks)], axis=2)
    at_least = np.maximum(marks.least, fit.own) + EDGE
    is_fixed = np.concatenate([fit.own <= 2 * EDGE, (foreign <= at_least) | (foreign >= 1 - 2 * EDGE)], axis=1)
    of_marks = np.where(is_fixed[:, None, :], 0.0, of_marks)
    in_laboratory = np.where(is_fixed[:, None, :], 0.0, in_laboratory)
    weighted = of_marks * marks.number[:, None]
    information = np.einsum("npa,npb->nab", weighted, of_marks)
    known = marks.laboratory_known / (fit.own * (1 - fit.own))
    expected = np.where(is_fixed, 0.0, np.concatenate([known, np.zeros_like(known)], axis=1))
    information += expected[:, :, None] * np.eye(expected.shape[1])
    with_rate = np.einsum("npa,np->na", weighted, of_rate)
    coefficients = np.einsum("nab,nb->na", np.linalg.pinv(information, rcond=1e-9, hermitian=True), with_rate)
    score = of_rate - np.einsum("npa,na->np", of_marks, coefficients)
    in_field = _centred(score, counts.field)
    of_laboratory = _centred(-np.einsum("npa,na->np", in_laboratory, coefficients), counts.laboratory)
    alone = in_field**2 @ marks.number + (coefficients**2 * expected).sum(axis=1)
    together = between(in_field, counts.field) + between(of_laboratory, counts.laboratory)
    return Score(in_field, of_laboratory, alone, together)


def _centred(score: Floats, by_person: Floats) -> Floats:
    number = by_person.sum(axis=0)
    return np.asarray(score - (score @ number / max(number.sum(), 1))[:, None])


def between(score: Floats, by_person: Floats) -> Floats:
    """The variance [n] of the sum of a centred ``score`` [n, patterns] over persons; 0 of a single one."""
    if len(by_person) < 2:
        return np.zeros(len(score))
    persons = by_person @ score.T
    return np.asarray((persons**2).sum(axis=0) * len(by_person) / (len(by_person) - 1))


def _worth(counts: Counts, yes: Floats, known: Floats) -> Floats:
    """By mark [marks] what an answer of the laboratory is worth, 1 at most: less where persons differ.

    A few persons with ten answers each tell the share of a check that they pass or fail as a person no better than a
    few answers. At full worth the laboratory's error would look like contamination. How alike the answers of a person
    are, the field says, which has more persons: of a rare check nobody in the laboratory may fail. Foreign answers make
    persons differ more, and so the laboratory is worth less than it could be, never more."""
    with_mark = counts.field @ yes
    number = counts.field @ known
    total = np.maximum(number.sum(axis=0), 1)
    share = with_mark.sum(axis=0) / total
    between = ((with_mark - share * number) ** 2).sum(axis=0)
    independent = np.maximum(total * share * (1 - share), EDGE)
    each = (number**2).sum(axis=0) / total
    alike = np.clip((between / independent - 1) / np.maximum(each - 1, EDGE), 0, 1)
    in_laboratory = counts.laboratory @ known
    each_there = (in_laboratory**2).sum(axis=0) / np.maximum(in_laboratory.sum(axis=0), 1)
    return np.asarray(1 / (1 + alike * np.maximum(each_there - 1, 0)))


def _slopes(marks: Marks, probability: Floats) -> Floats:
    """The derivatives [n, patterns, marks] of the logarithm of a class's probability by those of its marks."""
    return np.asarray(marks.yes[None] / probability[:, None, :] - marks.no[None] / (1 - probability)[:, None, :])
