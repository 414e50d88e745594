"""Answers by task, as they stand in a record."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agents.frames import Fit
from agents.stimuli import Task


def _replace_surrogates(value: Any) -> Any:
    # Models that decode bytes piecewise write lone surrogates at times; no JSON reader takes them.
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


Text = Annotated[str, BeforeValidator(_replace_surrogates)]
RGB = Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=3, max_length=3)]


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: it is empty, or of blanks and invisible characters alone."""
    bare = text.strip()
    if bare.isprintable():
        return not bare  # nearly every text, without a look at each character
    return not any(character.isprintable() and not character.isspace() for character in text)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Swatch(_Answer):
    """A palette entry and its number of counted pixels."""

    rgb: RGB
    population: int


class ColorAnswer(_Answer):
    """``color`` is of the eleven words for our agents; people's answers are kept as they are."""

    color: Text
    css_name: Text | None = None
    rgb: RGB | None = None
    palette: list[Swatch] | None = None


class ObjectAnswer(_Answer):
    """``labels`` best first; ``boxes`` are [x, y, width, height] in pixels of the image."""

    labels: list[Text]
    scores: list[float] | None = None
    boxes: list[Annotated[list[float], Field(min_length=4, max_length=4)]] | None = None


class CaptionAnswer(_Answer):
    """``tokens`` counts generated tokens; ``flags`` names what cleaning noticed."""

    text: Text
    tokens: int | None = None
    score: float | None = None
    finish: Text | None = None
    flags: list[Text] = Field(default_factory=list)


class ScanpathAnswer(_Answer):
    """``fixations`` are [x, y] in pixels of ``frame`` = [width, height], origin top left. ``window`` is the side of the
    inhibition window in pixels. ``stop``: the target, the maximum number, an exhausted map, or the model ended the
    path. ``fit``: how the picture filled the frame (:mod:`agents.frames`). An agent whose frame has another
    shape than the picture must give it, or nobody can draw the path; None is not written."""

    fixations: list[Annotated[list[float | int], Field(min_length=2, max_length=2)]]
    frame: Annotated[list[int], Field(min_length=2, max_length=2)]
    window: float | int | None = None
    stop: Literal["target", "maximum", "exhausted", "end"] | None = None
    found: bool | None = None
    found_at: int | None = None
    forced_first: bool | None = None
    selection: Text | None = None
    durations_ms: list[float] | None = None
    fit: Annotated[Fit | None, Field(exclude_if=lambda fit: fit is None)] = None


class Skipped(_Answer):
    """A candidate that was passed over, and the rule."""

    word: Text
    rule: Text


class WordAnswer(_Answer):
    """``candidates`` best first, the answer included; ``skipped`` those before it that broke a rule."""

    word: Text
    candidates: list[Text] | None = None
    skipped: list[Skipped] = Field(default_factory=list)


class Message(_Answer):
    """A message of a conversation. ``at``: seconds from the start, ``delay_s``: pause before it; null if not
    modelled."""

    turn: int
    speaker: Text
    agent: Text
    text: Text
    raw: Text | None = None
    at: float | None = None
    finish: Text | None = None
    delay_s: float | None = None


class Withdrawn(_Answer):
    """A message of a burst that was not sent, after ``turn`` messages, ``at`` seconds from the start: the other
    speaker's came first (``interrupted``), or the conversation ended."""

    turn: int
    speaker: Text
    agent: Text
    text: Text
    at: float
    why: Literal["interrupted", "ended"]


class PseudoMessage(_Answer):
    """A message of a pseudo-dialogue, which ``agent`` wrote as ``speaker``'s."""

    agent: Text
    topic: Text
    speaker: Text
    text: Text


# Keys of answers that older records lack, and what their absence means.
LATER: Mapping[str, Any] = {"withdrawn": [], "pseudo": [], "fit": None}


class ConversationAnswer(_Answer):
    """``messages`` are those that were sent; ``pseudo`` is what an agent wrote beforehand."""

    messages: list[Message]
    ended_early: bool = False
    withdrawn: list[Withdrawn] = Field(default_factory=list)
    pseudo: list[PseudoMessage] = Field(default_factory=list)


class VerdictAnswer(_Answer):
    """``human`` or ``machine``; or the judge ``refused``, or its text is ``unparsed``. ``confidence`` from 0 (the other
    verdict is as likely) to 1; ``reason`` in the judge's words."""

    verdict: Literal["human", "machine", "refused", "unparsed"]
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    reason: Text | None = None


class TurnAnswer(_Answer):
    """A turn of a conversation; in a burst each line of ``text`` is a message."""

    text: Annotated[Text, Field(max_length=100_000)]
    raw: Text | None = None
    finish: Text | None = None
    delay_s: Annotated[float, Field(ge=0)] | None = None


Answer = ColorAnswer | ObjectAnswer | CaptionAnswer | ScanpathAnswer | WordAnswer | ConversationAnswer | VerdictAnswer

BY_TASK: dict[Task, type[_Answer]] = {
    "color_estimation": ColorAnswer,
    "object_detection": ObjectAnswer,
    "attention_prediction": ScanpathAnswer,
    "image_captioning": CaptionAnswer,
    "word_association": WordAnswer,
    "conversation": ConversationAnswer,
    "judgement": VerdictAnswer,
}


def plain(answer: BaseModel) -> dict[str, Any]:
    return answer.model_dump(mode="json")
