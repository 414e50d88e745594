"""Stimuli, shown to agents, for each of the six tasks, and trials, shown to judges."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import orjson
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agents.images import Image

Asked = Literal[
    "color_estimation",
    "object_detection",
    "attention_prediction",
    "image_captioning",
    "word_association",
    "conversation",
]
Task = Literal[Asked, "judgement"]
TASKS: tuple[Asked, ...] = get_args(Asked)  # of participants
ALL_TASKS: tuple[Task, ...] = get_args(Task)
SHORT: dict[str, Asked] = {  # other names of tasks on the command line
    "color": "color_estimation",
    "object": "object_detection",
    "attention": "attention_prediction",
    "caption": "image_captioning",
    "word": "word_association",
    "conversation": "conversation",
}
Mode = Literal["free", "search"]  # of attention prediction
MODES: tuple[Mode, ...] = get_args(Mode)
ConversationType = Literal["HH", "HM", "MM"]  # people, a person and a machine, machines
Family = Literal["completion", "chat", "blenderbot", "other"]  # of agents that converse

MOST_META = 1000  # entries
IMAGES = ("image", "target_image", "target_mask", "clip")


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)  # of whole numbers: 24.0 counts, as in JSON Schema
Scalar = str | int | float | bool | None
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
Pixels = Annotated[int, Field(ge=1, le=1_000_000), WHOLE]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Stimulus(_Part):
    """``meta`` is a flat map for every export."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    benchmark_id: str | None = None
    source: str | None = None
    source_id: str | None = None
    meta: dict[str, Scalar] = Field(
        default_factory=dict,
        description="Whole numbers have 64 bits, which JSON Schema cannot say beside numbers with an exponent.",
        json_schema_extra={"maxProperties": MOST_META},
    )

    @field_validator("id")
    @classmethod
    def _id_is_plain(cls, value: str) -> str:
        if not value.isprintable() or "\\" in value or value.startswith("/") or ".." in value.split("/"):
            raise PydanticCustomError("id", "must be printable, without a backslash, a '/' at its start or a '..' part")
        return value

    @field_validator("meta", mode="before")
    @classmethod
    def _meta_is_small(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > MOST_META:  # before each is checked
            raise PydanticCustomError("meta", "has more than {most} entries", {"most": MOST_META})
        return value

    @field_validator("meta")
    @classmethod
    def _meta_fits_64_bits(cls, value: dict[str, Scalar]) -> dict[str, Scalar]:
        for key, entry in value.items():
            if isinstance(entry, int) and not -(2**63) <= entry < 2**63:
                raise PydanticCustomError(
                    "meta", "{key}: a whole number beyond 64 bits; write it as text", {"key": key}
                )
        return value

    def images(self) -> list[Image]:
        return list(self.images_by_field().values())

    def images_by_field(self) -> dict[str, Image]:
        fields = vars(self)  # quicker than getattr, for which pydantic looks for private attributes
        return {name: image for name in IMAGES if (image := fields.get(name)) is not None}


class _Picture(_Stimulus):
    image: Image
    present: list[str] | None = None
    absent: list[str] | None = None


class ColorStimulus(_Picture):
    """Colour estimation: the dominant colour of an image, of eleven words."""

    task: Literal["color_estimation"]


class ObjectStimulus(_Picture):
    """Object detection: three objects in an image."""

    task: Literal["object_detection"]


class CaptionStimulus(_Picture):
    """Image captioning: a sentence about an image."""

    task: Literal["image_captioning"]
    domain: Literal["in", "near", "out", "coco"] | None = None


class AttentionStimulus(_Picture):
    """Where a person looks, in free viewing or in search of a target. ``target_box`` is [x, y, width, height] and
    ``window`` the side of the inhibition window, in pixels of the image."""

    task: Literal["attention_prediction"]
    mode: Mode = "free"
    dataset: str | None = None
    target_image: Image | None = None
    target_box: tuple[float, float, float, float] | None = None
    target_mask: Image | None = None
    target_present: bool | None = None
    window: Pixels | None = None
    max_fixations: Annotated[int, Field(ge=1, le=10_000), WHOLE] | None = None
    pixels_per_degree: Annotated[float, Field(gt=0)] | None = None

    @field_validator("target_box")
    @classmethod
    def _box_has_an_area(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None and (value[2] <= 0 or value[3] <= 0):
            raise PydanticCustomError("box", "width and height must be above 0: [x, y, width, height]")
        return value

    @model_validator(mode="after")
    def _search_has_a_target(self) -> AttentionStimulus:
        has_target = any(part is not None for part in (self.target_image, self.target_box, self.target_mask))
        if self.mode == "search" and not has_target:
            raise PydanticCustomError("mode", "mode 'search' needs target_image, target_box or target_mask")
        if self.mode == "free" and has_target:
            raise PydanticCustomError("mode", "a target needs mode 'search'")
        return self


class WordStimulus(_Stimulus):
    """Word association: a cue word; the prompted version shows three example pairs first."""

    task: Literal["word_association"]
    cue: Word
    version: Literal["free", "prompted"] = "free"
    examples: list[tuple[str, str]] = Field(max_length=20, default_factory=list)
    word_class: str | None = None
    frequency: float | None = None

    @model_validator(mode="after")
    def _prompted_has_examples(self) -> WordStimulus:
        if self.version == "prompted" and not self.examples:
            raise PydanticCustomError("examples", "version 'prompted' needs examples: [[cue, guess], ...]")
        return self


class Utterance(_Part):
    """An earlier message; ``at`` in seconds from the start, or null."""

    speaker: Word
    text: Annotated[str, StringConstraints(max_length=100_000)]
    at: Annotated[float, Field(ge=0)] | None = None


class PseudoDialogue(_Part):
    """What an agent writes itself before a conversation, for both speakers: ``turns`` about each of ``topics``."""

    topics: Annotated[int, Field(ge=1, le=100), WHOLE]
    turns: Annotated[int, Field(ge=1, le=100), WHOLE]


class ConversationStimulus(_Stimulus):
    """Two speakers and a topic, by turns (``ping-pong``) or several messages in a row (``burst``). ``exchanges`` counts
    messages. The seed draws ``who_starts`` where it is null. Speakers in ``history`` are the ``names``, or "A" and
    "B"."""

    task: Literal["conversation"]
    type: ConversationType = "MM"
    mode: Literal["ping-pong", "burst"] = "ping-pong"
    topic: Word | None = None
    names: tuple[Word, Word] | None = None
    personas: tuple[Text, Text] | None = None
    opener: Text | None = None
    who_starts: Literal["A", "B"] | None = None
    exchanges: Annotated[int, Field(ge=1, le=1_000), WHOLE] = 24
    history: list[Utterance] = Field(max_length=10_000, default_factory=list)
    pseudo: PseudoDialogue | None = None

    @model_validator(mode="after")
    def _speakers_are_two(self) -> ConversationStimulus:
        if self.names is not None and self.names[0] == self.names[1]:
            raise PydanticCustomError("names", "the two names must differ")
        strangers = {utterance.speaker for utterance in self.history}.difference(self.names or (), ("A", "B"))
        if strangers:
            raise PydanticCustomError(
                "speakers",
                "history: the speaker {name} is neither A nor B nor one of the names",
                {"name": repr(min(strangers)[:50])},
            )
        return self


class Said(_Part):
    """A message of an excerpt: A speaks first."""

    speaker: Literal["A", "B"]
    text: Annotated[str, StringConstraints(max_length=100_000)]


class ShownAnswer(_Part):
    """What a judge sees of an answer, by task (``SHOWN``); ``fixations`` are [x, y] in pixels of ``frame`` = [width,
    height]."""

    color: str | None = None
    labels: list[str] | None = None
    fixations: list[tuple[float, float]] | None = None
    frame: tuple[int, int] | None = None
    text: str | None = None
    word: str | None = None
    messages: list[Said] | None = None


SHOWN: Mapping[Asked, tuple[str, ...]] = {
    "color_estimation": ("color",),
    "object_detection": ("labels",),
    "attention_prediction": ("fixations", "frame"),
    "image_captioning": ("text",),
    "word_association": ("word",),
    "conversation": ("messages",),
}
"""The fields of ``ShownAnswer`` that an answer to each task has."""


class JudgementStimulus(_Stimulus):
    """A judge says whether an answer, or a speaker of a conversation, is a person's or a machine's. ``asked`` is the
    task that was answered, ``question`` what the judge reads. With a conversation ``beside`` it says in which a machine
    speaks: ``machine`` for the answer, ``human`` for the other."""

    task: Literal["judgement"]
    asked: Asked
    shown: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    question: Text
    answer: ShownAnswer
    image: Image | None = None
    target_image: Image | None = None
    clip: Image | None = None
    cue: Word | None = None
    examples: list[tuple[str, str]] = Field(max_length=20, default_factory=list)
    speaker: Literal["A", "B"] | None = None
    beside: ShownAnswer | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> JudgementStimulus:
        wanted = SHOWN[self.asked]
        if _filled(self.answer) != set(wanted):
            raise PydanticCustomError(
                "shown",
                "answer: an answer to {asked} has {names}",
                {"asked": self.asked, "names": " and ".join(wanted)},
            )
        needed = {"conversation": "speaker", "word_association": "cue"}.get(self.asked)
        if needed is not None and getattr(self, needed) is None and self.beside is None:
            raise PydanticCustomError("part", "{needed}: lacks", {"needed": needed})
        if self.beside is not None and _filled(self.beside) != {"messages"}:
            raise PydanticCustomError("beside", "beside: must be a conversation, as the answer is")
        if self.beside is not None and self.asked != "conversation":
            raise PydanticCustomError("beside", "beside: only conversations are shown in pairs")
        return self


def _filled(answer: ShownAnswer) -> set[str]:
    return {name for name, value in answer if value is not None}


Stimulus = Annotated[
    ColorStimulus
    | ObjectStimulus
    | AttentionStimulus
    | CaptionStimulus
    | WordStimulus
    | ConversationStimulus
    | JudgementStimulus,
    Field(discriminator="task"),
]
ADAPTER: TypeAdapter[Stimulus] = TypeAdapter(Stimulus)


def parse_row(
    row: bytes | str, *, root: Path | str | None = None, files: Mapping[str, bytes] | None = None
) -> Stimulus:
    """Images relative to ``root``, or by name in ``files``. Raises ``pydantic.ValidationError``."""
    return ADAPTER.validator.validate_json(row, context={"root": root, "files": files})  # type: ignore[no-any-return]


def canonical(stimulus: Stimulus) -> bytes:
    """JSON with sorted keys, defaults left out."""
    return orjson.dumps(as_dict(stimulus), option=orjson.OPT_SORT_KEYS)


def as_dict(stimulus: Stimulus) -> dict[str, Any]:
    return stimulus.__pydantic_serializer__.to_python(stimulus, mode="json", exclude_defaults=True)  # type: ignore[no-any-return]


def sha256(stimulus: Stimulus) -> str:
    """Of the only image's bytes, else of the canonical JSON with images' hashes. Raises ImageError."""
    images = stimulus.images_by_field()
    if len(images) == 1 and "image" in images and not isinstance(stimulus, JudgementStimulus):
        return images["image"].sha256
    row = as_dict(stimulus) | {field: image.sha256 for field, image in images.items()}
    return hashlib.sha256(orjson.dumps(row, option=orjson.OPT_SORT_KEYS)).hexdigest()
