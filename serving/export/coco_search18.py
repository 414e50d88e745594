"""Scanpaths in COCO-Search18's form (fields in ``docs/export.md``).

``name`` is the image's file name, or its path where two images share a file name; ``T`` is in milliseconds."""

from __future__ import annotations

import math
from pathlib import PurePosixPath
from typing import Any

import orjson

from serving.export.exporting import MALFORMED, Export, Record, Row, misfit
from serving.export.pysaliency import TASK, presence, scanpaths, target_name


def write_coco_search18(chosen: Export) -> dict[str, Any]:
    """Write machines' scanpaths; returns subjects and frames for the side-car."""
    images = {str(row.get("image")) for row in chosen.run.stimuli() if row.get("task") == TASK}
    are_paths = len({PurePosixPath(image).name for image in images}) < len(images)
    subjects: dict[tuple[str, int], int] = {}
    frames: dict[str, dict[str, list[int]]] = {}
    items = []
    for record in scanpaths(chosen, imported=False):
        row = chosen.run.stimulus_of(record) or {}
        image = str(row.get("image") or record["stimulus"])
        name = image if are_paths else PurePosixPath(image).name
        subject = subjects.setdefault((record["agent"], record["sample"]), len(subjects) + 1)
        try:
            items.append({"name": name, "subject": subject, **_item(record, row)})
            frames.setdefault(name, {})[str(subject)] = record["answer"]["frame"]
        except MALFORMED as error:
            raise misfit(record, "answer", f"not a scanpath: {error!r}") from None
    chosen.open().write(orjson.dumps(items, option=orjson.OPT_APPEND_NEWLINE))
    about = {str(number): {"agent": name, "sample": sample} for (name, sample), number in subjects.items()}
    return {"subjects": about, "frames": frames}


def _item(record: Record, row: Row) -> dict[str, Any]:
    answer, there = record["answer"], presence(row)
    item = {
        "task": target_name(row),
        "condition": None if math.isnan(there) else "present" if there else "absent",
        "X": [x for x, _ in answer["fixations"]],
        "Y": [y for _, y in answer["fixations"]],
        "T": answer["durations_ms"],
        "length": len(answer["fixations"]),
    }
    if row.get("mode", "free") == "free":
        return item | {"condition": "freeview"}
    box, was_found = row.get("target_box"), answer["found"]
    lands = None if box is None else any(_is_inside(x, y, *box) for x, y in answer["fixations"])
    return item | {
        "bbox": box if there == 1 else None,
        "fixOnTarget": False if there == 0 else lands,
        "correct": int(was_found) if there == 1 and was_found is not None else None,
    }


def _is_inside(x: float, y: float, left: float, top: float, width: float, height: float) -> bool:
    return left <= x < left + width and top <= y < top + height
