"""Comparisons of small sets against figures computed by hand or from the scores of single pairs."""

from statistics import mean

import numpy as np
import pytest

from agents.attention import scanpath_metrics as metrics
from agents.attention.scanpath_comparison import Comparison, Options, Recorded, shared_stimuli
from agents.errors import InputError

FRAME = (1280, 1024)
SCORES = metrics.MULTIMATCH[:4]


def made(stimulus, subject, *points, frame=FRAME, **more):
    return Recorded(stimulus, subject, subject, points, frame, **more)


def drawn(seed, stimuli=("a", "b", "c"), subjects=("1", "2"), length=6, **more):
    chance = np.random.default_rng(seed)
    return [
        made(stimulus, subject, *((float(x), float(y)) for x, y in chance.random((length, 2)) * FRAME), **more)
        for stimulus in stimuli
        for subject in subjects
    ]


def scored(left, right, frame=FRAME):
    """The scores of one pair, straight from the metrics."""
    return metrics.multimatch(left, right, frame)


def means(rows, condition):
    (row,) = [row for row in rows if row["condition"] == condition]
    return {score: own["mean"] for score, own in row["scores"].items()}


@pytest.fixture
def _package():
    pytest.importorskip("multimatch_gaze")


def test_figures_of_hand_made_paths():
    paths = [
        made("a", "1", (640, 512), (640, 112), (340, 512), (640, 112), (640, 213), window=200, pixels_per_degree=50),
        made("b", "2", (640, 512), (690, 512), (1300, 512), pixels_per_degree=100),
    ]
    found = Comparison(paths, None, Options()).figures()["first"]
    lengths = [400, 500, 500, 101, 50, 610]
    assert (found["paths"], found["subjects"], found["fixations_off_the_frame"]) == (2, 2, 1)
    assert (found["fixations"]["mean"], found["amplitude_px"]["count"]) == (4, 6)
    assert found["amplitude_px"]["mean"] == pytest.approx(mean(lengths))
    assert found["amplitude_share_of_width"]["p50"] == pytest.approx(450 / 1280)
    degrees = [8, 10, 10, 2.02, 0.5, 6.1]
    assert found["amplitude_degrees"]["mean"] == pytest.approx(mean(degrees))
    # up; down left; up right; down; right; right
    shares = {name: share for name, share in found["directions"].items() if share}
    assert shares == pytest.approx({"up": 1 / 6, "down left": 1 / 6, "up right": 1 / 6, "down": 1 / 6, "right": 2 / 6})
    assert (found["horizontal"], found["vertical"]) == pytest.approx((2 / 6, 2 / 6))
    # Of the fixations after the first one, (640, 112) returns; the rate is of 3 and of 1.
    assert (found["return_rate"]["count"], found["return_rate"]["of"]) == (1, 4)
    # (640, 213) is 101 px from (640, 112), one pixel outside its window.
    assert (found["edge_share"]["count"], found["edge_share"]["of"]) == (1, 6)


def test_lengths_of_options_are_scaled_with_the_frame():
    """Half the frame, half the radius and half the window: the same counts."""
    large = [made("a", "1", (640, 512), (640, 112), (340, 512), (640, 153), (640, 253.5))]
    small = [made("a", "1", *((x / 2, y / 2) for x, y in large[0].fixations), frame=(640, 512))]
    one, other = (Comparison(paths, None, Options()).figures()["first"] for paths in (large, small))
    assert one["return_rate"] == other["return_rate"]
    assert one["return_rate"]["count"] == 1
    assert one["edge_share"] == other["edge_share"]
    assert one["edge_share"]["count"] == 1
    assert one["amplitude_share_of_width"] == pytest.approx(other["amplitude_share_of_width"])
    strict = Comparison(small, None, Options(return_radius=40)).figures()["first"]
    assert strict["return_rate"]["count"] == 0


def test_random_twins_keep_count_first_fixation_and_frame():
    paths = drawn(1, length=9, durations=tuple([1.0] * 9))
    comparison = Comparison(paths, None, Options())
    twins = [twin for twin, _ in comparison.each("random")]
    assert len(twins) == len(paths)
    for path, twin in zip(paths, twins, strict=True):
        assert (twin.fixations[0], len(twin.fixations), twin.durations) == (path.fixations[0], 9, None)
        assert metrics.outside(twin.fixations, FRAME) == 0
        assert set(twin.fixations[1:]).isdisjoint(path.fixations)
    assert [twin for twin, _ in Comparison(paths, None, Options()).each("random")] == twins
    assert [twin for twin, _ in Comparison(paths, None, Options(seed=1)).each("random")] != twins


@pytest.mark.usefixtures("_package")
def test_a_mean_is_of_the_stimuli_whatever_their_number_of_pairs():
    first = [*drawn(1, ("a",), ("m", "n")), *drawn(2, ("b",), ("m",))]
    second = [*drawn(3, ("a",), ("1", "2")), *drawn(4, ("b",), ("1",))]
    comparison = Comparison(first, second, Options())
    rows = comparison.similarity()
    each = {
        stimulus: [
            scored(one.fixations, other.fixations)
            for one in first
            for other in second
            if one.stimulus == other.stimulus == stimulus
        ]
        for stimulus in "ab"
    }
    assert [len(found) for found in each.values()] == [4, 1]
    expected = {score: mean(mean(found[score] for found in each[s]) for s in "ab") for score in each["b"][0]}
    assert means(rows, "first : second") == pytest.approx(expected)
    assert rows[0]["pairs"] == 5
    assert rows[0]["scores"]["shape"]["low"] <= expected["shape"] <= rows[0]["scores"]["shape"]["high"]


@pytest.mark.usefixtures("_package")
def test_every_condition_against_the_scores_of_its_pairs():
    """Two stimuli, so that there is one other; frames of different sizes, so that paths must be scaled."""
    first = [
        made("a", "m", (600, 500), (100, 200), (900, 700), (300, 900)),
        made("b", "m", (300, 256), (50, 400), (600, 20), (100, 100), frame=(640, 512)),
    ]
    second = [*drawn(5, ("a", "b"), ("1", "2", "3"), length=5)]
    comparison = Comparison(first, second, Options())
    rows = comparison.similarity()
    paths = {(path.stimulus, path.subject): path.scaled(FRAME) for path in (*first, *second)}
    twins = {path.stimulus: path.scaled(FRAME) for path, _ in comparison.each("random")}

    def expected(pairs):
        scores = [[scored(*pair) for pair in of_stimulus] for of_stimulus in pairs]
        return {score: mean(mean(pair[score] for pair in of_stimulus) for of_stimulus in scores) for score in SCORES}

    def crossed(left):
        return expected([[(left(name), paths[name, person]) for person in "123"] for name in "ab"])

    others = {"a": "b", "b": "a"}
    assert means(rows, "first : second") == pytest.approx(crossed(lambda name: paths[name, "m"]))
    assert means(rows, "first, other stimulus : second") == pytest.approx(
        crossed(lambda name: paths[others[name], "m"])
    )
    assert means(rows, "random : second") == pytest.approx(crossed(lambda name: twins[name]))
    people = [("1", "2"), ("1", "3"), ("2", "3")]
    assert means(rows, "second : second") == pytest.approx(
        expected([[(paths[name, left], paths[name, right]) for left, right in people] for name in "ab"])
    )
    assert len(rows) == 4  # a set of one subject is not compared with itself


@pytest.mark.usefixtures("_package")
def test_paths_are_compared_in_one_frame():
    second = drawn(1)
    first = [
        Recorded(path.stimulus, "m", "m", tuple((x / 4, y / 2) for x, y in path.fixations), (320, 512))
        for path in second[::2]
    ]
    rows = Comparison(first, second[::2], Options()).similarity()
    assert means(rows, "first : second") == pytest.approx(dict.fromkeys(SCORES, 1))


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("durations", "timed"),
    [((100.0, 200.0, 300.0), True), (None, False), ((100.0, 0.0, 300.0), False)],
)
def test_durations_count_where_both_have_them(durations, timed):
    points = [(100, 100), (500, 700), (900, 300)]
    first = [made("a", "m", *points, durations=durations)]
    second = [made("a", "1", *points, durations=(100.0, 200.0, 150.0))]
    scores = means(Comparison(first, second, Options()).similarity(), "first : second")
    assert scores.get("duration") == (1 if timed else None)  # the median of 0 and 0, of two saccades


@pytest.mark.usefixtures("_package")
def test_paths_too_short_for_multimatch_are_counted():
    first = [made("a", "m", (10, 10), (900, 900)), made("b", "m", (1, 1), (5, 900), (700, 2))]
    second = [made("a", "1", (10, 10), (900, 900)), made("b", "1", (1, 1), (5, 900), (700, 2))]
    row = Comparison(first, second, Options()).similarity()[0]
    assert (row["pairs"], row["too_short_for_multimatch"]) == (2, 1)
    assert row["scores"]["shape"]["stimuli"] == 1


@pytest.mark.usefixtures("_package")
def test_with_one_stimulus_there_is_no_other():
    rows = Comparison(drawn(1, ("a",)), drawn(2, ("a",)), Options()).similarity()
    assert [row["condition"] for row in rows] == [
        "first : second",
        "random : second",
        "second : second",
        "first : first",
    ]
    assert rows[0]["scores"]["shape"]["low"] is None


def test_sets_that_share_nothing_are_refused_with_names_of_both():
    with pytest.raises(InputError, match="'a', 'b', 'c' in the first, 'd', 'e', 'f', 'g', 'h' in the second"):
        Comparison(drawn(1), drawn(2, tuple("defghi")), Options())


def test_a_path_is_scaled_side_by_side():
    one = Recorded("s", "a", "a", ((10, 10), (20, 5)), (100, 50))
    assert one.scaled((200, 25)) == ((20, 5), (40, 2.5))


def path(stimulus, *names, target=None):
    return Recorded(stimulus, "s", "s", ((1, 2),), (10, 10), names=names, target=target)


@pytest.mark.parametrize(
    ("first", "second", "pairs", "ambiguous"),
    [
        ([path("a"), path("b")], [path("b"), path("c")], [("b", "b")], []),
        ([path("x/cat", "cat")], [path("cat.jpg", "cat")], [("x/cat", "cat.jpg")], []),
        ([path("s1", "s1", "img004", "cat")], [path("img004", "img004")], [("s1", "img004")], []),
        # An equal name comes before a shared one.
        (
            [path("a/1", "1"), path("b/1", "1")],
            [path("b/1", "1"), path("a/1", "1")],
            [("a/1", "a/1"), ("b/1", "b/1")],
            [],
        ),
        ([path("a/1", "1")], [path("b/1", "1"), path("c/1", "1")], [], ["a/1"]),
        ([path("b/1", "1"), path("c/1", "1")], [path("a/1", "1")], [], ["b/1", "c/1"]),
        # Search for different things, or for nothing, is not one stimulus; an unknown target may be any.
        ([path("a", target="cup")], [path("a", target="fork")], [], []),
        ([path("a", target="cup")], [path("a", target="")], [], []),
        ([path("a", target="cup")], [path("a", target=None)], [("a", "a")], []),
        (
            [path("a [cup]", "a", target="cup")],
            [path("a.jpg [fork]", "a", target="fork"), path("a.jpg [cup]", "a", target="cup")],
            [("a [cup]", "a.jpg [cup]")],
            [],
        ),
        ([path("gray004")], [path("img004")], [], []),
    ],
)
def test_shared_stimuli(first, second, pairs, ambiguous):
    assert shared_stimuli(first, second) == (pairs, ambiguous)


@pytest.mark.usefixtures("_package")
def test_pairs_are_drawn_by_the_seed():
    paths = drawn(1, subjects=tuple("12345678"))
    rows = [Comparison(paths, None, Options(pairs=3, seed=seed)).similarity() for seed in (0, 0, 1)]
    assert rows[0] == rows[1]
    assert [row["pairs"] for row in rows[0]] == [9] * 3
    assert rows[0][0]["scores"]["shape"]["mean"] != rows[2][0]["scores"]["shape"]["mean"]
