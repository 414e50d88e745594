"""Requests of OpenAI's interface, and the stimulus that each becomes.

The messages of a chat are a conversation's history; an image is captioned (or its colour, objects or fixations are
told); an agent that only associates takes the message as its cue. An agent has settings of its own. So there are three
kinds of options: those that the models have; those that tune how text is drawn (``IGNORED``), which have no effect; and
those whose answer a client would read in another way (``HARMLESS``), refused unless their value changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StrictBool,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from agents.contract import derive_seed
from agents.stimuli import WHOLE, ConversationStimulus, Stimulus, Task, Text, Word
from serving.conversations.scenario import SIDES, draw_scenario
from serving.http.bodies import Body, Seed, checked_stimulus, from_base64
from serving.http.errors import ApiError, invalid
from serving.http.service import Service

IMAGE_TASKS: tuple[Task, ...] = (
    "image_captioning", "color_estimation", "object_detection", "attention_prediction",
)  # fmt: skip
TEXT_TASKS: tuple[Task, ...] = ("conversation", "word_association")
MOST_CHOICES = 16
MOST_MESSAGES = 1000
MOST_TEXT = 20_000  # characters of one text
MOST_ALL = 200_000  # and of all in a request
MOST_IMAGE = 20 * 1024 * 1024  # bytes of an image
TYPE = r"(?:image/[a-z0-9.+-]{1,40}|application/octet-stream)"
DATA = re.compile(rf"data:{TYPE}(?:;[a-z0-9-]{{1,40}}=[^;,]{{1,100}}){{0,4}};base64,", re.IGNORECASE)
LimitedText = Annotated[str, Field(max_length=MOST_TEXT)]
SingleText = Annotated[list[LimitedText], Field(min_length=1, max_length=1)]


class OptionalBody(Body):
    """A part of a request, read without the options that have no effect or say what holds anyway."""

    IGNORED: ClassVar[frozenset[str]] = frozenset()
    HARMLESS: ClassVar[Mapping[str, Sequence[Any]]] = {}

    _ignored: list[str] = PrivateAttr(default_factory=list)

    @model_validator(mode="wrap")
    @classmethod
    def _without_options(cls, part: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(part, dict):
            return read(part)
        model = read({name: value for name, value in part.items() if not cls._is_idle(name, value)})
        model._ignored = [name for name, value in part.items() if name in cls.IGNORED and value is not None]
        return model

    @classmethod
    def _is_idle(cls, name: str, value: Any) -> bool:
        allowed = [None, *cls.HARMLESS[name]] if name in cls.HARMLESS else []
        same = (value == harmless and isinstance(value, bool) == isinstance(harmless, bool) for harmless in allowed)
        return name in cls.IGNORED or any(same)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        named = handler.resolve_ref_schema(schema)["properties"]
        named |= {name: {"description": "Has no effect."} for name in sorted(cls.IGNORED)}
        named |= {name: {"enum": [None, *cls.HARMLESS[name]]} for name in sorted(cls.HARMLESS)}
        return schema

    @property
    def ignored(self) -> list[str]:
        """The names of the options in the request that have no effect."""
        return self._ignored


class TextPart(Body):
    """Text of a message."""

    type: Literal["text"]
    text: LimitedText


class ImageUrl(OptionalBody):
    """An image, as a data URL."""

    IGNORED = frozenset({"detail"})

    url: str = Field(max_length=MOST_IMAGE * 3 // 2, examples=["data:image/png;base64,iVBORw0KGgo="])

    @field_validator("url")
    @classmethod
    def _is_data(cls, url: str) -> str:
        if DATA.match(url) is None:
            raise PydanticCustomError(
                "image", "nothing is fetched: send the image itself, as data:image/png;base64,… (or another type)"
            )
        return url


class ImagePart(Body):
    """Image of a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]
Parts = Annotated[list[Part], Field(min_length=1, max_length=20)]


def _as_parts(content: object) -> object:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class ChatMessage(OptionalBody):
    """A message. Those of the system and the developer have no effect: agents have instructions of their own."""

    IGNORED = frozenset({"name"})
    HARMLESS: ClassVar = {"refusal": (), "annotations": ([],), "audio": (), "function_call": (), "tool_calls": ([],)}

    role: Literal["user", "assistant", "system", "developer"]
    content: Annotated[Parts, BeforeValidator(_as_parts, json_schema_input_type=LimitedText | Parts)]

    def text(self) -> str:
        """Its texts, one a line."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    def images(self) -> list[str]:
        """Its images in base64."""
        return [part.image_url.url.partition(",")[2] for part in self.content if isinstance(part, ImagePart)]


class StreamOptions(OptionalBody):
    """How a stream is sent."""

    IGNORED = frozenset({"include_obfuscation"})

    include_usage: StrictBool | None = None
    """Whether a last piece tells the numbers of tokens."""


class StimulusFields(Body):
    """Fields of a stimulus (docs/stimuli.md) beside those that follow from the request."""

    id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Of the stimulus; by default it follows from the first message, the image or the cue."""
    task: Task | None = None
    """For agents that could answer the request in several ways."""
    topic: Word | None = None
    names: Annotated[tuple[Word, Word], Field(examples=[["Ann", "Ben"]])] | None = None
    """The user's and the agent's; by default drawn from the seed."""
    personas: tuple[Text, Text] | None = None
    """The user's and the agent's."""
    exchanges: Annotated[int, Field(strict=True, ge=1, le=1_000), WHOLE] | None = None
    version: Literal["free", "prompted"] | None = None
    examples: Annotated[list[tuple[Word, Word]], Field(max_length=20)] | None = None

    def fields(self) -> dict[str, Any]:
        """The fields that are set, without the task."""
        return self.model_dump(exclude_none=True, exclude={"task"})


Stop = LimitedText | Annotated[list[LimitedText], Field(max_length=16)] | None


def _as_list(stop: object) -> object:
    return [] if stop is None else [stop] if isinstance(stop, str) else stop


class AnswerRequest(OptionalBody):
    """The fields of both routes."""

    IGNORED = frozenset({
        "temperature", "top_p", "frequency_penalty", "presence_penalty", "max_tokens", "user",
        "ignore_eos", "min_p", "min_tokens", "repetition_penalty", "skip_special_tokens", "top_k",  # vLLM's
    })  # fmt: skip
    HARMLESS: ClassVar = {"logit_bias": ({},)}

    model: str = Field(max_length=200, examples=["eliza"])
    """One of GET /v1/models."""
    n: Annotated[int, Field(strict=True, ge=1, le=MOST_CHOICES), WHOLE] | None = None
    """So many answers: samples 0 to n-1."""
    seed: Seed | None = None
    """The run's seed; the server's own by default, so that the same request always has the same answer."""
    stop: Annotated[list[LimitedText], BeforeValidator(_as_list, json_schema_input_type=Stop)] = Field(
        default_factory=list, max_length=16
    )
    """The answer ends before the first of these texts; the record has all of it."""
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    stimulus: StimulusFields = StimulusFields()
    """Not in OpenAI's interface: more fields of the stimulus."""


class ChatRequest(AnswerRequest):
    """The next message of a chat, the answer to an image, or a word that goes with another."""

    IGNORED = AnswerRequest.IGNORED | {
        "max_completion_tokens", "metadata", "moderation", "parallel_tool_calls", "prompt_cache_key",
        "prompt_cache_options", "prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier",
        "service_tier", "store", "verbosity",
    }  # fmt: skip
    HARMLESS: ClassVar = {
        **AnswerRequest.HARMLESS, "audio": (), "function_call": ("none", "auto"), "functions": ([],),
        "logprobs": (False,), "modalities": (["text"],), "prediction": (),
        "tool_choice": ("none", "auto"), "tools": ([],), "top_logprobs": (0,), "web_search_options": (),
    }  # fmt: skip

    messages: list[ChatMessage] = Field(
        min_length=1, max_length=MOST_MESSAGES, examples=[[{"role": "user", "content": "I like books."}]]
    )
    """The last one is the user's. Only it may show an image, and no more than one."""

    @property
    def turns(self) -> list[ChatMessage]:
        """The user's messages and the assistant's."""
        return [message for message in self.messages if message.role in ("user", "assistant")]

    @field_validator("messages")
    @classmethod
    def _can_be_answered(cls, messages: list[ChatMessage]) -> list[ChatMessage]:
        if messages[-1].role != "user":
            raise PydanticCustomError("messages", "the last message is the user's, which is to be answered")
        if any(message.images() for message in messages[:-1]) or len(messages[-1].images()) > 1:
            raise PydanticCustomError("messages", "only the last message may show an image, and no more than one")
        if sum(len(message.text()) for message in messages) > MOST_ALL:
            raise PydanticCustomError(
                "messages", "all messages have at most {most} characters together", {"most": MOST_ALL}
            )
        return messages


def _single(prompt: object) -> object:
    return prompt[0] if isinstance(prompt, list) and len(prompt) == 1 else prompt


class CompletionRequest(AnswerRequest):
    """The answer to one message, or a word that goes with another."""

    HARMLESS: ClassVar = {**AnswerRequest.HARMLESS, "best_of": (1,), "echo": (False,), "logprobs": (), "suffix": ("",)}

    prompt: Annotated[LimitedText, BeforeValidator(_single, json_schema_input_type=LimitedText | SingleText)] = Field(
        examples=["I like books."]
    )
    """A message, which is answered and not continued, or a cue word; a list has one of them."""


# from a request to a stimulus


@dataclass(frozen=True, slots=True)
class Question:
    """A stimulus with its images, and the names of the request's fields without effect."""

    stimulus: Stimulus
    files: Mapping[str, bytes] | None
    ignored: list[str]


def of_chat(service: Service, asking: ChatRequest) -> Question:
    """The stimulus of a chat. Raises ApiError."""
    extra, turns, last = asking.stimulus, asking.turns, asking.messages[-1]
    ignored = list(asking.ignored)
    if len(turns) < len(asking.messages):
        ignored.append("messages.system")
    if any(message.ignored for message in turns):
        ignored.append("messages.name")
    images = last.images()
    task = extra.task or _first_task(service, asking.model, IMAGE_TASKS if images else TEXT_TASKS)
    if images and task in TEXT_TASKS:
        raise invalid([("messages", f"an image cannot be shown in {task}")])
    if task == "conversation":
        history = [("AB"[message.role == "assistant"], message.text()) for message in turns]
        return Question(_conversation(service, asking, history), None, ignored)
    if len(turns) > 1:
        ignored.append("messages")
    if task == "word_association":
        return Question(_cue(extra, last.text(), "messages"), None, ignored)
    if not images:
        raise invalid([("messages", f"agent {asking.model} answers {task}, and there is no image")])
    if last.text().strip():
        ignored.append("messages.content.text")
    try:
        data = from_base64(images[0])
    except ValueError:
        raise invalid([("messages.content.image_url.url", "the image is no base64")]) from None
    if len(data) > MOST_IMAGE:
        raise ApiError(413, "too_large", f"an image has at most {MOST_IMAGE:,} bytes")
    row = {"id": _id("image", data), "task": task, "image": "image", **extra.fields()}
    return Question(checked_stimulus(row, {"image": data}), {"image": data}, ignored)


def of_prompt(service: Service, asking: CompletionRequest) -> Question:
    """The stimulus of a prompt. Raises ApiError."""
    ignored = asking.ignored
    task = asking.stimulus.task or _first_task(service, asking.model, TEXT_TASKS)
    if task == "conversation":
        return Question(_conversation(service, asking, [("A", asking.prompt)]), None, ignored)
    if task == "word_association":
        return Question(_cue(asking.stimulus, asking.prompt, "prompt"), None, ignored)
    raise invalid([("stimulus.task", f"{task} needs an image, which a prompt has not: see /v1/chat/completions")])


def _first_task(service: Service, name: str, likely: Sequence[Task]) -> Task:
    """The first of the ``likely`` tasks that the agent answers. Raises ApiError if there is none."""
    agent = service.agent(name)
    for task in likely:
        if task in agent.tasks:
            return task
    wanted = "images" if likely is IMAGE_TASKS else "text without an image"
    raise ApiError(422, "wrong_task", f"agent {name} answers {', '.join(agent.tasks)}: {wanted} is not for it")


def _conversation(service: Service, asking: AnswerRequest, messages: Sequence[tuple[str, str]]) -> Stimulus:
    """The conversation with these messages so far, each with its side: the user is A, the agent B."""
    row = {"id": _id("chat", messages[0][1].encode()), "task": "conversation", "type": "HM", **asking.stimulus.fields()}
    stimulus = checked_stimulus(row, {})
    assert isinstance(stimulus, ConversationStimulus)
    run_seed = service.options.seed if asking.seed is None else asking.seed
    names = draw_scenario(stimulus, derive_seed(run_seed, asking.model, stimulus.id, 0, None, 0)).names
    assert names is not None
    history = [{"speaker": names[SIDES.index(side)], "text": text} for side, text in messages]
    return checked_stimulus({**row, "names": names, "who_starts": messages[0][0], "history": history}, {})


def _cue(extra: StimulusFields, text: str, field: str) -> Stimulus:
    if not 0 < len(text.strip()) <= 200:
        raise invalid([(field, "the last message is the cue: a word, of at most 200 characters")])
    row = {"id": _id("cue", text.encode()), "task": "word_association", "cue": text, **extra.fields()}
    return checked_stimulus(row, {})


def _id(kind: str, content: bytes) -> str:
    """A stimulus's id by default: the same for the same content, and for all turns of a chat."""
    return f"{kind}-{hashlib.sha256(content).hexdigest()[:16]}"
