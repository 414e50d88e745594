"""The no-op agent by ``generate`` beside Ray Data, and by ``serve`` beside Ray Serve with ``@serve.batch``, which `pip
install 'ray[data,serve]'` brings. Prints as JSON stimuli per second, less the time over a single stimulus, and requests
per second of open connections, each of which waits for its answer."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CONNECTIONS = 64
PATIENCE = 120.0  # seconds for a server to start
BODY = json.dumps({"agent": "null", "stimulus": {"id": "w1", "task": "word_association", "cue": "tea"}}).encode()
OURS = [sys.executable, "-m", "serving.cli"]
PEER = [sys.executable, __file__, "--peer"]


def write_set(path: Path, count: int) -> Path:
    rows = ({"id": f"w{i:07d}", "task": "word_association", "cue": f"cue{i}"} for i in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def seconds(*command: object) -> float:
    began = time.perf_counter()
    subprocess.run([str(word) for word in command], capture_output=True, check=True)
    return time.perf_counter() - began


def ray_data(source: str, out: str, written: str) -> None:
    """The same fields through Ray Data: what ``generate`` has ``written``, with other stimuli and answers."""
    import ray

    ray.init(include_dashboard=False, logging_level="ERROR", log_to_driver=False, object_store_memory=256 << 20)
    import ray.data

    record = json.loads(Path(written).read_text())

    def null(batch: dict[str, Any]) -> dict[str, Any]:
        ids = list(zip(batch["id"], batch["cue"], strict=True))
        seeds = [hashlib.sha256(f'[1,0,"null","{i}",0,null,0]'.encode()).hexdigest()[:13] for i, _ in ids]
        rows = [f'{{"cue":"{cue}","id":"{i}","task":"word_association"}}'.encode() for i, cue in ids]
        return {
            **{name: [value] * len(ids) for name, value in record.items()},
            "stimulus": batch["id"],
            "stimulus_sha256": [hashlib.sha256(row).hexdigest() for row in rows],
            "seed": [int(seed, 16) for seed in seeds],
            "answer": [{"word": seed, "candidates": None, "skipped": []} for seed in seeds],
            "raw": seeds,
        }

    ray.data.read_json(source, lines=True).map_batches(null, batch_size=1024, concurrency=1).write_json(out)


def ray_serve(port: str) -> None:
    from ray import serve
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    @serve.deployment(max_ongoing_requests=256)
    class Null:
        @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.004)
        async def answer(self, cues: list[str]) -> list[dict[str, str]]:
            return [{"word": cue, "record": "x" * 850} for cue in cues]

        async def __call__(self, request: Request) -> JSONResponse:
            return JSONResponse(await self.answer((await request.json())["stimulus"]["cue"]))

    serve.start(http_options={"host": "127.0.0.1", "port": int(port)}, logging_config={"enable_access_log": False})
    serve.run(Null.bind(), route_prefix="/answers", blocking=True)


async def requests(port: int, until: float) -> int:
    """How many requests are answered with 200 until then."""
    head = f"POST /answers HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(BODY)}\r\n\r\n".encode() + BODY

    async def send() -> int:
        answered = 0
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < until:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head.lower())[0]))
            answered += head.split()[1] == b"200"
        writer.close()
        return answered

    return sum(await asyncio.gather(*(send() for _ in range(CONNECTIONS))))


def requests_per_second(command: list[str], length: float) -> float:
    """Of a server, which gets its port as the last argument; after ten seconds of warm-up."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        started = time.perf_counter()
        while process.poll() is None and time.perf_counter() < started + PATIENCE:
            try:
                if asyncio.run(requests(port, time.perf_counter() + 10)):
                    break
            except (OSError, asyncio.IncompleteReadError):  # it is not ready
                time.sleep(1)
        return asyncio.run(requests(port, time.perf_counter() + length)) / length
    finally:
        process.terminate()
        process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--peer", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return (ray_serve if len(options.peer) == 1 else ray_data)(*options.peer)
    print(json.dumps({"cores": os.cpu_count(), "load": os.getloadavg()[0]}))
    spent: dict[str, list[float]] = {"generate": [], "ray data": []}
    with tempfile.TemporaryDirectory(prefix="peers-") as name:
        for count in (1, options.rows):
            source, out = write_set(Path(name, f"{count}.jsonl"), count), Path(name, f"run{count}")
            call = [*OURS, "generate", source, "--agents", "null", "--out", out, "--batch-size", 512, "--replicas", 1]
            spent["generate"].append(seconds(*call))
            spent["ray data"].append(
                seconds(*PEER, source, Path(name, f"peer{count}"), f"{name}/run1/records/null.jsonl")
            )
    for name, (single, many) in spent.items():
        print(json.dumps({name: {"stimuli_per_s": round(options.rows / (many - single), 1)}}), flush=True)
    for name, command in {"serve": [*OURS, "serve", "--agents", "null", "--port"], "ray serve": PEER}.items():
        print(
            json.dumps({name: {"requests_per_s": round(requests_per_second(command, options.seconds), 1)}}), flush=True
        )
    return None


if __name__ == "__main__":
    main()
