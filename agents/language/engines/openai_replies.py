"""What a server with OpenAI's interface sends back, read without trust: the fields that are used, and their types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from agents.language.engines.server import ServerReply


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True)


class _Part(_Reply):
    text: str | None = None


class _Message(_Reply):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class Choice(_Reply):
    """One text: a completion's ``text`` or a chat's ``message``."""

    text: str | None = None
    message: _Message | None = None
    finish_reason: str | None = None

    def said(self) -> str | None:
        """The text; "" where an assistant said nothing (it reasoned up to its limit, or used a tool), None where the
        reply has no text at all."""
        if self.message is None:
            return self.text
        content = self.message.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content)
        return content or self.message.refusal or ""

    def is_filtered(self) -> bool:
        """Whether the server's filter or the model itself declined, where a server tells that apart."""
        return self.finish_reason == "content_filter" or bool(self.message and self.message.refusal)


class TextReply(ServerReply):
    """The body of a completion or a chat."""

    choices: Annotated[list[Choice], Field(min_length=1)]
    system_fingerprint: Any = None


class _Vector(_Reply):
    index: int | None = None
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)]


class VectorReply(_Reply):
    """The body of an embeddings reply."""

    data: list[_Vector]

    def vectors(self, count: int) -> list[list[float]] | None:
        """The vectors by their ``index``; None unless there is one for each of ``count`` texts."""
        by_index = {
            position if one.index is None else one.index: one.embedding for position, one in enumerate(self.data)
        }
        return [by_index[position] for position in range(count)] if sorted(by_index) == list(range(count)) else None
