"""The clips that judges see: one GIF per scanpath in a folder, and beside it the key that says whose each is.

The folder ``OUT`` holds ``clip-0001.gif`` and so on and nothing else. Nothing in it tells one agent from another but
the path that is drawn: the names follow the order of SHA-256(run seed, agent, stimulus, sample), so that neighbours
have nothing in common; all clips of a stimulus show the same picture at the same size (a path in another frame, as
imported ones are in 1280 x 1024, is scaled to the picture) and, in search, the same target first; the files have one
modification time; a GIF holds no text. What remains is the path itself: how many fixations it has, and that some
agents' fixations lie on a grid. Who knows the run's seed and the names can work the order out again.

``OUT.key.csv`` has one row per clip (:data:`COLUMNS`; ``sha256`` is of the file, so that a key is never taken for that
of another export). Two agents with the same path have files of the same bytes.

The picture is the one that was shown: where its hash is not that of the records, or it is missing, nothing is exported
and every such stimulus is named.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import orjson
from pydantic import Field, ValidationError

from agents.errors import ImageError, InputError, Problem
from agents.stimuli import AttentionStimulus, parse_row, sha256
from serving.export.csv_rows import write_rows
from serving.export.registry import BlindedFormat, FormatOptions
from serving.export.scanpaths import TASK, on_image, scanpaths, target_name
from serving.export.selection import MALFORMED, Record, Row, Selection, misfit
from serving.runs.display_text import count
from serving.runs.output_paths import MODIFIED
from serving.runs.stimulus_lookup import StimulusLookup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

COLUMNS = (
    "clip",
    "agent",
    "kind",
    "stimulus",
    "benchmark_id",
    "sample",
    "mode",
    "target",
    "fixations",
    "shown",
    "sha256",
)
OUTSIDE = "of stimuli outside the set"
WITHOUT = "without fixations"


class Clips(FormatOptions):
    """How the clips look."""

    ring_radius: float = Field(
        35.0, gt=0, le=10_000, description="the ring's radius in pixels of a frame 1280 wide, scaled to the picture"
    )
    gap: Literal["image", "black", "grey"] = Field("image", description="what is shown for 1 s between rounds")
    shown: int = Field(15, ge=1, description="only the first so many fixations")
    max_side: int = Field(1280, ge=16, description="the longer side of a clip in pixels")


@dataclass(frozen=True, slots=True)
class _Path:
    """One scanpath: whose it is, and what is shown of it (x and y in turn, in pixels of its own frame)."""

    agent: str
    kind: str
    stimulus: str
    sample: int
    frame: tuple[int, int]
    fixations: int
    shown: array[float]

    def order(self, seed: int) -> bytes:
        """What the clips are sorted by."""
        return hashlib.sha256(orjson.dumps([seed, self.agent, self.stimulus, self.sample])).digest()


def write_clips(chosen: Selection, folder: Path, key: BinaryIO, clips: Clips) -> dict[str, Any]:
    """Write the selected scanpaths' clips into ``folder`` and their key to ``key``; returns notes for the side-car.

    Everything is looked at before the first clip is written. Raises InputError that names every stimulus whose
    pictures are missing, changed or damaged, or whose target cannot be cut out.
    """
    with StimulusLookup(chosen.folder) as stimuli:
        paths = _paths(chosen, clips.shown, stimuli)
        seed = chosen.folder.meta.get("seed", 0)
        paths.sort(key=lambda path: path.order(seed))
        digits = max(4, len(str(len(paths))))
        text = io.TextIOWrapper(key, encoding="utf-8", newline="", write_through=True)
        rows = []
        for number, path in enumerate(paths, start=1):
            name, row = f"clip-{number:0{digits}}.gif", stimuli.of_id(TASK, path.stimulus)
            assert row is not None
            data = _clip(_stimulus(chosen, row), path, clips)
            (folder / name).write_bytes(data)
            os.utime(folder / name, (MODIFIED, MODIFIED))
            about = (path.agent, path.kind, path.stimulus, row.get("benchmark_id"), path.sample)
            drawn = (row.get("mode", "free"), target_name(row), path.fixations, len(path.shown) // 2)
            rows.append([name, *about, *drawn, hashlib.sha256(data).hexdigest()])
        write_rows(text, COLUMNS, rows)
        text.detach()
    return {"clips": {"count": len(paths), **clips.model_dump()}, "columns": list(COLUMNS)}


def _paths(chosen: Selection, most: int, stimuli: StimulusLookup) -> list[_Path]:
    """Every path to show. Raises InputError that names every stimulus that cannot be shown as it was."""
    paths: list[_Path] = []
    problems: dict[str, Problem] = {}
    hashes: dict[str, str] = {}  # of each stimulus, as it is now
    for record in scanpaths(chosen, imported=True):
        row = stimuli.get(record)
        if row is None:
            chosen.leave_out(record, OUTSIDE)
            continue
        stimulus: str = row["id"]
        if stimulus not in hashes and stimulus not in problems:
            try:
                hashes[stimulus] = _look(_stimulus(chosen, row))
            except (ImageError, InputError) as error:
                problems[stimulus] = Problem(str(chosen.folder.path), None, stimulus, str(error))
        now, then = hashes.get(stimulus), record["stimulus_sha256"]
        if now is not None and then not in (None, now) and stimulus not in problems:
            message = f"what {record['agent']} was shown has changed since: its SHA-256 is another"
            problems[stimulus] = Problem(str(chosen.folder.path), None, stimulus, message)
        path = _path(record, stimulus, most)
        if path.fixations:
            paths.append(path)
        else:
            chosen.leave_out(record, WITHOUT)
    if problems:
        number = count(len(problems), "stimulus", "stimuli")
        raise InputError(f"{number} cannot be shown as they were to the agents", problems.values())
    return paths


def _path(record: Record, stimulus: str, most: int) -> _Path:
    try:
        answer = record["answer"]
        width, height = answer["frame"]
        points = [float(value) for x, y in answer["fixations"][:most] for value in (x, y)]
        if width <= 0 or height <= 0 or not all(map(math.isfinite, points)):
            raise ValueError(f"a frame of {width} x {height}, or a fixation nowhere")
    except MALFORMED as error:
        raise misfit(record, "answer", f"not a scanpath: {error!r}") from None
    number = len(answer["fixations"])
    frame = (width, height)
    return _Path(record["agent"], record["kind"], stimulus, record["sample"], frame, number, array("d", points))


def _stimulus(chosen: Selection, row: Row) -> AttentionStimulus:
    try:
        stimulus = parse_row(orjson.dumps(row), root=chosen.folder.root or chosen.folder.path)
    except ValidationError as error:
        raise InputError(f"is not a stimulus: {error.errors()[0]['msg']}") from None
    assert isinstance(stimulus, AttentionStimulus)
    return stimulus


def _look(stimulus: AttentionStimulus) -> str:
    """The hash of what a stimulus shows, once it is known that it can be shown."""
    _target(stimulus, stimulus.image.decode())
    return sha256(stimulus)


def _clip(stimulus: AttentionStimulus, path: _Path, clips: Clips) -> bytes:
    from agents.attention.drawing import judges_clip

    pixels = stimulus.image.decode()
    height, width, _ = pixels.shape
    target = _target(stimulus, pixels)
    fixations = list(zip(path.shown[::2], path.shown[1::2], strict=True))
    return judges_clip(
        pixels,
        on_image({"frame": path.frame, "fixations": fixations}, (width, height)),
        # The target is made smaller with the picture, so that it has the size in which it is to be found.
        target=None if target is None else _shrunk(target, clips.max_side / max(width, height)),
        ring_radius=clips.ring_radius,
        gap=clips.gap,
        shown=None,
        max_side=clips.max_side,
    )


def _target(stimulus: AttentionStimulus, pixels: Pixels) -> Pixels | None:
    """What is shown first in search: the target image, or the target's box (or what its mask fills) cut out of the
    picture; None in free viewing. Raises InputError where there is nothing to cut out."""
    if stimulus.mode == "free":
        return None
    if stimulus.target_image is not None:
        return stimulus.target_image.decode()
    height, width, _ = pixels.shape
    if stimulus.target_box is not None:
        left, top, across, down = stimulus.target_box
        box = math.floor(left), math.floor(top), math.ceil(left + across), math.ceil(top + down)
    else:
        box = _filled(stimulus, (width, height))
    cut = pixels[max(box[1], 0) : max(box[3], 0), max(box[0], 0) : max(box[2], 0)]
    if not cut.size:
        raise InputError("the target's box has no pixel in the picture")
    return cut


def _filled(stimulus: AttentionStimulus, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of what a target's mask fills: the last two exclusive."""
    import numpy as np

    assert stimulus.target_mask is not None
    mask = stimulus.target_mask.decode().max(axis=2) >= 128
    if mask.shape != (size[1], size[0]):
        raise InputError("the target's mask has another size than the picture")
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        raise InputError("the target's mask is empty")
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _shrunk(pixels: Pixels, factor: float) -> Pixels:
    import numpy as np
    from PIL import Image as PILImage

    if factor >= 1:
        return pixels
    picture = PILImage.fromarray(pixels)
    size = max(1, round(picture.width * factor)), max(1, round(picture.height * factor))
    return np.asarray(picture.resize(size, PILImage.Resampling.LANCZOS))


CLIPS = BlindedFormat(write_clips, re.compile(r"clip-\d{4,}\.gif"), "clip", "scanpaths", Clips)
