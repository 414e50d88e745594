"""Tells of our own making: forms of answers that differ between people and machines by how they were collected or read.

A judge, above all a classifier, takes what is easiest. An import may have left brackets in people's answers. No
agent may give a plural, or a colour word beyond those that people were offered. None of these is what a
Turing-like test asks. So each is counted on both sides of a trial set and named where it differs, whatever else the
answers say.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.answers import COLORS
from agents.contract import is_installed
from agents.language.words.rules import SHORTEST, is_stop_word, letters
from agents.language.words.vocabulary import lemma
from judging.trial_sets.cues import Trial, shown_delays
from serving.runs.answer_numbers import texts

LEAST = 0.1  # difference of two shares that is named
SURE = 3.0  # standard errors, so that a set without a difference names one in some 400
_WRAPPED = re.compile(r"""[\[{("'“„«<].*|.*[\]})"'”»>]""", re.DOTALL)
_WORD = re.compile(r"[\w'’-]+")


def _has_marks(parts: Sequence[str]) -> bool:
    return any(_WRAPPED.fullmatch(part.strip()) for part in parts)


def _has_capitals(parts: Sequence[str]) -> bool:
    return any(part != part.lower() for part in parts)


def _has_other_letters(parts: Sequence[str]) -> bool:
    return any(letter.isalpha() and not letter.isascii() for part in parts for letter in part)


def _has_several_words(parts: Sequence[str]) -> bool:
    return any(len(_WORD.findall(part)) > 1 for part in parts)


def _is_inflected(parts: Sequence[str]) -> bool:
    words = [letters(part) for part in parts]
    return any(word and lemma(word) != word for word in words)


def _is_small(parts: Sequence[str]) -> bool:
    return any(is_stop_word(part) or len(letters(part)) < SHORTEST for part in parts)


def _is_other_color(parts: Sequence[str]) -> bool:
    return any(part not in COLORS for part in parts)


def _ends_with_stop(parts: Sequence[str]) -> bool:
    return any(part.rstrip().endswith(".") for part in parts)


def _begins_small(parts: Sequence[str]) -> bool:
    return any(part[:1].islower() for part in parts)


def _has_articles(parts: Sequence[str]) -> bool:
    return any(part.lower().startswith(("a ", "an ", "the ")) for part in parts)


Form = tuple[str, Callable[[Sequence[str]], bool]]
MARKS: Form = ("brackets or quotation marks at an end", _has_marks)
FOREIGN: Form = ("letters beyond a to z", _has_other_letters)
FORMS: Mapping[str, Sequence[Form]] = {
    "word_association": (
        MARKS,
        FOREIGN,
        ("several words", _has_several_words),
        ("a plural or a verb's form", _is_inflected),
        ("a stop word, or under three letters", _is_small),
    ),
    "color_estimation": (MARKS, FOREIGN, ("a colour beyond the eleven words", _is_other_color)),
    "object_detection": (
        MARKS,
        FOREIGN,
        ("a label of several words", _has_several_words),
        ("a label with an article", _has_articles),
        ("a full stop at the end of a label", _ends_with_stop),
        ("a label in the plural, or a verb's form", _is_inflected),
    ),
    "image_captioning": (
        MARKS,
        ("a full stop at the end", _ends_with_stop),
        ("a small letter at the beginning", _begins_small),
        ("capital letters", _has_capitals),
    ),
    "conversation": (MARKS, ("a full stop at an end", _ends_with_stop), ("capital letters", _has_capitals)),
}


def tells(trials: Sequence[Trial], is_machine: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """The forms in which people's and machines' answers to one task differ by 0.1 or more, and surely.

    Each has its name in ``tell``, and the shares of ``people`` and ``machines`` that have it."""
    if not 0 < is_machine.sum() < len(trials):
        return []
    found = []
    for name, has in _forms(trials[0]["asked"]):
        present = np.array([has(trial) for trial in trials], dtype=np.bool_)
        shares = [float(present[side].mean()) for side in (~is_machine, is_machine)]
        numbers = [int((~is_machine).sum()), int(is_machine.sum())]
        if abs(shares[0] - shares[1]) >= LEAST and _is_sure(shares, numbers):
            found.append({"tell": name, "people": round(shares[0], 4), "machines": round(shares[1], 4)})
    return found


def told(tell: Mapping[str, Any]) -> str:
    """A tell as a sentence."""
    shares = f"{tell['people']:.0%} of people's answers, {tell['machines']:.0%} of machines' answers"
    return f"difference of form: {tell['tell']}: {shares}"


def _forms(task: str) -> Iterator[tuple[str, Callable[[Trial], bool]]]:
    def of_texts(has: Callable[[Sequence[str]], bool]) -> Callable[[Trial], bool]:
        return lambda trial: has(texts(trial["answer"], trial.get("speaker")))

    for name, has in FORMS.get(task, ()):
        if has is not _is_inflected or is_installed("wordfreq"):
            yield name, of_texts(has)
    if task == "object_detection":
        yield "fewer than three labels", lambda trial: len(trial["answer"]["labels"]) < 3
    if task == "conversation":
        yield "speaks first", lambda trial: bool(trial.get("speaker") == "A")
        yield "delays in whole seconds", _is_in_whole_seconds
    if task == "attention_prediction":
        yield "a fixation beyond the picture", _leaves_the_picture


def _is_in_whole_seconds(trial: Trial) -> bool:
    """Whether all shown delays of the judged speaker are whole seconds: of a clock that has no parts of seconds, while
    the other side's has."""
    seconds = shown_delays(trial)
    return bool(seconds) and all(number == round(number) for number in seconds)


def _leaves_the_picture(trial: Trial) -> bool:
    width, height = trial["answer"]["frame"]
    return any(not (0 <= x < width and 0 <= y < height) for x, y in trial["answer"]["fixations"])


def _is_sure(shares: Sequence[float], numbers: Sequence[int]) -> bool:
    """Whether two shares differ by three standard errors.

    Each count has one added on both sides (Agresti and Caffo 2000), so that 0 of 3 and 3 of 3 are no proof."""
    adjusted = [(share * number + 1) / (number + 2) for share, number in zip(shares, numbers, strict=True)]
    variance = sum(share * (1 - share) / (number + 2) for share, number in zip(adjusted, numbers, strict=True))
    return abs(adjusted[0] - adjusted[1]) > SURE * math.sqrt(variance)
