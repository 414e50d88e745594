"""What is wrong with one row of a stimulus set, said for a person: every problem at once, each with its field.

Only rows that pydantic has refused, or whose keys may repeat, come here; the many good ones never do.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from agents import stimuli
from agents.stimuli import ADAPTER, TASKS, Utterance

MODELS: dict[str, type[BaseModel]] = {
    "color_estimation": stimuli.ColorStimulus,
    "object_detection": stimuli.ObjectStimulus,
    "attention_prediction": stimuli.AttentionStimulus,
    "image_captioning": stimuli.CaptionStimulus,
    "word_association": stimuli.WordStimulus,
    "conversation": stimuli.ConversationStimulus,
}
MAX_DEPTH = 100
_COMMON = ("id", "benchmark_id", "source", "source_id", "meta")
_STAND_IN = {"id": "x", "image": "x", "cue": "x"}  # for required fields, so that the other fields can be checked
_TOGETHER = {  # fields that a rule over several fields looks at, by the name of the rule
    "mode": {"mode", "target_image", "target_box", "target_mask"},
    "examples": {"version", "examples"},
    "names": {"names"},
}

Found = tuple[str | None, str]


class _Number:
    """Stands for NaN, Infinity or -Infinity, which are not JSON."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Repeated(dict[str, Any]):
    """An object in which a key stood more than once; the last value is kept."""

    keys_twice: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = _Repeated(found)
    names = [name for name, _ in pairs]
    repeated.keys_twice = tuple(name for name in found if names.count(name) > 1)
    return repeated


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_Number)


def repeats_a_key(text: bytes) -> bool:
    """Whether a key stands twice in one object anywhere in ``text``, which must be JSON."""
    found: Any = _DECODER.decode(text.decode())
    waiting = [found]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _Repeated):
            return True
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


def reads_as_json(text: str) -> bool:
    """Whether this is JSON, but perhaps for NaN or half characters, which :func:`read_object` tells of."""
    try:
        _DECODER.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def read_object(text: bytes) -> tuple[dict[str, Any] | None, list[Found]]:
    """The JSON object in ``text`` as plain values that JSON can hold again, and what had to be put right for that.

    None where there is no object at all; the problems then say why.
    """
    try:
        value = _DECODER.decode(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        return None, [(None, f"not UTF-8: byte 0x{text[error.start]:02x} at position {error.start + 1}")]
    except json.JSONDecodeError as error:
        return None, [(None, _syntax(error))]
    except RecursionError:
        return None, [(None, f"nested more than {MAX_DEPTH} levels deep")]
    except ValueError:  # Python's limit on the digits of an integer
        return None, [(None, "not JSON that can be read: a number with thousands of digits")]
    if not isinstance(value, dict):
        return None, [(None, f"must be a JSON object {{…}}, not {kind_of(value)}")]
    problems: list[Found] = []
    try:
        return _plain(value, "", problems, 0), problems
    except RecursionError:
        return None, [(None, f"nested more than {MAX_DEPTH} levels deep")]


def _plain(value: Any, path: str, problems: list[Found], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        for name in getattr(value, "keys_twice", ()):
            problems.append((_join(path, name), "stands more than once in the same object"))
        return {
            _text(name, path, problems): _plain(entry, _join(path, name), problems, depth + 1)
            for name, entry in value.items()
        }
    if isinstance(value, list):
        return [_plain(entry, _join(path, at), problems, depth + 1) for at, entry in enumerate(value)]
    if isinstance(value, str):
        return _text(value, path, problems)
    if isinstance(value, _Number):
        problems.append((path or None, f"{value.text} is not a number in JSON"))
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        problems.append((path or None, "a number too large to be kept"))
        return None
    return value


def _text(value: str, path: str, problems: list[Found]) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(value[error.start]):04x}"
        problems.append((path or None, f"{half} is half of a character (a lone surrogate)"))
        return value.encode("utf-8", "replace").decode()
    return value


def _syntax(error: json.JSONDecodeError) -> str:
    if not error.doc[error.pos :].strip() or error.msg.startswith("Unterminated"):
        return f"not JSON: the line ends too early (column {len(error.doc.rstrip()) + 1})"
    said = {
        "Extra data": "something follows the object",
        "Expecting value": "a value is missing or wrongly written",
        "Expecting property name enclosed in double quotes": 'a field name in double quotes (") is expected',
        "Expecting ',' delimiter": "a comma or the end is expected",
        "Expecting ':' delimiter": "a colon is expected",
        "Invalid control character at": "a control character inside a text",
    }.get(error.msg, error.msg[:1].lower() + error.msg[1:])
    return f"not JSON: {said} at column {error.pos + 1}"


def field_problems(error: ValidationError, row: Mapping[str, Any]) -> list[Found]:
    """pydantic's errors about ``row`` (one stimulus as plain JSON values) as (field, sentence), in the row's words."""
    found = list(_translated(error, row))
    task = row.get("task")
    if not isinstance(task, str) or task not in MODELS:
        return found + list(_common_problems(row))
    bad = {name.split(".")[0] for name, _ in found if name}
    if bad:
        found += _rules_over_fields(row, bad)
    return found


def _rules_over_fields(row: Mapping[str, Any], bad: set[str]) -> list[Found]:
    """What pydantic leaves out when a single field is wrong already: the rules over several fields."""
    model = MODELS[row["task"]]
    rest = {name: value for name, value in row.items() if name not in bad}
    needed = {name: value for name, value in _STAND_IN.items() if name in model.model_fields and name not in rest}
    try:
        ADAPTER.validate_json(json.dumps(rest | needed))
    except ValidationError as error:
        said = error.errors(include_url=False, include_input=False)
        rules = [item for item in said if len(item["loc"]) == 1 and item["type"] in _TOGETHER]
        return [(item["type"], item["msg"]) for item in rules if not bad & _TOGETHER[item["type"]]]
    return []


def _common_problems(row: Mapping[str, Any]) -> Iterator[Found]:
    """What can be said about a row whose task is not known: the fields of every task, and names that no task has."""
    common = {name: row[name] for name in _COMMON if name in row}
    try:
        ADAPTER.validate_json(json.dumps({**common, "task": "word_association", "cue": "x"}))
    except ValidationError as error:
        yield from _translated(error, {**common, "task": "word_association"})
    yield from unknown_names(row)


def unknown_names(names: Iterable[str]) -> list[Found]:
    """A problem for each name that is a field of no task."""
    known = sorted({"task"}.union(*(model.model_fields for model in MODELS.values())))
    return [(_shown(name), _unknown_field(name, known, top=True)) for name in names if name not in known]


def _translated(error: ValidationError, row: Mapping[str, Any]) -> Iterator[Found]:
    seen: set[Found] = set()
    for item in error.errors(include_url=False):
        loc = item["loc"]
        if loc and loc[0] in MODELS:
            loc = loc[1:]
        if item["type"] in ("union_tag_not_found", "union_tag_invalid"):
            yield "task", _task_problem(row)
            continue
        if not loc:
            known = item["type"] in _TOGETHER
            yield (item["type"] if known else None), item["msg"]
            continue
        if loc[0] == "meta" and len(loc) == 3:  # one error for each branch of the union
            loc, message = loc[:2], f"must be text, a number, true, false or null, not {kind_of(item['input'])}"
        elif item["type"] == "missing" and isinstance(loc[-1], int):  # one error for each item that lacks
            loc, message = loc[:-1], f"too few items: {len(item['input'])}"
        else:
            message = _message(item, row)
        found = (".".join(_shown(str(part)) for part in loc), message)
        if found not in seen:
            seen.add(found)
            yield found


def _task_problem(row: Mapping[str, Any]) -> str:
    if "task" not in row:
        return f"missing; one of {', '.join(TASKS)}"
    task = row["task"]
    if not isinstance(task, str):
        return f"must be text, not {kind_of(task)}"
    return unknown_task(task)


def unknown_task(task: str) -> str:
    """The sentence for a task that there is not."""
    return f"unknown task {_quoted(task)}; {_one_of(task, TASKS)}"


def _message(item: Any, row: Mapping[str, Any]) -> str:
    kind, context, given = item["type"], item.get("ctx", {}), item["input"]
    if kind == "missing":
        return "missing"
    if kind == "extra_forbidden":
        name, task = str(item["loc"][-1]), row["task"]
        if len(item["loc"]) > 2:
            return _unknown_field(name, sorted(Utterance.model_fields), top=False)
        if any(name in model.model_fields for model in MODELS.values()):
            return f"not a field of {task}"
        return _unknown_field(name, sorted(MODELS[task].model_fields), top=True)
    if kind == "literal_error":
        if not isinstance(given, str):
            return f"must be text, not {kind_of(given)}"
        return f"{_quoted(given)} is not allowed; {_one_of(given, _choices(context['expected']))}"
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {kind_of(given)}"
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "string_too_long":
        return f"longer than {context['max_length']:,} characters"
    if kind in ("too_long", "too_short"):
        limit = context.get("max_length", context.get("min_length"))
        return (
            f"{context['actual_length']:,} items, {'at most' if kind == 'too_long' else 'at least'} {limit:,} allowed"
        )
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind]} {next(iter(context.values())):g}"
    return str(item["msg"])


_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object {…}",
    "model_type": "an object {…}",
}
_BOUNDS = {
    "greater_than": "above",
    "greater_than_equal": "at least",
    "less_than": "below",
    "less_than_equal": "at most",
}


def _choices(expected: str) -> list[str]:
    return [part.strip(" '") for part in expected.replace(" or ", ", ").split(",")]


def _unknown_field(name: str, known: list[str], *, top: bool) -> str:
    near = difflib.get_close_matches(name[:100], known, 1)
    hint = f"did you mean {near[0]!r}?" if near else ""
    if top:
        return f"unknown field; {hint + ' Free' if hint else 'free'} fields go into meta"
    return f"unknown field; {hint or 'known are ' + ', '.join(known)}"


def _one_of(given: str, known: tuple[str, ...] | list[str]) -> str:
    near = difflib.get_close_matches(given[:100].strip().lower(), known, 1)
    return f"did you mean {near[0]!r}?" if near else f"one of {', '.join(known)}"


def kind_of(value: Any) -> str:
    """A JSON value in words: what stands where something else should."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {_quoted(value)}"
    if isinstance(value, int | float):
        return f"the number {_shown(str(value))}" if not isinstance(value, int) or value < 10**40 else "a huge number"
    return "a list" if isinstance(value, list) else "an object"


def _quoted(value: str) -> str:
    return f"'{_shown(value)}'"


def _shown(value: str, limit: int = 60) -> str:
    """Text from a file as it may be printed: short, on one line, without anything that a terminal would obey."""
    short = value if len(value) <= limit else value[:limit] + "…"
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in short)


def _join(path: str, part: object) -> str:
    shown = _shown(str(part))
    return f"{path}.{shown}" if path else shown
