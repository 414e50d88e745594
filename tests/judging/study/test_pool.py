"""The trials that judges get: their quotas, and how even they are over judges who come and go."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import study_folders

from agents.errors import InputError
from judging.study.pool import TrialPool, Turn
from judging.study.settings import read_settings, source_of


def pool(folder: Path, task: str, trials: list[Any], **changes: Any) -> TrialPool:
    there = study_folders.write_trials(folder / "T", trials)
    study = study_folders.write_study(folder / "study", there, task, **changes)
    settings = read_settings(study)
    return TrialPool(source_of(study, settings), settings)


def draw_many(pool: TrialPool, judges: int) -> list[list[Turn]]:
    """Lists of so many judges, every third of whom stays away, whose trials go to others."""
    seen: Counter[tuple[str, ...]] = Counter()
    lists = []
    for at in range(judges):
        turns = pool.draw(seen, random.Random(at))
        if at % 3:
            seen.update(turn.page.trials for turn in turns if turn.phase != "practice" and not turn.again)
        lists.append(turns)
    return lists


def test_half_are_peoples_and_the_rest_equally_the_agents(tmp_path: Path) -> None:
    found = pool(tmp_path, "word_association", study_folders.word_trials(60, ("a", "b", "c"), 10), number=25,
                 practice=2, catch=0.1, repeats=0.08, feedback=4)  # fmt: skip
    assert found.problems() == []
    every: Counter[str] = Counter()
    for at, turns in enumerate(draw_many(found, 40)):
        practice = [turn for turn in turns if turn.phase == "practice"]
        plain = [turn for turn in turns if turn.phase != "practice" and not turn.again and not turn.page.catch]
        counts = Counter(turn.page.cell for turn in plain)
        assert len(practice) == 2
        assert turns[:2] == practice
        assert [turn.phase for turn in turns[2:6]] == ["feedback"] * 4
        assert all(turn.phase == "test" for turn in turns[6:])
        assert counts["human"] in (12, 13)
        assert sum(counts.values()) == 25
        assert max(counts[one] for one in "abc") - min(counts[one] for one in "abc") <= 1
        stimuli = [turn.page.stimulus for turn in turns if not turn.again]
        assert len(set(stimuli)) == len(stimuli)
        assert sum(turn.page.catch for turn in turns) == round(0.1 * 25)
        assert not any(turn.page.catch for turn in turns[:5])
        again = [turn for turn in turns if turn.again]
        assert len(again) == 2
        for turn in again:  # after the first time
            assert turn.page in [one.page for one in turns[: turns.index(turn)]]
        if at % 3:  # the others stay away
            every.update(counts)
    assert max(every[one] for one in "abc") - min(every[one] for one in "abc") <= 3


def test_what_was_judged_less_comes_first(tmp_path: Path) -> None:
    """Over 30 judges of 20 trials from 80 the counts of pages of one kind differ by little, dropouts or not."""
    found = pool(tmp_path, "word_association", study_folders.word_trials(40, ("a",)), number=20)
    kept = [turns for at, turns in enumerate(draw_many(found, 30)) if at % 3]
    counts = Counter(turn.page.trials for turns in kept for turn in turns)
    for cell in ("human", "a"):
        some = [counts[page.trials] for page in found.cells[cell]]
        assert sum(some) == 10 * len(kept)
        assert max(some) - min(some) <= 2


def test_the_four_pairs_are_equally_many(tmp_path: Path) -> None:
    found = pool(tmp_path, "conversation", study_folders.conversation_trials(12), number=16, choices="four")
    for turns in draw_many(found, 10):
        assert set(Counter(turn.page.cell for turn in turns).values()) == {4}
        assert all(len(turn.page.trials) == 2 for turn in turns)


@pytest.mark.parametrize("choices", ["one", "both"])
def test_pairs_of_conversations_are_equally_of_each_agent_and_place(tmp_path: Path, choices: str) -> None:
    found = pool(tmp_path, "conversation", study_folders.pair_trials(24), number=8, choices=choices)
    assert found.problems() == []
    for turns in draw_many(found, 10):
        assert set(Counter((turn.page.cell, *turn.page.agents) for turn in turns).values()) == {2}
        assert {turn.page.agents for turn in turns} == {("alpha",), ("beta",)}


def test_no_judge_meets_a_conversation_of_people_in_two_pairs(tmp_path: Path) -> None:
    trials = study_folders.pair_trials(24)
    for _, key in trials:
        key["columns"] = json.dumps({"people": str(int(key["stimulus"].removeprefix("talk ")) // 2)})
    found = pool(tmp_path, "conversation", trials, number=9, practice=1)
    for turns in draw_many(found, 10):
        assert len({turn.page.people for turn in turns}) == len(turns) >= 9
    more = pool(tmp_path / "more", "conversation", trials, number=12, practice=1)
    assert "1 trial of the wanted cannot be drawn" in " ".join(more.problems())


def test_an_example_is_nobodys_trial(tmp_path: Path) -> None:
    found = pool(tmp_path, "word_association", study_folders.word_trials(30), number=20, sample=True)
    truths = [found.key[page.trials[0]]["truth"] for page in found.sample]
    assert truths == ["human", "machine"]
    shown = {page.stimulus for page in found.sample}
    assert not any(turn.page.stimulus in shown for turns in draw_many(found, 10) for turn in turns)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"number": 31}, "1 trial of the wanted cannot be drawn"),
        ({"number": 20, "practice": 11}, "1 trial of the wanted cannot be drawn"),
        ({"number": 20, "catch": 0.1}, "trials.catch: the trial set has no catch trials"),
    ],
)
def test_what_cannot_be_drawn_is_told(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    found = pool(tmp_path, "word_association", study_folders.word_trials(30), **changes)
    assert any(told in problem for problem in found.problems())


def test_a_picture_that_is_gone_is_told(tmp_path: Path) -> None:
    found = pool(tmp_path, "image_captioning", study_folders.picture_trials(tmp_path / "T", 12), number=6)
    assert found.problems() == []
    (tmp_path / "T" / "media" / "s0003.png").unlink()
    assert found.problems() == ["trials: of the pictures 1 file cannot be found, such as media/s0003.png"]


def test_a_key_of_other_trials_is_refused(tmp_path: Path) -> None:
    rows = study_folders.word_trials(5)
    there = study_folders.write_trials(tmp_path / "T", rows)
    rows[0][0]["answer"] = {"word": "other"}
    (there / "trials.jsonl").write_text((there / "trials.jsonl").read_text().replace("cue1", "cue9"))
    study = study_folders.write_study(tmp_path / "study", there, "word_association")
    with pytest.raises(InputError, match="is the key of other trials"):
        TrialPool(there, read_settings(study))


def test_trials_leave_room_for_those_to_catch(tmp_path: Path) -> None:
    """Of 20 stimuli ten have a catch trial: whoever gets 18 trials gets both of theirs; with 20 there is none left."""
    rows = study_folders.word_trials(20, catch=10)
    found = pool(tmp_path / "fits", "word_association", rows, number=18, catch=0.1)
    assert found.problems() == []
    for turns in draw_many(found, 20):
        assert Counter(turn.page.catch for turn in turns) == {False: 18, True: 2}
    found = pool(tmp_path / "lacks", "word_association", rows, number=20, catch=0.1)
    assert "2 trials of the wanted cannot be drawn" in " ".join(found.problems())
    assert found.fit() == {"number": 18}
    assert found.problems() == []
