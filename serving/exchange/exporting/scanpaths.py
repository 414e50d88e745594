"""Scanpaths in the forms of pysaliency and COCO-Search18, in pixels of their images. ``docs/export.md`` describes both.

For pysaliency 0.2.22 they are HDF5 of ``FixationTrains`` 1.2 and ``FileStimuli``. In COCO-Search18's form ``name`` is
the image's file name, or its path where two images share a file name; ``T`` is in milliseconds.

Fixations outside the image stay, and are counted. pysaliency's measures stop at one, or take the image's other side.
"""

import importlib
import math
import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from agents.errors import UnavailableError
from agents.frames import Point
from serving.exchange.exporting.export import Export, misfit
from serving.exchange.exporting.images import ScanpathImages, frame_of
from serving.runs.path_frames import MALFORMED
from serving.sets.targets import presence, target_name

TASK = "attention_prediction"
TEXT_ATTRIBUTES = ("agent", "kind", "stimulus", "task", "mode")


def write_pysaliency(export: Export) -> dict[str, Any]:
    """Write the scanpaths to OUT, and names, files and sizes of their images to ``OUT.stimuli.hdf5``.

    Returns notes for the side-car: who the numbered subjects are, and the images. Raises UnavailableError without h5py,
    InputError for paths that cannot be placed on their image.
    """
    try:
        hdf5 = importlib.import_module("h5py")
    except ImportError as error:
        raise UnavailableError(
            f"pysaliency reads HDF5, and h5py, which writes it, cannot be imported ({error}): "
            "pip install 'turinglike[pysaliency]'"
        ) from None
    subjects: dict[tuple[str, int], int] = {}
    images = ScanpathImages(export.run)
    paths: list[dict[str, Any]] = []
    for record in scanpaths(export, imported=True):
        row = export.stimuli.get(record) or {}
        try:
            if not record["answer"]["fixations"]:
                export.leave_out(record, "without fixations")
                continue
            image = str(row.get("image") or record["stimulus"])  # of an import to none of the set's, its own name
            path = _path(record, row, images.fixations(image, record))
        except MALFORMED as error:
            raise misfit(record, "answer", f"not a scanpath: {error!r}") from None
        subject = subjects.setdefault((record["agent"], record["sample"]), len(subjects))
        paths.append({**path, "image": image, "subject": subject})
    images.refuse()
    if not paths:
        return {}
    shown = [row.get("image") for row in export.run.stimuli() if row.get("task") == TASK]
    # what only imports name at last
    names = list(dict.fromkeys([*(name for name in shown if name in images.sizes), *images.sizes]))
    export.open().write(_trains_file(hdf5, paths, {name: number for number, name in enumerate(names)}))
    files = [os.path.relpath(export.run.image_path(name), export.out.parent.resolve()) for name in names]
    export.open("stimuli.hdf5").write(_stimuli_file(hdf5, names, files, [images.shape(name) for name in names]))
    sizes = {name: images.sizes[name] for name in names}
    return {
        "subjects": {str(number): {"agent": name, "sample": sample} for (name, sample), number in subjects.items()},
        "images": [{"name": name, "width": width, "height": height} for name, (width, height) in sizes.items()],
        "sizes_not_from_the_image": images.unread,
        **images.notes(),
    }


def scanpaths(export: Export, *, imported: bool) -> Iterator[dict[str, Any]]:
    """The records of scanpaths: the machines', then, if ``imported``, those of imports."""
    begun = export.run.agents()
    names = [name for name in export.machines() if name in begun]
    if imported:
        names += export.run.imports()
    for name in names:
        yield from export.records(name, answers_to=TASK)


def _path(record: dict[str, Any], row: dict[str, Any], points: list[Point]) -> dict[str, Any]:
    answer = record["answer"]
    number = len(answer["fixations"])
    durations = answer["durations_ms"]
    if durations is None:
        durations = [math.nan] * number
    elif len(durations) != number:
        raise ValueError(f"{len(durations)} durations of {number} fixations")
    return {
        "xs": [x for x, _ in points],
        "ys": [y for _, y in points],
        "durations": [time / 1000 for time in durations],
        "frame": frame_of(answer),
        "fit": answer.get("fit") or "",
        "agent": record["agent"],
        "kind": record["kind"],
        "sample": record["sample"],
        "stimulus": row.get("id", record["stimulus"]),
        "task": target_name(row),
        "mode": row.get("mode", "free"),
        "target_present": presence(row),
        "target_bbox": [float(side) for side in row.get("target_box") or [math.nan] * 4],
    }


def _trains_file(hdf5: Any, paths: list[dict[str, Any]], numbers: dict[str, int]) -> bytes:
    longest = max(len(path["xs"]) for path in paths)

    def column(name: str) -> NDArray[Any]:
        return np.array([path[name] for path in paths])

    def padded(name: str) -> NDArray[np.float64]:
        return np.array([path[name] + [math.nan] * (longest - len(path[name])) for path in paths])

    attributes: dict[str, NDArray[Any]] = {
        name: np.array([path[name].encode() for path in paths]) for name in TEXT_ATTRIBUTES
    }
    attributes |= {name: column(name) for name in ("sample", "target_present", "frame", "target_bbox")}
    if np.isnan(attributes["target_bbox"]).all():
        del attributes["target_bbox"]
    if any(path["fit"] for path in paths):
        attributes["fit"] = np.array([path["fit"].encode() for path in paths])
    xs = padded("xs")
    durations = padded("durations")
    tables = {"train_xs": xs, "train_ys": padded("ys"), "train_ts": np.where(np.isnan(xs), np.nan, np.arange(longest))}
    per_fixation = {} if np.isnan(durations).all() else {"durations": durations}
    with hdf5.File("trains", "w", driver="core", backing_store=False) as file:
        _head(file, "FixationTrains", "1.2", [])
        file.attrs["scanpath_attribute_mapping"] = np.bytes_(orjson.dumps({"durations": "duration"}))
        for name, values in tables.items():
            file.create_dataset(name, data=values, compression="gzip")
        file["train_ns"] = np.array([numbers[path["image"]] for path in paths])
        file["train_subjects"] = column("subject")
        for group, members in (("scanpath_attributes", attributes), ("scanpath_fixation_attributes", per_fixation)):
            made = file.create_group(group)
            made.attrs["__attributes__"] = np.bytes_(orjson.dumps(sorted(members)))
            for name, values in members.items():
                made[name] = values
        file.flush()
        return bytes(file.id.get_file_image())


def _stimuli_file(hdf5: Any, names: list[str], files: list[str], of_images: list[list[int]]) -> bytes:
    with hdf5.File("stimuli", "w", driver="core", backing_store=False) as file:
        _head(file, "FileStimuli", "2.1", ["name"])
        file.attrs["size"] = len(names)
        for name, texts in (("filenames", files), ("name", names)):
            file.create_dataset(name, data=texts, dtype=hdf5.string_dtype())
        shapes = file.create_dataset("shapes", (len(names),), dtype=hdf5.vlen_dtype(np.dtype("int64")))
        for number, shape in enumerate(of_images):
            shapes[number] = np.array(shape)
        file.flush()
        return bytes(file.id.get_file_image())


def _head(file: Any, kind: str, version: str, attributes: list[str]) -> None:
    file.attrs["type"] = np.bytes_(kind)
    file.attrs["version"] = np.bytes_(version)
    file.attrs["__attributes__"] = np.bytes_(orjson.dumps(attributes))


# COCO-Search18


def write_coco_search18(export: Export) -> dict[str, Any]:
    """Write the machines' scanpaths as a JSON list of COCO-Search18's entries.

    Returns notes for the side-car: who the numbered subjects are, and the frame of each image and subject. Raises
    InputError for paths that cannot be placed on their image.
    """
    files = {str(row.get("image")) for row in export.run.stimuli() if row.get("task") == TASK}
    are_paths = len({PurePosixPath(image).name for image in files}) < len(files)
    subjects: dict[tuple[str, int], int] = {}
    frames: dict[str, dict[str, list[int]]] = {}
    images = ScanpathImages(export.run)
    export.leave_out_imports((TASK,))
    items = []
    for record in scanpaths(export, imported=False):
        row = export.stimuli.get(record) or {}
        image = str(row.get("image") or record["stimulus"])
        name = image if are_paths else PurePosixPath(image).name
        subject = subjects.setdefault((record["agent"], record["sample"]), len(subjects) + 1)
        try:
            points, frame = images.fixations_in_a_frame(image, record)
            items.append({"name": name, "subject": subject, **_item(record, row, points)})
        except MALFORMED as error:
            raise misfit(record, "answer", f"not a scanpath: {error!r}") from None
        frames.setdefault(name, {})[str(subject)] = list(frame)
    images.refuse()
    export.open().write(orjson.dumps(items, option=orjson.OPT_APPEND_NEWLINE))
    names = {str(number): {"agent": name, "sample": sample} for (name, sample), number in subjects.items()}
    return {"subjects": names, "frames": frames, "sizes_not_from_the_image": images.unread, **images.notes()}


def _item(record: dict[str, Any], row: dict[str, Any], points: list[Point]) -> dict[str, Any]:
    answer = record["answer"]
    is_present = presence(row)
    condition = None
    if not math.isnan(is_present):
        condition = "present" if is_present else "absent"
    item = {
        "task": target_name(row),
        "condition": condition,
        "X": [x for x, _ in points],
        "Y": [y for _, y in points],
        "T": answer["durations_ms"],
        "length": len(points),
    }
    if row.get("mode", "free") == "free":
        return item | {"condition": "freeview"}
    box = row.get("target_box")
    was_found = answer["found"]
    lands = None
    if box is not None:
        left, top, width, height = box
        lands = any(left <= x < left + width and top <= y < top + height for x, y in points)
    return item | {
        "bbox": box if is_present == 1 else None,
        "fixOnTarget": False if is_present == 0 else lands,
        "correct": int(was_found) if is_present == 1 and was_found is not None else None,
    }
