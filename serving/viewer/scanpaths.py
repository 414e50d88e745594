"""The viewer's scanpaths: whether they can be placed on their pictures, and in which frame statistics compare them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agents.errors import ImageError
from agents.frames import have_one_shape, to_picture
from agents.images import Image
from serving.files.words import count
from serving.runs.path_frames import MALFORMED, PathsOnPictures, records_file
from serving.viewer.statistics import Labelled

TASK = "attention_prediction"
Size = tuple[int, int]  # width, height


class ViewedScanpaths:
    """Looks at scanpaths one after the other. ``pictures`` are those of the stimuli by number; a stimulus without one
    has the number -1."""

    def __init__(self, pictures: Sequence[Image]) -> None:
        self._pictures = pictures
        self._sizes: dict[int, Size | None] = {}
        self._paths = PathsOnPictures()
        self._apart = 0  # stimuli whose paths nothing brings into one frame

    def check(self, run: Path, record: Mapping[str, Any], picture: int) -> None:
        """Note if nothing places a record's scanpath on its picture; the page shows what is no scanpath as it is."""
        if record["task"] == TASK and record["answer"] and (size := self._size(picture)) is not None:
            with suppress(*MALFORMED):
                self._paths.fixations(record, size, records_file(run, record))

    def refuse(self) -> None:
        """Raise InputError with all that was noted."""
        self._paths.refuse()

    def in_one_frame(self, labelled: Labelled, picture: int) -> Labelled:
        """The well-formed records on a picture as statistics compare them: in the picture's frame.

        Where the picture cannot be read, they stay as they are if their frames have one shape. Otherwise there is no
        way to compare them, and none is left.
        """
        size = self._size(picture)
        if size is not None:
            return [(name, {**record, "answer": on_picture(record["answer"], size)}) for name, record in labelled]
        answers = [record["answer"] for _, record in labelled]
        if all(_are_alike(answers[0], answer) for answer in answers):
            return labelled
        self._apart += 1
        return []

    def notices(self) -> Iterator[str]:
        """A sentence on the stimuli whose scanpaths statistics lack; none where there are none."""
        if self._apart:
            stimuli = count(self._apart, "stimulus", "stimuli")
            yield (
                f"Statistics lack the scanpaths of {stimuli}: their frames are not of one shape, and the pictures, by "
                "which they could be compared, cannot be read."
            )

    def _size(self, picture: int) -> Size | None:
        if picture < 0:
            return None
        if picture not in self._sizes:
            try:
                header = self._pictures[picture].header()
                self._sizes[picture] = (header.width, header.height)
            except ImageError:
                self._sizes[picture] = None
        return self._sizes[picture]


def on_picture(answer: Mapping[str, Any], size: Size) -> Mapping[str, Any]:
    """The answer of a scanpath with its fixations in pixels of its picture of ``size``.

    It stays as it is where its frame has the picture's shape already: statistics measure in widths of the frame. Raises
    InputError as :func:`agents.frames.to_picture`.
    """
    frame = answer["frame"]
    fit = answer.get("fit")
    if fit != "bars" and have_one_shape(frame, size):
        return answer
    return {**answer, "fixations": to_picture(answer["fixations"], frame, fit, size), "frame": [*size]}


def _are_alike(answer: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    has_bars = answer.get("fit") == "bars"
    other_has_bars = other.get("fit") == "bars"
    return has_bars == other_has_bars and have_one_shape(answer["frame"], other["frame"])
