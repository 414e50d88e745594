"""One reader of the cells of people's tables, whatever the task and whatever program wrote them.

A cell may hold a plain text; JSON, as jsPsych's survey plugins (``{"Q0": "chair"}``) and Label Studio (``{"text":
["two", "lines"]}``) write it; a list in Python's spelling, as pandas writes it (``['mug', 'lamp']``); or a program's
word for no answer (``None``, ``NA``). What a person said is the same in all of them. If it were not read alike, judges
would see brackets and quotation marks on people's side alone.
"""

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agents.answers import is_blank
from serving.runs.row_problems import strict_json

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE_AS_FLOAT = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
LONGEST = 40  # letters of a wrong value in a message
LONGEST_LITERAL = 100_000  # characters that are read as a list in Python's spelling
NO_ANSWER = frozenset({"None", "NA", "N/A", "#N/A", "NaN", "NULL", "<NA>", "undefined", "--"})
NO_ANSWER_WITHOUT_TIME = frozenset({"null", "nan"})  # words, too: no answer only where the row has no time
_LABELS = re.compile(r"[,;\n]")
_QUOTED = re.compile(r"""(["'“”„«»])\s*(.*?)\s*["'“”„«»]""", re.DOTALL)

State = Literal["answer", "missing", "wrong"]


@dataclass(frozen=True, slots=True)
class CellText:
    """What a cell says: an ``answer``; ``missing`` where nobody answered (``said_so`` is the program's word for it, or
    ""); or ``wrong``, with the fault, as where it holds invisible characters alone."""

    state: State
    text: str = ""
    said_so: str = ""
    fault: str = ""


def read_text(cell: str, *, has_time: bool = False) -> CellText:
    """The one text that a person answered with. ``has_time``: whether the row has a time of response.

    JSON with a single text is that text; several texts under several names are a fault, because nobody can know which
    of them is the answer. Several lines of one text area become lines of one text.
    """
    plain = _no_answer(cell, has_time)
    if plain is not None:
        return plain
    value = structured(cell)
    if value is None:
        return CellText("answer", cell.strip())
    texts = list(_texts(value))
    if any(text is None for _, text in texts):
        return CellText("wrong", fault=f"must be a text, not {shortened(cell)!r}")
    said = [(name, text) for name, text in texts if text is not None and text.strip()]
    if not said:
        return CellText("missing")
    names = list(dict.fromkeys(name for name, _ in said))
    if len(names) > 1:
        example = f"--columns response=response.{names[0]}"
        return CellText("wrong", fault=f"holds several answers ({', '.join(names)}); say which with {example}")
    if len(said) > 1 and isinstance(value, list):
        return CellText("wrong", fault=f"holds a list of {len(said)} answers, not a single one: {shortened(cell)!r}")
    return _read_again("\n".join(text for _, text in said), has_time)


def _read_again(text: str, has_time: bool) -> CellText:
    """The text inside a structure; it may be a program's word for no answer, too."""
    return _no_answer(text, has_time) or CellText("answer", text.strip())


def read_labels(cell: str, *, has_time: bool = False) -> tuple[CellText, list[str]]:
    """The labels of a cell of objects, parted by commas, semicolons or line ends, or listed in JSON.

    Three answers under three names, ``{"Q0": "box", "Q1": "lamp", "Q2": "mug"}``, are three labels.
    """
    plain = _no_answer(cell, has_time)
    if plain is not None:
        return plain, []
    value = structured(cell)
    if value is None:
        text = cell.strip()
        if text.startswith("[") and text.endswith("]"):
            text = text[1:-1]  # [mug, lamp], which is no JSON
        labels = split_labels(text)
    else:
        texts = [text for _, text in _texts(value)]
        if None in texts:
            return CellText("wrong", fault=f"must be labels, not {shortened(cell)!r}"), []
        said = [text for text in texts if text is not None]
        labels = split_labels(said[0]) if len(said) == 1 else [text.strip() for text in said if not is_blank(text)]
    if not labels:
        return CellText("missing"), []
    return CellText("answer", cell.strip()), labels


def split_labels(text: str) -> list[str]:
    """The labels of a text: ``mug, lamp; vase`` has three. Quotation marks around a label are no part of it."""
    labels = []
    for part in _LABELS.split(text):
        label = part.strip()
        quoted = _QUOTED.fullmatch(label)
        if quoted is not None:
            label = quoted[2]
        if not is_blank(label):
            labels.append(label)
    return labels


def structured(cell: str) -> Any:
    """The list or object that a cell holds in JSON or in Python's spelling, else None."""
    text = cell.strip()
    if text[:1] + text[-1:] not in ("[]", "{}"):
        return None
    try:
        value = strict_json(text)
    except ValueError:
        value = _python_literal(text)
    return value if isinstance(value, list | dict) else None


def _python_literal(text: str) -> Any:
    # ast.literal_eval reads constants alone: it runs nothing.
    if len(text) > LONGEST_LITERAL:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str | None]]:
    """Every text of a structure with the name that it stands under; None for what is no text."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, name or str(key))
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, name)
    elif value is None:
        yield name, ""
    elif isinstance(value, bool):
        yield name, None
    elif isinstance(value, str | int | float):
        yield name, without_decimals(str(value))
    else:
        yield name, None


def _no_answer(cell: str, has_time: bool) -> CellText | None:
    text = cell.strip()
    if not text:
        return CellText("missing")
    if is_blank(text):
        fault = (
            "is empty: it holds invisible characters alone. Clear the cell, and the row counts as one without an answer"
        )
        return CellText("wrong", fault=fault)
    if text in NO_ANSWER or (text in NO_ANSWER_WITHOUT_TIME and not has_time):
        return CellText("missing", said_so=text)
    return None


def without_decimals(text: str) -> str:
    """``1`` of ``1.0``: programs that hold a gap as NaN write all whole numbers of a column so."""
    match = WHOLE_AS_FLOAT.fullmatch(text)
    return text if match is None else match[1]


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, with or without ``.0``; ``007`` and ``1.10`` are not."""
    return re.fullmatch(r"-?(?:0|[1-9][0-9]*)(?:\.0+)?", text) is not None


def read_time(cell: str) -> tuple[float | None, str]:
    """A time as a number, whatever its unit, or None where there is none; and the fault of a cell that is no time.
    Several times, as of several key presses, are none: nobody can know which of them is the answer's."""
    text = cell.strip()
    if text in NO_ANSWER or text in NO_ANSWER_WITHOUT_TIME or is_blank(text):
        return None, ""
    if isinstance(structured(text), list):
        return None, ""
    time = float(text) if NUMBER.fullmatch(text) else math.nan
    if math.isfinite(time) and time >= 0:
        return time, ""
    return None, f"must be milliseconds, not {shortened(cell)!r}"


def has_time(cell: str | None) -> bool:
    """Whether a cell holds a time."""
    return cell is not None and NUMBER.fullmatch(cell.strip()) is not None


def verdict_of(text: str, responses: Mapping[str, str]) -> str | None:
    """``human`` or ``machine``: the word itself, or what ``responses`` say of a key or button; else None.
    ``1.0`` is the button 1, as programs write it whose column has gaps."""
    word = text.strip().lower()
    meaning = responses.get(word, responses.get(without_decimals(word), word))
    return meaning if meaning in ("human", "machine") else None


def shortened(value: object) -> str:
    """The beginning of a value for a message."""
    return str(value)[:LONGEST]
