"""Ray told of eight GPUs: which of them each replica gets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pretended_gpus
import pytest

from serving.bench import child_process

pytestmark = pytest.mark.slow

Devices = dict[str, list[str]]

SMALL: dict[str, Any] = {"gib": 6}
CASES: dict[str, tuple[dict[str, dict[str, Any]], int | None]] = {
    "1": ({"a": SMALL}, 1),
    "auto": ({"a": SMALL}, None),
    "16": ({"a": SMALL}, 16),
    "pair": ({"a": {"gib": 50}, "b": {"gib": 60}}, 1),
    "packed": ({"large": {"gib": 40, "devices": 6}, "a": {"gib": 30}, "b": {"gib": 20}, "c": {"gib": 20}}, 1),
    "killed": ({"a": SMALL}, 4),
}


@pytest.fixture(scope="module")
def placed() -> dict[str, Devices]:
    return dict(child_process.run(pretended_gpus.place_all, CASES))


def test_replicas_have_gpus_of_their_own_as_far_as_there_are(placed: dict[str, Devices]) -> None:
    counts = {case: Counter(placed[case]["a"]) for case in ("1", "auto", "16", "killed")}
    assert {case: (len(found), set(found.values())) for case, found in counts.items()} == {
        "1": (1, {1}),
        "auto": (8, {1}),
        "16": (8, {2}),
        "killed": (4, {1}),
    }


def test_a_pair_is_loaded_together(placed: dict[str, Devices]) -> None:
    [a], [b] = placed["pair"]["a"], placed["pair"]["b"]
    assert a != b  # 50 and 60 GiB, on GPUs of 80


def test_agents_share_a_gpu_as_placed_and_never_that_of_a_model_on_several(placed: dict[str, Devices]) -> None:
    found = placed["packed"]
    [large] = found["large"]
    whole = set(large.removeprefix("cuda:").split(","))
    [a], [b], [c] = (found[name] for name in "abc")
    assert b == c  # beside the smaller one
    assert {a, b} | {f"cuda:{gpu}" for gpu in whole} == {f"cuda:{gpu}" for gpu in range(pretended_gpus.GPUS)}
    assert len(whole) == 6


def test_a_workers_replacement_has_its_place(placed: dict[str, Devices]) -> None:
    found = placed["killed"]
    assert found["a again"] == found["a"]
