"""Answers, typed by task, exactly as they stand in a record."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agents.stimuli import Task


def _replace_surrogates(value: Any) -> Any:
    # Models that decode bytes piecewise write lone surrogates at times; no JSON reader takes them.
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


Text = Annotated[str, BeforeValidator(_replace_surrogates)]
RGB = Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=3, max_length=3)]


def is_blank(text: str) -> bool:
    """Whether a text is empty, or spaces and invisible characters alone."""
    return not any(character.isprintable() and not character.isspace() for character in text)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Swatch(_Answer):
    """One palette entry and how many of the counted pixels it stands for."""

    rgb: RGB
    population: int


class ColorAnswer(_Answer):
    """``color`` is one of the eleven words for our agents; people's answers are kept as given."""

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
    """``fixations`` are [x, y] in pixels of ``frame`` = [width, height], origin top left.

    ``window`` is the side in pixels of the inhibition window that was applied. ``stop`` says why the path ended:
    the target was found, the maximum number was reached, the map was exhausted, or the model ended it.
    """

    fixations: list[Annotated[list[float | int], Field(min_length=2, max_length=2)]]
    frame: Annotated[list[int], Field(min_length=2, max_length=2)]
    window: float | int | None = None
    stop: Literal["target", "maximum", "exhausted", "end"] | None = None
    found: bool | None = None
    found_at: int | None = None
    forced_first: bool | None = None
    selection: Text | None = None
    durations_ms: list[float] | None = None


class Skipped(_Answer):
    """A candidate word that was passed over, and the rule that said so."""

    word: Text
    rule: Text


class WordAnswer(_Answer):
    """``candidates`` best first, the answer included; ``skipped`` those before it that broke a rule."""

    word: Text
    candidates: list[Text] | None = None
    skipped: list[Skipped] = Field(default_factory=list)


class Message(_Answer):
    """One message of a conversation. ``at``: seconds from the start, ``delay_s``: pause before it; null if not
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
    """A message of a burst that was not sent: the other speaker's came first (``interrupted``), or the conversation
    ended. ``turn`` messages had been sent then, ``at`` seconds from the start."""

    turn: int
    speaker: Text
    agent: Text
    text: Text
    at: float
    why: Literal["interrupted", "ended"]


class PseudoMessage(_Answer):
    """A message that nobody sent: ``agent`` wrote it as ``speaker``'s in a pseudo-dialogue about ``topic``."""

    agent: Text
    topic: Text
    speaker: Text
    text: Text


LATER = frozenset({"withdrawn", "pseudo"})  # keys of a conversation that older records lack


class ConversationAnswer(_Answer):
    """``messages`` are those that were sent. ``pseudo`` is what an agent wrote itself beforehand, as if it had been
    said."""

    messages: list[Message]
    ended_early: bool = False
    withdrawn: list[Withdrawn] = Field(default_factory=list)
    pseudo: list[PseudoMessage] = Field(default_factory=list)


class VerdictAnswer(_Answer):
    """A judge's verdict on a trial: ``human`` or ``machine``, or why there is none: the judge ``refused``, or what it
    said is ``unparsed``. ``confidence`` from 0 (the other one just as well) to 1; ``reason`` in the judge's words."""

    verdict: Literal["human", "machine", "refused", "unparsed"]
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    reason: Text | None = None


class TurnAnswer(_Answer):
    """What an agent replies when it is asked for one turn of a conversation. In a burst each line of ``text`` is a
    message."""

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
    """An answer as plain JSON values, all keys present."""
    return answer.model_dump(mode="json")
