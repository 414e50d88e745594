"""The engine of servers with OpenAI's interface."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from agents.contract import Address
from agents.errors import AnswerError
from agents.language.engines import reasoning
from agents.language.engines.clients import ClientSettings, KeyVariable, ServerEngine, ServerReply, ServerText
from agents.language.engines.text_request import ChatMessage, Finish, TextRequest


class ServerSettings(ClientSettings):
    """A server with OpenAI's interface."""

    base_url: Address = "https://api.openai.com/v1"
    """The server's address up to and including the version, as in http://localhost:8000/v1."""
    key_variable: KeyVariable = "OPENAI_API_KEY"
    """The environment variable that holds the key, in capitals; empty: no key is sent. The key is never a setting."""


class SeededSettings(ServerSettings):
    """For models that draw texts."""

    seed_bits: int = Field(53, ge=0, le=53)
    """How many bits of an attempt's seed are sent to the server, for those that take fewer; 0: none."""


class ChatSettings(SeededSettings):
    """For models that chat."""

    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the limit of tokens is called in chats; OpenAI's reasoning models want max_completion_tokens."""


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True)


class _Part(_Reply):
    text: str | None = None


class _Message(_Reply):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None  # the same, at other servers


class Choice(_Reply):
    """A completion's ``text`` or a chat's ``message``."""

    text: str | None = None
    message: _Message | None = None
    finish_reason: str | None = None

    def written(self) -> str | None:
        """The text; "" after mere reasoning or a tool's use; None without any."""
        if self.message is None:
            return self.text
        content = self.message.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content)
        return content or self.message.refusal or ""

    def thought(self) -> str | None:
        fields = (self.message.reasoning_content, self.message.reasoning) if self.message else ()
        return next((field for field in fields if isinstance(field, str) and field), None)

    def is_filtered(self) -> bool:
        """Whether the server or the model declined."""
        return self.finish_reason == "content_filter" or bool(self.message and self.message.refusal)


class TextReply(ServerReply):
    choices: Annotated[list[Choice], Field(min_length=1)]
    system_fingerprint: Any = None


class _Vector(_Reply):
    index: int
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)]


class VectorReply(_Reply):
    data: list[_Vector]


MOST_STOPS = 4  # OpenAI takes no more; the others are cut off here
MEDIA = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}  # by how an image begins


class OpenAIEngine(ServerEngine[ServerSettings]):
    """Completions, chats (with images) and embeddings."""

    package = extra = "openai"
    client = "AsyncOpenAI"
    used_up = "insufficient_quota"

    async def generate(self, request: TextRequest, seed: int) -> ServerText:
        options = self._options(request, seed)
        if request.prompt is not None:
            reply, tries = await self._post("completions", TextReply, prompt=request.prompt, **options)
        else:
            messages = [openai_message(message) for message in request.messages]
            reply, tries = await self._post("chat.completions", TextReply, messages=messages, **options)
        choice = reply.choices[0]
        raw = choice.written()
        if raw is None:
            raise self._bad_reply("the reply holds no text")
        raw = self._cleared(raw)
        thought, text = reasoning.parted(raw)
        thought = self._cleared(choice.thought() or thought or "").strip() or None
        if text is None or (thought and not text.strip() and choice.finish_reason == "length"):
            raise reasoning.unfinished(request.sampling.limit)
        text = text if text == raw else text.lstrip()
        # Some servers leave the stop in the text, and none takes more than a few.
        end = request.sampling.stop_in(text)
        finish: Finish = "length" if choice.finish_reason == "length" and end is None else "stop"
        return ServerText(
            text=text[:end],
            finish="filtered" if choice.is_filtered() else finish,
            raw=raw,
            prompt_tokens=reply.count("prompt_tokens"),
            tokens=reply.count("completion_tokens"),
            model=self._name(reply.model),
            fingerprint=self._name(reply.system_fingerprint),
            tries=tries,
            reasoning=thought,
            reasoning_tokens=reply.count("completion_tokens_details", "reasoning_tokens"),
        )

    async def embed(self, texts: Sequence[str], batch: int = 1024) -> list[list[float]]:
        """A vector per text, ``batch`` texts a request. Raises AnswerError."""
        vectors: list[list[float]] = []
        for start in range(0, len(texts), batch):
            part = list(texts[start : start + batch])
            options = {"model": self._settings.model, "input": part, "encoding_format": "float"}
            reply, _ = await self._post("embeddings", VectorReply, **options)
            by_index = {vector.index: vector.embedding for vector in reply.data}
            if sorted(by_index) != list(range(len(part))):
                raise self._bad_reply(f"not a vector for each of {len(part)} texts")
            vectors += [by_index[position] for position in range(len(part))]
        if len({len(vector) for vector in vectors}) > 1:
            raise self._bad_reply("vectors of different lengths")
        return vectors

    def _options(self, request: TextRequest, seed: int) -> dict[str, Any]:
        """Defaults are not sent: many servers know fewer options."""
        settings, sampling = self._settings, request.sampling
        limit = settings.length_field if isinstance(settings, ChatSettings) and request.prompt is None else "max_tokens"
        options: dict[str, Any] = {
            "model": settings.model,
            "temperature": sampling.temperature,
            limit: sampling.limit,
        }
        if sampling.frequency_penalty:
            options["frequency_penalty"] = sampling.frequency_penalty
        if sampling.presence_penalty:
            options["presence_penalty"] = sampling.presence_penalty
        if stops := sampling.unconditional_stops():
            options["stop"] = stops[:MOST_STOPS]
        if request.schema is not None:
            schema = {"name": "answer", "strict": True, "schema": request.schema}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        if isinstance(settings, SeededSettings) and settings.seed_bits:
            options["seed"] = seed >> (53 - settings.seed_bits)
        return options


def openai_message(message: ChatMessage) -> dict[str, Any]:
    """A message for OpenAI's interface. Raises AnswerError for other kinds of image."""
    if message.image is None:
        return {"role": message.role, "content": message.text}
    kind = next((kind for begin, kind in MEDIA.items() if message.image.startswith(begin)), None)
    if kind is None:
        raise AnswerError("bad_image", "servers take PNG, JPEG, WEBP and GIF only")
    image = {"url": f"data:image/{kind};base64,{base64.b64encode(message.image).decode()}"}
    if message.detail != "auto":
        image["detail"] = message.detail
    parts = [{"type": "text", "text": message.text}, {"type": "image_url", "image_url": image}]
    return {"role": message.role, "content": parts}
