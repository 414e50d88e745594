"""Texts from Anthropic's Messages interface.

Temperatures are a part of its version 2023-06-01, for which every request asks; the version of October 2026, which the
package asks for by itself, has none. Claude Opus 4.1, Sonnet 4.5 and later models refuse top-p beside a temperature:
the papers' top-p of 1, which leaves all tokens, is not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from agents.contract import NO_ANSWER, Address
from agents.language.engines.request import Finish, TextRequest
from agents.language.engines.server import ClientSettings, ServerEngine, ServerReply, ServerText

FINISH: dict[str | None, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}


class AnthropicSettings(ClientSettings):
    """As for every server, and what some of Anthropic's models do not take."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    base_url: Address = "https://api.anthropic.com"
    """The server's address, without a version."""
    key_variable: Annotated[str, Field(max_length=64, json_schema_extra=NO_ANSWER)] = "ANTHROPIC_API_KEY"
    """The environment variable that holds the key, in capitals; empty: no key is sent. The key is never a setting."""
    send_temperature: bool = True
    """Whether temperatures are sent; models from Claude Opus 4.7 and Sonnet 5 on refuse them."""


class _Block(BaseModel):
    model_config = ConfigDict(strict=True)

    text: str | None = None  # blocks of thinking have none


class MessageReply(ServerReply):
    """The body of a message."""

    content: list[_Block]
    stop_reason: str | None = None


class AnthropicEngine(ServerEngine[AnthropicSettings]):
    """Chats of text. Of how a text is drawn, the temperature, the limit and the stops are known there."""

    package = "anthropic"
    extra = "cloud"
    client = "AsyncAnthropic"
    headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}
    used_up = "enforced_spend_limit_reached"

    async def complete(self, request: TextRequest, seed: int) -> ServerText:
        """As for every engine, but for ``seed``: the interface takes none, and answers otherwise each time."""
        chosen, sampling = self._settings, request.sampling
        options: dict[str, Any] = {"model": chosen.model, "max_tokens": sampling.max_tokens}
        if system := "\n".join(one.text for one in request.messages if one.role == "system"):
            options["system"] = system
        options["messages"] = [
            {"role": one.role, "content": one.text} for one in request.messages if one.role != "system"
        ]
        if stops := sampling.outright():
            options["stop_sequences"] = stops
        if chosen.send_temperature:  # which the package's own function knows no more
            options["extra_body"] = {"temperature": sampling.temperature}
        reply, tries = await self._post("messages", MessageReply, **options)
        text = self._said(" ".join(block.text for block in reply.content if block.text))
        end = sampling.stop_in(text)
        return ServerText(
            text=text[:end],
            finish=FINISH.get(reply.stop_reason, "stop") if end is None else "stop",
            prompt_tokens=reply.count("input_tokens"),
            tokens=reply.count("output_tokens"),
            model=self._name(reply.model),
            tries=tries,
        )
