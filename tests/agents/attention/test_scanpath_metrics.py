"""Figures and scores of scanpaths against plain loops, closed forms and hand-computed cases."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.attention import scanpath_metrics as metrics

FRAME = (1280, 1024)
POINTS = st.lists(st.tuples(st.integers(0, 1279), st.integers(0, 1023)), min_size=1, max_size=8)


def test_amplitudes():
    path = [(0, 0), (3, 4), (3, 4), (-9, 9)]
    assert metrics.amplitudes(path).tolist() == [5, 0, 13]
    assert metrics.amplitudes([(1, 2)]).tolist() == metrics.amplitudes([]).tolist() == []


@pytest.mark.parametrize(
    ("way", "sector"),
    [
        ((9, 0), "right"),
        ((9, -9), "up right"),
        ((0, -9), "up"),
        ((-9, -9), "up left"),
        ((-9, 0), "left"),
        ((-9, 9), "down left"),
        ((0, 9), "down"),
        ((9, 9), "down right"),
        ((100, -41), "right"),  # 22.3 degrees
        ((100, -42), "up right"),  # 22.8 degrees
        ((100, 41), "right"),
        ((100, 42), "down right"),
    ],
)
def test_directions_are_as_on_the_screen(way, sector):
    counts = metrics.direction_counts([(50, 50), (50 + way[0], 50 + way[1])])
    assert {name: count for name, count in zip(metrics.SECTORS, counts.tolist(), strict=True) if count} == {sector: 1}


def test_a_saccade_of_no_length_has_no_direction():
    assert metrics.direction_counts([(5, 5), (5, 5), (6, 5)]).sum() == 1
    assert metrics.direction_counts([(5, 5)]).tolist() == [0] * 8


@pytest.mark.parametrize(
    ("path", "count_first", "expected"),
    [
        ([(0, 0), (500, 0), (900, 0), (500, 43)], False, (1, 2)),  # at the radius
        ([(0, 0), (500, 0), (900, 0), (500, 44)], False, (0, 2)),
        ([(0, 0), (500, 0), (900, 0), (531, 31)], False, (0, 2)),  # Euclidean: 43.8
        ([(0, 0), (500, 0), (510, 0)], False, (0, 1)),  # the fixation just before does not count
        ([(0, 0), (500, 0), (510, 0), (505, 0)], False, (1, 2)),  # the one before that does
        ([(0, 0), (500, 0), (0, 0)], False, (0, 1)),  # the forced fixation is no place to return to
        ([(0, 0), (500, 0), (0, 0)], True, (1, 2)),
        ([(0, 0), (500, 0), (900, 0), (500, 0), (900, 0), (500, 0)], False, (3, 4)),  # once each, however often
        ([(0, 0), (500, 0)], False, (0, 0)),
        ([(0, 0)], False, (0, 0)),
        ([(0, 0)], True, (0, 0)),
    ],
)
def test_return_fixations(path, count_first, expected):
    assert metrics.return_fixations(path, 43, count_first=count_first) == expected


@given(POINTS, st.integers(1, 700), st.booleans())
def test_return_fixations_against_a_plain_loop(path, radius, count_first):
    kept = path if count_first else path[1:]
    returns = sum(
        any(math.dist(kept[later], kept[earlier]) <= radius for earlier in range(later - 1))
        for later in range(len(kept))
    )
    assert metrics.return_fixations(path, radius, count_first=count_first)[0] == returns


def test_outside_counts_what_lies_off_the_frame():
    assert metrics.outside([(0, 0), (1279.9, 1023.9), (1280, 5), (5, 1024), (-0.1, 5), (-12, 1324)], FRAME) == 4


def test_an_interval_of_a_mean_is_the_normal_one_for_many_stimuli():
    values = np.random.default_rng(1).exponential(2.0, 900)
    low, high = metrics.interval(values, np.ones(900), np.random.default_rng(2), 4000)
    spread = 1.96 * values.std() / 30
    assert low == pytest.approx(values.mean() - spread, abs=0.1 * spread)
    assert high == pytest.approx(values.mean() + spread, abs=0.1 * spread)


def test_an_interval_of_a_rate_is_of_sums_not_of_rates():
    """Two stimuli, rates 1 of 1 and 0 of 99: drawn anew, 1, 0.01 or 0, a quarter, a half, a quarter of the times."""
    low, high = metrics.interval([1, 0], [1, 99], np.random.default_rng(0), 2000)
    assert (low, high) == (0.0, 1.0)
    low, high = metrics.interval([50, 50], [100, 100], np.random.default_rng(0))
    assert (low, high) == (0.5, 0.5)


def test_an_interval_needs_two_stimuli_and_something_to_count():
    assert metrics.interval([1], [2], np.random.default_rng(0)) is None
    assert metrics.interval([0, 0], [0, 0], np.random.default_rng(0)) is None


def test_a_summary():
    figures = metrics.summary([1, 2, 3, 4, 10])
    assert figures["count"] == 5
    assert figures["mean"] == 4
    assert figures["sd"] == pytest.approx(math.sqrt(50 / 4))
    assert (figures["p25"], figures["p50"], figures["p75"], figures["p95"]) == pytest.approx((2, 3, 4, 8.8))
    assert metrics.summary([7])["sd"] == 0
    assert metrics.summary([]) is None


# MultiMatch


def plain_multimatch(first, second, frame, durations=None):
    """Dewhurst et al. 2012 without simplification, by trying every monotone path through the table of saccades."""
    ways = [[(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(path)] for path in (first, second)]
    last = len(ways[0]) - 1, len(ways[1]) - 1

    def routes(i, j):
        if (i, j) == last:
            yield [(i, j)]
            return
        for down, right in ((0, 1), (1, 0), (1, 1)):
            if i + down <= last[0] and j + right <= last[1]:
                for route in routes(i + down, j + right):
                    yield [(i, j), *route]

    def cost(route):
        return sum(math.dist(ways[0][i], ways[1][j]) for i, j in route[1:])

    best = min(cost(route) for route in routes(0, 0))
    possible = []
    for route in routes(0, 0):
        if cost(route) > best + 1e-9:
            continue
        diagonal = math.hypot(*frame)
        turns = [abs(math.atan2(*ways[0][i][::-1]) - math.atan2(*ways[1][j][::-1])) for i, j in route]
        values = {
            "shape": 1 - np.median([math.dist(ways[0][i], ways[1][j]) for i, j in route]) / (2 * diagonal),
            "direction": 1 - np.median([min(turn, 2 * math.pi - turn) for turn in turns]) / math.pi,
            "length": 1
            - np.median([abs(math.hypot(*ways[0][i]) - math.hypot(*ways[1][j])) for i, j in route]) / diagonal,
            "position": 1 - np.median([math.dist(first[i], second[j]) for i, j in route]) / diagonal,
        }
        if durations is not None:
            pairs = [(durations[0][i], durations[1][j]) for i, j in route]
            values["duration"] = 1 - np.median([abs(a - b) / max(a, b) for a, b in pairs])
        possible.append(values)
    return possible


@given(st.randoms(use_true_random=False), st.integers(3, 5), st.integers(3, 5), st.booleans())
def test_multimatch_against_every_route(chance, one, other, timed):
    pytest.importorskip("multimatch_gaze")
    paths = [[(chance.randrange(1280), chance.randrange(1024)) for _ in range(length)] for length in (one, other)]
    times = tuple([chance.uniform(50, 600) for _ in path] for path in paths) if timed else None
    found = metrics.multimatch(*paths, FRAME, times)
    assert list(found) == list(metrics.MULTIMATCH if timed else metrics.MULTIMATCH[:4])
    possible = plain_multimatch(*paths, FRAME, times)
    assert any(found == pytest.approx(values, abs=1e-9) for values in possible)


def test_multimatch_needs_three_fixations():
    pytest.importorskip("multimatch_gaze")
    path = [(1, 2), (3, 9), (5, 6)]
    assert metrics.multimatch(path, path[:2], FRAME) is None
    assert metrics.multimatch(path[:1], path, FRAME) is None


def test_edges_are_one_pixel_wide():
    # The window of 10 around (50, 50) covers 45 to 55 both ways.
    assert metrics.edge_share([(50, 50)], 10) is None
    for place, on_edge in (
        ((56, 50), 1),
        ((44, 50), 1),
        ((44, 55), 1),
        ((57, 50), 0),
        ((43, 50), 0),
        ((52, 50), 0),
        ((50, 44), 1),
    ):
        assert metrics.edge_share([(50, 50), place], 10) == on_edge
    assert metrics.edge_share([(50, 50), (90, 90), (56, 50)], 10) == 0.5
    assert metrics.edge_share([(50, 50), (59, 50)], 10, within=4) == 1
