"""Sets of scanpaths, whoever made them and however they were written down, and which stimuli two sets share.

Three forms become :class:`Recorded` here: a record's answer, COCO-Search18's list of ``{name, subject, task, condition,
X, Y, T, length}``, and lists of ``{image, grid64}``, cells of a 64 x 64 grid counted from 1 along the rows. Whatever is
wrong with a file is collected as problems, so that a reader sees all of it at once.

**Which stimuli are the same.** First those whose names are equal as they stand; then, among the others, those that
share a name once folder and ending are taken off ("images/cat.png" and "cat"), the benchmark's id and the image's file
included, where this is unambiguous on both sides. Paths of different targets, or of search and free viewing, are never
of one stimulus.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from agents.answers import ScanpathAnswer
from agents.errors import Problem

FREE = ""  # the target of free viewing
CELLS = 64  # per side of the grid of ``grid64``
CELL_FRAME = (1280, 1024)
UNNAMED = ("human:unknown", "")  # makers of whom nobody knows how many they are
Size = tuple[float, float]
Frames = Mapping[tuple[str, str | None], Size]  # by name and subject; subject None: of all others


@dataclass(frozen=True, slots=True)
class Recorded:
    """One scanpath of a set: fixations (x, y) in pixels of ``frame`` (width, height).

    ``stimulus`` is its name in the set, ``names`` others that it goes by; ``target`` what was searched for,
    :data:`FREE` in free viewing, None where nobody says. ``agent`` is who made it and ``subject`` the same, or with
    the number of the path where one name stands for several people or draws. ``window`` is the side in pixels of the
    inhibition window that was applied, ``durations`` are in milliseconds.
    """

    stimulus: str
    subject: str
    agent: str
    fixations: tuple[tuple[float, float], ...]
    frame: Size
    durations: tuple[float, ...] | None = None
    names: tuple[str, ...] = ()
    target: str | None = None
    kind: str | None = None
    window: float | None = None
    pixels_per_degree: float | None = None

    def scaled(self, frame: Size) -> tuple[tuple[float, float], ...]:
        """The fixations in pixels of another frame."""
        across, down = frame[0] / self.frame[0], frame[1] / self.frame[1]
        return tuple((x * across, y * down) for x, y in self.fixations)


@dataclass(slots=True)
class Read:
    """What was read of one set: its paths, what is wrong with it, and how many entries were passed over and why."""

    paths: list[Recorded] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    passed_over: dict[str, int] = field(default_factory=dict)

    def skip(self, reason: str) -> None:
        """Count an entry that is in order but is no scanpath to compare."""
        self.passed_over[reason] = self.passed_over.get(reason, 0) + 1


def add_record(read: Read, place: Problem, record: Mapping[str, Any], row: Mapping[str, Any] | None) -> None:
    """Add the scanpath of a record; ``row`` is its stimulus, if known. ``place`` says where the record stands.

    Records of other tasks, failures, rejected answers and empty paths are counted as passed over.
    """
    if record["task"] != "attention_prediction":
        read.skip("answers to other tasks")
    elif record["status"] != "ok" or record["answer"] is None:
        read.skip(f"{record['status']} answers")
    else:
        try:
            answer = ScanpathAnswer.model_validate(record["answer"])
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(["answer", *map(str, first["loc"])])
            read.problems.append(replace(place, field=where, message=first["msg"]))
            return
        fault = _fault(answer.fixations, answer.durations_ms, answer.frame)
        if fault is not None:
            read.problems.append(replace(place, field="answer", message=fault))
        elif not answer.fixations:
            read.skip("paths without a fixation")
        else:
            read.paths.append(_of_answer(record, answer, row or {}))


def _of_answer(record: Mapping[str, Any], answer: ScanpathAnswer, row: Mapping[str, Any]) -> Recorded:
    stimulus, agent = record["stimulus"], record["agent"]
    named = record["kind"] == "human" and agent not in UNNAMED
    others = (row.get("benchmark_id"), row.get("image"))
    return Recorded(
        stimulus=stimulus,
        subject=agent if named else f"{agent}#{record['sample']}",
        agent=agent,
        fixations=tuple((x, y) for x, y in answer.fixations),
        frame=(answer.frame[0], answer.frame[1]),
        durations=None if answer.durations_ms is None else tuple(answer.durations_ms),
        names=tuple(_bare(name) for name in (stimulus, *others) if isinstance(name, str)),
        target=_target(record, row),
        kind=record["kind"],
        window=answer.window,
        pixels_per_degree=row.get("pixels_per_degree"),
    )


def _target(record: Mapping[str, Any], row: Mapping[str, Any]) -> str | None:
    """What was searched for. The published benchmark's files hold free viewing alone."""
    if not row:
        return FREE if record["kind"] in ("human", "published") else None
    if row.get("mode", "free") == "free":
        return FREE
    named = (row.get("meta") or {}).get("target")
    image = row.get("target_image")
    name = named if isinstance(named, str) else _bare(image) if isinstance(image, str) else None
    return name.lower() if name else None


def read_coco(
    entries: Sequence[Any], where: str, frames: Frames, frame: Size | None, agents: Mapping[str, tuple[str, int]]
) -> Read:
    """COCO-Search18's list. ``frames`` are those of a side-car, ``frame`` that of everything else; ``agents`` says
    (agent, sample) of the subjects that are machines."""
    read = Read()
    homeless = 0
    for index, entry in enumerate(entries):
        fault = _coco_fault(entry)
        if fault is not None:
            read.problems.append(Problem(where, None, f"[{index}]{fault[0]}", fault[1]))
            continue
        name, subject = entry["name"], str(entry["subject"])
        size = frames.get((name, subject)) or frames.get((name, None)) or frame
        if size is None:
            homeless += 1
            continue
        wrong = _fault(list(zip(entry["X"], entry["Y"], strict=True)), entry.get("T"), size)
        if wrong is not None:
            read.problems.append(Problem(where, None, f"[{index}]", wrong))
        elif not entry["X"]:
            read.skip("paths without a fixation")
        else:
            read.paths.append(_of_coco(entry, size, agents))
    if homeless:
        message = f"the file does not say of which frame {homeless:,} of its paths are; give --frame WIDTHxHEIGHT"
        read.problems.append(Problem(where, None, None, message))
    return read


def _coco_fault(entry: Any) -> tuple[str, str] | None:
    """(".field", what is wrong) with one entry of the list, or None."""
    if not isinstance(entry, dict):
        return "", "must be an object"
    for name, fitting, called in (
        ("name", str, "text"),
        ("subject", (str, int), "a number or text"),
        ("X", list, "a list"),
        ("Y", list, "a list"),
        ("T", (list, type(None)), "a list or null"),
    ):
        value = entry.get(name)
        if not isinstance(value, fitting) or isinstance(value, bool):
            return f".{name}", f"must be {called}, " + (f"is {value!r:.60}" if name in entry else "is missing")
    if len(entry["X"]) != len(entry["Y"]):
        return ".Y", f"has {len(entry['Y'])} numbers where X has {len(entry['X'])}"
    if not isinstance(entry.get("task", ""), str | None):
        return ".task", f"must be text, is {entry['task']!r:.60}"
    return None


def _of_coco(entry: Mapping[str, Any], frame: Size, agents: Mapping[str, tuple[str, int]]) -> Recorded:
    task, condition, name = entry.get("task"), entry.get("condition"), entry["name"]
    target = FREE if condition == "freeview" else None if task in (None, "", "none") else task.lower()
    subject = str(entry["subject"])
    agent, sample = agents.get(subject, (subject, None))
    return Recorded(
        stimulus=f"{name} [{target}]" if target else name,
        subject=subject if sample is None else f"{agent}#{sample}",
        agent=agent,
        fixations=tuple(zip(entry["X"], entry["Y"], strict=True)),
        frame=frame,
        durations=None if entry.get("T") is None else tuple(entry["T"]),
        names=(_bare(name),),
        target=target,
    )


def read_cells(entries: Sequence[Any], where: str, frame: Size | None) -> Read:
    """``[{image, grid64}]``: each cell becomes its centre. Nobody says who looked: each path is a subject."""
    read, size = Read(), frame or CELL_FRAME
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        image = entry.get("image") if isinstance(entry, dict) else None
        numbers = entry.get("grid64") if isinstance(entry, dict) else None
        part = f"scanpaths[{index}]"
        if not isinstance(image, str):
            read.problems.append(Problem(where, None, part, "must be an object with an image's name"))
        elif not isinstance(numbers, list) or not all(type(n) is int and 1 <= n <= CELLS**2 for n in numbers):
            message = f"must be a list of whole numbers from 1 to {CELLS**2}"
            read.problems.append(Problem(where, None, f"{part}.grid64", message))
        elif not numbers:
            read.skip("paths without a fixation")
        else:
            number = seen[image] = seen.get(image, 0) + 1
            places = ((n - 1) % CELLS + 0.5 for n in numbers), ((n - 1) // CELLS + 0.5 for n in numbers)
            points = zip(
                *([place * side / CELLS for place in p] for p, side in zip(places, size, strict=True)), strict=True
            )
            read.paths.append(
                Recorded(image, f"#{number}", "", tuple(points), size, names=(_bare(image),), target=FREE)
            )
    return read


def _fault(fixations: Sequence[Sequence[Any]], durations: Any, frame: Sequence[float]) -> str | None:
    """What is wrong with the numbers of a path, or None."""
    if not all(side > 0 for side in frame):
        return f"the frame {list(frame)} has no area"
    for numbers in ((number for point in fixations for number in point), durations or ()):
        for number in numbers:
            if type(number) not in (int, float) or not math.isfinite(number):
                return f"holds {number!r:.60}, which is no number"
    if durations is not None and len(durations) != len(fixations):
        return f"has {len(durations)} durations for {len(fixations)} fixations"
    return None


def _bare(name: str) -> str:
    """A name without folder and ending."""
    return PurePosixPath(name.replace("\\", "/")).stem or name


def by_stimulus(paths: Iterable[Recorded]) -> dict[str, list[Recorded]]:
    """The paths of each stimulus, in their order."""
    found: dict[str, list[Recorded]] = {}
    for path in paths:
        found.setdefault(path.stimulus, []).append(path)
    return found


def shared_stimuli(first: Iterable[Recorded], second: Iterable[Recorded]) -> tuple[list[tuple[str, str]], list[str]]:
    """(name in the first set, name in the second) of every stimulus that both have, in the first set's order; and the
    names in the first set that would fit several, which are left out."""
    left = {name: paths[0] for name, paths in by_stimulus(first).items()}
    right = {name: paths[0] for name, paths in by_stimulus(second).items()}
    pairs = {name: name for name in left if name in right and _same_task(left[name], right[name])}
    rest = {name: path for name, path in right.items() if name not in pairs}
    known: dict[str, list[str]] = {}
    for name, path in rest.items():
        for alias in {name, *path.names}:
            known.setdefault(alias, []).append(name)
    fitting: dict[str, set[str]] = {}
    for name, path in left.items():
        if name not in pairs:
            fitting[name] = {
                other
                for alias in (name, *path.names)
                for other in known.get(alias, ())
                if _same_task(path, rest[other])
            }
    claims: dict[str, int] = {}
    for others in fitting.values():
        for other in others:
            claims[other] = claims.get(other, 0) + 1
    ambiguous = []
    for name, others in fitting.items():
        if len(others) == 1 and all(claims[other] == 1 for other in others):
            pairs[name] = others.pop()
        elif others:
            ambiguous.append(name)
    return [(name, pairs[name]) for name in left if name in pairs], ambiguous


def _same_task(one: Recorded, other: Recorded) -> bool:
    return one.target is None or other.target is None or one.target == other.target
