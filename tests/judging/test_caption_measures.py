"""BLEU and CIDEr-D of captions: against closed forms, sacrebleu's own command and SciPy."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import pearsonr, spearmanr

from judging.caption_measures import bleu, caption_measures, plain_words
from judging.cider import CiderD, ngrams


def _caption(agent: str, stimulus: str, text: str) -> dict[str, Any]:
    truth = "human" if agent.startswith("human") else "machine"
    answer = {"text": text}
    return {"asked": "image_captioning", "agent": agent, "truth": truth, "stimulus": stimulus, "answer": answer}


PEOPLE = [
    _caption("human:1", "s1", "A dog runs on the grass."),
    _caption("human:2", "s1", "a brown dog runs on grass"),
    _caption("human:3", "s2", "Two men ride a red bus"),
    _caption("human:4", "s2", "men sit in a red bus"),
    _caption("human:5", "s2", "people in a bus"),
]


def _scores(**of: float) -> list[dict[str, Any]]:
    return [
        {"asked": "image_captioning", "judge": "svm", "agent": name, "detectability": value}
        for name, value in {"all": 0.5, **of}.items()
    ]


def test_ngrams() -> None:
    assert ngrams(["a", "b", "a", "b"])[1] == {("a", "b"): 2, ("b", "a"): 1}
    assert ngrams(["a"])[1:] == [{}, {}, {}]


def test_cider_d_in_closed_form() -> None:
    """Two pictures; every n-gram stands in one of them, so that all weights are log 2, which the cosine cancels."""
    cider = CiderD([[["a", "b", "c", "d"]], [["p", "q"]]])
    assert cider.score(["a", "b", "c", "d"], [["a", "b", "c", "d"]]) == pytest.approx(10)
    assert cider.score(["p", "q"], [["a", "b", "c", "d"]]) == 0
    # "a b x", one word shorter: 2, 1, 0, 0 n-grams in common of lengths sqrt(3) sqrt(4), sqrt(2) sqrt(3); x is unseen
    near = math.exp(-1 / 72)
    assert cider.score(["a", "b", "x"], [["a", "b", "c", "d"]]) == pytest.approx(
        10 / 4 * near * (2 / math.sqrt(12) + 1 / math.sqrt(6))
    )
    # "a a a a" is clipped: min(4, 1) 1 / (4 . 2)
    assert cider.score(["a"] * 4, [["a", "b", "c", "d"]]) == pytest.approx(10 / 4 / 8)
    # an n-gram of every picture weighs nothing
    assert CiderD([[["a"]], [["a"]]]).score(["a"], [["a"]]) == 0


def test_bleu_is_what_sacrebleu_prints(tmp_path: Path) -> None:
    texts = ["a dog runs on the green grass", "two men sit in a red bus"]
    references = ["a brown dog runs on the grass", "two men ride in a red bus"]
    for name, lines in (("own", texts), ("theirs", references)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    told = subprocess.run(
        [
            sys.executable,
            "-m",
            "sacrebleu",
            tmp_path / "theirs",
            "-i",
            tmp_path / "own",
            "-tok",
            "none",
            "-b",
            "-w",
            "4",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    pairs = [(one.split(), [other.split()]) for one, other in zip(texts, references, strict=True)]
    assert bleu(pairs) == pytest.approx(float(told.stdout), abs=1e-4)


def test_pictures_may_have_unequal_numbers_of_references() -> None:
    """Every n-gram of both captions stands in a reference, and each is as long as its closest reference."""
    pairs = [(["a", "b", "c", "d", "e"], [["a", "b", "c", "d", "x"], ["b", "c", "d", "e"], ["a", "b", "c", "d", "e"]]),
             (["p", "q", "r", "s"], [["p", "q", "r", "s"]])]  # fmt: skip
    assert bleu(pairs) == pytest.approx(100)


def test_people_are_measured_beside_the_others_and_agents_both_ways() -> None:
    told = caption_measures([*PEOPLE, _caption("git", "s1", "A dog runs on grass"), _caption("git", "s9", "a")], [])
    people, git = told["agents"]
    assert (people["captions"], people["bleu"], git["captions"]) == (5, None, 1)  # of s9 no person wrote
    words = {one["agent"]: plain_words(one["answer"]["text"]) for one in PEOPLE}
    first, second = words["human:1"], words["human:2"]
    cider = CiderD([[first, second], [words[f"human:{at}"] for at in (3, 4, 5)]])
    own = plain_words("a dog runs on grass")
    assert git["cider_d"] == pytest.approx(cider.score(own, [first, second]))
    assert git["cider_d_one_left_out"] == pytest.approx((cider.score(own, [first]) + cider.score(own, [second])) / 2)
    assert git["bleu"] == pytest.approx(bleu([(own, [first, second])]))
    assert git["bleu_one_left_out"] == pytest.approx(bleu([(own, [first]), (own, [second])]))
    third, fourth, fifth = (words[f"human:{at}"] for at in (3, 4, 5))
    pairs = [(first, [second]), (second, [first]), (third, [fourth, fifth]), (fourth, [third, fifth]),
             (fifth, [third, fourth])]  # fmt: skip
    assert people["bleu_one_left_out"] == pytest.approx(bleu(pairs))
    assert people["cider_d_one_left_out"] == pytest.approx(sum(cider.score(*pair) for pair in pairs) / 5)
    assert "5 captions by people of 2 pictures, 2 to 3 of each. COCO has 5" in told["note"]


def test_correlations_are_scipys_over_three_agents_at_least() -> None:
    texts = {"a": "a dog runs on the grass", "b": "a dog on the street", "c": "a cat", "d": "men in a red bus"}
    answers = [*PEOPLE, *(_caption(name, stimulus, text) for name, text in texts.items() for stimulus in ("s1", "s2"))]
    of = {"a": 0.6, "b": 0.55, "c": 0.9, "d": 0.5}
    told = caption_measures(answers, _scores(**of))
    values = {row["of"]: row["cider_d"] for row in told["agents"][1:]}
    row = next(one for one in told["correlations"] if one["measure"] == "cider_d")
    assert row["agents"] == 4
    assert row["pearson"] == pytest.approx(pearsonr(list(values.values()), [of[one] for one in values]).statistic)
    assert row["spearman_p"] == pytest.approx(spearmanr(list(values.values()), [of[one] for one in values]).pvalue)
    few = caption_measures(answers, _scores(a=0.6, b=0.55))
    assert [(one["agents"], one["pearson"]) for one in few["correlations"]] == [(2, None), (2, None)]
    assert few["correlations"][0]["why"] == "no test: it needs 3 agents"
    alike = caption_measures(answers, _scores(a=0.1 + 0.2, b=0.3, c=0.3, d=0.3))["correlations"]
    assert {(one["spearman"], one["why"]) for one in alike} == {(None, "no test: all agents have the same value")}
    line = {name: 0.5 + 0.05 * at for at, name in enumerate(sorted(values, key=lambda one: values[one]))}
    row = next(one for one in caption_measures(answers, _scores(**line))["correlations"] if one["measure"] == "cider_d")
    assert row["spearman"] == pytest.approx(1)
    assert row["spearman_p"] is None  # which is no 0
    assert row["pearson_p"] == pytest.approx(pearsonr([values[one] for one in line], list(line.values())).pvalue)
    assert "one line" in row["why"]


def test_without_people_or_captions_it_is_said() -> None:
    told = caption_measures([_caption("git", "s1", "a dog")], [])
    assert told["note"].startswith("No person's caption")
    assert told["agents"] == [{"of": "git", "captions": 0, "bleu": None, "cider_d": None, "bleu_one_left_out": None,
                               "cider_d_one_left_out": None}]  # fmt: skip
    alone = caption_measures([PEOPLE[0]], [])
    assert "No picture has two" in alone["note"]
    assert "single picture" in alone["note"]
    assert caption_measures([], []) == {}
