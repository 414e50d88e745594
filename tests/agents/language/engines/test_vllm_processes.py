"""Processes that stand for vLLM's: they end with the one that started them, and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.language.engines import vllm_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")

# A process of vLLM's, as far as it matters here.
CHILD = """
import time
from agents.language.engines.vllm_processes import register
register()
print("ready", flush=True)
time.sleep(100)
"""
# One that starts such a process, and says which.
PARENT = """
import os, subprocess, sys, time
from agents.language.engines.vllm_processes import OWNER, identity
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env={**os.environ, OWNER: identity(os.getpid())},
                         stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(100)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where names are left, for this test alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / f"turinglike-vllm-{os.getuid()}"


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    begun: list[subprocess.Popen[str]] = []

    def run(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        begun.append(
            subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[4],
                env={**os.environ, **environment},
            )
        )
        return begun[-1]

    yield run
    for process in begun:
        process.kill()
        process.communicate()


def name(process: subprocess.Popen[str]) -> str:
    found = vllm_processes.identity(process.pid)
    assert found is not None
    return found


def ready(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def gone(process: str, within: float = 300.0) -> bool:
    deadline = time.monotonic() + within
    while vllm_processes.lives(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not vllm_processes.lives(process)


def test_a_process_ends_with_the_one_that_started_it_however_that_ends(start: Start) -> None:
    parent = start(PARENT, CHILD)
    child = vllm_processes.identity(int(ready(parent)))
    assert child is not None
    assert vllm_processes.owned(name(parent)) == [child]
    parent.send_signal(signal.SIGKILL)
    assert gone(child)
    assert vllm_processes.end_orphans(5.0) == []


def test_a_process_that_finds_its_owner_gone_ends(start: Start) -> None:
    owner = start("print()")
    ready(owner)
    owner.wait()
    orphan = start(CHILD, TURINGLIKE_VLLM_OWNER=f"{owner.pid}-1")
    assert orphan.wait(20) == -signal.SIGKILL
    assert ready(orphan) == ""


def test_orphans_are_ended_and_nobody_else(start: Start, folder: Path) -> None:
    first, second = (start("import time; print('ready', flush=True); time.sleep(100)") for _ in range(2))
    ready(first), ready(second)
    orphan, other = (start(CHILD, TURINGLIKE_VLLM_OWNER=name(one)) for one in (first, second))
    assert [ready(orphan), ready(other)] == ["ready", "ready"]
    owner = name(first)
    # An id that is used again: whoever has it now is not the one that had the name.
    (folder / f"{owner}_{other.pid}-12345").touch()
    assert vllm_processes.end_orphans(5.0) == []
    assert orphan.poll() is None
    first.kill()
    assert first.wait() == -signal.SIGKILL
    assert vllm_processes.owned(owner) == [name(orphan)]
    assert vllm_processes.end_orphans(5.0) == []
    assert orphan.wait(5) == -signal.SIGKILL
    assert other.poll() is None
    assert list(vllm_processes.owned(owner)) == []
    assert [path.name for path in folder.iterdir()] == [f"{name(second)}_{name(other)}"]


@pytest.mark.parametrize("environment", [{}, {"TURINGLIKE_VLLM_OWNER": "self"}])
def test_processes_that_are_not_ours_are_left_alone(folder: Path, environment: Any, monkeypatch: Any) -> None:
    """The plugin is loaded by every vLLM of the environment, and in the process that owns the engine."""
    if environment:
        monkeypatch.setenv("TURINGLIKE_VLLM_OWNER", vllm_processes.identity(os.getpid()))
    vllm_processes.register()
    assert not folder.exists()


def test_the_plugin_is_known_to_vllm() -> None:
    from importlib.metadata import entry_points

    [plugin] = entry_points(group="vllm.general_plugins", name=vllm_processes.PLUGIN)
    assert plugin.load() is vllm_processes.register
