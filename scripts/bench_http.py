"""Requests per second of ``turinglike serve`` beside plain Ray Serve with ``@serve.batch``, with no work to do.

Each connection has a word association of the no-op agent under way. Prints a JSON object per server, latencies in ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import IO, Any

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


async def load(port: int, connections: int, seconds: float) -> dict[str, Any]:
    """Statuses and latencies of ``connections`` in ``seconds``."""
    head = f"POST /answers HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(BODY)}\r\n\r\n".encode() + BODY
    latencies: list[float] = []
    statuses: Counter[int] = Counter()
    end = time.perf_counter() + seconds

    async def send_requests() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (began := time.perf_counter()) < end:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            [length] = re.findall(rb"content-length: (\d+)", head.lower())
            await reader.readexactly(int(length))
            latencies.append(1000 * (time.perf_counter() - began))
            statuses[int(head.split()[1])] += 1
        writer.close()

    await asyncio.gather(*(send_requests() for _ in range(connections)))
    percentiles = statistics.quantiles(latencies, n=100)
    return {
        "per_s": round(statuses[200] / seconds, 1),
        "p50_ms": round(percentiles[49], 2),
        "p99_ms": round(percentiles[98], 2),
        "statuses": statuses,
    }


def wait_for(port: int, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    for _ in range(600):
        url, headers = f"http://127.0.0.1:{port}/answers", {"content-type": "application/json"}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, BODY, headers), timeout=5):
                return
        except OSError:
            if process.poll() is not None:
                log.seek(0)
                raise SystemExit(f"the server ended: {log.read().decode().strip().rpartition(chr(10))[2]}") from None
            time.sleep(0.2)
    raise SystemExit("the server does not answer")


def measure(command: list[str], connections: int, seconds: float) -> dict[str, Any]:
    """The figures of a server, which gets its port as the last argument."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    environment = {name: value for name, value in os.environ.items() if name != "TURINGLIKE_API_KEY"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*command, str(port)], stdout=log, stderr=log, env=environment)
        try:
            wait_for(port, process, log)
            asyncio.run(load(port, connections, 3))  # warm
            return asyncio.run(load(port, connections, seconds))
        finally:
            process.terminate()
            process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    print(json.dumps({"cores": os.cpu_count(), "load": os.getloadavg()[0]}))
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "peer.py"
        script.write_text(PEER)
        servers = {
            "turinglike": [sys.executable, "-m", "serving.cli", "serve", "--agents", "null", "--port"],
            "ray serve": [sys.executable, str(script)],  # wants `pip install 'ray[serve]'`
        }
        for name, command in servers.items():
            print(json.dumps({name: measure(command, options.connections, options.seconds)}), flush=True)


if __name__ == "__main__":
    main()
