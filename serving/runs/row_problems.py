"""What is wrong with one row of a stimulus set: pydantic's messages, by field; and JSON without ambiguities."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from agents.errors import Problem, printable
from agents.stimuli import ALL_TASKS

Found = tuple[str | None, str]  # field, message
OURS = {  # pydantic's most frequent errors; other kinds keep its words
    "missing": "is missing",
    "extra_forbidden": "is no field here",
    "string_type": "must be text",
    "string_unicode": "is not UTF-8",
    "string_too_long": "must have at most {max_length} characters",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than_equal": "must be at least {ge:g}",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
}
MOST_LISTED = 1000  # problems of one row
SHOWN = 200  # characters of a message; what stands in a file may be of any length


def field_problems(error: ValidationError) -> list[Found]:
    """pydantic's errors about a stimulus as (field, message), each once; their number, where they are very many."""
    if error.error_count() > MOST_LISTED:
        return [(None, f"{error.error_count():,} fields are wrong")]
    found: dict[Found, None] = {}
    for item in error.errors(include_url=False, include_input=False):
        path, message = item["loc"], _told(item)
        if path and path[0] in ALL_TASKS:
            path = path[1:]
        if item["type"].startswith("union_tag"):
            missing = "is missing; " if item["type"] == "union_tag_not_found" else ""
            path, message = ("task",), f"{missing}must be one of {', '.join(ALL_TASKS)}"
        elif item["type"] == "json_invalid":
            message = message.replace(" at line 1 column", " at column")
        elif path[:1] == ("meta",) and len(path) == 3:  # one error for each branch of the union
            path, message = path[:2], "must be text, a finite number, true, false or null"
        found[".".join(shown(str(part)) for part in path) or None, shown(message)] = None
    return list(found)


def _told(item: Mapping[str, Any]) -> str:
    """One of pydantic's errors, in our words where it is a frequent one."""
    context = item.get("ctx", {})
    if item["type"] == "string_too_short" and context["min_length"] == 1:
        return "must not be empty"
    said: str = OURS.get(item["type"], "").format(**context) or item["msg"]
    return said.removeprefix("Value error, ")


def as_problems(error: ValidationError, where: str, line: int | None = None) -> list[Problem]:
    """pydantic's errors as problems, the place in the value being the field."""
    return [
        Problem(where, line, ".".join(map(str, item["loc"])) or None, _told(item))
        for item in error.errors(include_url=False, include_input=False)
    ]


def repeated_ids(where: str, field: str, entries: Iterable[tuple[int, str]]) -> list[Problem]:
    """A problem for each id that several ``entries`` (id, name) have: nobody knows which is meant."""
    names: dict[int, list[str]] = {}
    for id, name in entries:
        names.setdefault(id, []).append(name)
    return [
        Problem(where, None, field, shown(f"the id {id} stands {len(several)} times: {', '.join(several)}"))
        for id, several in names.items()
        if len(several) > 1
    ]


class RepeatedKeyError(ValueError):
    """A key stands twice in one JSON object, and nobody knows which value is meant."""


def strict_json(text: bytes | str) -> Any:
    """``text`` parsed. Raises ValueError also for NaN and Infinity, and RepeatedKeyError."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen = set[str]()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise RepeatedKeyError(f"the key '{shown(twice)}' stands twice in one object")
        return found

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not a number in JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def shown(text: str) -> str:
    """Text from a file as it may be printed, and short."""
    return printable(text if len(text) <= SHOWN else text[:SHOWN] + "…")
