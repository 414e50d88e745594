"""What becomes a trial: exact shares of people and agents, in orders that the seed gives."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.stimuli import ShownAnswer
from judging.trial_sets.candidates import AnsweredStimulus, Candidate
from judging.trial_sets.cues import grouped_folds
from judging.trial_sets.drawing import FIRST, Pool, draw_list, draw_pool, duplicates, half, in_common, spread, unique

STIMULI = [
    AnsweredStimulus("word_association", f"cue{at}", {"cue": f"cue{at}"}, Path("run"), None, None) for at in range(30)
]


def answer_of(agent: str, at: int, word: str | None = None, sample: int = 0, **more: Any) -> Candidate:
    truth: Any = "human" if agent.startswith("human") else "machine"
    answer = ShownAnswer(word=word or f"{agent}{at}.{sample}")
    return Candidate(STIMULI[at], agent, truth, agent == "catch", ("run", agent, sample), answer, **more)


def answers(**numbers: int) -> list[Candidate]:
    """So many answers of each, spread over the stimuli."""
    return [
        answer_of(agent, at % len(STIMULI), sample=at // len(STIMULI))
        for agent, number in numbers.items()
        for at in range(number)
    ]


def test_a_pool_has_as_many_of_people_as_of_agents() -> None:
    pool = draw_pool(answers(human=70, a=30, b=25, c=60), random.Random(1))
    assert sorted(len(ones) for ones in pool.machines.values()) == [23, 23, 24]
    assert len(pool.people) == 70
    assert pool.unbalanced == []


def test_what_is_asked_and_not_there_is_said() -> None:
    pool = draw_pool(answers(human=50, a=30, b=8), random.Random(1), per_agent=20)
    assert {name: len(ones) for name, ones in pool.machines.items()} == {"a": 20, "b": 8}
    assert len(pool.people) == 28
    assert pool.unbalanced == ["b has 8 answers, and not 20"]
    assert draw_pool(answers(a=3), random.Random(1)).unbalanced == ["there are no answers of people"]
    assert len(draw_pool(answers(human=9, a=3), random.Random(1), every=True).trials()) == 12


def test_lengths_of_excerpts_come_equally_often() -> None:
    chosen = [answer_of("a", at, length=length) for at in range(30) for length in (3, 6, 9)]
    drawn = spread(chosen, 30, random.Random(3))
    assert Counter(item.length for item in drawn) == {3: 10, 6: 10, 9: 10}


def test_only_stimuli_that_all_have_answered() -> None:
    chosen = [*answers(human=20, a=12, b=30), answer_of("catch", 5), answer_of("catch", 25)]
    result = in_common(chosen)
    assert {item.stimulus.id for item in result} == {f"cue{at}" for at in range(12)}
    assert Counter(item.agent for item in result) == {"human": 12, "a": 12, "b": 12, "catch": 1}


def test_answers_that_were_said_alike() -> None:
    words = [("human:1", 0, "Sun"), ("human:2", 0, "sun"), ("a", 0, "moon"), ("b", 0, "moon"), ("a", 1, "same")]
    more: list[Any] = [*words, ("a", 1, "same", 1), ("human:1", 2, "x"), ("a", 2, "x")]
    chosen = [answer_of(*word) for word in more]
    alike = duplicates([item for item in chosen if item.answer.word != "Sun"])
    assert sorted(map(len, alike)) == [2, 2]  # an agent's samples that are alike count once
    kept = unique(chosen, random.Random(0))
    assert len(kept) == len({item.content() for item in chosen})


@pytest.mark.parametrize("number", [12, 25, 40])
def test_each_judge_has_exact_quotas(number: int) -> None:
    pool = Pool(answers(human=300), {name: answers(**{name: 300}) for name in "abcd"}, answers(catch=30))
    used: Counter[int] = Counter()
    for judge in range(20):
        chance = random.Random(judge)
        order = draw_list(pool, number, used, chance, catch=0.1, repeats=0.05)
        first = [item for item, again in order if not again and not item.is_catch]
        people = sum(item.truth == "human" for item in first)
        assert len(first) == number
        assert people in {number // 2, -(-number // 2)}
        by_agent = Counter(item.agent for item in first if item.truth == "machine")
        assert max(by_agent.values()) - min(by_agent.values()) <= 1
        assert sum(item.is_catch for item, _ in order) == round(0.1 * number)
        assert not any(item.is_catch for item, _ in order[:FIRST])
        assert sum(again for _, again in order) == round(0.05 * number)
        seen: set[int] = set()
        for item, again in order:
            assert (id(item) in seen) == again  # a repeat comes after its first showing
            seen.add(id(item))
    counts = Counter(used[id(item)] for item in pool.people)
    assert max(counts) - min(counts) <= 1  # every answer was seen as often as any other


def test_no_stimulus_comes_twice_to_a_judge_while_there_are_others() -> None:
    pool = Pool(answers(human=60), {"a": answers(a=60)})
    order = draw_list(pool, 30, Counter(), random.Random(0), catch=0, repeats=0)
    assert len({item.stimulus.id for item, _ in order}) == 30


@given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1), st.integers(2, 10), st.integers(0, 2**53 - 1)
)
def test_a_group_is_never_on_both_sides(items: list[tuple[int, bool]], folds: int, seed: int) -> None:
    groups = [group for group, _ in items]
    classes = [cls for _, cls in items]
    if len(set(groups)) < folds:
        with pytest.raises(ValueError, match="folds of"):
            grouped_folds(groups, classes, folds, seed)
        return
    result = grouped_folds(groups, classes, folds, seed)
    assert len(result) == len(items)
    for group in set(groups):
        assert len({fold for fold, item in zip(result.tolist(), groups, strict=True) if item == group}) == 1
    assert set(result.tolist()) == set(range(folds))
    assert (result == grouped_folds(groups, classes, folds, seed)).all()


def test_half_of_an_odd_number_is_drawn_once_and_of_an_even_one_never() -> None:
    chance = random.Random(1)
    state = chance.getstate()
    assert half(6, chance) == 3
    assert chance.getstate() == state
    draws = random.Random(1)
    assert [half(7, chance) for _ in range(50)] == [4 if draws.random() < 0.5 else 3 for _ in range(50)]
