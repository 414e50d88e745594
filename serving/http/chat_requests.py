"""Requests of OpenAI's chat completions, and their stimuli: a history, an image's task, or a cue (the last message)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictBool, field_validator
from pydantic_core import PydanticCustomError

from agents.answers import is_blank
from agents.contract import derive_seed
from agents.stimuli import WHOLE, ConversationStimulus, Stimulus, Task
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
# What would change an answer silently, and why it is refused; OFF asks for nothing.
NO_TOOLS = "agents call no tools"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("tools", "tool_choice", "functions", "function_call"), NO_TOOLS),
    **dict.fromkeys(("logprobs", "top_logprobs"), "agents have no log probabilities"),
    **dict.fromkeys(("response_format", "modalities", "audio"), "agents answer in plain text only"),
}
OFF: tuple[Any, ...] = (None, False, 0, [], {}, "none", "auto", ["text"], {"type": "text"})
DATA = re.compile(r"data:(?:image/[a-z0-9.+-]{1,40}|application/octet-stream)(?:;[^;,]{1,100}){0,4};base64,", re.I)


class TextPart(Body):
    """Text of a message."""

    type: Literal["text"]
    text: str


def _is_data(url: str) -> str:
    if DATA.match(url) is None:
        why = "nothing is fetched: send the image itself, as data:image/png;base64,… (or another type)"
        raise PydanticCustomError("image", why)
    return url


class ImageUrl(Body):
    """An image, as a data URL."""

    model_config = ConfigDict(extra="ignore")

    url: Annotated[str, AfterValidator(_is_data), Field(examples=["data:image/png;base64,iVBORw0KGgo="])]


class ImagePart(Body):
    """Image of a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


Parts = Annotated[
    list[Annotated[TextPart | ImagePart, Field(discriminator="type")]], Field(min_length=1, max_length=20)
]


def _as_parts(content: object) -> object:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class ChatMessage(Body):
    """A message. Those of the system and the developer have no effect: agents have their instructions."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["user", "assistant", "system", "developer"]
    content: Annotated[Parts, BeforeValidator(_as_parts, json_schema_input_type=str | Parts)]

    def text(self) -> str:
        """Its texts as lines."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    def images(self) -> list[str]:
        """Its images in base64."""
        return [part.image_url.url.partition(",")[2] for part in self.content if isinstance(part, ImagePart)]


class StreamOptions(Body):
    """How a stream is sent."""

    model_config = ConfigDict(extra="ignore")

    include_usage: StrictBool | None = None
    """Whether a last piece has the numbers of tokens."""


Stop = str | Annotated[list[str], Field(max_length=16)] | None


def _as_list(stop: object) -> object:
    return [] if stop is None else [stop] if isinstance(stop, str) else stop


class ChatRequest(Body):
    """The next message of a chat, the answer to an image, or a word that goes with another. Other options of OpenAI's
    interface have no effect."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(max_length=200, examples=["eliza"])
    """One of GET /v1/models."""
    messages: list[ChatMessage] = Field(
        min_length=1, max_length=MOST_MESSAGES, examples=[[{"role": "user", "content": "I like books."}]]
    )
    """The last one is the user's. Only it may show an image, and no more than one."""
    n: Annotated[int, Field(strict=True, ge=1, le=MOST_CHOICES), WHOLE] | None = None
    """So many answers: samples 0 to n-1."""
    seed: Seed | None = None
    """The run's seed; the server's own by default, so that the same request always has the same answer."""
    stop: Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=Stop)] = Field(
        default_factory=list, max_length=16
    )
    """The answer ends before the first of these texts; the record has all of it."""
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    stimulus: dict[str, Any] = Field(default_factory=dict, examples=[{"id": "talk", "names": ["Ann", "Ben"]}])
    """Not in OpenAI's interface: fields of the stimulus (docs/stimuli.md) beside those that follow from the request. By
    default the id follows from the first message, the image or the cue, and the task from the agent."""

    @field_validator("messages", mode="before")
    @classmethod
    def _call_no_tools(cls, messages: object) -> object:
        for number, message in enumerate(messages if isinstance(messages, list) else ()):
            if isinstance(message, dict) and (message.get("role") in ("tool", "function") or message.get("tool_calls")):
                raise unsupported([(f"messages.{number}", NO_TOOLS)])
        return messages

    @field_validator("messages")
    @classmethod
    def _can_be_answered(cls, messages: list[ChatMessage]) -> list[ChatMessage]:
        if messages[-1].role != "user":
            raise PydanticCustomError("messages", "the last message is the user's, which is to be answered")
        if any(message.images() for message in messages[:-1]) or len(messages[-1].images()) > 1:
            raise PydanticCustomError("messages", "only the last message may show an image, and no more than one")
        if is_blank(messages[-1].text()) and not messages[-1].images():
            why = "the last message is empty: there is nothing to answer"
            raise ApiError(400, "empty_message", why, problems=[("messages", why)])
        return messages

    def check_options(self) -> None:
        """Raises ApiError for options that would change the answer."""
        options = self.model_extra or {}
        if problems := [(name, why) for name, why in REFUSED.items() if options.get(name) not in OFF]:
            raise unsupported(problems)

    def ignored(self) -> list[str]:
        options = self.model_extra or {}
        names = [name for name, value in options.items() if value is not None and name not in REFUSED]
        has_instructions = any(message.role in ("system", "developer") for message in self.messages)
        return names + ["messages.system"] * has_instructions


def unsupported(problems: Sequence[tuple[str, str]]) -> ApiError:
    """The error for pairs (field, why it cannot be honoured)."""
    message = "; ".join(f"{name} cannot be used here: {why}" for name, why in problems)
    return ApiError(400, "unsupported_parameter", message, problems=problems)


def chat_stimulus(service: Service, chat: ChatRequest) -> tuple[Stimulus, Mapping[str, bytes] | None]:
    """A chat's stimulus and images, for a thread of its own as :func:`from_base64`. Raises ApiError."""
    last = chat.messages[-1]
    images, text = last.images(), last.text()
    likely = IMAGE_TASKS if images else TEXT_TASKS
    task = chat.stimulus.get("task") or _first_task(service, chat.model, likely)
    if task not in likely:
        raise invalid([("messages", f"this task {'takes no image' if images else 'needs an image'}")])
    if task == "conversation":
        return _conversation(service, chat), None
    if task == "word_association":
        return checked_stimulus(_row(chat, "cue", text.encode(), task=task, cue=text), {}), None
    files = {"image": from_base64(images[0], "messages")}
    return checked_stimulus(_row(chat, "image", files["image"], task=task, image="image"), files), files


def _first_task(service: Service, name: str, likely: Sequence[Task]) -> Task:
    agent = service.agent(name)
    for task in likely:
        if task in agent.tasks:
            return task
    wanted = "images" if likely is IMAGE_TASKS else "text without an image"
    raise ApiError(422, "wrong_task", f"agent {name} answers {', '.join(agent.tasks)}: {wanted} is not for it")


def _conversation(service: Service, chat: ChatRequest) -> Stimulus:
    turns = [message for message in chat.messages if message.role in ("user", "assistant")]
    messages = [("AB"[message.role == "assistant"], message.text()) for message in turns]
    row = _row(chat, "chat", messages[0][1].encode(), task="conversation", type="HM")
    stimulus = checked_stimulus(row, {})
    assert isinstance(stimulus, ConversationStimulus)
    run_seed = service.options.seed if chat.seed is None else chat.seed
    names = draw_scenario(stimulus, derive_seed(run_seed, chat.model, stimulus.id, 0, None, 0)).names
    assert names is not None
    history = [{"speaker": names[SIDES.index(side)], "text": text} for side, text in messages]
    return checked_stimulus({**row, "names": names, "who_starts": messages[0][0], "history": history}, {})


def _row(chat: ChatRequest, kind: str, content: bytes, **fields: Any) -> dict[str, Any]:
    return {"id": f"{kind}-{hashlib.sha256(content).hexdigest()[:16]}", **chat.stimulus, **fields}
