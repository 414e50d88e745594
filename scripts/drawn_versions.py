"""Verdicts on versions of answers with known tells, drawn from a probit model, or given by a classifier.

Answers have three properties, in standard deviations of participants' answers. ``length`` and ``case`` go together
(their correlation is WITHIN); ``hedging`` is a property that no judge heeds. Of the agents ``none`` is like
participants, ``one`` is longer, ``two`` is longer and in other case, and differs in something that nothing takes away.
Where a property is taken away, judges who are drawn do not heed it; where length is planted, an agent's answers have
lengths drawn as participants'. Classifiers learn from answers whose lengths the program itself has matched, as what
they learn depends on how that is done; where case or hedging is taken away, all answers have the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from judging.judges.features import Features
from judging.judges.trained import TrainedJudge, TrainedSettings
from judging.statistics.jackknife import Codes, Floats
from judging.statistics.versions import DRAWN, taken
from judging.tells.matching import LOWERED, matched, matched_to
from judging.tells.registry import AND, PLANT

TELLS = ("length", "case", "hedging")
PLANT_LENGTH = f"{PLANT}length"
AGENTS = ("none", "one", "two")  # after participants, whose number is 0
WITHIN = 0.6  # the correlation of length and case within answers of one speaker
SHIFTS = np.array([[0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 1, 0]], dtype=float)  # [speakers, tells]
OTHERWISE = np.array([0, 0, 0, 0.5])  # [speakers] what no version takes away
CORRELATIONS = np.array([[1, WITHIN, 0], [WITHIN, 1, 0], [0, 0, 1]])
HEED = np.array([0.6, 0.6, 0.0])  # [tells] how much judges heed each
LEANING = -0.3  # towards "human"
OF_BIAS = 0.5  # standard deviations, in units of the verdicts' noise: of judges' leaning
OF_HEED = 0.3  # of how much more a judge heeds what differs
OF_STIMULI = 0.4  # of stimuli
OF_STIMULI_HEED = 0.2  # of how much more a property tells at a stimulus
OF_PEOPLE = 0.2  # of who answered, among participants
OF_ANSWERS = 0.3  # of answers
OF_FEATURES = 0.3  # the share of features' variance, for classifiers, that stimuli have
ANSWERS_AT_MOST = 8  # to a stimulus
FURTHER = 1000  # answers of each speaker, at equal steps of rank, of which a classifier's true shares are
RANKS = (np.arange(FURTHER) + 0.5) / FURTHER
FURTHER_LENGTHS = ndtri(RANKS)
AGAIN = 0.7  # the share of the noise that is the same when a judge sees another version of an answer
VERSIONS = (
    DRAWN,
    *TELLS,
    AND.join(TELLS),
    *(AND.join(tell for tell in TELLS if tell != left) for left in TELLS),
    PLANT_LENGTH,
)
WHAT = taken(VERSIONS)
PRESENT = np.array(
    [[tell not in version.split(AND) or version == PLANT_LENGTH for tell in TELLS] for version in VERSIONS], dtype=float
)
Truths = Mapping[tuple[str, str], float]
"""By agent and version the true detectability."""
Shares = Callable[[Any, Floats, int], Floats]
"""How often a model says "machine" of further answers with these lengths in the version of this number."""
NAMES = np.array(["human", "machine"], dtype=object)


@dataclass(frozen=True)
class Design:
    """How many judge what."""

    judges: int
    """How many judge."""
    stimuli: int
    """How many stimuli there are."""
    per_judge: int
    """How many of them each judge sees."""
    people: int
    """How many participants answered; each a part of the stimuli."""
    answers: int = 1
    """How many participants answered each stimulus."""


def people_see_one(design: Design, study: int) -> tuple[pd.DataFrame, Truths]:
    """Judges who are people see each stimulus in a single version: half of their trials are participants' answers."""
    chance = np.random.default_rng([study, 1])
    judge, _ = np.indices((design.judges, design.per_judge)).reshape(2, -1)
    stimulus = np.argsort(chance.random((design.judges, design.stimuli)))[:, : design.per_judge].ravel()
    order = np.argsort(chance.random((design.judges, design.per_judge))).ravel()
    version = (order + judge) % len(VERSIONS)  # versions are equally frequent for each judge, and over judges
    speaker = np.where(chance.random(len(judge)) < 0.5, 0, chance.integers(1, 1 + len(AGENTS), len(judge)))
    noise = chance.normal(size=len(judge))
    return _probit(design, chance, judge, stimulus, speaker, version, noise)


def people_see_all(design: Design, study: int) -> tuple[pd.DataFrame, Truths]:
    """Judges who are people see each of their stimuli's answers in all versions; or a single judge, a model, does."""
    chance = np.random.default_rng([study, 2])
    speakers = 1 + len(AGENTS)
    shape = (design.judges, design.per_judge, speakers, len(VERSIONS))
    judge, place, speaker, version = np.indices(shape).reshape(4, -1)
    order = np.argsort(chance.random((design.judges, design.stimuli)))[:, : design.per_judge]
    stimulus = order[judge, place]
    same = np.broadcast_to(chance.normal(size=shape[:3])[..., None], shape)
    noise = (math.sqrt(AGAIN) * same + math.sqrt(1 - AGAIN) * chance.normal(size=shape)).ravel()
    return _probit(design, chance, judge, stimulus, speaker, version, noise)


def _probit(
    design: Design,
    chance: np.random.Generator,
    judge: Codes,
    stimulus: Codes,
    speaker: Codes,
    version: Codes,
    noise: Floats,
) -> tuple[pd.DataFrame, Truths]:
    properties = chance.multivariate_normal(np.zeros(3), CORRELATIONS, (design.stimuli, len(SHIFTS)))
    planted = chance.normal(size=(design.stimuli, len(SHIFTS)))
    bias = chance.normal(0, OF_BIAS, design.judges)
    heed = chance.normal(0, OF_HEED, (design.judges, len(TELLS)))
    person = np.arange(design.stimuli) % design.people
    shift = SHIFTS[speaker]
    own = properties[stimulus, speaker]
    is_planted = _is_planted(version, speaker)
    own[is_planted, 0] = planted[stimulus, speaker][is_planted]
    shift[is_planted, 0] = 0
    of_stimulus = chance.normal(0, OF_STIMULI_HEED, (design.stimuli, len(TELLS)))
    heeded = HEED * (own + shift) + (heed[judge] + of_stimulus[stimulus]) * shift
    evidence = (PRESENT[version] * heeded).sum(axis=1) + OTHERWISE[speaker] + LEANING + bias[judge] + noise
    evidence += chance.normal(0, OF_STIMULI, design.stimuli)[stimulus]
    evidence += chance.normal(0, OF_ANSWERS, (design.stimuli, len(SHIFTS)))[stimulus, speaker]
    evidence += np.where(speaker == 0, chance.normal(0, OF_PEOPLE, design.people)[person[stimulus]], 0.0)
    fixed = (bias[0], heed[0]) if design.judges == 1 else None
    table = _table(judge, stimulus, speaker, version, evidence > 0, person[stimulus])
    if fixed is not None:
        table["judge_kind"] = "machine"
    return table, _truths(lambda at, of: _share(at, of, fixed))


def classifier(design: Design, study: int) -> tuple[pd.DataFrame, Truths]:
    """A linear classifier, trained on each version by the folds of `turinglike judge`.

    It gets the properties and two features that differ in nobody but by stimulus and answer. Its true detectability is
    that of its models, as they were trained, on further answers."""
    chance = np.random.default_rng([study, 3])
    answers = _Answers(design, chance, study)
    noise = chance.normal(size=(len(answers.speaker), 2))
    of_stimulus = chance.normal(size=(design.stimuli, 2))[answers.stimulus]
    others = math.sqrt(1 - OF_FEATURES) * noise + math.sqrt(OF_FEATURES) * of_stimulus
    others[:, 0] += 2 * OTHERWISE[answers.speaker]
    tables = []
    shares = {}
    for at, version in enumerate(VERSIONS):
        judge = DrawnJudge(TrainedSettings(seed=study), "drawn")
        features = np.hstack([answers.properties(at), others])
        table, shares[version] = answers.judged(judge, at, features, _share_of_linear)
        tables.append(table)
    return pd.concat(tables, ignore_index=True), _truths(lambda of, at: shares[VERSIONS[at]][of])


def classifier_by_length(design: Design, study: int) -> tuple[pd.DataFrame, Truths]:
    """The classifier of `turinglike judge --judges svm`, with a radial kernel, on length alone, as drawn, taken away,
    and planted.

    With a single feature such a classifier can learn any difference between two samples of lengths, so that it shows
    most of what the matching leaves behind. "one" and "two" are the same to it."""
    chance = np.random.default_rng([study, 4])
    answers = _Answers(design, chance, study)
    tables = []
    shares = {}
    for version in (DRAWN, TELLS[0], PLANT_LENGTH):
        at = VERSIONS.index(version)
        judge = DrawnRadialJudge(TrainedSettings(seed=study), "drawn")
        table, shares[version] = answers.judged(judge, at, answers.properties(at)[:, :1], _share_by_length)
        tables.append(table)
    return pd.concat(tables, ignore_index=True), _truths(lambda of, at: shares[VERSIONS[at]][of], tuple(shares))


class _Answers:
    """A study's answers for classifiers, with lengths as the program matches them, and further ones like them."""

    def __init__(self, design: Design, chance: np.random.Generator, study: int) -> None:
        of_stimulus = np.array([0] * design.answers + [1, 2, 3])
        self.stimulus, self.place = np.indices((design.stimuli, len(of_stimulus))).reshape(2, -1)
        self.speaker = of_stimulus[self.place]
        self.person = (self.place + design.answers * self.stimulus) % design.people
        number = len(self.speaker)
        self.drawn: Floats = SHIFTS[self.speaker] + chance.multivariate_normal(np.zeros(3), CORRELATIONS, number)
        lengths = self.drawn[:, 0].tolist()
        speakers = self.speaker.tolist()
        self.matched = np.array(matched(lengths, speakers, random.Random(f"without {study}")))
        self.planted = np.array(matched_to(lengths, speakers, 0, random.Random(f"plant {study}")))

    def properties(self, at: int) -> Floats:
        """The properties [answers, tells] in the version of this number."""
        found = self.drawn.copy()
        found[:, 1:] *= PRESENT[at, 1:]
        if VERSIONS[at] == PLANT_LENGTH:
            found[:, 0] = self.planted
        elif not PRESENT[at, 0]:
            found[:, 0] = self.matched
        return found

    def further_lengths(self, at: int) -> Floats:
        """The lengths [speakers, FURTHER] of further answers in the version of this number.

        They are at equal steps of rank among all answers of a speaker, and become what the study's quantiles are at
        this rank: in place of a drawn rank near that in the study."""
        own: Floats = FURTHER_LENGTHS + SHIFTS[:, :1]
        ordered = [np.sort(self.drawn[self.speaker == of, 0]) for of in range(len(SHIFTS))]
        if VERSIONS[at] == PLANT_LENGTH:
            return np.vstack([own[:1], np.tile(_quantiles(ordered[0], RANKS), (len(AGENTS), 1))])
        if PRESENT[at, 0]:
            return own
        ranks = np.maximum(RANKS - LOWERED / math.sqrt(min(map(len, ordered))), 0)
        smallest = np.min([_quantiles(of_speaker, ranks) for of_speaker in ordered], axis=0)
        return np.asarray(np.minimum(own, smallest))

    def judged(self, judge: DrawnJudge, at: int, features: Floats, share: Shares) -> tuple[pd.DataFrame, list[float]]:
        """The verdicts on a version by its ``features`` [answers, features], and by speaker the true share of
        "machine", which ``share`` tells of each model."""
        number = len(self.speaker)
        trials = [
            {"id": str(trial), "asked": "word_association", "shown": str(of)} for trial, of in enumerate(self.stimulus)
        ]
        keys = [
            {"truth": NAMES[int(of > 0)], "catch": False, "repeat_of": None, "agent": of, "version": VERSIONS[at]}
            for of in self.speaker
        ]
        judge.models = []
        judged = judge.judge_trials(trials, keys, {"": Features(features, np.arange(number))})
        raw = [judged[str(trial)] for trial in range(number)]
        margin = np.array([row["margin"] for row in raw])
        version = np.full(number, at)
        nobody = np.zeros(number, dtype=int)
        table = _table(nobody, self.stimulus, self.speaker, version, margin > 0, self.person, self.place)
        lengths = self.further_lengths(at)
        of_models = np.array([share(model, lengths, at) for model in judge.models])
        fold = np.array([row["fold"] for row in raw])
        shares = [float(of_models[fold[self.speaker == of], of].mean()) for of in range(len(SHIFTS))]
        return table.assign(judge_kind="machine", margin=margin, spread=[row["spread"] for row in raw]), shares


def _quantiles(ordered: Floats, ranks: Floats) -> Floats:
    return np.asarray(ordered[(ranks * len(ordered)).astype(int)])


def _share_of_linear(model: LeastSquares, lengths: Floats, at: int) -> Floats:
    """How often a linear model says "machine" of each speaker's further answers [speakers] with these ``lengths``
    [speakers, FURTHER] in a version: in closed form for all but the lengths."""
    of_case = model.slopes[1] * PRESENT[at, 1]
    of_hedging = model.slopes[2] * PRESENT[at, 2]
    mean = of_case * SHIFTS[:, 1] + model.slopes[3] * 2 * OTHERWISE + model.start
    mean = mean[:, None] + model.slopes[0] * lengths + of_case * WITHIN * FURTHER_LENGTHS
    variance = of_case**2 * (1 - WITHIN**2) + of_hedging**2 + (model.slopes[3:] ** 2).sum()
    return np.asarray(ndtr(mean / math.sqrt(variance)).mean(axis=1))


def _share_by_length(model: Any, lengths: Floats, at: int) -> Floats:
    """The same of a model that goes by ``lengths`` alone."""
    values, places = np.unique(lengths, return_inverse=True)
    says_machine = model.decision_function(values[:, None]) > 0
    return np.asarray(says_machine[places.reshape(lengths.shape)].mean(axis=1))


def _is_planted(version: Codes, speaker: Codes) -> NDArray[np.bool_]:
    return np.asarray((version == VERSIONS.index(PLANT_LENGTH)) & (speaker > 0))


def _distribution(speaker: int, version: int) -> tuple[Floats, Floats]:
    """The means and correlations of a speaker's properties in a version, had none been taken away."""
    if not _is_planted(np.array(version), np.array(speaker)):
        return SHIFTS[speaker], CORRELATIONS
    alone = CORRELATIONS.copy()
    alone[0, 1:] = 0  # what is planted goes with nothing
    alone[1:, 0] = 0
    return SHIFTS[speaker] * [0, 1, 1], alone


def _table(
    judge: Codes,
    stimulus: Codes,
    speaker: Codes,
    version: Codes,
    says_machine: NDArray[np.bool_],
    person: Codes,
    place: Codes | None = None,
) -> pd.DataFrame:
    """The table of verdicts; ``place`` [verdicts] tells answers of a stimulus apart where participants gave several."""
    answer = stimulus * ANSWERS_AT_MOST + (speaker if place is None else place)
    drawn = answer * len(VERSIONS) + VERSIONS.index(DRAWN)
    people = np.array([f"human:{number}" for number in range(person.max() + 1)], dtype=object)
    return pd.DataFrame(
        {
            "judge": judge,
            "judge_kind": "human",
            "stimulus": stimulus,
            "trial": answer * len(VERSIONS) + version,
            "agent": np.where(speaker == 0, people[person], np.array(["", *AGENTS], dtype=object)[speaker]),
            "truth": NAMES[(speaker > 0).astype(int)],
            "verdict": NAMES[says_machine.astype(int)],
            "version": np.array(VERSIONS, dtype=object)[version],
            "version_of": np.where(version == VERSIONS.index(DRAWN), np.nan, drawn),
        }
    )


def _share(speaker: int, version: int, judge: tuple[float, Floats] | None) -> float:
    """How often judges say "machine" of a speaker's answers in a version: all judges, or the one with this bias and
    heed."""
    present = PRESENT[version]
    shift, correlations = _distribution(speaker, version)
    heed = HEED * present
    mean = heed @ shift + OTHERWISE[speaker] + LEANING
    variance = 1 + OF_STIMULI**2 + OF_ANSWERS**2 + heed @ correlations @ heed
    variance += ((OF_STIMULI_HEED * present * shift) ** 2).sum() + (OF_PEOPLE**2 if speaker == 0 else 0)
    if judge is None:
        variance += OF_BIAS**2 + ((OF_HEED * present * shift) ** 2).sum()
    else:
        mean += judge[0] + judge[1] @ (present * shift)
    return float(ndtr(mean / math.sqrt(variance)))


def _truths(share: Callable[[int, int], float], versions: Sequence[str] = VERSIONS) -> dict[tuple[str, str], float]:
    truths = {}
    for version in versions:
        at = VERSIONS.index(version)
        of_people = share(0, at)
        for number, agent in enumerate(AGENTS, start=1):
            truths[agent, version] = 0.5 * (1 - of_people + share(number, at))
    return truths


class LeastSquares:
    """A linear classifier in scikit-learn's form, of both classes with the same weight, a little shrunk."""

    def fit(self, rows: Floats, truth: NDArray[np.bool_]) -> LeastSquares:
        """Fit [rows, features] to whether each is a machine's."""
        counts = np.where(truth, 0.5 / truth.sum(), 0.5 / (~truth).sum())
        middle = rows.mean(axis=0)
        scale = rows.std(axis=0)
        scale[scale == 0] = 1
        with_one = np.column_stack([np.ones(len(rows)), (rows - middle) / scale])
        weighted = with_one.T * counts
        square = weighted @ with_one + np.diag([0.0, *np.full(rows.shape[1], 1e-3)])
        slopes = np.linalg.solve(square, weighted @ np.where(truth, 1.0, -1.0))
        self.slopes = slopes[1:] / scale
        self.start = slopes[0] - middle @ self.slopes
        return self

    def decision_function(self, rows: Floats) -> Floats:
        """The margins [rows]."""
        return np.asarray(rows @ self.slopes + self.start)


class DrawnJudge(TrainedJudge[TrainedSettings]):
    """A trained judge that keeps its models, whose true rates are known."""

    Settings = TrainedSettings
    models: list[Any]

    def extract(self, task, trials, device):  # type: ignore[no-untyped-def]
        """Features are drawn, and not extracted."""
        raise NotImplementedError

    def new_model(self) -> Any:
        """A linear classifier, which is kept."""
        self.models.append(LeastSquares())
        return self.models[-1]


class DrawnRadialJudge(DrawnJudge):
    """The same with the classifier that trained judges have unless they give another."""

    def new_model(self) -> Any:
        """A classifier with a radial kernel, which is kept."""
        self.models.append(TrainedJudge.new_model(self))
        return self.models[-1]
