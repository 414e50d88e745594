"""Many conversations of a real, tiny model at once, through the command: in large batches, killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import tiny_language

from agents import seeds
from serving.conversations.conversation import STRIDE

COUNT, EXCHANGES, ATTEMPTS = 64, 24, 2
PLUGIN = Path(__file__).parent / "plugin_counted"


def _command(folder: Path, model: Path, out: str) -> list[str]:
    """64 conversations of the model with itself; what it is asked is noted in a file beside the run."""
    rows = [{"id": f"talk/{i}", "task": "conversation", "exchanges": EXCHANGES} for i in range(COUNT)]
    (folder / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    # A sentence of a random model says nothing; that it is repeated would be chance.
    chosen = {
        "counted.checkpoint": str(model),
        "counted.log": str(folder / f"{out}.log"),
        "counted.precision": "fp32",
        "counted.max_tokens": 12,
        "counted.min_words": 3,
        "counted.attempts": ATTEMPTS,
        "counted~counted.policy": {},
    }
    command = [sys.executable, "-m", "serving.cli", "generate", str(folder / "talks.jsonl")]
    command += [
        "--agents",
        "counted~counted",
        "--out",
        str(folder / out),
        "--batch-size",
        "64",
        "--replicas",
        "1",
        "--seed",
        "0",
    ]
    return [*command, *(part for name, value in chosen.items() for part in ("--set", f"{name}={json.dumps(value)}"))]


def _records(out: Path) -> dict[str, dict[str, Any]]:
    lines = (out / "records" / "counted~counted.jsonl").read_bytes().splitlines()
    records = {record["stimulus"]: record for record in map(json.loads, lines)}
    assert len(lines) == len(records) == COUNT
    return records


def _seeds(line: dict[str, Any]) -> list[int]:
    """The seeds of all that may have been asked for a journalled turn."""
    first = STRIDE * line["conversation_attempt"]
    about = ("counted~counted", line["stimulus"], line["sample"], line["turn"])
    return [seeds.derive(0, *about, first + attempt) for attempt in range(ATTEMPTS)]


def _lines(path: Path) -> list[Any]:
    """The whole lines of a file that may be torn, or not be there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def test_conversations_advance_together_and_a_killed_run_says_the_same(tmp_path: Path) -> None:
    model = tiny_language.gpt2(tmp_path / "gpt2")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PLUGIN), os.environ.get("PYTHONPATH", "")])}
    whole = _command(tmp_path, model, "whole")
    done = subprocess.run(whole, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    undisturbed = _records(tmp_path / "whole")
    assert all(len(record["answer"]["messages"]) == EXCHANGES for record in undisturbed.values())
    sizes = [record["worker"]["batch_size"] for record in undisturbed.values()]
    assert statistics.mean(sizes) >= 16, sizes
    asked = Counter(map(str, _lines(tmp_path / "whole.log")))
    assert set(asked.values()) == {1}

    killed = _command(tmp_path, model, "killed")
    quiet = subprocess.DEVNULL
    driver = subprocess.Popen(killed, env=environment, stdout=quiet, stderr=quiet, start_new_session=True)
    journal = tmp_path / "killed" / "turns" / "counted~counted.jsonl"
    while driver.poll() is None and len(_lines(journal)) < COUNT * EXCHANGES // 2:
        time.sleep(0.02)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    journalled = _lines(journal)
    assert COUNT * EXCHANGES // 2 <= len(journalled) < COUNT * EXCHANGES
    before = len(_lines(tmp_path / "killed.log"))

    resumed = subprocess.run(killed, env=environment, capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr
    for name, record in _records(tmp_path / "killed").items():
        for key in ("answer", "status", "seed", "raw", "attempts"):
            assert record[key] == undisturbed[name][key], (name, key)
    asked_again = {seed for _, _, seed in _lines(tmp_path / "killed.log")[before:]}
    assert asked_again
    assert not asked_again & {seed for line in journalled for seed in _seeds(line)}
    assert not journal.exists()
