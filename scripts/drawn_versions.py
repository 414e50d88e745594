"""Verdicts on versions of answers with known tells, drawn from a probit model, or given by a classifier.

Answers have three properties, in standard deviations of participants' answers. ``length`` and ``case`` go together
(their correlation is WITHIN); ``hedging`` is a property that no judge heeds. Of the agents ``none`` is like
participants, ``one`` is longer, ``two`` is longer and in other case, and differs in something that nothing takes away.
Where case or hedging is taken away, all answers have the same. Where length is, or where it is planted, the program
itself has matched the lengths, in its own blocks of stimuli.

Judges who are drawn heed a length as it is. The true shares are those of the same judges on further answers, whose
lengths were matched in further blocks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from drawn_judges import DrawnJudge, DrawnRadialJudge, LeastSquares
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from judging.judges.features import Features
from judging.judges.trained import TrainedSettings
from judging.statistics.jackknife import Codes, Floats
from judging.statistics.versions import DRAWN, taken
from judging.tells.blocks import blocks_of
from judging.tells.matching import matched, matched_to
from judging.tells.registry import AND, PLANT

TELLS = ("length", "case", "hedging")
PLANT_LENGTH = f"{PLANT}length"
STEPS = np.linspace(-6, 7, 1301)  # of lengths
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
FURTHER = 3000  # blocks of further answers, of which true shares are
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
Shares = Callable[[Any, "Answers", int], Floats]
"""How often a model says "machine" of the answers of each speaker [speakers], in the version of this number."""
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
    step: float = 0.0
    """To multiples of what properties are rounded, as counts are; 0 where they are not."""


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
    answers = _drawn(design, chance)
    bias = chance.normal(0, OF_BIAS, design.judges)
    heed = chance.normal(0, OF_HEED, (design.judges, len(TELLS)))
    person = np.arange(design.stimuli) % design.people
    answer = stimulus * len(SHIFTS) + speaker
    own = answers.properties[answer]
    own[:, 0] = np.array([answers.lengths(at) for at in range(len(VERSIONS))])[version, answer]
    is_heeded = PRESENT[version].copy()
    is_heeded[:, 0] = 1  # as it is, matched or not
    shift = SHIFTS[speaker] * PRESENT[version]
    shift[_is_planted(version, speaker), 0] = 0
    of_stimulus = chance.normal(0, OF_STIMULI_HEED, (design.stimuli, len(TELLS)))
    heeded = HEED * is_heeded * own + (heed[judge] + of_stimulus[stimulus]) * shift
    evidence = heeded.sum(axis=1) + OTHERWISE[speaker] + LEANING + bias[judge] + noise
    evidence += chance.normal(0, OF_STIMULI, design.stimuli)[stimulus]
    evidence += chance.normal(0, OF_ANSWERS, (design.stimuli, len(SHIFTS)))[stimulus, speaker]
    evidence += np.where(speaker == 0, chance.normal(0, OF_PEOPLE, design.people)[person[stimulus]], 0.0)
    fixed = (bias[0], heed[0]) if design.judges == 1 else None
    table = _table(judge, stimulus, speaker, version, evidence > 0, person[stimulus])
    table["block"] = answers.block[answer]
    if fixed is not None:
        table["judge_kind"] = "machine"
    return table, _shares(design) if fixed is None else _truths(lambda of, at: _share(design, of, at, fixed))


def classifier(design: Design, study: int) -> tuple[pd.DataFrame, Truths]:
    """A linear classifier, trained on each version by the folds of `turinglike judge`.

    It gets the properties and two features that differ in nobody but by stimulus and answer. Its true detectability is
    that of its models, as they were trained, on further answers."""
    chance = np.random.default_rng([study, 3])
    answers = _drawn(design, chance)
    noise = chance.normal(size=(len(answers.speaker), 2))
    of_stimulus = chance.normal(size=(design.stimuli, 2))[answers.stimulus]
    others = math.sqrt(1 - OF_FEATURES) * noise + math.sqrt(OF_FEATURES) * of_stimulus
    others[:, 0] += 2 * OTHERWISE[answers.speaker]
    tables = []
    shares = {}
    for at, version in enumerate(VERSIONS):
        judge = DrawnJudge(TrainedSettings(seed=study), "drawn")
        features = np.hstack([answers.seen(at), others])
        table, shares[version] = _judged(design, answers, judge, at, features, _share_of_linear)
        tables.append(table)
    return pd.concat(tables, ignore_index=True), _truths(lambda of, at: shares[VERSIONS[at]][of])


def classifier_by_length(design: Design, study: int) -> tuple[pd.DataFrame, Truths]:
    """The classifier of `turinglike judge --judges svm`, with a radial kernel, on length alone, as drawn, taken away,
    and planted.

    With a single feature such a classifier can learn any difference between two samples of lengths, so that it shows
    most of what the matching leaves behind. "one" and "two" are the same to it."""
    chance = np.random.default_rng([study, 4])
    answers = _drawn(design, chance)
    tables = []
    shares = {}
    for version in (DRAWN, TELLS[0], PLANT_LENGTH):
        at = VERSIONS.index(version)
        judge = DrawnRadialJudge(TrainedSettings(seed=study), "drawn")
        table, shares[version] = _judged(design, answers, judge, at, answers.seen(at)[:, :1], _share_by_length)
        tables.append(table)
    return pd.concat(tables, ignore_index=True), _truths(lambda of, at: shares[VERSIONS[at]][of], tuple(shares))


def classifier_by_counts(design: Design, study: int) -> tuple[pd.DataFrame, Truths]:
    """The classifier of `turinglike judge --judges svm` on the three properties, which are rounded as numbers of words
    and of capitals are: many answers have the same, and margins are no normal numbers."""
    chance = np.random.default_rng([study, 5])
    answers = _drawn(design, chance)
    tables = []
    shares = {}
    for at, version in enumerate(VERSIONS):
        judge = DrawnRadialJudge(TrainedSettings(seed=study), "drawn")
        share = partial(_share_by_counts, design)
        table, shares[version] = _judged(design, answers, judge, at, answers.seen(at), share)
        tables.append(table)
    return pd.concat(tables, ignore_index=True), _truths(lambda of, at: shares[VERSIONS[at]][of])


@dataclass(frozen=True)
class Answers:
    """Answers to a set of stimuli, with lengths as the program matches them."""

    stimulus: Codes
    """[answers] what was answered."""
    place: Codes
    """[answers] the number of an answer among those to its stimulus."""
    speaker: Codes
    """[answers] who answered; 0 is a participant."""
    block: Codes
    """[answers] the number of the block."""
    properties: Floats
    """[answers, tells] as drawn."""
    matched: Floats
    """[answers] lengths where length is taken away."""
    planted: Floats
    """[answers] lengths where it is planted."""

    def lengths(self, at: int) -> Floats:
        """The lengths [answers] in the version of this number."""
        if VERSIONS[at] == PLANT_LENGTH:
            return self.planted
        return self.properties[:, 0] if PRESENT[at, 0] else self.matched

    def seen(self, at: int) -> Floats:
        """The properties [answers, tells] in the version of this number."""
        found: Floats = self.properties * PRESENT[at]
        found[:, 0] = self.lengths(at)
        return found

    def means(self, values: Floats) -> Floats:
        """The means [speakers] of ``values`` [answers]."""
        return np.asarray(np.bincount(self.speaker, values) / np.bincount(self.speaker))


def _drawn(design: Design, chance: np.random.Generator) -> Answers:
    """A study's answers, in blocks as the program makes them."""
    stimulus, place, speaker = _places(design.stimuli, design.answers)
    properties = SHIFTS[speaker] + chance.multivariate_normal(np.zeros(3), CORRELATIONS, len(speaker))
    properties = _rounded(properties, design.step)
    draws = random.Random(int(chance.integers(2**32)))
    block = np.array(blocks_of(stimulus.tolist(), list(map(str, speaker)), draws))
    return _with_lengths(stimulus, place, speaker, block, properties, draws)


def _rounded(properties: Floats, step: float) -> Floats:
    return np.round(properties / step) * step if step else properties


@cache
def _further(answers: int, size: int, step: float) -> Answers:
    """Further answers, ``answers`` of participants to a stimulus, in blocks of ``size`` stimuli.

    A speaker's lengths are at equal steps of rank, in drawn order, so that their distribution has no chance."""
    chance = np.random.default_rng(1)
    stimulus, place, speaker = _places(FURTHER * size, answers)
    properties = chance.normal(size=(len(speaker), len(TELLS)))
    for of in range(len(SHIFTS)):
        number = int((speaker == of).sum())
        ranks = (np.arange(number) + 0.5) / number
        properties[speaker == of, 0] = chance.permutation(ndtri(ranks))
    properties[:, 1] = WITHIN * properties[:, 0] + math.sqrt(1 - WITHIN**2) * properties[:, 1]
    properties = _rounded(properties + SHIFTS[speaker], step)
    return _with_lengths(stimulus, place, speaker, stimulus // size, properties, random.Random(1))


def _further_like(design: Design) -> Answers:
    blocks = max(blocks_of(list(range(design.stimuli)), ["0"] * design.stimuli, random.Random(0)))
    if design.stimuli % blocks:
        raise ValueError(f"{design}: its blocks are of different sizes")
    return _further(design.answers, design.stimuli // blocks, design.step)


@cache
def _distinct(design: Design, at: int) -> tuple[Floats, Codes]:
    """The distinct rows of further answers in a version, and the place of each answer among them."""
    rows, places = np.unique(_further_like(design).seen(at), axis=0, return_inverse=True)
    return rows, places.ravel()


def _places(stimuli: int, answers: int) -> tuple[Codes, Codes, Codes]:
    """Stimulus, place and speaker [answers]; each agent answers a stimulus once."""
    of_stimulus = np.array([0] * answers + [1, 2, 3])
    stimulus, place = np.indices((stimuli, len(of_stimulus))).reshape(2, -1)
    return stimulus, place, of_stimulus[place]


def _with_lengths(
    stimulus: Codes, place: Codes, speaker: Codes, block: Codes, properties: Floats, draws: random.Random
) -> Answers:
    lengths = properties[:, 0].tolist()
    speakers = speaker.tolist()
    blocks = block.tolist()
    without = np.array(matched(lengths, speakers, blocks, draws))
    planted = np.minimum(lengths, matched_to(lengths, speakers, blocks, 0, draws))  # nothing is made longer
    return Answers(stimulus, place, speaker, block, properties, without, planted)


def _judged(
    design: Design, answers: Answers, judge: DrawnJudge, at: int, features: Floats, share: Shares
) -> tuple[pd.DataFrame, list[float]]:
    """The verdicts on a version by its ``features`` [answers, features], and by speaker the true share of "machine",
    which ``share`` tells of each model."""
    number = len(answers.speaker)
    trials = [
        {"id": str(trial), "asked": "word_association", "shown": str(of)} for trial, of in enumerate(answers.stimulus)
    ]
    keys = [
        {
            "truth": NAMES[int(of > 0)],
            "catch": False,
            "repeat_of": None,
            "agent": of,
            "version": VERSIONS[at],
            "block": block,
        }
        for of, block in zip(answers.speaker, answers.block.tolist(), strict=True)
    ]
    judge.models = []
    judged = judge.judge_trials(trials, keys, {"": Features(features, np.arange(number))})
    raw = [judged[str(trial)] for trial in range(number)]
    margin = np.array([row["margin"] for row in raw])
    version = np.full(number, at)
    nobody = np.zeros(number, dtype=int)
    person = (answers.place + design.answers * answers.stimulus) % design.people
    table = _table(nobody, answers.stimulus, answers.speaker, version, margin > 0, person, answers.place)
    of_models = np.array([share(model, _further_like(design), at) for model in judge.models])
    fold = np.array([row["fold"] for row in raw])
    shares = [float(of_models[fold[answers.speaker == of], of].mean()) for of in range(len(SHIFTS))]
    table = table.assign(judge_kind="machine", margin=margin, moves=[row["moves"] for row in raw])
    return table.assign(block=answers.block), shares


def _share_of_linear(model: LeastSquares, answers: Answers, at: int) -> Floats:
    """How often a linear model says "machine" of each speaker's ``answers`` [speakers] in a version: in closed form for
    all but the lengths."""
    of_case = model.slopes[1] * PRESENT[at, 1]
    of_hedging = model.slopes[2] * PRESENT[at, 2]
    variance = of_case**2 * (1 - WITHIN**2) + of_hedging**2 + (model.slopes[3:] ** 2).sum()
    shift = SHIFTS[answers.speaker]
    mean = of_case * (shift[:, 1] + WITHIN * (answers.properties[:, 0] - shift[:, 0]))
    mean += model.slopes[3] * 2 * OTHERWISE[answers.speaker] + model.start
    mean += model.slopes[0] * answers.lengths(at)
    return answers.means(ndtr(mean / math.sqrt(variance)))


def _share_by_length(model: Any, answers: Answers, at: int) -> Floats:
    """The same of a model that goes by lengths alone, each rounded to a step of STEPS."""
    says_machine = model.decision_function(STEPS[:, None]) > 0
    places = np.searchsorted(STEPS, answers.lengths(at))
    return answers.means(says_machine[np.minimum(places, len(STEPS) - 1)].astype(float))


def _share_by_counts(design: Design, model: Any, answers: Answers, at: int) -> Floats:
    """The same of a model of all properties, which are counts."""
    rows, places = _distinct(design, at)
    says_machine = model.decision_function(rows) > 0
    return answers.means(says_machine[places].astype(float))


def _is_planted(version: Codes, speaker: Codes) -> NDArray[np.bool_]:
    return np.asarray((version == VERSIONS.index(PLANT_LENGTH)) & (speaker > 0))


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


@cache
def _shares(design: Design) -> Truths:
    """The true detectabilities of all judges together."""
    return _truths(lambda of, at: _share(design, of, at, None))


def _share(design: Design, speaker: int, version: int, judge: tuple[float, Floats] | None) -> float:
    """How often judges say "machine" of a speaker's answers in a version: all judges, or the one with this bias and
    heed. In closed form for all but lengths, which are those of further answers."""
    answers = _further_like(design)
    of_speaker = answers.speaker == speaker
    present = PRESENT[version]
    shift = SHIFTS[speaker] * present
    if _is_planted(np.array(version), np.array(speaker)):
        shift[0] = 0
    of_case = HEED[1] * present[1]
    case = SHIFTS[speaker, 1] + WITHIN * (answers.properties[of_speaker, 0] - SHIFTS[speaker, 0])
    mean = HEED[0] * answers.lengths(version)[of_speaker] + of_case * case + OTHERWISE[speaker] + LEANING
    variance = 1 + OF_STIMULI**2 + OF_ANSWERS**2 + of_case**2 * (1 - WITHIN**2)
    variance += ((OF_STIMULI_HEED * shift) ** 2).sum() + (OF_PEOPLE**2 if speaker == 0 else 0)
    if judge is None:
        variance += OF_BIAS**2 + ((OF_HEED * shift) ** 2).sum()
    else:
        mean = mean + judge[0] + judge[1] @ shift
    return float(ndtr(mean / math.sqrt(variance)).mean())


def _truths(share: Callable[[int, int], float], versions: Sequence[str] = VERSIONS) -> dict[tuple[str, str], float]:
    truths = {}
    for version in versions:
        at = VERSIONS.index(version)
        of_people = share(0, at)
        for number, agent in enumerate(AGENTS, start=1):
            truths[agent, version] = 0.5 * (1 - of_people + share(number, at))
    return truths
