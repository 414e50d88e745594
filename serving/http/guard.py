"""What every request passes before anything looks at what it wants: who may ask, from where, how much, how slowly.

A page of another site, open in the browser of somebody on this machine, can send requests here too, and a name of
somebody else's can be made to mean this machine (DNS rebinding). So the Host must be one of ours, a foreign Origin is
refused, and a POST needs what a form of another page cannot send: JSON, or the header ``X-Turinglike``.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serving.http.errors import ApiError

log = logging.getLogger("turinglike.http")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MIB = 1024 * 1024
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
CUSTOM = b"x-turinglike"  # a header that no form can set
OPEN = frozenset({"/health", "/"})  # without a key; they hold no data
OPEN_FOLDER = "/static/"
ONCE = (b"host", b"origin", b"authorization", b"content-type", b"content-length", CUSTOM)
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Rules:
    """Who may ask and how. ``hosts`` are names without a port; ``key`` None: none is needed.

    ``body_bytes`` is the largest body, ``all_bytes`` the most that the bodies of all requests under way may have
    together, ``receive_seconds`` how long one may take to arrive, ``at_once`` how many requests are under way at once.
    """

    hosts: frozenset[str] = LOOPBACK
    key: str | None = field(default=None, repr=False)
    body_bytes: int = 32 * MIB
    all_bytes: int = 1024 * MIB
    receive_seconds: float = 30.0
    at_once: int = 1024


@dataclass(frozen=True, slots=True)
class Seen:
    """One request that has ended, for logs and metrics: nothing of what it asked or was answered."""

    request_id: str
    method: str
    path: str
    route: str | None
    status: int
    seconds: float


class Guard:
    """ASGI middleware around ``app`` that keeps to ``rules``; ``on_end`` is told of each request."""

    def __init__(self, app: App, rules: Rules, on_end: Callable[[Seen], None] = lambda seen: None) -> None:
        self._app = app
        self.rules = rules
        self._on_end = on_end
        self.under_way = 0
        self.held = 0  # bytes of the bodies that have arrived, of the requests under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        began, status, begun = time.perf_counter(), 500, False
        body = _Body(self, scope, receive)

        async def tell(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                message = {**message, "headers": [*headers, (b"x-content-type-options", b"nosniff")]}
            await send(message)

        self.under_way += 1
        try:
            self._admit(scope)
            await self._app(scope, body.receive, tell)
        except ApiError as error:
            if scope["method"] not in ("GET", "HEAD"):
                error.headers |= CLOSE
            await refuse(error, request_id, tell)
        except asyncio.CancelledError:  # the server ends and will not wait for this one any longer
            if not begun:
                ending = ApiError(503, "shutting_down", "this server is ending", headers={"retry-after": "30", **CLOSE})
                await refuse(ending, request_id, tell)
            raise
        except Exception as error:  # the client has been told by then, of an internal error and no more
            log.error("fault", extra={"about": {"request_id": request_id, "fault": _place(error)}})
        finally:
            self.under_way -= 1
            self.held -= body.seen
            route = getattr(scope.get("route"), "path", None)
            seconds = time.perf_counter() - began
            self._on_end(Seen(request_id, scope["method"], scope["path"], route, status, seconds))

    def _admit(self, scope: Scope) -> None:
        """Raises ApiError for a request that is not to be answered."""
        rules = self.rules
        if self.under_way > rules.at_once:
            raise ApiError(503, "overloaded", "too many requests are under way", headers={"retry-after": "1"})
        headers: dict[bytes, bytes] = dict(scope["headers"])
        counts = Counter(name for name, _ in scope["headers"])
        twice = [name.decode() for name in ONCE if counts[name] > 1]
        if twice:  # which of them counts is read in one way here and in another elsewhere
            raise ApiError(400, "bad_request", f"the header {twice[0]} is there more than once")
        host = headers.get(b"host", b"")
        if _name(host) not in rules.hosts:
            raise ApiError(403, "host_not_allowed", "this Host is not served here; see --allow-host")
        origin = headers.get(b"origin")
        if origin is not None and not _same_origin(origin, host):
            raise ApiError(403, "foreign_origin", "pages of other sites may not ask")
        path = scope["path"]
        is_open = scope["method"] in ("GET", "HEAD") and (path in OPEN or path.startswith(OPEN_FOLDER))
        if rules.key is not None and not is_open and not _has_key(headers, rules.key):
            wanted = "a key is needed: Authorization: Bearer KEY"
            raise ApiError(401, "unauthorized", wanted, headers={"www-authenticate": "Bearer"})
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > rules.body_bytes:
            raise too_large(rules)
        if scope["method"] == "POST":
            _check_type(headers)
            if b"upgrade" in headers:  # the parser takes what follows for that protocol's, and no body arrives
                raise ApiError(400, "bad_request", "only HTTP/1.1 is spoken here: ask without the header Upgrade")


class _Body:
    """The body of one request as it arrives: counted, and not waited for for ever."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive) -> None:
        self.seen = 0
        self._guard = guard
        self._receive = receive
        self._until = asyncio.get_running_loop().time() + guard.rules.receive_seconds
        self._is_whole = scope["method"] in ("GET", "HEAD")

    async def receive(self) -> Message:
        """The next message. Raises ApiError."""
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise ApiError(408, "too_slow", "the request did not arrive in time", headers=CLOSE) from None
        if message["type"] == "http.request":
            size = len(message.get("body", b""))
            self.seen += size
            self._guard.held += size
            self._is_whole = not message.get("more_body", False)
            if self.seen > self._guard.rules.body_bytes:
                raise too_large(self._guard.rules)
            if self._guard.held > self._guard.rules.all_bytes:
                raise ApiError(503, "overloaded", "too much is being received", headers={"retry-after": "1", **CLOSE})
        return message


def too_large(rules: Rules) -> ApiError:
    """The error for a body of too many bytes."""
    return ApiError(413, "too_large", f"a request has at most {rules.body_bytes:,} bytes", headers=CLOSE)


CLOSE = {"connection": "close"}  # what is left of the body is not read


async def refuse(error: ApiError, request_id: str, send: Send) -> None:
    """Answer with an error."""
    body = error.body(request_id)
    headers = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def _place(error: BaseException) -> str:
    """An error's type and where it was raised; not its text, which may hold what somebody asked."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} ({Path(frame.filename).name}:{frame.lineno})"


def _name(host: bytes) -> str:
    """The name in a Host header, without the port, in small letters; "" for what is none."""
    try:
        return (urlsplit(f"//{host.decode('ascii')}").hostname or "").lower()
    except (ValueError, UnicodeDecodeError):
        return ""


def _same_origin(origin: bytes, host: bytes) -> bool:
    """Whether a page of ``origin`` was served under this Host: the same name and port. A Host without a port has that
    of the origin's scheme, so that a proxy may take TLS away."""
    scheme, _, rest = origin.decode("latin-1").partition("://")
    if scheme not in PORTS or not _name(origin.partition(b"://")[2]):
        return False
    try:
        ours, theirs = urlsplit(f"//{host.decode('latin-1')}"), urlsplit(f"//{rest}")
        ports = {one.port or PORTS[scheme] for one in (ours, theirs)}
    except ValueError:
        return False
    return len(ports) == 1 and _name(host) == _name(rest.encode("latin-1")) and not (theirs.path or theirs.username)


def _has_key(headers: dict[bytes, bytes], key: str) -> bool:
    scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
    return hmac.compare_digest(given.strip(), key.encode()) and scheme.lower() == b"bearer"


def _check_type(headers: dict[bytes, bytes]) -> None:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind == b"application/json":
        return
    if kind == b"multipart/form-data":
        if CUSTOM not in headers:
            raise ApiError(403, "header_missing", "multipart needs the header X-Turinglike, with any value")
        return
    raise ApiError(415, "unsupported_type", "the body must be application/json or multipart/form-data")
