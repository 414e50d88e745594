"""What attention agents share, without torch: a scanpath's limits, the target, and a batch's replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator

from agents.answers import ScanpathAnswer
from agents.attention.models.fixations import Box, Pixel, Plan
from agents.attention.scanpath_files import read_lengths
from agents.contract import Reply, Settings
from agents.errors import AnswerError, UnavailableError
from agents.stimuli import AttentionStimulus
from agents.stimulus_parts import Pixels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agents.attention.models.inhibition import DevicePaths

Fixations = Annotated[int, Field(ge=1, le=10_000)]


class PathSettings(Settings):
    """How far a scanpath goes. A stimulus' ``window`` and ``max_fixations`` come first. It belongs to Waldo when its
    ``dataset`` (or, without it, its ``source``) contains that word."""

    window: Annotated[float, Field(gt=0, le=100_000)] = 200.0
    """Side of the window around a fixation, in pixels of a frame 1280 wide; it is scaled with the frame's width."""
    window_waldo: Annotated[float, Field(gt=0, le=100_000)] = 100.0
    """Instead of window for stimuli of a Waldo data set: pixels of a frame 1280 wide, scaled likewise."""
    window_pixels: Pixels | None = None
    """Side of the window in pixels of any frame, not scaled; given, it replaces window and window_waldo."""
    max_free: Fixations = 15
    """Most fixations in free viewing, the forced first one at the centre included."""
    max_search: Fixations = 65
    """Most fixations in search for a target, the forced first one included."""
    max_waldo: Fixations = 80
    """Most fixations in search where the stimulus is of a Waldo data set, the forced first one included."""
    lengths: Path | None = None
    """A file of people's scanpaths, or of numbers, one a line: draws how many fixations there are, to that most."""

    @field_validator("lengths")
    @classmethod
    def _lengths_can_be_read(cls, value: Path | None) -> Path | None:
        try:
            if value is not None:
                read_lengths(value)
        except UnavailableError as error:
            raise ValueError(str(error)) from None
        return value


class ScanSettings(PathSettings):
    """The settings of every agent that takes the maximum of a map with inhibition of return."""

    inhibition: Literal["square"] = "square"
    """A fixated place is kept from being chosen again by a hard square window, as in the papers."""


def plan_scanpath(stimulus: AttentionStimulus, frame: Pixel, settings: PathSettings) -> Plan:
    """On a frame (width, height). Raises ImageError, AnswerError ``bad_target`` (outside, or a mask of another
    size)."""
    waldo = "waldo" in (stimulus.dataset or stimulus.source or "").lower()
    window = stimulus.window or settings.window_pixels
    if window is None:
        window = max(1, round((settings.window_waldo if waldo else settings.window) * frame[0] / 1280))
    searching = stimulus.mode == "search"
    if not searching:
        maximum = settings.max_free
    elif waldo:
        maximum = settings.max_waldo
    else:
        maximum = settings.max_search
    absent = stimulus.target_present is False
    target = None if absent or not searching else _target(stimulus, frame)
    tested = searching and (absent or target is not None)
    lengths = () if settings.lengths is None else read_lengths(settings.lengths)
    return Plan(frame, window, stimulus.max_fixations or maximum, target, tested, lengths=lengths)


def _target(stimulus: AttentionStimulus, frame: Pixel) -> Box | NDArray[np.bool_] | None:
    mask: NDArray[np.bool_] | None = None
    if stimulus.target_mask is not None:
        mask = stimulus.target_mask.decode().max(axis=2) >= 128
    wrong = misplaced(stimulus, frame, None if mask is None else (mask.shape[1], mask.shape[0]))
    if wrong is not None:
        raise AnswerError("bad_target", wrong[1])
    if mask is not None and not mask.any():
        raise AnswerError("bad_target", "the target mask marks no pixel (white marks, black does not)")
    return stimulus.target_box if mask is None else mask


def target_pixels(stimulus: AttentionStimulus, name: str) -> NDArray[np.uint8]:
    """The target's picture. Raises AnswerError ``no_target_image``, ImageError."""
    if stimulus.target_image is None:
        raise AnswerError("no_target_image", f"{name} looks for a picture: give it as target_image")
    return stimulus.target_image.decode()


def misplaced(stimulus: AttentionStimulus, frame: Pixel, mask: Pixel | None) -> tuple[str, str] | None:
    """The field of a target outside the frame, and why, or None; by sizes (width, height) alone."""
    if stimulus.target_present is False:
        return None
    width, height = frame
    if mask is not None:
        if mask != frame:
            return "target_mask", f"the target mask is {mask[0]} x {mask[1]}, but its image is {width} x {height}"
        return None
    box = stimulus.target_box
    if box is not None and not (box[0] < width and box[0] + box[2] > 0 and box[1] < height and box[1] + box[3] > 0):
        return "target_box", f"the target box {list(box)} lies outside the frame of {width} x {height}"
    return None


def reply(path: ScanpathAnswer | AnswerError, raw: Any = None) -> Reply | Exception:
    """A reply with a path and its ``raw`` part, or the error that ended it."""
    return path if isinstance(path, AnswerError) else Reply(path, raw)


def paths_by_size(
    sizes: Sequence[tuple[int, ...]],
    walk: Callable[[list[int]], Sequence[DevicePaths]],
    pixels_at_once: int | None = None,
) -> list[ScanpathAnswer | AnswerError]:
    """The path of each item. ``walk`` gets indices of items of equal size, of about ``pixels_at_once`` pixels."""
    from agents.attention.models.inhibition import hear

    groups: dict[tuple[int, ...], list[int]] = {}
    for index, size in enumerate(sizes):
        groups.setdefault(size, []).append(index)
    walked: list[DevicePaths] = []
    for size, indices in groups.items():
        portion = len(indices) if pixels_at_once is None else max(1, pixels_at_once // (size[0] * size[1]))
        for start in range(0, len(indices), portion):
            walked += walk(indices[start : start + portion])
    hear(walked)
    order = [index for indices in groups.values() for index in indices]
    by_index = dict(zip(order, (path for paths in walked for path in paths.results()), strict=True))
    return [by_index[index] for index in range(len(sizes))]
