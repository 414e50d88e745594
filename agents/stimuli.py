"""Stimuli, shown to agents, for each of the six tasks, and trials, shown to judges."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import orjson
from pydantic import (
    Field,
    StringConstraints,
    TypeAdapter,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agents.images import Image
from agents.stimulus_parts import WHOLE, BaseStimulus, Pixels, StimulusPart, StimulusText, Word

Asked = Literal[
    "color_estimation",
    "object_detection",
    "attention_prediction",
    "image_captioning",
    "word_association",
    "conversation",
]
"""A task of participants, people or machines."""
Task = Literal[Asked, "judgement"]
"""A task of participants or of judges."""
TASKS: tuple[Asked, ...] = get_args(Asked)
"""The six tasks of participants, in the papers' order."""
ALL_TASKS: tuple[Task, ...] = get_args(Task)
"""The tasks of participants and the task of judges."""
SHORT: dict[str, Asked] = {
    "color": "color_estimation",
    "object": "object_detection",
    "attention": "attention_prediction",
    "caption": "image_captioning",
    "word": "word_association",
    "conversation": "conversation",
}
"""Tasks by their short names, which the command line takes as well."""
Mode = Literal["free", "search"]
"""A mode of attention prediction: free viewing, or search of a target."""
MODES: tuple[Mode, ...] = get_args(Mode)
"""Both modes of attention prediction."""
ConversationType = Literal["HH", "HM", "MM"]
"""Who converses: two people, a person and a machine, two machines."""
Family = Literal["completion", "chat", "blenderbot", "other"]
"""A kind of language model, by which the papers chose what to do with odd messages."""


class _Picture(BaseStimulus):
    image: Image
    """The picture."""
    present: list[str] | None = None
    """Words for what the picture shows; catch trials avoid them."""
    absent: list[str] | None = None
    """Words for what the picture does not show, from which catch trials choose."""


class ColorStimulus(_Picture):
    """Colour estimation: the dominant colour of an image, of eleven words."""

    task: Literal["color_estimation"]
    """Names the type of stimulus."""


class ObjectStimulus(_Picture):
    """Object detection: three objects in an image."""

    task: Literal["object_detection"]
    """Names the type of stimulus."""


class CaptionStimulus(_Picture):
    """Image captioning: a sentence about an image."""

    task: Literal["image_captioning"]
    """Names the type of stimulus."""
    domain: Literal["in", "near", "out", "coco"] | None = None
    """How near its objects are to COCO's 80 classes, as nocaps says; "coco": it is an image of COCO."""


class AttentionStimulus(_Picture):
    """Where a person looks, in free viewing or in search of a target. ``target_box`` is [x, y, width, height] and
    ``window`` the side of the inhibition window, in pixels of the image."""

    task: Literal["attention_prediction"]
    """Names the type of stimulus."""
    mode: Mode = "free"
    """Free viewing, or search; a search has a target."""
    dataset: str | None = None
    """The data set of scanpaths whose parameters an agent may take."""
    target_image: Image | None = None
    """What the target looks like."""
    target_box: tuple[float, float, float, float] | None = None
    """Where the target is: [x, y, width, height] in pixels of the image."""
    target_mask: Image | None = None
    """Where the target is: a picture of the image's size, white there."""
    target_present: bool | None = None
    """Whether the target is in the image; None: it is not said."""
    window: Pixels | None = None
    """The side of the window of inhibition around a fixation, in pixels of the image."""
    max_fixations: Annotated[int, Field(ge=1, le=10_000), WHOLE] | None = None
    """Fixations at most; None: the agent's settings say."""
    pixels_per_degree: Annotated[float, Field(gt=0)] | None = None
    """Pixels of the image that made a degree of a viewer's visual field."""

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


class WordStimulus(BaseStimulus):
    """Word association: a cue word; the prompted version shows three example pairs first."""

    task: Literal["word_association"]
    """Names the type of stimulus."""
    cue: Word
    """The word that is shown."""
    version: Literal["free", "prompted"] = "free"
    """Whether examples are shown first ("prompted")."""
    examples: list[tuple[str, str]] = Field(max_length=20, default_factory=list)
    """Pairs of a cue and a person's answer."""
    word_class: str | None = None
    """The cue's part of speech."""
    frequency: float | None = None
    """How frequent the cue is, in the unit of its source."""

    @model_validator(mode="after")
    def _prompted_has_examples(self) -> WordStimulus:
        if self.version == "prompted" and not self.examples:
            raise PydanticCustomError("examples", "version 'prompted' needs examples: [[cue, guess], ...]")
        return self


class Utterance(StimulusPart):
    """An earlier message; ``at`` in seconds from the start, or null."""

    speaker: Word
    """The speaker's name, or "A" or "B"."""
    text: Annotated[str, StringConstraints(max_length=100_000)]
    """What was said."""
    at: Annotated[float, Field(ge=0)] | None = None
    """Seconds from the conversation's start; None: there are no times."""


class PseudoDialogue(StimulusPart):
    """What an agent writes itself before a conversation, for both speakers: ``turns`` about each of ``topics``."""

    topics: Annotated[int, Field(ge=1, le=100), WHOLE]
    """Topics that it thinks of."""
    turns: Annotated[int, Field(ge=1, le=100), WHOLE]
    """Messages about each topic."""


class ConversationStimulus(BaseStimulus):
    """Two speakers and a topic, by turns (``ping-pong``) or several messages in a row (``burst``). ``exchanges`` counts
    messages. The seed draws ``who_starts`` where it is null. Speakers in ``history`` are the ``names``, or "A" and
    "B"."""

    task: Literal["conversation"]
    """Names the type of stimulus."""
    type: ConversationType = "MM"
    """Who converses."""
    mode: Literal["ping-pong", "burst"] = "ping-pong"
    """Whether speakers take turns, or may send several messages in a row."""
    topic: Word | None = None
    """What it is about."""
    names: tuple[Word, Word] | None = None
    """The names of A and B; None: they are drawn."""
    personas: tuple[StimulusText, StimulusText] | None = None
    """Who A and B are, as a model is told; None: they are drawn where a prompt needs them."""
    opener: StimulusText | None = None
    """The first message, which is given."""
    who_starts: Literal["A", "B"] | None = None
    """Who speaks first; None: it is drawn."""
    exchanges: Annotated[int, Field(ge=1, le=1_000), WHOLE] = 24
    """Messages of both speakers together."""
    history: list[Utterance] = Field(max_length=10_000, default_factory=list)
    """Messages that were said before."""
    pseudo: PseudoDialogue | None = None
    """What an agent writes before the conversation; None: nothing."""

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


class Said(StimulusPart):
    """A message of an excerpt: A speaks first."""

    speaker: Literal["A", "B"]
    """Who said it, under a neutral name."""
    text: Annotated[str, StringConstraints(max_length=100_000)]
    """What was said."""
    delay_s: Annotated[float, Field(ge=0)] | None = None
    """Seconds that it took, from the message before it; None: they are not shown."""


class ShownAnswer(StimulusPart):
    """What a judge sees of an answer, by task (``SHOWN``); ``fixations`` are [x, y] in pixels of ``frame`` = [width,
    height]."""

    color: str | None = None
    """A colour's word (color_estimation)."""
    labels: list[str] | None = None
    """Words for objects (object_detection)."""
    fixations: list[tuple[float, float]] | None = None
    """[x, y] of each fixation, in pixels of the frame (attention_prediction)."""
    frame: tuple[int, int] | None = None
    """[width, height] in pixels."""
    text: str | None = None
    """A caption (image_captioning)."""
    word: str | None = None
    """A word (word_association)."""
    messages: list[Said] | None = None
    """An excerpt of a conversation (conversation)."""


SHOWN: Mapping[Asked, tuple[str, ...]] = {
    "color_estimation": ("color",),
    "object_detection": ("labels",),
    "attention_prediction": ("fixations", "frame"),
    "image_captioning": ("text",),
    "word_association": ("word",),
    "conversation": ("messages",),
}
"""The fields of ``ShownAnswer`` that an answer to each task has."""


class JudgementStimulus(BaseStimulus):
    """A judge says whether an answer, or a speaker of a conversation, is a person's or a machine's. ``asked`` is the
    task that was answered, ``question`` what the judge reads. With a conversation ``beside`` it says in which a machine
    speaks: ``machine`` for the answer, ``human`` for the other."""

    task: Literal["judgement"]
    """Names the type of stimulus."""
    asked: Asked
    """The task that was answered."""
    shown: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """The id of the stimulus that was answered."""
    question: StimulusText
    """What the judge is asked."""
    answer: ShownAnswer
    """The answer to be judged."""
    image: Image | None = None
    """The picture that was shown; None where the task has none."""
    target_image: Image | None = None
    """The target of a search."""
    clip: Image | None = None
    """The scanpath as an animation."""
    cue: Word | None = None
    """The cue of a word association."""
    examples: list[tuple[str, str]] = Field(max_length=20, default_factory=list)
    """The pairs that were shown before the cue."""
    speaker: Literal["A", "B"] | None = None
    """The speaker of the excerpt who is judged."""
    beside: ShownAnswer | None = None
    """A second conversation, where two are compared."""

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
"""A stimulus of any task; ``task`` says which."""
ADAPTER: TypeAdapter[Stimulus] = TypeAdapter(Stimulus)
"""Validates rows of any task."""


def parse_row(
    row: bytes | str, *, root: Path | str | None = None, files: Mapping[str, bytes] | None = None
) -> Stimulus:
    """The stimulus of a row of a set, a JSON object. Its images are files below ``root``, or bytes that ``files`` has
    by their names; none is read. Raises ``pydantic.ValidationError``."""
    return ADAPTER.validator.validate_json(row, context={"root": root, "files": files})  # type: ignore[no-any-return]


def canonical(stimulus: Stimulus) -> bytes:
    """The JSON of a stimulus with sorted keys, defaults left out: the same bytes for the same stimulus."""
    return orjson.dumps(as_dict(stimulus), option=orjson.OPT_SORT_KEYS)


def as_dict(stimulus: Stimulus) -> dict[str, Any]:
    """A stimulus as JSON values, defaults left out; an image is its name."""
    return stimulus.__pydantic_serializer__.to_python(stimulus, mode="json", exclude_defaults=True)  # type: ignore[no-any-return]


def sha256(stimulus: Stimulus) -> str:
    """The hash of what was shown, in hex: of the bytes of the only image, else of the canonical JSON with the hashes of
    images. Records have it. Raises ImageError."""
    images = stimulus.images_by_field()
    if len(images) == 1 and "image" in images and not isinstance(stimulus, JudgementStimulus):
        return images["image"].sha256
    row = as_dict(stimulus) | {field: image.sha256 for field, image in images.items()}
    return hashlib.sha256(orjson.dumps(row, option=orjson.OPT_SORT_KEYS)).hexdigest()
