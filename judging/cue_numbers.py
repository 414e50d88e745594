"""Numbers that tell something of an answer, or of its trial, without reading what it says."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

Trial = Mapping[str, Any]


def texts(trial: Trial) -> list[str]:
    """What is said in the answer that is judged; of a conversation by the judged speaker."""
    answer = trial["answer"]
    said = [answer.get("text"), answer.get("word"), answer.get("color"), *(answer.get("labels") or ())]
    said += [one["text"] for one in answer.get("messages") or () if one["speaker"] == trial["speaker"]]
    return [text for text in said if text is not None]


def length(trial: Trial) -> list[float]:
    said = texts(trial)
    whole = " ".join(said)
    return [len(whole), len(whole.split()), len(said), len(trial["answer"].get("fixations") or ())]


def punctuation(trial: Trial) -> list[float]:
    whole = " ".join(texts(trial))
    return [
        sum(map(str.isupper, whole)),
        sum(letter in string.punctuation for letter in whole),
        sum(map(str.isdigit, whole)),
        sum(not letter.isascii() for letter in whole),
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
    points = _in_widths(trial)
    steps = np.hypot(*np.diff(points, axis=0).T)
    return [float(steps.sum()), float(steps.mean()) if len(steps) else 0.0]


def center(trial: Trial) -> list[float]:
    width, height = trial["answer"]["frame"]
    away = np.hypot(*(_in_widths(trial) - [0.5, height / width / 2]).T)
    return [float(away.mean()), float(away.std())]


def _in_widths(trial: Trial) -> NDArray[np.float64]:
    """The fixations [n, 2] of a scanpath, in widths of its frame."""
    answer = trial["answer"]
    points: NDArray[np.float64] = np.array(answer["fixations"], dtype=np.float64).reshape(-1, 2)
    points /= answer["frame"][0]
    return points


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
        sum(len(str(value)) for name, value in trial.items() if name not in ("answer", "clip")),
        len(trial),
        len(trial.get("clip", "")),
        max(times, default=0.0),
    ]
