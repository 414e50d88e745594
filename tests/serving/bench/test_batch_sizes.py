"""What ``--batch-size auto`` knows: for the same settings, device and version, from windows long enough to trust."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import in_process
import pytest

from agents import catalogue
from serving.bench.command import best_sizes
from serving.bench.results import Measured, Size
from serving.cli import main
from serving.runs import batch_sizes
from serving.scheduling import machine
from serving.scheduling.machine import Device

NAMES = ("null", "null-one")
ENTRIES = {name: catalogue.get(name) for name in NAMES}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def keep(name: str, batch_size: int, seconds: float = 2.0) -> list[str]:
    """Write a best size as the command does."""
    size = Size(batch_size, 10.0, 1.0, 1.0, 1, seconds, 1)
    short = replace(size, batch_size=1, seconds=2.0)
    one = Measured(name, "word_association", None, "0" * 64, {}, "cpu", False, sizes=[short, size], best=size)
    sizes, short = best_sizes([one], ENTRIES, {}, "a GPU")
    batch_sizes.write(sizes)
    return short


def used(address: str | None = None, **settings: float) -> tuple[int, int, list[str]]:
    """The sizes of the two agents, and what is said."""
    said: list[str] = []
    agents: dict[str, Any] = {name: ENTRIES[name].make(settings if name == "null" else None) for name in NAMES}
    batch_sizes.use(agents, ENTRIES, device="cpu", address=address, say=said.append)
    return agents["null"].batch_size, agents["null-one"].max_in_flight, said


def test_a_size_holds_for_one_setting_device_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keep("null", 3) == keep("null-one", 2) == []
    assert used() == (3, 2, [])
    size, _, [sentence] = used(prepare_s=0.0001)
    assert size == 512
    assert "null runs with its own, 512" in sentence
    assert "`turinglike bench null`" in sentence
    assert len(used(address="elsewhere:6379")[2]) == 2
    with monkeypatch.context() as patch:
        patch.setattr(machine, "cpu", lambda: Device("another", "cpu", 1))
        assert used()[0] == 512
    with monkeypatch.context() as patch:
        patch.setattr(batch_sizes, "__version__", "0.0.0")
        assert used()[0] == 512
    assert keep("null", 5) == []
    assert used() == (5, 2, [])  # in place of the old one


def test_short_windows_are_not_trusted() -> None:
    assert keep("null", 3, seconds=1.9) == ["null"]
    assert used()[0] == 512


def test_a_damaged_file_is_as_if_nothing_were_known() -> None:
    keep("null", 3)
    whole = batch_sizes.path().read_text()
    for damaged in ("{", whole.replace('"batch_size": 3', '"batch_size": 0'), whole.replace("bytes", "\\ud800")):
        assert damaged != whole
        batch_sizes.path().write_text(damaged)
        assert used()[0] == 512


def test_a_size_brings_the_device_memory_that_it_took() -> None:
    agent = catalogue.get("null").make()
    batch_sizes.fit(agent, 8, 1000)
    assert (agent.batch_size, agent.device_memory) == (8, 0)  # it has no use for a device
    agent.device_memory = 500
    batch_sizes.fit(agent, 8, 1000)
    assert agent.device_memory == 1100
    batch_sizes.fit(agent, 8, 100)
    assert agent.device_memory == 1100


def test_generate_uses_the_best_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process.without_ray(monkeypatch)
    keep("null", 3)
    source, out = tmp_path / "set.jsonl", tmp_path / "run"
    rows = [{"id": f"w{number}", "task": "word_association", "cue": f"cue{number}"} for number in range(12)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["generate", str(source), "--agents", "null", "--out", str(out), "--device", "cpu", "--replicas", "1"]
    assert main([*asked, "--batch-size", "auto"]) == 0
    lines = (out / "records" / "null.jsonl").read_text().splitlines()
    assert [json.loads(line)["worker"]["batch_size"] for line in lines] == [3] * 12
    assert "`turinglike bench null`" not in capsys.readouterr().err
