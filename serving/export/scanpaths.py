"""Scanpaths as other programs of the field read them: COCO-Search18's JSON, and HDF5 for pysaliency.

**coco-search18.** A list of ``{name, subject, task, condition, X, Y, T, length}``, one per scanpath:

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

**pysaliency.** Two HDF5 files, both for ``pysaliency.read_hdf5``: the scanpaths as ``FixationTrains`` (version 1.2 of
that form, which release 0.2.22 reads and the development version too), and beside them the images as ``FileStimuli``,
by paths relative to the file. Imported scanpaths of people and machines are among them.

- A stimulus is an image; its ``shape`` is height and width. ``n`` is its place in the order of the set.
- ``x``, ``y`` are in pixels of the image: paths of another frame (imported ones: 1280 x 1024) are scaled to it. The
  size is that in the image's header, or, if it cannot be read, the frame of the agents' answers.
- ``subjects`` count from 0, one for each agent and sample; the side-car says which is which.
- ``t`` is the number of the fixation in its path, from 0: pysaliency orders by it, so it must not be NaN, and times are
  not modelled. Its own loader of COCO-Search18 does the same. ``duration``, in seconds, is there if any agent models
  durations, and NaN for those that do not.
- Attributes of a path: ``agent``, ``kind``, ``sample``, ``stimulus`` (its id), ``task`` (the target, as above),
  ``mode``, ``target_present`` (1, 0, or NaN), ``target_bbox`` (in pixels of the image, or NaN; only if there is one at
  all) and ``frame`` (width and height of the agent's own frame). Text is UTF-8 bytes, as HDF5 and numpy have it.
"""

from __future__ import annotations

import importlib
import math
import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from agents.errors import ImageError, UnavailableError
from agents.images import Image
from serving.export.registry import MALFORMED, Selection, misfit
from serving.runs.display_text import count
from serving.runs.reader import RunFolder
from serving.runs.stimulus_lookup import Lookup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TASK = "attention_prediction"
Record = dict[str, Any]
Row = dict[str, Any]


def write_coco_search18(chosen: Selection, file: BinaryIO) -> dict[str, Any]:
    """Write the selected scanpaths of machines; returns notes for the side-car: subjects and frames."""
    whole_names = _shared_file_names(chosen)
    subjects: dict[tuple[str, int], int] = {}
    frames: dict[str, list[int]] = {}
    others: list[dict[str, Any]] = []
    separator = b"["
    with Lookup(chosen.folder) as stimuli:
        for record in scanpaths(chosen, imported=False):
            row = stimuli.get(TASK, record["stimulus"]) or {}
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
    return {"subjects": _told(subjects), "frames": frames, "other_frames": others}


def scanpaths(chosen: Selection, *, imported: bool) -> Iterator[Record]:
    """The selected scanpaths: of the agents in the order of the run, then those that were imported, if asked for."""
    begun = chosen.folder.agents()
    for name in [name for name in chosen.machines() if name in begun]:
        yield from chosen.records(name, answers_to=TASK)
    for name in chosen.folder.imports() if imported else ():
        yield from chosen.records(name, answers_to=TASK)


def find_row(record: Record, by_id: Lookup, by_benchmark: Lookup) -> Row | None:
    """The stimulus that a record answers; an imported one knows it by ``benchmark_id`` if not by its id."""
    row = by_id.get(TASK, record["stimulus"])
    if row is None and record["kind"] in ("human", "published"):
        row = by_benchmark.get(TASK, record["stimulus"])
    return row


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


def _image(record: Record, row: Row) -> str:
    """What the set calls the image; where an imported answer is to none of its stimuli, what the import calls it."""
    return str(row.get("image") or record["stimulus"])


def _told(subjects: dict[tuple[str, int], int]) -> dict[str, Any]:
    return {str(number): {"agent": name, "sample": sample} for (name, sample), number in subjects.items()}


def _coco_item(record: Record, row: Row, subject: int, whole_names: bool) -> dict[str, Any]:
    answer, image = record["answer"], _image(record, row)
    condition = _condition(row)
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


def _condition(row: Row) -> str | None:
    if row.get("mode", "free") == "free":
        return "freeview"
    present = row.get("target_present")
    if present is None:
        return "present" if row.get("target_box") or row.get("target_mask") else None
    return "present" if present else "absent"


def _shared_file_names(chosen: Selection) -> bool:
    """Whether two different images have the same file name."""
    seen: dict[str, set[str]] = {}
    for _, row in chosen.folder.stimuli():
        image = row.get("image")
        if row.get("task") == TASK and isinstance(image, str):
            seen.setdefault(PurePosixPath(image).name, set()).add(image)
    return any(len(images) > 1 for images in seen.values())


# --- pysaliency ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Trains:
    """Scanpaths, gathered: the coordinates of all fixations one after another, and one entry per path otherwise."""

    images: list[str] = field(default_factory=list)
    subjects: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    frames: list[tuple[int, int]] = field(default_factory=list)
    texts: dict[str, list[bytes]] = field(
        default_factory=lambda: {name: [] for name in ("agent", "kind", "stimulus", "task", "mode")}
    )
    samples: list[int] = field(default_factory=list)
    present: list[float] = field(default_factory=list)
    boxes: list[list[float]] = field(default_factory=list)
    xs: array[float] = field(default_factory=lambda: array("d"))
    ys: array[float] = field(default_factory=lambda: array("d"))
    seconds: array[float] = field(default_factory=lambda: array("d"))


def h5py() -> Any:
    """The module h5py. Raises UnavailableError if it is not installed."""
    try:
        return importlib.import_module("h5py")
    except ImportError as error:
        raise UnavailableError(
            f"pysaliency reads HDF5, and h5py, which writes it, cannot be imported ({error}): "
            "pip install 'turinglike[pysaliency]'"
        ) from None


def write_pysaliency(chosen: Selection, file: BinaryIO, stimuli: BinaryIO, place: Path) -> dict[str, Any]:
    """Write the selected scanpaths to ``file`` and their images to ``stimuli``, which will stand in the folder
    ``place``; returns notes for the side-car: subjects and images. Raises UnavailableError without h5py."""
    hdf5 = h5py()
    subjects: dict[tuple[str, int], int] = {}
    trains, sizes, unread = _gather(chosen, subjects)
    if not trains.images:
        return {}
    order = _in_order(chosen.folder, sizes)
    file.write(_trains_file(hdf5, trains, order))
    paths = [os.path.relpath(chosen.folder.image_path(name), place.resolve()) for name in order]
    stimuli.write(_stimuli_file(hdf5, list(order), paths, [sizes[name] for name in order]))
    scaled = sum(frame != sizes[image] for frame, image in zip(trains.frames, trains.images, strict=True))
    remarks = [f"scaled from another frame to their image: {count(scaled, 'scanpath')}"] if scaled else []
    if unread:
        remarks.append(f"{count(len(unread), 'image')} not readable: in their place the frame of the answers counts")
    about = [{"name": name, "width": sizes[name][0], "height": sizes[name][1]} for name in order]
    return {
        "subjects": _told(subjects),
        "images": about,
        "sizes_not_from_the_image": unread,
        "scaled": scaled,
        "remarks": remarks,
    }


def _gather(
    chosen: Selection, subjects: dict[tuple[str, int], int]
) -> tuple[_Trains, dict[str, tuple[int, int]], list[str]]:
    """All paths; the size (width, height) of each image; and the images whose size was not read from themselves.

    Agents come before imports, so that an image that cannot be read has the frame of an agent if any answered it.
    """
    trains, sizes, unread = _Trains(), dict[str, tuple[int, int]](), list[str]()
    with Lookup(chosen.folder) as by_id, Lookup(chosen.folder, "benchmark_id") as by_benchmark:
        for record in scanpaths(chosen, imported=True):
            row = find_row(record, by_id, by_benchmark) or {}
            try:
                if not record["answer"]["fixations"]:
                    chosen.leave_out(record, "without fixations")
                    continue
                image = _image(record, row)
                if image not in sizes:
                    read = _size(chosen.folder, image)
                    if read is None:
                        unread.append(image)
                    sizes[image] = read or (record["answer"]["frame"][0], record["answer"]["frame"][1])
                subject = subjects.setdefault((record["agent"], record["sample"]), len(subjects))
                _add(trains, record, row, image, sizes[image], subject)
            except MALFORMED as error:
                raise misfit(record, "answer", f"not a scanpath: {error!r}") from None
    return trains, sizes, unread


def _size(folder: RunFolder, image: str) -> tuple[int, int] | None:
    try:
        header = Image(image, root=folder.root or folder.path).header()
    except ImageError:
        return None
    return header.width, header.height


def _add(trains: _Trains, record: Record, row: Row, image: str, size: tuple[int, int], subject: int) -> None:
    answer = record["answer"]
    points, durations = on_image(answer, size), answer["durations_ms"]
    if durations is not None and len(durations) != len(points):
        raise ValueError(f"{len(durations)} durations of {len(points)} fixations")
    condition = _condition(row)
    texts = {"task": target_name(row), "mode": row.get("mode", "free"), "stimulus": row.get("id", record["stimulus"])}
    for name, column in trains.texts.items():
        column.append(str(texts.get(name, record.get(name))).encode())
    trains.images.append(image)
    trains.subjects.append(subject)
    trains.lengths.append(len(points))
    trains.frames.append((answer["frame"][0], answer["frame"][1]))
    trains.samples.append(record["sample"])
    trains.present.append({"present": 1.0, "absent": 0.0}.get(condition or "", math.nan))
    trains.boxes.append([float(side) for side in row.get("target_box") or [math.nan] * 4])
    trains.xs.extend(x for x, _ in points)
    trains.ys.extend(y for _, y in points)
    trains.seconds.extend([math.nan] * len(points) if durations is None else [time / 1000 for time in durations])


def _in_order(folder: RunFolder, images: dict[str, tuple[int, int]]) -> dict[str, int]:
    """The place of each image: in the order of the set, then those that only imports name."""
    shown = (row.get("image") for _, row in folder.stimuli() if row.get("task") == TASK)
    names = dict.fromkeys([*(name for name in shown if name in images), *images])
    return {name: place for place, name in enumerate(names)}


def _trains_file(hdf5: Any, trains: _Trains, order: dict[str, int]) -> bytes:
    import numpy as np

    lengths = np.array(trains.lengths)
    inside = np.arange(lengths.max()) < lengths[:, None]

    def padded(values: array[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        table = np.full(inside.shape, np.nan)
        table[inside] = values
        return table

    boxes = np.array(trains.boxes)
    attributes: dict[str, NDArray[Any]] = {name: np.array(column) for name, column in trains.texts.items()}
    attributes |= {
        "sample": np.array(trains.samples),
        "target_present": np.array(trains.present),
        "frame": np.array(trains.frames),
        **({"target_bbox": boxes} if not np.isnan(boxes).all() else {}),
    }
    seconds = np.array(trains.seconds)
    per_fixation = {} if np.isnan(seconds).all() else {"durations": padded(seconds)}
    with hdf5.File("trains", "w", driver="core", backing_store=False) as file:
        _head(file, "FixationTrains", "1.2", [])
        file.attrs["scanpath_attribute_mapping"] = np.bytes_(orjson.dumps({"durations": "duration"}))
        tables = {
            "train_xs": padded(trains.xs),
            "train_ys": padded(trains.ys),
            "train_ts": padded(np.nonzero(inside)[1].astype(np.float64)),
        }
        for name, values in tables.items():
            file.create_dataset(name, data=values, compression="gzip")
        file["train_ns"] = np.array([order[image] for image in trains.images])
        file["train_subjects"] = np.array(trains.subjects)
        for group, members in (("scanpath_attributes", attributes), ("scanpath_fixation_attributes", per_fixation)):
            made = file.create_group(group)
            made.attrs["__attributes__"] = np.bytes_(orjson.dumps(sorted(members)))
            for name, values in members.items():
                made[name] = values
        file.flush()
        return bytes(file.id.get_file_image())


def _stimuli_file(hdf5: Any, names: list[str], paths: list[str], sizes: list[tuple[int, int]]) -> bytes:
    import numpy as np

    with hdf5.File("stimuli", "w", driver="core", backing_store=False) as file:
        _head(file, "FileStimuli", "2.1", ["name"])
        file.attrs["size"] = len(names)
        for name, texts in (("filenames", paths), ("name", names)):
            file.create_dataset(name, data=texts, dtype=hdf5.string_dtype())
        shapes = file.create_dataset("shapes", (len(names),), dtype=hdf5.vlen_dtype(np.dtype("int64")))
        for place, (width, height) in enumerate(sizes):
            shapes[place] = np.array([height, width])
        file.flush()
        return bytes(file.id.get_file_image())


def _head(file: Any, kind: str, version: str, attributes: list[str]) -> None:
    """What pysaliency looks at first."""
    import numpy as np

    file.attrs["type"] = np.bytes_(kind)
    file.attrs["version"] = np.bytes_(version)
    file.attrs["__attributes__"] = np.bytes_(orjson.dumps(attributes))
