"""Scanpaths as the package pysaliency reads them.

Two HDF5 files, both for ``pysaliency.read_hdf5``: the scanpaths as ``FixationTrains`` (version 1.2 of
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from agents.errors import ImageError, UnavailableError
from agents.images import Image
from serving.export.registry import FileFormat
from serving.export.scanpaths import TASK, condition_of, image_of, numbered, on_image, scanpaths, target_name
from serving.export.selection import MALFORMED, Record, Row, Selection, misfit
from serving.runs.row_problems import count
from serving.runs.run import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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


def _h5py() -> Any:
    """The module h5py. Raises UnavailableError if it is not installed."""
    try:
        return importlib.import_module("h5py")
    except ImportError as error:
        raise UnavailableError(
            f"pysaliency reads HDF5, and h5py, which writes it, cannot be imported ({error}): "
            "pip install 'turinglike[pysaliency]'"
        ) from None


def write_pysaliency(chosen: Selection, files: list[BinaryIO], folder: Path) -> dict[str, Any]:
    """Write the selected scanpaths to the first file and their images to the second; returns notes for the side-car:
    subjects and images. Raises UnavailableError without h5py."""
    hdf5 = _h5py()
    subjects: dict[tuple[str, int], int] = {}
    trains, sizes, unread = _gather(chosen, subjects)
    if not trains.images:
        return {}
    order = _in_order(chosen.folder, sizes)
    files[0].write(_trains_file(hdf5, trains, order))
    paths = [os.path.relpath(chosen.folder.image_path(name), folder.resolve()) for name in order]
    files[1].write(_stimuli_file(hdf5, list(order), paths, [sizes[name] for name in order]))
    scaled = sum(frame != sizes[image] for frame, image in zip(trains.frames, trains.images, strict=True))
    remarks = [f"scaled from another frame to their image: {count(scaled, 'scanpath')}"] if scaled else []
    if unread:
        remarks.append(f"{count(len(unread), 'image')} not readable: in their place the frame of the answers counts")
    about = [{"name": name, "width": sizes[name][0], "height": sizes[name][1]} for name in order]
    return {
        "subjects": numbered(subjects),
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
    for record in scanpaths(chosen, imported=True):
        row = chosen.folder.stimulus_of(record) or {}
        try:
            if not record["answer"]["fixations"]:
                chosen.leave_out(record, "without fixations")
                continue
            image = image_of(record, row)
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


def _size(folder: Run, image: str) -> tuple[int, int] | None:
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
    condition = condition_of(row)
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


def _in_order(folder: Run, images: dict[str, tuple[int, int]]) -> dict[str, int]:
    """The number of each image: in the order of the set, then those that only imports name."""
    shown = (row.get("image") for row in folder.stimuli() if row.get("task") == TASK)
    names = dict.fromkeys([*(name for name in shown if name in images), *images])
    return {name: number for number, name in enumerate(names)}


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
        for number, (width, height) in enumerate(sizes):
            shapes[number] = np.array([height, width])
        file.flush()
        return bytes(file.id.get_file_image())


def _head(file: Any, kind: str, version: str, attributes: list[str]) -> None:
    """What pysaliency looks at first."""
    import numpy as np

    file.attrs["type"] = np.bytes_(kind)
    file.attrs["version"] = np.bytes_(version)
    file.attrs["__attributes__"] = np.bytes_(orjson.dumps(attributes))


PYSALIENCY = FileFormat(write_pysaliency, beside=("stimuli.hdf5",), with_stimuli=True)
