"""Scanpaths of records on their pictures; those that nothing places there are refused all at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.errors import InputError, Problem
from agents.frames import WAY_OUT, Point, Sides, as_text, have_one_shape, lacks_fit, to_picture
from serving.files.words import count

NAMED = 5  # scanpaths that a refusal names
AGAIN = f"Import the answers again (`import`) with {WAY_OUT}."
OF_AGENTS = 'An agent says it in its answer: ScanpathAnswer(…, fit="stretch"), or fit="bars".'
PICTURES = "Put the pictures where the run looks for them."
IMPORTED = {"human": "humans", "published": "published"}  # kinds of records, and their files
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError)
"""What reading an answer raises that has not the form of its task: a field is absent, or of another type."""


class PathsOnPictures:
    """Places one scanpath after the other, and keeps which it cannot place; :meth:`refuse` names them.

    It does not stop at the first: who imports people's paths again wants to know of all of them, and of how many."""

    def __init__(self) -> None:
        self.number = 0
        self._problems: list[Problem] = []
        self._ways: dict[str, None] = {}

    def fixations(self, record: Mapping[str, Any], size: Sides, where: Path) -> list[Point] | None:
        """The fixations of a record in the file ``where`` in pixels of its picture of ``size``; None if it has another
        shape than the frame and the answer does not say how it filled that. Raises ValueError for a side below 1, and
        what an answer of another form makes."""
        answer = record["answer"]
        frame = answer["frame"]
        fit = answer.get("fit")
        points = [[x, y] for x, y in answer["fixations"]]
        if not lacks_fit(frame, fit, size):
            return to_picture(points, frame, fit, size)
        way = AGAIN if record["kind"] in IMPORTED else OF_AGENTS
        self._add(record, where, f"its frame is {as_text(frame)}, and the picture {as_text(size)}", way)
        return None

    def fixations_beside(self, record: Mapping[str, Any], other: Mapping[str, Any], where: Path) -> list[Point] | None:
        """The same where the picture's size is not known, in pixels of the frame of the answer ``other`` to the same
        picture. Without the picture there is no way from one screen to another one of another shape."""
        answer = record["answer"]
        frame = answer["frame"]
        are_alike = (answer.get("fit") == "bars") == (other.get("fit") == "bars")
        lacks_fit(frame, None, other["frame"])  # raises ValueError
        if are_alike and have_one_shape(frame, other["frame"]):
            return to_picture(answer["fixations"], frame, None, other["frame"])
        why = f"its frame is {as_text(frame)}, another answer's {as_text(other['frame'])}, and there is no picture"
        self._add(record, where, why, PICTURES)
        return None

    def refuse(self) -> None:
        """Raise InputError if there was a path that could not be placed."""
        if not self.number:
            return
        named = f" ({NAMED} are named)" if self.number > NAMED else ""
        paths = count(self.number, "scanpath")
        raise InputError(
            f"{paths} cannot be placed on the picture{named}: the frame has another shape, and nothing says how the "
            f"picture filled it. {' '.join(self._ways)}",
            self._problems,
        )

    def _add(self, record: Mapping[str, Any], where: Path, why: str, way_out: str) -> None:
        self.number += 1
        self._ways.setdefault(way_out)
        if len(self._problems) < NAMED:
            place = f"{record['agent']}, stimulus {record['stimulus']!r}"
            self._problems.append(Problem(str(where), None, place, why))


def records_file(run: Path, record: Mapping[str, Any]) -> Path:
    """The file in the run folder ``run`` in which a record stands."""
    name = IMPORTED.get(record["kind"], record["agent"])
    return run / "records" / f"{name}.jsonl"
