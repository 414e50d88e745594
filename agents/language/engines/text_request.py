"""The interface of every engine: a request, and the text that comes back."""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]
"""Who speaks in a chat."""
Finish = Literal["stop", "length", "filtered"]
"""Why a text ended: by itself or at a stop, at its limit of tokens, or by a filter of the server's."""
Detail = Literal["auto", "low", "high"]
"""How finely a model is to look at a picture."""

UNLIMITED = 1 << 31
"""More tokens than any model has positions for."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """Who said what, and a picture if there is one."""

    role: Role
    """Who says it."""
    text: str
    """What is said."""
    image: bytes | None = None
    """The bytes of a picture's file, which comes before the text."""
    detail: Detail = "auto"
    """How finely the picture is to be looked at."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a text's tokens are drawn, and where it ends."""

    temperature: float = 1.0
    """Divides the logits; 0 takes the likeliest token."""
    top_p: float = 1.0
    """Draws are among the likeliest tokens that together have this probability; 1: among all."""
    top_k: int = 0
    """Draws are among this many of the likeliest tokens; 0: among all."""
    frequency_penalty: float = 0.0
    """Subtracted from a token's logit for each time that the text has the token."""
    presence_penalty: float = 0.0
    """Subtracted from the logit of every token that the text has."""
    max_tokens: int = 60
    """The most tokens of the answer."""
    min_tokens: int = 0
    """The least tokens before the text may end."""
    stops: tuple[str, ...] = ()
    """Texts before which the answer ends."""
    label: str = ""
    """A stop that is ignored at the start of a text: the speaker's own label, with which many replies begin."""
    reasoning_tokens: int = 0
    """The most tokens of thoughts, which come before the answer and beyond ``max_tokens``."""

    @property
    def limit(self) -> int:
        """The most tokens of a reply, its thoughts included."""
        return self.max_tokens + self.reasoning_tokens

    def unconditional_stops(self) -> list[str]:
        """The stops that end a text wherever they stand. There are none for texts that begin with thoughts, which may
        hold anything."""
        return [stop for stop in self.stops if stop and stop != self.label and not self.reasoning_tokens]

    def stop_in(self, text: str) -> int | None:
        """The index at which the first stop begins in ``text``, or None."""
        starts = dict.fromkeys(filter(None, self.stops), 0)
        labels = re.match(rf"(?:[\W_]*{re.escape(self.label)})+", text) if self.label in starts else None
        if labels is not None:
            starts[self.label] = labels.end()
        indices = [text.find(stop, start) for stop, start in starts.items()]
        return min((index for index in indices if index >= 0), default=None)


@dataclass(frozen=True, slots=True)
class TextRequest:
    """What an engine is asked: a ``prompt`` to be continued, or the ``messages`` of a chat."""

    prompt: str | None = None
    """A text to be continued; None for a chat."""
    messages: tuple[ChatMessage, ...] = ()
    """What was said in a chat so far, the oldest first; empty for a ``prompt``."""
    sampling: Sampling = field(default_factory=Sampling)
    """How tokens are drawn."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema that the answer must follow, or None."""
    say: Callable[[str], None] | None = field(default=None, compare=False)
    """Hears the answer's text so far, from any thread."""
    is_enough: Callable[[str], bool] | None = field(default=None, compare=False)
    """Says of the answer's text so far whether generation may end."""
    shorter: Callable[[], TextRequest] | None = field(default=None, compare=False)
    """Makes the same request with half as many of the messages that may be left out; None if none are left."""
    left_out: int = 0
    """How many of the oldest messages were left out."""
    cut: int = 0
    """How many of the prompt's first tokens are cut."""

    def pictures(self) -> list[bytes]:
        """The pictures' bytes, in the messages' order."""
        return [message.image for message in self.messages if message.image is not None]

    def without_system(self) -> tuple[ChatMessage, ...]:
        """The messages for a model that knows no system: the system's text begins the user's first message."""
        if not self.messages or self.messages[0].role != "system":
            return self.messages
        first, *others = self.messages
        if others and others[0].role == "user":
            first = replace(others[0], text=f"{first.text}\n\n{others.pop(0).text}")
        return (replace(first, role="user"), *others)


def messages_as_json(messages: Sequence[ChatMessage]) -> str:
    """A JSON list of ``role`` and ``content``, with ``image_sha256`` where there is a picture."""
    listed = []
    for message in messages:
        entry = {"role": message.role, "content": message.text}
        if message.image is not None:
            entry["image_sha256"] = hashlib.sha256(message.image).hexdigest()
        listed.append(entry)
    return json.dumps(listed, ensure_ascii=False)


def settled(text: str, stops: Sequence[str]) -> str:
    """``text`` without an end that may turn out to be the beginning of a stop, or a character of which bytes are
    missing."""
    text = text.rstrip("\ufffd")
    begun = [size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size])]
    return text[: len(text) - max(begun, default=0)]


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """What came of a request: the answer, and what a record keeps beside it."""

    text: str
    """The answer: without thoughts, the stop and special tokens."""
    finish: Finish
    """Why it ended."""
    raw: str | None = None
    """All that the model wrote; None if that is the answer."""
    prompt_tokens: int | None = None
    """The prompt's length in tokens, if it is known."""
    tokens: int | None = None
    """The reply's length in tokens, if it is known."""
    reasoning: str | None = None
    """What the model thinks; None if it does not."""

    def record(self) -> dict[str, Any]:
        """What a record keeps: all fields, but not those that are rarely there and None, nor a ``raw`` that is the
        text."""
        fields = asdict(self)
        if fields["raw"] in (None, self.text):
            del fields["raw"]
        rare = ("reasoning", "reasoning_tokens", "unsent", "ignored")
        return {name: value for name, value in fields.items() if value is not None or name not in rare}


class Engine(ABC):
    """Generates texts with a model: single ones (:meth:`generate`), or batches (:meth:`generate_batch`)."""

    private = False
    """Whether errors and shown prompts must quote nobody, as prompts hold a person's history."""

    async def generate(self, request: TextRequest, seed: int) -> GeneratedText:
        """The text for a request. Raises AnswerError."""
        raise TypeError(f"{type(self).__name__} generates batches")

    def generate_batch(self, batch: Sequence[TextRequest], seeds: Sequence[int]) -> list[GeneratedText | Exception]:
        """For each request a text, or the AnswerError that came of it."""
        raise TypeError(f"{type(self).__name__} generates single texts")

    @abstractmethod
    def provenance(self) -> dict[str, Any]:
        """What ran: the engine, its version, the type of numbers, and what else an answer depends on."""

    def prompt_text(self, request: TextRequest) -> str:
        """What the model reads: a text that it continues, or the messages as JSON with pictures by their hash. Raises
        AnswerError."""
        if request.prompt is not None:
            return request.prompt
        return messages_as_json(request.messages)

    def about_prompt(self, request: TextRequest) -> dict[str, Any]:
        """What a record keeps of the prompt: its hash. Raises AnswerError."""
        return {"prompt_sha256": hashlib.sha256(self.prompt_text(request).encode(errors="replace")).hexdigest()}

    def limits(self) -> list[str]:
        """What the model cannot do, each in a clause. A local model knows it once it is opened."""
        return []

    def excess(self, request: TextRequest) -> int:
        """How many tokens of the prompt are beyond the model's positions; 0 where that is not known beforehand."""
        return 0

    def half_of_positions(self) -> int:
        """The most tokens of a reply that leave as many for a prompt."""
        return UNLIMITED // 2
