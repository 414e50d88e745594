"""Scanpaths in two forms of others (``docs/export.md``), in pixels of their images.

For pysaliency 0.2.22: HDF5 of ``FixationTrains`` 1.2 and ``FileStimuli``. In COCO-Search18's form: ``name`` is the
image's file name, or its path where two images share a file name; ``T`` is in milliseconds.

Fixations outside the image stay, and are counted: pysaliency's measures stop at one, or take the image's other side."""

import importlib
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from agents.errors import UnavailableError
from agents.frames import Point
from serving.exchange.export_images import ScanpathImages, frame_of
from serving.exchange.exporting import MALFORMED, Export, Record, Row, misfit

TASK = "attention_prediction"
TEXTS = ("agent", "kind", "stimulus", "task", "mode")


def write_pysaliency(chosen: Export) -> dict[str, Any]:
    """Write scanpaths and images; returns notes for the side-car. Raises UnavailableError."""
    try:
        hdf5 = importlib.import_module("h5py")
    except ImportError as error:
        raise UnavailableError(
            f"pysaliency reads HDF5, and h5py, which writes it, cannot be imported ({error}): "
            "pip install 'turinglike[pysaliency]'"
        ) from None
    subjects: dict[tuple[str, int], int] = {}
    images = ScanpathImages(chosen.run)
    paths: list[dict[str, Any]] = []
    for record in scanpaths(chosen, imported=True):
        row = chosen.stimuli.get(record) or {}
        try:
            if not record["answer"]["fixations"]:
                chosen.leave_out(record, "without fixations")
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
    shown = [row.get("image") for row in chosen.run.stimuli() if row.get("task") == TASK]
    # what only imports name at last
    names = list(dict.fromkeys([*(name for name in shown if name in images.sizes), *images.sizes]))
    chosen.open().write(_trains_file(hdf5, paths, {name: number for number, name in enumerate(names)}))
    files = [os.path.relpath(chosen.run.image_path(name), chosen.out.parent.resolve()) for name in names]
    chosen.open("stimuli.hdf5").write(_stimuli_file(hdf5, names, files, [images.shape(name) for name in names]))
    sizes = {name: images.sizes[name] for name in names}
    return {
        "subjects": {str(number): {"agent": name, "sample": sample} for (name, sample), number in subjects.items()},
        "images": [{"name": name, "width": width, "height": height} for name, (width, height) in sizes.items()],
        "sizes_not_from_the_image": images.unread,
        **images.notes(),
    }


def scanpaths(chosen: Export, *, imported: bool) -> Iterator[Record]:
    """The selected scanpaths, agents before imports."""
    begun = chosen.run.agents()
    machines = [name for name in chosen.machines() if name in begun]
    for name in machines + (chosen.run.imports() if imported else []):
        yield from chosen.records(name, answers_to=TASK)


def target_name(row: Row) -> str:
    """The search target in a word, or "none"."""
    named = (row.get("meta") or {}).get("target")
    image = row.get("target_image")
    return named if isinstance(named, str) else PurePosixPath(image).stem if isinstance(image, str) else "none"


def presence(row: Mapping[str, Any]) -> float:
    """1 or 0 for a target's known presence, else NaN."""
    if row.get("mode", "free") == "free":
        return math.nan
    if (present := row.get("target_present")) is not None:
        return float(present)
    return 1.0 if row.get("target_box") or row.get("target_mask") else math.nan


def _path(record: Record, row: Row, points: list[Point]) -> dict[str, Any]:
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

    attributes: dict[str, NDArray[Any]] = {name: np.array([path[name].encode() for path in paths]) for name in TEXTS}
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


def write_coco_search18(chosen: Export) -> dict[str, Any]:
    """Write machines' scanpaths; returns subjects and frames for the side-car."""
    files = {str(row.get("image")) for row in chosen.run.stimuli() if row.get("task") == TASK}
    are_paths = len({PurePosixPath(image).name for image in files}) < len(files)
    subjects: dict[tuple[str, int], int] = {}
    frames: dict[str, dict[str, list[int]]] = {}
    images = ScanpathImages(chosen.run)
    chosen.leave_out_imports((TASK,))
    items = []
    for record in scanpaths(chosen, imported=False):
        row = chosen.stimuli.get(record) or {}
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
    chosen.open().write(orjson.dumps(items, option=orjson.OPT_APPEND_NEWLINE))
    about = {str(number): {"agent": name, "sample": sample} for (name, sample), number in subjects.items()}
    return {"subjects": about, "frames": frames, "sizes_not_from_the_image": images.unread, **images.notes()}


def _item(record: Record, row: Row, points: list[Point]) -> dict[str, Any]:
    answer = record["answer"]
    there = presence(row)
    item = {
        "task": target_name(row),
        "condition": None if math.isnan(there) else "present" if there else "absent",
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
        "bbox": box if there == 1 else None,
        "fixOnTarget": False if there == 0 else lands,
        "correct": int(was_found) if there == 1 and was_found is not None else None,
    }
