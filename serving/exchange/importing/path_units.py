"""The units of scanpaths: what a file says becomes pixels of a frame and milliseconds, or is refused.

A frame is the screen or window in whose pixels the coordinates are; ``--frame`` says its size.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.answers import ScanpathAnswer, plain
from agents.errors import InputError
from agents.frames import Point, outside
from serving.exchange.importing.people_table import TableRow
from serving.exchange.importing.source import ImportOptions, Size, Source
from serving.exchange.importing.table_reader import are_seconds, middle_of
from serving.files.words import count

LARGEST_SHARE = 3  # a larger coordinate with decimals is no share of a frame, however far off somebody looked
PLAUSIBLE = (20, 5_000)  # milliseconds: a median duration of fixations outside is told
PERCENT = 100  # no coordinate in percent is larger
MOSTLY_INSIDE = 0.95  # shares of a frame: at least this part of the coordinates lies from 0 to 1


@dataclass(slots=True)
class Path:
    """A scanpath as it stands in a file, in the file's units."""

    stimulus: str
    """The id of the stimulus that was looked at."""
    agent: str
    """Who looked: "human:05" or "published:NAME"."""
    points: list[Point]
    """The fixations in their order, [x, y] from the top left."""
    durations: list[float] | None = None
    """A duration for each point; None where the file has none."""
    found: bool | None = None
    """Whether the target was found; None where nobody noted it."""
    raw: Any = None
    """What the record keeps of the file, as JSON."""
    about: Mapping[str, str] | None = None
    """What is told about who looked, ``{"age": "31"}``; None where nothing is."""
    rows: list[TableRow] = field(default_factory=list)
    """The table's rows that the path came from; [] where the file is no table."""


def add_scaled(source: Source, paths: Sequence[Path], options: ImportOptions, frame: Size) -> None:
    """Add the paths of a file to ``source``, in pixels of ``frame`` and with durations in milliseconds.

    Without ``--units``, coordinates from 0 to 1 are shares of the frame's width and height. Durations with a median
    below 20 are seconds. Both are converted, and a remark tells it. Raises InputError for coordinates whose unit or
    origin nobody can know.
    """
    place = _placing(source, paths, options, frame)
    are_in_seconds = _are_in_seconds(source, paths, options)
    if options.fit is not None:
        source.used.add("fit")
    source.used.add("frame")
    for path in paths:
        points = [place(point) for point in path.points]
        durations = path.durations
        if durations is not None and are_in_seconds:
            durations = [round(time * 1000, 6) for time in durations]
        source.noticed["fixations_outside_their_frame"] += outside(points, frame)
        answer = ScanpathAnswer(
            fixations=points,
            frame=[int(side) for side in frame],
            fit=options.fit,
            durations_ms=durations,
            found=path.found,
        )
        source.add(path.stimulus, path.agent, path.raw, plain(answer), meta=path.about)


def _are_in_seconds(source: Source, paths: Sequence[Path], options: ImportOptions) -> bool:
    times = [time for path in paths for time in path.durations or ()]
    if not times:
        return False
    if options.rt is not None:
        source.used.add("rt")
        return options.rt == "seconds"
    if not are_seconds(times):
        middle = middle_of(times)
        if middle is not None and not PLAUSIBLE[0] <= middle <= PLAUSIBLE[1]:
            source.remarks.append(
                f"half of the fixations last at most {middle:g} ms, which is odd for people; durations must be "
                "milliseconds, or seconds with --rt seconds"
            )
        return False
    source.noticed["durations_taken_as_seconds"] += len(times)
    source.remarks.append(
        f"half of the fixations last at most {middle_of(times):g}, so durations are taken as seconds; --rt ms says "
        "otherwise"
    )
    return True


def _placing(source: Source, paths: Sequence[Path], options: ImportOptions, frame: Size) -> Callable[[Point], Point]:
    """What makes of a point of the file a point in pixels from the frame's top left corner, y down. Raises
    InputError."""
    origin = options.origin or "top-left"
    is_center = origin in ("center", "center-down")
    for name in ("origin", "units"):
        if getattr(options, name) is not None:
            source.used.add(name)
    if options.units == "norm" and not is_center:
        raise InputError("--units norm counts from the center of the frame: give --origin center, too")
    across, down = _pixels_of_a_unit(source, paths, options, frame, is_center=is_center)
    if options.origin is None:
        _refuse_middle(source, paths)
    left = frame[0] / 2 if is_center else 0
    top = {"top-left": 0, "bottom-left": frame[1]}.get(origin, frame[1] / 2)
    is_upward = origin in ("bottom-left", "center")
    if options.origin is not None or options.units is not None:
        direction = "upward" if is_upward else "downward"
        source.remarks.append(
            f"coordinates count from x {left:g}, y {top:g} of the frame, y {direction}; one unit is {across:g} pixels "
            f"across and {down:g} down"
        )
    sign = -1 if is_upward else 1

    def place(point: Point) -> Point:
        x, y = point
        return [_moved(left, _scaled(x, across)), _moved(top, sign * _scaled(y, down))]

    return place


def _pixels_of_a_unit(
    source: Source, paths: Sequence[Path], options: ImportOptions, frame: Size, *, is_center: bool
) -> tuple[float, float]:
    """How many pixels one unit of x and one of y has: (1, 1) for pixels, the frame's width and height for shares."""
    if options.units == "pixels":
        return 1, 1
    if options.units == "height":
        return frame[1], frame[1]
    if options.units == "norm":
        return frame[0] / 2, frame[1] / 2
    points = [point for path in paths for point in path.points]
    coordinates = [coordinate for point in points for coordinate in point]
    if not coordinates:
        return 1, 1
    has_fractions = any(coordinate != int(coordinate) for coordinate in coordinates)
    largest = max(map(abs, coordinates))
    if not has_fractions or largest > LARGEST_SHARE:
        if largest <= PERCENT and min(frame) > 2 * PERCENT:
            source.remarks.append(
                f"no coordinate is beyond {largest:g}, in a frame of {frame[0]} x {frame[1]}: perhaps they are percent "
                "or degrees. They must be pixels of the frame"
            )
        return 1, 1
    if is_center:
        raise InputError(
            f"has coordinates from {min(coordinates):g} to {max(coordinates):g}: these are no pixels. Say their unit "
            "with --units height or --units norm"
        )
    inside = sum(0 <= coordinate <= 1 for coordinate in coordinates)
    if inside < MOSTLY_INSIDE * len(coordinates):
        raise InputError(
            f"has coordinates from {min(coordinates):g} to {max(coordinates):g}, of which nobody can know the unit and "
            "the origin; say both with --origin and --units, or write pixels from the top left corner"
        )
    source.noticed["coordinates_taken_as_shares_of_the_frame"] += len(coordinates)
    where = (
        "all coordinates lie" if inside == len(coordinates) else f"{inside:,} of {len(coordinates):,} coordinates lie"
    )
    source.remarks.append(
        f"{where} from 0 to 1, so they are taken as shares of the frame: 0.5 is x {frame[0] / 2:g}, y {frame[1] / 2:g}"
    )
    return frame


def _refuse_middle(source: Source, paths: Sequence[Path]) -> None:
    """Tell where many fixations lie left of or above the frame. Raises InputError where most do: then coordinates count
    from the middle, and every path would lie elsewhere."""
    points = [point for path in paths for point in path.points]
    negative = sum(x < 0 or y < 0 for x, y in points)
    sentence = f"{negative:,} of {count(len(points), 'fixation')} lie left of or above the frame"
    rule = "Without --origin they count from its top left corner, x to the right and y down. PsychoPy: --origin center"
    if negative * 2 > len(points):
        raise InputError(f"{sentence}: it seems that coordinates count from its middle. {rule}")
    if negative * 4 > len(points):
        source.remarks.append(f"{sentence}: perhaps coordinates count from its middle. {rule}")


def _moved(start: float, coordinate: float) -> float:
    return coordinate if start == 0 else round(start + coordinate, 6)


def _scaled(coordinate: float, pixels: float) -> float:
    return coordinate if pixels == 1 else round(coordinate * pixels, 6)
