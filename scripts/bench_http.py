"""Requests per second over HTTP: ``turinglike serve`` beside plain Ray Serve with ``@serve.batch``, with no work to do.

A process of its own holds 64 connections open, each with one request under way, and asks the no-op agent on loopback
for one word association at a time. The peer has the same request and an answer of the same size; it reads JSON, waits
for a batch of up to 64 (4 ms), and writes JSON. With ``--minutes`` ours is asked for that long, and errors and memory
are looked at; with ``--slow`` an agent that answers 100 a second is asked ten times as much.

    python scripts/bench_http.py [--seconds 20] [--connections 64] [--minutes 0] [--slow]

prints a table and, as the last line, one JSON object. Latencies are in milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import httptools
import psutil

BODY = {"agent": "null", "stimulus": {"id": "w1", "task": "word_association", "cue": "tea"}}
PEER = """
import json, sys
import ray
from ray import serve
from starlette.requests import Request
from starlette.responses import Response

ANSWER = "x" * 850

@serve.deployment(max_ongoing_requests=256)
class NoOp:
    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.004)
    async def answer(self, cues):
        return [{"word": cue, "record": ANSWER} for cue in cues]

    async def __call__(self, request: Request) -> Response:
        asked = await request.json()
        return Response(json.dumps(await self.answer(asked["stimulus"]["cue"])), media_type="application/json")

serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])}, logging_config={"enable_access_log": False})
serve.run(NoOp.bind(), route_prefix="/answers")
print("ready", flush=True)
import time
time.sleep(100000)
"""


class Connection(asyncio.Protocol):
    """One kept-alive connection with one request under way; status 0 is one that broke."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        if not self.status.done():
            self.status.set_result(self.parser.get_status_code())

    def connection_lost(self, error: Exception | None) -> None:
        if not self.status.done():
            self.status.set_result(0)

    async def ask(self, request: bytes) -> int:
        self.parser = httptools.HttpResponseParser(self)
        self.status = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.status


async def load(port: int, connections: int, seconds: float, pause: float = 0.0) -> dict[str, Any]:
    """What ``connections`` see in that time, each asking again ``pause`` seconds after an answer; status 0 is a
    connection that broke."""
    body = json.dumps(BODY).encode()
    head = f"POST /answers HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    latencies: list[float] = []
    statuses: Counter[int] = Counter()
    refused: list[float] = []
    end = time.perf_counter() + seconds

    async def one() -> None:
        connection: Connection | None = None
        while (began := time.perf_counter()) < end:
            if connection is None or connection.transport.is_closing():
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
            status = await connection.ask(request)
            took = time.perf_counter() - began
            statuses[status] += 1
            (latencies if status == 200 else refused).append(took)
            if pause:
                await asyncio.sleep(random.uniform(0, 2 * pause))

    await asyncio.gather(*(one() for _ in range(connections)))
    ordered, late = sorted(latencies) or [0.0], sorted(refused) or [0.0]
    return {
        "per_s": round(len(latencies) / seconds, 1),
        "p50_ms": round(1000 * ordered[len(ordered) // 2], 2),
        "p99_ms": round(1000 * ordered[int(len(ordered) * 0.99)], 2),
        "refused_p99_ms": round(1000 * late[int(len(late) * 0.99)], 2),
        "statuses": dict(statuses),
    }


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until the server answers."""
    body = json.dumps(BODY).encode()
    for _ in range(600):
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/answers", body, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=5):
                return
        except OSError:
            if process.poll() is not None:
                raise SystemExit("the server ended") from None
            time.sleep(0.2)
    raise SystemExit("the server does not answer")


def under_load(port: int, connections: int, seconds: float, pause: float = 0.0) -> dict[str, Any]:
    """:func:`load` in another process."""
    command = [sys.executable, __file__, "--client", str(port), str(connections), str(seconds), str(pause)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ours(port: int, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "serving.cli", "serve", "--agents", "null", "--port", str(port), *more]
    environment = {name: value for name, value in os.environ.items() if name != "TURINGLIKE_API_KEY"}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def measure(process: subprocess.Popen[bytes], port: int, connections: int, seconds: float, pause: float) -> Any:
    """The figures of one server, which is ended after it, and its memory in MB before and after."""

    def memory() -> float:
        return round(psutil.Process(process.pid).memory_info().rss / 1e6, 1)

    try:
        wait_for(port, process)
        under_load(port, connections, 3)  # warm
        before = memory()
        return {**under_load(port, connections, seconds, pause), "memory_mb": [before, memory()]}
    finally:
        process.terminate()
        process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--client", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        port, connections, seconds, pause = args.client
        print(json.dumps(asyncio.run(load(int(port), int(connections), float(seconds), float(pause)))))
        return
    found: dict[str, Any] = {}
    ratio: float | None = None
    port = free_port()
    found["turinglike"] = measure(ours(port), port, args.connections, args.seconds, 0.0)
    port = free_port()
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        import ray.serve  # noqa: F401
    except ImportError:
        print("Ray Serve is left out: pip install 'turinglike[bench]'", file=sys.stderr)
    else:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "peer.py"
            script.write_text(PEER)
            peer = subprocess.Popen([sys.executable, str(script), str(port)], cwd=folder, **quiet)
            found["ray serve"] = measure(peer, port, args.connections, args.seconds, 0.0)
        ratio = round(found["turinglike"]["per_s"] / found["ray serve"]["per_s"], 2)
    if args.slow:
        port = free_port()
        # One answer takes 10 ms alone: 100 a second. 64 clients that wait 64 ms on average ask for about 1,000.
        slow = ours(port, "--set", "null.delay_s=0.01", "--batch-size", "1", "--queue", "16")
        found["slow agent"] = measure(slow, port, args.connections, args.seconds, 0.06)
    if args.minutes:
        port = free_port()
        found["long"] = measure(ours(port), port, args.connections, 60 * args.minutes, 0.0)
    print(f"{'':<12} {'requests/s':>11} {'p50 ms':>8} {'p99 ms':>8}  statuses")
    for name, one in found.items():
        print(f"{name:<12} {one['per_s']:>11} {one['p50_ms']:>8} {one['p99_ms']:>8}  {one['statuses']}")
    print(f"ratio {ratio}")
    print(json.dumps({"cores": os.cpu_count(), "load": os.getloadavg()[0], "ratio": ratio, **found}))


if __name__ == "__main__":
    main()
