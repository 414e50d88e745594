"""Scanpaths as the data set COCO-Search18 has them.

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

from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import orjson

from serving.export.registry import FileFormat, FormatOptions
from serving.export.scanpaths import TASK, condition_of, image_of, numbered, scanpaths, target_name
from serving.export.selection import MALFORMED, Record, Row, Selection, misfit
from serving.runs.stimulus_lookup import StimulusLookup


def write_coco_search18(
    chosen: Selection, files: list[BinaryIO], options: FormatOptions, folder: Path
) -> dict[str, Any]:
    """Write the selected scanpaths of machines; returns notes for the side-car: subjects and frames."""
    whole_names = _shared_file_names(chosen)
    subjects: dict[tuple[str, int], int] = {}
    frames: dict[str, list[int]] = {}
    others: list[dict[str, Any]] = []
    separator = b"["
    with StimulusLookup(chosen.folder) as stimuli:
        for record in scanpaths(chosen, imported=False):
            row = stimuli.get(record) or {}
            subject = subjects.setdefault((record["agent"], record["sample"]), len(subjects) + 1)
            try:
                item, frame = _coco_item(record, row, subject, whole_names), record["answer"]["frame"]
            except MALFORMED as error:
                raise misfit(record, "answer", f"not a scanpath: {error!r}") from None
            if frames.setdefault(item["name"], frame) != frame:
                others.append({"name": item["name"], "subject": subject, "frame": frame})
            files[0].write(separator + orjson.dumps(item))
            separator = b",\n"
    files[0].write(b"]\n")
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
        present, box, found = condition == "present", row.get("target_box"), answer["found"]
        lands = None if box is None else any(_inside(point, box) for point in answer["fixations"])
        item["bbox"] = box if present else None
        item["fixOnTarget"] = False if condition == "absent" else lands
        item["correct"] = int(found) if present and found is not None else None
    return item


def _inside(point: list[float], box: list[float]) -> bool:
    left, top, width, height = box
    return left <= point[0] < left + width and top <= point[1] < top + height


def _shared_file_names(chosen: Selection) -> bool:
    """Whether two different images have the same file name."""
    seen: dict[str, set[str]] = {}
    for _, row in chosen.folder.stimuli():
        image = row.get("image")
        if row.get("task") == TASK and isinstance(image, str):
            seen.setdefault(PurePosixPath(image).name, set()).add(image)
    return any(len(images) > 1 for images in seen.values())


COCO_SEARCH18 = FileFormat(write_coco_search18, with_stimuli=True)
