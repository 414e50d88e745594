"""The server itself: connections within bounds, keys and addresses, and how the whole command begins and ends."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import server_process
import uvloop

from agents.errors import InputError
from serving.cli import main
from serving.http.connections import BoundedProtocol
from serving.http.guard import Guard, Rules
from serving.http.server import UvicornServer, bound_sockets, check_key, config
from serving.serve import KEY, check_names, read_key

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
ENDLESS = GET.rstrip() + b"\r\nx-slow: " + b"x" * 4000
CHUNK, CHUNKS = b"x" * 65_536, 256  # 16 MiB: more than the system keeps for a client that does not read
SLOW = 0.7  # seconds that the slow answer takes

# connections


async def app(scope: Any, receive: Any, send: Any) -> None:
    """At / a short answer, at /slow a late one, at /long a long one; /body is read first."""
    count = 1
    while scope["path"] == "/body" and (await receive())["more_body"]:
        pass
    if scope["path"] == "/slow":
        await asyncio.sleep(SLOW)
    elif scope["path"] == "/long":
        count = CHUNKS
    length = str(count * len(CHUNK)).encode() if count > 1 else b"2"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    for left in range(count - 1, -1, -1):
        body = CHUNK if count > 1 else b"ok"
        await send({"type": "http.response.body", "body": body, "more_body": left > 0})


Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def listening(
    work: Callable[[UvicornServer, Connect], Awaitable[Any]],
    protocol: type[BoundedProtocol] = BoundedProtocol,
    stalled_seconds: float = 60.0,
) -> Any:
    """What ``work`` gives, with a server of the application above and what makes a connection to it, of a client that
    has little room for what it has not read."""

    async def run() -> Any:
        chosen = config(Guard(app, Rules()))
        chosen.http = protocol
        server = UvicornServer(chosen)
        made = []

        async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, address)
            made.append(await asyncio.open_connection(sock=client, limit=65_536))
            return made[-1]

        with bound_sockets("127.0.0.1", 0, stalled_seconds) as sockets:
            address = sockets[0].getsockname()
            serving = asyncio.create_task(server.serve(sockets))
            try:
                return await work(server, connect)
            finally:
                for _, writer in made:
                    writer.transport.abort()
                while not server.started:
                    await asyncio.sleep(0.01)
                server.should_exit = True
                await serving

    return uvloop.run(run())


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the next answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


def code(found: tuple[int, dict[str, str], bytes]) -> tuple[int, str]:
    status, headers, body = found
    assert headers["content-type"] == "application/json"
    assert headers["connection"] == "close"
    return status, json.loads(body)["error"]["code"]


class Two(BoundedProtocol):
    most_connections = 2


class Hasty(BoundedProtocol):
    head_seconds = 0.3


async def until_empty(server: UvicornServer) -> None:
    while server.server_state.connections:
        await asyncio.sleep(0.01)


def test_more_connections_than_there_may_be_are_told_to_come_back() -> None:
    async def work(server: UvicornServer, connect: Connect) -> None:
        kept = [await connect() for _ in range(2)]
        for _ in range(3):
            reader, writer = await connect()
            found = await answer(reader)
            assert code(found) == (503, "overloaded")
            assert found[1]["retry-after"] == "1"
            assert await reader.read() == b""
        for reader, writer in kept:
            writer.write(GET)
            assert (await answer(reader))[0] == 200
        kept[0][1].close()
        while len(server.server_state.connections) > 1:
            await asyncio.sleep(0.01)
        reader, writer = await connect()
        writer.write(GET)
        assert (await answer(reader))[0] == 200

    listening(work, Two)


@pytest.mark.parametrize(
    ("before", "dribble"), [(b"", b""), (b"", ENDLESS), (GET, ENDLESS)], ids=["silent", "slow", "slow-again"]
)
def test_a_head_that_does_not_come_is_not_waited_for(before: bytes, dribble: bytes) -> None:
    async def work(server: UvicornServer, connect: Connect) -> None:
        reader, writer = await connect()
        while not server.server_state.connections:
            await asyncio.sleep(0.001)
        if before:
            writer.write(before)
            assert (await answer(reader))[2] == b"ok"
        for byte in dribble:
            if not server.server_state.connections:
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(0.02)
        await until_empty(server)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""

    listening(work, Hasty)


def test_an_answer_may_take_longer_than_a_head_and_so_may_a_pause() -> None:
    async def work(server: UvicornServer, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(GET.replace(b"/", b"/slow", 1))
        assert (await answer(reader))[2] == b"ok"
        await asyncio.sleep(SLOW)
        writer.write(GET)
        assert (await answer(reader))[2] == b"ok"

    listening(work, Hasty)


def test_who_does_not_take_an_answer_is_cut_off() -> None:
    async def work(server: UvicornServer, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(GET.replace(b"/", b"/long", 1))
        await reader.readuntil(b"\r\n\r\n")
        await until_empty(server)
        while server.server_state.tasks:
            await asyncio.sleep(0.01)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(CHUNKS * len(CHUNK))

    listening(work, stalled_seconds=0.3)


def test_who_takes_an_answer_slowly_has_all_of_it() -> None:
    async def work(server: UvicornServer, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(GET.replace(b"/", b"/long", 1))
        await reader.readuntil(b"\r\n\r\n")
        left, begun, writing = CHUNKS * len(CHUNK), time.monotonic(), 0.0
        while left:
            taken = len(await reader.read(left))
            assert taken, f"cut off {time.monotonic() - begun:.2f} s after the head"
            left -= taken
            if server.server_state.tasks:
                writing = time.monotonic() - begun
            await asyncio.sleep(0.02)
        assert writing > 1.0  # or it was not slow

    listening(work, stalled_seconds=0.8)


@pytest.mark.parametrize(
    "said",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),  # a browser that was told https
        b"GET / HTTP/1.1\r\nhost localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
        GET + b"\x00\x00\r\n\r\n",
    ],
    ids=["words", "tls", "header", "length", "second"],
)
def test_what_is_no_http_is_told_so_in_the_shape_of_every_error(said: bytes) -> None:
    async def work(server: UvicornServer, connect: Connect) -> None:
        reader, writer = await connect()
        if said.startswith(GET):
            writer.write(GET)
            assert (await answer(reader))[0] == 200
        writer.write(said.removeprefix(GET))
        found = await answer(reader)
        assert code(found) == (400, "bad_request")
        assert json.loads(found[2])["error"].keys() == {"code", "message", "type", "request_id"}
        assert await reader.read() == b""
        await until_empty(server)

    listening(work)


HUGE = b"x-huge: " + b"x" * 1_000_000
TRAILER = b"1\r\n1\r\n0\r\n" + HUGE
CHUNKED = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nhost: localhost\r\n" + HUGE,
        b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 200_000,
        GET + b"GET / HTTP/1.1\r\n" + HUGE,
        GET.rstrip() + b"\r\nx-large: " + b"x" * 66_000 + b"\r\n\r\n",
        CHUNKED.rstrip() + b"\r\nx-large: " + b"x" * 66_000 + b"\r\n\r\n1\r\n1\r\n0\r\n\r\n",
        CHUNKED + TRAILER,
    ],
    ids=["one", "many", "second", "whole", "with a body", "trailer"],
)
def test_a_head_has_a_size(said: bytes) -> None:
    """Who sends more is told so, or cut off, and is not read to the end."""

    async def work(server: UvicornServer, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(said)
        found = []
        async with asyncio.timeout(600):
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while len(found) < 3:
                    found.append(await answer(reader))
        if said != CHUNKED + TRAILER:  # an answer may have been on its way there
            assert code(found[-1]) == (431, "head_too_large")
        await until_empty(server)

    listening(work)


@pytest.mark.parametrize("framing", [b"content-length: 48000000", b"transfer-encoding: chunked"])
def test_who_writes_all_of_a_body_that_is_too_large_hears_of_it(framing: bytes) -> None:
    """As most clients do: they read once they have written."""

    async def work(server: UvicornServer, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(b"POST /body HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" + framing)
        writer.write(b"\r\n\r\n")
        async with asyncio.timeout(600):
            for _ in range(48):
                writer.write(b"%x\r\n" % 10**6 if b"chunked" in framing else b"")
                writer.write(b"1" * 10**6 + (b"\r\n" if b"chunked" in framing else b""))
                await writer.drain()
            if b"chunked" in framing:
                writer.write(b"0\r\n\r\n")
            assert code(await answer(reader)) == (413, "too_large")
            await until_empty(server)

    listening(work)


def test_a_body_in_small_pieces_is_no_head() -> None:
    """Its framing is many times as long as what a head may be."""

    async def work(server: UvicornServer, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(CHUNKED.replace(b"POST / ", b"POST /slow "))
        for _ in range(100):
            writer.write(b"1\r\nx\r\n" * 1000)
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        assert (await answer(reader))[0] == 200

    listening(work)


# keys, addresses, names


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("k" * 16, True),
        ("!" + "k" * 14 + "~", True),
        ("", False),
        ("k" * 15, False),
        ("k" * 15 + " k", False),
        ("k" * 15 + "\t", False),
        ("k" * 15 + "\x7f", False),
        ("ké" * 20, False),
        ("k" * 8 + "\n" + "k" * 8, False),
    ],
)
def test_a_key_is_long_and_in_plain_letters(
    key: str, good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{key}\n", encoding="utf-8")
    monkeypatch.delenv(KEY, raising=False)
    assert read_key(None) is None
    for given in (file, None):
        monkeypatch.setenv(KEY, "another-key-of-the-variable" if given else key)  # the file's goes before
        if good:
            assert read_key(given) == key
            continue
        with pytest.raises(InputError) as wrong:
            read_key(given)
        assert str(wrong.value).startswith(str(file) if given else KEY)
        assert not key.strip() or key.strip() not in str(wrong.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "192.0.2.7", "gpu-node", ""])
def test_who_can_be_reached_by_others_needs_a_key(host: str) -> None:
    check_key(host, "k" * 16)
    if host in ("127.0.0.1", "::1", "localhost"):
        check_key(host, None)
    else:
        with pytest.raises(InputError, match="TURINGLIKE_API_KEY"):
            check_key(host, None)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (["null", "--host", "0.0.0.0"], "--key-file"),
        (["null", "--key-file", "nothing"], "nothing: cannot be read as a key"),
        (["null", "--key-file", "/dev/zero"], "/dev/zero: a key has 16 to 4,096 letters, digits or signs"),
        (["null,null"], "name each agent to be served once"),
        (["null~eliza,mmcq"], "a pair is not served"),
        ([","], "name each agent to be served once"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(
    told: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY, raising=False)
    assert main(["serve", "--agents", *told]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "starting Ray" not in said


@pytest.mark.parametrize(
    ("name", "good"),
    [("gpu-node", True), ("2001:db8::7", True), ("192.0.2.7", True), ("gpu-node:8000", False), ("http://gpu", False),
     ("gpu/", False), ("[::1]", False), ("*.lab", False), ("", False)],
)  # fmt: skip
def test_a_name_of_ours_is_no_address(name: str, good: bool) -> None:
    if good:
        check_names(["lab", name])
        return
    with pytest.raises(InputError, match="without a port"):
        check_names(["lab", name])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_an_address_that_cannot_be_had_is_told_before_ray_starts(
    host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "k" * 16)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--agents", "null", "--host", host, "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"cannot listen at {host}:{port}: something else does" in said
    assert "starting Ray" not in said
    bound_sockets(host, port).__enter__()


@pytest.mark.parametrize("host", ["192.0.2.7", "no-such-host.invalid", "a" * 100])
def test_an_address_of_another_machine_is_told_as_such(host: str) -> None:
    with pytest.raises(InputError, match=f"cannot listen at {host}:8000: .*--host"), bound_sockets(host, 8000):
        pass


# the command


def below(process: Any) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def gone(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Of the processes those that have not ended within some seconds."""
    return psutil.wait_procs(processes, timeout=600)[1]


def refused(server: server_process.Server) -> bool:
    """Whether nobody listens any more."""
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it was waiting to be accepted as the socket closed
        return True
    return False


def ask(server: server_process.Server, agent: str) -> tuple[int, Any]:
    """Status and body of one answer."""
    body = {"agent": agent, "stimulus": {"id": "w", "task": "word_association", "cue": "tea"}}
    headers = {"content-type": "application/json"}
    asked = urllib.request.Request(f"{server.url}/answers", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(asked, timeout=120) as found:
            return found.status, json.loads(found.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_lazy_server_loads_what_is_asked_and_ends_in_order(tmp_path: Path) -> None:
    settings = ["--set", "null.delay_s=3", "--set", "null-one.fail_load=true"]
    with server_process.started(tmp_path, "null,null-one", "--lazy", *settings) as server:
        server.wait_for("/ready")  # nothing is being loaded
        status, failed = ask(server, "null-one")
        assert (status, failed["error"]["code"]) == (503, "agent_failed")
        assert "told to fail while loading" in server.said()
        assert ask(server, "null")[0] == 200

        processes = below(server.process)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = pool.submit(ask, server, "null")
            while b'turinglike_queue{agent="null"} 1' not in urllib.request.urlopen(f"{server.url}/metrics").read():
                assert not asked.done(), asked.result()
            server.process.send_signal(signal.SIGTERM)
            while not refused(server):
                assert not asked.done(), asked.result()
            status, record = asked.result()
        assert (status, record["status"]) == (200, "ok")
        assert server.process.wait(40) == 143
        assert len(processes) > 2
        assert gone(processes) == []
        assert "Traceback" not in server.said()


def test_a_server_that_is_ended_while_ray_starts_leaves_nothing(tmp_path: Path) -> None:
    with server_process.started(tmp_path, "null") as server:
        while not (processes := below(server.process)):
            assert server.process.poll() is None, server.said()
            time.sleep(0.01)
        assert "serving null" not in server.said()
        os.kill(server.process.pid, signal.SIGTERM)
        seen = set(processes)
        while server.process.poll() is None:
            try:
                seen.update(below(server.process))
            except psutil.NoSuchProcess:
                break
            time.sleep(0.05)
        assert server.process.wait(60) == 143
        assert gone(list(seen)) == []
        assert "Traceback" not in server.said()
        assert refused(server)
