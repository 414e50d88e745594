"""Checks of what a browser sends of a page."""

import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agents.answers import is_blank
from agents.stimuli import Asked
from agents.vision.colors import WORDS
from judging.study.meetings.agent_server import LONGEST_MESSAGE, tidy
from judging.trial_sets.judge_questions import OPTIONS
from serving.files.row_problems import field_problems
from serving.files.words import count

HumanOrMachine = Literal["human", "machine"]
LONGEST_REASON = 2000
LONGEST_ID = 200
LONGEST_RT = 86_400_000.0  # milliseconds
LONGEST_ANSWER = {"image_captioning": 1000, "word_association": 60, "object_detection": 60}
LONGEST_FIELD = {"country": 60, "comments": 4000}
UNFILLED = re.compile(
    r".*[{}\[\]<>$].*|%.*%|undefined|null|none|nan|n/?a|assignment_id_not_available|", re.IGNORECASE | re.DOTALL
)


class BadAnswer(Exception):
    """An answer that no page sends."""


class Refused(Exception):
    """``why`` is the name of a phrase."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class ToldError(Exception):
    """The answer ``text`` is to be replaced; ``flags`` are phrases."""

    def __init__(self, flags: list[str], text: str) -> None:
        super().__init__(", ".join(flags))
        self.flags = flags
        self.text = text


def writable(text: Any) -> Any:
    """The text without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


def visible(text: str) -> str:
    """The text, or "" where it shows nothing: whoever sends blanks or invisible characters alone has said nothing."""
    return "" if is_blank(text) else text


Written = Annotated[str, BeforeValidator(writable)]
WrittenOrNot = Annotated[Written, AfterValidator(visible)]  # what may be left out
ROUNDED = AfterValidator(lambda number: round(number, 3))


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Timed(_Sent):
    """``rt`` is in ms; ``away``: the page was hidden meanwhile."""

    rt: Annotated[float, Field(ge=0, le=LONGEST_RT), ROUNDED] | None = None
    away: bool = False


class Device(_Sent):
    """``screen`` is its width and height in CSS pixels; ``touch``: its main pointer is a finger."""

    touch: bool
    screen: Annotated[list[Annotated[int, Field(ge=1, le=20_000)]], Field(min_length=2, max_length=2)]


class InstructionsAnswer(_Sent):
    device: Device | None = None


class TrialAnswer(_Timed):
    """``key``: by the keyboard."""

    verdicts: list[HumanOrMachine]
    key: bool = False
    confidence: Annotated[float, Field(ge=0, le=1), ROUNDED] | None = None
    reason: Annotated[WrittenOrNot, Field(max_length=LONGEST_REASON)] = ""
    control: str | None = None
    sexes: list[Literal["female", "male"]] = Field(default_factory=list)


class TalkAnswer(_Sent):
    """For whom, and how old, a speaker takes the other (2022 paper, S7.1.2)."""

    guess: HumanOrMachine | None = None
    sex: Literal["female", "male"] | None = None
    age: Annotated[WrittenOrNot, Field(max_length=40)] = ""


class StimulusAnswer(_Timed):
    answer: Written | list[Written]


def _not_blank(text: str) -> str:
    if is_blank(text):
        raise ValueError("says nothing")
    return tidy(text)


class _Act(_Sent):
    model_config = ConfigDict(extra="ignore")


class TextAct(_Act):
    text: Annotated[Written, Field(max_length=LONGEST_MESSAGE), AfterValidator(_not_blank)]


class TimedTextAct(TextAct):
    """A message of an interrogation; ``id`` is the page's, ``side`` that of the agent in the conversation."""

    id: Annotated[str, Field(max_length=40)]
    side: Literal[1, 2]


class VerdictAct(_Act):
    """Which agent the judge takes for the ``human``."""

    human: Literal[1, 2]
    reason: Annotated[WrittenOrNot, Field(max_length=LONGEST_REASON), AfterValidator(tidy)] = ""


class TimedVerdictAct(VerdictAct):
    confidence: Annotated[float, Field(ge=0, le=1)]
    codes: list[str]


A = TypeVar("A", bound=BaseModel)


def parsed(kind: type[A], answer: Mapping[str, Any]) -> A:
    """Raises BadAnswer."""
    try:
        return kind.model_validate(answer)
    except ValidationError as error:
        raise BadAnswer("; ".join(f"{field}: {why}" for field, why in field_problems(error))) from None


def fastest_of(rt: float | None, since: float) -> float:
    """The most ms that an answer took, by the page's ``rt`` and the server's ``since``; infinite if unknown."""
    return min((ms for ms in (rt, since) if ms is not None and ms >= 0), default=inf)


def read_questions(fields: Sequence[str], required: Sequence[str], answer: Mapping[str, Any]) -> dict[str, str]:
    """The answers to ``fields`` that say something. Raises BadAnswer."""
    kept = {}
    for name, value in answer.items():
        if value is None or (isinstance(value, str) and is_blank(value)):
            continue
        if name not in fields or not isinstance(value, str) or value not in OPTIONS.get(name, (value,)):
            raise BadAnswer(f"{name}: no such answer")
        if len(value) > LONGEST_FIELD.get(name, 100):
            raise BadAnswer(f"{name}: too long")
        kept[name] = writable(value)
    if lacking := [name for name in fields if name in required and name not in kept]:
        raise BadAnswer(f"{lacking[0]}: must be answered")
    return kept


def read_panel_id(text: str | None, parameter: str) -> str:
    """The id in the address's ``parameter``, as the panel has it: capitals count, blanks around it do not. "" for none
    or a placeholder ("{{%PROLIFIC_PID%}}", "[worker_id]"). Raises Refused for what no id can be: it is not cut, for two
    people's could then be alike."""
    text = (text or "").strip()
    if len(text) > LONGEST_ID or not text.isprintable():
        raise Refused("bad_address")
    is_name = re.sub(r"\W|_", "", text.casefold()) == re.sub(r"\W|_", "", parameter.casefold())
    return "" if not parameter or is_name or UNFILLED.fullmatch(text) else text


def read_texts(task: Asked, sent: str | list[str]) -> list[str]:
    """An answer to a stimulus. Raises BadAnswer."""
    number = 3 if task == "object_detection" else 1
    texts = [" ".join(text.split()) for text in ([sent] if isinstance(sent, str) else sent)]
    if len(texts) != number:
        raise BadAnswer(f"answer: must be {count(number, 'text')}")
    if any(map(is_blank, texts)) or max(map(len, texts)) > LONGEST_ANSWER.get(task, 40):
        raise BadAnswer("answer: is empty or too long")
    if task == "color_estimation" and texts[0] not in WORDS:
        raise BadAnswer("answer: must be a colour of the eleven")
    return texts
