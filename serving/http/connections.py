"""uvicorn's connections within bounds that it has no settings for.

With uvicorn's own settings a client that sends a request's head a byte at a time, or never, keeps its connection for
ever; ``limit_concurrency`` counts it, so that a few such clients have everybody else refused. A head's size is not
limited either, and all of it is kept before anybody is asked for a key.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from serving.http.errors import ApiError


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol for so many connections at once, each head of so many bytes and seconds."""

    most_connections = 1024
    head_seconds = 10.0
    head_bytes = 65_536  # of a head, or of what else is no body, such as the headers after one in chunks
    linger_seconds = 1.0  # in which a refused client may read why: closing at once would reset the connection

    _refused = False
    _timer: asyncio.TimerHandle | None = None
    _kept = 0  # bytes that the parser may have kept since the last head or piece of a body

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > self.most_connections:
            again = {"retry-after": "1"}
            self._refuse(ApiError(503, "overloaded", "too many connections are open", headers=again))

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()
        self._kept += len(data)
        super().data_received(data)
        if self._kept > self.head_bytes and not self._refused and not self.transport.is_closing():
            self._refuse_head()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._kept = 0
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > self.head_bytes:
            self._refuse_head()  # it came as a whole
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._kept = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._refuse(ApiError(400, "bad_request", "this is no HTTP request"))

    def _refuse_head(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            message = f"a request's head has at most {self.head_bytes:,} bytes"
            self._refuse(ApiError(431, "head_too_large", message))
        else:  # nothing can be said in the middle of another answer
            self._refused = True
            self.transport.abort()

    def _refuse(self, error: ApiError) -> None:
        """Say why, in the shape of every error (there is no request, and so no id), and close."""
        body = error.body("")
        headers = {**(error.headers or {}), "connection": "close", "content-type": "application/json"}
        lines = [f"{name}: {value}\r\n".encode() for name, value in headers.items()]
        length = b"content-length: %d\r\n\r\n" % len(body)
        self.transport.write(b"".join([STATUS_LINE[error.status_code], *lines, length, body]))
        self.transport.write_eof()
        self._refused = True
        self.loop.call_later(self.linger_seconds, self.transport.close)

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
