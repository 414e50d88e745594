"""What a server takes while it is asked by 64 clients: is every accepted request answered, and does it stay up?

For ``--seconds``, all at once: a worker is killed every 5 s; clients hang up in the middle; others send a head or a
body a byte at a time; bodies of 1 GB, with their length said and in chunks; images of 1 x 1 and 30,000 x 30,000 pixels,
damaged ones; JSON of 1,000 levels; a foreign Host and a foreign Origin. Each of those has its own connection, and what
it was answered is counted.

    python scripts/abuse_http.py [--seconds 60] [--connections 64]

prints what was answered and, as the last line, one JSON object. Exit code 1 if a request of the 64 was not answered, or
the server is not well at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import json
import subprocess
import sys
import time
import urllib.request
import zlib
from collections import Counter
from typing import Any

import psutil
from bench_http import free_port, load, wait_for
from PIL import Image

JSON = "content-type: application/json\r\n"
GIB = 1 << 30
Seen = dict[str, Counter[str]]


def picture(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (200, 30, 30)).save(buffer, "PNG")
    return buffer.getvalue()


def bomb(side: int) -> bytes:
    """A small PNG whose head says that it has ``side`` x ``side`` pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    )


def color(image: bytes) -> bytes:
    stimulus = {"id": "abuse", "task": "color_estimation"}
    return json.dumps(
        {"agent": "mmcq", "stimulus": stimulus, "images": {"image": base64.b64encode(image).decode()}}
    ).encode()


def request(body: bytes, *, host: str = "127.0.0.1", more: str = "", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"POST /v1/responses HTTP/1.1\r\nhost: {host}\r\n{JSON}{more}content-length: {size}\r\n\r\n".encode() + body


async def outcome(reader: asyncio.StreamReader) -> str:
    """The status and what is said: the record's status or the error's code."""
    head = await reader.readuntil(b"\r\n\r\n")
    status = head.split()[1].decode()
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    body = json.loads(await reader.readexactly(int(lengths[0]))) if lengths else {}
    said = body.get("error")
    if body.get("status"):
        return f"{status} {body['status']}{' ' + said['code'] if said else ''}"
    return f"{status} {said['code'] if said else ''}".strip()


async def send(port: int, data: bytes) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        return await asyncio.wait_for(outcome(reader), 150)
    finally:
        writer.close()


async def hang_up(port: int) -> str:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(color(picture(800, 800))))
    await writer.drain()
    await asyncio.sleep(0.005)
    writer.transport.abort()
    return "gone"


async def drip(port: int, data: bytes, first: bytes = b"") -> str:
    """A byte every half second, ``first`` at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(first)
    began = time.monotonic()
    answer = asyncio.create_task(outcome(reader))
    try:
        for byte in data:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.5)
            if answer.done():
                break
        return f"{answer.result()} after {time.monotonic() - began:.0f} s"
    except (OSError, asyncio.IncompleteReadError):
        return f"closed after {time.monotonic() - began:.0f} s"
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)
        writer.close()


async def huge(port: int, chunked: bool) -> str:
    """1 GB of body; what is said before it has been sent, and how much was sent by then."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    size = "transfer-encoding: chunked" if chunked else f"content-length: {GIB}"
    writer.write(f"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\n{JSON}{size}\r\n\r\n".encode())
    answer, sent, part = asyncio.create_task(outcome(reader)), 0, b"x" * (1 << 20)
    try:
        while sent < GIB and not answer.done():
            writer.write(b"100000\r\n" + part + b"\r\n" if chunked else part)
            await writer.drain()
            sent += len(part)
            await asyncio.sleep(0)
        return f"{await asyncio.wait_for(answer, 60)}"
    except (OSError, asyncio.IncompleteReadError):
        return answer.result() if answer.done() and not answer.exception() else "closed"
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)
        writer.close()


async def again(name: str, seen: Seen, end: float, each: float, ask: Any) -> None:
    """Ask again and again until ``end``, ``each`` seconds apart."""
    while time.monotonic() < end:
        try:
            seen.setdefault(name, Counter())[await ask()] += 1
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            seen.setdefault(name, Counter())[type(error).__name__] += 1
        await asyncio.sleep(each)


async def kill_workers(server: psutil.Process, end: float, seen: Seen) -> None:
    """Kill one of the agents' workers every 5 s."""
    while time.monotonic() < end - 5:
        await asyncio.sleep(5)
        workers = [one for one in server.children(recursive=True) if "ray::WorkerActor" in " ".join(one.cmdline())]
        if workers:
            workers[seen.get("killed", Counter()).total() % len(workers)].kill()
            seen.setdefault("killed", Counter())["worker"] += 1


async def abuse(port: int, server: psutil.Process, connections: int, seconds: float) -> tuple[dict[str, Any], Seen]:
    seen: Seen = {}
    end = time.monotonic() + seconds
    deep = b'{"agent": "null", "stimulus": ' + b"[" * 1000 + b"]" * 1000 + b"}"
    one = picture(1, 1)
    kinds: list[tuple[str, float, Any]] = [
        ("hangs up", 0.1, lambda: hang_up(port)),
        ("slow head", 1, lambda: drip(port, b"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nx-y: " + b"z" * 100)),
        ("slow body", 1, lambda: drip(port, b" " * 199, request(b"{", length=200))),
        ("1 GB", 3, lambda: huge(port, False)),
        ("1 GB in chunks", 3, lambda: huge(port, True)),
        ("1 x 1", 0.2, lambda: send(port, request(color(one)))),
        ("30,000 x 30,000", 0.2, lambda: send(port, request(color(bomb(30_000))))),
        ("damaged", 0.2, lambda: send(port, request(color(one[:-30])))),
        ("no image", 0.2, lambda: send(port, request(color(b"GIF89a nothing")))),
        ("1,000 levels", 0.2, lambda: send(port, request(deep))),
        ("foreign Host", 0.2, lambda: send(port, request(b"{}", host="evil.example"))),
        ("foreign Origin", 0.2, lambda: send(port, request(b"{}", more="origin: http://evil.example\r\n"))),
    ]
    tasks = [asyncio.create_task(again(name, seen, end, each, ask)) for name, each, ask in kinds]
    tasks.append(asyncio.create_task(kill_workers(server, end, seen)))
    asked = await load(port, connections, seconds)
    await asyncio.gather(*tasks)
    return asked, seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=64)
    args = parser.parse_args()
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "serving.cli",
        "serve",
        "--agents",
        "null,mmcq",
        "--port",
        str(port),
        "--replicas",
        "2",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        server = psutil.Process(process.pid)
        before = server.memory_info().rss
        asked, seen = asyncio.run(abuse(port, server, args.connections, args.seconds))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=10) as answer:
            is_well = answer.status == 200
        after = server.memory_info().rss
    finally:
        process.terminate()
        process.wait(60)
    print(f"64 clients: {asked['statuses']}, p99 {asked['p99_ms']} ms")
    for name, outcomes in seen.items():
        print(f"{name:<18} {dict(outcomes)}")
    memory = [round(before / 1e6, 1), round(after / 1e6, 1)]
    print(f"well at the end: {is_well}; memory {memory} MB")
    print(json.dumps({"clients": asked, "seen": {name: dict(one) for name, one in seen.items()}, "memory_mb": memory}))
    return 0 if is_well and set(asked["statuses"]) == {200} else 1


if __name__ == "__main__":
    sys.exit(main())
