"""Numbers that describe one answer, and how two answers or two groups of answers compare.

- captions, messages: words, letters, capitals, punctuation marks;
- words: letters, and frequency (Zipf's scale of wordfreq: the logarithm of occurrences in a thousand million words);
- colours: the share of each of the eleven words, and of any other;
- objects: labels, distinct labels, letters of a label;
- scanpaths: fixations, the mean saccade and the mean distance to the centre in widths of the frame, and the share of
  fixations that return (:func:`agents.attention.scanpath_metrics.return_fixations`) within a degree of the papers'
  experiment.
"""

from __future__ import annotations

import importlib.util
import math
import string
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.attention.scanpath_metrics import return_fixations
from agents.vision.colors import WORDS

RETURN_RADIUS = 43 / 1280  # of the frame's width: a degree in the papers' experiment (docs/scanpaths.md)
NEAR = 0.1  # of the frame's diagonal: two fixations closer than this look at the same place
Values = NDArray[np.float64]


def texts(answer: Mapping[str, Any], speaker: str | None = None) -> list[str]:
    """What is said in an answer; of a conversation by ``speaker`` (None: by both)."""
    said = [answer.get("text"), answer.get("word"), answer.get("color"), *(answer.get("labels") or ())]
    messages = answer.get("messages") or ()
    said += [one["text"] for one in messages if speaker is None or one["speaker"] == speaker]
    return [text for text in said if text is not None]


def numbers(task: str, answer: Mapping[str, Any], speaker: str | None = None) -> Iterator[tuple[str, float]]:
    """Each number's name and value; of a conversation once for each message. The frequency of words is left out where
    wordfreq is not installed."""
    match task:
        case "image_captioning" | "conversation":
            for text in texts(answer, speaker):
                yield "words", len(text.split())
                yield "letters", sum(map(str.isalpha, text))
                yield "capitals", sum(map(str.isupper, text))
                yield "punctuation", sum(letter in string.punctuation for letter in text)
        case "word_association":
            [word] = texts(answer)
            yield "letters", sum(map(str.isalpha, word))
            if (zipf := _zipf()) is not None:
                yield "frequency", zipf(word, "en")
        case "color_estimation":
            [said] = texts(answer)
            for word in WORDS:
                yield f"share of {word}", said == word
            yield "share of other words", said not in WORDS
        case "object_detection":
            labels = texts(answer)
            yield "labels", len(labels)
            yield "distinct labels", len(set(labels))
            if labels:
                yield "letters of a label", sum(sum(map(str.isalpha, one)) for one in labels) / len(labels)
        case "attention_prediction":
            yield from _of_a_path(answer)


@lru_cache(1)
def _zipf() -> Callable[[str, str], float] | None:
    if importlib.util.find_spec("wordfreq") is None:
        return None
    from wordfreq import zipf_frequency

    return zipf_frequency


def _of_a_path(answer: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    points = answer["fixations"]
    yield "fixations", len(points)
    if len(points) > 1:
        yield "saccade, widths", path_length(answer)[1]
    if points:
        yield "distance to the centre, widths", center(answer)[0]
    returns, of = return_fixations(points, RETURN_RADIUS * answer["frame"][0])
    if of:
        yield "share of returns", returns / of


def path_length(answer: Mapping[str, Any]) -> tuple[float, float]:
    """A scanpath's length and its mean saccade, in widths of the frame."""
    steps = np.hypot(*np.diff(in_widths(answer), axis=0).T)
    return float(steps.sum()), float(steps.mean()) if len(steps) else 0.0


def center(answer: Mapping[str, Any]) -> tuple[float, float]:
    """The mean and the deviation of the fixations' distances to the centre, in widths of the frame."""
    width, height = answer["frame"]
    away = np.hypot(*(in_widths(answer) - [0.5, height / width / 2]).T)
    return float(away.mean()), float(away.std())


def in_widths(answer: Mapping[str, Any]) -> Values:
    """The fixations [n, 2] of a scanpath, in widths of its frame."""
    points: Values = np.array(answer["fixations"], dtype=np.float64).reshape(-1, 2)
    points /= answer["frame"][0]
    return points


def likeness(task: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    """How alike two answers to one stimulus are, from 0 to 1; None for tasks whose answers are not compared so.

    Colours, associated words, verdicts: 1 if they are the same word, else 0. Labels: those in common, of all that
    either names. Captions: the same of their words. Scanpaths: the share of fixations that lie within a tenth of the
    diagonal of a fixation of the other path.
    """
    match task:
        case "color_estimation" | "word_association" | "judgement":
            name = {"color_estimation": "color", "word_association": "word", "judgement": "verdict"}[task]
            return float(str(one[name]).casefold() == str(other[name]).casefold())
        case "object_detection":
            return _in_common({label.casefold() for label in one["labels"]}, {x.casefold() for x in other["labels"]})
        case "image_captioning":
            return _in_common(words_of(one["text"]), words_of(other["text"]))
        case "attention_prediction":
            return _near(one, other)
    return None


def words_of(text: str) -> set[str]:
    """The distinct words of a text, without case and punctuation."""
    return {word for part in text.casefold().split() if (word := part.strip(string.punctuation))}


def _in_common(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


def _near(one: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    if not one["fixations"] or not other["fixations"]:
        return None
    first = in_widths(one)
    second = in_widths({"fixations": other["fixations"], "frame": [other["frame"][0]]})
    far = NEAR * math.hypot(1, one["frame"][1] / one["frame"][0])
    close = np.hypot(*(first[:, None] - second[None]).transpose(2, 0, 1)) <= far
    return float(close.any(1).sum() + close.any(0).sum()) / (len(first) + len(second))


def rounding(*values: Values) -> float:
    """By how much values may differ by rounding alone: 1e-9 of the largest."""
    return 1e-9 * max(float(np.abs(some).max(initial=0)) for some in values)


def cohens_d(one: Values, other: Values) -> float | None:
    """The difference of the means in pooled standard deviations; None where either has one value or nothing varies but
    by rounding."""
    degrees = len(one) + len(other) - 2
    if min(len(one), len(other)) < 2:
        return None
    pooled = math.sqrt(((len(one) - 1) * one.var(ddof=1) + (len(other) - 1) * other.var(ddof=1)) / degrees)
    return float(one.mean() - other.mean()) / pooled if pooled > rounding(one, other) else None


def cliffs_delta(one: Values, other: Values) -> float:
    """P(``one`` is more) less P(``one`` is less), over all pairs of values. What differs by rounding alone is equal."""
    ordered, step = np.sort(other), rounding(one, other)
    below = np.searchsorted(ordered, one - step, "left")
    above = len(other) - np.searchsorted(ordered, one + step, "right")
    return float((below - above).sum() / (len(one) * len(other)))
