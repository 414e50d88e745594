"""Single cues of a trial, and folds that keep the trials of a stimulus together; numbers alone, without a model."""

from __future__ import annotations

import random
import string
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from agents.word_boundaries import count_words
from serving.runs import answer_numbers

Trial = Mapping[str, Any]


def grouped_folds(groups: Sequence[Hashable], classes: Sequence[Hashable], folds: int, seed: int) -> NDArray[np.int64]:
    """The fold (from 0) of each item, a group in a single fold. Raises ValueError for fewer groups than folds."""
    kinds: dict[Hashable, Counter[Hashable]] = {}
    for group, cls in zip(groups, classes, strict=True):
        kinds.setdefault(group, Counter())[cls] += 1
    if not 2 <= folds <= len(kinds):
        raise ValueError(f"{folds} folds of {len(kinds)} groups")
    strata: dict[frozenset[tuple[Hashable, int]], list[Hashable]] = {}
    for group, counts in kinds.items():
        strata.setdefault(frozenset(counts.items()), []).append(group)
    chance = random.Random(seed)
    fold_of: dict[Hashable, int] = {}
    for members in strata.values():
        chance.shuffle(members)
        for group in members:  # goes on where the last kind ended, so that small kinds do not all fall to fold 0
            fold_of[group] = len(fold_of) % folds
    return np.array([fold_of[group] for group in groups], dtype=np.int64)


def judged_texts(trial: Trial) -> list[str]:
    """The judged texts, of a conversation the judged speaker's."""
    return answer_numbers.texts(trial["answer"], trial.get("speaker"))


def length(trial: Trial) -> list[float]:
    """Numbers of letters, words, texts and fixations."""
    answered = judged_texts(trial)
    text = " ".join(answered)
    return [len(text), count_words(text), len(answered), len(trial["answer"].get("fixations") or ())]


def punctuation(trial: Trial) -> list[float]:
    """Numbers of capitals, punctuation marks, digits, and letters beyond ASCII."""
    text = " ".join(judged_texts(trial))
    foreign = sum(not letter.isascii() for letter in text)
    marks = sum(letter in string.punctuation for letter in text)
    return [sum(map(str.isupper, text)), marks, sum(map(str.isdigit, text)), foreign]


def delays(trial: Trial) -> list[float]:
    """Mean, least and largest seconds that the judged speaker's messages took, of a pair both speakers'; zeros where no
    delay is shown."""
    seconds = shown_delays(trial) or [0.0]
    return [sum(seconds) / len(seconds), min(seconds), max(seconds)]


def shown_delays(trial: Trial) -> list[float]:
    """The delays in seconds that are shown beside the judged messages; of a pair, beside all of its first
    conversation."""
    speaker = trial.get("speaker")
    messages = trial["answer"].get("messages") or ()
    judged = [message for message in messages if speaker is None or message["speaker"] == speaker]
    return [message["delay_s"] for message in judged if message.get("delay_s") is not None]


def has_delays(trial: Trial) -> bool:
    """Whether a delay is shown beside any message, whoever wrote it."""
    answers = [trial["answer"], trial.get("beside") or {}]
    return any(message.get("delay_s") is not None for answer in answers for message in answer.get("messages") or ())


def frequencies(trials: Sequence[Trial]) -> list[list[float]]:
    """The mean and least Zipf frequency of the words, and how many other trials have the same answer."""
    from wordfreq import zipf_frequency
    from wordfreq.tokens import tokenize

    answers = [orjson.dumps(judged_texts(trial)) for trial in trials]
    number = Counter(answers)
    rows = []
    for trial, answer in zip(trials, answers, strict=True):
        words = tokenize(" ".join(judged_texts(trial)), "en")
        zipf = [zipf_frequency(word, "en") for word in words] or [0.0]
        rows.append([sum(zipf) / len(zipf), min(zipf), float(number[answer] - 1)])
    return rows


def metadata(folder: Path, trial: Trial) -> list[float]:
    """The id, which is the place, files and sizes of the trial."""
    number = int("".join(filter(str.isdigit, trial["id"])))
    image = folder / trial["image"] if "image" in trial else None
    times = {(folder / trial[name]).stat().st_mtime for name in ("image", "clip") if name in trial}
    return [
        number,
        number % 2,
        int("".join(filter(str.isdigit, trial["shown"]))),
        image.stat().st_size if image else 0.0,
        sum(len(str(value)) for name, value in trial.items() if name not in ("answer", "beside", "clip")),
        len(trial),
        len(trial.get("clip", "")),
        max(times, default=0.0),
    ]
