"""One reader of the cells of people's tables, whatever the task and whatever program wrote them.

A cell may hold a plain text; JSON, as jsPsych's survey plugins (``{"Q0": "chair"}``) and Label Studio
(``{"text": ["two", "lines"]}``) write it; a list in Python's spelling, as pandas writes it (``['mug', 'lamp']``); or a
program's word for no answer (``None``, ``NA``). What a person said is the same in all of them. If it were not read
alike, judges would see brackets and quotation marks on people's side alone. What cannot be read is refused: a list of
boxes is no list of labels, and its numbers are nobody's words.
"""

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from agents.answers import is_blank
from serving.files.row_problems import RepeatedKeyError, strict_json

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE_AS_FLOAT = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
LONGEST = 40  # letters of a wrong value in a message
LONGEST_LITERAL = 100_000  # characters that are read as a list in Python's spelling
EMPTY_WORDS = frozenset(
    {
        *("None", "NA", "N/A", "n/a", "#N/A", "NaN", "NaT", "NULL", "<NA>", "--", "-", "."),
        *("#NULL!", "#NAME?", "#VALUE!", "#REF!", "undefined", "UNDEFINED", "UNDEFINEDnull"),
    }
)  # what R, pandas, SAS, SPSS, spreadsheets and EyeLink write for nothing
NO_ANSWER_WITHOUT_TIME = frozenset({"null", "nan"})  # words, too: no answer only where the row has no time
CHECKED = frozenset({"on", "true", "checked"})  # what forms write for a ticked box; its name is what it says
UNCLEAR_TICKS = frozenset({"off", "false", "unchecked", "yes", "no", "0", "1"})  # beside a name: whether it was ticked
LABEL_KEYS = ("label", "labels", "rectanglelabels", "polygonlabels", "name", "text", "value", "object", "class")
INVISIBLE = "is empty: it holds invisible characters alone. Clear the cell, and the row counts as one without an answer"
_LABELS = re.compile(r"[,;\n]")
_QUOTED = re.compile(r"""(["'“”„«»])\s*(.*?)\s*["'“”„«»]""", re.DOTALL)

CellState = Literal["answer", "missing", "wrong"]


class UnreadableError(ValueError):
    """A cell looks like a list or an object, and is none that can be read."""


@dataclass(frozen=True, slots=True)
class CellText:
    """What a cell says."""

    state: CellState
    """"answer"; "missing" where nobody answered; "wrong" where nobody can know what was answered."""
    text: str = ""
    """The text of an answer."""
    said_so: str = ""
    """The program's word for a missing answer, such as ``NA``; "" where the cell is blank."""
    fault: str = ""
    """What is wrong with the cell, as the end of a sentence: "must be a text, not '[1]'"."""


def read_text(cell: str, *, has_time: bool = False, is_long: bool = False) -> CellText:
    """The one text that a person answered with.

    ``has_time`` says whether the row has a time of response: ``null`` and ``nan`` are then words. ``is_long`` says
    whether several lines of one text area may be one text, as in a caption.

    JSON with a single text is that text. Several texts, under several names or in a list, are a fault, because nobody
    can know which of them is the answer.
    """
    plain = _no_answer(cell, has_time)
    if plain is not None:
        return plain
    try:
        value = structured(cell)
    except UnreadableError as error:
        return CellText("wrong", fault=str(error))
    if value is None:
        return CellText("answer", cell.strip())
    said = list(_texts(value))
    if any(text is None for _, text in said):
        return CellText("wrong", fault=f"must be a text, not {shortened(cell)!r}")
    filled = [(name, text) for name, text in said if text is not None and text.strip()]
    if len(said) > 1:
        filled = [(name, text) for name, text in filled if text.strip().lower() not in CHECKED]
    if not filled:
        return CellText("missing")
    names = list(dict.fromkeys(name for name, _ in filled))
    if len(names) > 1:
        example = f"--columns response=response.{names[0]}"
        return CellText("wrong", fault=f"holds several answers ({', '.join(names)}); say which with {example}")
    if len(filled) > 1 and not (is_long and names[0]):
        return CellText("wrong", fault=f"holds a list of {len(filled)} answers, not a single one: {shortened(cell)!r}")
    text = "\n".join(text for _, text in filled)
    return _no_answer(text, has_time) or CellText("answer", text.strip())


def read_labels(cell: str, *, has_time: bool = False) -> tuple[CellText, list[str]]:
    """What a cell of objects says, and its labels in their order ([] unless it is an answer).

    Labels are parted by commas, semicolons or line ends, listed in JSON, or stand under one name each, as in
    ``{"Q0": "box", "Q1": "lamp"}``. They may also be names of ticked boxes, ``{"mug": "on"}``, or boxes with one label
    each. ``has_time`` is that of :func:`read_text`.
    """
    plain = _no_answer(cell, has_time)
    if plain is not None:
        return plain, []
    try:
        value = structured(cell)
    except UnreadableError as error:
        return CellText("wrong", fault=str(error)), []
    if value is None:
        text = cell.strip()
        if text.startswith("[") and text.endswith("]"):
            text = text[1:-1]  # [mug, lamp], which is no JSON
        labels = split_labels(text)
    else:
        named = _labels_in(value)
        if named is None:
            return CellText("wrong", fault=f"must be labels, not {shortened(cell)!r}"), []
        labels = [label for label in named if not is_blank(label) and label not in EMPTY_WORDS]
    if not labels:
        return CellText("missing"), []
    return CellText("answer", cell.strip()), labels


def split_labels(text: str) -> list[str]:
    """The labels of a text: ``mug, lamp; vase`` has three. Quotation marks around a label are no part of it; a
    program's word for no answer is none."""
    labels = []
    for part in _LABELS.split(text):
        label = part.strip()
        quoted = _QUOTED.fullmatch(label)
        if quoted is not None:
            label = quoted[2]
        if not is_blank(label) and label not in EMPTY_WORDS:
            labels.append(label)
    return labels


def _labels_in(value: Any) -> list[str] | None:
    """The labels of a list or an object; None where there is something else in it."""
    if isinstance(value, list):
        labels: list[str] = []
        for part in value:
            part_labels = [part.strip()] if isinstance(part, str) else _labels_in_box(part)
            if part_labels is None:
                return None
            labels += part_labels
        return labels
    labels = []
    for name, text in value.items():
        if text is None or text == "":
            continue
        if text is True or str(text).lower() in CHECKED:
            labels.append(name)
        elif isinstance(text, str) and text.strip().lower() in UNCLEAR_TICKS:
            return None
        elif isinstance(text, str):
            labels += split_labels(text)
        elif isinstance(text, list):
            list_labels = _labels_in(text)
            if list_labels is None:
                return None
            labels += list_labels
        else:
            return None
    return labels


def _labels_in_box(box: Any) -> list[str] | None:
    """The label of a box or of an entry of a form, which has other fields beside it."""
    if not isinstance(box, dict):
        return None
    fields = [box[name] for name in LABEL_KEYS if name in box]
    if len(fields) != 1:
        return None
    if isinstance(fields[0], str):
        return [fields[0].strip()]
    if isinstance(fields[0], list) and all(isinstance(label, str) for label in fields[0]):
        return [label.strip() for label in fields[0]]
    return None


def structured(cell: str) -> Any:
    """The list or object that a cell holds in JSON or in Python's spelling, else None. Raises UnreadableError for
    braces around what is no object, and for a name that stands twice."""
    text = cell.strip()
    if text[:1] + text[-1:] not in ("[]", "{}"):
        return None
    try:
        value = strict_json(text)
    except RepeatedKeyError as error:
        raise UnreadableError(str(error)) from None
    except ValueError:
        value = _python_literal(text)
    if isinstance(value, list | dict):
        return value
    if text.startswith("{"):
        raise UnreadableError(f"looks like JSON, and cannot be read: {shortened(cell)!r}")
    return None


def list_in(cell: str) -> list[Any] | None:
    """The list that a cell holds; None where it holds something else."""
    try:
        value = structured(cell)
    except UnreadableError:
        return None
    return value if isinstance(value, list) else None


def object_in(cell: str) -> dict[str, Any]:
    """The object that a cell holds; empty where it holds something else."""
    try:
        value = structured(cell)
    except UnreadableError:
        return {}
    return value if isinstance(value, dict) else {}


def _python_literal(text: str) -> Any:
    # ast.literal_eval reads constants alone: it runs nothing.
    if len(text) > LONGEST_LITERAL:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str | None]]:
    """Every text of a structure with the names that it stands under, "assoc.first"; None for what is no text."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, f"{name}.{key}" if name else str(key))
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
        return CellText("wrong", fault=INVISIBLE)
    if text in EMPTY_WORDS or (text in NO_ANSWER_WITHOUT_TIME and not has_time):
        return CellText("missing", said_so=text)
    return None


def is_empty(cell: str) -> bool:
    """Whether a cell of a number or a name says nothing: it is blank, or a program's word for nothing."""
    text = cell.strip()
    if text in EMPTY_WORDS or text in NO_ANSWER_WITHOUT_TIME:
        return True
    return not text.isalnum() and is_blank(text)


def without_decimals(text: str) -> str:
    """``1`` of ``1.0``: programs that hold a gap as NaN write all whole numbers of a column so."""
    match = WHOLE_AS_FLOAT.fullmatch(text)
    return text if match is None else match[1]


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, with or without ``.0``; ``007`` and ``1.10`` are not."""
    return re.fullmatch(r"-?(?:0|[1-9][0-9]*)(?:\.0+)?", text) is not None


@lru_cache(maxsize=65_536)  # in a large table the same times come again and again
def read_time(cell: str) -> tuple[float | None, str]:
    """The time in a cell, in the file's unit, or None; and what is wrong with a cell that is no time, or "".

    A list of times, one for each key press, counts as none: nobody can know which of them is the answer's.
    """
    text = cell.strip()
    if is_empty(text) or text.startswith("["):
        return None, ""
    time = float(text) if NUMBER.fullmatch(text) else math.nan
    if math.isfinite(time) and time >= 0:
        return time, ""
    return None, f"must be a number that is not below 0, not {shortened(cell)!r}"


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
