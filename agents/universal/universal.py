"""A model for all six tasks, asked as the papers asked GPT-4o."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, Field

from agents.answers import CaptionAnswer, ColorAnswer, ObjectAnswer, ScanpathAnswer
from agents.contract import GIB, Declaration, Draw, Finding, Reply
from agents.language.chat import AnthropicChatAgent, ChatAgent, ChatPromptSettings, OpenAIChatAgent
from agents.language.engines.text_request import ChatMessage, Detail, GeneratedText, Sampling, TextRequest
from agents.language.hosts import LocalAgent, ServerAgent, TemplateSettings
from agents.stimuli import TASKS, ConversationStimulus, Stimulus, WordStimulus
from agents.vision import picture_replies as replies
from agents.vision.captions import Flag, flags
from agents.vision.llava_next import CAPTION_LENGTHS, INSTRUCTIONS, Lengths, drawn_length
from agents.word_boundaries import count_words

SENT = ("PNG", "JPEG", "WEBP", "GIF")
"""The formats of pictures that servers take."""
READ = 20_000
"""Characters of a reply that are searched for an answer."""
FIXATIONS = 15
"""How many fixations are asked for where the stimulus does not say."""


@dataclass(frozen=True, slots=True)
class SentPicture:
    """The file of a picture in a form that models take, with what is asked about it."""

    stimulus: Stimulus
    """What is asked: the task, and what goes with it, such as the target of a search."""
    data: bytes
    """The file's bytes."""
    image: str
    """Whether they are the original's or a PNG made of it."""
    frame: tuple[int, int]
    """The picture's (width, height) in pixels."""


class UniversalSettings(ChatPromptSettings):
    """As for a chat model; and how questions about pictures are put."""

    picture_temperature: float = Field(1.0, ge=0, le=2)
    """The temperature of answers about pictures; the papers name none, 1 is what servers take by themselves."""
    image_detail: Detail = "auto"
    """How finely OpenAI's models look at a picture."""
    color_tokens: int = Field(20, ge=1, le=100_000)
    """The most tokens of a colour."""
    object_tokens: int = Field(50, ge=1, le=100_000)
    """The most tokens of objects."""
    caption_tokens: int = Field(100, ge=1, le=100_000)
    """The most tokens of a caption."""
    scanpath_tokens: int = Field(1024, ge=1, le=100_000)
    """The most tokens of a scanpath."""
    lengths: Lengths = CAPTION_LENGTHS
    """Lengths in words, from which a draw is made: COCO's, others, or a file of records of people's captions."""
    reject: tuple[Flag, ...] = ("too_few_words", "too_many_words")
    """Flags for which a caption is drawn again; the record has all flags anyway."""
    caption_attempts: int = Field(5, ge=1, le=100)
    """How often a caption is drawn while it has such a flag; the last is kept."""


class UniversalAgent(ChatAgent):
    """Base of the agents for all tasks: conversations and words as a chat model, pictures with the questions that
    people were asked."""

    settings: UniversalSettings
    """How the agent converses, and how it is asked about pictures; fixed once the agent is made."""
    declares = Declaration(
        tasks=TASKS,
        modes=("free",),
    )

    def declaration(self) -> Declaration:
        """With the attempts at a message or a caption, and what makes a caption be drawn again."""
        declared = super().declaration()
        attempts = max(self.settings.attempts, self.settings.caption_attempts)
        filters = (partial(self._reject, flag) for flag in self.settings.reject)
        return declared.replace(attempts=attempts, filters=(*declared.filters, *filters))

    def prepare(self, stimulus: Stimulus) -> Any:
        """A :class:`SentPicture` if there is an image, else the stimulus. Raises ImageError."""
        if isinstance(stimulus, WordStimulus | ConversationStimulus):
            return stimulus
        return SentPicture(stimulus, *stimulus.images()[0].sendable(SENT))

    def fitted_request(self, stimulus: Any, draw: Draw) -> TextRequest:
        """The question about a picture, or as for a chat model. Raises AnswerError."""
        if not isinstance(stimulus, SentPicture):
            return super().fitted_request(stimulus, draw)
        question, tokens = self._question(stimulus, draw)
        message = ChatMessage("user", question, stimulus.data, self.settings.image_detail)
        sampling = Sampling(self.settings.picture_temperature, max_tokens=tokens)
        return self._adapted(stimulus.stimulus, TextRequest(messages=(message,), sampling=sampling))

    def _question(self, picture: SentPicture, draw: Draw) -> tuple[str, int]:
        """(the papers' question about a picture, the most tokens of its answer)."""
        settings = self.settings
        task = picture.stimulus.task
        if task == "color_estimation":
            return replies.COLOR, settings.color_tokens
        if task == "object_detection":
            return replies.OBJECTS, settings.object_tokens
        if task == "image_captioning":
            limit = drawn_length(settings.lengths, picture.stimulus.id, draw.sample)
            return INSTRUCTIONS.replace("{words}", str(limit)), settings.caption_tokens
        width, height = picture.frame
        question = replies.SCANPATH.format(count=_wanted(picture.stimulus), width=width, height=height)
        return question, settings.scanpath_tokens

    def _reply(self, stimulus: Any, draw: Draw, request: TextRequest, text: GeneratedText) -> Reply:
        if not isinstance(stimulus, SentPicture):
            return super()._reply(stimulus, draw, request, text)
        task = stimulus.stimulus.task
        written = text.text[:READ]
        answer: BaseModel
        notes: dict[str, Any] = {}
        if task == "color_estimation":
            color, css_name = replies.read_color(written)
            answer = ColorAnswer(color=color, css_name=css_name)
        elif task == "object_detection":
            answer = ObjectAnswer(labels=replies.read_objects(written))
        elif task == "image_captioning":
            limit = drawn_length(self.settings.lengths, stimulus.stimulus.id, draw.sample)
            answer = _caption(written, text, limit)
            notes = {"max_words": limit, "attempt": draw.attempt}
        else:
            fixations = replies.read_scanpath(written)
            wanted = _wanted(stimulus.stimulus)
            durations = [fixation.duration_ms for fixation in fixations[:wanted] if fixation.duration_ms is not None]
            answer = _scanpath(fixations[:wanted], durations, wanted, stimulus.frame)
            notes = {"wanted": wanted, "named": len(fixations), "durations": len(durations)}
        return Reply(answer, {**text.record(), "image": stimulus.image, **notes})

    def _reject(self, flag: Flag, stimulus: Stimulus, reply: Reply) -> Finding | None:
        if not isinstance(reply.answer, CaptionAnswer) or flag not in reply.answer.flags:
            return None
        return Finding(flag, reply.raw["attempt"] + 1 < self.settings.caption_attempts, reply.answer.text[:200])


class LocalUniversalAgent(UniversalAgent, LocalAgent[Any]):
    """A model that runs on this machine."""

    class Settings(UniversalSettings, TemplateSettings):
        """A model that runs here; pictures are for checkpoints with an image processor."""


class ServerUniversalAgent(UniversalAgent, ServerAgent[Any]):
    """A model on a server with OpenAI's interface."""

    class Settings(UniversalSettings, OpenAIChatAgent.Settings):
        """A model on a server with OpenAI's interface."""

    declares = Declaration(
        memory=1 * GIB,  # photographs that are decoded
    )


class AnthropicUniversalAgent(UniversalAgent, ServerAgent[Any]):
    """A model on Anthropic's server."""

    class Settings(UniversalSettings, AnthropicChatAgent.Settings):
        """A model on Anthropic's server."""

    declares = Declaration(memory=ServerUniversalAgent.declares.memory)
    engine = AnthropicChatAgent.engine


def _caption(written: str, text: GeneratedText, limit: int) -> CaptionAnswer:
    """The caption in what a model wrote, flagged where it has more than ``limit`` words. Raises AnswerError."""
    caption = replies.read_caption(written)
    noticed: list[Flag] = ["too_many_words"] if count_words(caption) > limit else []
    finish = "end" if text.finish == "stop" else text.finish
    return CaptionAnswer(text=caption, tokens=text.tokens, finish=finish, flags=flags(caption, noticed))


def _scanpath(
    fixations: Sequence[replies.Fixation], durations: Sequence[float], wanted: int, frame: tuple[int, int]
) -> ScanpathAnswer:
    """The fixations that a model named, with their durations if it named all of them."""
    return ScanpathAnswer(
        fixations=[[fixation.x, fixation.y] for fixation in fixations],
        frame=list(frame),
        stop="maximum" if len(fixations) == wanted else "end",
        forced_first=False,
        selection="said",
        durations_ms=list(durations) if len(durations) == len(fixations) else None,
    )


def _wanted(stimulus: Stimulus) -> int:
    return getattr(stimulus, "max_fixations", None) or FIXATIONS
