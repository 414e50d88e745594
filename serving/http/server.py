"""``understudy serve``: the application in uvicorn, with limits on connections, an orderly end, logs as JSON lines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agents.contract import Agent
from agents.errors import InputError
from serving.http.app import create_app
from serving.http.guard import LOOPBACK, Rules, Seen
from serving.http.service import ServeOptions, Service
from serving.items import now

log = logging.getLogger("understudy.http")
DRAIN = 25.0  # seconds for what is under way once the end was asked for; Slurm kills after 30
HEAD_SECONDS = 10.0  # for a request's head to arrive
IDLE_SECONDS = 30  # of a connection between two requests


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. ``connections`` are open at once; more are told to come back and closed."""

    host: str = "127.0.0.1"
    port: int = 8000
    connections: int = 1024


def check_key(host: str, key: str | None) -> None:
    """Raises InputError for an address that others can reach without a key."""
    if key is None and host not in LOOPBACK:
        raise InputError(
            f"--host {host} can be reached by others, who would need no key: set UNDERSTUDY_API_KEY or --key-file, or "
            "leave --host out to serve this machine alone"
        )


async def serve(
    options: ServeOptions,
    agents: Mapping[str, Agent[Any]],
    address: Address,
    rules: Rules,
    listen: Callable[[], None],
    say: Callable[[str], None],
) -> None:
    """Serve until cancelled, then end in order: no new requests, an answer to each that is under way, workers, Ray.

    ``listen`` takes the signals back that Ray has taken when it started. Raises ClusterError, InputError (an address
    that cannot be had) and UnavailableError.
    """
    service = Service(options, agents)
    app = create_app(service, rules, _log_request)
    server = _Server(_config(app, address))
    say("starting Ray")
    try:
        start = asyncio.create_task(service.start())
        while not start.done():
            await asyncio.wait({start}, timeout=0.05)
            listen()
        start.result()
        serving = asyncio.create_task(_run(server))
        watch = asyncio.create_task(service.watch())
        try:
            while not server.started and not serving.done():
                await asyncio.sleep(0.01)
            if server.started:
                say(f"serving {', '.join(agents)} at http://{_shown(address.host)}:{address.port}/ (Ctrl-C ends it)")
            await asyncio.wait({serving, watch}, return_when=asyncio.FIRST_COMPLETED)
            for task in (watch, serving):
                if task.done():
                    task.result()
        finally:
            service.draining = True
            server.should_exit = True
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await asyncio.shield(serving)
            watch.cancel()
    finally:
        await service.close()


class _Server(uvicorn.Server):
    """uvicorn's, which leaves signals to the command."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _run(server: uvicorn.Server) -> None:
    """Run the server; raises InputError where it cannot listen (uvicorn ends the process then)."""
    try:
        await server.serve()
    except SystemExit:
        where = f"{server.config.host}:{server.config.port}"
        raise InputError(f"cannot listen at {where}: something else may listen there; --port chooses another") from None


def _config(app: Any, address: Address) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=address.host,
        port=address.port,
        http=_protocol(address.connections),
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=int(DRAIN),
        backlog=address.connections,
    )


def _protocol(connections: int) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with a limit on connections and on how long a request's head may take."""

    class Bounded(HttpToolsProtocol):
        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > connections:
                transport.write(BUSY)
                transport.close()
                return
            self._expect()

        def data_received(self, data: bytes) -> None:
            if self._head is None and (self.cycle is None or self.cycle.response_complete):
                self._expect()
            super().data_received(data)

        def on_headers_complete(self) -> None:
            self._stop_waiting()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _expect(self) -> None:
            self._head = self.loop.call_later(HEAD_SECONDS, self._too_slow)

        def _stop_waiting(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

        def _too_slow(self) -> None:
            self._head = None
            if not self.transport.is_closing():
                self.transport.close()

    return Bounded


BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b'content-length: 111\r\n\r\n{"error":{"code":"overloaded","message":"too many connections are open","type":'
    b'"server_error","request_id":""}}'
)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class JsonLines(logging.Formatter):
    """One JSON object a line: when, what, and what is known about it."""

    def format(self, record: logging.LogRecord) -> str:
        about = getattr(record, "about", None) or {"message": record.getMessage()}
        line = {"time": now(), "level": record.levelname.lower(), "event": record.name.rpartition(".")[2], **about}
        return orjson.dumps(line).decode()


def log_to_stderr() -> None:
    """Requests and faults as JSON lines on stderr; of uvicorn only errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("understudy", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def _log_request(seen: Seen) -> None:
    if seen.route in ("/health", "/metrics", "/ready") and seen.status == 200:
        return
    log.info(
        "request",
        extra={
            "about": {
                "request_id": seen.request_id,
                "method": seen.method[:16],
                "route": seen.route,
                "status": seen.status,
                "ms": round(seen.seconds * 1000, 2),
            }
        },
    )
