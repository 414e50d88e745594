"""Servers as processes of their own, on a free port, ended with all that they started."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2


@dataclass
class Server:
    """The process, where it listens, and where its stderr goes."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, path: str, seconds: float = 240) -> None:
        """Until ``path`` is answered with 200."""
        until = time.monotonic() + seconds
        while self._status(path) != 200:
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < until, self.said()
            time.sleep(0.1)

    def _status(self, path: str) -> int:
        try:
            return httpx2.get(self.url + path, timeout=600).status_code
        except httpx2.TransportError:
            return 0

    def post(self, path: str, content: Any) -> tuple[int, Any]:
        """Status and body."""
        answer = httpx2.post(self.url + path, json=content, timeout=600)
        return answer.status_code, answer.json()


@contextmanager
def started(folder: Path, agents: str, *told: str, key: str | None = None) -> Iterator[Server]:
    """``turinglike serve``, as :func:`running`."""
    command = [sys.executable, "-m", "serving.cli", "serve", "--agents", agents, "--device", "cpu", *told]
    environment = {name: value for name, value in os.environ.items() if name != "TURINGLIKE_API_KEY"}
    if key is not None:
        environment["TURINGLIKE_API_KEY"] = key
    with running(folder, command, environment) as server:
        yield server


@contextmanager
def running(folder: Path, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Server]:
    """``command``, started with a free ``--port``; its log goes into ``folder``. Ended, if it is not by then, when the
    block is left."""
    port = free_port()
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--port", str(port)], stdout=out, stderr=out, start_new_session=True, env=environment
        )
    try:
        yield Server(process, port, log)
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    """A port below those that the system gives away by itself: Ray starts before the server listens, and takes some."""
    while True:
        port = random.SystemRandom().randrange(21_000, 32_000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:  # somebody else has it
            continue
        return port
