"""Texts from a server over a company's own Python client: what the clients of OpenAI and Anthropic have in common.

Time-outs and retries are those of the client. It tries again after 408, 409, 429 and 5xx, a time-out and a broken
connection; its waits grow, and it keeps to a server's ``Retry-After``. Whatever is left is an AnswerError with one of
the codes of :data:`agents.errors.CODES`.

The key comes from an environment variable and goes into the header of requests only. Whatever a server says is cleared
of it before it becomes an answer or an error. The libraries below can log headers and addresses; they are kept from
logging anything less than a warning.
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import json
import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agents.contract import NO_ANSWER, Address, Settings
from agents.errors import AnswerError, Code, UnavailableError, cleared, code_of, quoted
from agents.language.engines.request import GeneratedText, TextRequest


class ClientSettings(Settings):
    """Which server and model, and how patiently it is asked: the settings of every agent on a server."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    base_url: Address
    """The server's address."""
    model: str = Field(min_length=1)
    """The model's name at the server."""
    key_variable: Annotated[str, Field(max_length=64, json_schema_extra=NO_ANSWER)]
    """The environment variable that holds the key, in capitals; empty: no key is sent. The key is never a setting."""
    concurrency: int = Field(16, ge=1, le=1000, json_schema_extra=NO_ANSWER)
    """How many requests one worker has under way at once."""
    timeout_s: float = Field(60.0, gt=0, le=3600, json_schema_extra=NO_ANSWER)
    """How long the server may be silent in one try, in seconds."""
    patience_s: float = Field(300.0, gt=0, le=86_400, json_schema_extra=NO_ANSWER)
    """The longest that a request may take with all its tries and waits, in seconds; keep it below --timeout."""
    retries: int = Field(6, ge=0, le=100, json_schema_extra=NO_ANSWER)
    """How often a request is tried again; the waits between tries are those of the client."""

    @field_validator("key_variable")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        # Capitals only, so that a key given here by mistake is refused, and not shown.
        if value and not (value.isascii() and value.isidentifier() and value == value.upper()):
            raise ValueError("must be the name of an environment variable, in capitals; a key is never given here")
        return value

    def is_local(self) -> bool:
        """Whether the server is on this machine; such a one need not have a key."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"  # of names below it many systems ask a name server


MAX_BYTES = 64 * 1024 * 1024  # of one reply
MAX_CHARACTERS = 200_000  # of one text, which max_tokens keeps far below this where it is heeded
KEY = re.compile(r"[A-Za-z0-9._~+/=:-]+")  # so that no form of JSON writes a key in another way
# What servers say of a prompt that is longer than their model takes: OpenAI's and vLLM's words, llama.cpp's.
TOO_LONG = re.compile(r"context_length_exceeded|maximum context length|exceed_context_size_error", re.IGNORECASE)
# Of an input that their model never takes, with whatever status; llama.cpp has 500.
UNSUPPORTED = re.compile(r"\b(?:image|audio|video) input is not supported\b", re.IGNORECASE)
LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2")

R = TypeVar("R", bound=BaseModel)
S = TypeVar("S", bound=ClientSettings)


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


class ServerReply(BaseModel):
    """The body of a reply with a text: of what comes from outside the fields that are used, and their types. Counts
    and names may be anything: a text is none the worse for them."""

    model_config = ConfigDict(strict=True)

    usage: Any = None
    model: Any = None

    def count(self, name: str) -> int | None:
        """A number of tokens, or None if the server tells none."""
        value = self.usage.get(name) if isinstance(self.usage, dict) else None
        return value if isinstance(value, int) and value >= 0 else None


class ServerEngine(ABC, Generic[S]):
    """Base of the engines on servers. A subclass names its client, and makes requests and reads replies.

    ``package`` is the client's, ``extra`` installs it, ``client`` is its class; ``headers`` go with every request.
    ``used_up`` is the code in the error of an account that has nothing left, which a later try does not mend.

    What a ``private`` engine's server says of an error is not told: it may quote the request.

    A client belongs to the event loop in which it was first used; in another loop there is another.
    """

    package: ClassVar[str]
    extra: ClassVar[str]
    client: ClassVar[str]
    headers: ClassVar[Mapping[str, str]] = {}
    used_up: ClassVar[str]

    def __init__(self, settings: S) -> None:
        self.private = False
        self._settings = settings
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None  # the client's

    @abstractmethod
    async def complete(self, request: TextRequest, seed: int) -> ServerText:
        """The text for one request. Raises AnswerError with a code of :data:`agents.errors.CODES`."""

    def missing(self) -> str | None:
        """One sentence on what there is to be installed or set, or None. It never holds the key."""
        if find_spec(self.package) is None:
            return f"the package {self.package} is not installed: pip install 'turinglike[{self.extra}]'"
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
        return {self.package: version(self.package)}

    async def aclose(self) -> None:
        """Close the connections that the running event loop has open."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    async def _post(self, resource: str, form: type[R], **options: Any) -> tuple[R, int]:
        """The reply, which has the ``form``, and the number of tries. Raises AnswerError.

        It is raised outside of the handlers: an error of the library's holds the request and its headers, and must not
        be the context of ours.
        """
        library: Any = importlib.import_module(self.package)
        chosen = self._settings
        create = attrgetter(resource)(self._connected()).with_raw_response.create
        headers = {} if self._key() else {"Authorization": library.Omit()}  # not even an empty key
        code: Code
        try:
            async with asyncio.timeout(chosen.patience_s):
                response = await create(extra_headers={**self.headers, **headers}, **options)
            return form.model_validate_json(response.http_response.content), response.retries_taken + 1
        except library.APIStatusError as error:
            body = json.dumps(error.body)
            is_refused = f'"{self.used_up}"' in body or UNSUPPORTED.search(body) is not None
            code = "no_room" if TOO_LONG.search(body) else code_of(error.status_code)
            code = "server_refused" if is_refused else code
            message = f"answered {error.status_code}: {self._told(reason(error.body))}".rstrip(": ")
        except library.APITimeoutError:
            code, message = "server_timeout", f"no reply within {chosen.timeout_s:g} s"
        except TimeoutError:
            code, message = "server_timeout", f"no reply within {chosen.patience_s:g} s, all tries together"
        except library.APIConnectionError as error:
            cause = error.__cause__ or error
            code = "server_unreachable"
            message = f"no connection: {cause}".rstrip(": ") + f" ({type(cause).__name__})"
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            code, message = "server_bad_reply", f"the reply has another form: {where} {first['msg']}"
        except library.APIError as error:
            code, message = "server_bad_reply", self._told(str(error)) or "the reply cannot be read"
        raise AnswerError(code, f"{chosen.base_url}: {quoted(message, [self._key()])}")

    def _told(self, said: str) -> str:
        """What is told of a server's own words."""
        return "" if self.private else said

    def _bad_reply(self, message: str) -> AnswerError:
        return AnswerError("server_bad_reply", f"{self._settings.base_url}: {message}")

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
        library: Any = importlib.import_module(self.package)
        for name in LOGGERS:
            logger = logging.getLogger(name)
            logger.setLevel(max(logger.level, logging.WARNING))
        chosen, key = self._settings, self._key()
        # What is for a server on this machine must not go by a proxy that the environment names.
        here = {"mounts": {"http://": None, "https://": None}} if chosen.is_local() else {}
        return getattr(library, self.client)(
            api_key=key or "none",  # or the library would look for one
            base_url=chosen.base_url,
            timeout=chosen.timeout_s,
            max_retries=chosen.retries,
            default_headers={"Accept-Encoding": "identity"},
            # A redirect would take the request, images and all, to somewhere else.
            http_client=library.DefaultAsyncHttpxClient(
                follow_redirects=False, event_hooks={"response": [self._bound]}, **here
            ),
        )

    async def _bound(self, response: Any) -> None:
        """Let a response be read only up to :data:`MAX_BYTES`; a packed one, which was not asked for, not at all."""
        import httpx2

        library: Any = importlib.import_module(self.package)
        stream = response.stream

        def bad_reply(message: str) -> Any:
            """An error of the client's own, which it lets through and does not take for a broken connection."""
            return library.APIError(message, response.request, body=None)

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

    # what a server says

    def _said(self, raw: str) -> str:
        """A text without the key. Raises AnswerError if it is too long."""
        if len(raw) > MAX_CHARACTERS:
            raise self._bad_reply(f"a text of {len(raw):,} characters")
        return cleared(raw, [self._key()])

    def _name(self, value: Any) -> str | None:
        return cleared(value, [self._key()])[:200] if isinstance(value, str) and value else None


def reason(body: Any) -> str:
    """The sentence in the body of an error, whichever of the usual forms it has."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            inner = inner.get("message") or inner.get("detail") or inner
        body = inner
    return body if isinstance(body, str) else json.dumps(body) if body else ""
