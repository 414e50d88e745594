"""A run of conversations on vLLM's real engine, whose worker is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import tiny_language
import tiny_vllm

from agents.language.engines import vllm_processes

ROOT = Path(__file__).parents[2]
COUNT, EXCHANGES = 8, 10

pytestmark = [tiny_vllm.needed, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def command(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The run, begun."""
    checkpoint = tiny_language.llama(tmp_path / "llama", positions=2048)
    source = tmp_path / "set.jsonl"
    row = {"task": "conversation", "exchanges": EXCHANGES, "topic": "sports"}
    source.write_text("".join(json.dumps({"id": f"c{at:02d}", **row}) + "\n" for at in range(COUNT)))
    chosen = {"checkpoint": checkpoint, "engine": "vllm", "vllm": json.dumps(tiny_vllm.SMALL), "min_words": 0}
    pair = "qwen2.5-7b~qwen2.5-7b"
    arguments = ["generate", str(source), "--agents", pair, "--out", str(tmp_path / "run"), "--device", "cpu"]
    for name, value in chosen.items():
        arguments += ["--set", f"qwen2.5-7b.{name}={value}"]
    arguments += ["--set", f"{pair}.policy.too_long=flag"]
    process = subprocess.Popen(
        [sys.executable, "-m", "serving.cli", *arguments],
        cwd=ROOT,
        # Its engine's process is a fork of the worker, so that nothing is imported twice.
        env={**os.environ, **tiny_vllm.ENVIRONMENT, "VLLM_WORKER_MULTIPROC_METHOD": "fork"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def engines(run: subprocess.Popen[str]) -> list[tuple[str, str]]:
    """(worker, engine's process) of the run, of those that live."""
    below = {process.pid for process in psutil.Process(run.pid).children(recursive=True)}
    workers = [vllm_processes.identity(pid) for pid in below]
    return [(worker, one) for worker in workers if worker for one in vllm_processes.owned(worker)]


def turns(folder: Path) -> list[dict[str, object]]:
    """The journal's whole lines."""
    text = "".join(path.read_text() for path in (folder / "turns").glob("*.jsonl"))
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def kill_worker_at(run: subprocess.Popen[str], folder: Path, count: int) -> str:
    """Kill the engine's worker once so many turns are journalled, and wait for the next engine. Returns the old one."""
    while len(turns(folder)) < count or len(engines(run)) != 1:
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.05)
    [(owner, engine)] = engines(run)
    os.kill(int(owner.partition("-")[0]), signal.SIGKILL)
    while not any(found != engine for _, found in engines(run)):
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.02)
    return engine


def test_a_worker_killed_in_the_middle_costs_nothing(command: subprocess.Popen[str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    engine = kill_worker_at(command, folder, 2 * COUNT)
    assert not vllm_processes.lives(engine)  # It was gone before the next one came.
    before = turns(folder)
    output, _ = command.communicate()
    assert command.returncode == 0, output
    [path] = (folder / "records").glob("*.jsonl")
    records = {record["stimulus"]: record for record in map(json.loads, path.read_text().splitlines())}
    assert len(path.read_text().splitlines()) == len(records) == COUNT
    for record in records.values():
        assert (record["status"], len(record["answer"]["messages"])) == ("ok", EXCHANGES)
    # What was said before the death stands, and was asked for once.
    for turn in before:
        assert turn["conversation_attempt"] == 0
        message = records[turn["stimulus"]]["answer"]["messages"][turn["turn"]]
        assert message["text"] == turn["answer"]["text"]
    assert len({(turn["stimulus"], turn["turn"]) for turn in before}) == len(before)
    [about] = json.loads((folder / "run.json").read_text())["agents"].values()
    assert about["members"]["qwen2.5-7b"]["provenance"]["engine"] == "vllm"
