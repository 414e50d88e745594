"""Texts and embeddings from a server that speaks OpenAI's interface: OpenAI's own, vLLM's, transformers' and others.

A request is tried again where waiting may help: after 429, 408 and 5xx, a time-out, a broken connection, a reply that
is no JSON. The waits double, their spread is drawn from the seed, and a server's own ``Retry-After`` is kept to. After
anything else, and after the last try, it is an AnswerError with one of the codes of
:data:`agents.language.engines.openai_settings.CODES`.

The key comes from an environment variable and goes into the header of requests only. Whatever a server says is cleared
of it before it becomes an answer or an error, and the libraries below, which can log headers and addresses, are kept
from logging anything less than a warning.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import logging
import os
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from agents.errors import AnswerError, UnavailableError
from agents.language.engines import openai_replies as replies
from agents.language.engines.openai_replies import BadReply
from agents.language.engines.openai_settings import Code, ServerSettings
from agents.language.engines.request import Asked, ChatMessage, Finish, Said

MAX_BYTES = 64 * 1024 * 1024  # of one reply
MAX_CHARACTERS = 200_000  # of one text, which max_tokens keeps far below this where it is heeded
MOST_STOPS = 4  # OpenAI takes no more; the others are cut off here
SHORTEST_SECRET = 8  # a shorter key ("EMPTY", as some servers want) is no secret, and clearing texts of it harms them
QUOTED = 300  # characters of a server's own words in an error
KEY = re.compile(r"[A-Za-z0-9._~+/=:-]+")  # so that no form of JSON writes a key in another way
LOGGERS = ("openai", "httpx2", "httpcore2")


@dataclass(frozen=True, slots=True)
class ServerSaid(Said):
    """As :class:`Said`, with what a server tells of itself: the exact ``model`` and ``fingerprint`` that answered, and
    at which of the ``tries``."""

    model: str | None = None
    fingerprint: str | None = None
    tries: int = 1

    def record(self) -> dict[str, Any]:
        """What a record keeps of it under ``raw``: text, finish, token counts, model; the raw text where it differs."""
        about = asdict(self)
        if about["raw"] in (None, self.text):
            del about["raw"]
        return about


R = TypeVar("R", ServerSaid, list[list[float]])


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a try failed, whether another may help, and after how many seconds at the earliest, if the server said."""

    code: Code
    message: str
    again: bool = False
    after: float | None = None


@dataclass(frozen=True, slots=True)
class _Request(Generic[R]):
    """``send`` posts with a client and returns the raw response; ``read`` makes what was asked for out of its JSON and
    the number of tries."""

    send: Callable[[Any], Awaitable[Any]]
    read: Callable[[Any, int], R]


@dataclass(frozen=True, slots=True)
class _Connection:
    """The client of one event loop, and how many more requests it may have under way."""

    loop: asyncio.AbstractEventLoop
    client: Any
    free: asyncio.Semaphore


class OpenAIEngine:
    """Completions, chats (with images) and embeddings; every call is tried as :class:`ServerSettings` says.

    A client belongs to the event loop in which it was first used; in another loop there is another.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._connection: _Connection | None = None

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
        from importlib.metadata import version

        return {"openai": version("openai")}

    async def complete(self, asked: Asked, seed: int) -> ServerSaid:
        """The text for one request. Raises AnswerError with a code of
        :data:`agents.language.engines.openai_settings.CODES`."""
        options = self._options(asked, seed)
        if asked.prompt is not None:
            return await self._ask(
                _Request(
                    lambda client: client.completions.with_raw_response.create(prompt=asked.prompt, **options),
                    lambda body, tries: self._said(body, lambda choice: choice.get("text"), asked, tries),
                ),
                seed,
            )
        messages = [self._message(message) for message in asked.messages]
        return await self._ask(
            _Request(
                lambda client: client.chat.completions.with_raw_response.create(messages=messages, **options),
                lambda body, tries: self._said(body, replies.chat_text, asked, tries),
            ),
            seed,
        )

    async def embed(self, texts: Sequence[str], seed: int = 0, batch: int = 1024) -> list[list[float]]:
        """One vector per text, in their order, asked for ``batch`` at a time; ``seed`` spreads the waits. Raises
        AnswerError."""
        found: list[list[float]] = []
        for start in range(0, len(texts), batch):
            found += await self._embed(texts[start : start + batch], seed + start)
        if len({len(vector) for vector in found}) > 1:
            raise AnswerError("server_bad_reply", f"{self._settings.base_url}: vectors of different lengths")
        return found

    async def _embed(self, texts: Sequence[str], seed: int) -> list[list[float]]:
        options = {"model": self._settings.model, "input": list(texts), "encoding_format": "float"}
        return await self._ask(
            _Request(
                lambda client: client.embeddings.with_raw_response.create(**options),
                lambda body, tries: replies.vectors(body, len(texts)),
            ),
            seed,
        )

    async def aclose(self) -> None:
        """Close the connections that the running event loop has open."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.loop is asyncio.get_running_loop():
            await connection.client.close()

    # the request

    def _options(self, asked: Asked, seed: int) -> dict[str, Any]:
        """What both kinds of request have. What is left at its default is not sent: many servers know less."""
        chosen, sampling = self._settings, asked.sampling
        limit = "max_tokens" if asked.prompt is not None else chosen.length_field
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
        address = f"data:image/{replies.media(message.image)};base64,{base64.b64encode(message.image).decode()}"
        image: dict[str, str] = {"url": address}
        if self._settings.image_detail != "auto":
            image["detail"] = self._settings.image_detail
        parts = [{"type": "text", "text": message.text}, {"type": "image_url", "image_url": image}]
        return {"role": message.role, "content": parts}

    # the reply

    def _said(self, body: Any, text_of: Callable[[Mapping[str, Any]], Any], asked: Asked, tries: int) -> ServerSaid:
        choices = body.get("choices") if isinstance(body, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or not isinstance(raw := text_of(choice), str):
            raise BadReply("the reply holds no text")
        if len(raw) > MAX_CHARACTERS:
            raise BadReply(f"a text of {len(raw):,} characters")
        raw = self._cleared(raw)
        # Some servers leave the stop in the text, and none takes more than a few.
        ends = [place for stop in asked.sampling.stops if stop and (place := raw.find(stop)) >= 0]
        finish: Finish = "length" if choice.get("finish_reason") == "length" and not ends else "stop"
        if choice.get("finish_reason") == "content_filter" or replies.refuses(choice):
            finish = "filtered"
        usage = body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return ServerSaid(
            text=raw[: min(ends, default=len(raw))],
            finish=finish,
            raw=raw,
            prompt_tokens=replies.count(usage.get("prompt_tokens")),
            tokens=replies.count(usage.get("completion_tokens")),
            model=self._name(body.get("model")),
            fingerprint=self._name(body.get("system_fingerprint")),
            tries=tries,
        )

    def _name(self, value: Any) -> str | None:
        return self._cleared(value)[:200] if isinstance(value, str) and value else None

    # asking, and asking again

    async def _ask(self, request: _Request[R], seed: int) -> R:
        chosen = self._settings
        spread = random.Random(seed)
        connection = self._connected()
        async with connection.free:
            began = time.monotonic()
            for tries in itertools.count(1):
                left = chosen.patience_s - (time.monotonic() - began)
                got = await self._try(request, connection.client, tries, min(chosen.timeout_s, left))
                if not isinstance(got, _Failure):
                    return got
                failure = got
                wait = min(chosen.longest_wait_s, chosen.wait_s * 2.0 ** (tries - 1)) * (0.5 + spread.random() / 2)
                if failure.after is not None:
                    wait += failure.after  # not all at the very moment that the server named
                over = time.monotonic() - began + wait >= chosen.patience_s
                if not failure.again or tries > chosen.retries or over:
                    break
                await asyncio.sleep(wait)
        tried = f" ({tries} tries)" if tries > 1 else ""
        raise AnswerError(failure.code, f"{chosen.base_url}: {failure.message}{tried}")

    async def _try(self, request: _Request[R], client: Any, tries: int, seconds: float) -> R | _Failure:
        """One try. A failure is returned, not raised, so that no error of the library's, which holds the request and
        its headers, is the context of ours."""
        import openai

        try:
            async with asyncio.timeout(seconds):
                response = await request.send(client)
            return request.read(replies.read_json(response.content), tries)
        except openai.APIStatusError as error:
            return self._refused(error)
        except (TimeoutError, openai.APITimeoutError):
            return _Failure("server_timeout", f"no reply within {seconds:.3g} s", again=True)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            said = self._quoted(f"no connection: {cause}".rstrip(": ") + f" ({type(cause).__name__})")
            return _Failure("server_unreachable", said, again=True)
        except BadReply as error:
            return _Failure("server_bad_reply", self._quoted(str(error)), again=error.again)
        except openai.OpenAIError as error:
            return _Failure("server_bad_reply", self._quoted(str(error)))

    def _refused(self, error: Any) -> _Failure:
        """What follows from a status other than 200."""
        status = int(error.status_code)
        message = self._quoted(f"answered {status}: {replies.reason(error.body)}".rstrip(": "))
        if status in (401, 403):
            return _Failure("server_auth", message)
        if status == 429 and "insufficient_quota" in (error.code, error.type):
            return _Failure("server_refused", message)
        if status not in (408, 429) and status < 500:
            return _Failure("server_refused", message)
        after = replies.retry_after(error.response.headers)
        if after is not None and after > self._settings.longest_wait_s:
            return _Failure("server_busy", f"{message}; it asks to wait {after:.0f} s, more than longest_wait_s")
        return _Failure("server_busy", message, again=True, after=after)

    def _connected(self) -> _Connection:
        """The client of the running event loop. Raises UnavailableError if there can be none."""
        loop = asyncio.get_running_loop()
        if self._connection is None or self._connection.loop is not loop:
            missing = self.missing()
            if missing is not None:
                raise UnavailableError(missing)
            self._connection = _Connection(loop, self._client(), asyncio.Semaphore(self._settings.concurrency))
        return self._connection

    def _client(self) -> Any:
        import openai

        for name in LOGGERS:
            logger = logging.getLogger(name)
            logger.setLevel(max(logger.level, logging.WARNING))
        key = self._key()
        hooks: dict[str, list[Any]] = {"request": [] if key else [_sign_nothing], "response": [_bound]}
        return openai.AsyncOpenAI(
            api_key=key or "none",  # or the library would look for one
            base_url=self._settings.base_url,
            timeout=self._settings.timeout_s,
            max_retries=0,
            default_headers={"Accept-Encoding": "identity"},
            # A redirect would take the request, images and all, to somewhere else.
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=hooks),
        )

    # the key

    def _key(self) -> str:
        return os.environ.get(self._settings.key_variable, "").strip() if self._settings.key_variable else ""

    def _cleared(self, text: str) -> str:
        """The text without the key."""
        key = self._key()
        return text.replace(key, "[key]") if len(key) >= SHORTEST_SECRET else text

    def _quoted(self, text: str) -> str:
        """What a server or a library said, without the key, in one line that is not long."""
        said = " ".join(self._cleared(text).split())
        return said if len(said) <= QUOTED else said[:QUOTED] + "…"


async def _sign_nothing(request: Any) -> None:
    """Send no key, not even an empty one."""
    request.headers.pop("Authorization", None)


async def _bound(response: Any) -> None:
    """Let a response be read only up to :data:`MAX_BYTES`; a packed one, which was not asked for, not at all."""
    import httpx2

    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise BadReply("a packed reply, which was not asked for")
    stream = response.stream

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            count = 0
            async for part in stream:
                count += len(part)
                if count > MAX_BYTES:
                    raise BadReply(f"a reply of more than {MAX_BYTES / 2**20:g} MiB")
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Bounded()
