"""Numbers of an answer, and how two answers or two groups compare."""

import importlib.util
import math
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.answers import COLORS
from agents.word_boundaries import count_words, words

RETURN_RADIUS = 43 / 1280  # of the frame's width: a degree in the papers' experiment
NEAR = 0.1  # of the frame's diagonal: two fixations closer than this look at the same place
WORD_OF = {"color_estimation": "color", "word_association": "word", "judgement": "verdict"}  # an answer's only word
Values = NDArray[np.float64]
AnswerFields = Mapping[str, Any]
"""An answer as a record has it: parsed JSON."""


def texts(answer: AnswerFields, speaker: str | None = None) -> list[str]:
    """The texts of an answer; of a conversation the messages of ``speaker`` (None: of both)."""
    parts = [answer.get("text"), answer.get("word"), answer.get("color"), *(answer.get("labels") or ())]
    messages = answer.get("messages") or ()
    parts += [message["text"] for message in messages if speaker is None or message["speaker"] == speaker]
    return [text for text in parts if text is not None]


def numbers(task: str, answer: AnswerFields, speaker: str | None = None) -> Iterator[tuple[str, float]]:
    """Names and values, of a conversation per message; Zipf's scale for words, widths of the frame for scanpaths."""
    match task:
        case "image_captioning" | "conversation":
            for text in texts(answer, speaker):
                yield "words", count_words(text)
                yield "letters", _letters(text)
                yield "capitals", sum(map(str.isupper, text))
                yield "punctuation", sum(letter in string.punctuation for letter in text)
        case "word_association":
            [word] = texts(answer)
            yield "letters", _letters(word)
            if (zipf := _zipf()) is not None:
                yield "frequency", zipf(word, "en")
        case "color_estimation":
            [color] = texts(answer)
            for word in COLORS:
                yield f"share of {word}", color == word
            yield "share of other words", color not in COLORS
        case "object_detection":
            labels = texts(answer)
            yield "labels", len(labels)
            yield "distinct labels", len(set(labels))
            if labels:
                yield "letters of a label", sum(map(_letters, labels)) / len(labels)
        case "attention_prediction":
            yield from _of_a_path(answer)


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


@lru_cache(1)
def _zipf() -> Callable[[str, str], float] | None:
    if importlib.util.find_spec("wordfreq") is None:
        return None
    from wordfreq import zipf_frequency

    return zipf_frequency


def _of_a_path(answer: AnswerFields) -> Iterator[tuple[str, float]]:
    points = answer["fixations"]
    yield "fixations", len(points)
    if len(points) > 1:
        yield "saccade, widths", path_length(answer)[1]
    if points:
        yield "distance to the centre, widths", center(answer)[0]
    returns, candidates = return_fixations(points, RETURN_RADIUS * answer["frame"][0])
    if candidates:
        yield "share of returns", returns / candidates


def return_fixations(fixations: Sequence[Sequence[float]] | Values, radius: float) -> tuple[int, int]:
    """(returns, fixations counted, from the third) by the program of Zhang et al. 2022; ``fixations`` [n, 2] and
    ``radius`` in pixels. The forced first fixation and the fixation just before never count as returned to."""
    points = np.asarray(fixations, dtype=np.float64)[1:]
    returns = 0
    for index in range(2, len(points)):
        distances = np.hypot(*(points[: index - 1] - points[index]).T)
        returns += bool((distances <= radius).any())
    return returns, max(len(points) - 1, 0)


def path_length(answer: AnswerFields) -> tuple[float, float]:
    """Length and mean saccade of a scanpath, in widths of the frame."""
    steps = np.hypot(*np.diff(in_widths(answer), axis=0).T)
    return float(steps.sum()), float(steps.mean()) if len(steps) else 0.0


def center(answer: AnswerFields) -> tuple[float, float]:
    """Mean and deviation of distances to the centre, in widths of the frame."""
    width, height = answer["frame"]
    distances = np.hypot(*(in_widths(answer) - [0.5, height / width / 2]).T)
    return float(distances.mean()), float(distances.std())


def in_widths(answer: AnswerFields) -> Values:
    """The fixations of a scanpath, [n, 2], in widths of its frame: x from 0 to 1, y by the same unit."""
    points: Values = np.array(answer["fixations"], dtype=np.float64).reshape(-1, 2)
    points /= answer["frame"][0]
    return points


def likeness(task: str, first: AnswerFields, second: AnswerFields) -> float | None:
    """0 to 1, or None for tasks that are not compared: shared words, or fixations within a tenth of the diagonal."""
    match task:
        case "color_estimation" | "word_association" | "judgement":
            name = WORD_OF[task]
            return float(str(first[name]).casefold() == str(second[name]).casefold())
        case "object_detection":
            return _in_common(set(map(str.casefold, first["labels"])), set(map(str.casefold, second["labels"])))
        case "image_captioning":
            return _in_common(words_of(first["text"]), words_of(second["text"]))
        case "attention_prediction":
            return _near(first, second)
    return None


def words_of(text: str) -> set[str]:
    """Distinct words, without case and punctuation."""
    return set(words(text))


def _in_common(first: set[str], second: set[str]) -> float:
    return len(first & second) / len(first | second) if first | second else 1.0


def _near(first: AnswerFields, second: AnswerFields) -> float | None:
    if not first["fixations"] or not second["fixations"]:
        return None
    points = in_widths(first)
    others = in_widths(second)
    far = NEAR * math.hypot(1, first["frame"][1] / first["frame"][0])
    close = np.hypot(*(points[:, None] - others[None]).transpose(2, 0, 1)) <= far
    return float(close.any(1).sum() + close.any(0).sum()) / (len(points) + len(others))


def rounding(*samples: Values) -> float:
    """1e-9 of the largest value."""
    return 1e-9 * max(float(np.abs(values).max(initial=0)) for values in samples)


def cohens_d(first: Values, second: Values) -> float | None:
    """None for fewer than two values, or none that vary."""
    degrees = len(first) + len(second) - 2
    if min(len(first), len(second)) < 2:
        return None
    squares = (len(first) - 1) * first.var(ddof=1) + (len(second) - 1) * second.var(ddof=1)
    pooled = math.sqrt(squares / degrees)
    return float(first.mean() - second.mean()) / pooled if pooled > rounding(first, second) else None


def cliffs_delta(first: Values, second: Values) -> float:
    """P(a value of ``first`` is larger) minus P(it is smaller)."""
    ordered = np.sort(second)
    step = rounding(first, second)
    below = np.searchsorted(ordered, first - step, "left")
    above = len(second) - np.searchsorted(ordered, first + step, "right")
    return float((below - above).sum() / (len(first) * len(second)))
