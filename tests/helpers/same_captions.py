"""Captions of one model from two batches: the words are promised to be equal, scores within a thousandth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

SCORE = 1e-3  # as docs/vision.md promises: matrix products of another size round otherwise on each processor


def assert_same_captions(captions: Sequence[dict[str, Any]], wanted: Sequence[dict[str, Any]]) -> None:
    """All but ``score`` is equal, and scores are within ``SCORE``."""
    assert words(captions) == words(wanted)
    assert [answer["score"] for answer in captions] == pytest.approx([answer["score"] for answer in wanted], abs=SCORE)


def words(captions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The captions without their scores."""
    return [{key: value for key, value in answer.items() if key != "score"} for answer in captions]
