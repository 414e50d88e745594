"""Blocks of stimuli: which answers are matched with each other."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.tells.blocks import FEW, SIZE, blocks_of
from judging.tells.transformation import PARTICIPANTS


def crossed(stimuli: int, groups: str) -> tuple[list[int], list[str]]:
    """Each group answers each stimulus."""
    both = [(stimulus, group) for stimulus in range(stimuli) for group in groups]
    return [stimulus for stimulus, _ in both], [group for _, group in both]


@pytest.mark.parametrize(
    ("stimuli", "blocks"), [(1, 1), (2, 2), (5, 5), (12, 12), (20, 10), (30, 10), (40, 10), (60, 15), (100, 25)]
)
def test_a_block_has_four_stimuli_or_fewer_so_that_there_are_ten(stimuli: int, blocks: int) -> None:
    of_answers = blocks_of(*crossed(stimuli, "abc"), random.Random(0))
    sizes = Counter(of_answers)
    assert sorted(sizes) == list(range(1, blocks + 1))
    assert max(sizes.values()) - min(sizes.values()) <= 3  # one stimulus of three groups
    assert max(sizes.values()) <= 3 * (SIZE + 1)


@given(
    st.lists(st.sets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=120),
    st.integers(0, 5),
)
def test_a_stimulus_is_in_one_block_and_groups_are_spread(owners: list[set[str]], seed: int) -> None:
    stimuli = [stimulus for stimulus, of_stimulus in enumerate(owners) for _ in of_stimulus]
    groups = [group for of_stimulus in owners for group in sorted(of_stimulus)]
    blocks = blocks_of(stimuli, groups, random.Random(seed))
    assert len(set(zip(stimuli, blocks, strict=True))) == len(owners)
    number = max(blocks)
    assert sorted(set(blocks)) == list(range(1, number + 1))
    totals = Counter(groups)
    fewest = min(totals.values())
    if max(totals.values()) >= FEW:
        assert number >= FEW
    scarce = [group for group in totals if totals[group] == fewest]
    for group in scarce:  # the group with the fewest answers is in each block, where there are enough
        held = Counter(block for block, of in zip(blocks, groups, strict=True) if of == group)
        if len(scarce) == 1:
            assert len(held) == min(fewest, number)


def test_an_agent_with_few_answers_does_not_make_blocks_large() -> None:
    stimuli, groups = crossed(60, "ab")
    few = [(0, "few"), (7, "few")]
    blocks = blocks_of([*stimuli, *(at for at, _ in few)], [*groups, *(group for _, group in few)], random.Random(0))
    assert max(blocks) == 15
    # Participants always count: where they have few answers, blocks are few.
    people = blocks_of([*stimuli, 0, 7], [*groups, PARTICIPANTS, PARTICIPANTS], random.Random(0))
    assert max(people) == 2
    assert set(people[-2:]) == {1, 2}


def test_blocks_follow_from_the_seed() -> None:
    answers = crossed(40, "ab")
    first = blocks_of(*answers, random.Random(1))
    assert first == blocks_of(*answers, random.Random(1))
    assert first != blocks_of(*answers, random.Random(2))


def test_there_are_no_blocks_of_nothing() -> None:
    assert blocks_of([], [], random.Random(0)) == []
