"""The start of Ray: one that hangs, fails or is ended by a signal leaves nothing behind, and is tried once more."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from agents.errors import ClusterError

HANGING = {  # a Ray whose start never returns, whatever becomes of the raylet
    "__init__.py": """
import time
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
    process = start(*GENERATE, "--batch-size", "1", raylet="false")
    _, said = process.communicate(timeout=120)
    assert process.returncode == ClusterError.exit_code, said
    lines = [line for line in said.splitlines() if not line.startswith("still starting Ray (")]
    assert lines[1:] == [
        "starting Ray",
        "Ray did not start: its raylet ended; trying once more",
        "turinglike: Ray cannot be started: its raylet ended; run the same command again, when the machine has less to "
        "do, or with --here, which needs no Ray",
    ]


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


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")
def test_a_start_that_failed_is_tried_once_more(start: Start) -> None:
    with start(*GENERATE, "--replicas", "1") as process:
        first, *family = raylet_of(process, "raylet")
        first.kill()
        _, said = process.communicate(timeout=280)
    assert process.returncode == 0, said
    assert "Ray did not start: its raylet ended; trying once more" in said
    assert gone(family)
