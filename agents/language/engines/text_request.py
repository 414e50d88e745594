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
Finish = Literal["stop", "length", "filtered"]
Detail = Literal["auto", "low", "high"]

UNLIMITED = 1 << 31  # tokens


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message, with its picture's bytes and the detail to see it in."""

    role: Role
    text: str
    image: bytes | None = None
    detail: Detail = "auto"


@dataclass(frozen=True, slots=True)
class Sampling:
    """``temperature`` 0 takes the likeliest token; ``top_k`` 0 and ``top_p`` 1 leave all. ``label`` is a stop that ends
    nothing at a text's beginning. ``reasoning_tokens`` are for thinking before the answer, beyond ``max_tokens``."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    max_tokens: int = 60
    min_tokens: int = 0
    stops: tuple[str, ...] = ()
    label: str = ""
    reasoning_tokens: int = 0

    @property
    def limit(self) -> int:
        """The most tokens of a reply, with its reasoning."""
        return self.max_tokens + self.reasoning_tokens

    def unconditional_stops(self) -> list[str]:
        """The stops that end a text wherever they stand: none where it begins with reasoning."""
        return [stop for stop in self.stops if stop and stop != self.label and not self.reasoning_tokens]

    def stop_in(self, text: str) -> int | None:
        """Where the first stop begins, or None."""
        starts = dict.fromkeys(filter(None, self.stops), 0)
        labels = re.match(rf"(?:[\W_]*{re.escape(self.label)})+", text) if self.label in starts else None
        if labels is not None:
            starts[self.label] = labels.end()
        indices = [text.find(stop, start) for stop, start in starts.items()]
        return min((index for index in indices if index >= 0), default=None)


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A ``prompt`` to be continued, or the ``messages`` of a chat. ``say`` gets the text so far; a text that
    ``is_enough`` may end. The prompt lacks ``left_out`` oldest messages and ``cut`` first tokens; ``shorter`` makes
    the request with half of the messages that may be left out."""

    prompt: str | None = None
    messages: tuple[ChatMessage, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    schema: Mapping[str, Any] | None = None
    say: Callable[[str], None] | None = field(default=None, compare=False)
    is_enough: Callable[[str], bool] | None = field(default=None, compare=False)
    shorter: Callable[[], TextRequest] | None = field(default=None, compare=False)
    left_out: int = 0
    cut: int = 0

    def pictures(self) -> list[bytes]:
        return [message.image for message in self.messages if message.image is not None]

    def without_system(self) -> tuple[ChatMessage, ...]:
        """The messages for a model that knows no system: its text begins the user's first message."""
        if not self.messages or self.messages[0].role != "system":
            return self.messages
        first, *others = self.messages
        if others and others[0].role == "user":
            first = replace(others[0], text=f"{first.text}\n\n{others.pop(0).text}")
        return (replace(first, role="user"), *others)


def messages_as_json(messages: Sequence[ChatMessage]) -> str:
    """A JSON list of ``role`` and ``content``, and ``image_sha256`` where there is a picture."""
    listed = []
    for message in messages:
        about = {"role": message.role, "content": message.text}
        if message.image is not None:
            about["image_sha256"] = hashlib.sha256(message.image).hexdigest()
        listed.append(about)
    return json.dumps(listed, ensure_ascii=False)


def settled(text: str, stops: Sequence[str]) -> str:
    """``text`` without a possible beginning of a stop or a character."""
    text = text.rstrip("\ufffd")
    begun = [size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size])]
    return text[: len(text) - max(begun, default=0)]


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """``text`` is without reasoning, the stop and special tokens, ``raw`` with them."""

    text: str
    finish: Finish
    raw: str | None = None
    prompt_tokens: int | None = None
    tokens: int | None = None
    reasoning: str | None = None

    def record(self) -> dict[str, Any]:
        """What a record keeps."""
        fields = asdict(self)
        if fields["raw"] in (None, self.text):
            del fields["raw"]
        rare = ("reasoning", "reasoning_tokens", "unsent", "ignored")
        return {name: value for name, value in fields.items() if value is not None or name not in rare}


class Engine(ABC):
    """Generates texts with a model; errors of a ``private`` engine quote nobody."""

    private = False

    async def generate(self, request: TextRequest, seed: int) -> GeneratedText:
        """The text for a request. Raises AnswerError."""
        raise TypeError(f"{type(self).__name__} generates batches")

    def generate_batch(self, batch: Sequence[TextRequest], seeds: Sequence[int]) -> list[GeneratedText | Exception]:
        """A text, or the AnswerError, for each request."""
        raise TypeError(f"{type(self).__name__} generates single texts")

    @abstractmethod
    def provenance(self) -> dict[str, Any]:
        """What ran."""

    def prompt_text(self, request: TextRequest) -> str:
        """What the model reads: a text that it continues, or the messages as JSON, pictures by their hash. Raises
        AnswerError."""
        if request.prompt is not None:
            return request.prompt
        return messages_as_json(request.messages)

    def about_prompt(self, request: TextRequest) -> dict[str, Any]:
        """What a record keeps of the prompt. Raises AnswerError."""
        return {"prompt_sha256": hashlib.sha256(self.prompt_text(request).encode(errors="replace")).hexdigest()}

    def limits(self) -> list[str]:
        """What the model cannot do, each in a clause; of a local model after it is opened."""
        return []

    def excess(self, request: TextRequest) -> int:
        """Tokens of the prompt beyond the model's positions."""
        return 0

    def half_of_positions(self) -> int:
        """The most tokens that leave as many for a prompt."""
        return UNLIMITED // 2
