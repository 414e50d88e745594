"""What clients of OpenAI's interface send, with what of it means something to agents that have settings of their own.

Three kinds of options: those that are honoured; those that tune how text is drawn or billed, which are taken and have
no effect; and those whose answer a client would read in another way (tools, formats, log-probabilities, stops), which
are refused unless they say what holds anyway.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from agents.stimuli import Task, Text, Word
from serving.http.bodies import PIXEL, Body

MOST_CHOICES = 16
MOST_MESSAGES = 1000
MOST_TEXT = 20_000  # characters of one text
MOST_ALL = 200_000  # and of all in a request
MOST_IMAGE = 20 * 1024 * 1024  # bytes of an image
DATA = re.compile(r"data:image/[a-z0-9.+-]{1,40};base64,", re.IGNORECASE)


def _ignored() -> Any:
    return Field(default=None, json_schema_extra={"description": "Has no effect: the agent's settings say."})


def _only(*values: JsonValue) -> Any:
    """A field for an option that agents do not have: nothing but ``values``, which say what holds anyway."""
    return Field(default=None, json_schema_extra={"enum": [None, *values]})


IGNORED = _ignored().json_schema_extra


class _Part(Body):
    @field_validator("*")
    @classmethod
    def _is_possible(cls, value: Any, info: ValidationInfo) -> Any:
        match cls.model_fields[str(info.field_name)].json_schema_extra:
            case {"enum": list(values)} if (type(value), value) not in [(type(one), one) for one in values]:
                raise PydanticCustomError("unsupported", "agents have no such option: leave it out")
        return value


def _no_instructions(role: object) -> object:
    if role in ("system", "developer"):
        raise PydanticCustomError(
            "unsupported", "agents have instructions of their own and take none; a topic goes into `stimulus`"
        )
    return role


def _is_data(url: str) -> str:
    if DATA.match(url) is None:
        raise PydanticCustomError(
            "image", "nothing is fetched: send the image itself, as data:image/png;base64,… (or another type)"
        )
    return url


class TextPart(_Part):
    """Text of a message."""

    type: Literal["text"]
    text: str = Field(max_length=MOST_TEXT)


class ImageUrl(_Part):
    """An image, as a data URL."""

    url: Annotated[str, AfterValidator(_is_data)] = Field(
        max_length=MOST_IMAGE * 4 // 3 + 100, examples=[f"data:image/png;base64,{PIXEL}"]
    )
    detail: Any = _ignored()

    def read(self) -> bytes:
        """The image's bytes. Raises ValueError for what is no base64."""
        try:
            return base64.b64decode(self.url.partition(",")[2], validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from None


class ImagePart(_Part):
    """Image of a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


class ChatMessage(_Part):
    """One message. What the assistant's have beside their content is taken where it is empty."""

    role: Annotated[Literal["user", "assistant"], BeforeValidator(_no_instructions)]
    content: Annotated[
        Annotated[str, Field(max_length=MOST_TEXT), Tag("text")]
        | Annotated[
            list[Annotated[TextPart | ImagePart, Field(discriminator="type")]],
            Field(min_length=1, max_length=20),
            Tag("parts"),
        ],
        Discriminator(lambda content: "parts" if isinstance(content, list) else "text"),
    ]
    name: Any = _ignored()
    refusal: Any = _only()
    annotations: Any = _only([])
    audio: Any = _only()
    function_call: Any = _only()
    tool_calls: Any = _only([])

    def text(self) -> str:
        """Its texts, one a line."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    def images(self) -> list[ImageUrl]:
        """Its images."""
        if isinstance(self.content, str):
            return []
        return [part.image_url for part in self.content if isinstance(part, ImagePart)]


class StreamOptions(_Part):
    """How a stream is sent."""

    include_usage: bool | None = None
    """Whether a last piece tells the numbers of tokens."""
    include_obfuscation: Any = _ignored()


class Given(_Part):
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
    exchanges: Annotated[int, Field(ge=1, le=1_000)] | None = None
    version: Literal["free", "prompted"] | None = None
    examples: Annotated[list[tuple[Word, Word]], Field(max_length=20)] | None = None


class _Asked(_Part):
    """What both routes take."""

    model: str = Field(max_length=200, examples=["eliza"])
    """One of GET /v1/models."""
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    """So many answers: samples 0 to n-1."""
    seed: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    """The run's seed; the server's own, if none is given, so that the same request always has the same answer."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stimulus: Given = Given()
    """Not in OpenAI's interface: what else there is to be said of the stimulus."""
    temperature: Any = _ignored()
    top_p: Any = _ignored()
    frequency_penalty: Any = _ignored()
    presence_penalty: Any = _ignored()
    max_tokens: Any = _ignored()
    user: Any = _ignored()
    stop: Any = _only([])
    logit_bias: Any = _only({})

    def ignored(self) -> list[str]:
        """The names of the options that are given and have no effect."""
        fields = type(self).model_fields
        return [
            name for name in fields if fields[name].json_schema_extra == IGNORED and getattr(self, name) is not None
        ]


class ChatRequest(_Asked):
    """The next message of a chat, the answer to an image, or a word that goes with another."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=MOST_MESSAGES)
    """The last one is the user's. Only it may show an image, and no more than one."""
    max_completion_tokens: Any = _ignored()
    metadata: Any = _ignored()
    moderation: Any = _ignored()
    parallel_tool_calls: Any = _ignored()
    prompt_cache_key: Any = _ignored()
    prompt_cache_options: Any = _ignored()
    prompt_cache_retention: Any = _ignored()
    reasoning_effort: Any = _ignored()
    safety_identifier: Any = _ignored()
    service_tier: Any = _ignored()
    store: Any = _ignored()
    verbosity: Any = _ignored()
    audio: Any = _only()
    function_call: Any = _only("none", "auto")
    functions: Any = _only([])
    logprobs: Any = _only(False)
    modalities: Any = _only(["text"])
    prediction: Any = _only()
    response_format: Any = _only({"type": "text"})
    tool_choice: Any = _only("none", "auto")
    tools: Any = _only([])
    top_logprobs: Any = _only(0)
    web_search_options: Any = _only()

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "eliza", "messages": [{"role": "user", "content": "I like books."}], "seed": 7},
                {
                    "model": "mmcq",
                    "messages": [
                        {
                            "role": "user",
                            "content": [
                                {"type": "text", "text": "Which colour?"},
                                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                            ],
                        }
                    ],
                },
            ]
        }
    )

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


class CompletionRequest(_Asked):
    """The answer to one message, or a word that goes with another."""

    prompt: Annotated[
        Annotated[str, Field(max_length=MOST_TEXT), Tag("text")]
        | Annotated[list[Annotated[str, Field(max_length=MOST_TEXT)]], Field(min_length=1, max_length=1), Tag("texts")],
        Discriminator(lambda prompt: "texts" if isinstance(prompt, list) else "text"),
    ]
    """A message, which is answered and not continued, or a cue word."""
    best_of: Any = _only(1)
    echo: Any = _only(False)
    logprobs: Any = _only()
    suffix: Any = _only("")

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "eliza", "prompt": "I like books.", "seed": 7}]}
    )

    def text(self) -> str:
        """The prompt."""
        return self.prompt if isinstance(self.prompt, str) else self.prompt[0]


MODELS: tuple[type[BaseModel], ...] = (ChatRequest, CompletionRequest)
