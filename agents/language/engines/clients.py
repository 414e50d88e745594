"""The base of clients of servers. Failures are AnswerErrors; the key goes into request headers only."""

import asyncio
import base64
import importlib
import json
import logging
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.capabilities import Traced
from agents.contract import NO_ANSWER, Address, Agent, Settings
from agents.errors import AnswerError, Code, UnavailableError, cleared, code_of, quoted
from agents.language.engines import reasoning
from agents.language.engines.reply_parts import Parts
from agents.language.engines.text_request import Engine, Finish, GeneratedText, Sampling
from agents.loopback import client_options, is_loopback

KEY = re.compile(r"[A-Za-z0-9._~+/=:-]+")  # so that JSON never writes a key in another way
# A prompt beyond the model's positions, in the words of OpenAI, vLLM and llama.cpp.
TOO_LONG = re.compile(r"context_length_exceeded|maximum context length|exceed_context_size_error", re.IGNORECASE)
# An input that the model never takes, or a form of a reply, with whatever status: llama.cpp and its Python binding have
# 500.
UNSUPPORTED = re.compile(
    r"\b(?:image|audio|video) input is not supported\b|Input should be 'text' or 'json_object'", re.IGNORECASE
)
# A parameter that the model does not take, in the words of OpenAI and of Anthropic.
REFUSED = re.compile(r"Unsupported (?:parameter|value): '(\w+)'|`(\w+)` is deprecated for this model")
RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
DISPENSABLE = {"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "stop", "seed", *RENAMED}
CONNECTS_WITHIN = 2.0  # seconds
# What to do where thought and answer of a server's reply run together.
ADVICE = (
    "start the server with the model's reasoning parser (vLLM: --reasoning-parser), or set reasoning=opened if the "
    "prompt opens what the model thinks, or reasoning=none if it does not think"
)
SCHEMES = {"http": 80, "https": 443}
MEDIA = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}  # by how an image begins
log = logging.getLogger("turinglike.agents")
LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2")  # which could log headers and addresses


# Capitals only, so that a key by mistake is refused, and not printed.
KeyVariable = Annotated[str, Field(max_length=64, pattern=r"^([A-Z_][A-Z0-9_]*)?$", json_schema_extra=NO_ANSWER)]


class ClientSettings(Settings):
    """Which server and model, and how patient its client is."""

    base_url: Address
    """The server's address."""
    model: str = Field(min_length=1)
    """The model's name at the server."""
    key_variable: KeyVariable
    """The environment variable that holds the key, in capitals; empty: no key is sent. The key is never a setting."""
    concurrency: int = Field(16, ge=1, le=1000, json_schema_extra=NO_ANSWER)
    """How many requests a worker has under way at once."""
    timeout_s: float = Field(60.0, gt=0, le=3600, json_schema_extra=NO_ANSWER)
    """How long the server may be silent in a try, in seconds."""
    patience_s: float = Field(300.0, gt=0, le=86_400, json_schema_extra=NO_ANSWER)
    """The longest that a request may take with all its tries and waits, in seconds; keep it below --timeout."""
    retries: int = Field(6, ge=0, le=100, json_schema_extra=NO_ANSWER)
    """How often a request is tried again; the waits between tries are those of the client."""

    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        return is_loopback(self.base_url)

    def unreachable(self) -> str | None:
        """What to start where nothing listens at the address, or None; one try, as no server has answered yet."""
        parts = urlsplit(self.base_url)
        host = parts.hostname or ""
        if not self.is_local() and getproxies().keys() & {parts.scheme, "all"} and not proxy_bypass(host):
            return None  # as only the proxy knows
        try:
            socket.create_connection((host, parts.port or SCHEMES[parts.scheme]), CONNECTS_WITHIN).close()
        except TimeoutError:  # far, or busy
            return None
        except OSError as error:
            why = error.strerror or type(error).__name__
            act = "start the server (such as `ollama serve`)" if self.is_local() else "is there a network?"
            return f"nothing answers at {self.base_url} ({why}): {act}; base_url names another"
        return None


@dataclass(frozen=True, slots=True)
class ServerText(GeneratedText):
    """With the ``model`` and ``fingerprint`` that answered, the ``tries``, the tokens of reasoning in the reply, what
    was ``unsent``: parameters that the model does not take, and what was sent and ``ignored``, as this reply shows."""

    model: str | None = None
    fingerprint: str | None = None
    tries: int = 1
    reasoning_tokens: int | None = None
    unsent: tuple[str, ...] | None = None
    ignored: tuple[str, ...] | None = None


class ServerReply(BaseModel):
    """The used fields of a reply's body."""

    model_config = ConfigDict(strict=True)

    usage: Any = None
    model: Any = None

    def count(self, *names: str) -> int | None:
        """A number of tokens, or None."""
        value = self.usage
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, int) and value >= 0 else None


S = TypeVar("S", bound=ClientSettings)
R = TypeVar("R", bound=BaseModel)


class ServerEngine(Engine, Generic[S]):
    """Base of the engines on servers. ``used_up`` is the error code of an empty account."""

    package: ClassVar[str]
    extra: ClassVar[str]
    client: ClassVar[str]
    headers: ClassVar[Mapping[str, str]] = {}
    used_up: ClassVar[str]

    def __init__(self, settings: S) -> None:
        self._settings = settings
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._refused: set[str] = set()  # parameters that the model does not take, and names of a limit without effect

    def missing(self) -> str | None:
        """What to install or set, never with the key; or None."""
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

    def limits(self) -> list[str]:
        takes_seed = getattr(self._settings, "seed_bits", 0)
        return [] if takes_seed else ["takes no seed: its answers cannot be repeated"]

    def provenance(self) -> dict[str, Any]:
        return {"engine": self.package, self.package: version(self.package)}

    async def aclose(self) -> None:
        """Close the running event loop's connections."""
        client = self._client
        self._client = None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    async def _post(self, resource: str, form: type[R], **options: Any) -> tuple[R, int]:
        """(reply, tries), without parameters that the model refuses. Raises AnswerError, outside of the handlers: the
        package's error holds the key."""
        library: Any = importlib.import_module(self.package)
        settings = self._settings
        refused = ""
        sent = self._taken(options)
        create = attrgetter(resource)(self._connected()).with_raw_response.create
        headers = {} if self._key() else {"Authorization": library.Omit()}  # not even an empty key
        code: Code
        try:
            async with asyncio.timeout(settings.patience_s):
                response = await create(extra_headers={**self.headers, **headers}, **sent)
            return _parsed(form, response.http_response.content), response.retries_taken + 1
        except library.APIStatusError as error:
            body = json.dumps(error.body)
            refused = next(filter(None, match.groups())) if (match := REFUSED.search(body)) else ""
            code = "no_room" if TOO_LONG.search(body) else code_of(error.status_code)
            code = "server_refused" if self._is_final(body) else code
            words = "" if self.private else reason(error.body)
            message = f"answered {error.status_code}: {words}".rstrip(": ")
        except library.APITimeoutError:
            code = "server_timeout"
            message = f"no reply within {settings.timeout_s:g} s"
        except TimeoutError:
            code = "server_timeout"
            message = f"no reply within {settings.patience_s:g} s, all tries together"
        except library.APIConnectionError as error:
            cause = error.__cause__ or error
            code = "server_unreachable"
            message = f"no connection: {cause}".rstrip(": ") + f" ({type(cause).__name__})"
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            code = "server_bad_reply"
            message = f"the reply has another form: {where} {first['msg']}"
        except library.APIError:
            code = "server_bad_reply"
            message = "the reply cannot be read"
        if refused in DISPENSABLE and refused in {*sent, *sent.get("extra_body", ())}:
            if refused not in {*self._refused, *RENAMED}:
                log.warning("%s takes no %s: none is sent, as `unsent` in records says", settings.model, refused)
            self._refused.add(refused)
            if self._taken(options) != sent:  # or a server that refuses both names of a limit were asked for ever
                return await self._post(resource, form, **options)
        raise AnswerError(code, f"{settings.base_url}: {quoted(message, [self._key()])}")

    def _taken(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Without the refused parameters."""
        taken = {}
        for name, value in options.items():
            if name == "extra_body":
                taken[name] = self._taken(value)
            elif name in RENAMED:
                taken[self._limit_name(name)] = value
            elif name not in self._refused:
                taken[name] = value
        return taken

    def _limit_name(self, name: str) -> str:
        """What the limit of tokens is called: ``name``, or its other name where that alone is of use."""
        other = RENAMED[name]
        return other if name in self._refused and other not in self._refused else name

    def _text(
        self, reply: ServerReply, sampling: Sampling, parts: Parts, finish: Finish, thought: str, **more: Any
    ) -> ServerText:
        """The answer of ``parts`` up to the first stop. Raises AnswerError where no answer can be told from what the
        model thinks."""
        answer = parts.answer or ""
        if parts.fault is not None:
            answer = ""
        end = sampling.stop_in(answer)
        is_ended = end is not None or parts.is_ended
        generated = ServerText(
            answer[:end],
            "stop" if is_ended and finish != "filtered" else finish,
            model=self._name(reply.model),
            reasoning=thought or None,
            unsent=tuple(sorted(self._refused - {*RENAMED})) or None,
            **more,
        )
        if parts.fault is not None:
            raise reasoning.unparted(generated, parts.fault, ADVICE)
        if parts.answer is None or (thought and not answer.strip() and finish == "length"):
            raise reasoning.unfinished(generated)
        return generated

    def _bad_reply(self, message: str) -> AnswerError:
        return AnswerError("server_bad_reply", f"{self._settings.base_url}: {message}")

    def _connected(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            if (missing := self.missing()) is not None:
                raise UnavailableError(missing)
            self._client = self._new_client()
            self._loop = loop
        return self._client

    def _new_client(self) -> Any:
        library: Any = importlib.import_module(self.package)
        for name in LOGGERS:
            logger = logging.getLogger(name)
            logger.setLevel(max(logger.level, logging.WARNING))
        settings = self._settings
        hooks = {"response": [self._note_refusal]}
        # A redirect would take the request to another host.
        http_client = library.DefaultAsyncHttpxClient(
            follow_redirects=False, event_hooks=hooks, **client_options(settings.base_url)
        )
        return getattr(library, self.client)(
            api_key=self._key() or "none",  # or the package would look for a key
            base_url=settings.base_url,
            timeout=settings.timeout_s,
            max_retries=settings.retries,
            http_client=http_client,
        )

    def _is_final(self, body: str) -> bool:
        """Whether an error's body refuses the request for ever."""
        return f'"{self.used_up}"' in body or UNSUPPORTED.search(body) is not None

    async def _note_refusal(self, response: Any) -> None:
        """The client tries such a request no more, whatever its status."""
        if response.status_code >= 400 and self._is_final((await response.aread()).decode(errors="replace")):
            response.headers["x-should-retry"] = "false"

    def _key(self) -> str:
        name = self._settings.key_variable
        return os.environ.get(name, "").strip() if name else ""

    def _cleared(self, text: str) -> str:
        return cleared(text, [self._key()])

    def _name(self, value: Any) -> str | None:
        return self._cleared(value)[:200] if isinstance(value, str) and value else None


class ServerModel(Agent[S], Traced):
    """Base of the agents on a server."""

    engine: ClassVar[type[ServerEngine[Any]]]
    _engine: ServerEngine[Any]

    def __init__(self, settings: S, name: str) -> None:
        super().__init__(settings, name)
        self._engine = self.engine(settings)

    def environment(self) -> tuple[str, ...]:
        return (self.settings.key_variable,)

    def checkpoint(self) -> tuple[str | None, str | None]:
        return self.settings.model, None

    def missing(self) -> str | None:
        return self._engine.missing() or super().missing()

    def load(self, device: str) -> None:
        if (missing := self._engine.missing() or self.settings.unreachable()) is not None:
            raise UnavailableError(missing)
        super().load(device)

    def provenance(self) -> dict[str, Any]:
        return {**super().provenance(), **self._engine.provenance()}

    async def aclose(self) -> None:
        await self._engine.aclose()


def _parsed(form: type[R], content: bytes) -> R:
    """A reply's body. A server may cut a text within a character that JSON writes in two halves: the half becomes
    U+FFFD, as strict readers of JSON would refuse the whole reply. Raises ValidationError."""
    try:
        return form.model_validate_json(content)
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False, include_context=False)[0]["type"] != "json_invalid":
            raise
        try:
            text = json.dumps(json.loads(content), ensure_ascii=False)
        except (ValueError, RecursionError):
            raise error from None
    return form.model_validate_json(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def encoded(image: bytes) -> tuple[str, str]:
    """(media type, base64) of an image as servers take it. Raises AnswerError for other kinds."""
    kind = next((kind for begin, kind in MEDIA.items() if image.startswith(begin)), None)
    if kind is None:
        raise AnswerError("bad_image", "servers take PNG, JPEG, WEBP and GIF only")
    return f"image/{kind}", base64.b64encode(image).decode()


def reason(body: Any) -> str:
    """The sentence in an error's body."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            inner = inner.get("message") or inner.get("detail") or inner
        body = inner
    return body if isinstance(body, str) else json.dumps(body) if body else ""
