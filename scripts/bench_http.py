"""Requests per second over HTTP: ``turinglike serve`` beside plain Ray Serve with ``@serve.batch``, with no work to do.

A process of its own holds 64 connections open, each with one request under way, for a word association of the no-op
agent. The peer has the same request and an answer of the same size; it reads JSON, waits for a batch of up to
64 (4 ms), and writes JSON. ``--slow`` measures an agent that answers 100 a second and gets ten times as many requests.

    python scripts/bench_http.py [--seconds 20] [--connections 64] [--slow]

prints a table and, as the last line, a JSON object. Latencies are in milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import httptools

BODY = json.dumps({"agent": "null", "stimulus": {"id": "w1", "task": "word_association", "cue": "tea"}}).encode()
PEER = """
import json, sys, time
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
        body = await request.json()
        return Response(json.dumps(await self.answer(body["stimulus"]["cue"])), media_type="application/json")

serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])}, logging_config={"enable_access_log": False})
serve.run(NoOp.bind(), route_prefix="/answers")
time.sleep(100000)
"""


class Connection(asyncio.Protocol):
    """A kept-alive connection with a request under way; the status of a broken one is 0."""

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

    async def send(self, request: bytes) -> int:
        self.parser = httptools.HttpResponseParser(self)
        self.status = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.status


async def load(port: int, connections: int, seconds: float) -> dict[str, Any]:
    """Statuses and latencies of ``connections`` in that time."""
    head = f"POST /answers HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(BODY)}\r\n\r\n".encode() + BODY
    latencies: list[float] = []
    statuses: Counter[int] = Counter()
    end = time.perf_counter() + seconds

    async def send_requests() -> None:
        connection: Connection | None = None
        while (began := time.perf_counter()) < end:
            if connection is None or connection.transport.is_closing():
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
            status = await connection.send(request)
            statuses[status] += 1
            if status == 200:
                latencies.append(1000 * (time.perf_counter() - began))

    await asyncio.gather(*(send_requests() for _ in range(connections)))
    percentiles = statistics.quantiles(latencies, n=100)
    return {
        "per_s": round(len(latencies) / seconds, 1),
        "p50_ms": round(percentiles[49], 2),
        "p99_ms": round(percentiles[98], 2),
        "statuses": statuses,
    }


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until the server answers."""
    for _ in range(600):
        url, headers = f"http://127.0.0.1:{port}/answers", {"content-type": "application/json"}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, BODY, headers), timeout=5):
                return
        except OSError:
            if process.poll() is not None:
                raise SystemExit("the server ended") from None
            time.sleep(0.2)
    raise SystemExit("the server does not answer")


def measure(command: list[str], connections: int, seconds: float) -> dict[str, Any]:
    """The figures of a server, which gets its port as the last argument."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    environment = {name: value for name, value in os.environ.items() if name != "TURINGLIKE_API_KEY"}
    null = subprocess.DEVNULL
    process = subprocess.Popen([*command, str(port)], stdout=null, stderr=null, env=environment)
    try:
        wait_for(port, process)
        for duration in (3, seconds):  # the first warms up
            client = [sys.executable, __file__, "--client", str(port), str(connections), str(duration)]
            done = subprocess.run(client, capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout))
    finally:
        process.terminate()
        process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        port, connections, seconds = options.client
        print(json.dumps(asyncio.run(load(int(port), int(connections), float(seconds)))))
        return
    print(json.dumps({"cores": os.cpu_count(), "load": os.getloadavg()[0]}))
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "peer.py"
        script.write_text(PEER)
        servers = {
            "turinglike": [sys.executable, "-m", "serving.cli", "serve", "--agents", "null", "--port"],
            "ray serve": [sys.executable, str(script)],  # wants `pip install 'turinglike[bench]'`
        }
        for name, command in servers.items():
            print(json.dumps({name: measure(command, options.connections, options.seconds)}), flush=True)


if __name__ == "__main__":
    main()
