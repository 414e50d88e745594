"""Forecasts against closed forms, and in runs whose clock is simulated."""

import heapq
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from serving.files import line_lengths
from serving.runs.estimates import Estimate, within
from serving.runs.forecast import Forecast, row_lengths, unix_time
from serving.runs.forecast_sample import spread

START = 1_700_000_000.0


def simulated(
    lengths: Any,
    seconds_of: Callable[[list[int]], float],
    until: int,
    *,
    batch_size: int = 1,
    workers: int = 1,
    known: bool = True,
    preparing: float = 0.0,
    cold: float = 1.0,
) -> tuple[Forecast, float]:
    """A run of ``workers`` that is always busy, at the batch that brings ``until`` answers: its forecast, and the
    seconds until its end. ``seconds_of`` a batch of rows in the agent; a worker's first batch takes ``cold`` times as
    long."""
    count = len(lengths)
    asked = spread(count, batch_size, workers)
    asked += sorted({*range(count)} - {*asked})
    told = Forecast(np.ones(count), np.array(lengths, float), batch_size=batch_size, workers=workers if known else None)
    free = [(START, worker) for worker in range(workers)]
    batches = []
    for first in range(0, count, batch_size):
        batch = asked[first : first + batch_size]
        at, worker = heapq.heappop(free)
        seconds = seconds_of(batch) * (cold if first < workers * batch_size else 1.0)
        end = at + max(seconds, preparing * len(batch))
        heapq.heappush(free, (end, worker))
        batches.append((end, seconds, batch))
    batches.sort(key=lambda batch: batch[0])
    noted = 0
    for end, seconds, batch in batches:
        if noted >= until:
            break
        for position in batch:
            told.note(position, end, preparing, seconds, len(batch))
        noted += len(batch)
        now = end
    return told, batches[-1][0] - now


@pytest.mark.parametrize(
    ("count", "batch_size", "workers"), [(100, 1, 1), (10_000, 8, 2), (30_000, 32, 4), (999, 7, 3)]
)
def test_a_sample_has_its_size_and_comes_from_everywhere(count: int, batch_size: int, workers: int) -> None:
    places = spread(count, batch_size, workers)
    assert len(set(places)) == len(places)
    assert min(places) >= 0
    assert max(places) < count
    assert count // 25 - batch_size < len(places) <= count // 25
    # No piece of the set that is as long as five clusters' parts is without a place.
    runs = 1 + sum(after != before + 1 for before, after in pairwise(places))
    gaps = np.diff([-1, *sorted(places), count])
    assert gaps.max() <= 3 * count / max(1, runs - workers) + batch_size


def test_half_of_a_sample_comes_from_everywhere() -> None:
    places = spread(10_000, 4, 2)[8:]  # without the first batches of two workers
    for part in (0.5, 1.0):
        begun = sorted(places[: int(part * len(places))])
        clusters = len(begun) / 4
        assert np.diff([0, *begun, 10_000]).max() <= 3 * 10_000 / clusters


def test_a_sample_sees_all_conditions_of_a_set_in_which_they_alternate() -> None:
    for period in (2, 4, 5, 10, 20, 25):
        seen = np.bincount(np.array(spread(50_000)) % period, minlength=period) / 2000 * period
        assert seen.min() > 0.7
        assert seen.max() < 1.3


@pytest.mark.parametrize("count", [2400, 50_000])
def test_a_sample_goes_from_short_rows_to_long_ones(count: int) -> None:
    lengths = np.random.default_rng(0).permutation(count).astype(float)
    places = spread(count, 8, 2, lengths)
    assert {*places} == {*spread(count, 8, 2)}
    clusters = lengths[places[16:]].reshape(-1, 8).mean(axis=1)  # without the first batches of two workers
    falls = np.flatnonzero(np.diff(clusters) < 0)
    assert len(falls) == (0 if len(clusters) < 32 else 1)  # a pass, or two
    for fall in falls:
        assert fall == (len(clusters) - 1) // 2


def test_few_stimuli_have_no_sample_and_many_a_bounded_one() -> None:
    assert spread(24) == []
    assert spread(0) == []
    assert len(spread(25)) == 1
    assert len(spread(10**6, 32, 8)) == 4096


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("known", [True, False])
def test_equal_answers_take_what_is_left_of_them(workers: int, known: bool) -> None:
    told, _ = simulated([10.0] * 1000, lambda batch: 0.5, 100, workers=workers, known=known)
    left = told.left()
    assert left is not None
    assert left.value == pytest.approx(900 * 0.5 / workers, rel=0.02)
    assert left.low is not None
    assert left.high is not None
    assert left.low < left.value < left.high
    assert told.rate() == pytest.approx(workers / 0.5, rel=0.05)
    assert told.workers() == workers
    later = told.left(START + 100 * 0.5 / workers + 10.0)
    assert later is not None
    assert later.value == pytest.approx(left.value - 10.0, abs=1.0)


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
@pytest.mark.parametrize("is_padded", [False, True])
def test_work_that_follows_length_is_foretold_in_any_order(order: str, is_padded: bool) -> None:
    draw = np.random.default_rng(0)
    lengths = draw.lognormal(4, 0.7, 8000)
    if order != "shuffled":
        lengths.sort()
    if order == "descending":
        lengths = lengths[::-1]

    def seconds_of(batch: list[int]) -> float:
        rows = lengths[batch]
        return float(0.02 + 0.001 * (rows.max() * len(rows) if is_padded else rows.sum()))

    told, truth = simulated(lengths, seconds_of, 400, batch_size=8, workers=2)
    left = told.left()
    assert left is not None
    assert left.value == pytest.approx(truth, rel=0.05)


def test_first_batches_that_are_slow_are_left_out() -> None:
    told, truth = simulated([1.0] * 4000, lambda batch: 0.8, 200, batch_size=8, workers=2, cold=10.0)
    left = told.left()
    assert left is not None
    assert left.value == pytest.approx(truth, rel=0.02)


def test_preparing_counts_where_workers_wait_for_it() -> None:
    told, truth = simulated([1.0] * 2000, lambda batch: 0.02, 100, preparing=0.5)
    left = told.left()
    assert left is not None
    assert left.value == pytest.approx(truth, rel=0.03)


def test_attempts_of_requests_without_an_answer_yet_are_work() -> None:
    told = Forecast(np.ones(1000), np.ones(1000), batch_size=4, workers=1)
    for batch in range(60):  # of the four rows of each a filter has refused one, which is tried again at the end
        for row in range(3):
            told.note(batch * 16 + row, START + batch + 1, 0.0, 1.0, 4)
    left = told.left()
    assert left is not None
    assert left.value == pytest.approx((1000 - 180) / 3, rel=0.01)


def test_a_wait_is_as_long_before_a_long_batch_as_before_a_short_one() -> None:
    """Long rows are answered first, then short ones; half of those that are left are long."""
    lengths = np.tile([100.0, 10.0], 500)
    told = Forecast(np.ones(1000), lengths, workers=1)
    now = START
    for position in [*range(0, 200, 2), *range(201, 401, 2)]:
        seconds = lengths[position] / 100
        now += 0.1 + seconds
        told.note(position, now, 0.0, seconds, 1)
    left = told.left()
    assert left is not None
    assert left.value == pytest.approx(400 * 1.1 + 400 * 0.2, rel=0.03)


def test_a_pause_of_the_run_is_no_work() -> None:
    told = Forecast(np.ones(1000), np.ones(1000), workers=1)
    for number in range(100):
        pause = 0.0 if number < 50 else 86_400.0
        told.note(number * 10, START + number + pause, 0.0, 1.0, 1)
    left = told.left()
    assert left is not None
    assert left.value == pytest.approx(900, rel=0.01)
    assert told.rate() == pytest.approx(1.0, rel=0.01)


def test_conversations_are_foretold_by_their_rate() -> None:
    told = Forecast(np.ones(1000), np.ones(1000), workers=4, in_turns=True)
    for number in range(100):  # each took 10 s, in which turns of four others were answered, too
        told.note_talk(number * 10, START + 2.0 * number, 10.0)
    left = told.left()
    assert left is not None
    assert left.value == pytest.approx(1800, rel=0.06)  # the time begins 10 s before the first end


def test_conversations_that_all_begin_at_once_are_not_taken_for_fast_ones() -> None:
    """The first eight of 100,000, as a laptop had them: they ended within half a minute, after two and a half."""
    ended = [111.321, 129.912, 129.916, 129.921, 129.924, 140.434, 140.448, 140.453]
    took = [137.753, 156.447, 156.425, 156.407, 156.369, 166.967, 166.947, 166.918]
    told = Forecast(np.ones(100_000), np.full(100_000, 76.0), in_turns=True)
    for position, (end, seconds) in enumerate(zip(ended, took, strict=True)):
        told.note_talk(position, START + end, seconds)
    whole = 140.453 - min(end - seconds for end, seconds in zip(ended, took, strict=True))
    assert told.rate() == pytest.approx(8 / whole)
    left = told.left()
    assert left is not None and left.low is not None and left.high is not None  # noqa: PT018
    assert left.value == pytest.approx(99_992 * whole / 8, rel=1e-6)
    assert left.low < 99_992 * 156 / 16 < left.value  # as many again may be as good as at their end
    assert told.talks().is_of_few


@pytest.mark.parametrize(("at_a_time", "ended"), [(8, 8), (8, 12), (8, 20), (8, 100), (16, 40), (32, 400), (1, 5)])
def test_intervals_hold_nine_of_ten_of_conversations(at_a_time: int, ended: int) -> None:
    """Runs in which a conversation begins when another ends; the forecast is made on the way, at ``ended``."""
    held = []
    for seed in range(100):
        draw = np.random.default_rng(seed)
        seconds = 100 * draw.lognormal(0, 0.3, 40 * ended + 400)
        slots = [(START, slot) for slot in range(at_a_time)]
        talks = []
        for took in seconds:
            at, slot = heapq.heappop(slots)
            heapq.heappush(slots, (at + took, slot))
            talks.append((at + took, took))
        talks.sort()
        told = Forecast(np.ones(len(talks)), np.ones(len(talks)), in_turns=True)
        for position, (end, took) in enumerate(talks[:ended]):
            told.note_talk(position, end, took)
        left = told.left()
        assert left is not None and left.low is not None and left.high is not None  # noqa: PT018
        held.append(left.low <= talks[-1][0] - talks[ended - 1][0] <= left.high)
    assert np.mean(held) >= 0.9


def test_rows_that_no_worker_was_asked_are_done() -> None:
    told = Forecast(np.ones(300), np.ones(300), workers=1)
    for number in range(100):
        told.note(number, 0.0, 0.0, 0.0, 1)
    for number in range(100, 200):
        told.note(number, START + number, 0.0, 1.0, 1)
    left = told.left()
    assert left is not None
    assert left.value == pytest.approx(100, rel=0.01)


def test_nothing_is_foretold_of_few_batches() -> None:
    told, _ = simulated([1.0] * 100, lambda batch: 1.0, 2)
    assert told.left() is None
    assert told.rate() is None


def sum_of(work: Any, batch: list[int]) -> float:
    return float(work[batch].sum())


def test_intervals_hold_nine_of_ten() -> None:
    """150 sets whose work no length explains, sorted by it or not; the forecast is made after 5 %."""
    held = []
    for seed in range(150):
        draw = np.random.default_rng(seed)
        work = 0.1 * draw.lognormal(0, 0.8, 1500)
        if seed % 2:
            work.sort()
        told, truth = simulated(draw.uniform(1, 100, 1500), partial(sum_of, work), 75)
        left = told.left()
        assert left is not None
        assert left.low is not None
        assert left.high is not None
        held.append(left.low <= truth <= left.high)
    assert 0.85 <= np.mean(held) <= 0.98


@pytest.mark.parametrize("block", [3, 7, 1 << 20])
def test_lengths_of_rows(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_lengths, "BLOCK", block)
    lines = [b"x" * number + b"\n" for number in (5, 0, 1, 30, 2)]
    path = tmp_path / "rows"
    path.write_bytes(b"".join(lines))
    assert row_lengths(path).tolist() == [len(line) for line in lines]
    path.write_bytes(b"")
    assert row_lengths(path).tolist() == []


@pytest.mark.parametrize("freedom", [2, 3, 5, 10, 200])
def test_an_interval_is_that_of_student(freedom: int) -> None:
    found = within(100.0, 0.01, freedom)
    factor = np.exp(float(stdtrit(freedom, 0.95)) * 0.1)
    assert found.low == pytest.approx(100 / factor, rel=0.002)
    assert found.high == pytest.approx(100 * factor, rel=0.002)


def test_an_estimate_as_text_and_later() -> None:
    estimate = Estimate(10.0, 8.0, 13.0)
    assert estimate.text(lambda value: f"{value:g} s") == "10 s (8 s to 13 s)"
    assert Estimate(10.0).text(str) == "10.0"
    assert estimate.after(9.0) == Estimate(1.0, 0.0, 4.0)
    assert estimate.times(2) == Estimate(20.0, 16.0, 26.0)
    assert unix_time("2023-11-14T22:13:20.250Z") == START + 0.25
