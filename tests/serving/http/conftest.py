"""One server process that the tests of this folder share: the command itself, with Ray, on a free port."""

from __future__ import annotations

import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TOLD = ("null", "eliza", "mmcq", "git-base-coco")


@pytest.fixture(scope="session")
def tiny_captioner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of the captioner that ``served`` has under the name git-base-coco."""
    import tiny_captioners  # and with it torch, which most tests of this folder do without

    return tiny_captioners.git(tmp_path_factory.mktemp("captioner") / "git")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, tiny_captioner: Path) -> Iterator[str]:
    """The address of ``understudy serve`` with null, eliza, mmcq and a tiny captioner, without a key; its seed is 0."""
    port = free_port()
    log = tmp_path_factory.mktemp("served") / "log"
    told = [sys.executable, "-m", "serving.cli", "serve", "--agents", ",".join(TOLD), "--port", str(port)]
    told += ["--device", "cpu", "--set", f"git-base-coco.checkpoint={tiny_captioner}"]
    environment = {name: value for name, value in os.environ.items() if name != "UNDERSTUDY_API_KEY"}
    with log.open("wb") as out:
        server = subprocess.Popen(told, stdout=out, stderr=out, start_new_session=True, env=environment)
    try:
        until = time.monotonic() + 240
        while not _is_ready(port):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(40)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def free_port() -> int:
    """A port below those that the system gives away by itself: Ray starts before the server listens, and takes some."""
    while True:
        port = random.SystemRandom().randrange(21_000, 32_000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:  # somebody else has it
            continue
        return port


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
