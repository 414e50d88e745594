"""One multimodal model for all six tasks, as the papers' GPT-4o: on any server with OpenAI's interface."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ConfigDict, Field

from agents.answers import CaptionAnswer, ColorAnswer, ObjectAnswer, ScanpathAnswer
from agents.contract import GIB, Draw, Reply, Verdict
from agents.language.engines.request import ChatMessage, Detail, Sampling, TextRequest
from agents.language.engines.server import ServerText
from agents.language.openai_chat import ChatServerAgent, TalkSettings
from agents.stimuli import (
    TASKS,
    AttentionStimulus,
    CaptionStimulus,
    ColorStimulus,
    ConversationStimulus,
    ObjectStimulus,
    Stimulus,
    WordStimulus,
)
from agents.universal.prompts import COLOR, OBJECTS, SCANPATH, read_caption, read_color, read_objects
from agents.universal.scanpath_replies import read_scanpath
from agents.vision.captions import Flag, flags
from agents.vision.llava_next import INSTRUCTIONS, LENGTHS, Lengths, drawn_length

SENT = ("PNG", "JPEG", "WEBP", "GIF")  # the formats that OpenAI takes
READ = 20_000  # characters of a reply that are searched for an answer
FIXATIONS = 15


@dataclass(frozen=True, slots=True)
class Picture:
    """A stimulus with an image, ready to be sent: ``data`` as it is or as a PNG, ``frame`` (width, height)."""

    stimulus: Stimulus
    data: bytes
    image: str
    frame: tuple[int, int]


class UniversalSettings(TalkSettings):
    """As for a chat model, and how the questions about images are put."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    temperature: float = Field(1.0, ge=0, le=2)
    """The temperature of answers about images; the papers name none, 1 is what servers take by themselves."""
    image_detail: Detail = "auto"
    """How finely OpenAI's models look at an image."""
    color_tokens: int = Field(20, ge=1, le=100_000)
    """The most tokens of a colour."""
    object_tokens: int = Field(50, ge=1, le=100_000)
    """The most tokens of objects."""
    caption_tokens: int = Field(100, ge=1, le=100_000)
    """The most tokens of a caption."""
    scanpath_tokens: int = Field(1024, ge=1, le=100_000)
    """The most tokens of a scanpath."""
    lengths: Lengths = LENGTHS
    """Lengths in words, one of which is drawn: COCO's, others, or a file of records of people's captions."""
    reject: tuple[Flag, ...] = ("too_few_words", "too_many_words")
    """Flags that make a caption be asked for again; all flags are in the record anyway."""
    caption_attempts: int = Field(5, ge=1, le=100)
    """How often a caption is asked for while it has such a flag; the last is kept."""


class UniversalAgent(ChatServerAgent[UniversalSettings]):
    """Asked as people were; a scanpath's prompt knows free viewing only."""

    tasks = TASKS
    modes = ("free",)
    Settings = UniversalSettings
    memory = 1 * GIB  # photographs that are decoded to be looked at

    def __init__(self, settings: UniversalSettings, name: str) -> None:
        super().__init__(settings, name)
        self.attempts = max(settings.attempts, settings.caption_attempts)
        rejecting = [partial(_reject, flag, settings.caption_attempts) for flag in settings.reject]
        self.filters = (*self.filters, *rejecting, *NOTES)

    def prepare(self, stimulus: Stimulus) -> Any:
        """A stimulus with an image as a :class:`Picture`, any other as it is. Raises ImageError."""
        if isinstance(stimulus, WordStimulus | ConversationStimulus):
            return stimulus
        data, image, frame = stimulus.images()[0].sendable(SENT)
        return Picture(stimulus, data, image, frame)

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        if not isinstance(prepared, Picture):
            return await super().respond_one(prepared, draw)
        stimulus, chosen = prepared.stimulus, self.settings
        if isinstance(stimulus, ColorStimulus):
            said = await self._look(prepared, COLOR, chosen.color_tokens, draw)
            color, css_name = read_color(said.text[:READ])
            return _reply(ColorAnswer(color=color, css_name=css_name), said, prepared)
        if isinstance(stimulus, ObjectStimulus):
            said = await self._look(prepared, OBJECTS, chosen.object_tokens, draw)
            return _reply(ObjectAnswer(labels=read_objects(said.text[:READ])), said, prepared)
        if isinstance(stimulus, CaptionStimulus):
            return await self._caption(prepared, draw)
        assert isinstance(stimulus, AttentionStimulus)
        return await self._scanpath(prepared, stimulus, draw)

    async def _caption(self, picture: Picture, draw: Draw) -> Reply:
        limit = drawn_length(self.settings.lengths, picture.stimulus.id, draw.sample)
        prompt = INSTRUCTIONS.replace("{words}", str(limit))
        said = await self._look(picture, prompt, self.settings.caption_tokens, draw)
        text = read_caption(said.text[:READ])
        known: list[Flag] = ["too_many_words"] if len(text.split()) > limit else []
        finish = "end" if said.finish == "stop" else said.finish
        answer = CaptionAnswer(text=text, tokens=said.tokens, finish=finish, flags=flags(text, known))
        return _reply(answer, said, picture, max_words=limit, attempt=draw.attempt)

    async def _scanpath(self, picture: Picture, stimulus: AttentionStimulus, draw: Draw) -> Reply:
        wanted = stimulus.max_fixations or FIXATIONS
        width, height = picture.frame
        prompt = SCANPATH.format(count=wanted, width=width, height=height)
        said = await self._look(picture, prompt, self.settings.scanpath_tokens, draw)
        found = read_scanpath(said.text[:READ])
        kept = found[:wanted]
        spans = [one.duration_ms for one in kept if one.duration_ms is not None]
        answer = ScanpathAnswer(
            fixations=[[_whole(one.x), _whole(one.y)] for one in kept],
            frame=list(picture.frame),
            stop="maximum" if len(kept) == wanted else "end",
            forced_first=False,
            selection="said",
            durations_ms=spans if len(spans) == len(kept) else None,
        )
        return _reply(answer, said, picture, wanted=wanted, named=len(found), durations=len(spans))

    async def _look(self, picture: Picture, prompt: str, tokens: int, draw: Draw) -> ServerText:
        request = TextRequest(
            messages=(ChatMessage("user", prompt, picture.data, self.settings.image_detail),),
            sampling=Sampling(self.settings.temperature, max_tokens=tokens),
        )
        return await self._complete(request, draw)


def _reply(answer: Any, said: ServerText, picture: Picture, **about: Any) -> Reply:
    return Reply(answer, {**said.record(), "image": picture.image, **about})


def _whole(value: float) -> int | float:
    return int(value) if value.is_integer() else value


# filters: the first makes an attempt be repeated, the others only note


def _reject(flag: Flag, attempts: int, stimulus: Stimulus, reply: Reply) -> Verdict | None:
    if isinstance(reply.answer, CaptionAnswer) and flag in reply.answer.flags:
        return Verdict(flag, reply.raw["attempt"] + 1 < attempts, reply.answer.text[:200])
    return None


def _note_objects(stimulus: Stimulus, reply: Reply) -> Verdict | None:
    if isinstance(reply.answer, ObjectAnswer) and len(reply.answer.labels) < 3:
        return Verdict("fewer_objects", False, f"{len(reply.answer.labels)} of 3")
    return None


def _note_fixations(stimulus: Stimulus, reply: Reply) -> Verdict | None:
    if not isinstance(reply.answer, ScanpathAnswer) or (named := reply.raw["named"]) == (wanted := reply.raw["wanted"]):
        return None
    return Verdict("fewer_fixations" if named < wanted else "more_fixations", False, f"{named}, not {wanted}")


def _note_off_frame(stimulus: Stimulus, reply: Reply) -> Verdict | None:
    if not isinstance(reply.answer, ScanpathAnswer):
        return None
    width, height = reply.answer.frame
    points = reply.answer.fixations
    off = sum(not (0 <= x < width and 0 <= y < height) for x, y in points)
    return Verdict("off_frame", False, f"{off} of {len(points)} fixations") if off else None


def _note_durations(stimulus: Stimulus, reply: Reply) -> Verdict | None:
    if not isinstance(reply.answer, ScanpathAnswer) or reply.answer.durations_ms is not None:
        return None
    return Verdict("no_durations", False, f"{reply.raw['durations']} for {len(reply.answer.fixations)} fixations")


NOTES = (_note_objects, _note_off_frame, _note_fixations, _note_durations)
