"""``turinglike study serve``: one study in uvicorn, with an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Sequence

from judging.study.study import Study
from serving.http.guard import Guard
from serving.http.monitoring import ServerLog
from serving.http.server import UvicornServer, config

MOST_CONNECTIONS = 8192
FILES = 1024  # beside the connections


async def serve(study: Study, app: Guard, sockets: Sequence[socket.socket], log: ServerLog) -> None:
    """Serve until cancelled, then end in order: what was answered is on disk. Raises StorageError where nothing can be
    written any more."""
    _allow_files()
    server = UvicornServer(config(app, MOST_CONNECTIONS, idle_seconds=120))  # a judge thinks longer than a program
    writer = study.start()
    serving = asyncio.create_task(server.serve(list(sockets)))
    host, port = sockets[0].getsockname()[:2]
    log.say(f"serving the study at http://{f'[{host}]' if ':' in host else host}:{port}/ (Ctrl-C ends it)")
    try:
        finished, _ = await asyncio.wait({serving, writer}, return_when=asyncio.FIRST_COMPLETED)
        finished.pop().result()
    finally:
        server.should_exit = True
        for lobby in (study.lobby, study.online):
            if lobby is not None:
                lobby.closing = True
        await asyncio.wait({serving})
        await study.close()


def _allow_files() -> None:
    # Each connection is an open file, of which a shell allows about a thousand.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_CONNECTIONS + FILES)
    with contextlib.suppress(ValueError, OSError):  # fewer connections, then
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
