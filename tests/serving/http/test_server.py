"""The server itself: clients that stall, keys and addresses, and how the whole command begins and ends."""

from __future__ import annotations

import asyncio
import concurrent.futures
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
from serving.http.guard import Guard, Rules
from serving.http.server import UvicornServer, bound_sockets, check_key, config
from serving.serve import KEY, check_names, read_key

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNK, CHUNKS = b"x" * 65_536, 256  # 16 MiB: more than the system keeps for a client that does not read

# connections


async def app(scope: Any, receive: Any, send: Any) -> None:
    """At / a short answer, at /long a long one; /body is read first."""
    count = 1
    while scope["path"] == "/body" and (await receive())["more_body"]:
        pass
    if scope["path"] == "/long":
        count = CHUNKS
    length = str(count * len(CHUNK)).encode() if count > 1 else b"2"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    for left in range(count - 1, -1, -1):
        body = CHUNK if count > 1 else b"ok"
        await send({"type": "http.response.body", "body": body, "more_body": left > 0})


Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def listening(
    work: Callable[[UvicornServer, Connect], Awaitable[Any]],
    stalled_seconds: float = 60.0,
) -> Any:
    """What ``work`` gives, with a server of the application above and what makes a connection to it, of a client that
    has little room for what it has not read."""

    async def run() -> Any:
        server = UvicornServer(config(Guard(app, Rules())))
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


async def until_empty(server: UvicornServer) -> None:
    while server.server_state.connections:
        await asyncio.sleep(0.01)


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
