"""What a line must be to be read as a record: cheap checks, as marks at the fields of a record."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Readable:
    """A mark at a field of :class:`serving.runs.records.Record`: what its value must be, for a line to be a record.

    Files of records are read often, and a full validation takes ten times as long as parsing. ``is_readable`` asks only
    for what readers rely on without looking: types that are compared, counted or looked into."""

    is_readable: Callable[[Any], bool]


def is_text(value: Any) -> bool:
    """JSON's string, as names and ids are."""
    return isinstance(value, str)


def is_count(value: Any) -> bool:
    """A whole number from 0 on, below 2^53; a bool is no number here."""
    return type(value) is int and 0 <= value < 2**53


def is_seed(value: Any) -> bool:
    """A whole number from 0 on, or null."""
    return value is None or (type(value) is int and value >= 0)


def is_object(value: Any) -> bool:
    """JSON's mapping, read as a dict."""
    return isinstance(value, dict)


def is_object_or_null(value: Any) -> bool:
    """JSON's mapping, read as a dict, or None where there is none."""
    return value is None or isinstance(value, dict)
