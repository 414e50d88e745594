"""Scanpaths: which records they are of, what a stimulus says of them, and the format of COCO-Search18.

A list of ``{name, subject, task, condition, X, Y, T, length}``, one per scanpath:

- ``name`` is the image's file name, or its whole path where two images of one target share a file name;
- ``subject`` counts from 1, one for each agent and sample; the side-car says which is which;
- ``task`` is the stimulus's ``meta.target``, else the name of its target image without its ending, else "none";
- ``condition`` is "freeview", "present" or "absent", or null where a search stimulus does not say;
- ``X``, ``Y`` are in pixels of the agent's frame, origin top left; the side-car says each image's frame, and which
  subjects have another;
- ``T`` is in milliseconds, and null where an agent does not model durations. ``length`` is the number of fixations.

In search also ``bbox`` [x, y, width, height], the target's box in pixels of the image (null without one);
``fixOnTarget``, whether a fixation lies in that box (false where the target is absent, null where there is no box); and
``correct``, 1 where the agent found a target that is there, else 0 (null where it does not say, and where the target is
absent: an agent does not answer "it is not there"). The data set's ``split`` and ``RT`` are not ours to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import orjson

from serving.export.exporting import MALFORMED, Export, Record, Row, misfit

TASK = "attention_prediction"


def scanpaths(chosen: Export, *, imported: bool) -> Iterator[Record]:
    """The selected scanpaths: of the agents in the order of the run, then those that were imported, if asked for."""
    begun = chosen.run.agents()
    names = [name for name in chosen.machines() if name in begun]
    for name in names + (chosen.run.imports() if imported else []):
        yield from chosen.records(name, answers_to=TASK)


def target_name(row: Row) -> str:
    """What is searched for, in a word, or "none"."""
    named = (row.get("meta") or {}).get("target")
    if isinstance(named, str):
        return named
    image = row.get("target_image")
    return PurePosixPath(image).stem if isinstance(image, str) else "none"


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


def write_coco_search18(chosen: Export) -> dict[str, Any]:
    """Write the selected scanpaths of machines; returns notes for the side-car: subjects and frames."""
    file = chosen.open()
    whole_names = _shared_file_names(chosen)
    subjects: dict[tuple[str, int], int] = {}
    frames: dict[str, list[int]] = {}
    others: list[dict[str, Any]] = []
    separator = b"["
    for record in scanpaths(chosen, imported=False):
        row = chosen.run.stimulus_of(record) or {}
        subject = subjects.setdefault((record["agent"], record["sample"]), len(subjects) + 1)
        try:
            item, frame = _coco_item(record, row, subject, whole_names), record["answer"]["frame"]
        except MALFORMED as error:
            raise misfit(record, "answer", f"not a scanpath: {error!r}") from None
        if frames.setdefault(item["name"], frame) != frame:
            others.append({"name": item["name"], "subject": subject, "frame": frame})
        file.write(separator + orjson.dumps(item))
        separator = b",\n"
    file.write(b"]\n")
    return {"subjects": numbered(subjects), "frames": frames, "other_frames": others}


def _coco_item(record: Record, row: Row, subject: int, whole_names: bool) -> dict[str, Any]:
    answer, image = record["answer"], image_of(record, row)
    condition = condition_of(row)
    item = {
        "name": image if whole_names else PurePosixPath(image).name,
        "subject": subject,
        "task": target_name(row),
        "condition": condition,
        "X": [point[0] for point in answer["fixations"]],
        "Y": [point[1] for point in answer["fixations"]],
        "T": answer["durations_ms"],
        "length": len(answer["fixations"]),
    }
    if condition != "freeview":
        present, box, was_found = condition == "present", row.get("target_box"), answer["found"]
        lands = None if box is None else any(_inside(point, box) for point in answer["fixations"])
        item["bbox"] = box if present else None
        item["fixOnTarget"] = False if condition == "absent" else lands
        item["correct"] = int(was_found) if present and was_found is not None else None
    return item


def _inside(point: list[float], box: list[float]) -> bool:
    left, top, width, height = box
    return left <= point[0] < left + width and top <= point[1] < top + height


def _shared_file_names(chosen: Export) -> bool:
    """Whether two different images have the same file name."""
    seen: dict[str, set[str]] = {}
    for row in chosen.run.stimuli():
        image = row.get("image")
        if row.get("task") == TASK and isinstance(image, str):
            seen.setdefault(PurePosixPath(image).name, set()).add(image)
    return any(len(images) > 1 for images in seen.values())
