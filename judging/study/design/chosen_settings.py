"""``turinglike study new --set trials.number=20``: settings that are chosen when ``study.toml`` is written."""

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

import orjson

from agents.errors import InputError, Problem

QUOTES = '"""'  # of a text over several lines


def with_settings(text: str, assignments: Sequence[str]) -> str:
    """The text of a ``study.toml`` with other values: ``trials.number=20``, or ``texts.title=Who wrote this?``.

    A value is JSON, or else a text; a setting that is a text stays one. Comments stay. Raises InputError with all that
    is wrong: what is no assignment, and settings that this kind of study has not."""
    problems: list[Problem] = []
    for assignment in assignments:
        name, equals, given = assignment.partition("=")
        place = _place(text, name)
        if not equals:
            problems.append(Problem("--set", None, None, f"{assignment!r} must be as trials.number=20"))
        elif place is None:
            problems.append(Problem("--set", None, name, f"a study of this kind has the settings {_names(text)}"))
        else:
            start, end = place
            value = _value(given, is_text=text[start] == '"')
            if value is None:
                problems.append(Problem("--set", None, name, "null is no value of a setting"))
            else:
                text = text[:start] + _toml(value) + text[end:]
    if problems:
        raise InputError("the settings cannot be used", problems)
    return text


def _value(given: str, *, is_text: bool) -> Any:
    """``given`` as JSON; as a text where it is none, or where the setting is a text: a title may be 2001."""
    try:
        value = orjson.loads(given)
    except orjson.JSONDecodeError:
        return given
    return given if is_text and not isinstance(value, str) else value


def _place(text: str, name: str) -> tuple[int, int] | None:
    """Where the value of ``table.key``, or of a ``key`` before all tables, begins and ends in the text."""
    table, _, key = name.rpartition(".")
    start = 0
    if table:
        head = re.search(rf"^\[{re.escape(table)}\]", text, re.MULTILINE)
        if head is None:
            return None
        start = head.end()
    next_head = re.compile(r"^\[", re.MULTILINE).search(text, start)
    end = next_head.start() if next_head else len(text)
    line = re.compile(rf"^{re.escape(key)} = ", re.MULTILINE).search(text, start, end)
    if not key or line is None:
        return None
    value = line.end()
    if text.startswith(QUOTES, value):
        return value, text.index(QUOTES, value + len(QUOTES)) + len(QUOTES)
    return value, _end_of_value(text, value)


def _end_of_value(text: str, start: int) -> int:
    """Where a value ends that stands on one line: the longest part of the line that TOML reads, without a comment."""
    line = text[start:].partition("\n")[0]
    stops = [len(line), *(at.start() for at in re.finditer("#", line))]
    for stop in sorted(stops):
        part = line[:stop].rstrip()
        try:
            tomllib.loads(f"x = {part}")
        except tomllib.TOMLDecodeError:
            continue
        return start + len(part)
    return start + len(line)


def _names(text: str) -> str:
    names: list[str] = []
    for key, value in tomllib.loads(text).items():
        if isinstance(value, dict):
            names += [f"{key}.{name}" for name in value]
        else:
            names.append(key)
    return ", ".join(names)


def _toml(value: Any) -> str:
    """A value of JSON as TOML, which writes all but tables in the same way."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False)
