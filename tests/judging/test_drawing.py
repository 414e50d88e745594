"""What becomes a trial: exact shares of people and agents, in orders that the seed gives."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agents.stimuli import ShownAnswer
from judging.candidates import Candidate, Shown
from judging.drawing import FIRST, Pool, arrange, draw_list, draw_pool, duplicates, in_common, shares, spread, unique

STIMULI = [Shown("word_association", f"cue{at}", {"cue": f"cue{at}"}, Path("run"), None, None) for at in range(30)]


def said(agent: str, at: int, word: str | None = None, sample: int = 0, **more: Any) -> Candidate:
    truth: Any = "human" if agent.startswith("human") else "machine"
    answer = ShownAnswer(word=word or f"{agent}{at}.{sample}")
    return Candidate(STIMULI[at], agent, truth, agent == "catch", ("run", agent, sample), answer, **more)


def answers(**numbers: int) -> list[Candidate]:
    """So many answers of each, spread over the stimuli."""
    return [
        said(agent, at % len(STIMULI), sample=at // len(STIMULI))
        for agent, number in numbers.items()
        for at in range(number)
    ]


@pytest.mark.parametrize("total", [0, 1, 7, 12, 100])
def test_shares_are_equal_and_the_rest_is_drawn(total: int) -> None:
    found = shares(total, ["a", "b", "c"], random.Random(0))
    assert sum(found.values()) == total
    assert max(found.values()) - min(found.values()) <= 1
    more = Counter(
        max(one, key=one.__getitem__) for s in range(300) for one in [shares(7, ["a", "b", "c"], random.Random(s))]
    )
    assert min(more.values()) > 60  # of 300, were each as likely


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
    assert len(draw_pool(answers(human=9, a=3), random.Random(1), whole=True).trials()) == 12


def test_stimuli_come_as_equally_often_as_can_be() -> None:
    some = answers(a=300)  # ten of each stimulus
    drawn = spread(some, 75, random.Random(2))
    assert len({id(one) for one in drawn}) == 75
    assert set(Counter(one.shown.id for one in drawn).values()) == {2, 3}


def test_lengths_of_excerpts_come_equally_often() -> None:
    some = [said("a", at, length=length) for at in range(30) for length in (3, 6, 9)]
    drawn = spread(some, 30, random.Random(3))
    assert Counter(one.length for one in drawn) == {3: 10, 6: 10, 9: 10}


def test_only_stimuli_that_all_have_answered() -> None:
    some = [*answers(human=20, a=12, b=30), said("catch", 5), said("catch", 25)]
    found = in_common(some)
    assert {one.shown.id for one in found} == {f"cue{at}" for at in range(12)}
    assert Counter(one.agent for one in found) == {"human": 12, "a": 12, "b": 12, "catch": 1}


def test_answers_that_were_said_alike() -> None:
    some = [said("human:1", 0, "Sun"), said("human:2", 0, "sun"), said("a", 0, "moon"), said("b", 0, "moon"),
            said("a", 1, "same", 0), said("a", 1, "same", 1), said("human:1", 2, "x"), said("a", 2, "x")]  # fmt: skip
    alike = duplicates([one for one in some if one.answer.word != "Sun"])
    assert sorted(len(ones) for ones in alike.values()) == [2, 2]  # an agent's samples that are alike count once
    kept = unique(some, random.Random(0))
    assert len(kept) == len({one.said() for one in some})


@pytest.mark.parametrize("number", [12, 25, 40])
def test_each_judge_has_exact_quotas(number: int) -> None:
    pool = Pool(answers(human=300), {name: answers(**{name: 300}) for name in "abcd"}, answers(catch=30))
    used: Counter[int] = Counter()
    for judge in range(20):
        chance = random.Random(judge)
        order = draw_list(pool, number, used, chance, catch=0.1, repeats=0.05)
        first = [one for one, again in order if not again and not one.is_catch]
        people = sum(one.truth == "human" for one in first)
        assert len(first) == number
        assert people in {number // 2, -(-number // 2)}
        by_agent = Counter(one.agent for one in first if one.truth == "machine")
        assert max(by_agent.values()) - min(by_agent.values()) <= 1
        assert sum(one.is_catch for one, _ in order) == round(0.1 * number)
        assert not any(one.is_catch for one, _ in order[:FIRST])
        assert sum(again for _, again in order) == round(0.05 * number)
        seen: set[int] = set()
        for one, again in order:
            assert (id(one) in seen) == again  # a repeat comes after its first showing
            seen.add(id(one))
    counts = Counter(used[id(one)] for one in pool.people)
    assert max(counts) - min(counts) <= 1  # every answer was seen as often as any other


def test_no_stimulus_comes_twice_to_a_judge_while_there_are_others() -> None:
    pool = Pool(answers(human=60), {"a": answers(a=60)})
    order = draw_list(pool, 30, Counter(), random.Random(0), catch=0, repeats=0)
    assert len({one.shown.id for one, _ in order}) == 30


def test_an_order_is_the_seeds() -> None:
    some = answers(human=20, a=20)
    assert arrange(some, [], 0, random.Random(1)) == arrange(some, [], 0, random.Random(1))
    assert arrange(some, [], 0, random.Random(1)) != arrange(some, [], 0, random.Random(2))
