"""A local server that answers as OpenAI's, or as it is told, misbehaves on demand, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agents.contract import Draw

Act = Callable[["Handler"], None]
KEY = "sk-planted.Key_0123456789-abcdefg"


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Misbehaving:
    """The server. ``acts`` are what it does with the next requests, in order; after them, ``otherwise``."""

    url: str = ""
    acts: list[Act] = field(default_factory=list)
    otherwise: Callable[[Request], Act] = lambda request: answer()
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0
    under_way: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next_act(self, request: Request) -> Act:
        with self.lock:
            self.requests.append(request)
            return self.acts.pop(0) if self.acts else self.otherwise(request)

    def enter(self, step: int) -> None:
        with self.lock:
            self.under_way += step
            self.most_at_once = max(self.most_at_once, self.under_way)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        told = self.server.told
        data = self.sent()
        body = json.loads(data) if "json" in self.headers["Content-Type"] else {"bytes": data}
        self.request_seen = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        told.enter(1)
        try:
            told.next_act(self.request_seen)(self)
        except OSError:
            self.close_connection = True  # the client has gone
        finally:
            told.enter(-1)

    def sent(self) -> bytes:
        """The body of a request, in one piece or in chunks."""
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, told: Misbehaving) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.told = told

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


@contextlib.contextmanager
def running() -> Iterator[Misbehaving]:
    """The server, as long as the block lasts."""
    told = Misbehaving()
    server = _Server(told)
    told.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        told.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def replied(agent: Any, stimulus: Any, draw: Draw) -> tuple[Any, dict[str, bool]]:
    """The reply of an agent on a server to one stimulus, and whether each filter that fires rejects it."""
    return all_replies(agent, stimulus, [draw])[0]


def all_replies(agent: Any, stimulus: Any, draws: Iterable[Draw]) -> list[tuple[Any, dict[str, bool]]]:
    """What :func:`replied` gives for each draw, one after the other, from an agent that is opened once."""

    async def main() -> list[Any]:
        agent.open()
        agent.load("cpu")
        try:
            return [await agent.respond_one(agent.prepare(stimulus), draw) for draw in draws]
        finally:
            await agent.aclose()

    def rejections(reply: Any) -> dict[str, bool]:
        verdicts = [verdict for test in agent.declaration().filters if (verdict := test(stimulus, reply)) is not None]
        return {verdict.filter: verdict.rejected for verdict in verdicts}

    return [(reply, rejections(reply)) for reply in asyncio.run(main())]


# what it can do


def answer(text: str = "fine", **choice: Any) -> Act:
    """A good reply to a chat, a completion or embeddings (backwards)."""

    def act(handler: Handler) -> None:
        handler.send(200, json.dumps(good(handler.request_seen, text, **choice)).encode())

    return act


def vector(text: str) -> list[float]:
    """The vector of a text: its length and its first letter."""
    return [len(text), ord(text[0]), 0.5]


def good(request: Request, text: str, **choice: Any) -> dict[str, Any]:
    """The body of a good reply."""
    if request.path.endswith("/embeddings"):
        data = [{"index": i, "embedding": vector(one)} for i, one in enumerate(request.body["input"])]
        return {"data": data[::-1], "model": "told", "usage": {"prompt_tokens": 3}}
    said = {"message": {"role": "assistant", "content": text}} if "chat" in request.path else {"text": text}
    return {
        "model": "told-2026",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "finish_reason": "stop", **said, **choice}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }


def anthropic(*texts: str, **changes: Any) -> Act:
    """A good reply of Anthropic's."""
    content = [{"type": "text", "text": text} for text in texts]
    usage = {"input_tokens": 12, "output_tokens": 6}
    return body(as_json({"model": "told", "content": content, "usage": usage, "stop_reason": "end_turn", **changes}))


def status(number: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> Act:
    """An error as OpenAI puts it."""
    body = json.dumps({"error": {"message": message, **error}}).encode()
    return lambda handler: handler.send(number, body, headers)


def body(text: bytes, code: int = 200, headers: dict[str, str] | None = None) -> Act:
    """Any bytes at all."""
    return lambda handler: handler.send(code, text, headers)


def echo(code: int) -> Act:
    """Everything that was sent, headers included, comes back in an error, in a header, or as the answer."""

    def act(handler: Handler) -> None:
        sent = json.dumps(handler.request_seen.headers)
        headers = {"X-Echo": handler.request_seen.headers.get("authorization", "none")}
        if code == 200:
            said = {**good(handler.request_seen, f"You sent {sent}"), "model": sent, "system_fingerprint": sent}
            handler.send(200, json.dumps(said).encode(), headers)
        else:
            handler.send(code, json.dumps({"error": {"message": f"You sent {sent}"}}).encode(), headers)

    return act


def hang(handler: Handler) -> None:
    """No reply for as long as the server lives."""
    handler.server.told.ended.wait(30)
    handler.close_connection = True


def cut(handler: Handler) -> None:
    """The connection is reset before a reply."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def half(handler: Handler) -> None:
    """Half of a reply, then the end of the connection."""
    whole = json.dumps(good(handler.request_seen, "half of it")).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(whole)))
    handler.end_headers()
    handler.wfile.write(whole[: len(whole) // 2])
    handler.close_connection = True


def drip(handler: Handler) -> None:
    """A reply that never ends, a byte at a time: no single wait for it is long."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not handler.server.told.ended.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def huge(code: int) -> Act:
    """A reply without an end, as fast as it goes."""

    def act(handler: Handler) -> None:
        handler.send_response(code)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        while not handler.server.told.ended.is_set():
            handler.wfile.write(b" " * 65536)

    return act


def as_json(value: Any) -> bytes:
    """JSON bytes, NaN and all."""
    return json.dumps(value).encode()
