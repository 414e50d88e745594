"""Batch sizes in turn, and agents that fail."""

import re
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from serving.bench import made_stimuli
from serving.bench.bare import Setup
from serving.bench.results import BatchSizeResult, Measured
from serving.bench.sweep import best, gained_nothing, sweep
from tests.helpers.measured_agents import ENTRIES


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_stimuli.write(tmp_path_factory.mktemp("set") / "set.jsonl", "word_association", None, 96)


def setup(name: str, source: Path, **settings: Any) -> Setup:
    entry = ENTRIES.get(name) or catalogue.get(name)
    return Setup(entry, settings, "cpu", "word_association", None, 0.02, source)


def swept(setup: Setup, *sizes: int) -> Measured:
    return list(sweep(setup, sizes or None, lambda text: None))[-1]


@pytest.mark.parametrize(
    ("agent", "settings", "sizes", "message"),
    [
        ("null-one", {"batch_limit": 5, "delay_s": 0.01}, [1, 2, 4], "calls at once 8: out of memory"),
        ("killed", {}, [1, 2], "more than batch size 2: .* code -9"),  # as the system does
        ("hungry", {}, [1], "batch size 2: out of memory"),
    ],
)
def test_the_sweep_ends_where_memory_does(
    agent: str, settings: dict[str, Any], sizes: list[int], message: str, words: Path
) -> None:
    # named sizes: doubling ends where two sizes bring nothing, which a busy machine may make so
    measured = swept(setup(agent, words, **settings), 1, 2, 4, 8)
    assert [size.batch_size for size in measured.sizes] == sizes
    assert measured.stopped is not None
    assert re.match(message, measured.stopped)
    for size in measured.sizes:
        assert size.stimuli == pytest.approx(size.stimuli_s * size.seconds)
        assert size.p95_s >= size.p50_s >= settings.get("delay_s", 0)
        assert size.failed == 0
    assert measured.best in measured.sizes
    assert measured.first_answer_s >= measured.load_s


def size(batch: int, rate: float) -> BatchSizeResult:
    return BatchSizeResult(batch, rate, 1.0, 1.0, 0, 1.0, 1)


@pytest.mark.parametrize(
    ("rates", "expected"), [([50, 98, 100, 99], 2), ([50, 96, 100], 4), ([99, 100], 1), ([100, 50, 20], 1)]
)
def test_the_best_is_the_smallest_that_is_nearly_as_fast(rates: list[int], expected: int) -> None:
    assert best([size(2**power, rate) for power, rate in enumerate(rates)]).batch_size == expected


@pytest.mark.parametrize(
    ("rates", "ends"),
    [([1000, 900], False), ([1000, 900, 4000, 4080], False), ([1000, 900, 4000, 4080, 4100], True)],
)
def test_doubling_ends_after_two_that_bring_nothing(rates: list[int], ends: bool) -> None:
    assert gained_nothing([size(2**power, rate) for power, rate in enumerate(rates)]) is ends
