"""Statistics of answers: against SciPy, hand-made answers, and through the command."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from agents.answer_numbers import cliffs_delta, cohens_d
from agents.vision.colors import WORDS
from judging.answer_statistics import answer_statistics


def _answer(asked: str, agent: str, stimulus: str = "s", **answer: Any) -> dict[str, Any]:
    truth = "human" if agent.startswith("human") else "machine"
    speaker = answer.pop("speaker", None)
    return {"asked": asked, "agent": agent, "truth": truth, "stimulus": stimulus, "speaker": speaker, "answer": answer}


def _by_name(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["statistic"], row["of"]): row for row in rows}


def test_effects_are_those_of_scipy() -> None:
    chance = np.random.default_rng(0)
    one, other = chance.integers(0, 9, 30).astype(float), chance.integers(2, 12, 50).astype(float)
    superior = mannwhitneyu(one, other).statistic / (30 * 50)  # ties count half
    assert cliffs_delta(one, other) == pytest.approx(2 * superior - 1)
    pooled = math.sqrt((29 * one.var(ddof=1) + 49 * other.var(ddof=1)) / 78)
    assert cohens_d(one, other) == pytest.approx((one.mean() - other.mean()) / pooled)
    assert cohens_d(one[:1], other) is None
    assert cohens_d(np.ones(3), np.ones(4)) is None
    assert cliffs_delta(np.ones(3), np.ones(4)) == 0
    assert cohens_d(np.full(3, 0.1), np.full(7, 0.7)) is None  # numpy's deviation of either is 1e-17, not 0
    assert cliffs_delta(np.full(3, 0.1 + 0.2), np.full(4, 0.3)) == 0


def test_captions() -> None:
    people = [_answer("image_captioning", f"human:{at}", text=text) for at, text in enumerate(("A dog.", "Two Cats!"))]
    rows = _by_name(answer_statistics([*people, _answer("image_captioning", "blip", text="a man, a dog")]))
    assert [rows[name, "people"]["mean"] for name in ("words", "letters", "capitals", "punctuation")] == [
        2,
        5.5,
        1.5,
        1,
    ]
    assert rows["letters", "people"]["sd"] == pytest.approx(math.sqrt(4.5))
    words = rows["words", "blip"]
    assert (words["number"], words["mean"], words["sd"]) == (1, 4, None)
    assert (words["d"], words["delta"], words["direction"]) == (None, 1, "more")
    assert rows["capitals", "blip"]["delta"] == -1
    assert rows["capitals", "blip"]["direction"] == "less"
    assert rows["punctuation", "blip"]["direction"] == "as people"


def test_a_message_of_several_excerpts_counts_once_and_of_the_judged_speaker_alone() -> None:
    said = [{"speaker": "AB"[at % 2], "text": "no " * (at + 1)} for at in range(6)]
    excerpts = [_answer("conversation", "curie", speaker="A", messages=said[:some]) for some in (3, 6)]
    other = _answer("conversation", "curie", "s2", speaker="A", messages=said[:3])
    rows = _by_name(answer_statistics([*excerpts, other]))
    words = rows["words", "curie"]
    assert (words["number"], words["mean"]) == (5, pytest.approx((1 + 3 + 5 + 1 + 3) / 5))
    assert words["d"] is words["delta"] is None  # without people


def test_words_colors_labels() -> None:
    from wordfreq import zipf_frequency

    rows = _by_name(answer_statistics([_answer("word_association", "human:1", word="ice-cream")]))
    assert rows["letters", "people"]["mean"] == 8
    assert rows["frequency", "people"]["mean"] == zipf_frequency("ice-cream", "en")
    colors = [_answer("color_estimation", "human:1", color=word) for word in ("red", "red", "blue", "teal")]
    colors += [_answer("color_estimation", "mmcq", color=word) for word in ("red", "blue")]
    rows = _by_name(answer_statistics(colors))
    shares = {name: rows[f"share of {name}", "people"]["mean"] for name in (*WORDS, "other words")}
    assert {name: share for name, share in shares.items() if share} == {"red": 0.5, "blue": 0.25, "other words": 0.25}
    assert rows["share of blue", "mmcq"]["delta"] == 0.25  # of two values the difference of the shares
    rows = _by_name(answer_statistics([_answer("object_detection", "a", labels=["cat", "dog", "cat", "sofa"])]))
    assert [rows[name, "a"]["mean"] for name in ("labels", "distinct labels", "letters of a label")] == [4, 3, 3.25]


def test_scanpaths() -> None:
    square = [[64, 0], [0, 0], [0, 48], [0, 1], [64, 48]]
    paths = [_answer("attention_prediction", "ivsn", fixations=one, frame=[64, 48]) for one in (square, [[32, 24]])]
    rows = _by_name(answer_statistics(paths))
    assert rows["fixations", "ivsn"]["mean"] == 3
    saccades = np.array([64, 48, 47, math.hypot(64, 47)]) / 64
    assert rows["saccade, widths", "ivsn"]["mean"] == pytest.approx(saccades.mean())
    assert rows["saccade, widths", "ivsn"]["number"] == 1  # one fixation has none
    assert rows["distance to the centre, widths", "ivsn"]["mean"] == pytest.approx(
        np.mean([np.mean([40, 40, 40, math.hypot(32, 23), 40]) / 64, 0])
    )
    assert rows["share of returns", "ivsn"]["mean"] == pytest.approx(1 / 3)  # the fourth, to the second
