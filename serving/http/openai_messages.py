"""The messages of OpenAI's interface, and what an agent sees of them: their texts, and the image of the last one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from agents.answers import is_blank
from serving.http.bodies import Body
from serving.http.errors import ApiError, invalid
from serving.http.openai_options import NO_TOOLS, unsupported

DATA = re.compile(r"data:(?:image/[a-z0-9.+-]{1,40}|application/octet-stream)(?:;[^;,]{1,100}){0,4};base64,", re.I)
NOT_FETCHED = "nothing is fetched: send the image itself, as data:image/png;base64,… (or another type)"
OTHER_PART = "must be a text (text, input_text) or an image (image_url, input_image)"
KNOWN_PARTS = {
    **dict.fromkeys(("text", "input_text", "output_text"), "text"),
    **dict.fromkeys(("image_url", "input_image"), "image"),
    "refusal": "refusal",
}
# fields of parts that are ignored without a word: clients send them back as they came, or say how to look at an image
SILENT = frozenset({"annotations", "logprobs", "detail", "id"})


class TextPart(Body):
    """Text of a message."""

    model_config = ConfigDict(extra="allow")

    type: Literal["text", "input_text", "output_text"]
    """One of three names that the interfaces use for a text."""
    text: str
    """What is said."""


class ImageUrl(Body):
    """An image. In the last message a data URL."""

    model_config = ConfigDict(extra="ignore")

    url: Annotated[str, Field(examples=["data:image/png;base64,iVBORw0KGgo="])]
    """In the last message "data:image/png;base64,…"; nothing is fetched."""


class ImagePart(Body):
    """Image of a message."""

    model_config = ConfigDict(extra="allow")

    type: Literal["image_url", "input_image"]
    """One of two names that the interfaces use for an image."""
    image_url: ImageUrl | str | None = None
    """The image itself, as a data URL."""


class RefusalPart(Body):
    """What an assistant said instead of an answer."""

    model_config = ConfigDict(extra="allow")

    type: Literal["refusal"]
    """What makes the part one of these."""
    refusal: str
    """The assistant's words, which count as what it said."""


class OtherPart(Body):
    """A part of another type, which only an earlier message may have. It has no effect."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(json_schema_extra={"not": {"enum": list(KNOWN_PARTS)}})]
    """A type of which agents see nothing, such as "input_audio"."""


def _kind(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else getattr(part, "type", None)
    return KNOWN_PARTS.get(kind, "other") if isinstance(kind, str) else "other"


Part = Annotated[
    Annotated[TextPart, Tag("text")]
    | Annotated[ImagePart, Tag("image")]
    | Annotated[RefusalPart, Tag("refusal")]
    | Annotated[OtherPart, Tag("other")],
    Discriminator(_kind),
]
Parts = Annotated[list[Part], Field(max_length=20)]


def _as_parts(content: object) -> object:
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


Content = Annotated[Parts, BeforeValidator(_as_parts, json_schema_input_type=str | Parts | None)]


class Message(Body):
    """A message. Messages of the system, the developer and tools have no effect: agents have their instructions."""

    model_config = ConfigDict(extra="allow")

    role: Literal["user", "assistant", "system", "developer", "tool", "function"]
    """Who said it."""
    content: Content = Field(default_factory=list)
    """A text, or parts that are texts and images."""
    refusal: str | None = None
    """What an assistant said instead of an answer."""
    tool_calls: Any = None
    """No agent sees it."""
    function_call: Any = None
    """No agent sees it."""

    def text(self) -> str:
        """The message's texts, a line each; a refusal counts as what was said."""
        texts = []
        for part in self.content:
            if isinstance(part, TextPart):
                texts.append(part.text)
            elif isinstance(part, RefusalPart):
                texts.append(part.refusal)
        if not texts and self.refusal is not None:
            texts.append(self.refusal)
        return "\n".join(texts)

    def images(self) -> list[tuple[int, ImagePart]]:
        """The message's images, each with its number among the parts, from 0."""
        return [(number, part) for number, part in enumerate(self.content) if isinstance(part, ImagePart)]


@dataclass(frozen=True, slots=True)
class History:
    """What an agent sees of a request's messages."""

    turns: list[tuple[Literal["A", "B"], str]]
    """(side, text) of each message: the user is A, the assistant B. The last turn is the user's."""
    image: tuple[str, str] | None
    """The image of the last message: the path of its field, and its base64."""
    ignored: list[str]
    """The paths of what has no effect."""


def read_history(field: str, messages: Sequence[Message]) -> History:
    """What an agent sees of the ``messages`` in the request's ``field``. Raises ApiError: 400 for an empty last message
    and for results of tools, 422 for a last message that is not the user's or shows several images."""
    last = messages[-1]
    where = f"{field}.{len(messages) - 1}"
    if last.role in ("tool", "function"):
        raise unsupported([(where, f"a tool's result is to be answered, and {NO_TOOLS}")])
    if last.role != "user":
        raise invalid([(field, "the last message is the user's, which is to be answered")])
    image = _image(field, where, last)
    text = last.text()
    if image is None and is_blank(text):
        why = "the last message is empty: there is nothing to answer"
        raise ApiError(400, "empty_message", why, problems=[(field, why)])
    turns: list[tuple[Literal["A", "B"], str]] = []
    ignored: list[str] = []
    for message in messages[:-1]:
        seen, without_effect = _seen(message)
        ignored += [f"{field}.{name}" for name in without_effect]
        if seen is not None:
            turns.append(("B" if message.role == "assistant" else "A", seen))
    ignored += [f"{field}.{name}" for name in _options(last)]
    turns.append(("A", text))
    return History(turns, image, list(dict.fromkeys(ignored)))


def _seen(message: Message) -> tuple[str | None, list[str]]:
    """The text of an earlier message, or None if an agent does not see it; and the names of what has no effect."""
    if message.role in ("system", "developer"):
        return None, ["system"]
    if message.role in ("tool", "function"):
        return None, ["tool"]
    ignored = _options(message)
    if message.tool_calls or message.function_call:
        ignored.append("tool")
    for part in message.content:
        if isinstance(part, ImagePart):
            ignored.append("image")
        elif isinstance(part, OtherPart):
            ignored.append(part.type)
    text = message.text()
    if not is_blank(text):
        return text, ignored
    # Nobody said anything: in a history an empty turn would be one that agents answer.
    return None, ignored or ["empty"]


def _options(message: Message) -> list[str]:
    """The names of what a message and its parts have beside their texts and images."""
    names = _more_of(message)
    for part in message.content:
        if not isinstance(part, OtherPart):
            names += [f"content.{name}" for name in _more_of(part)]
    return names


def _more_of(body: Body) -> list[str]:
    return [name for name, value in (body.model_extra or {}).items() if value and name not in SILENT]


def _image(field: str, where: str, last: Message) -> tuple[str, str] | None:
    for number, part in enumerate(last.content):
        if isinstance(part, OtherPart):
            raise invalid([(f"{where}.content.{number}.type", OTHER_PART)])
    images = last.images()
    if not images:
        return None
    if len(images) > 1:
        raise invalid([(field, "the last message may show one image, and no more")])
    [(number, part)] = images
    place = f"{where}.content.{number}.image_url"
    url = part.image_url or ""
    if isinstance(url, ImageUrl):
        place = f"{place}.url"
        url = url.url
    if DATA.match(url) is None:
        raise invalid([(place, NOT_FETCHED)])
    return place, url.partition(",")[2]
