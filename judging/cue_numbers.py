"""Numbers that tell something of an answer, or of its trial, without reading what it says."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from agents import answer_numbers

Trial = Mapping[str, Any]


def texts(trial: Trial) -> list[str]:
    """What is said in the answer that is judged; of a conversation by the judged speaker."""
    return answer_numbers.texts(trial["answer"], trial.get("speaker"))


def length(trial: Trial) -> list[float]:
    parts = texts(trial)
    text = " ".join(parts)
    return [len(text), len(text.split()), len(parts), len(trial["answer"].get("fixations") or ())]


def punctuation(trial: Trial) -> list[float]:
    text = " ".join(texts(trial))
    return [
        sum(map(str.isupper, text)),
        sum(letter in string.punctuation for letter in text),
        sum(map(str.isdigit, text)),
        sum(not letter.isascii() for letter in text),
    ]


def frequencies(trials: Sequence[Trial]) -> list[list[float]]:
    from wordfreq import zipf_frequency
    from wordfreq.tokens import tokenize

    answers = [orjson.dumps(texts(trial)) for trial in trials]
    number = Counter(answers)
    rows = []
    for trial, answer in zip(trials, answers, strict=True):
        words = tokenize(" ".join(texts(trial)), "en")
        zipf = [zipf_frequency(word, "en") for word in words] or [0.0]
        rows.append([sum(zipf) / len(zipf), min(zipf), float(number[answer] - 1)])
    return rows


def path_length(trial: Trial) -> list[float]:
    return list(answer_numbers.path_length(trial["answer"]))


def center(trial: Trial) -> list[float]:
    return list(answer_numbers.center(trial["answer"]))


def metadata(folder: Path, trial: Trial, place: int) -> list[float]:
    """What is known of the trial at a ``place`` of the set in ``folder`` without reading its answer."""
    number = int("".join(filter(str.isdigit, trial["id"])))
    image = folder / trial["image"] if "image" in trial else None
    times = {(folder / trial[name]).stat().st_mtime for name in ("image", "clip") if name in trial}
    return [
        place,
        number,
        number % 2,
        int("".join(filter(str.isdigit, trial["shown"]))),
        image.stat().st_size if image else 0.0,
        sum(len(str(value)) for name, value in trial.items() if name not in ("answer", "beside", "clip")),
        len(trial),
        len(trial.get("clip", "")),
        max(times, default=0.0),
    ]
