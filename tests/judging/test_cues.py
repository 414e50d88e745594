"""Judges that go by one cue: the numbers, what they find and what they do not, and differences of judges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents import catalogue
from judging import cue_numbers
from judging.cues import OF_TASKS, CueJudge, CueSettings
from judging.ledger import difference
from judging.trained import judge_trials


def _path(points: list[list[float]]) -> dict[str, Any]:
    return {"answer": {"fixations": points, "frame": [200, 100]}}


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"id": "t0", "shown": "s0", "answer": {"text": text}, **more}


def test_numbers_of_a_scanpath() -> None:
    trial = _path([[100, 50], [160, 130], [160, 50]])
    assert cue_numbers.length(trial) == [0, 0, 0, 3]
    assert cue_numbers.path_length(trial) == pytest.approx([0.9, 0.45])  # steps of 100 and 80 pixels
    away = np.array([0, 100, 60]) / 200
    assert cue_numbers.center(trial) == pytest.approx([away.mean(), away.std()])
    assert cue_numbers.path_length(_path([[5, 5]])) == [0, 0]


def test_numbers_of_texts() -> None:
    assert cue_numbers.length(_text("A dog, 2 cats")) == [13, 4, 1, 0]
    assert cue_numbers.punctuation(_text("A Dog, 2 café!")) == [2, 2, 1, 1]
    messages = [{"speaker": "A", "text": "Hi!"}, {"speaker": "B", "text": "Hello there."}]
    assert cue_numbers.texts({"answer": {"messages": messages}, "speaker": "B"}) == ["Hello there."]
    assert cue_numbers.texts({"answer": {"labels": ["cat", "dog"]}}) == ["cat", "dog"]


def test_frequencies_are_wordfreqs_and_count_the_other_trials() -> None:
    from wordfreq import zipf_frequency

    rows = cue_numbers.frequencies([_text("the dog"), _text("zebra"), _text("the dog")])
    the, dog, zebra = (zipf_frequency(word, "en") for word in ("the", "dog", "zebra"))
    assert rows[0] == pytest.approx([(the + dog) / 2, dog, 1])
    assert rows[1] == pytest.approx([zebra, zebra, 0])


def _judged(cue: str, people: list[str], machines: list[str]) -> float:
    """The share that the cue's judge tells rightly."""
    trials, keys = [], []
    for at, (text, truth) in enumerate([*((one, "human") for one in people), *((one, "machine") for one in machines)]):
        trials.append({**_text(text), "id": f"t{at}", "shown": f"s{at % len(people)}", "asked": "image_captioning"})
        keys.append({"truth": truth, "agent": "a", "catch": False, "repeat_of": None, "said": text, "asked": "x"})
    judge = CueJudge(CueSettings(cue=cue), "cue")  # type: ignore[arg-type]
    given = judge.features("image_captioning", trials, "cpu")
    found = judge_trials(trials, keys, given, judge.settings, judge.new_model)
    right = [
        (found[one["id"]]["margin"] > 0) == (key["truth"] == "machine") for one, key in zip(trials, keys, strict=True)
    ]
    return float(np.mean(right))


def test_a_cue_tells_what_it_is_about_and_nothing_else() -> None:
    chance = np.random.default_rng(0)
    words = ["dog", "cat", "cow", "hen", "fox", "owl"]
    people = [" ".join(chance.choice(words, chance.integers(2, 9))) for _ in range(60)]
    longer = [" ".join(chance.choice(words, 5)) for _ in range(60)]  # always in the middle
    assert _judged("length", people, longer) > 0.7
    assert _judged("punctuation", people, longer) == 0.5
    assert _judged("constant", people, longer) == 0.5
    assert _judged("punctuation", people, [f"{one}." for one in people]) == 1
    assert 0.3 < _judged("length", people, [*people[1:], people[0]]) < 0.7


def test_there_is_a_judge_for_each_cue() -> None:
    for cue, tasks in OF_TASKS.items():
        judge = catalogue.get(f"cue-{cue}").make()
        assert judge.settings.cue == cue
        assert judge.judges == tasks


def test_the_difference_of_two_judges_is_that_of_their_detectabilities() -> None:
    chance = np.random.default_rng(0)
    rows = []
    for at in range(400):
        truth = ("human", "machine")[at % 2]
        for judge, skill in (("good", 0.8), ("poor", 0.6)):
            other = "machine" if truth == "human" else "human"
            verdict = truth if chance.random() < skill else other
            rows.append((judge, "machine", f"t{at}", f"s{at // 2}", truth, verdict))
    table = pd.DataFrame(rows, columns=["judge", "judge_kind", "trial", "stimulus", "truth", "verdict"])
    right = (table["verdict"] == table["truth"]).groupby([table["judge"], table["truth"]]).mean()
    found = difference(table, "good", "poor", 0)
    assert found is not None
    estimate, low, high = found
    assert estimate == pytest.approx(right["good"].mean() - right["poor"].mean())
    # Two independent judges of 400 trials: the standard error is that of the difference of two proportions.
    error = np.sqrt((0.8 * 0.2 + 0.6 * 0.4) / 400)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.15)
    assert difference(table, "good", "good", 0) == (0, 0, 0)
    assert difference(table[table["judge"] == "good"], "good", "poor", 0) is None
