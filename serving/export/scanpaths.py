"""What the exports of scanpaths share: which records they are of, and what a stimulus says of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from agents.stimuli import Task
from serving.export.selection import Record, Row, Selection

TASK: Task = "attention_prediction"


def scanpaths(chosen: Selection, *, imported: bool) -> Iterator[Record]:
    """The selected scanpaths: of the agents in the order of the run, then those that were imported, if asked for."""
    begun = chosen.folder.agents()
    for name in [name for name in chosen.machines() if name in begun]:
        yield from chosen.records(name, answers_to=TASK)
    for name in chosen.folder.imports() if imported else ():
        yield from chosen.records(name, answers_to=TASK)


def target_name(row: Row) -> str:
    """What is searched for, in a word, or "none"."""
    named = (row.get("meta") or {}).get("target")
    if isinstance(named, str):
        return named
    image = row.get("target_image")
    return PurePosixPath(image).stem if isinstance(image, str) else "none"


def on_image(answer: dict[str, Any], size: tuple[int, int]) -> list[tuple[float, float]]:
    """An answer's fixations (x, y) in pixels of an image of ``size`` (width, height) instead of its own frame."""
    width, height = answer["frame"]
    if width <= 0 or height <= 0:
        raise ValueError(f"a frame of {width} x {height}")
    if (width, height) == size:
        return [(float(x), float(y)) for x, y in answer["fixations"]]
    return [(x * size[0] / width, y * size[1] / height) for x, y in answer["fixations"]]


def image_of(record: Record, row: Row) -> str:
    """What the set calls the image; where an imported answer is to none of its stimuli, what the import calls it."""
    return str(row.get("image") or record["stimulus"])


def condition_of(row: Row) -> str | None:
    if row.get("mode", "free") == "free":
        return "freeview"
    present = row.get("target_present")
    if present is None:
        return "present" if row.get("target_box") or row.get("target_mask") else None
    return "present" if present else "absent"


def numbered(subjects: dict[tuple[str, int], int]) -> dict[str, Any]:
    return {str(number): {"agent": name, "sample": sample} for (name, sample), number in subjects.items()}
