"""The images of exported scanpaths, and the scanpaths in pixels of these images."""

from typing import Any

from agents.errors import ImageError
from agents.frames import Point, outside
from agents.images import Image
from serving.files.words import count
from serving.runs.path_frames import PathsOnPictures, records_file
from serving.runs.run import Run

Size = tuple[int, int]  # width, height


class ScanpathImages:
    """The images that the scanpaths of a run lie on, read as the scanpaths come.

    ``sizes`` are (width, height) in pixels by the image's name. ``unread`` are the images that cannot be read: their
    size is the frame of their first answer, and scanpaths in frames of other shapes cannot be placed on them.
    """

    def __init__(self, run: Run) -> None:
        self.sizes: dict[str, Size] = {}
        self.unread: list[str] = []
        self._run = run
        self._channels: dict[str, int] = {}
        self._first: dict[str, Any] = {}  # the first answer of each that is not read
        self._paths = PathsOnPictures()
        self._scaled = 0
        self._outside = 0

    def fixations(self, image: str, record: dict[str, Any]) -> list[Point]:
        """A record's fixations [x, y] in pixels of its image; [] for a path that :meth:`refuse` names in the end.
        Raises KeyError, TypeError or ValueError for an answer that is no scanpath."""
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

    def fixations_in_a_frame(self, image: str, record: dict[str, Any]) -> tuple[list[Point], Size]:
        """The fixations of :meth:`fixations` and the image's size. Where the image cannot be read they are in the
        answer's own frame, and that frame is given as the size."""
        if image not in self.sizes:
            self._read(image, record["answer"])
        if image not in self._first:
            return self.fixations(image, record), self.sizes[image]
        points = [[x, y] for x, y in record["answer"]["fixations"]]
        frame = frame_of(record["answer"])
        self._outside += outside(points, frame)
        return points, frame

    def refuse(self) -> None:
        """Raise InputError with all paths that could not be placed: their frame has another shape than the image."""
        self._paths.refuse()

    def shape(self, image: str) -> list[int]:
        """[height, width], and the number of channels where it is not 1: the shape that pysaliency reads itself."""
        width, height = self.sizes[image]
        channels = self._channels.get(image, 1)
        return [height, width] if channels == 1 else [height, width, channels]

    def notes(self) -> dict[str, Any]:
        """Notes for the side-car: how many scanpaths were scaled, how many fixations lie outside; "remarks" for the
        summary."""
        remarks = []
        if self._scaled:
            remarks.append(f"scaled from another frame to their image: {count(self._scaled, 'scanpath')}")
        if self._outside:
            remarks.append(f"outside their image, kept: {count(self._outside, 'fixation')}")
        remarks += self.remarks_on_unread()
        return {"scaled": self._scaled, "fixations_outside_the_image": self._outside, "remarks": remarks}

    def remarks_on_unread(self) -> list[str]:
        """A sentence on the images that cannot be read; [] where there are none."""
        if not self.unread:
            return []
        return [f"{count(len(self.unread), 'image')} not readable: in their place the frame of the answers counts"]

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
    """The frame of a scanpath, (width, height) in pixels. Raises ValueError for a side below 1."""
    width, height = answer["frame"]
    if width <= 0 or height <= 0:
        raise ValueError(f"a frame of {width} x {height}")
    return width, height
