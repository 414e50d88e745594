"""How fast the whole is, from its records; and one whole bench."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from measured_agents import look

from serving.bench import command, end_to_end
from serving.bench.end_to_end import rates, replica_counts
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


def batches(size: int, every: float, count: int, begin: float = 0.0) -> list[float]:
    return [begin + every * number for number in range(count) for _ in range(size)]


def test_the_rate_is_that_of_whole_rounds_after_the_warm_up(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    assert rates({"null": path}, {"null": 8}, 4.0) is None
    write(path, batches(8, 1.0, 20))
    assert rates({"null": path}, {"null": 8}, 4.0) == {"null": pytest.approx(8.0)}
    assert rates({"null": path}, {"null": 8}, 4.0, enough=True) == {"null": pytest.approx(8.0)}
    assert rates({"null": path}, {"null": 8}, 40.0) == {"null": pytest.approx(8.0)}  # there are no more
    assert rates({"null": path}, {"null": 8}, 40.0, enough=True) is None
    write(path, batches(8, 1.0, 20), failed=40)
    assert rates({"null": path}, {"null": 8}, 4.0) == {"null": pytest.approx(6.0)}  # a failure is no answer
    write(path, batches(8, 1.0, 5))
    assert rates({"null": path}, {"null": 8}, 4.0) is None


def test_agents_are_counted_while_all_are_at_work(tmp_path: Path) -> None:
    slow_while_alone = batches(4, 1.0, 10) + batches(4, 0.5, 60, begin=10.0) + batches(4, 0.1, 50, begin=40.0)
    records = {
        "one": write(tmp_path / "one.jsonl", slow_while_alone),
        "two": write(tmp_path / "two.jsonl", batches(2, 1.0, 30, begin=10.0)),
    }
    found = rates(records, {"one": 4, "two": 2}, 100.0)
    assert found == {"one": pytest.approx(8.0), "two": pytest.approx(2.0)}


def measured(continuous: bool) -> Measured:
    size = Size(4, 10.0, 1.0, 1.0, 1, 1.0, 1)
    return Measured("null", "word_association", None, "0" * 64, {}, "cpu", continuous, sizes=[size], best=size)


@pytest.mark.parametrize(("cores", "counts"), [(1, [1]), (3, [1, 2]), (8, [1, 2, 4])])
def test_as_many_workers_as_there_are_cores(cores: int, counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: cores)
    assert replica_counts(measured(continuous=False)) == counts
    assert replica_counts(measured(continuous=True)) == [1]  # its calls at once are for all its workers


@pytest.mark.slow
def test_a_whole_bench(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(end_to_end, "REPLICAS", (1,))
    monkeypatch.setattr(command, "send_device_and_limits", look)
    together = end_to_end.rates_together

    def rates(measured: Sequence[Measured], *others: Any) -> dict[str, float]:
        """Those of both agents, and of either in the same way: each alone would start Ray once more."""
        return together(measured, *others) if len(measured) > 1 else {measured[0].agent: 40.0}

    monkeypatch.setattr(end_to_end, "rates_together", rates)
    asked = ["null", "null-one", "--task", "conversation", "--batch-sizes", "4"]
    asked += ["--set", "null.delay_s=0.05", "--set", "null-one.delay_s=0.05"]
    assert main(["bench", *asked, "--seconds", "0.5", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] == []
    assert found["complete"]
    null, calls = found["agents"]
    for one in (null, calls):
        [whole] = one["end_to_end"]
        assert (whole["replicas"], whole["batch_size"]) == (1, 4)
        assert whole["bare_stimuli_s"] == pytest.approx(sum(whole["bare"]) / 2)
        assert whole["ratio"] == pytest.approx(40 / whole["bare_stimuli_s"])
        assert found["packed"]["alone"][one["agent"]] == 40
        assert found["packed"]["stimuli_s"][one["agent"]] > 0
    [peer] = null["peers"]
    assert (peer["name"], peer["our_stimuli_s"]) == ("ray-data", 40)
    assert calls["peers"] == []
    most = 1.05 * 4 / 0.05  # a call of four takes as long
    assert 0 < peer["stimuli_s"] <= most
    assert found["packed"]["stimuli_s"]["null"] <= most
