"""Problems of rows in plain words; strict JSON."""

import json
from typing import Any

from pydantic import ValidationError

from agents.errors import Problem
from agents.stimuli import ALL_TASKS
from serving.files.words import shown

FieldProblem = tuple[str | None, str]  # field, message
MESSAGES = {  # pydantic's most frequent errors; others keep its words
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


def field_problems(error: ValidationError) -> list[FieldProblem]:
    """pydantic's errors as (field, message), each once."""
    problems: dict[FieldProblem, None] = {}
    for item in error.errors(include_url=False, include_input=False):
        path = item["loc"]
        context = item.get("ctx", {})
        message = MESSAGES.get(item["type"], "").format(**context) or item["msg"].removeprefix("Value error, ")
        if path and path[0] in ALL_TASKS:
            path = path[1:]
        if item["type"].startswith("union_tag"):
            missing = "is missing; " if item["type"] == "union_tag_not_found" else ""
            path = ("task",)
            message = f"{missing}must be one of {', '.join(ALL_TASKS)}"
        elif item["type"] == "string_too_short" and context["min_length"] == 1:
            message = "must not be empty"
        elif path[:1] == ("meta",) and len(path) == 3:  # an error for each branch of the union
            path = path[:2]
            message = "must be text, a finite number, true, false or null"
        problems[".".join(shown(str(part)) for part in path) or None, shown(message)] = None
    return list(problems)


def as_problems(error: ValidationError, where: str, line: int | None = None) -> list[Problem]:
    """Pydantic's errors of the file ``where``, or of its line, one problem for each field."""
    return [Problem(where, line, *problem) for problem in field_problems(error)]


class RepeatedKeyError(ValueError):
    """A key stands twice in a JSON object."""


def strict_json(text: bytes | str) -> Any:
    """``text`` parsed. Raises ValueError also for NaN and Infinity, and RepeatedKeyError."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise RepeatedKeyError(f"the key '{shown(name)}' stands twice in one object")
        fields[name] = value
    return fields


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")
