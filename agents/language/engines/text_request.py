"""The interface of every engine: a request for a text, and the text that comes back. Engines know nothing of tasks."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "filtered"]
Detail = Literal["auto", "low", "high"]

UNLIMITED = 1 << 31  # tokens


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a chat, with the bytes of the picture that it shows and the detail to see it in."""

    role: Role
    text: str
    image: bytes | None = None
    detail: Detail = "auto"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a text is drawn, in the words of OpenAI and vLLM.

    ``temperature`` 0 takes the likeliest token; ``top_k`` 0 and ``top_p`` 1 leave all. Penalties are taken from the
    logits of tokens that the text already has: ``presence`` once, ``frequency`` each time. A text ends before the first
    of its ``stops``. ``label`` is the stop with which the text may begin: there it ends nothing.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    max_tokens: int = 60
    min_tokens: int = 0
    stops: tuple[str, ...] = ()
    label: str = ""

    def unconditional_stops(self) -> list[str]:
        """The stops that end a text wherever they stand: a server can be sent no others."""
        return [stop for stop in self.stops if stop and stop != self.label]

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
    """A ``prompt`` to be continued, or the ``messages`` of a chat to be answered, never both.

    ``schema`` is the JSON schema of the text, for engines that can enforce it. Engines that stream call ``say`` with
    the text so far. So that it fits the model, a prompt is without the ``left_out`` oldest messages, and without the
    ``cut`` first tokens where even the newest message alone is too long.
    """

    prompt: str | None = None
    messages: tuple[ChatMessage, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    schema: Mapping[str, Any] | None = None
    say: Callable[[str], None] | None = field(default=None, compare=False)
    left_out: int = 0
    cut: int = 0


def settled(text: str, stops: Sequence[str]) -> str:
    """``text`` without what may be the beginning of a stop or of a character."""
    text = text.rstrip("\ufffd")
    begun = [size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size])]
    return text[: len(text) - max(begun, default=0)]


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """``text`` is without the stop and special tokens, ``raw`` with them. Unknown counts of tokens are None."""

    text: str
    finish: Finish
    raw: str | None = None
    prompt_tokens: int | None = None
    tokens: int | None = None


class Engine(ABC):
    """Generates texts with a model, singly or in batches."""

    async def generate(self, request: TextRequest, seed: int) -> GeneratedText:
        """The text for a request. Raises AnswerError."""
        raise TypeError(f"{type(self).__name__} generates batches")

    @abstractmethod
    def provenance(self) -> dict[str, Any]:
        """What ran."""

    def excess(self, request: TextRequest) -> int:
        """How many tokens the prompt has beyond the model's positions; 0 where a server knows that best."""
        return 0

    def half_of_positions(self) -> int:
        """The most tokens of a reply that leaves as many for its prompt."""
        return UNLIMITED // 2
