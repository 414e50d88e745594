"""The base of clients of servers, by the servers' own packages. Failures become AnswerErrors.

The key goes into request headers only. It is never a setting, and is taken out of every text that is kept or told; the
packages' errors, which hold it, are not passed on.
"""

import asyncio
import base64
import importlib
import json
import logging
import os
import re
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from operator import attrgetter
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from agents.capabilities import Traced
from agents.contract import Agent
from agents.errors import AnswerError, Code, UnavailableError, cleared, code_of, quoted
from agents.language.engines import reasoning
from agents.language.engines.reply_parts import ReplyParts
from agents.language.engines.server_replies import ServerReply, ServerText, parsed_reply, reason
from agents.language.engines.server_settings import ClientSettings
from agents.language.engines.text_request import Engine, Finish, Sampling
from agents.loopback import client_options

KEY = re.compile(r"[A-Za-z0-9._~+/=:-]+")
"""What a key may consist of, so that JSON never writes it in another way and it can be found in texts."""
TOO_LONG = re.compile(r"context_length_exceeded|maximum context length|exceed_context_size_error", re.IGNORECASE)
"""A prompt beyond the model's positions, in the words of OpenAI, vLLM and llama.cpp."""
UNSUPPORTED = re.compile(
    r"\b(?:image|audio|video) input is not supported\b|Input should be 'text' or 'json_object'", re.IGNORECASE
)
"""An input that the model never takes, or a form of a reply that it cannot give, whatever the status: llama.cpp and its
Python binding answer 500."""
REFUSED = re.compile(r"Unsupported (?:parameter|value): '(\w+)'|`(\w+)` is deprecated for this model")
"""A parameter that the model does not take, in the words of OpenAI and of Anthropic."""
RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names of the limit of tokens, each with the other."""
DISPENSABLE = {"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "stop", "seed", *RENAMED}
"""Parameters that are no longer sent once the model refuses them."""
ADVICE = (
    "start the server with the model's reasoning parser (vLLM: --reasoning-parser), or set reasoning=opened if the "
    "prompt opens what the model thinks, or reasoning=none if it does not think"
)
"""What to do where thought and answer of a server's reply run together."""
MEDIA = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
"""An image's kind by its first bytes."""
log = logging.getLogger("turinglike.agents")
LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2")
"""Loggers that could write headers and addresses, and are kept quiet."""


class _Failure(NamedTuple):
    """Why a try failed; ``refused`` is the parameter that the model does not take, or ""."""

    code: Code
    message: str
    refused: str = ""


S = TypeVar("S", bound=ClientSettings)
R = TypeVar("R", bound=BaseModel)


class ServerEngine(Engine, Generic[S]):
    """Base of the engines on servers. A subclass names its package and turns requests into the server's form.

    There is a client for each event loop that the engine is used in, as connections belong to a loop.
    """

    package: ClassVar[str]
    """The package of the client."""
    extra: ClassVar[str]
    """The extra of Turinglike that installs the package."""
    client: ClassVar[str]
    """The name of the client's class in the package."""
    headers: ClassVar[Mapping[str, str]] = {}
    """Headers that every request has."""
    used_up: ClassVar[str]
    """The server's error code of an empty account: no request is tried again after it."""

    def __init__(self, settings: S) -> None:
        self._settings = settings
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._refused: set[str] = set()  # parameters that the model does not take, and names of a limit without effect

    def missing(self) -> str | None:
        """What to install or to set, never with the key; None if nothing is missing."""
        if find_spec(self.package) is None:
            return f"the package {self.package} is not installed: pip install 'turinglike[{self.extra}]'"
        name = self._settings.key_variable
        key = self._key()
        if not key:
            if not name or self._settings.is_local():
                return None
            return (
                f"the environment variable {name} holds no key for {self._settings.base_url}: set it where the agent "
                "runs (on a cluster, before Ray is started there)"
            )
        if not KEY.fullmatch(key):
            return f"the environment variable {name} holds something that cannot be a key: spaces or odd characters"
        return None

    def limits(self) -> list[str]:
        """Says that answers cannot be repeated, where the server takes no seed."""
        takes_seed = getattr(self._settings, "seed_bits", 0)
        return [] if takes_seed else ["takes no seed: its answers cannot be repeated"]

    def provenance(self) -> dict[str, Any]:
        """The client's package and its version."""
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
        sent = self._taken(options)
        create = attrgetter(resource)(self._connected()).with_raw_response.create
        headers = {} if self._key() else {"Authorization": library.Omit()}  # not even an empty key
        try:
            async with asyncio.timeout(settings.patience_s):
                response = await create(extra_headers={**self.headers, **headers}, **sent)
            return parsed_reply(form, response.http_response.content), response.retries_taken + 1
        except (library.APIError, TimeoutError, ValidationError) as error:
            failure = self._failure(library, error)
        refused = failure.refused
        if refused in DISPENSABLE and refused in {*sent, *sent.get("extra_body", ())}:
            if refused not in {*self._refused, *RENAMED}:
                log.warning("%s takes no %s: none is sent, as `unsent` in records says", settings.model, refused)
            self._refused.add(refused)
            if self._taken(options) != sent:  # or a server that refuses both names of a limit were asked for ever
                return await self._post(resource, form, **options)
        raise AnswerError(failure.code, f"{settings.base_url}: {quoted(failure.message, [self._key()])}")

    def _failure(self, library: Any, error: Exception) -> _Failure:
        """What went wrong in a try, by the error of the server's ``library``, of the clock or of the reply's form."""
        settings = self._settings
        if isinstance(error, library.APIStatusError):
            body = json.dumps(error.body)
            refusal = REFUSED.search(body)
            refused = next(filter(None, refusal.groups())) if refusal is not None else ""
            code: Code = "no_room" if TOO_LONG.search(body) else code_of(error.status_code)
            if self._is_final(body):
                code = "server_refused"
            words = "" if self.private else reason(error.body)
            message = f"answered {error.status_code}: {words}".rstrip(": ")
            return _Failure(code, message, refused)
        if isinstance(error, library.APITimeoutError):
            return _Failure("server_timeout", f"no reply within {settings.timeout_s:g} s")
        if isinstance(error, TimeoutError):
            return _Failure("server_timeout", f"no reply within {settings.patience_s:g} s, all tries together")
        if isinstance(error, library.APIConnectionError):
            cause = error.__cause__ or error
            message = f"no connection: {cause}".rstrip(": ") + f" ({type(cause).__name__})"
            return _Failure("server_unreachable", message)
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            return _Failure("server_bad_reply", f"the reply has another form: {where} {first['msg']}")
        return _Failure("server_bad_reply", "the reply cannot be read")

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
        self, reply: ServerReply, sampling: Sampling, parts: ReplyParts, finish: Finish, thought: str, **more: Any
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
    """Base of the agents on a server: keys, addresses, and what is missing."""

    engine: ClassVar[type[ServerEngine[Any]]]
    """The class of the client."""
    _engine: ServerEngine[Any]

    def __init__(self, settings: S, name: str) -> None:
        super().__init__(settings, name)
        self._engine = self.engine(settings)

    def environment(self) -> tuple[str, ...]:
        """The variable with the key."""
        return (self.settings.key_variable,)

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The model's name at the server; nobody knows its revision."""
        return self.settings.model, None

    def missing(self) -> str | None:
        """What the base class says; also a missing package or key."""
        return self._engine.missing() or super().missing()

    def load(self, device: str) -> None:
        """Check that something listens at the address. Raises UnavailableError."""
        if (missing := self._engine.missing() or self.settings.unreachable()) is not None:
            raise UnavailableError(missing)
        super().load(device)

    def provenance(self) -> dict[str, Any]:
        """What the base class says; also what the client says of itself."""
        return {**super().provenance(), **self._engine.provenance()}

    async def aclose(self) -> None:
        """Close the client's connections."""
        await self._engine.aclose()


def encoded(image: bytes) -> tuple[str, str]:
    """(media type, base64) of an image, as servers take it. Raises AnswerError for other kinds than PNG, JPEG, WEBP and
    GIF."""
    kind = next((kind for begin, kind in MEDIA.items() if image.startswith(begin)), None)
    if kind is None:
        raise AnswerError("bad_image", "servers take PNG, JPEG, WEBP and GIF only")
    return f"image/{kind}", base64.b64encode(image).decode()
