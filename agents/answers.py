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
"""A text of an answer; a lone surrogate in it becomes U+FFFD."""
RGB = Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=3, max_length=3)]
"""[red, green, blue], each from 0 to 255, in sRGB."""
COLORS = ("red", "pink", "orange", "yellow", "purple", "green", "blue", "brown", "gray", "black", "white")
"""The eleven words for colours, in the order in which people were offered them."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: it is empty, or of blanks and invisible characters alone."""
    bare = text.strip()
    if bare.isprintable():
        return not bare  # nearly every text, without a look at each character
    return not any(character.isprintable() and not character.isspace() for character in text)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Swatch(_Answer):
    """An entry of a picture's palette."""

    rgb: RGB
    """Its colour."""
    population: int
    """Pixels that were counted for it."""


class ColorAnswer(_Answer):
    """The dominant colour of a picture (color_estimation)."""

    color: Text
    """One of the eleven basic words for Turinglike's agents; people's answers are kept as they are."""
    css_name: Text | None = None
    """The CSS3 name that is nearest to ``rgb`` in RGB, or that a model wrote; None where none was sought. It only tells
    how the word came about: a new agent may do without."""
    rgb: RGB | None = None
    """The colour that was named."""
    palette: list[Swatch] | None = None
    """The picture's palette, the dominant colour first."""


class ObjectAnswer(_Answer):
    """Objects in a picture (object_detection). Lists have the same order, the best first."""

    labels: list[Text]
    """The words."""
    scores: list[float] | None = None
    """The model's score of each, from 0 to 1."""
    boxes: list[Annotated[list[float], Field(min_length=4, max_length=4)]] | None = None
    """The box of each as [x, y, width, height], in pixels of the image from its top left corner."""


class CaptionAnswer(_Answer):
    """A caption of a picture (image_captioning)."""

    text: Text
    """The caption after cleaning."""
    tokens: int | None = None
    """Tokens that were generated."""
    score: float | None = None
    """The beam's score: its log-probability, divided as the settings say."""
    finish: Text | None = None
    """Why the text ended, such as "end" or "length"."""
    flags: list[Text] = Field(default_factory=list)
    """What cleaning noticed, such as "too_few_words"."""


class ScanpathAnswer(_Answer):
    """A path of fixations over a picture (attention_prediction)."""

    fixations: list[Annotated[list[float | int], Field(min_length=2, max_length=2)]]
    """[x, y] of each fixation, in pixels of ``frame`` from its top left corner."""
    frame: Annotated[list[int], Field(min_length=2, max_length=2)]
    """[width, height] of what was looked at, in pixels."""
    window: float | int | None = None
    """The side of the window in which a fixation inhibits its return, in pixels of the frame."""
    stop: Literal["target", "maximum", "exhausted", "end"] | None = None
    """Why the path ends: at the target, at the maximum number, at an exhausted map, or as the model ended it."""
    found: bool | None = None
    """In search, whether the target was found."""
    found_at: int | None = None
    """In search, the index of the fixation that found it, from 0."""
    forced_first: bool | None = None
    """Whether the first fixation was given, as at the centre, and not chosen."""
    selection: Text | None = None
    """How fixations were selected from a map, such as "said" or "point"."""
    durations_ms: list[float] | None = None
    """How long each fixation lasted, in milliseconds."""
    fit: Annotated[Fit | None, Field(exclude_if=lambda fit: fit is None)] = None
    """How the picture filled the frame (:mod:`agents.frames`). Whoever has a frame of another shape than the picture
    gives it, since nobody can draw the path without; None is not written."""


class Skipped(_Answer):
    """A candidate that was passed over."""

    word: Text
    """What would have been the answer, had it broken no rule."""
    rule: Text
    """The rule that it broke, such as "stop_word" (docs/words.md)."""


class WordAnswer(_Answer):
    """The word that a cue brings to mind (word_association)."""

    word: Text
    """The one word that counts, and that judges see."""
    candidates: list[Text] | None = None
    """Acceptable words, the best first, the answer among them."""
    skipped: list[Skipped] = Field(default_factory=list)
    """Words that would have come before the answer and broke a rule."""


class Message(_Answer):
    """A message of a conversation. Times are on the conversation's own clock, which starts at 0; None: no times are
    modelled."""

    turn: int
    """Its place among the messages, from 0."""
    speaker: Text
    """The speaker's name in the conversation."""
    agent: Text
    """Who wrote it: an agent's name, or "human"."""
    text: Text
    """What was sent."""
    raw: Text | None = None
    """What the model wrote, where it is another text."""
    at: float | None = None
    """Seconds from the start at which it was sent."""
    finish: Text | None = None
    """Why the model's text ended, such as "stop" or "length"."""
    delay_s: float | None = None
    """Seconds of pause before it."""


class Withdrawn(_Answer):
    """A message of a burst that was written and not sent."""

    turn: int
    """Messages that had been sent by then."""
    speaker: Text
    """The speaker's name in the conversation."""
    agent: Text
    """Who wrote it."""
    text: Text
    """What was not sent."""
    at: float
    """Seconds from the start at which it was withdrawn."""
    why: Literal["interrupted", "ended"]
    """The other speaker's message came first, or the conversation ended."""


class PseudoMessage(_Answer):
    """A message of a pseudo-dialogue, in which one agent writes the parts of both speakers."""

    agent: Text
    """The agent that wrote it."""
    topic: Text
    """What the dialogue is about."""
    speaker: Text
    """The name under which it stands in the dialogue."""
    text: Text
    """What it says."""


LATER: Mapping[str, Any] = {"withdrawn": [], "pseudo": [], "fit": None}
"""Keys of answers that older records lack, and what their absence means."""


class ConversationAnswer(_Answer):
    """A whole conversation."""

    messages: list[Message]
    """The messages that were sent, in order."""
    ended_early: bool = False
    """Whether it has fewer messages than were planned."""
    withdrawn: list[Withdrawn] = Field(default_factory=list)
    """Messages of bursts that were not sent."""
    pseudo: list[PseudoMessage] = Field(default_factory=list)
    """The pseudo-dialogues that an agent wrote before the conversation."""


class VerdictAnswer(_Answer):
    """A judge's verdict on an answer (judgement)."""

    verdict: Literal["human", "machine", "refused", "unparsed"]
    """Whom the answer is taken for; or the judge refused to judge, or its text could not be read."""
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    """From 0 (the other verdict is as likely) to 1 (certain)."""
    reason: Text | None = None
    """Why, in the judge's words."""


class TurnAnswer(_Answer):
    """What an agent answers at its turn of a conversation."""

    text: Annotated[Text, Field(max_length=100_000)]
    """The message; in a burst each line is a message."""
    raw: Text | None = None
    """What the model wrote, where it is another text."""
    finish: Text | None = None
    """Why the model's text ended, such as "stop" or "length"."""
    delay_s: Annotated[float, Field(ge=0)] | None = None
    """Seconds of pause before it; None: the pair's settings say."""


Answer = ColorAnswer | ObjectAnswer | CaptionAnswer | ScanpathAnswer | WordAnswer | ConversationAnswer | VerdictAnswer
"""An answer as it stands in a record."""

BY_TASK: dict[Task, type[_Answer]] = {
    "color_estimation": ColorAnswer,
    "object_detection": ObjectAnswer,
    "attention_prediction": ScanpathAnswer,
    "image_captioning": CaptionAnswer,
    "word_association": WordAnswer,
    "conversation": ConversationAnswer,
    "judgement": VerdictAnswer,
}
"""The type of an answer by its task."""


def plain(answer: BaseModel) -> dict[str, Any]:
    """An answer as JSON values, as a record has it."""
    return answer.model_dump(mode="json")
