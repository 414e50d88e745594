"""Measures of two sets of answers. A relation has what they compare (shares of words, distances, maps); a set is
weights [draws, answers], and a measure has a value per draw."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.language.embedder import Embedder
from agents.language.minilm import PACKAGE
from judging.statistics.answer_statistics import plain_words
from judging.statistics.jackknife import Floats
from serving.runs.answer_numbers import RETURN_RADIUS, AnswerFields, in_widths, texts

Vectors = Mapping[str, NDArray[np.float32]]
CELLS = 64  # of a frame's side
OF_CENTRE = 0.3  # of a picture's density, beside Gaussians of a degree: the likeliest for 1,199 people's paths
# smoothing of the density over other pictures, and what is added to it
CENTRE_CELLS = 3.0
UNIFORM = 0.01


def halves(people: int, agent: int) -> tuple[int, int]:
    """Two sets of equal size that do not overlap: half of people's answers, or half of the agent's if these are
    fewer."""
    size = min(people // 2, max(agent // 2, 1))
    return size, size


def one_out(people: int, agent: int) -> tuple[int, int]:
    """A single answer beside all other people's."""
    return 1, people - 1


def as_many(people: int, agent: int) -> tuple[int, int]:
    """As many answers as both gave, in one set: for measures of a set by itself."""
    return min(people, agent), 0


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of two sets of answers to a stimulus, or to several, such as how far they are apart."""

    name: str
    """As tables call it, with its unit."""
    relation: Callable[[Sequence[AnswerFields]], Any]
    """Takes answers; gives what sets of them are compared by, such as shares of words or distances."""
    compare: Callable[[Any, Floats, Floats], Floats]
    """Takes a relation and two sets, weights [draws, answers]; gives a value by draw, NaN where there is none."""
    sizes: Callable[[int, int], tuple[int, int]] = halves
    """Takes how many answers people and the agent gave; gives the sizes of the two sets."""
    is_distance: bool = False
    """Whether it is larger between two populations than on average within them."""
    is_pooled: bool = False
    """Whether the answers to several stimuli are compared together."""
    least: int = 1
    """How many answers an agent must give; by one word divergences say what "answers alike" does."""
    limits: tuple[float, float] = (0, math.inf)
    """The least and the largest value that it can have."""

    @property
    def compares_one(self) -> bool:
        """Whether one answer to a stimulus can be compared with others', so that a participant can stand in the agent's
        place. Not so of a set by itself: participants' self-BLEU is skewed, and of six drawn ones 6.1 % (5.1 to 7.2)
        were told from the others at 0.05."""
        return self.least == 1 and self.sizes is not as_many


class Maps(NamedTuple):
    """Where paths look on a picture, in the cells that any path looks at."""

    fixations: Floats
    """[paths, cells] how many fixations after the first."""
    smoothed: Floats
    """[paths, cells] the same by Gaussians of a degree."""
    centre: Floats
    """[cells] people's density there on other pictures, which adds up to 1 over the whole frame."""
    number: Floats
    """[paths] how many fixations after the first."""


def measures_of(task: str, answers: Sequence[AnswerFields]) -> list[Measure]:
    """The measures of a task with these ``answers``. Raises UnavailableError without the sentence model."""
    share = (0, 1)
    alike = Measure("answers alike", answer_shares, probability_alike, limits=share)
    of_words = [alike, Measure("entropy (bits)", answer_shares, entropy, as_many, least=2)]
    if task in ("color_estimation", "object_detection"):
        variation = partial(Measure, relation=answer_shares, compare=total_variation, is_distance=True, limits=share)
        of_all = variation("total variation over stimuli", is_pooled=True)
        return [variation("total variation", least=2), of_all, *of_words]
    if task == "attention_prediction":
        apart = Measure("energy distance of fixations", path_distances, energy_distance, is_distance=True)
        of_centre = partial(fixation_maps, centres(answers))
        any_value = (-math.inf, math.inf)
        return [Measure("information gain (bits)", of_centre, information_gain, one_out, limits=any_value), apart]
    vectors = _embedder().vectors(list(chain.from_iterable(map(texts_of, answers))))
    energy = partial(Measure, relation=partial(distances, vectors), compare=energy_distance, is_distance=True)
    if task == "word_association":
        of_several = partial(Measure, relation=answer_shares, least=2, limits=share)
        divergence = of_several("Jensen-Shannon divergence (bits)", compare=jensen_shannon, is_distance=True)
        rare = of_several("rare answers covered", compare=rare_covered)
        of_all = energy("energy distance over stimuli", is_pooled=True)
        return [divergence, energy("energy distance"), of_all, rare, *of_words]
    repeats = Measure("self-BLEU", pairwise_bleu, self_bleu, as_many, is_pooled=True, limits=(0, 100))
    return [energy("energy distance"), energy("energy distance over stimuli", is_pooled=True), repeats]


@lru_cache(1)
def _embedder() -> Embedder:
    return Embedder(PACKAGE, "mean", "cpu")


def texts_of(answer: AnswerFields) -> list[str]:
    """The words, labels or messages of an answer."""
    return texts(answer["answer"], answer.get("speaker"))


def answer_shares(answers: Sequence[AnswerFields]) -> Floats:
    """[answers, distinct words or labels]; each row adds up to 1."""
    words = list(map(texts_of, answers))
    distinct = sorted(set(chain.from_iterable(words)))
    return np.array([[of_answer.count(word) / len(of_answer) for word in distinct] for of_answer in words])


def _distribution(relation: Floats, weights: Floats) -> Floats:
    total = weights @ relation
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def _bits(distribution: Floats) -> Floats:
    return -np.asarray((distribution * np.log2(np.where(distribution > 0, distribution, 1))).sum(axis=1))


def entropy(relation: Floats, first: Floats, second: Floats) -> Floats:
    """Shannon's (1948), in bits, of as many answers of people and of the agent."""
    return _bits(_distribution(relation, first))


def jensen_shannon(relation: Floats, first: Floats, second: Floats) -> Floats:
    """Lin's (1991, section III) divergence with equal weights, 0 to 1 bit."""
    of_first = _distribution(relation, first)
    of_second = _distribution(relation, second)
    return _bits((of_first + of_second) / 2) - (_bits(of_first) + _bits(of_second)) / 2


def total_variation(relation: Floats, first: Floats, second: Floats) -> Floats:
    """Half the sum of differences between two distributions, 0 to 1."""
    return np.asarray(np.abs(_distribution(relation, first) - _distribution(relation, second)).sum(axis=1)) / 2


def probability_alike(relation: Floats, first: Floats, second: Floats) -> Floats:
    """How probable it is that an answer of each set, or a label of each, are the same."""
    return np.asarray((_distribution(relation, first) * _distribution(relation, second)).sum(axis=1))


def rare_covered(relation: Floats, first: Floats, second: Floats) -> Floats:
    """The share of the second set's one-person words that also occur in the first set; NaN without such words (Kent and
    Rosanoff 1910: individual reactions)."""
    rare = np.isclose(second @ relation, 1)
    covered = (rare & (first @ relation > 0)).sum(axis=1)
    number = rare.sum(axis=1)
    return np.where(number > 0, covered / np.maximum(number, 1), np.nan)


def distances(vectors: Vectors, answers: Sequence[AnswerFields]) -> Floats:
    """[answers, answers]: Euclidean between embeddings; of several messages the mean, to themselves too."""
    words = list(map(texts_of, answers))
    rows = np.array([vectors[word] for of_answer in words for word in of_answer], dtype=np.float64)
    return _mean_distances(rows, list(map(len, words)))


def path_distances(answers: Sequence[AnswerFields]) -> Floats:
    """[answers, answers]: the mean distance of their fixations after the first, in widths of the frame."""
    paths = [in_widths(answer["answer"])[1:] for answer in answers]
    return _mean_distances(np.vstack(paths), list(map(len, paths)))


def _mean_distances(rows: Floats, number: Sequence[int]) -> Floats:
    squares = (rows**2).sum(axis=1)
    apart = np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))
    np.fill_diagonal(apart, 0)
    starts = [sum(number[:path]) for path in range(len(number))]
    total = np.add.reduceat(np.add.reduceat(apart, starts, axis=0), starts, axis=1)
    return np.asarray(total / np.outer(number, number))


def energy_distance(relation: Floats, first: Floats, second: Floats) -> Floats:
    """Székely and Rizzo's (2013, equation 2.1), not rooted, of samples as they are (V-statistic): 0 for equal ones."""
    gap = first / first.sum(axis=1, keepdims=True) - second / second.sum(axis=1, keepdims=True)
    return -np.asarray(((gap @ relation) * gap).sum(axis=1))


def pairwise_bleu(answers: Sequence[AnswerFields]) -> Floats:
    """[answers, references]: sentence BLEU-4, 0 to 100, of each answer's words with another as its reference."""
    sentences = [" ".join(chain.from_iterable(map(plain_words, texts_of(answer)))) for answer in answers]
    return np.array([[_bleu(sentence, reference) for reference in sentences] for sentence in sentences])


@lru_cache(1 << 18)
def _bleu(sentence: str, reference: str) -> float:
    from sacrebleu.metrics.bleu import BLEU

    return float(BLEU(tokenize="none", force=True, effective_order=True).sentence_score(sentence, [reference]).score)


def self_bleu(relation: Floats, first: Floats, second: Floats) -> Floats:
    """The mean over pairs of a set (Shen et al. 2019, section 4; Zhu et al. 2018 take all others as references), which
    does not go with the number of texts. The higher, the more the texts repeat each other."""
    number = first.sum(axis=1)
    pairs = ((first @ relation) * first).sum(axis=1) - first @ np.diag(relation)
    return np.asarray(pairs / np.maximum(number * (number - 1), 1))


def centres(answers: Sequence[AnswerFields]) -> Mapping[str, Floats]:
    """By picture people's density of fixations [cells] on the other pictures."""
    from scipy.ndimage import gaussian_filter

    people = {answer["stimulus"]: np.zeros((CELLS, CELLS)) for answer in answers}
    for answer in {id(answer): answer for answer in answers if answer["truth"] == "human"}.values():
        people[answer["stimulus"]] += _cells(answer)
    total = np.sum(list(people.values()), axis=0)
    on_others = {on: gaussian_filter(total - there, CENTRE_CELLS, mode="reflect") for on, there in people.items()}
    even = {on: UNIFORM * max(density.mean(), 1e-9) for on, density in on_others.items()}
    return {on: (density + even[on]).ravel() / (density + even[on]).sum() for on, density in on_others.items()}


def _cells(answer: AnswerFields) -> Floats:
    """The number of fixations [down, across] after the first, which is forced."""
    points = np.array(answer["answer"]["fixations"][1:]) / answer["answer"]["frame"] * CELLS
    across, down = np.clip(points, 0, CELLS - 1).astype(int).T
    counts = np.zeros((CELLS, CELLS))
    np.add.at(counts, (down, across), 1)
    return counts


def fixation_maps(centre: Mapping[str, Floats], answers: Sequence[AnswerFields]) -> Maps:
    """The maps of the paths on a picture; ``centre`` has for each stimulus where people look in other pictures."""
    from scipy.ndimage import gaussian_filter

    width, height = answers[0]["answer"]["frame"]
    degree = (RETURN_RADIUS * CELLS * width / height, RETURN_RADIUS * CELLS)
    fixations = np.array(list(map(_cells, answers)))
    smoothed = np.array([gaussian_filter(path, degree, mode="reflect") for path in fixations])
    there = fixations.any(axis=0)
    on = centre[answers[0]["stimulus"]][there.ravel()]
    return Maps(fixations[:, there], smoothed[:, there], on, fixations.sum(axis=(1, 2)))


def information_gain(relation: Maps, first: Floats, second: Floats) -> Floats:
    """How much better the second set's paths explain a fixation of the first than other pictures do, in bits.

    Their density is one of Gaussians of a degree; beside it stands where people look in other pictures (Kümmerer,
    Wallis and Bethge 2015). For a person
    beside all others it is the ceiling between observers."""
    density = (second @ relation.smoothed) / (second @ relation.number)[:, None]
    density = (1 - OF_CENTRE) * density + OF_CENTRE * relation.centre
    gain = ((first @ relation.fixations) * np.log2(density / relation.centre)).sum(axis=1)
    return np.asarray(gain / (first @ relation.number))
