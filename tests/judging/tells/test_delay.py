"""The delays of messages: taken away of the judged speaker alone, and planted from participants."""

import random
from collections import Counter

import pytest
import scipy.stats

from agents.errors import InputError
from agents.stimuli import TASKS
from judging.cards.steps import tells_of
from judging.tells.registry import TRANSFORMATIONS, check_names
from judging.tells.seen import SeenAnswer
from judging.tells.transformation import PARTICIPANTS
from tests.judging.tells.test_transformations import caption, owned, taken, talk, timed

DELAY = TRANSFORMATIONS["delay"]


def shown(seen: SeenAnswer) -> list[float | None]:
    return [message.delay_s for message in seen.answer.messages or ()]


def test_the_judged_speakers_delays_go_and_the_others_stay() -> None:
    said: list[tuple[str, float | None]] = [("Hi", None), ("yes?", 2.5), ("So!", 7.0), ("no", 0.0), ("Bye", 3.3)]
    first = timed(*said, speaker="A")
    assert shown(taken("delay", first)) == [None, 2.5, None, 0.0, None]
    second = timed(*said, speaker="B")
    assert shown(taken("delay", second)) == [None, None, 7.0, None, 3.3]
    for before in (first, second):
        after = taken("delay", before)
        assert [(message.speaker, message.text) for message in after.answer.messages or ()] == [
            ("AB"[turn % 2], text) for turn, (text, _) in enumerate(said)
        ]
        assert taken("delay", after) == after
        assert DELAY.measure(after) == 0
    assert DELAY.measure(first) == pytest.approx((7.0 + 3.3) / 2)  # the first message shows none
    assert DELAY.measure(second) == pytest.approx((2.5 + 0.0) / 2)


def test_other_answers_have_no_delays() -> None:
    assert DELAY.measure(talk("Hi", "yes")) == 0
    assert taken("delay", talk("Hi", "yes")) == talk("Hi", "yes")
    assert caption("a dog").delays() == []
    with pytest.raises(ValueError, match="1 delays for 2"):
        talk("Hi", "yes", "so").with_delays([1.0])


def test_planted_delays_are_the_donors_in_their_order() -> None:
    donor = timed(("a", None), ("b", 1.0), ("c", 2.0), ("d", 3.0), speaker="B")
    planted = DELAY.plant(timed(("x", None), ("y", 9.0), ("z", 8.0), ("w", 7.0), ("v", 6.0), ("u", 5.0)), donor)
    assert shown(planted.seen) == [None, 9.0, 1.0, 7.0, 3.0, 5.0]
    assert planted.is_reached
    longer = timed(("x", None), ("y", 9.0), ("z", 8.0), ("w", 7.0), ("v", 6.0), ("u", 5.0), ("t", 4.0))
    assert shown(DELAY.plant(longer, donor).seen) == [None, 9.0, 1.0, 7.0, 3.0, 5.0, 1.0]  # taken in turn


def test_without_a_donors_delay_nothing_is_planted() -> None:
    donor = timed(("a", None), ("b", 1.0), speaker="A")
    before = timed(("x", None), ("y", 9.0), speaker="B")
    planted = DELAY.plant(before, donor)
    assert planted.seen == before
    assert not planted.is_reached
    nothing = timed(("x", None), ("y", 9.0), speaker="A")
    assert DELAY.plant(nothing, donor).is_reached  # there is nothing to plant


def test_a_short_excerpt_is_no_donor_of_a_long_one() -> None:
    """One delay, taken in turn, would stand beside every message of a machine."""
    short = timed(("a", None), ("b", 1.0), speaker="B")
    long = timed(*[("a", None), *[("b", float(number)) for number in range(2, 9)]], speaker="B")
    machine = timed(*[("a", None), *[("b", 20.0) for _ in range(7)]], speaker="B")
    owners = owned([PARTICIPANTS] * 9 + ["m"] * 50)
    planted, _ = DELAY.plant_all([*[short] * 8, long, *[machine] * 50], owners, random.Random(0))
    assert {tuple(one.seen.delays()) for one in planted[9:]} == {(2.0, 4.0, 6.0, 8.0)}
    planted, _ = DELAY.plant_all([*[short] * 9, *[machine] * 50], owners, random.Random(0))
    assert {tuple(one.seen.delays()) for one in planted[9:]} == {(1.0,) * 4}


def test_planted_delays_have_participants_distribution() -> None:
    chance = random.Random(1)

    def of(mean: float) -> SeenAnswer:
        return timed(*[("a", None), *[("b", round(chance.expovariate(1 / mean), 1)) for _ in range(5)]], speaker="B")

    people = [of(4.0) for _ in range(200)]
    machines = [of(20.0) for _ in range(200)]
    planted, _ = DELAY.plant_all([*people, *machines], owned([PARTICIPANTS] * 200 + ["m"] * 200), random.Random(0))
    of_people = [DELAY.measure(seen) for seen in people]
    assert scipy.stats.ks_2samp(of_people, [DELAY.measure(seen) for seen in machines]).pvalue < 1e-6
    assert scipy.stats.ks_2samp(of_people, [DELAY.measure(one.seen) for one in planted[200:]]).pvalue > 0.05
    assert Counter(one.is_reached for one in planted) == {True: 400}
    assert [one.seen for one in planted[:200]] == people


def test_delay_needs_trials_that_show_delays() -> None:
    check_names(("delay",), ("delay",), ["conversation"], shows_delays=True)
    with pytest.raises(InputError, match="delay is of other tasks: conversation"):
        check_names(("delay",), (), ["image_captioning"], shows_delays=True)
    assert all("delay" not in tells_of(task) for task in TASKS)  # a card's trials show none
    assert "case" in tells_of("conversation")
