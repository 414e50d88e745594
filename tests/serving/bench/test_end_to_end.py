"""How fast the whole is, from its records; and one whole bench."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from measured_agents import send_cpu

from agents import catalogue
from agents.contract import Agent
from serving.bench import command, end_to_end
from serving.bench.end_to_end import BestEntry, rate, replica_counts
from serving.bench.results import Measured, Size
from serving.cli import main
from serving.scheduling import machine


def write(path: Path, times: list[float], failed: int = 0) -> Path:
    """Records that were made at such times, the first few of them failures, and a line that is still being written."""
    rows = [
        {"created": datetime.fromtimestamp(at, UTC).isoformat(), "status": "failed" if number < failed else "ok"}
        for number, at in enumerate(times)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"created"')
    return path


def batches(size: int, every: float, count: int) -> list[float]:
    return [every * number for number in range(count) for _ in range(size)]


def test_the_rate_is_that_of_whole_rounds_after_the_warm_up(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    assert rate(path, 8, 4.0) is None
    write(path, batches(8, 1.0, 20))
    assert rate(path, 8, 4.0) == pytest.approx(8.0)
    assert rate(path, 8, 4.0, enough=True) == pytest.approx(8.0)
    assert rate(path, 8, 40.0) == pytest.approx(8.0)  # there are no more
    assert rate(path, 8, 40.0, enough=True) is None
    write(path, batches(8, 1.0, 20), failed=40)
    assert rate(path, 8, 4.0) == pytest.approx(6.0)  # a failure is no answer
    write(path, batches(8, 1.0, 5))
    assert rate(path, 8, 4.0) is None


def measured(continuous: bool) -> Measured:
    size = Size(4, 10.0, 1.0, 1.0, 1, 1.0, 1)
    return Measured("null", "word_association", None, "0" * 64, {}, "cpu", continuous, sizes=[size], best=size)


@pytest.mark.parametrize(("cores", "counts"), [(1, [1]), (3, [1, 2]), (8, [1, 2, 4])])
def test_as_many_workers_as_there_are_cores(cores: int, counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: cores)
    assert replica_counts(measured(continuous=False)) == counts
    assert replica_counts(measured(continuous=True)) == [1]  # its calls at once are for all its workers


def test_agents_are_made_as_they_were_measured() -> None:
    def made(name: str, **more: int) -> Agent[Any]:
        entry, best = catalogue.get(name), measured(continuous=False)
        assert best.best is not None
        best.best = replace(best.best, **more)
        kept = {field.name: getattr(entry, field.name) for field in fields(entry)}
        return BestEntry(**kept, measured=best).make()

    assert made("null").batch_size == 4
    assert made("null", peak_device_bytes=1000).device_memory == 0  # it has no use for a device
    assert made("null-one").max_in_flight == 4
    large = made("gbvs", batch_size=8)
    assert (large.batch_size, large.attempts) == (8, 1)
    alone = catalogue.get("gpt2-completion").make().device_memory
    assert alone > 0
    assert made("gpt2-completion", peak_device_bytes=1000).device_memory == alone
    assert made("gpt2-completion", peak_device_bytes=10 * alone).device_memory == pytest.approx(11 * alone)


@pytest.mark.slow
def test_a_whole_bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_to_end, "REPLICAS", (1,))
    monkeypatch.setattr(command, "send_device", send_cpu)
    asked = ["null", "--task", "conversation", "--batch-sizes", "4", "--set", "null.delay_s=0.05"]
    assert main(["bench", *asked, "--seconds", "0.5", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] == []
    assert found["complete"]
    [null] = found["agents"]
    [whole] = null["end_to_end"]
    assert (whole["replicas"], whole["batch_size"]) == (1, 4)
    assert whole["bare_stimuli_s"] == pytest.approx(sum(whole["bare"]) / 2)
    assert whole["ratio"] == pytest.approx(whole["stimuli_s"] / whole["bare_stimuli_s"])
    assert 0 < whole["stimuli_s"] <= 1.05 * 4 / 0.05  # a batch of four takes as long
