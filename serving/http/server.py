"""The web server of ``turinglike serve``: all routes behind the guard, in uvicorn, from start to orderly end."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import uvicorn
from fastapi import Depends, FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from agents import __version__
from agents.contract import Agent, is_installed
from agents.errors import InputError
from serving.http import chat_completions, conversations, native, page, responses, text_completions
from serving.http.errors import EVERYWHERE, on_fault, on_http_error, on_invalid
from serving.http.guard import LOOPBACK, FinishedRequest, Guard, Rules, check_body
from serving.http.kept_records import KeptRecords
from serving.http.monitoring import ServerLog
from serving.http.said_here import SaidHere
from serving.http.service import ServeOptions, Service
from serving.scheduling import machine
from serving.scheduling.interrupts import started

# How long open requests may still take when the server is to end. Workers and Ray end after that; Slurm kills after 30.
DRAIN_SECONDS = 20
MOST_CONNECTIONS = 1024  # further connections get the status 503
IDLE_SECONDS = 30  # a connection may wait so long for its next request

if not is_installed(page.SWAGGER[0]):  # which is not imported: its files are served
    raise ModuleNotFoundError(f"No module named {page.SWAGGER[0]!r}")


def check_key(host: str, key: str | None) -> None:
    """Raises InputError for an address that others can reach, where there is no key."""
    if key is None and host not in LOOPBACK:
        raise InputError(
            f"--host {host} can be reached by others, who would need no key: set TURINGLIKE_API_KEY or --key-file, or "
            "leave --host out to serve this machine alone"
        )


@contextlib.contextmanager
def bound_sockets(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Sockets that listen at ``port`` of all addresses of ``host``. Raises InputError where that cannot be done."""
    with contextlib.ExitStack() as opened:
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            sockets = [
                opened.enter_context(socket.create_server(address[:2], family=family, backlog=MOST_CONNECTIONS))
                for family, _, _, _, address in addresses
            ]
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "there is no such host"
            raise InputError(f"cannot listen at {_address(host, port)}: {reason.lower()}; see --host, --port") from None
        yield sockets


def create_app(
    service: Service,
    rules: Rules,
    on_end: Callable[[FinishedRequest], None] = lambda request: None,
    kept: conversations.OpenConversations | None = None,
) -> Guard:
    """The application (ASGI) of a service, which its caller starts and closes. ``on_end`` is called after each request;
    ``kept`` holds the open conversations."""
    app = FastAPI(
        title="Turinglike",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=EVERYWHERE,
        dependencies=[Depends(check_body)],
        exception_handlers={
            HTTPException: on_http_error,
            RequestValidationError: on_invalid,
            Exception: on_fault,
        },
    )
    app.include_router(native.router(service))
    app.include_router(chat_completions.router(service))
    app.include_router(responses.router(service, SaidHere()))
    app.include_router(text_completions.router(service))
    app.include_router(conversations.router(service, kept or conversations.OpenConversations()))
    app.include_router(page.router())

    @app.get("/openapi.json", include_in_schema=False)
    def document() -> Response:  # in a thread: making it takes a tenth of a second
        return JSONResponse(app.openapi())

    def ended(request: FinishedRequest) -> None:
        service.metrics.ended(request)
        on_end(request)

    return Guard(app, rules, ended)


async def serve(
    options: ServeOptions,
    agents: Mapping[str, Agent[Any]],
    sockets: Sequence[socket.socket],
    rules: Rules,
    take_signals: Callable[[], None],
    log: ServerLog,
    kept: KeptRecords | None = None,
) -> None:
    """Serve ``agents`` at ``sockets`` until this task is cancelled, then let open requests finish.

    ``take_signals`` is called when Ray runs, which sets handlers of its own. ``kept`` is the run folder of ``--out``.
    Raises ClusterError when Ray dies, UnavailableError where no agent can be loaded, StorageError where the run folder
    cannot be written.
    """
    service = Service(options, agents, kept)
    server = UvicornServer(config(create_app(service, rules, log.request)))
    try:
        await started(service.start(log.progress), take_signals)
        machine.freeze()  # the collector's look through all that was imported stops every request for 0.1 s
        where = _address(*sockets[0].getsockname()[:2])
        log.say(f"serving {', '.join(agents)} at http://{where}/ (Ctrl-C ends it)")
        serving = asyncio.create_task(server.serve(list(sockets)))
        watch = asyncio.create_task(service.watch())
        tasks = {serving, watch} if kept is None else {serving, watch, kept.start()}
        try:
            finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finished.pop().result()
        finally:
            service.draining = True
            server.should_exit = True
            watch.cancel()
            await asyncio.wait({serving})
            if kept is not None:
                await kept.close()
    finally:
        await service.close()


class UvicornServer(uvicorn.Server):
    """uvicorn without its signal handlers: the command has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave SIGINT and SIGTERM to :mod:`serving.scheduling.interrupts`."""
        yield


def config(app: Any, most_connections: int = MOST_CONNECTIONS, idle_seconds: int = IDLE_SECONDS) -> uvicorn.Config:
    """uvicorn's settings. It limits neither clients that send their request's head slowly nor those that read slowly;
    for that a public server needs a proxy before it."""
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=most_connections,
        timeout_keep_alive=idle_seconds,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
