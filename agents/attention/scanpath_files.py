"""Scanpaths from files, for catch trials and numbers of fixations."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from agents.errors import UnavailableError
from agents.frames import Fit, outside, to_picture

FRAME = (1280, 1024)  # of the published scanpaths, whose file does not say so
OTHER_IMAGE = "other image"  # the `selection` of a scanpath that was made for another picture
Whose = Literal["human", "machine"]


@dataclass(frozen=True, slots=True)
class Scanpath:
    """A path of fixations over a picture, as a file has it."""

    stimulus: str
    """The id of the stimulus, or the name of its picture."""
    fixations: list[list[float]]
    """[x, y] of each fixation, in pixels of the frame."""
    frame: tuple[int, int]
    """(width, height) in pixels."""
    whose: Whose
    """A person's or a machine's."""
    fit: Fit | None = None
    """How the picture filled the frame (:mod:`agents.frames`); None: it is not said."""

    def on_another(self, size: tuple[int, int]) -> list[list[float]] | None:
        """The fixations in pixels of another picture of ``size``, None if they leave it by its shape. The size of their
        own picture is not known. Where it filled the frame, the other one is to fill it, too. Where it had bars, the
        other one takes its place on the screen, with the bars that it needs."""
        if self.fit != "bars":
            return to_picture(self.fixations, self.frame, "stretch", size)
        points = to_picture(self.fixations, self.frame, "bars", size)
        return None if outside(points, size) > outside(self.fixations, self.frame) else points


def read_scanpaths(file: Path) -> list[Scanpath]:
    """The scanpaths with a fixation: of records (people's alone if any), or, in frames of 1280 x 1024, of a submission
    (a machine's) or the published ground truth (people's). Raises UnavailableError."""
    try:
        text = file.read_text(encoding="utf-8")
        paths = list(_records(text) if file.suffix == ".jsonl" else _published(json.loads(text)))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _unreadable(file, error) from None
    if not any(path.fixations for path in paths):
        raise UnavailableError(f"{file}: holds no scanpath")
    return [path for path in paths if path.fixations]


@lru_cache(maxsize=8)
def read_lengths(path: Path) -> tuple[int, ...]:
    """Numbers of fixations: scanpaths', COCO-Search18's list, or a number a line. Raises UnavailableError."""
    try:
        if path.suffix not in (".json", ".jsonl"):
            lengths = [int(line) for line in path.read_text(encoding="utf-8").split()]
        elif path.suffix == ".json" and isinstance(content := json.loads(path.read_text(encoding="utf-8")), list):
            lengths = [len(entry["X"]) for entry in content]
        else:
            lengths = [len(scanpath.fixations) for scanpath in read_scanpaths(path)]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise _unreadable(path, error) from None
    if not lengths or min(lengths) < 1:
        raise UnavailableError(f"{path}: a number of fixations is at least 1, and there must be one")
    return tuple(lengths)


def _records(text: str) -> Iterator[Scanpath]:
    rows = [row for row in map(json.loads, filter(None, text.splitlines())) if row["task"] == "attention_prediction"]
    people = [row for row in rows if row.get("kind") == "human"]
    for row in people or rows:
        if row["status"] == "ok":
            answer = row["answer"]
            width, height = answer["frame"]
            whose: Whose = "human" if people else "machine"
            frame = (int(width), int(height))
            yield _scanpath(row["stimulus"], answer["fixations"], frame, whose, answer.get("fit"))


def _published(content: Any) -> Iterator[Scanpath]:
    for name, answers in content.items():
        rows = answers if answers and isinstance(answers[0], dict) else [{"response": answers}]
        for row in rows:
            if row.get("groundtruth", "human") == "human":
                yield _scanpath(name, row["response"], FRAME, "human" if "groundtruth" in row else "machine")


def _scanpath(name: str, fixations: Any, frame: tuple[int, int], whose: Whose, fit: Fit | None = None) -> Scanpath:
    if min(frame) < 1:
        raise ValueError(f"{name}: a frame of {frame[0]} x {frame[1]}")
    return Scanpath(str(name), [[float(x), float(y)] for x, y in fixations], frame, whose, fit)


def _unreadable(path: Path, error: Exception) -> UnavailableError:
    return UnavailableError(f"{path}: cannot be read as scanpaths: {type(error).__name__}: {error}")
