"""What clients of OpenAI's interface send, with what of it means something to agents that have settings of their own.

Three kinds of options: those that are honoured, which the models have; those that tune how text is drawn, written or
billed (``IGNORED``), and instructions, which have no effect; and those whose answer a client would read in another way
(``HARMLESS``: tools, log-probabilities, sounds), which are refused unless they say what holds anyway.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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

from agents.stimuli import WHOLE, Task, Text, Word
from serving.http.bodies import Body, Seed

MOST_CHOICES = 16
MOST_MESSAGES = 1000
MOST_TEXT = 20_000  # characters of one text
MOST_ALL = 200_000  # and of all in a request
MOST_IMAGE = 20 * 1024 * 1024  # bytes of an image
TYPE = r"(?:image/[a-z0-9.+-]{1,40}|application/octet-stream)"
DATA = re.compile(rf"data:{TYPE}(?:;[a-z0-9-]{{1,40}}=[^;,]{{1,100}}){{0,4}};base64,", re.IGNORECASE)
LimitedText = Annotated[str, Field(max_length=MOST_TEXT)]
OneText = Annotated[list[LimitedText], Field(min_length=1, max_length=1)]


class OptionalBody(Body):
    """A part of a request. Options that have no effect, or say what holds anyway, are left out when it is read."""

    IGNORED: ClassVar[frozenset[str]] = frozenset()
    HARMLESS: ClassVar[Mapping[str, Sequence[Any]]] = {}

    _ignored: list[str] = PrivateAttr(default_factory=list)

    @model_validator(mode="wrap")
    @classmethod
    def _without_options(cls, given: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(given, dict):
            return read(given)
        made = read({name: value for name, value in given.items() if not cls._is_idle(name, value)})
        made._ignored = [name for name, value in given.items() if name in cls.IGNORED and value is not None]
        return made

    @classmethod
    def _is_idle(cls, name: str, value: Any) -> bool:
        allowed = [None, *cls.HARMLESS[name]] if name in cls.HARMLESS else []
        same = (value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)
        return name in cls.IGNORED or any(same)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The options too: a request that gives them is none that the document forbids."""
        schema = handler(core)
        named = handler.resolve_ref_schema(schema)["properties"]
        named |= {name: {"description": "Has no effect."} for name in sorted(cls.IGNORED)}
        named |= {name: {"enum": [None, *cls.HARMLESS[name]]} for name in sorted(cls.HARMLESS)}
        return schema

    @property
    def ignored(self) -> list[str]:
        """The names of the options that were given and have no effect."""
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
    """One message. Those of the system and the developer have no effect: agents have instructions of their own, and a
    topic goes into `stimulus`. What the assistant's have beside their content is taken where it is empty."""

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
    """Fields of a stimulus (see docs/stimuli.md) that do not follow from a request in OpenAI's form."""

    id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Of the stimulus, as in a set; if none is given, one follows from the first message, the image or the cue."""
    task: Task | None = None
    """For agents that could answer the request in several ways."""
    topic: Word | None = None
    names: Annotated[tuple[Word, Word], Field(examples=[["Ann", "Ben"]])] | None = None
    """The user's and the agent's; drawn from the seed, if none are given."""
    personas: tuple[Text, Text] | None = None
    """The user's and the agent's."""
    exchanges: Annotated[int, Field(strict=True, ge=1, le=1_000), WHOLE] | None = None
    version: Literal["free", "prompted"] | None = None
    examples: Annotated[list[tuple[Word, Word]], Field(max_length=20)] | None = None

    def fields(self) -> dict[str, Any]:
        """Those that are given, without the task."""
        return self.model_dump(exclude_none=True, exclude={"task"})


Stop = LimitedText | Annotated[list[LimitedText], Field(max_length=16)] | None


def _as_list(given: object) -> object:
    return [] if given is None else [given] if isinstance(given, str) else given


class AnswerRequest(OptionalBody):
    """What both routes take."""

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
    """The run's seed; the server's own, if none is given, so that the same request always has the same answer."""
    stop: Annotated[list[LimitedText], BeforeValidator(_as_list, json_schema_input_type=Stop)] = Field(
        default_factory=list, max_length=16
    )
    """The answer ends before the first of these texts; the record has all of it."""
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    stimulus: StimulusFields = StimulusFields()
    """Not in OpenAI's interface: what else there is to be said of the stimulus."""


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
    def said(self) -> list[ChatMessage]:
        """The user's messages and the assistant's."""
        return [one for one in self.messages if one.role in ("user", "assistant")]

    @field_validator("messages")
    @classmethod
    def _can_be_answered(cls, messages: list[ChatMessage]) -> list[ChatMessage]:
        if messages[-1].role != "user":
            raise PydanticCustomError("messages", "the last message is the user's, which is to be answered")
        if any(one.images() for one in messages[:-1]) or len(messages[-1].images()) > 1:
            raise PydanticCustomError("messages", "only the last message may show an image, and no more than one")
        if sum(len(one.text()) for one in messages) > MOST_ALL:
            raise PydanticCustomError(
                "messages", "all messages have at most {most} characters together", {"most": MOST_ALL}
            )
        return messages


def _only_one(prompt: object) -> object:
    return prompt[0] if isinstance(prompt, list) and len(prompt) == 1 else prompt


class CompletionRequest(AnswerRequest):
    """The answer to one message, or a word that goes with another."""

    HARMLESS: ClassVar = {**AnswerRequest.HARMLESS, "best_of": (1,), "echo": (False,), "logprobs": (), "suffix": ("",)}

    prompt: Annotated[LimitedText, BeforeValidator(_only_one, json_schema_input_type=LimitedText | OneText)] = Field(
        examples=["I like books."]
    )
    """A message, which is answered and not continued, or a cue word; a list has one of them."""
