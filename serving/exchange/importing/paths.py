"""Scanpaths in people's tables: a whole path in a row, or a fixation in a row."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from agents.errors import InputError
from agents.frames import Point
from agents.stimuli import Task
from serving.exchange.importing.path_units import Path, add_scaled
from serving.exchange.importing.people_table import TableRow
from serving.exchange.importing.repeated_rows import tell_several_answers
from serving.exchange.importing.source import PUBLISHED, listed, person
from serving.exchange.importing.table_cells import NUMBER, CellText, is_empty, list_in, shortened
from serving.exchange.importing.table_columns import ACROSS, DOWN, DURATIONS, ORDER, REPETITION, plain_column
from serving.exchange.importing.table_reader import TableReader
from serving.exchange.importing.truth_column import machines_of
from serving.files.words import count, shown

TASK: Task = "attention_prediction"
EYES = ("eyeused", "eyetracked", "eye", "eyeid")
FROM_BELOW = "normpos"  # begins the names of Pupil's columns of shares, whose y counts from the bottom


def add_paths(reader: TableReader) -> None:
    """Add the scanpaths of a table to ``reader.source``. Raises InputError; faults of single cells go to
    ``reader.problems``."""
    if reader.options.frame is None:
        raise InputError("does not say of which frame its paths are; give --frame WIDTHxHEIGHT")
    reader.name_stimuli()
    across = reader.columns.find("x", ACROSS)
    down = reader.columns.find("y", DOWN)
    is_said = reader.options.origin == "bottom-left"
    if down is not None and plain_column(down).startswith(FROM_BELOW) and not is_said:
        raise InputError(
            f"has in column {shown(down)} heights that count from the bottom of the frame, as Pupil's do. Give "
            "--origin bottom-left"
        )
    response = next(iter(reader.columns.named(("response",))), None)
    has_paths = response is not None and _are_lists(reader, response)
    if across is None or down is None or has_paths or "response" in reader.columns.given:
        paths = _of_lists(reader)
    elif _are_lists(reader, across):
        paths = _of_lists(reader, (across, down))
    else:
        paths = _of_fixations(reader, across, down)
    _refuse_onsets(reader, paths)
    for path in paths:
        if not path.agent.startswith(PUBLISHED):
            path.about = reader.about(path.rows[0])
    add_scaled(reader.source, paths, reader.options, reader.options.frame)
    rows = [path.rows[0] for path in paths]
    tell_several_answers(reader.source, reader.table, rows, "answer", counts_once=False)


def _refuse_onsets(reader: TableReader, paths: Sequence[Path]) -> None:
    """Raises InputError where the column of durations holds the times at which fixations began: within a path they only
    rise. A column ``t`` is either, and a duration of 0 ms there is no fixation."""
    column = reader.columns.find("durations", DURATIONS)
    timed = [path.durations for path in paths if path.durations is not None and len(path.durations) >= 2]
    if column is None or not timed:
        return
    rises = all(before < after for times in timed for before, after in pairwise(times))
    begins_at_zero = all(times[0] == 0 for times in timed)
    are_long = len(timed) >= 3 and all(len(times) >= 3 for times in timed)  # by chance once in 216 files
    if rises and (begins_at_zero or are_long):
        raise InputError(
            f"has in column {shown(column)} numbers that rise along every path: these are times at which fixations "
            "began, not durations. Name the column onset, and say where durations stand with --columns durations=NAME"
        )


# a path in a row


def _are_lists(reader: TableReader, column: str) -> bool:
    """Whether the cells of a column are lists, as X and Y of COCO-Search18: the first filled one says it."""
    for row in reader.table.rows:
        cell = row.cells.get(column, "").strip()
        if not is_empty(cell):
            return cell.startswith("[")
    return False


def _of_lists(reader: TableReader, axes: tuple[str, str] | None = None) -> list[Path]:
    """Paths of a row each; their points stand in the answer, or their X and Y in two columns, ``axes``."""
    column = reader.response_column() if axes is None else axes[0]
    durations_column = reader.columns.find("durations", DURATIONS)
    found: list[tuple[TableRow, list[Point]]] = []
    for row in reader.table.rows:
        cell = row.cells.get(column, "").strip()
        if not reader.stimulus(row):
            reader.leave_out(row, None)
            continue
        if is_empty(cell):
            reader.leave_out(row, CellText("missing", said_so=cell))
            continue
        points = _points(cell) if axes is None else _points_of_axes(cell, row.cells.get(axes[1], ""))
        if points == []:
            reader.leave_out(row, CellText("missing", said_so="[]"))
        elif points is not None:
            found.append((row, points))
        elif axes is None:
            reader.fault(row, column, "must be a list of points, [[x, y], …]")
        else:
            reader.fault(row, column, f"must be a list of numbers, as long as that of {shown(axes[1])}")
    reader.tell_left_out(column, "rows_without_a_stimulus", "rows_without_an_answer")
    if not found and not reader.problems:
        reader.refuse_nothing()
    machines = machines_of(reader, [row for row, _ in found])
    reader.name_people([row for row, _ in found if id(row) not in machines])
    reader.drop_equal_rows()
    row_ids = {id(row) for row in reader.table.rows}
    found = [(row, points) for row, points in found if id(row) in row_ids]
    durations = [_durations(reader, row, durations_column, len(points)) for row, points in found]
    views = Counter((_agent(reader, machines, row), reader.stimulus(row)) for row, _ in found)
    are_single = bool(found) and all(len(points) == 1 for _, points in found)
    if are_single and any(number > 1 for number in views.values()):
        fixations = [_Fixation(row, points[0], times) for (row, points), times in zip(found, durations, strict=True)]
        return _joined(reader, fixations, machines)
    times_of_response = reader.times([row for row, _ in found])
    paths = []
    for place, ((row, points), times) in enumerate(zip(found, durations, strict=True)):
        raw: Any = points
        if times_of_response[place] is not None:
            raw = {"response": points, "rt": times_of_response[place]}
        agent = _agent(reader, machines, row)
        paths.append(Path(reader.stimulus(row), agent, points, times, raw=raw, rows=[row]))
    return paths


def _agent(reader: TableReader, machines: Mapping[int, str], row: TableRow) -> str:
    return machines.get(id(row)) or reader.person(row)


def _points(cell: str) -> list[Point] | None:
    value = list_in(cell)
    if value is None:
        return None
    points = []
    for point in value:
        if not isinstance(point, list | tuple) or len(point) != 2 or not all(map(_is_number, point)):
            return None
        points.append(list(point))
    return points


def _points_of_axes(across: str, down: str) -> list[Point] | None:
    xs = list_in(across)
    ys = list_in(down)
    if xs is None or ys is None or len(xs) != len(ys) or not all(map(_is_number, [*xs, *ys])):
        return None
    return [[x, y] for x, y in zip(xs, ys, strict=True)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


def _durations(reader: TableReader, row: TableRow, column: str | None, number: int) -> list[float] | None:
    """The durations of a path's fixations as they stand, one number or a list of them; None where there are none."""
    if column is None:
        return None
    cell = row.cells.get(column, "").strip()
    if _is_nothing(cell):
        return None
    value = [float(cell)] if NUMBER.fullmatch(cell) else list_in(cell)
    if value is None or not all(_is_number(duration) and duration >= 0 for duration in value):
        reader.fault(row, column, f"must be the fixations' durations in milliseconds, not {shortened(cell)!r}")
        return None
    if len(value) != number:
        reader.fault(row, column, f"has {count(len(value), 'duration')}, but the path has {count(number, 'fixation')}")
        return None
    return [float(duration) for duration in value]


def _is_nothing(cell: str) -> bool:
    """Whether a cell has no number. EyeLink's Data Viewer writes a dot there."""
    return cell.strip() == "." or is_empty(cell)


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
        elif all(map(_is_nothing, cells)):
            reader.leave_out(row, CellText("missing"))
        elif not all(map(NUMBER.fullmatch, cells)):
            reader.fault(row, across, f"must be the pixels of a fixation, not {shortened(', '.join(cells))!r}")
        else:
            point = [float(cell) for cell in cells]
            fixations.append(_Fixation(row, point, _durations(reader, row, durations_column, 1)))
    reader.tell_left_out(across, "rows_without_a_stimulus", "rows_without_an_answer")
    if not fixations and not reader.problems:
        reader.refuse_nothing()
    machines = machines_of(reader, [fixation.row for fixation in fixations])
    reader.name_people([fixation.row for fixation in fixations if id(fixation.row) not in machines])
    reader.drop_equal_rows(are_fixations=True)
    row_ids = {id(row) for row in reader.table.rows}
    return _joined(reader, [fixation for fixation in fixations if id(fixation.row) in row_ids], machines)


def _joined(reader: TableReader, fixations: Sequence[_Fixation], machines: Mapping[int, str]) -> list[Path]:
    """The paths of rows of one fixation each, in the order of the fixations' numbers, else of the file.

    Rows of one person, one stimulus and (where columns have them) one trial, block or target are a path. Where a number
    of a fixation comes again, another path begins. Raises InputError for rows without a person, and where both eyes
    have rows.
    """
    nameless = [fixation.row for fixation in fixations if _agent(reader, machines, fixation.row) == person("")]
    if nameless and not reader.problems:
        places = listed([row.place for row in nameless])
        raise InputError(
            f"has one fixation in each row, but {count(len(nameless), 'row')} (at {places}) name no person, so that "
            "fixations cannot be grouped into paths. Give the column of who looked with --columns subject=NAME"
        )
    orders = reader.columns.named(ORDER)
    order = reader.columns.use(orders[0]) if orders else None
    repetitions = [name for name in reader.columns.named(REPETITION) if name not in reader.columns.used]
    for name in repetitions:
        reader.columns.use(name)
    views: dict[tuple[str, ...], list[list[_Fixation]]] = defaultdict(list)
    numbers: dict[tuple[str, ...], set[str]] = {}  # of the last path of a view
    for fixation in fixations:
        cells = fixation.row.cells
        view = (
            _agent(reader, machines, fixation.row),
            reader.stimulus(fixation.row),
            *(cells.get(name, "") for name in repetitions),
        )
        number = "" if order is None else _number(reader, fixation.row, order)
        last = views[view][-1][-1] if views[view] else None
        if last is not None and number in numbers[view] and _are_samples(last, fixation, order):
            raise InputError(
                f"has rows {last.row.place} and {fixation.row.place} with one number in column {shown(order or '')} "
                "and one place: these are samples of the gaze. Keep one row of each fixation"
            )
        if not views[view] or (number and number in numbers[view]):
            views[view].append([])
            numbers[view] = set()
        views[view][-1].append(fixation)
        numbers[view].add(number)
    _refuse_two_eyes(reader, views)
    paths = []
    for (agent, stimulus, *_), view_paths in views.items():
        for path in view_paths:
            paths.append(_path_of(agent, stimulus, _in_order(path, order)))
    reader.source.noticed["rows_of_one_fixation"] += len(fixations)
    reader.source.remarks.append(
        f"{count(len(fixations), 'row')} of one fixation each became {count(len(paths), 'path')}, in the order of "
        f"{'the file' if order is None else f'column {shown(order)}'}"
    )
    return paths


def _are_samples(before: _Fixation, fixation: _Fixation, order: str | None) -> bool:
    """Whether two rows after each other are of one fixation: they have its number and its place."""
    if order is None or before.row.cells.get(order) != fixation.row.cells.get(order):
        return False
    return before.point == fixation.point


def _number(reader: TableReader, row: TableRow, order: str) -> str:
    """A fixation's number as it stands; a fault where there is none."""
    cell = row.cells.get(order, "").strip()
    if not NUMBER.fullmatch(cell):
        reader.fault(row, order, f"must be the fixation's number in its path, not {shortened(cell)!r}")
    return cell


def _refuse_two_eyes(reader: TableReader, views: Mapping[tuple[str, ...], Sequence[Sequence[_Fixation]]]) -> None:
    """Raises InputError where both eyes of a person have rows: joined, each fixation would stand there twice."""
    for eye in reader.columns.named(EYES):
        for paths in views.values():
            eyes = {fixation.row.cells.get(eye, "").strip() for path in paths for fixation in path}
            eyes = {cell for cell in eyes if not _is_nothing(cell)}
            if len(eyes) > 1:
                raise InputError(
                    f"has fixations of {' and '.join(sorted(eyes))} in column {shown(eye)}; take one eye with "
                    f"--rows {shown(eye)}={shown(max(eyes))}"
                )


def _in_order(path: Sequence[_Fixation], order: str | None) -> list[_Fixation]:
    if order is None or not all(NUMBER.fullmatch(fixation.row.cells.get(order, "").strip()) for fixation in path):
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
