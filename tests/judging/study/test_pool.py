"""The trials that judges get: their quotas, and how even they are over judges who come and go."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agents.errors import InputError
from judging.study.design.settings import read_settings
from judging.study.pages.pool import PageTurn, TrialPool
from tests.helpers import study_folders


def pool(folder: Path, task: str, trials: list[Any], **changes: Any) -> TrialPool:
    there = study_folders.write_trials(folder / "T", trials)
    study = study_folders.write_study(folder / "study", there, task, **changes)
    settings = read_settings(study)
    return TrialPool(there, settings)  # type: ignore[arg-type]


def draw_many(pool: TrialPool, judges: int) -> list[list[PageTurn]]:
    """Lists of so many judges, every third of whom stays away, whose trials go to others."""
    seen: Counter[tuple[str, ...]] = Counter()
    lists = []
    for at in range(judges):
        turns, _ = pool.draw(seen, random.Random(at))
        if at % 3:
            seen.update(turn.page.trials for turn in turns if turn.phase != "practice" and not turn.again)
        lists.append(turns)
    return lists


def test_half_are_peoples_and_the_rest_equally_the_agents(tmp_path: Path) -> None:
    trials = study_folders.word_trials(60, ("a", "b", "c"), 10)
    drawn = pool(tmp_path, "word_association", trials, number=25, practice=2, catch=0.1, repeats=0.08, feedback=4)
    assert drawn.problems() == []
    every: Counter[str] = Counter()
    for at, turns in enumerate(draw_many(drawn, 40)):
        phases = [turn.phase for turn in turns]
        assert phases == ["practice"] * 2 + ["feedback"] * 4 + ["test"] * (len(turns) - 6)
        plain = [turn for turn in turns[2:] if not turn.again and not turn.page.catch]
        counts = Counter(turn.page.cell for turn in plain)
        assert counts["human"] in (12, 13)
        assert counts.total() == 25
        for phase, people in (("feedback", (2,)), ("test", (10, 11))):
            of_phase = Counter(turn.page.cell for turn in plain if turn.phase == phase)
            assert of_phase["human"] in people
            assert max(of_phase[agent] for agent in "abc") - min(of_phase[agent] for agent in "abc") <= 1
        stimuli = [turn.page.stimulus for turn in turns if not turn.again]
        assert len(set(stimuli)) == len(stimuli)
        assert sum(turn.page.catch for turn in turns) == round(0.1 * 25)
        assert not any(turn.page.catch for turn in turns[:5])
        again = [turn for turn in turns if turn.again]
        assert len(again) == 2
        assert all(turn.page in [other.page for other in turns[: turns.index(turn)]] for turn in again)
        if at % 3:  # the others stay away
            every.update(counts)
    assert max(every[agent] for agent in "abc") - min(every[agent] for agent in "abc") <= 3


def test_what_was_judged_less_comes_first(tmp_path: Path) -> None:
    """Over 30 judges of 20 trials from 80 the counts of pages of a kind differ by little, dropouts or not."""
    drawn = pool(tmp_path, "word_association", study_folders.word_trials(40, ("a",)), number=20)
    kept = [turns for at, turns in enumerate(draw_many(drawn, 30)) if at % 3]
    counts = Counter(turn.page.trials for turns in kept for turn in turns)
    for cell in ("human", "a"):
        numbers = [counts[page.trials] for page in drawn.cells[cell]]
        assert sum(numbers) == 10 * len(kept)
        assert max(numbers) - min(numbers) <= 2


@pytest.mark.parametrize(
    ("choices", "trials", "number", "each"),
    [
        ("four", study_folders.conversation_trials(12), 16, 4),  # of four pairs
        ("one", study_folders.pair_trials(24), 8, 2),  # of two agents and two places
        ("both", study_folders.pair_trials(24), 8, 2),
    ],
)
def test_pairs_are_equally_of_each_kind(tmp_path: Path, choices: str, trials: Any, number: int, each: int) -> None:
    drawn = pool(tmp_path, "conversation", trials, number=number, choices=choices)
    assert drawn.problems() == []
    for turns in draw_many(drawn, 10):
        assert set(Counter((turn.page.cell, *turn.page.agents) for turn in turns).values()) == {each}
        assert {len(turn.page.trials) for turn in turns} == {2 if choices == "four" else 1}


def test_no_judge_meets_a_conversation_of_people_in_two_pairs(tmp_path: Path) -> None:
    trials = study_folders.pair_trials(24)
    for _, key in trials:
        key["columns"] = json.dumps({"people": str(int(key["stimulus"].removeprefix("talk ")) // 2)})
    drawn = pool(tmp_path, "conversation", trials, number=9, practice=1)
    for turns in draw_many(drawn, 10):
        assert len({turn.page.people for turn in turns}) == len(turns) >= 9
    more = pool(tmp_path / "more", "conversation", trials, number=12, practice=1)
    assert "12 trials cannot be drawn" in " ".join(more.problems())


def test_examples_are_drawn_for_each_judge_who_does_not_meet_their_stimuli(tmp_path: Path) -> None:
    drawn = pool(tmp_path, "word_association", study_folders.word_trials(30), number=28, sample=True)
    met = set[Any]()
    assert drawn.problems() == []
    for at in range(10):
        turns, examples = drawn.draw({}, random.Random(at))
        assert [drawn.key[page.trials[0]]["truth"] for page in examples] == ["human", "machine"]
        assert len({page.stimulus for page in (*examples, *(turn.page for turn in turns))}) == 30
        met.add(tuple(page.trials for page in examples))
    assert len(met) == 10
    more = pool(tmp_path / "more", "word_association", study_folders.word_trials(30), number=30, sample=True)
    assert more.fit() == {"number": 28}


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    """Of 20 stimuli ten have a catch trial: whoever gets 18 trials gets both of theirs; with 20 there is none left."""
    rows = study_folders.word_trials(20, catch=10)
    drawn = pool(tmp_path / "fits", "word_association", rows, number=18, catch=0.1)
    assert drawn.problems() == []
    for turns in draw_many(drawn, 20):
        assert Counter(turn.page.catch for turn in turns) == {False: 18, True: 2}
    drawn = pool(tmp_path / "lacks", "word_association", rows, number=20, catch=0.1)
    assert "20 stimuli. Catch trials take 2. 18 are left for the 20 trials" in " ".join(drawn.problems())
    assert drawn.fit() == {"number": 18}
    assert drawn.problems() == []
    drawn = pool(tmp_path / "no catch", "word_association", study_folders.word_trials(20), number=10, catch=0.1)
    assert "trials.catch: the trial set has no catch trials" in " ".join(drawn.problems())
    assert drawn.fit() == {"catch": 0.0}


def test_a_picture_that_is_gone_is_named_and_a_key_of_other_trials_refused(tmp_path: Path) -> None:
    rows = study_folders.picture_trials(tmp_path / "T", 12)
    drawn = pool(tmp_path, "image_captioning", rows, number=6)
    assert drawn.problems() == []
    (tmp_path / "T" / "media" / "s0003.png").unlink()
    assert drawn.problems() == ["trials: 1 picture missing, such as media/s0003.png"]
    source = tmp_path / "T" / "trials.jsonl"
    source.write_text(source.read_text().replace("s0004.png", "s0005.png"))
    with pytest.raises(InputError, match="is the key of other trials"):
        TrialPool(tmp_path / "T", drawn.settings)
