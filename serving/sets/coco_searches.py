"""COCO-Search18's list as stimuli: what was searched for, and its box in pixels of the picture."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agents.errors import ImageError, InputError, Problem
from agents.frames import WAY_OUT, Fit, as_text, box_to_picture, lacks_fit
from agents.images import Image
from serving.files.terminal import print_line
from serving.files.words import count
from serving.sets.coco_forms import SEARCH_FRAME, CocoTrial

Frame = tuple[int, int]  # width, height
PRESENCE = {"present": True, "absent": False}  # by an entry's condition
NAMED = 5  # stimuli that a refusal names


class Searches:
    """The ``entries`` of a list, one for each subject; the pictures are in the folder ``images``. Their boxes are in
    pixels of ``frame``, or without one in pixels of the pictures. Raises InputError."""

    def __init__(
        self, entries: Sequence[CocoTrial], source: Path, images: Path, frame: Frame | None, fit: Fit | None
    ) -> None:
        self._entries = entries
        self._source = source
        self._images = images
        self._frame = frame
        self._fit: Fit | None = fit
        self._boxes = 0
        self._others = 0  # pictures of another size than the frame of COCO-Search18's boxes
        self._leaving: list[str] = []
        self._wrong: list[Problem] = []
        self._ways: dict[str, None] = {}  # out of what is wrong
        if frame is not None and not any(entry.target and entry.bbox for entry in entries):
            raise InputError(f"--frame is for boxes, and {source} has none")

    def rows(self, place: str, task: str | None) -> Iterator[dict[str, Any]]:
        """The stimuli, whose pictures are in the folder ``place`` seen from the set; prints what is left out, and what
        must be known of boxes. Raises InputError."""
        if task not in (None, "attention_prediction"):
            raise InputError(f"COCO-Search18 has scanpaths, which are no answers to {task}")
        without = 0
        differing = 0
        rows: dict[str, dict[str, Any]] = {}
        boxes: dict[str, list[float]] = {}
        for entry in self._entries:
            if entry.stimulus in rows:
                has_box = entry.target is not None and entry.bbox is not None
                differing += has_box and boxes.get(entry.stimulus) != entry.bbox
                continue
            folder = f"{entry.task}/" if (self._images / (entry.task or "") / entry.name).is_file() else ""
            file = f"{folder}{entry.name}"
            row: dict[str, Any] = {"id": entry.stimulus, "task": "attention_prediction", "image": f"{place}/{file}"}
            row |= {"dataset": "coco-search18"}
            if entry.target and entry.bbox is None:
                without += 1
                continue
            if entry.target and entry.bbox is not None:
                boxes[entry.stimulus] = entry.bbox
                row |= {"mode": "search", "target_box": self._on_picture(entry.stimulus, file, entry.bbox)}
                if (is_there := PRESENCE.get(str(entry.condition))) is not None:
                    row["target_present"] = is_there
                row |= {"meta": {"target": entry.target}}
            rows[entry.stimulus] = row
        self._refuse()
        if without:
            print_line(
                f"left out: {count(without, 'entry', 'entries')} without a box: nothing says what the target looks like"
            )
        if differing:
            print_line(
                f"left out: {count(differing, 'entry', 'entries')} with another box than the first of the same search"
            )
        self._tell()
        yield from rows.values()

    def _on_picture(self, stimulus: str, file: str, box: list[float]) -> list[float]:
        self._boxes += 1
        try:
            header = Image(file, root=self._images).header()
        except ImageError as error:
            if self._frame is not None:
                self._wrong.append(Problem(str(self._images), None, stimulus, str(error)))
                self._ways.setdefault("give with --images the folder in which all pictures are")
            return box  # the set's check names the picture
        size = (header.width, header.height)
        tolerance = 0.0
        if self._frame is None:
            self._others += size != SEARCH_FRAME
        elif lacks_fit(self._frame, self._fit, size):
            why = f"the picture is {as_text(size)}, of another shape than --frame {as_text(self._frame)}"
            self._wrong.append(Problem(str(self._source), None, stimulus, why))
            self._ways.setdefault(f"give {WAY_OUT}")
            return box
        else:
            box = box_to_picture(box, self._frame, self._fit, size)
            tolerance = max(size[0] / self._frame[0], size[1] / self._frame[1])  # a pixel, to which boxes are rounded
        x, y, width, height = box
        is_inside = min(x, y) >= -tolerance and x + width <= size[0] + tolerance and y + height <= size[1] + tolerance
        if not is_inside:
            numbers = ", ".join(f"{side:g}" for side in box)
            self._leaving.append(f"[{numbers}] of {stimulus}, whose picture is {as_text(size)}")
        return box

    def _refuse(self) -> None:
        if not self._wrong:
            return
        named = f" ({NAMED} are named)" if len(self._wrong) > NAMED else ""
        raise InputError(
            f"{self._source}: no set was made, as boxes cannot be brought from --frame to their pictures: "
            f"{len(self._wrong):,}{named}; {'; '.join(self._ways)}",
            self._wrong[:NAMED],
        )

    def _tell(self) -> None:
        if self._others:
            width, height = SEARCH_FRAME
            print_line(
                f"boxes are taken as pixels of their pictures, though {self._others:,} of {self._boxes:,} have one "
                f"of another size than {as_text(SEARCH_FRAME)}, COCO-Search18's frame. If the boxes are in that frame, "
                f"give --frame {width}x{height} with {WAY_OUT}."
            )
        if self._leaving:
            print_line(f"boxes that leave the picture: {len(self._leaving):,}, such as {self._leaving[0]}")
