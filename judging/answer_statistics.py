"""Statistics of the answers themselves, people's and each agent's, whatever judges said of them (2025 paper, Table S5).

By task, of each answer (of a conversation, each message of the judged speaker; of objects, each answer's labels):

- captions, messages: words, letters, capitals, punctuation marks;
- words: letters, and frequency (Zipf's scale of wordfreq: the logarithm of occurrences in a thousand million words);
- colours: the share of each of the eleven words, and of any other;
- objects: labels, distinct labels, letters of a label;
- scanpaths: fixations, the mean saccade and the mean distance to the centre in widths of the frame, and the share of
  fixations that return (:func:`agents.attention.scanpath_metrics.return_fixations`) within a degree of the papers'
  experiment.

An agent's difference from people is told as Cohen's d (the difference of the means in pooled standard deviations) and
as Cliff's delta (Cliff 1993): the probability that an answer of the agent's has more than one of people's, less the
probability that it has less.
"""

from __future__ import annotations

import math
import string
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.stimuli import TASKS
from agents.vision.colors import WORDS
from judging.cue_numbers import center, path_length, texts
from judging.verdicts import PEOPLE, Answers

RETURN_RADIUS = 43 / 1280  # of the frame's width: a degree in the papers' experiment (docs/scanpaths.md)


def answer_statistics(answers: Answers) -> list[dict[str, Any]]:
    """By task (``asked``), ``statistic`` and ``of`` (people, then each agent): ``number`` of answers, ``mean``, ``sd``
    (of a sample; None of fewer than two), and for agents ``d``, ``delta`` and ``direction`` (more, less, or as people).
    Both are None where people gave no answers, ``d`` also where nothing varies or fewer than two answers were given.

    ``answers`` are those of :func:`judging.verdicts.read_answers`. A message that stands in several excerpts of one
    conversation counts once.
    """
    found = []
    for asked in TASKS:
        values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for answer in _without_shorter_excerpts([one for one in answers if one["asked"] == asked]):
            of = PEOPLE if answer["truth"] == "human" else answer["agent"]
            for name, value in _numbers(answer):
                values[name][of].append(value)
        for name, by in values.items():
            for of in sorted(by, key=lambda one: (one != PEOPLE, one)):
                own = np.array(by[of])
                row = {"asked": asked, "statistic": name, "of": of, "number": len(own), "mean": float(own.mean())}
                row |= {"sd": float(own.std(ddof=1)) if len(own) > 1 else None}
                row |= _effects(own, np.array(by.get(PEOPLE, []))) if of != PEOPLE else NO_EFFECTS
                found.append(row)
    return found


NO_EFFECTS: Mapping[str, Any] = {"d": None, "delta": None, "direction": None}


def _effects(own: NDArray[np.float64], people: NDArray[np.float64]) -> Mapping[str, Any]:
    if not len(people):
        return NO_EFFECTS
    difference = float(own.mean() - people.mean())
    direction = "more" if difference > 0 else "less" if difference < 0 else "as people"
    return {"d": cohens_d(own, people), "delta": cliffs_delta(own, people), "direction": direction}


def cohens_d(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """The difference of the means in pooled standard deviations; None where either has one value or nothing varies."""
    degrees = len(one) + len(other) - 2
    if min(len(one), len(other)) < 2:
        return None
    pooled = math.sqrt(((len(one) - 1) * one.var(ddof=1) + (len(other) - 1) * other.var(ddof=1)) / degrees)
    return float(one.mean() - other.mean()) / pooled if pooled > 0 else None


def cliffs_delta(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """P(``one`` is more) less P(``one`` is less), over all pairs of values."""
    ordered = np.sort(other)
    below, above = np.searchsorted(ordered, one, "left"), len(other) - np.searchsorted(ordered, one, "right")
    return float((below - above).sum() / (len(one) * len(other)))


def _numbers(answer: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Each statistic's name and value; of a conversation once for each message."""
    match answer["asked"]:
        case "image_captioning" | "conversation":
            for text in texts(answer):
                yield "words", len(text.split())
                yield "letters", sum(map(str.isalpha, text))
                yield "capitals", sum(map(str.isupper, text))
                yield "punctuation", sum(letter in string.punctuation for letter in text)
        case "word_association":
            from wordfreq import zipf_frequency

            [word] = texts(answer)
            yield "letters", sum(map(str.isalpha, word))
            yield "frequency", zipf_frequency(word, "en")
        case "color_estimation":
            [said] = texts(answer)
            for word in WORDS:
                yield f"share of {word}", said == word
            yield "share of other words", said not in WORDS
        case "object_detection":
            labels = texts(answer)
            yield "labels", len(labels)
            yield "distinct labels", len(set(labels))
            yield "letters of a label", sum(sum(map(str.isalpha, one)) for one in labels) / len(labels)
        case "attention_prediction":
            yield from _of_a_path(answer)


def _of_a_path(answer: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    from agents.attention.scanpath_metrics import return_fixations

    points = answer["answer"]["fixations"]
    yield "fixations", len(points)
    if len(points) > 1:
        yield "saccade, widths", path_length(answer)[1]
    yield "distance to the centre, widths", center(answer)[0]
    returns, of = return_fixations(points, RETURN_RADIUS * answer["answer"]["frame"][0])
    if of:
        yield "share of returns", returns / of


def _without_shorter_excerpts(answers: Answers) -> Answers:
    """Without the excerpts of a conversation that are the beginning of another of the same speaker's."""
    kept: dict[tuple[Any, ...], list[Sequence[Any]]] = defaultdict(list)
    whole = []
    for answer in sorted(answers, key=lambda one: -len(one["answer"].get("messages") or ())):
        if (messages := answer["answer"].get("messages")) is not None:
            longer = kept[answer["stimulus"], answer["agent"], answer["speaker"]]
            if any(other[: len(messages)] == messages for other in longer):
                continue
            longer.append(messages)
        whole.append(answer)
    return whole
