"""Connections of clients within bounds: how many, how slowly a head may come, how slowly an answer may be taken."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from serving.http.errors import ApiError

HEAD_SECONDS = 10.0  # for a request's head to arrive
HEAD_BYTES = 65_536  # of a head, or of what else is no body, such as the headers after one in chunks
LAST_SECONDS = 1.0  # for the end of what a client sends who has been refused
TAKEN_SECONDS = 60.0  # in which a client takes nothing of what was written to it


def protocol(
    connections: int, head_seconds: float = HEAD_SECONDS, taken_seconds: float = TAKEN_SECONDS
) -> type[HttpToolsProtocol]:
    """uvicorn's protocol for at most ``connections`` at once; further ones are told to come back and closed.

    A client whose request's head takes longer than ``head_seconds``, or who takes nothing of an answer for
    ``taken_seconds``, is cut off: it would keep a connection, and an answer's place, as long as it likes. So is one who
    sends HEAD_BYTES that are neither a head's end nor a body's bytes: the parser keeps them all, before anybody has
    asked for a key.
    """

    class Bounded(HttpToolsProtocol):
        _refused = False
        _head: asyncio.TimerHandle | None = None
        _full: asyncio.TimerHandle | None = None
        _kept = 0  # bytes that the parser may have kept since something came of them

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > connections:
                busy = ApiError(503, "overloaded", "too many connections are open", headers={"retry-after": "1"})
                self._refuse(b"503 Service Unavailable", busy)
                return
            self._expect()

        def data_received(self, data: bytes) -> None:
            if self._refused:
                return
            if self._head is None and (self.cycle is None or self.cycle.response_complete):
                self._expect()
            self._kept += len(data)
            super().data_received(data)
            if self._kept <= HEAD_BYTES or self.transport.is_closing():
                return
            if self.cycle is None or self.cycle.response_complete:
                large = ApiError(431, "head_too_large", f"a request's head has at most {HEAD_BYTES:,} bytes")
                self._refuse(b"431 Request Header Fields Too Large", large)
            else:  # nothing can be said in the middle of another answer
                self.transport.abort()

        def on_headers_complete(self) -> None:
            self._stop_waiting()
            self._kept = 0
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._kept = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._kept = 0
            super().on_message_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            self._taken()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            if self._full is None:
                self._full = self.loop.call_later(taken_seconds, self.transport.abort)
            super().pause_writing()

        def resume_writing(self) -> None:
            self._taken()
            super().resume_writing()

        def send_400_response(self, msg: str) -> None:
            bad = ApiError(400, "bad_request", "this is no HTTP request")
            self.transport.write(_whole(b"400 Bad Request", bad))
            self.transport.close()

        def _refuse(self, status: bytes, error: ApiError) -> None:
            self.transport.write(_whole(status, error))
            self.transport.write_eof()
            # What has been sent already is read first: to close on it would reset the connection, answer and all.
            self._refused = True
            self.loop.call_later(LAST_SECONDS, self.transport.close)

        def _expect(self) -> None:
            self._head = self.loop.call_later(head_seconds, self._too_slow)

        def _stop_waiting(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

        def _taken(self) -> None:
            if self._full is not None:
                self._full.cancel()
                self._full = None

        def _too_slow(self) -> None:
            self._head = None
            if not self.transport.is_closing():
                self.transport.close()

    return Bounded


def _whole(status: bytes, error: ApiError) -> bytes:
    """A whole response for what never became a request, and so has no id."""
    body = error.body("")
    headers = {**error.headers, "connection": "close", "content-type": "application/json"}
    lines = [b"HTTP/1.1 " + status, *(f"{name}: {value}".encode() for name, value in headers.items())]
    return b"\r\n".join([*lines, b"content-length: %d" % len(body), b"", body])
