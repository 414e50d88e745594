"""Scanpaths of people's tables: a path in a row, or a fixation in a row; and the units of paths of any file.

A frame is the screen or window in whose pixels the coordinates are; ``--frame`` says its size. What cannot be pixels is
not taken for pixels: coordinates from 0 to 1 are shares of the frame, durations below 20 are seconds.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.answers import ScanpathAnswer, plain
from agents.attention.frames import outside
from agents.errors import InputError
from agents.stimuli import Task
from serving.runs.import_source import ImportOptions, Size, Source, person
from serving.runs.people_table import TableRow, tell_several_answers
from serving.runs.row_problems import count, shown
from serving.runs.table_cells import NO_ANSWER, NUMBER, CellText, shortened, structured
from serving.runs.table_columns import ACROSS, DOWN, DURATIONS, ORDER, REPETITION
from serving.runs.table_reader import TableReader, are_seconds

TASK: Task = "attention_prediction"
Point = list[float]  # x and y
NONE = (".", "")  # EyeLink's Data Viewer writes a dot where there is no number


@dataclass(slots=True)
class Path:
    """A path as it stands in a file; ``rows`` are the table's rows that it came from, ``raw`` what is kept of them."""

    stimulus: str
    agent: str
    points: list[Point]
    durations: list[float] | None = None
    found: bool | None = None
    raw: Any = None
    rows: list[TableRow] = field(default_factory=list)


def add_paths(reader: TableReader) -> None:
    """Add the scanpaths of a table. Raises InputError."""
    if reader.options.frame is None:
        raise InputError("does not say of which frame its paths are; give --frame WIDTHxHEIGHT")
    reader.name_stimuli()
    across = reader.columns.find("x", ACROSS)
    down = reader.columns.find("y", DOWN)
    if across is not None and down is not None and "response" not in reader.columns.names:
        paths = _of_fixations(reader, across, down)
    else:
        paths = _of_lists(reader)
    add_scaled(reader.source, paths, reader.options, reader.options.frame)
    answered = [(path.agent, path.stimulus, path.rows[0]) for path in paths if path.agent != person("")]
    tell_several_answers(reader.source, reader.table, answered, "answer", counts_once=False)


# a path in a row


def _of_lists(reader: TableReader) -> list[Path]:
    column = reader.response_column()
    durations_column = reader.columns.find("durations", DURATIONS)
    found: list[tuple[TableRow, list[Point]]] = []
    for row in reader.table.rows:
        cell = row.cells.get(column, "").strip()
        if not reader.stimulus(row):
            reader.leave_out(row, None)
        elif not cell or cell in NO_ANSWER:
            reader.leave_out(row, CellText("missing", said_so=cell))
        elif (points := _points(cell)) is None:
            reader.fault(row, column, "must be a list of points, [[x, y], …]")
        else:
            found.append((row, points))
    reader.tell_left_out(column, "rows_without_a_stimulus", "rows_without_an_answer")
    if not found and not reader.problems:
        reader.refuse_nothing()
    reader.name_people([row for row, _ in found])
    reader.drop_equal_rows()
    kept = {id(row) for row in reader.table.rows}
    found = [(row, points) for row, points in found if id(row) in kept]
    durations = [_durations(reader, row, durations_column, len(points)) for row, points in found]
    by_view: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, (row, _) in enumerate(found):
        by_view[reader.person(row), reader.stimulus(row)].append(at)
    are_single = bool(found) and all(len(points) == 1 for _, points in found)
    if are_single and any(len(places) > 1 for places in by_view.values()):
        fixations = [_Fixation(row, points[0], times) for (row, points), times in zip(found, durations, strict=True)]
        return _joined(reader, fixations)
    times_of_response = reader.times([row for row, _ in found])
    paths = []
    for at, ((row, points), times) in enumerate(zip(found, durations, strict=True)):
        raw: Any = points
        if at in times_of_response:
            raw = {"response": points, "rt": times_of_response[at]}
        paths.append(Path(reader.stimulus(row), reader.person(row), points, times, raw=raw, rows=[row]))
    return paths


def _points(cell: str) -> list[Point] | None:
    value = structured(cell)
    if not isinstance(value, list):
        return None
    points = []
    for point in value:
        if not isinstance(point, list | tuple) or len(point) != 2 or not all(map(_is_number, point)):
            return None
        points.append(list(point))
    return points


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


def _durations(reader: TableReader, row: TableRow, column: str | None, number: int) -> list[float] | None:
    """The durations of a path's fixations as they stand, one number or a list of them; None where there are none."""
    if column is None:
        return None
    cell = row.cells.get(column, "").strip()
    if cell in NONE or cell in NO_ANSWER or cell == "null":
        return None
    value = structured(cell)
    if value is None and NUMBER.fullmatch(cell):
        value = [float(cell)]
    if not isinstance(value, list) or not all(_is_number(each) and each >= 0 for each in value):
        reader.fault(row, column, f"must be the fixations' durations in milliseconds, not {shortened(cell)!r}")
        return None
    if len(value) != number:
        reader.fault(row, column, f"has {count(len(value), 'duration')}, but the path has {count(number, 'fixation')}")
        return None
    return [float(each) for each in value]


# a fixation in a row


@dataclass(frozen=True, slots=True)
class _Fixation:
    row: TableRow
    point: Point
    durations: list[float] | None


def _of_fixations(reader: TableReader, across: str, down: str) -> list[Path]:
    durations_column = reader.columns.find("durations", DURATIONS)
    fixations = []
    for row in reader.table.rows:
        cells = [row.cells.get(across, "").strip(), row.cells.get(down, "").strip()]
        if not reader.stimulus(row):
            reader.leave_out(row, None)
        elif all(cell in NONE or cell in NO_ANSWER for cell in cells):
            reader.leave_out(row, CellText("missing"))
        elif not all(map(NUMBER.fullmatch, cells)):
            reader.fault(row, across, f"must be the pixels of a fixation, not {shortened(', '.join(cells))!r}")
        else:
            point = [float(cell) for cell in cells]
            fixations.append(_Fixation(row, point, _durations(reader, row, durations_column, 1)))
    reader.tell_left_out(across, "rows_without_a_stimulus", "rows_without_an_answer")
    if not fixations and not reader.problems:
        reader.refuse_nothing()
    reader.name_people([fixation.row for fixation in fixations])
    reader.drop_equal_rows()
    kept = {id(row) for row in reader.table.rows}
    return _joined(reader, [fixation for fixation in fixations if id(fixation.row) in kept])


def _joined(reader: TableReader, fixations: Sequence[_Fixation]) -> list[Path]:
    """The paths of rows of one fixation each, in the order of the fixations' numbers, else of the file.

    Rows of one person, one stimulus and (where a column has it) one trial are a path. Where a number of a fixation
    comes again, another path begins.
    """
    orders = reader.columns.named(ORDER)
    order = reader.columns.use(orders[0]) if orders else None
    repetitions = [name for name in reader.columns.named(REPETITION) if name not in reader.columns.used]
    repetition = reader.columns.use(repetitions[0]) if repetitions else None
    views: dict[tuple[str, ...], list[list[_Fixation]]] = defaultdict(list)
    numbers: dict[tuple[str, ...], set[str]] = {}  # of the last path of a view
    for fixation in fixations:
        cells = fixation.row.cells
        view = (
            reader.person(fixation.row),
            reader.stimulus(fixation.row),
            "" if repetition is None else cells.get(repetition, ""),
        )
        number = "" if order is None else cells.get(order, "").strip()
        if not views[view] or (number and number in numbers[view]):
            views[view].append([])
            numbers[view] = set()
        views[view][-1].append(fixation)
        numbers[view].add(number)
    paths = []
    for (agent, stimulus, _), of_view in views.items():
        for path in of_view:
            paths.append(_path_of(agent, stimulus, _in_order(path, order)))
    reader.source.noticed["rows_of_one_fixation"] += len(fixations)
    reader.source.remarks.append(
        f"{count(len(fixations), 'row')} of one fixation each became {count(len(paths), 'path')}, in the order of "
        f"{'the file' if order is None else f'column {shown(order)}'}"
    )
    return paths


def _in_order(path: Sequence[_Fixation], order: str | None) -> list[_Fixation]:
    if order is None:
        return list(path)
    numbers = [fixation.row.cells.get(order, "").strip() for fixation in path]
    if not all(map(NUMBER.fullmatch, numbers)):
        return list(path)
    return sorted(path, key=lambda fixation: float(fixation.row.cells[order]))


def _path_of(agent: str, stimulus: str, fixations: Sequence[_Fixation]) -> Path:
    points = [fixation.point for fixation in fixations]
    durations: list[float] | None = []
    for fixation in fixations:
        if fixation.durations is None or durations is None:
            durations = None
        else:
            durations += fixation.durations
    raw: dict[str, Any] = {"fixations": points}
    if durations is not None:
        raw["durations"] = durations
    return Path(stimulus, agent, points, durations, raw=raw, rows=[fixation.row for fixation in fixations])


# units


def add_scaled(source: Source, paths: Sequence[Path], options: ImportOptions, frame: Size) -> None:
    """Add the paths of a file in pixels of ``frame``, with durations in milliseconds.

    Coordinates that all lie from 0 to 1 are shares of the frame's width and height, durations that are all below 20 are
    seconds; both are converted and told. Raises InputError for coordinates from -1 to 1, whose origin nobody can know.
    """
    across, down = _pixels_of_a_unit(source, paths, frame)
    times = [time for path in paths for time in path.durations or ()]
    is_seconds = options.rt == "seconds" if options.rt is not None else bool(times) and are_seconds(times)
    if times and options.rt is not None:
        source.used.add("rt")
    elif is_seconds:
        source.noticed["durations_taken_as_seconds"] += len(times)
        source.remarks.append(
            "all durations of fixations are below 20, so they are taken as seconds; --rt ms says otherwise"
        )
    if options.fit is not None:
        source.used.add("fit")
    source.used.add("frame")
    negative = 0
    for path in paths:
        points = [[_scaled(x, across), _scaled(y, down)] for x, y in path.points]
        durations = path.durations
        if durations is not None and is_seconds:
            durations = [round(time * 1000, 6) for time in durations]
        source.noticed["fixations_outside_their_frame"] += outside(points, frame)
        negative += sum(x < 0 or y < 0 for x, y in points)
        answer = ScanpathAnswer(
            fixations=points,
            frame=[int(side) for side in frame],
            fit=options.fit,
            durations_ms=durations,
            found=path.found,
        )
        source.add(path.stimulus, path.agent, path.raw, plain(answer))
    number = sum(len(path.points) for path in paths)
    if negative * 4 > number:
        source.remarks.append(
            f"{negative:,} of {count(number, 'fixation')} lie left of or above the frame: perhaps coordinates count "
            "from its middle. They must count from its top left corner, x to the right and y down"
        )


def _pixels_of_a_unit(source: Source, paths: Sequence[Path], frame: Size) -> tuple[float, float]:
    coordinates = [coordinate for path in paths for point in path.points for coordinate in point]
    has_fractions = any(coordinate != int(coordinate) for coordinate in coordinates)
    if not has_fractions or not all(-1 <= coordinate <= 1 for coordinate in coordinates):
        return 1, 1
    if any(coordinate < 0 for coordinate in coordinates):
        raise InputError(
            "has coordinates from -1 to 1, of which nobody can know the origin; write them in pixels from the top left "
            "corner"
        )
    source.noticed["coordinates_taken_as_shares_of_the_frame"] += len(coordinates)
    source.remarks.append(
        "all coordinates lie from 0 to 1, so they are taken as shares of the frame: 0.5 is "
        f"x {frame[0] / 2:g}, y {frame[1] / 2:g}"
    )
    return frame


def _scaled(coordinate: float, pixels: float) -> float:
    return coordinate if pixels == 1 else round(coordinate * pixels, 6)
