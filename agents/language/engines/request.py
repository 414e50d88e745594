"""What a text engine is asked for and what it generates: the same for every engine.

An engine knows nothing of tasks. An agent turns a stimulus and a draw into a :class:`TextRequest`; its engine (a
setting) turns that into a :class:`GeneratedText`. Engines that batch by themselves take one request at a time, the
others a batch of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "filtered"]
Detail = Literal["auto", "low", "high"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a chat; ``image`` is the bytes of a picture that it shows, to be looked at in such ``detail``."""

    role: Role
    text: str
    image: bytes | None = None
    detail: Detail = "auto"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one text is drawn, in the words of OpenAI and vLLM.

    ``temperature`` 0 takes the likeliest token; ``top_k`` 0 and ``top_p`` 1 leave all. The penalties are taken from the
    logits of tokens that this text already has: ``presence`` once, ``frequency`` for each time. A text ends before the
    first of ``stops`` that it would hold, at the model's own end, or with ``max_tokens``; it has at least
    ``min_tokens``. ``label`` is the one of the stops with which the text may begin: there it ends nothing.
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
    sends_label: bool = False  # to a server, which ends the text there wherever it stands

    def outright(self) -> list[str]:
        """The stops that end a text wherever they stand, which are all that a server can be told."""
        return [stop for stop in self.stops if stop and (self.sends_label or stop != self.label)]

    def stop_in(self, text: str, floor: int = 0) -> int | None:
        """Where in ``text`` the first stop begins that is not complete within ``floor`` characters, or None."""
        first = dict.fromkeys(filter(None, self.stops), 0)
        begins = re.match(rf"(?:[\W_]*{re.escape(self.label)})+", text) if self.label in first else None
        if begins is not None:
            first[self.label] = begins.end()
        found = [text.find(stop, max(start, floor - len(stop) + 1)) for stop, start in first.items()]
        return min((index for index in found if index >= 0), default=None)


@dataclass(frozen=True, slots=True)
class TextRequest:
    """One request: a ``prompt`` to be continued, or the ``messages`` of a chat to be answered, never both. ``schema``
    is a JSON schema that the text is to have, for engines that can hold a model to it. ``say`` is called with the text
    as far as it is generated, by engines that stream.
    """

    prompt: str | None = None
    messages: tuple[ChatMessage, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    schema: Mapping[str, Any] | None = None
    say: Callable[[str], None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """What came back: ``text`` without the stop and special tokens, ``raw`` with them where the engine gives it.

    ``finish`` says whether it ended by itself or by a stop, or at its limit, or was withheld by a server's own filter.
    ``prompt_tokens`` and ``tokens`` are counts, None where the engine does not tell.
    """

    text: str
    finish: Finish
    raw: str | None = None
    prompt_tokens: int | None = None
    tokens: int | None = None
