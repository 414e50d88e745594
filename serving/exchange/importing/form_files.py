"""Forms: what the tables of a program, or of a lab, look like, as a file in TOML says it.

Forms of known programs are in the folder ``forms``, and tables of these programs are recognised. A lab's own form is
given by ``--form``. No form needs a line of Python. ``docs/import.md`` describes the keys.
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from agents.errors import InputError
from agents.frames import Fit
from agents.stimuli import ALL_TASKS, SHORT
from serving.exchange.importing.row_rules import RowRule, row_rule
from serving.files.row_problems import MESSAGES, as_problems
from serving.files.written_texts import read_written

FOLDER = Path(__file__).with_name("forms")
ColumnField = Literal[
    "subject", "stimulus", "response", "rt", "x", "y", "durations", "verdict", "truth", "agent", "confidence", "meta"
]
TimeUnit = Literal["seconds", "ms"]
Origin = Literal["top-left", "bottom-left", "center", "center-down"]
"""Where x and y are 0. From the bottom and from the center y counts upward, else downward."""
PlaceUnit = Literal["pixels", "height", "norm"]
"""The unit of x and y: a pixel; the frame's height; half the frame's width and half its height."""


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _frame(value: Any) -> Any:
    sides = re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", value) if isinstance(value, str) else None
    if sides is None:
        raise ValueError("must be a width and a height in pixels, such as 1680x1050")
    return int(sides[1]), int(sides[2])


def _rule(value: Any) -> Any:
    return row_rule(value) if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_as_list)]
Rule = Annotated[RowRule, BeforeValidator(_rule)]


class Screens(BaseModel):
    """A program's rows are screens: not every screen is an answer, and each row names its stimulus in the first filled
    of several columns. Names are those of ``column_names.toml``: small letters alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stimuli: list[str]
    """The columns of a stimulus, best first."""
    trials: list[str]
    """The columns of a judged trial, best first."""


class Loops(BaseModel):
    """A program's rows belong to loops, of which some are practice."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: str = Field(pattern=r"^\*.+")
    """The columns that number the rows of a loop, and are empty in the rows of others: ``*`` is the loop's name."""
    practice: Names
    """Words in the names of loops of practice; capitals and accents make no difference."""


class Conversations(BaseModel):
    """Each row is a conversation of a person with a machine. Names may be paths, as ``author.role``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    messages: str
    """The list of messages in a row, or an object of them where ``last`` is given."""
    last: str = ""
    """Where messages are a tree: the name of the last message. From there each one's ``parent`` comes before it."""
    speaker: str
    """Who speaks, in a message."""
    text: str
    """What is said, in a message: a text, or a list of which the texts are taken."""
    person: Names
    """The words for the person."""
    machine: Names
    """The words for the machine."""
    left_out: Names = []
    """The words for others, such as ``system``, whose messages are left out and counted."""
    stimulus: Names = []
    """Names of the conversation, best first; without one it is called after the file, with a number."""
    agent: Names = []
    """Names of the machine, best first; ``--name`` goes before."""


class Form(BaseModel):
    """What a form's file says. In patterns ``*`` stands for any text; ``{stimulus}``, ``{response}`` and ``{rt}`` stand
    for any name in ``column_names.toml`` of a stimulus, an answer to the task, or a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    """How the summary calls what wrote the table: "PsychoPy"."""
    recognised_by: Names = []
    """Patterns of columns that a table of this form has, every one."""
    comment: str = ""
    """A text in the lines of ``#`` above a table of this form."""
    line_below: str = ""
    """A line below the rows of a table of this form, alone in its first cell."""
    refused: str = ""
    """Why no table of this form can be read, and the way out."""
    rows_in: str = ""
    """In JSON: the list of which each entry is a row; what stands beside the list is in each of its rows."""
    task: str | None = None
    """The task of the answers, as ``--task``."""
    columns: dict[ColumnField, Names] = {}
    """Patterns of the column of a field, best first. The first that a table has is taken; of ``meta`` all are."""
    wide: Names = []
    """Patterns of the columns that hold the answers to one stimulus each, as ``--wide``."""
    rows: list[Rule] = []
    """Rules of ``--rows``; their columns may be patterns, and need not be there."""
    sheet: str | None = None
    """The name of the sheet of a workbook, as ``--sheet``."""
    color_words: str | None = None
    """The language of the words for colours, as ``--color-words``."""
    rt: TimeUnit | None = None
    """Seconds or milliseconds, as ``--rt``; None where their size shall say it."""
    frame: Annotated[tuple[int, int], BeforeValidator(_frame)] | None = None
    """Width and height in pixels, as ``--frame``."""
    fit: Fit | None = None
    """How the picture filled the frame, as ``--fit``."""
    origin: Origin | None = None
    """Where x and y are 0, as ``--origin``."""
    units: PlaceUnit | None = None
    """The unit of x and y, as ``--units``."""
    responses: dict[str, Literal["human", "machine"]] = {}
    """What keys or buttons mean, as ``--responses``."""
    machine: bool = False
    """Whether all answers are a machine's. The field ``agent`` names it, or ``--name``."""
    broken_lines: Literal["refused", "left out"] = "refused"
    """What happens to lines with too few or too many cells. A program that breaks lines itself has them left out."""
    doubled_quotes: bool = False
    """Whether the program doubles quotation marks in cells that it does not put between such marks."""
    bare_quotes: bool = False
    """Whether the program leaves quotation marks in a cell as they are: ``"fish, "blue""`` is one cell."""
    last_line: str = ""
    """A last line of the program's tables, which is no answer."""
    header_ids: str = ""
    """A name in the JSON of a second header, below a line of questions."""
    header_labels: Names = []
    """Columns whose labels may stand in a line below the header."""
    conversations: Conversations | None = None
    """What is true where rows are conversations."""
    screens: Screens | None = None
    """What is true where rows are screens."""
    loops: Loops | None = None
    """What is true where rows belong to loops."""

    @field_validator("task")
    @classmethod
    def _full_name(cls, task: str | None) -> str | None:
        full: dict[str, str] = {**SHORT, **{name: name for name in ALL_TASKS}}
        if task is not None and task not in full:
            raise ValueError(f"must be one of {', '.join([*SHORT, 'judgement'])}")
        return None if task is None else full[task]

    @field_validator("responses", mode="before")
    @classmethod
    def _small_keys(cls, value: Any) -> Any:
        return {str(key).lower(): meaning for key, meaning in value.items()} if isinstance(value, dict) else value


def load_form(path: Path) -> Form:
    """The form in a file. Raises InputError with every problem."""
    try:
        text = read_written(path)
    except OSError as error:
        raise InputError(f"--form {path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"--form {path}: {error}") from None
    try:
        # Both ways to type an accent are one name: columns are compared in composed letters.
        content = tomllib.loads(unicodedata.normalize("NFC", text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"--form {path}: is no TOML: {error}") from None
    try:
        return Form.model_validate(content)
    except ValidationError as error:
        keys = f"a form has no such key here; at the top the keys are {', '.join(Form.model_fields)}"
        problems = [
            replace(problem, message=keys) if problem.message == MESSAGES["extra_forbidden"] else problem
            for problem in as_problems(error, str(path))
        ]
        raise InputError(f"--form {path}: cannot be used", problems) from None


class KnownForm(NamedTuple):
    """A form of the folder ``forms``."""

    key: str
    """The name of its file, without the ending."""
    form: Form
    """What the file says."""


@cache
def known_forms() -> Sequence[KnownForm]:
    """The forms of known programs, in the order of their files' names."""
    return [KnownForm(path.stem, load_form(path)) for path in sorted(FOLDER.glob("*.toml"))]


def recognised(
    names: Sequence[str], comments: Sequence[str] = (), has_line: Callable[[str], bool] = lambda line: False
) -> KnownForm | None:
    """The known form of a table with the columns ``names`` and the lines ``comments`` above it; None where it has none.
    ``has_line`` says whether a line of the table has this text alone in its first cell. Of several forms the one that
    is recognised by most columns is taken."""
    found = [known for known in known_forms() if _has(known.form, names, comments)]
    found = [known for known in found if not known.form.line_below or has_line(known.form.line_below)]
    return max(found, key=lambda known: len(known.form.recognised_by), default=None)


def _has(form: Form, names: Sequence[str], comments: Sequence[str]) -> bool:
    if not form.recognised_by and not form.comment:
        return False
    return not absent_columns(form, names) and (not form.comment or any(form.comment in line for line in comments))


def absent_columns(form: Form, names: Sequence[str]) -> list[str]:
    """The patterns of columns by which a form is recognised, and which none of ``names`` fits."""
    return [pattern for pattern in form.recognised_by if not any(fnmatchcase(name, pattern) for name in names)]
