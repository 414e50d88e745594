"""Texts and embeddings from a server that speaks OpenAI's interface: OpenAI's own, vLLM's, transformers' and others.

Time-outs and retries are those of the package ``openai``. It tries again after 408, 409, 429 and 5xx, a time-out and a
broken connection; its waits grow, and it keeps to a server's ``Retry-After``. Whatever is left is an AnswerError with
one of the codes of :data:`agents.servers.CODES`.

The key comes from an environment variable and goes into the header of requests only. Whatever a server says is cleared
of it before it becomes an answer or an error. The libraries below can log headers and addresses; they are kept from
logging anything less than a warning.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import ValidationError

from agents.errors import AnswerError, UnavailableError
from agents.language.engines.openai_replies import TextReply, VectorReply, reason
from agents.language.engines.openai_settings import ServerSettings
from agents.language.engines.request import ChatMessage, Finish, GeneratedText, TextRequest
from agents.servers import Code, cleared, code_of, quoted

MAX_BYTES = 64 * 1024 * 1024  # of one reply
MAX_CHARACTERS = 200_000  # of one text, which max_tokens keeps far below this where it is heeded
MOST_STOPS = 4  # OpenAI takes no more; the others are cut off here
KEY = re.compile(r"[A-Za-z0-9._~+/=:-]+")  # so that no form of JSON writes a key in another way
LOGGERS = ("openai", "httpx2", "httpcore2")
MEDIA = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF87a", "gif"), (b"GIF89a", "gif"))

R = TypeVar("R", TextReply, VectorReply)


@dataclass(frozen=True, slots=True)
class ServerText(GeneratedText):
    """As :class:`GeneratedText`, with what a server tells of itself: the exact ``model`` and ``fingerprint`` that
    answered, and at which of the ``tries``."""

    model: str | None = None
    fingerprint: str | None = None
    tries: int = 1

    def record(self) -> dict[str, Any]:
        """What a record keeps of it under ``raw``: text, finish, token counts, model; the raw text where it differs."""
        about = asdict(self)
        if about["raw"] in (None, self.text):
            del about["raw"]
        return about


class OpenAIEngine:
    """Completions, chats (with images) and embeddings.

    A client belongs to the event loop in which it was first used; in another loop there is another.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None  # the client's

    def missing(self) -> str | None:
        """One sentence on what there is to be installed or set, or None. It never holds the key."""
        if find_spec("openai") is None:
            return "the package openai is not installed: pip install 'turinglike[openai]'"
        name = self._settings.key_variable
        key = self._key()
        if not key:
            if not name or self._settings.is_local():
                return None
            return (
                f"the environment variable {name} holds no key for {self._settings.base_url}: set it where the agent "
                "runs (before Ray is started there, if --address names a cluster)"
            )
        if not KEY.fullmatch(key):
            return f"the environment variable {name} holds something that cannot be a key: spaces or odd characters"
        return None

    def provenance(self) -> dict[str, Any]:
        """The version of the package that asks."""
        return {"openai": version("openai")}

    async def complete(self, request: TextRequest, seed: int) -> ServerText:
        """The text for one request. Raises AnswerError with a code of
        :data:`agents.servers.CODES`."""
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

    async def aclose(self) -> None:
        """Close the connections that the running event loop has open."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    # the request

    def _options(self, request: TextRequest, seed: int) -> dict[str, Any]:
        """What both kinds of request have. What is left at its default is not sent: many servers know less."""
        chosen, sampling = self._settings, request.sampling
        limit = "max_tokens" if request.prompt is not None else chosen.length_field
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
        if sampling.stops:
            options["stop"] = list(sampling.stops[:MOST_STOPS])
        if chosen.seed_bits:
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
        if self._settings.image_detail != "auto":
            image["detail"] = self._settings.image_detail
        parts = [{"type": "text", "text": message.text}, {"type": "image_url", "image_url": image}]
        return {"role": message.role, "content": parts}

    async def _post(self, resource: str, form: type[R], **options: Any) -> tuple[R, int]:
        """The reply, which has the ``form``, and the number of tries. Raises AnswerError.

        It is raised outside of the handlers: an error of the library's holds the request and its headers, and must not
        be the context of ours.
        """
        import openai

        chosen = self._settings
        create = attrgetter(resource)(self._connected()).with_raw_response.create
        headers = {} if self._key() else {"Authorization": openai.Omit()}  # not even an empty key
        code: Code
        try:
            async with asyncio.timeout(chosen.patience_s):
                response = await create(extra_headers=headers, **options)
            return form.model_validate_json(response.content), response.retries_taken + 1
        except openai.APIStatusError as error:
            code = _code(error)
            message = f"answered {error.status_code}: {reason(error.body)}".rstrip(": ")
        except openai.APITimeoutError:
            code, message = "server_timeout", f"no reply within {chosen.timeout_s:g} s"
        except TimeoutError:
            code, message = "server_timeout", f"no reply within {chosen.patience_s:g} s, all tries together"
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            code = "server_unreachable"
            message = f"no connection: {cause}".rstrip(": ") + f" ({type(cause).__name__})"
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            code, message = "server_bad_reply", f"the reply has another form: {where} {first['msg']}"
        except openai.OpenAIError as error:
            code, message = "server_bad_reply", str(error)
        raise AnswerError(code, f"{chosen.base_url}: {quoted(message, [self._key()])}")

    def _bad_reply(self, message: str) -> AnswerError:
        return AnswerError("server_bad_reply", f"{self._settings.base_url}: {message}")

    # the reply

    def _text(self, reply: TextReply, request: TextRequest, tries: int) -> ServerText:
        choice = reply.choices[0]
        raw = choice.said()
        if raw is None:
            raise self._bad_reply("the reply holds no text")
        if len(raw) > MAX_CHARACTERS:
            raise self._bad_reply(f"a text of {len(raw):,} characters")
        raw = self._cleared(raw)
        # Some servers leave the stop in the text, and none takes more than a few.
        ends = [start for stop in request.sampling.stops if stop and (start := raw.find(stop)) >= 0]
        finish: Finish = "length" if choice.finish_reason == "length" and not ends else "stop"
        return ServerText(
            text=raw[: min(ends, default=len(raw))],
            finish="filtered" if choice.is_filtered() else finish,
            raw=raw,
            prompt_tokens=reply.count("prompt_tokens"),
            tokens=reply.count("completion_tokens"),
            model=self._name(reply.model),
            fingerprint=self._name(reply.system_fingerprint),
            tries=tries,
        )

    def _name(self, value: Any) -> str | None:
        return self._cleared(value)[:200] if isinstance(value, str) and value else None

    # the client and the key

    def _connected(self) -> Any:
        """The client of the running event loop. Raises UnavailableError if there can be none."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            missing = self.missing()
            if missing is not None:
                raise UnavailableError(missing)
            self._client, self._loop = self._new_client(), loop
        return self._client

    def _new_client(self) -> Any:
        import openai

        for name in LOGGERS:
            logger = logging.getLogger(name)
            logger.setLevel(max(logger.level, logging.WARNING))
        chosen, key = self._settings, self._key()
        return openai.AsyncOpenAI(
            api_key=key or "none",  # or the library would look for one
            base_url=chosen.base_url,
            timeout=chosen.timeout_s,
            max_retries=chosen.retries,
            default_headers={"Accept-Encoding": "identity"},
            # A redirect would take the request, images and all, to somewhere else.
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, event_hooks={"response": [self._bound]}),
        )

    async def _bound(self, response: Any) -> None:
        """Let a response be read only up to :data:`MAX_BYTES`; a packed one, which was not asked for, not at all."""
        import httpx2

        stream, bad_reply = response.stream, self._bad_reply
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise bad_reply("a packed reply, which was not asked for")

        class Bounded(httpx2.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                count = 0
                async for part in stream:
                    count += len(part)
                    if count > MAX_BYTES:
                        raise bad_reply(f"a reply of more than {MAX_BYTES / 2**20:g} MiB")
                    yield part

            async def aclose(self) -> None:
                await stream.aclose()

        response.stream = Bounded()

    def _key(self) -> str:
        return os.environ.get(self._settings.key_variable, "").strip() if self._settings.key_variable else ""

    def _cleared(self, text: str) -> str:
        return cleared(text, [self._key()])


def _code(error: Any) -> Code:
    return "server_refused" if "insufficient_quota" in (error.code, error.type) else code_of(error.status_code)


def _media(image: bytes) -> str:
    """The kind of an image, by its first bytes."""
    if image.startswith(b"RIFF") and image[8:12] == b"WEBP":
        return "webp"
    for start, kind in MEDIA:
        if image.startswith(start):
            return kind
    raise AnswerError("bad_image", "servers take PNG, JPEG, WEBP and GIF only")
