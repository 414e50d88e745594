"""Texts and embeddings from a server that speaks OpenAI's interface: OpenAI's own, vLLM's, transformers' and others."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from agents.errors import AnswerError
from agents.language.engines.openai_replies import TextReply, VectorReply
from agents.language.engines.openai_settings import ChatSettings, SeededSettings, ServerSettings
from agents.language.engines.request import ChatMessage, Finish, TextRequest
from agents.language.engines.server import ServerEngine, ServerText

MOST_STOPS = 4  # OpenAI takes no more; the others are cut off here
MEDIA = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF87a", "gif"), (b"GIF89a", "gif"))


class OpenAIEngine(ServerEngine[ServerSettings]):
    """Completions, chats (with images) and embeddings."""

    package = extra = "openai"
    client = "AsyncOpenAI"
    used_up = "insufficient_quota"

    async def complete(self, request: TextRequest, seed: int) -> ServerText:
        options = self._options(request, seed)
        if request.prompt is not None:
            reply, tries = await self._post("completions", TextReply, prompt=request.prompt, **options)
        else:
            messages = [self._message(message) for message in request.messages]
            reply, tries = await self._post("chat.completions", TextReply, messages=messages, **options)
        return self._text(reply, request, tries)

    async def embed(self, texts: Sequence[str], batch: int = 1024) -> list[list[float]]:
        """One vector per text, in their order, asked for ``batch`` at a time. Raises AnswerError."""
        found: list[list[float]] = []
        for start in range(0, len(texts), batch):
            part = list(texts[start : start + batch])
            options = {"model": self._settings.model, "input": part, "encoding_format": "float"}
            reply, _ = await self._post("embeddings", VectorReply, **options)
            vectors = reply.vectors(len(part))
            if vectors is None:
                raise self._bad_reply(f"not one vector for each of {len(part)} texts")
            found += vectors
        if len({len(vector) for vector in found}) > 1:
            raise self._bad_reply("vectors of different lengths")
        return found

    # the request

    def _options(self, request: TextRequest, seed: int) -> dict[str, Any]:
        """What both kinds of request have. What is left at its default is not sent: many servers know less."""
        chosen, sampling = self._settings, request.sampling
        limit = chosen.length_field if isinstance(chosen, ChatSettings) and request.prompt is None else "max_tokens"
        options: dict[str, Any] = {
            "model": chosen.model,
            "temperature": sampling.temperature,
            limit: sampling.max_tokens,
        }
        if sampling.top_p < 1:
            options["top_p"] = sampling.top_p
        if sampling.frequency_penalty:
            options["frequency_penalty"] = sampling.frequency_penalty
        if sampling.presence_penalty:
            options["presence_penalty"] = sampling.presence_penalty
        if stops := sampling.outright():
            options["stop"] = stops[:MOST_STOPS]
        if request.schema is not None:
            form = {"name": "answer", "strict": True, "schema": request.schema}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        if isinstance(chosen, SeededSettings) and chosen.seed_bits:
            options["seed"] = seed >> (53 - chosen.seed_bits)
        beyond = {"top_k": sampling.top_k, "min_tokens": sampling.min_tokens}  # vLLM's own
        if extra := {name: value for name, value in beyond.items() if value}:
            options["extra_body"] = extra
        return options

    def _message(self, message: ChatMessage) -> dict[str, Any]:
        if message.image is None:
            return {"role": message.role, "content": message.text}
        address = f"data:image/{_media(message.image)};base64,{base64.b64encode(message.image).decode()}"
        image: dict[str, str] = {"url": address}
        if message.detail != "auto":
            image["detail"] = message.detail
        parts = [{"type": "text", "text": message.text}, {"type": "image_url", "image_url": image}]
        return {"role": message.role, "content": parts}

    # the reply

    def _text(self, reply: TextReply, request: TextRequest, tries: int) -> ServerText:
        choice = reply.choices[0]
        raw = choice.said()
        if raw is None:
            raise self._bad_reply("the reply holds no text")
        raw = self._said(raw)
        # Some servers leave the stop in the text, and none takes more than a few.
        end = request.sampling.stop_in(raw)
        finish: Finish = "length" if choice.finish_reason == "length" and end is None else "stop"
        return ServerText(
            text=raw[:end],
            finish="filtered" if choice.is_filtered() else finish,
            raw=raw,
            prompt_tokens=reply.count("prompt_tokens"),
            tokens=reply.count("completion_tokens"),
            model=self._name(reply.model),
            fingerprint=self._name(reply.system_fingerprint),
            tries=tries,
        )


def _media(image: bytes) -> str:
    """The kind of an image, by its first bytes."""
    if image.startswith(b"RIFF") and image[8:12] == b"WEBP":
        return "webp"
    for start, kind in MEDIA:
        if image.startswith(start):
            return kind
    raise AnswerError("bad_image", "servers take PNG, JPEG, WEBP and GIF only")
