"""What is checked of every request before its route sees it: Host, Origin, key, size and speed, and what its body is.

Host and Origin are checked even on this machine's own address. A page of another site, open in the same browser, could
otherwise ask the server: directly, or under a name that its owner points to 127.0.0.1 (DNS rebinding).

Texts are checked for half characters. JSON can write one: ``"\\ud83d"``, one of two parts of an emoji. Python reads it,
but cannot write it as UTF-8, so that the answer, the record or the log would fail long after the request was taken.
"""

import asyncio
import hmac
import logging
import re
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.http.errors import ApiError, invalid

log = logging.getLogger("turinglike.http")
T = TypeVar("T")

MIB = 1024 * 1024
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
OPEN = frozenset({"/health", "/", "/docs"})  # paths that need no key: they hold no data
OPEN_FOLDER = "/static/"  # likewise, with all that is in it
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?", re.ASCII)
PORTS = {"http": ":80", "https": ":443"}
CLOSE = {"connection": "close"}
HALF = "holds half of a character (a lone surrogate, as of an emoji that was cut), which is no text"


@dataclass(frozen=True, slots=True)
class Rules:
    """What a server asks of its requests."""

    hosts: frozenset[str] = LOOPBACK
    """The names and addresses under which it may be asked, in small letters and without ports."""
    key: str | None = field(default=None, repr=False)
    """The key that requests must bring; None: no key is needed."""
    body_bytes: int = 32 * MIB
    """The largest body."""
    receive_seconds: float = 30.0
    """How long a request may take to arrive."""


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """What log and metrics hear of a request. Nothing of its content is in it."""

    request_id: str
    """The id in the header ``X-Request-Id`` of the response."""
    method: str
    """GET, POST, …, as the client wrote it."""
    route: str | None
    """The route's pattern, such as "/conversations/{id}"; None where no route was found."""
    status: int
    """The HTTP status of the response."""
    seconds: float
    """From the request's head to the end of its response."""


class ClientGone(HTTPException):
    """The client has closed its connection. Nobody gets the status 499; it stands in log and metrics."""

    def __init__(self) -> None:
        super().__init__(499, "the client has gone")


class Guard:
    """ASGI middleware: refuses requests against ``rules``, gives each an id, and calls ``on_end`` after it."""

    def __init__(self, app: ASGIApp, rules: Rules, on_end: Callable[[FinishedRequest], None] = lambda request: None):
        self._app = app
        self.rules = rules
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or answer it with a refusal; other scopes pass untouched."""
        if scope["type"] != "http":  # no route takes WebSockets: Starlette closes them
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        began = time.perf_counter()
        status = 0
        # Every route of GET answers HEAD, of which the server sends no body.
        routed = scope
        if scope["method"] == "HEAD":
            routed = {**scope, "method": "GET"}

        async def send_checked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                added = [(b"x-request-id", request_id.encode()), (b"x-content-type-options", b"nosniff")]
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        try:
            self._admit(scope)
            await self._app(routed, _limited(self.rules, scope, receive), send_checked)
        except ApiError as error:
            if scope["method"] not in ("GET", "HEAD"):
                error.headers = {**(error.headers or {}), **CLOSE}
            await error.response(request_id)(scope, receive, send_checked)
        except asyncio.CancelledError:  # the server ends and will not wait for this one any longer
            if not status:
                ending = ApiError(503, "shutting_down", "this server is ending", headers={"retry-after": "30", **CLOSE})
                await ending.response(request_id)(scope, receive, send_checked)
            raise
        except Exception as error:  # the client has an internal error by then, and no more
            log.error("fault", extra={"about": {"request_id": request_id, "fault": origin_of(error)}})
        finally:
            route = getattr(routed.get("route"), "path", None)
            seconds = time.perf_counter() - began
            self._on_end(FinishedRequest(request_id, scope["method"], route, status or 500, seconds))

    def _admit(self, scope: Scope) -> None:
        rules = self.rules
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        origin = headers.get("origin")
        name = HOST.fullmatch(host)
        if name is None or name[1].strip("[]") not in rules.hosts:
            raise ApiError(403, "host_not_allowed", "this Host is not served here; see --allow-host")
        if origin is not None and not _same_origin(origin.lower(), host):
            raise ApiError(403, "foreign_origin", "pages of other sites may not ask")
        path = scope["path"]
        is_open = scope["method"] in ("GET", "HEAD") and (path in OPEN or path.startswith(OPEN_FOLDER))
        if rules.key is not None and not is_open and not _has_key(headers, rules.key):
            wanted = "a key is needed: Authorization: Bearer KEY"
            raise ApiError(401, "unauthorized", wanted, headers={"www-authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > rules.body_bytes:
            raise _too_large(rules)
        if scope["method"] == "POST" and "upgrade" in headers:
            # The parser takes what follows for that protocol's, and no body arrives.
            raise ApiError(400, "bad_request", "only HTTP/1.1 is spoken here: ask without the header Upgrade")


def _limited(rules: Rules, scope: Scope, receive: Receive) -> Receive:
    until = asyncio.get_running_loop().time() + rules.receive_seconds
    seen = 0
    is_whole = scope["method"] in ("GET", "HEAD")

    async def receive_limited() -> Message:
        nonlocal seen, is_whole
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            raise ApiError(408, "too_slow", "the request did not arrive in time", headers=CLOSE) from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        seen += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if seen > rules.body_bytes:
            raise _too_large(rules)
        return message

    return receive_limited


def _too_large(rules: Rules) -> ApiError:
    return ApiError(413, "too_large", f"a request has at most {rules.body_bytes:,} bytes", headers=CLOSE)


def origin_of(error: BaseException) -> str:
    """An error's type and place, ``ValueError (worker.py:88)``, without its text, which may quote what people said."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} ({Path(frame.filename).name}:{frame.lineno})"


def _same_origin(origin: str, host: str) -> bool:
    scheme, _, site = origin.partition("://")
    port = PORTS.get(scheme)
    return port is not None and site.removesuffix(port) == host.removesuffix(port)


def _has_key(headers: Headers, key: str) -> bool:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return hmac.compare_digest(token.strip().encode("latin-1"), key.encode()) and scheme.lower() == "bearer"


async def check_type(request: Request) -> None:
    """Raises ApiError 415 for a POST that is no JSON: a form on another site's page can send only other types without
    the browser's asking first."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and kind != "application/json":
        raise ApiError(415, "unsupported_type", "the body must be application/json")


async def check_body(request: Request) -> None:
    """As :func:`check_type`; raises ApiError 422, too, if a text or a key of the body holds half a character."""
    await check_type(request)
    if request.method == "POST":
        body = await request.body()
        # Without an escape and of ASCII alone, as images in base64 are, a body cannot have one.
        if b"\\" in body or not body.isascii():
            refuse_halves(await request.json())


def refuse_halves(content: Any) -> None:
    """Raises ApiError 422, with all places, if a text or a key of a JSON value holds half a character."""
    problems = []
    left: list[tuple[str, Any]] = [("", content)]
    while left:
        where, value = left.pop()
        if isinstance(value, str):
            if _is_half(value):
                problems.append((where or "body", HALF))
        elif isinstance(value, list):
            for number, inside in enumerate(value):
                left.append((f"{where}.{number}" if where else str(number), inside))
        elif isinstance(value, dict):
            for key, inside in value.items():
                if _is_half(key):
                    problems.append((where or "body", f"a key {HALF}"))
                else:
                    left.append((f"{where}.{key}" if where else key, inside))
    if problems:
        raise invalid(problems[::-1])


def _is_half(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """The result of ``work``. When the client goes away, the work is cancelled and ClientGone is raised."""
    task = asyncio.current_task()
    assert task is not None
    cancelled = task.cancelling()
    is_gone = False

    async def watch() -> None:
        nonlocal is_gone
        while (await request.receive())["type"] != "http.disconnect":
            pass
        is_gone = True
        task.cancel()

    watching = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if is_gone and task.uncancel() <= cancelled:
            raise ClientGone from None
        raise
    finally:
        watching.cancel()
