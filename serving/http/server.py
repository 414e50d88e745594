"""``turinglike serve``: the application in uvicorn, with limits on connections, an orderly end, logs as JSON lines."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import uvicorn

from agents.contract import Agent
from agents.errors import InputError
from serving.http import connections
from serving.http.app import create_app
from serving.http.guard import LOOPBACK, Rules, Seen
from serving.http.service import ServeOptions, Service
from serving.runs.record_lines import now
from serving.scheduling import worker_process

# Seconds for what is under way once the end was asked for; workers and Ray end after it, Slurm kills after 30.
DRAIN = 20.0
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
            f"--host {host} can be reached by others, who would need no key: set TURINGLIKE_API_KEY or --key-file, or "
            "leave --host out to serve this machine alone"
        )


def check_address(host: str, port: int) -> None:
    """Raises InputError for an address that cannot be listened at, as long as nothing has been started for it."""
    where = f"{_shown(host)}:{port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise InputError(f"cannot listen at {where}: there is no such host; --host names one of this machine") from None
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind(address)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise InputError(f"cannot listen at {where}: something else does; --port chooses another") from None
                said = os.strerror(error.errno or 0).lower()
                raise InputError(f"cannot listen at {where}: {said}; see --host and --port") from None


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
    check_address(address.host, address.port)
    service = Service(options, agents)
    app = create_app(service, rules, _log_request)
    server = _Server(_config(app, address))
    say("starting Ray")
    try:
        await _started(service, listen)
        worker_process.freeze()  # the collector's look through all that was imported stops every request for 0.1 s
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
            watch.cancel()
            await asyncio.wait({serving})  # what it raised is told above, or it was ended by us
    finally:
        await service.close()


async def _started(service: Service, listen: Callable[[], None]) -> None:
    """Start the service; if that is cancelled, what it had begun has ended when this returns."""
    start = asyncio.create_task(service.start())
    try:
        while not start.done():
            await asyncio.wait({start}, timeout=0.05)
            listen()
        start.result()
    finally:
        start.cancel()
        await asyncio.wait({start})


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
        http=connections.protocol(address.connections),
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=int(DRAIN),
        backlog=address.connections,
    )


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class JsonLines(logging.Formatter):
    """One JSON object a line: when, what, and what is known about it."""

    def format(self, record: logging.LogRecord) -> str:
        event, about = record.getMessage(), getattr(record, "about", None)
        if about is None:  # of uvicorn, which has sentences and no names for them
            event, about = record.name.rpartition(".")[2], {"message": event}
        return _line(record.levelname.lower(), event, about)


def _line(level: str, event: str, about: Mapping[str, Any]) -> str:
    return orjson.dumps({"time": now(), "level": level, "event": event, **about}).decode()


def log_to_stderr() -> None:
    """Requests and faults as JSON lines on stderr; of uvicorn only errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("turinglike", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def _log_request(seen: Seen) -> None:
    if seen.route in ("/health", "/metrics", "/ready") and seen.status == 200:
        return
    about = {
        "request_id": seen.request_id,
        "method": seen.method[:16],
        "route": seen.route,
        "status": seen.status,
        "ms": round(seen.seconds * 1000, 2),
    }
    # Not through logging, which takes longer to find out who calls than to write the line.
    sys.stderr.write(_line("info", "request", about) + "\n")
