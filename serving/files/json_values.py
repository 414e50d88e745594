"""Values of any program as JSON can hold them."""

from collections.abc import Mapping, Sequence
from typing import Any


def clean(value: Any) -> Any:
    """``value`` for JSON: lone surrogates replaced, infinities and NaN as null, other types as text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, Mapping):
        return {str(clean(str(key))): clean(part) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [clean(part) for part in value]
    return clean(str(value))
