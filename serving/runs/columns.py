"""What columns mean: fields of a stimulus, entries of ``meta``, and the task of a row that names none."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import PurePath
from typing import Any

import numpy as np

from agents.stimuli import ADAPTER, TASKS
from serving.runs.positions import id_key
from serving.runs.row_problems import Found, shown

META = "meta."  # of the names of columns
WHOLE = ("image", "cue", "topic")  # fields whose content is the id of a row without one
NAMES = {  # what people call a field
    "image": "image_path img picture picture_path photo file filename file_name filepath path stimulus stim prompt",
    "cue": "word words cue_word cueword stimulus stim prompt item",
    "topic": "theme prompt stimulus stim item",
}
NO_TASK = "is missing, and the columns do not say it: name the task with --task, or in a column `task`"
MOST_NOTES = 20  # on columns

Choose = Callable[[Sequence[str]], Sequence[str]]
"""Which of several tasks are asked of a row that names none."""


def _properties_by_task() -> dict[str, dict[str, Any]]:
    schema = ADAPTER.json_schema()
    models = [schema["$defs"][one["$ref"].rsplit("/", 1)[1]] for one in schema["oneOf"]]
    return {model["properties"]["task"]["const"]: model["properties"] for model in models}


def _is_nested(field: dict[str, Any]) -> bool:
    return any(one.get("type") in ("array", "object") for one in field.get("anyOf", [field]))


_PROPERTIES = _properties_by_task()
PICTURE_TASKS = frozenset(task for task, fields in _PROPERTIES.items() if "image" in fields)
FIELDS = frozenset(name for fields in _PROPERTIES.values() for name in fields)
NESTED = frozenset(name for fields in _PROPERTIES.values() for name, field in fields.items() if _is_nested(field))
_COMMON = frozenset.intersection(*(frozenset(fields) for fields in _PROPERTIES.values()))


def is_free(name: str) -> bool:
    """Whether a column is no field of a stimulus, nor an entry of ``meta`` by its name."""
    return name not in FIELDS and not name.startswith(META)


def tasks_of(fields: Collection[str]) -> Sequence[str]:
    """The tasks of participants that have all of these fields, and of which the fields show something."""
    return _tasks_of(FIELDS.intersection(fields))


@cache
def _tasks_of(fields: frozenset[str]) -> Sequence[str]:
    if not fields - _COMMON:
        return ()
    needed = {"word_association": "cue", "conversation": None}
    return tuple(
        task
        for task in TASKS
        if fields <= _PROPERTIES[task].keys() and (needed.get(task, "image") or next(iter(fields))) in fields
    )


def needed_field(task: str) -> str | None:
    """The field without which no row of a task can be."""
    return "image" if task in PICTURE_TASKS else "cue" if task == "word_association" else None


def meant(name: str, fields: Iterable[str] = FIELDS) -> str | None:
    """The one of the ``fields`` that somebody probably meant by ``name``, or None."""
    plain, wanted = _plain(name), list(fields)
    known = [field for field in wanted if plain in NAMES.get(field, "").split()]
    return next(iter(known or get_close_matches(plain, wanted, 1, 0.8)), None)


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def header_problems(names: Sequence[str], task: str | None, *, may_choose: bool) -> list[Found]:
    """What is wrong with the columns of a table: those that every row of it needs and that are not there."""
    free = [name for name in names if name and is_free(name)]
    if undecoded := [name for name in names if not name.isascii() and not _is_utf8(name)]:
        return [(shown(name), "is not UTF-8") for name in undecoded]
    found: list[Found] = [(shown(name), f"did you mean `{_plain(name)}`?") for name in free if _plain(name) in FIELDS]
    if found:
        return found
    wanted = WHOLE if task is None else tuple(filter(None, [needed_field(task)]))
    if not any(name in names for name in wanted):
        found = [(shown(name), f"did you mean `{field}`?") for name in free if (field := meant(name, wanted))]
        if task is not None and wanted and "task" not in names:
            return found or [(wanted[0], "missing: there is no such column")]
        if found:
            return found
    if task is None and "task" not in names:
        tasks = tasks_of(names) or [one for name in WHOLE if name in names for one in tasks_of([name])]
        if not tasks or not (may_choose or len(tasks) == 1 or {"cue", "topic"} & {*names}):
            return [("task", NO_TASK)]
    return []


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def note(name: str) -> str:
    """What is said of a free column."""
    field = meant(name)
    hint = "" if field is None else f" (did you mean `{field}`?)"
    return f"column `{shown(name)}` is no field of a stimulus: kept as {META}{shown(name)}{hint}"


def name_of(fields: Mapping[str, Any]) -> str | None:
    """What a row without an id is called: its picture, cue or topic."""
    for field in WHOLE:
        if isinstance(text := fields.get(field), str) and text.strip():
            if field != "image":
                return text.strip()
            path = PurePath(text)
            return path.name if path.is_absolute() or ".." in path.parts else text
    return None


def repeated_names(rows: Iterable[Mapping[str, Any]]) -> frozenset[int]:
    """The keys of the names that several of the rows have; an id is a name, too."""
    names = (row.get("id") or name_of(row) for row in rows)
    keys = np.sort(
        np.frombuffer(array("Q", (id_key(name) for name in names if isinstance(name, str))), dtype=np.uint64)
    )
    return frozenset(keys[1:][keys[1:] == keys[:-1]].tolist())


def need_a_look(names: Collection[str]) -> bool:
    """Whether rows with these columns may have one name and different contents."""
    return "id" not in names and ("image" in names or len({*names} - {"task", ""}) > 1)
