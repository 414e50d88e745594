"""The images of exported scanpaths, and the scanpaths in their pixels."""

from typing import Any

from agents.errors import ImageError
from agents.frames import Point, outside
from agents.images import Image
from serving.exchange.exporting import Record
from serving.files.words import count
from serving.runs.path_frames import PathsOnPictures, records_file
from serving.runs.run import Run

Size = tuple[int, int]  # width, height


class ScanpathImages:
    """The images of scanpaths with their ``sizes``. ``unread`` are those that cannot be read: their size is the frame
    of their first answer, and scanpaths in frames of other shapes cannot be placed on them."""

    def __init__(self, run: Run) -> None:
        self.sizes: dict[str, Size] = {}
        self.unread: list[str] = []
        self._run = run
        self._channels: dict[str, int] = {}
        self._first: dict[str, Any] = {}  # the first answer of each that is not read
        self._paths = PathsOnPictures()
        self._scaled = 0
        self._outside = 0

    def fixations(self, image: str, record: Record) -> list[Point]:
        """A record's fixations in pixels of its image; none of a path that :meth:`refuse` names in the end."""
        if image not in self.sizes:
            self._read(image, record["answer"])
        size = self.sizes[image]
        file = records_file(self._run.path, record)
        if image in self._first:
            points = self._paths.fixations_beside(record, self._first[image], file) or []
        else:
            points = self._paths.fixations(record, size, file) or []
        self._scaled += frame_of(record["answer"]) != size
        self._outside += outside(points, size)
        return points

    def fixations_in_a_frame(self, image: str, record: Record) -> tuple[list[Point], Size]:
        """The same with the size of the image; of one that cannot be read in the answer's own frame, with that."""
        if image not in self.sizes:
            self._read(image, record["answer"])
        if image not in self._first:
            return self.fixations(image, record), self.sizes[image]
        points = [[x, y] for x, y in record["answer"]["fixations"]]
        frame = frame_of(record["answer"])
        self._outside += outside(points, frame)
        return points, frame

    def refuse(self) -> None:
        """Raise InputError for paths whose frame nothing places on the image."""
        self._paths.refuse()

    def shape(self, image: str) -> list[int]:
        """Height, width and, of an image with several, the number of channels, as pysaliency reads it itself."""
        width, height = self.sizes[image]
        channels = self._channels.get(image, 1)
        return [height, width] if channels == 1 else [height, width, channels]

    def notes(self) -> dict[str, Any]:
        """For the side-car, with remarks for the summary."""
        remarks = []
        if self._scaled:
            remarks.append(f"scaled from another frame to their image: {count(self._scaled, 'scanpath')}")
        if self._outside:
            remarks.append(f"outside their image, kept: {count(self._outside, 'fixation')}")
        remarks += self.unread_told()
        return {"scaled": self._scaled, "fixations_outside_the_image": self._outside, "remarks": remarks}

    def unread_told(self) -> list[str]:
        number = count(len(self.unread), "image")
        return [f"{number} not readable: in their place the frame of the answers counts"] if self.unread else []

    def _read(self, image: str, answer: Any) -> None:
        try:
            header = Image(image, root=self._run.root or self._run.path).header()
        except ImageError:
            self.unread.append(image)
            self._first[image] = answer
            self.sizes[image] = frame_of(answer)
            return
        self.sizes[image] = (header.width, header.height)
        self._channels[image] = header.channels


def frame_of(answer: Any) -> Size:
    """Raises ValueError for a side below 1."""
    width, height = answer["frame"]
    if width <= 0 or height <= 0:
        raise ValueError(f"a frame of {width} x {height}")
    return width, height
