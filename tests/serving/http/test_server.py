"""The server itself: clients that stall, keys and addresses, and how the whole command begins and ends."""

import concurrent.futures
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from agents.errors import InputError
from serving.cli import main
from serving.commands.serve import KEY, read_api_key
from serving.http.server import bound_sockets, check_key
from tests.helpers import server_process

# keys, addresses, names


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("!" + "k" * 14 + "~", True),
        ("", False),
        ("k" * 15, False),
        ("k" * 15 + " k", False),
        ("k" * 15 + "\x7f", False),
        ("ké" * 20, False),
    ],
)
def test_a_key_is_long_and_in_plain_letters(
    key: str, good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{key}\n", encoding="utf-8")
    monkeypatch.delenv(KEY, raising=False)
    assert read_api_key(None) is None
    for given in (file, None):
        monkeypatch.setenv(KEY, "another-key-of-the-variable" if given else key)  # the file's goes before
        if good:
            assert read_api_key(given) == key
            continue
        with pytest.raises(InputError) as wrong:
            read_api_key(given)
        assert str(wrong.value).startswith(str(file) if given else KEY)
        assert not key.strip() or key.strip() not in str(wrong.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "0.0.0.0", "gpu-node", ""])
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
        (["null", "--allow-host", "gpu-node:8000"], "without a port"),
        (["null", "--allow-host", "http://gpu"], "without a port"),
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


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_an_address_that_cannot_be_had_is_told_before_ray_starts(
    host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "k" * 16)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--agents", "null", "--host", host, "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"cannot listen at {host}:{port}: address already in use" in said
    assert "starting Ray" not in said
    bound_sockets(host, port).__enter__()


@pytest.mark.parametrize("host", ["192.0.2.7", "no-such-host.invalid"])
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


def asked(agent: str) -> dict[str, Any]:
    return {"agent": agent, "stimulus": {"id": "w", "task": "word_association", "cue": "tea"}}


@pytest.mark.slow
def test_a_lazy_server_loads_what_is_asked_and_ends_in_order(tmp_path: Path) -> None:
    settings = ["--set", "null.delay_s=3", "--set", "null-one.fail_load=true"]
    with server_process.started(tmp_path, "null,null-one", "--lazy", *settings) as server:
        server.wait_for("/ready")  # nothing is being loaded
        status, failed = server.post("/answers", asked("null-one"))
        assert (status, failed["error"]["code"]) == (503, "agent_failed")
        assert "told to fail while loading" in server.said()
        assert server.post("/answers", asked("null"))[0] == 200
        assert "null is loaded, after " in server.said()
        assert "null-one is loaded" not in server.said()

        processes = below(server.process)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answer = pool.submit(server.post, "/answers", asked("null"))
            while 'turinglike_queue{agent="null"} 1' not in httpx2.get(f"{server.url}/metrics", timeout=600).text:
                assert not answer.done(), answer.result()
            server.process.send_signal(signal.SIGTERM)
            while not refused(server):
                assert not answer.done(), answer.result()
            status, record = answer.result()
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
