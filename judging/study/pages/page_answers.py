"""Checks of what a browser sends of a page, for all kinds of pages.

What a page may send is a model beside what reads it: ``TrialAnswer`` stands in ``trial_material``, for example.
"""

import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agents.answers import is_blank
from judging.trial_sets.about_judges import OPTIONS
from serving.files.row_problems import field_problems

LONGEST_MESSAGE = 2000
"""Letters of a message, by people and agents alike."""
LONGEST_REASON = 2000
"""Letters of a reason for a verdict."""
LONGEST_ID = 200
"""Letters of a panel's id."""
LONGEST_RT = 86_400_000.0
"""Milliseconds of an answer: a day."""
LONGEST_FIELD = {"country": 60, "comments": 4000}
"""Letters of an answer to a question about oneself; 100 for the others."""
# Placeholders of panels that have not filled in an id, such as "{{%PROLIFIC_PID%}}" and "[worker_id]".
UNFILLED = re.compile(
    r".*[{}\[\]<>$].*|%.*%|undefined|null|none|nan|n/?a|assignment_id_not_available|", re.IGNORECASE | re.DOTALL
)


class BadAnswer(Exception):
    """An answer that no page sends. The text says what is wrong."""


class Refused(Exception):
    """Something that a participant may not do, or not now.

    ``why`` is the name of a phrase, by which the page tells it, and a key of ``REFUSALS`` in :mod:`judging.study.app`.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class ToldError(Exception):
    """An answer that the form's checks refuse: ``text`` is to be replaced, ``flags`` are phrases that say why."""

    def __init__(self, flags: list[str], text: str) -> None:
        super().__init__(", ".join(flags))
        self.flags = flags
        self.text = text


def writable(text: Any) -> Any:
    """The text with "?" for halves of surrogate pairs, which no file can hold; what is no text stays as it is."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


def visible(text: str) -> str:
    """The text, or "" where it shows nothing: whoever sends blanks or invisible characters alone has said nothing."""
    return "" if is_blank(text) else text


def tidy(text: str) -> str:
    """A message on a single line that any file can hold."""
    return " ".join(text.split()).encode("utf-8", "replace").decode()


Written = Annotated[str, BeforeValidator(writable)]
"""A text that any file can hold."""
WrittenOrNot = Annotated[Written, AfterValidator(visible)]
"""A text that may be left out: "" where it shows nothing."""
Side = Annotated[int, Field(ge=1, le=20_000)]
"""CSS pixels of a side of a screen."""
ROUNDED = AfterValidator(lambda number: round(number, 3))
"""Rounds to three digits."""


class Sent(BaseModel):
    """What a page sends; any key that the page does not have is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class SentWithTime(Sent):
    """What a page sends with the time that it took."""

    rt: Annotated[float, Field(ge=0, le=LONGEST_RT), ROUNDED] | None = None
    """Milliseconds from when the page could be answered."""
    away: bool = False
    """Whether the page was hidden meanwhile."""


class BrowserDevice(Sent):
    """What a browser tells of its device."""

    touch: bool
    """Whether its main pointer is a finger."""
    screen: Annotated[list[Side], Field(min_length=2, max_length=2)]
    """Width and height in CSS pixels."""


class InstructionsAnswer(Sent):
    """What the page of instructions sends."""

    device: BrowserDevice | None = None
    """The pointer and the screen; None where the page does not tell them."""


A = TypeVar("A", bound=BaseModel)


def parsed_answer(kind: type[A], answer: Mapping[str, Any]) -> A:
    """An answer as its model. Raises BadAnswer with all that is wrong."""
    try:
        return kind.model_validate(answer)
    except ValidationError as error:
        raise BadAnswer("; ".join(f"{field}: {why}" for field, why in field_problems(error))) from None


def fastest_of(rt: float | None, since: float) -> float:
    """The most milliseconds that an answer took: the smaller of the page's ``rt`` and the server's ``since``.

    A browser may tell anything, and the server's time holds the way through the net, so neither alone is safe. What is
    negative does not count, for the machine's clock was set back. Infinite where neither is known.
    """
    return min((ms for ms in (rt, since) if ms is not None and ms >= 0), default=inf)


def read_questions(fields: Sequence[str], required: Sequence[str], answer: Mapping[str, Any]) -> dict[str, str]:
    """The answers to the questions ``fields`` that say something, by name.

    Raises BadAnswer for other questions, for what is no option or too long, and where a ``required`` one is missing.
    """
    answers = {}
    for name, value in answer.items():
        if value is None or (isinstance(value, str) and is_blank(value)):
            continue
        if name not in fields or not isinstance(value, str) or value not in OPTIONS.get(name, (value,)):
            raise BadAnswer(f"{name}: no such answer")
        if len(value) > LONGEST_FIELD.get(name, 100):
            raise BadAnswer(f"{name}: too long")
        answers[name] = writable(value)
    if lacking := [name for name in fields if name in required and name not in answers]:
        raise BadAnswer(f"{lacking[0]}: must be answered")
    return answers


def read_panel_id(text: str | None, parameter: str) -> str:
    """The id in the address's ``parameter``, as the panel has it: capitals count, blanks around it do not.

    "" for none, and for a placeholder ("{{%PROLIFIC_PID%}}", "[worker_id]"). Raises Refused for what no id can be. Such
    a text is not cut, for two people's ids could then be alike.
    """
    text = (text or "").strip()
    if len(text) > LONGEST_ID or not text.isprintable():
        raise Refused("bad_address")
    is_name = re.sub(r"\W|_", "", text.casefold()) == re.sub(r"\W|_", "", parameter.casefold())
    return "" if not parameter or is_name or UNFILLED.fullmatch(text) else text
