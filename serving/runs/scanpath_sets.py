"""Sets of scanpaths from files: what ``scripts/compare_scanpaths.py`` takes for a set.

What is read as what is listed in ``docs/scanpaths.md``. Beside an export stand ``X.export.json``, which gives frames
and agents, and ``X.stimuli.jsonl``, which gives targets and images; both are used where they are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from agents.answers import ScanpathAnswer
from agents.attention.scanpath_comparison import Recorded, Size
from agents.errors import InputError, Problem
from serving.runs.display_text import count
from serving.runs.published_benchmark import read_source
from serving.runs.records import problems as record_problems
from serving.runs.row_problems import as_problems
from serving.runs.run import Run
from serving.runs.stimulus_set import SUFFIXES

TASK = "attention_prediction"
GROUPS = {"humans": "human", "machines": "machine", "published": "published"}
CELLS, CELL_FRAME = 64, (1280, 1024)
FREE = ""  # the target of free viewing
UNKNOWN = "human:unknown"

Row = dict[str, Any]


@dataclass(slots=True)
class ReadSet:
    """What was read of one set: its paths, what is wrong with it, and how many entries were passed over and why."""

    paths: list[Recorded] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)


class CocoPath(BaseModel):
    """An entry of COCO-Search18's list."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    name: str
    subject: int | str
    X: list[float]
    Y: list[float]
    T: list[float] | None = None
    task: str | None = None
    condition: Any = None

    @model_validator(mode="after")
    def _lengths_agree(self) -> CocoPath:
        if len(self.X) != len(self.Y) or (self.T is not None and len(self.T) != len(self.X)):
            raise ValueError("X, Y and T must have one number for each fixation")
        return self


class CellPath(BaseModel):
    """An entry of a list of grid cells."""

    model_config = ConfigDict(strict=True)

    image: str
    grid64: list[Annotated[int, Field(ge=1, le=CELLS**2)]]


def read_set(text: str, frame: Size | None = None) -> ReadSet:
    """The set ``text``; ``frame`` (width, height) is for files that do not say it themselves.

    Raises InputError with every problem found. A set without a path is an error too.
    """
    path, who = split(text)
    found = ReadSet()
    if path.is_dir():
        _read_run(Run(path), who, found)
    elif path.suffix == ".jsonl":
        _read_records(path, found)
    else:
        _read_json(path, frame, found)
    if found.problems:
        raise InputError(f"{path} cannot be compared: {count(len(found.problems), 'problem')}", found.problems)
    everybody = dict.fromkeys(one.agent or one.subject for one in found.paths)
    if who is None:
        found.passed_over["paths of controls"] = sum(one.kind == "control" for one in found.paths)
        found.passed_over = +found.passed_over
    found.paths = [one for one in found.paths if _is_meant(one, who)]
    if not found.paths:
        reasons = "".join(f"; {number:,} {reason}" for reason, number in found.passed_over.items())
        held = f"; it has those of {', '.join(everybody)}" if everybody else ""
        raise InputError(f"{text} holds no scanpaths{f' of {who!r}' if who else ''}{held}{reasons}")
    kinds = {one.kind for one in found.paths}
    if len(kinds) > 1:
        groups = ", ".join(f"{path}:{group}" for group, kind in GROUPS.items() if kind in kinds)
        raise InputError(f"{text} holds paths of several kinds; give one of {groups}")
    return found


def split(text: str) -> tuple[Path, str | None]:
    """``SET:WHO`` as the path that exists and who is meant, None for all. Raises InputError if no such path exists."""
    at = len(text)
    while at > 0:
        if Path(text[:at]).exists():
            return Path(text[:at]), text[at + 1 :] or None
        at = text.rfind(":", 0, at)
    raise InputError(f"{text}: there is no such file or folder")


def _is_meant(path: Recorded, who: str | None) -> bool:
    if who is None:
        return path.kind != "control"
    return path.kind == GROUPS[who] if who in GROUPS else who in (path.agent, path.subject)


def _read_run(folder: Run, who: str | None, found: ReadSet) -> None:
    for name in [who] if who in folder.agents() else [*folder.agents(), *folder.imports()]:
        for record in folder.latest(name):
            where = f"{folder.records_path(name)}, stimulus {record['stimulus']!r}"
            _add_record(found, where, None, record, folder.stimulus_of(record))


def _read_records(path: Path, found: ReadSet) -> None:
    """Records, one a line. As in a run folder the last line of a key counts."""
    sidecar = path.with_name(f"{path.name}.stimuli.jsonl")
    side = ReadSet()
    rows = [row for _, row in _lines(sidecar, side) if row.get("task") == TASK] if sidecar.is_file() else []
    if side.problems:
        raise InputError(f"{sidecar} is damaged", side.problems)
    by_id, by_benchmark = ({row.get(name): row for row in rows} for name in ("id", "benchmark_id"))
    last: dict[tuple[str, str, str, int], tuple[int, Row]] = {}
    for number, record in _lines(path, found):
        if faults := record_problems(record, str(path), number):
            found.problems += faults[:1]
        else:
            last[record["task"], record["agent"], record["stimulus"], record["sample"]] = number, record
    for number, record in last.values():
        row = by_id.get(record["stimulus"])
        if row is None and record["kind"] in ("human", "published"):
            row = by_benchmark.get(record["stimulus"])
        _add_record(found, str(path), number, record, row)


def _lines(path: Path, found: ReadSet) -> Iterator[tuple[int, Row]]:
    """(number, object) of each line; a line that is no JSON object is a problem."""
    for number, line in enumerate(_bytes(path).splitlines(), start=1):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            row = error
        if isinstance(row, dict):
            yield number, row
        else:
            found.problems.append(Problem(str(path), number, None, "not a JSON object"))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _add_record(found: ReadSet, where: str, line: int | None, record: Row, row: Row | None) -> None:
    """Add the scanpath of a record; ``row`` is its stimulus, if known."""
    if record["task"] != TASK:
        found.passed_over["answers to other tasks"] += 1
        return
    if record["status"] != "ok" or record["answer"] is None:
        found.passed_over[f"{record['status']} answers"] += 1
        return
    try:
        answer = ScanpathAnswer.model_validate(record["answer"])
    except ValidationError:
        found.problems += record_problems(record, where, line)[:1]
        return
    row, agent = row or {}, record["agent"]
    others = (row.get("benchmark_id"), row.get("image"))
    path = Recorded(
        stimulus=record["stimulus"],
        subject=agent if record["kind"] == "human" and agent != UNKNOWN else f"{agent}#{record['sample']}",
        agent=agent,
        fixations=tuple((x, y) for x, y in answer.fixations),
        frame=(answer.frame[0], answer.frame[1]),
        durations=None if answer.durations_ms is None else tuple(answer.durations_ms),
        names=tuple(_bare(name) for name in (record["stimulus"], *others) if isinstance(name, str)),
        target=_target(record, row),
        kind=record["kind"],
        window=answer.window,
        pixels_per_degree=row.get("pixels_per_degree"),
    )
    _add(found, path, Problem(where, line, "answer", ""))


def _add(found: ReadSet, path: Recorded, problem: Problem) -> None:
    """Add a path; one without a fixation is passed over."""
    if not all(side > 0 for side in path.frame):
        found.problems.append(replace(problem, message=f"the frame {list(path.frame)} has no area"))
    elif path.durations is not None and len(path.durations) != len(path.fixations):
        message = f"has {len(path.durations)} durations for {len(path.fixations)} fixations"
        found.problems.append(replace(problem, message=message))
    elif path.fixations:
        found.paths.append(path)
    else:
        found.passed_over["paths without a fixation"] += 1


def _target(record: Row, row: Row) -> str | None:
    """What was searched for. The published benchmark's files hold free viewing alone; COCO-Search18's say it."""
    if not row:
        if record["kind"] not in ("human", "published"):
            return None
        raw = record["raw"]
        return searched_for(raw.get("condition"), raw.get("task")) if isinstance(raw, dict) else FREE
    if row.get("mode", "free") == "free":
        return FREE
    named, image = (row.get("meta") or {}).get("target"), row.get("target_image")
    name = named if isinstance(named, str) else _bare(image) if isinstance(image, str) else None
    return name.lower() if name else None


def _bare(name: str) -> str:
    """A name without folder and picture's ending: img.1 may be one of several images."""
    path = PurePosixPath(name.replace("\\", "/"))
    return (path.stem if path.suffix.lower() in SUFFIXES else path.name) or name


def _read_json(path: Path, frame: Size | None, found: ReadSet) -> None:
    try:
        content = orjson.loads(_bytes(path))
        if isinstance(content, list):
            _add_coco(found, TypeAdapter(list[CocoPath]).validate_python(content), path, frame)
        elif not isinstance(content, dict):
            raise InputError(f"{path} must be a JSON list or object of scanpaths")
        elif isinstance(content.get("scanpaths"), list):
            _add_cells(found, TypeAdapter(list[CellPath]).validate_python(content["scanpaths"]), frame or CELL_FRAME)
        else:
            _read_published(path, found)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    except ValidationError as error:
        found.problems += as_problems(error, str(path))


def _add_coco(found: ReadSet, entries: Sequence[CocoPath], path: Path, frame: Size | None) -> None:
    frames, agents = sidecar(path.with_name(f"{path.name}.export.json"))
    without = 0
    for index, entry in enumerate(entries):
        subject = str(entry.subject)
        size = frames.get((entry.name, subject)) or frames.get((entry.name, None)) or frame
        if size is None:
            without += 1
            continue
        target = searched_for(entry.condition, entry.task)
        agent, sample = agents.get(subject, (subject, None))
        recorded = Recorded(
            stimulus=f"{entry.name} [{target}]" if target else entry.name,
            subject=subject if sample is None else f"{agent}#{sample}",
            agent=agent,
            fixations=tuple(zip(entry.X, entry.Y, strict=True)),
            frame=size,
            durations=None if entry.T is None else tuple(entry.T),
            names=(_bare(entry.name),),
            target=target,
        )
        _add(found, recorded, Problem(str(path), None, str(index), ""))
    if without:
        message = f"the file does not say of which frame {without:,} of its paths are; give --frame WIDTHxHEIGHT"
        found.problems.append(Problem(str(path), None, None, message))


def searched_for(condition: Any, task: str | None) -> str | None:
    """What an entry of COCO-Search18's list says was searched for: nothing in free viewing; None if it does not say."""
    if condition == "freeview":
        return FREE
    return None if task in (None, "", "none") else str(task).lower()


def sidecar(path: Path) -> tuple[Mapping[tuple[str, str | None], Size], Mapping[str, tuple[str, int]]]:
    """Frames by (name, subject), and (agent, sample) by subject, from the side-car of an export; maybe none."""
    if not path.is_file():
        return {}, {}
    try:
        content = orjson.loads(_bytes(path))
        frames: dict[tuple[str, str | None], Size] = {
            (name, None): (size[0], size[1]) for name, size in content.get("frames", {}).items()
        }
        for other in content.get("other_frames", ()):
            frames[other["name"], str(other["subject"])] = (other["frame"][0], other["frame"][1])
        return frames, {number: (who["agent"], who["sample"]) for number, who in content.get("subjects", {}).items()}
    except (orjson.JSONDecodeError, AttributeError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"{path} is not the side-car of an export: {error!r}") from None


def _add_cells(found: ReadSet, entries: Sequence[CellPath], frame: Size) -> None:
    """Each cell becomes its centre. Nobody says who looked: each path is a subject."""
    seen: Counter[str] = Counter()
    for index, entry in enumerate(entries):
        seen[entry.image] += 1
        cells = [divmod(number - 1, CELLS) for number in entry.grid64]
        points = tuple(((x + 0.5) * frame[0] / CELLS, (y + 0.5) * frame[1] / CELLS) for y, x in cells)
        names, subject = (_bare(entry.image),), f"#{seen[entry.image]}"
        path = Recorded(entry.image, subject, None, points, frame, names=names, target=FREE)
        _add(found, path, Problem("", None, str(index), ""))


def _read_published(path: Path, found: ReadSet) -> None:
    try:
        source = read_source(path, TASK, path.stem.lower())
    except InputError as error:
        raise InputError(f"{path} {error}", error.problems) from None
    seen: Counter[tuple[str, str]] = Counter()
    for record in source.records("0" * 12):
        key = record["agent"], record["stimulus"]
        record["sample"] = seen[key]
        seen[key] += 1
        _add_record(found, f"{path}, stimulus {record['stimulus']!r}", None, record, None)
