"""A model for all six tasks, asked as the papers asked GPT-4o."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, Field

from agents.answers import CaptionAnswer, ColorAnswer, ObjectAnswer, ScanpathAnswer
from agents.contract import GIB, Declaration, Draw, Finding, Reply
from agents.language.chat import AnthropicChatAgent, ChatAgent, ChatPromptSettings, OpenAIChatAgent
from agents.language.engines.text_request import ChatMessage, Detail, GeneratedText, Sampling, TextRequest
from agents.language.hosts import LocalAgent, ServerAgent, TemplateSettings
from agents.stimuli import TASKS, ConversationStimulus, Stimulus, Task, WordStimulus
from agents.vision import picture_replies as replies
from agents.vision.captions import Flag, flags
from agents.vision.llava_next import INSTRUCTIONS, LENGTHS, Lengths, drawn_length
from agents.word_boundaries import count_words

SENT = ("PNG", "JPEG", "WEBP", "GIF")  # the formats that servers take
READ = 20_000  # characters of a reply that are searched for an answer
FIXATIONS = 15


@dataclass(frozen=True, slots=True)
class Picture:
    """A stimulus with its image's ``data`` as sent, and the ``frame`` (width, height)."""

    stimulus: Stimulus
    data: bytes
    image: str
    frame: tuple[int, int]


class UniversalSettings(ChatPromptSettings):
    """As for a chat model, and how questions about pictures are put."""

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
    lengths: Lengths = LENGTHS
    """Lengths in words, from which a draw is made: COCO's, others, or a file of records of people's captions."""
    reject: tuple[Flag, ...] = ("too_few_words", "too_many_words")
    """Flags that make a caption be drawn again; all flags are in the record anyway."""
    caption_attempts: int = Field(5, ge=1, le=100)
    """How often a caption is drawn while it has such a flag; the last is kept."""


class UniversalAgent(ChatAgent):
    """Asked as people were."""

    settings: UniversalSettings
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
        """A :class:`Picture` if there is an image. Raises ImageError."""
        if isinstance(stimulus, WordStimulus | ConversationStimulus):
            return stimulus
        return Picture(stimulus, *stimulus.images()[0].sendable(SENT))

    def fitted_request(self, stimulus: Any, draw: Draw) -> TextRequest:
        if not isinstance(stimulus, Picture):
            return super().fitted_request(stimulus, draw)
        chosen = self.settings
        about = stimulus.stimulus
        (width, height) = stimulus.frame
        words = str(drawn_length(chosen.lengths, about.id, draw.sample))
        path = replies.SCANPATH.format(count=_wanted(about), width=width, height=height)
        questions: dict[Task, tuple[str, int]] = {
            "color_estimation": (replies.COLOR, chosen.color_tokens),
            "object_detection": (replies.OBJECTS, chosen.object_tokens),
            "image_captioning": (INSTRUCTIONS.replace("{words}", words), chosen.caption_tokens),
            "attention_prediction": (path, chosen.scanpath_tokens),
        }
        prompt, tokens = questions[about.task]
        message = ChatMessage("user", prompt, stimulus.data, chosen.image_detail)
        sampling = Sampling(chosen.picture_temperature, max_tokens=tokens)
        return self._adapted(about, TextRequest(messages=(message,), sampling=sampling))

    def _reply(self, stimulus: Any, draw: Draw, request: TextRequest, text: GeneratedText) -> Reply:
        if not isinstance(stimulus, Picture):
            return super()._reply(stimulus, draw, request, text)
        about = stimulus.stimulus
        written = text.text[:READ]
        answer: BaseModel
        notes: dict[str, Any] = {}
        if about.task == "color_estimation":
            color, css_name = replies.read_color(written)
            answer = ColorAnswer(color=color, css_name=css_name)
        elif about.task == "object_detection":
            answer = ObjectAnswer(labels=replies.read_objects(written))
        elif about.task == "image_captioning":
            limit = drawn_length(self.settings.lengths, about.id, draw.sample)
            caption = replies.read_caption(written)
            known: list[Flag] = ["too_many_words"] if count_words(caption) > limit else []
            finish = "end" if text.finish == "stop" else text.finish
            answer = CaptionAnswer(text=caption, tokens=text.tokens, finish=finish, flags=flags(caption, known))
            notes = {"max_words": limit, "attempt": draw.attempt}
        else:
            fixations = replies.read_scanpath(written)
            wanted = _wanted(about)
            kept = fixations[:wanted]
            durations = [fixation.duration_ms for fixation in kept if fixation.duration_ms is not None]
            answer = ScanpathAnswer(
                fixations=[[fixation.x, fixation.y] for fixation in kept],
                frame=list(stimulus.frame),
                stop="maximum" if len(kept) == wanted else "end",
                forced_first=False,
                selection="said",
                durations_ms=durations if len(durations) == len(kept) else None,
            )
            notes = {"wanted": wanted, "named": len(fixations), "durations": len(durations)}
        return Reply(answer, {**text.record(), "image": stimulus.image, **notes})

    def _reject(self, flag: Flag, stimulus: Stimulus, reply: Reply) -> Finding | None:
        if not isinstance(reply.answer, CaptionAnswer) or flag not in reply.answer.flags:
            return None
        return Finding(flag, reply.raw["attempt"] + 1 < self.settings.caption_attempts, reply.answer.text[:200])


class LocalUniversalAgent(UniversalAgent, LocalAgent[Any]):
    class Settings(UniversalSettings, TemplateSettings):
        """A model that runs here; pictures are for checkpoints with an image processor."""


class ServerUniversalAgent(UniversalAgent, ServerAgent[Any]):
    class Settings(UniversalSettings, OpenAIChatAgent.Settings):
        """A model on a server with OpenAI's interface."""

    declares = Declaration(
        memory=1 * GIB,  # photographs that are decoded
    )


class AnthropicUniversalAgent(UniversalAgent, ServerAgent[Any]):
    class Settings(UniversalSettings, AnthropicChatAgent.Settings):
        """A model on Anthropic's server."""

    declares = Declaration(memory=ServerUniversalAgent.declares.memory)
    engine = AnthropicChatAgent.engine


def _wanted(stimulus: Stimulus) -> int:
    return getattr(stimulus, "max_fixations", None) or FIXATIONS
