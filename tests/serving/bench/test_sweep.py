"""The bare agent over batch sizes: where it stops, and what is said of agents that fail."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from measured_agents import ENTRIES

from agents import catalogue
from agents.errors import AgentStoppedError
from serving.bench import stimuli
from serving.bench.bare import Setup
from serving.bench.results import Measured, Size
from serving.bench.sweep import best, gained_nothing, measure


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stimuli.write(tmp_path_factory.mktemp("set") / "set.jsonl", {("word_association", None): 96})


def setup(name: str, source: Path, **settings: Any) -> Setup:
    entry = ENTRIES.get(name) or catalogue.get(name)
    return Setup(entry, settings, "cpu", "word_association", None, source, 0.02)


def swept(one: Setup, *sizes: int) -> Measured:
    return list(measure(one, sizes or None, lambda text: None))[-1]


def test_the_sweep_ends_where_memory_does_and_says_so(words: Path) -> None:
    # named sizes: doubling ends where two sizes bring nothing, which a busy machine may make so
    found = swept(setup("null-one", words, batch_limit=5, delay_s=0.01), 1, 2, 4, 8)
    assert [size.batch_size for size in found.sizes] == [1, 2, 4]
    assert found.stopped is not None
    assert (found.stopped.batch_size, found.stopped.why) == (8, "out_of_memory")
    assert found.stopped.message.startswith("calls at once 8: out of memory")
    for size in found.sizes:
        assert size.stimuli == pytest.approx(size.stimuli_s * size.seconds)
        assert size.p95_s >= size.p50_s >= 0.01
        assert size.failed == 0
    assert found.best in found.sizes
    assert found.first_answer_s >= found.load_s + 0.01
    assert found.differing is None or found.differing.count == 0


def test_answers_that_depend_on_the_batch_are_counted(words: Path) -> None:
    found = swept(setup("crowded", words), 4)
    assert found.differing is not None
    assert found.differing.batch_size == 4
    assert found.differing.count == math.ceil(found.differing.of / 4) > 0  # the first and every fourth after it
    assert found.differing.share == found.differing.count / found.differing.of


@pytest.mark.parametrize(
    ("agent", "measured", "says"),
    [
        ("killed", [1, 2], "SIGKILL"),  # as the system does
        ("hungry", [1], "batch size 2: out of memory"),
    ],
)
def test_too_little_memory_ends_the_sweep(agent: str, measured: list[int], says: str, words: Path) -> None:
    found = swept(setup(agent, words), 1, 2, 4)
    assert [size.batch_size for size in found.sizes] == measured
    assert found.stopped is not None
    assert found.stopped.why == "out_of_memory"
    assert says in found.stopped.message


@pytest.mark.parametrize(
    ("agent", "says", "sizes"),
    [
        ("raising", "batch size 4: ValueError: two is company", [1, 2]),
        ("unanswering", "no_word: no word comes to mind", []),
        ("unloadable", "the weights have gone", []),
    ],
)
def test_an_error_ends_the_sweep_in_one_sentence(agent: str, says: str, sizes: list[int], words: Path) -> None:
    found: list[Measured] = []
    with pytest.raises(AgentStoppedError, match=says):
        found.extend(measure(setup(agent, words), (1, 2, 4), lambda text: None))
    assert [size.batch_size for one in found[-1:] for size in one.sizes] == sizes  # what there was is kept


def size(batch: int, rate: float, p50: float = 1.0) -> Size:
    return Size(batch, rate, p50, p50, 0, 1.0, 1)


def test_the_best_is_the_smallest_that_is_nearly_as_fast() -> None:
    assert best([size(1, 50), size(2, 98), size(4, 100), size(8, 99)]).batch_size == 2
    assert best([size(1, 50), size(2, 96), size(4, 100)]).batch_size == 4
    quick = [size(1, 99, 0.01), size(2, 100, 0.02), size(4, 99, 0.04)]
    assert best(quick).batch_size == 4
    assert best([*quick, size(8, 98, 0.08), size(16, 99, 0.16)]).batch_size == 8
    assert best([*quick, size(8, 91, 0.045), size(16, 89, 0.08)]).batch_size == 8
    assert best(quick, 0.0).batch_size == 1


@pytest.mark.parametrize(
    ("rates", "p50", "ends"),
    [
        ([1000, 900], 0.1, False),
        ([1000, 900, 4000, 4080], 0.1, False),
        ([1000, 900, 4000, 4080, 4100], 0.1, True),
        ([1000, 900, 4000, 4080, 4100], 0.004, False),  # a batch that takes no time: larger ones help a scheduler
    ],
)
def test_doubling_ends_after_two_that_bring_nothing(rates: list[int], p50: float, ends: bool) -> None:
    found = [size(2**power, rate, p50) for power, rate in enumerate(rates)]
    assert gained_nothing(found, 0.05) is ends
