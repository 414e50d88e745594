"""A run of conversations on vLLM's real server, whose worker is killed."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.helpers import tiny_language, tiny_vllm

ROOT = Path(__file__).parents[2]
COUNT = 8
EXCHANGES = 10

pytestmark = [tiny_vllm.needed, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def place() -> Iterator[Path]:
    """Where the run's temporary files are; Ray's sockets want a short path."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="v", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def command(tmp_path: Path, place: Path) -> Iterator[subprocess.Popen[str]]:
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
        env={**os.environ, **tiny_vllm.ENVIRONMENT, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def worker(run: subprocess.Popen[str]) -> psutil.Process:
    """Ray's worker that has the agent."""
    workers = []
    for process in psutil.Process(run.pid).children(recursive=True):
        with suppress(psutil.Error):
            if process.cmdline()[0].startswith("ray::WorkerActor"):
                workers.append(process)
    [process] = workers
    return process


def turns(folder: Path) -> list[dict[str, object]]:
    """The journal's whole lines."""
    text = "".join(path.read_text() for path in (folder / "turns").glob("*.jsonl"))
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def wait_until(condition: Callable[[], bool], run: subprocess.Popen[str]) -> None:
    while not condition():
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.1)


def test_a_worker_killed_in_the_middle_costs_nothing(
    command: subprocess.Popen[str], tmp_path: Path, place: Path
) -> None:
    folder = tmp_path / "run"
    wait_until(lambda: len(turns(folder)) >= 2 * COUNT, command)
    processes = tiny_vllm.processes(place)
    assert len(processes) > 2
    worker(command).kill()
    wait_until(lambda: len({*tiny_vllm.processes(place)} - {*processes}) > 2, command)  # the next server's
    assert psutil.wait_procs(processes, 300)[1] == []
    before = turns(folder)
    output, _ = command.communicate()
    assert command.returncode == 0, output
    [path] = (folder / "records").glob("*.jsonl")
    records: dict[str, Any] = {row["stimulus"]: row for row in map(json.loads, path.read_text().splitlines())}
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
