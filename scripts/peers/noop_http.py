"""The no-op agent's answers over HTTP, by ``serve``, by a plain FastAPI and by Ray Serve."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from peers.measuring import (
    OURS,
    PROGRAMS,
    Figures,
    Interpreters,
    NotMeasured,
    Side,
    Work,
    WrongAnswer,
    environment,
    peers_environment,
)
from peers.noop_stimuli import VARY

RATE = "requests/s"
BODY = {"agent": "null", "stimulus": {"id": "w1", "task": "word_association", "cue": "tea"}, "seed": 1}
STARTS_WITHIN = 300.0  # seconds
MARGIN = 24  # bytes: digits of times
HEADERS = {"content-type": "application/json"}


def works(folder: Path, seconds: float, connections: int, interpreters: Interpreters) -> Iterator[Work]:
    """The one work of ``connections`` that ask for ``seconds``; ``folder`` has a record to take fields from."""
    template = functools.cache(functools.partial(_template, folder))

    def served(place: Path, *more: str) -> Figures:
        out = [str(place / "out") if word == "OUT" else word for word in more]
        command = (*OURS, "serve", "--agents", "null", *out, "--port")
        with _started(command, environment(), place / "log") as port:
            rate = _rate(port, connections, seconds)
        if out and not (place / "out" / "asked.jsonl").stat().st_size:
            raise WrongAnswer("serve --out has kept no record")
        return rate

    def peer(place: Path, program: str, name: str, modules: Sequence[str]) -> Figures:
        python = interpreters.python(name, modules)
        record = template()
        command = (python, str(PROGRAMS / program), str(record))
        with _started(command, peers_environment(), place / "log") as port:
            compare(_asked(port), record.read_bytes())
            return _rate(port, connections, seconds)

    sides = [
        Side("serve --out", "turinglike serve --agents null --out OUT", lambda place: served(place, "--out", "OUT")),
        Side(
            "FastAPI",
            "uvicorn with a route of FastAPI, in one process; no queue, no disk",
            lambda place: peer(place, "plain_fastapi.py", "here", ("fastapi", "uvicorn")),
        ),
        Side("serve", "turinglike serve --agents null", served),
        Side(
            "Ray Serve",
            "@serve.batch(max_batch_size=64, batch_wait_timeout_s=0.004)",
            lambda place: peer(place, "ray_serve.py", "ray", ("ray.serve", "starlette")),
        ),
    ]
    pairs = [(RATE, "serve --out", "FastAPI"), (RATE, "serve", "Ray Serve"), (RATE, "serve", "FastAPI")]
    yield Work(f"no-op over HTTP, {connections} connections", sides, pairs)


def _template(folder: Path) -> Path:
    """A file with the record with which ``serve`` answers :data:`BODY`."""
    path = folder / "served.json"
    with _started((*OURS, "serve", "--agents", "null", "--port"), environment(), folder / "served.log") as port:
        path.write_bytes(_asked(port))
    return path


def compare(answer: bytes, record: bytes) -> None:
    """Whether a peer's answer is the record of ``serve``, in the same bytes but for times. Raises WrongAnswer."""
    told = json.loads(answer)
    wanted = json.loads(record)
    if list(told) != list(wanted):
        raise WrongAnswer(f"the fields are {', '.join(told)}")
    for name in wanted:
        if name not in VARY and told[name] != wanted[name]:
            raise WrongAnswer(f"{name} is {told[name]}, and serve says {wanted[name]}")
    if abs(len(answer) - len(record)) > MARGIN:
        raise WrongAnswer(f"{len(answer)} bytes, and serve sends {len(record)}")


@contextmanager
def _started(command: Sequence[str], variables: Mapping[str, str], log: Path) -> Iterator[int]:
    """The port of a server, which gets it as its last argument, as long as the block lasts. Raises NotMeasured."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, str(port)], env=dict(variables), stdout=said, stderr=said, start_new_session=True
        )
    try:
        _wait_for(process, port, log)
        yield port
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until and process.poll() is None:
        try:
            _asked(port)
            return
        except OSError:  # it is not ready
            time.sleep(0.3)
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    raise NotMeasured(f"the server does not answer: {(lines or ['it says nothing'])[-1][:300]}")


def _asked(port: int) -> bytes:
    url = f"http://127.0.0.1:{port}/answers"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(BODY).encode(), HEADERS), timeout=60) as reply:
        answer: bytes = reply.read()
        return answer


def _rate(port: int, connections: int, seconds: float) -> Figures:
    asyncio.run(_requests(port, connections, max(1.0, seconds / 3)))  # warm
    return {RATE: asyncio.run(_requests(port, connections, seconds)) / seconds}


async def _requests(port: int, connections: int, seconds: float) -> int:
    """How many requests are answered within ``seconds`` on open connections, each of which waits for its answer.
    Raises WrongAnswer for any other status than 200."""
    until = time.perf_counter() + seconds
    body = json.dumps(BODY).encode()
    head = f"POST /answers HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body

    async def send() -> int:
        answered = 0
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < until:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            content = await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head.lower())[0]))
            if head.split()[1] != b"200":
                raise WrongAnswer(f"{head.splitlines()[0].decode()}: {content.decode(errors='replace')[:200]}")
            answered += 1
        writer.close()
        return answered

    return sum(await asyncio.gather(*(send() for _ in range(connections))))
