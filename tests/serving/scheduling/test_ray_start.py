"""The start of Ray: one that hangs, fails or is ended by a signal leaves nothing behind, and is tried once more."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import server_process

from agents.errors import AgentStoppedError, ClusterError
from serving.scheduling import cluster, local_ray
from serving.scheduling.guardian import AGENT_DIED, ENDS

HANGING = {  # a Ray whose start never returns, whatever becomes of the raylet
    "__init__.py": """
import time
import urllib.request
from pathlib import Path
from ray._private import services

def is_initialized():
    return False

def init(**options):
    services.start_ray_process(Path(__file__).with_name("raylet").read_text().split(), "raylet")
    time.sleep(600)
""",
    "job_config.py": "class JobConfig: pass",
    "_private/__init__.py": "",
    "_private/services.py": """
import subprocess, types

get_node = None

def start_ray_process(command, process_type):
    return types.SimpleNamespace(process=subprocess.Popen(command))
""",
}
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command with a Ray whose raylet is the given program, or with the real one; there is nothing left of it
    in its temporary folder at the end."""
    temporary = Path(tempfile.mkdtemp(prefix="r-"))

    def started(*command: str, raylet: str | None = None) -> subprocess.Popen[str]:
        paths = os.environ["PYTHONPATH"]
        if raylet is not None:
            for name, text in {**HANGING, "raylet": raylet}.items():
                (tmp_path / "fake" / "ray" / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / "fake" / "ray" / name).write_text(text)
            paths = os.pathsep.join([str(tmp_path / "fake"), paths])
        environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(temporary)}
        environment.pop("RAY_AUTH_TOKEN", None)
        call = [sys.executable, "-m", "serving.cli", *command]
        return subprocess.Popen(call, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)

    (tmp_path / "set.jsonl").write_text('{"id": "a", "task": "word_association", "cue": "b"}\n')
    yield started
    assert list(temporary.iterdir()) == []
    temporary.rmdir()


GENERATE = ("generate", "set.jsonl", "--agents", "null", "--out", "run")


def raylet_of(process: subprocess.Popen[str], name: str) -> list[psutil.Process]:
    """The processes that the command has started, once the one with that name is among them."""
    while process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        for one in family:
            try:
                if one.name() == name and one.status() != psutil.STATUS_ZOMBIE:
                    return [one, *family]
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.02)
    raise AssertionError(process.communicate()[1])


def gone(processes: list[psutil.Process]) -> bool:
    """Whether all have ended, which Ray's take a moment for."""
    return not psutil.wait_procs(processes, timeout=30)[1]


def test_a_raylet_that_ends_at_the_start_is_noticed_and_what_to_do_is_said(start: Start, tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text(
        "".join(f'{{"id": "{at}", "task": "word_association", "cue": "b"}}\n' for at in range(100))
    )  # not few enough to be answered without Ray
    with start(*GENERATE, "--batch-size", "1", raylet="false") as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == ClusterError.exit_code, said
    lines = [line for line in said.splitlines() if not line.startswith("still starting Ray (")]
    assert lines[1:] == [
        "starting Ray",
        "Ray did not start: its raylet ended; trying once more",
        "turinglike: Ray cannot be started: its raylet ended; run the same command again, when the machine has less to "
        "do, or with --here, which needs no Ray",
    ]


class Slow:
    """Starts when it is said that it still does; the first one then fails."""

    starts = 0

    def __init__(self, heard: list[str]) -> None:
        Slow.starts += 1
        self.heard, self.number = heard, Slow.starts

    def address(self) -> str:
        while not any(line.startswith("still") for line in self.heard):
            time.sleep(0.01)
        self.heard.append(f"{self.number}")
        if self.number == 1:
            raise ClusterError("it timed out")
        return "there"

    def lost(self) -> None:
        """Nothing is."""

    def end(self, seconds: float) -> None:
        self.heard.append(f"end {self.number} {seconds}")


def test_it_is_said_that_it_still_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(cluster, "FIRST_LINE", 0)
    monkeypatch.setattr(cluster, "LOOK", 0.01)
    monkeypatch.setattr(local_ray.RayHead, "begin", lambda: Slow(heard))
    assert asyncio.run(cluster.Cluster()._start_head(heard.append)) == "there"
    told = [line for line in heard if line != "still starting Ray (0 s)"]
    assert told == ["1", "end 1 0", "Ray did not start: it timed out; trying once more", "2"]
    assert len(told) < len(heard)


@pytest.mark.parametrize(
    ("number", "command"), [(signal.SIGINT, GENERATE), (signal.SIGTERM, ("serve", "--agents", "null"))]
)
def test_a_signal_ends_a_start_that_hangs(start: Start, number: int, command: tuple[str, ...], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    more = ("--replicas", "1") if command is GENERATE else ("--port", port)
    with start(*command, *more, raylet="sleep 600") as process:
        family = raylet_of(process, "sleep")
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert "Traceback" not in said
    assert gone(family)
    if command is GENERATE:  # the run's folder can be had again, and needs no Ray
        with start(*GENERATE, "--here", raylet="sleep 600") as again:
            assert again.wait(60) == 0
        [record] = (tmp_path / "run" / "records" / "null.jsonl").read_text().splitlines()
        assert json.loads(record)["status"] == "ok"


def test_what_needs_no_ray_starts_none(start: Start, tmp_path: Path) -> None:
    """Agents that servers answer for, and all with --here, however much it is; here Ray would hang."""
    rows = [json.dumps({"id": f"w{at}", "task": "word_association", "cue": "sun"}) for at in range(300)]
    (tmp_path / "set.jsonl").write_text("\n".join(rows))
    with start(*GENERATE, "--here", "--batch-size", "1", raylet="sleep 600") as process:
        assert process.wait(100) == 0
    with start("generate", "set.jsonl", "--agents", "null-one", "--out", "run", raylet="sleep 600") as process:
        assert process.wait(100) == 0
    for agent in ("null", "null-one"):
        assert (tmp_path / "run" / "records" / f"{agent}.jsonl").read_text().count("\n") == 300
    command = [sys.executable, "-m", "serving.cli", "serve", "--agents", "null-one"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "fake"), os.environ["PYTHONPATH"]])}
    with server_process.running(tmp_path, command, environment) as server:
        server.wait_for("/ready")
        asked = json.dumps({"agent": "null-one", "stimulus": json.loads(rows[0])})
        headers = {"content-type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{server.url}/answers", asked.encode(), headers)) as answer:
            assert json.load(answer)["status"] == "ok"
        assert "starting Ray" not in server.said()


def test_an_agent_that_ends_the_process_ends_a_run_here(start: Start, tmp_path: Path) -> None:
    rows = [json.dumps({"id": f"w{at}", "task": "word_association", "cue": "sun"}) for at in range(9)]
    (tmp_path / "set.jsonl").write_text("\n".join(rows))
    with start(*GENERATE, "--here", "--set", "null.crash=w5", raylet="sleep 600") as process:
        _, said = process.communicate(timeout=100)
    assert process.returncode == AgentStoppedError.exit_code, said
    assert said.splitlines()[-1] == f"turinglike: {AGENT_DIED}{ENDS}"
    with start(*GENERATE, "--here", "--replicas", "2", raylet="sleep 600") as process:
        _, said = process.communicate(timeout=100)
    assert (process.returncode, said.count("\n")) == (2, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")
def test_a_start_that_failed_is_tried_once_more(start: Start) -> None:
    with start(*GENERATE, "--replicas", "1") as process:
        first, *family = raylet_of(process, "raylet")
        first.kill()
        _, said = process.communicate(timeout=280)
    assert process.returncode == 0, said
    assert "Ray did not start: its raylet ended; trying once more" in said
    assert gone(family)


def test_a_start_that_was_begun_ahead_is_used_or_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Head] = []

    class Head:
        def __init__(self) -> None:
            self.ended = False
            begun.append(self)

        def address(self) -> str:
            return f"head {begun.index(self)}"

        def lost(self) -> None:
            return None

        def end(self, seconds: float) -> None:
            self.ended = True

    monkeypatch.setattr(local_ray.RayHead, "begin", Head)
    monkeypatch.setattr(local_ray, "set_environment", lambda: None)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    with cluster.begun_ahead(True) as ahead:
        assert asyncio.run(cluster.Cluster(ahead=ahead)._start_head(lambda text: None)) == "head 0"
    assert not begun[0].ended  # the cluster has it
    with pytest.raises(RuntimeError), cluster.begun_ahead(True):  # a set that cannot be used, or a signal
        raise RuntimeError
    assert begun[1].ended
    with cluster.begun_ahead(False) as ahead:
        assert ahead == []
    assert len(begun) == 2
