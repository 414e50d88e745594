"""The engine of Anthropic's servers."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from agents.contract import Address
from agents.language.engines.clients import ServerEngine, encoded
from agents.language.engines.reply_parts import ReplyParts
from agents.language.engines.server_replies import ServerReply, ServerText
from agents.language.engines.server_settings import ClientSettings, KeyVariable
from agents.language.engines.text_request import ChatMessage, Finish, TextRequest

FINISH: dict[str | None, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}
"""How this project calls a reply's ``stop_reason``; any other is "stop"."""


class AnthropicSettings(ClientSettings):
    """A server with Anthropic's interface."""

    base_url: Address = "https://api.anthropic.com"
    """The server's address, without a version."""
    key_variable: KeyVariable = "ANTHROPIC_API_KEY"
    """The environment variable that holds the key, in capitals; empty: no key is sent. The key is never a setting."""
    send_temperature: bool = True
    """Whether temperatures are sent; models from Claude Opus 4.7 and Sonnet 5 on refuse them."""


class _Block(BaseModel):
    model_config = ConfigDict(strict=True)

    text: str | None = None  # blocks of thinking have none
    thinking: str | None = None


class MessageReply(ServerReply):
    """The used fields of a reply to a chat."""

    content: list[_Block]
    """The reply's blocks: texts, and thoughts."""
    stop_reason: str | None = None
    """Why the text ended."""


class AnthropicEngine(ServerEngine[AnthropicSettings]):
    """Chats, also about images, by the Messages interface, version 2023-06-01. It takes no seed."""

    package = "anthropic"
    extra = "cloud"
    client = "AsyncAnthropic"
    headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}
    used_up = "enforced_spend_limit_reached"

    async def generate(self, request: TextRequest, seed: int) -> ServerText:
        """The reply to a chat. ``seed`` is not sent, as the interface has none. Raises AnswerError."""
        reply, tries = await self._post("messages", MessageReply, **self._options(request))
        text = self._cleared(" ".join(block.text for block in reply.content if block.text))
        return self._text(
            reply,
            request.sampling,
            ReplyParts(None, text),
            FINISH.get(reply.stop_reason, "stop"),
            self._cleared("\n\n".join(block.thinking for block in reply.content if block.thinking)),
            prompt_tokens=reply.count("input_tokens"),
            tokens=reply.count("output_tokens"),
            tries=tries,
        )

    def _options(self, request: TextRequest) -> dict[str, Any]:
        """The parameters of a request. Top-p and top-k are sent only where they leave tokens out."""
        settings = self._settings
        sampling = request.sampling
        options: dict[str, Any] = {"model": settings.model, "max_tokens": sampling.limit}
        if system := "\n".join(message.text for message in request.messages if message.role == "system"):
            options["system"] = system
        options["messages"] = [
            {"role": message.role, "content": _content(message)}
            for message in request.messages
            if message.role != "system"
        ]
        if request.schema is not None:
            options["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        if stops := sampling.unconditional_stops():
            options["stop_sequences"] = stops
        if sampling.reasoning_tokens:  # the older models want a budget, and then no temperature
            budget = {"type": "enabled", "budget_tokens": sampling.reasoning_tokens}
            options["thinking"] = budget if settings.send_temperature else {"type": "adaptive"}
        elif settings.send_temperature:  # which the package's own function no longer knows
            body: dict[str, Any] = {"temperature": sampling.temperature}
            if sampling.top_p < 1:
                body["top_p"] = sampling.top_p
            if sampling.top_k:
                body["top_k"] = sampling.top_k
            options["extra_body"] = body
        return options


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
    """The text, after its image if it has any. Raises AnswerError for other kinds of image."""
    if message.image is None:
        return message.text
    kind, data = encoded(message.image)
    source = {"type": "base64", "media_type": kind, "data": data}
    return [{"type": "image", "source": source}, {"type": "text", "text": message.text}]
