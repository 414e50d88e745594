"""A measurement over a set by Ray: on eight GPUs that Ray is told of, and on a cluster of two nodes."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from serving.bench.bare import in_child
from serving.bench.results import BenchResult
from tests.helpers import pretended_gpus, pretended_nodes


def test_workers_on_eight_gpus_are_counted_in_gpu_hours() -> None:
    [runs] = list(in_child(pretended_gpus.bench, 8))
    [scaled] = runs.scaling
    assert (scaled.replicas, scaled.devices) == (8, 8)
    [repeat] = scaled.repeats
    [workers] = repeat.shares.workers.values()
    assert len(workers) == 8
    assert repeat.shares.gpus == []  # NVML finds none
    forecast = scaled.forecast
    assert forecast is not None
    assert forecast.answers == 64
    assert forecast.gpu_hours is not None
    assert forecast.gpu_hours.value == pytest.approx(8 * forecast.hours.value)
    assert forecast.cost is not None
    assert forecast.cost.value == pytest.approx(2 * forecast.gpu_hours.value)


def test_workers_of_a_cluster_are_on_both_nodes(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("".join(f"word{number}\n" for number in range(64)))
    call = [str(words), "--task", "word", "--agents", "null", "--batch-size", "2", "--minutes", "10"]  # never reached
    call += ["--replicas", "1,2,4", "--device", "cpu", "--out", str(tmp_path / "out")]
    *runs, (code, shown, nodes) = in_child(pretended_nodes.bench, call)
    assert code == 0
    assert len(runs) == 3
    asked = runs[0]
    for records in runs:
        assert len({record["stimulus"] for record in records}) == 64
        for record in records:
            assert record["status"] == "ok"
            assert record["answer"]["word"] == f"{record['seed']:x}"  # what this agent answers
        seeds = {record["stimulus"]: record["seed"] for record in records}
        assert seeds == {record["stimulus"]: record["seed"] for record in asked}  # whoever answered
    # One worker is on one of the nodes, two are one on each, four are two on each.
    assert sorted(nodes.values()) == [3, 4]
    [measured] = TypeAdapter(BenchResult).validate_json((tmp_path / "out" / "bench.json").read_text()).runs
    assert [scaled.replicas for scaled in measured.scaling] == [1, 2, 4]
    for scaled in measured.scaling:
        [repeat] = scaled.repeats
        assert repeat.failed == 0
        assert len(repeat.shares.workers["null"]) == scaled.replicas
    rows = [line.split()[0] for line in shown.split("workers  answers/s")[1].splitlines()[1:4]]
    assert rows == ["1", "2", "4"]
