"""A measurement over a set by Ray, on eight GPUs that Ray is told of."""

import pytest

from serving.bench.bare import in_child
from tests.helpers import pretended_gpus


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
