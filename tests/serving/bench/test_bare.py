"""The bare agent and the window in which it is measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from measured_agents import ENTRIES

from agents import catalogue
from agents.answers import CaptionAnswer, TurnAnswer, WordAnswer
from agents.contract import Draw, Reply, derive_seed
from agents.errors import AnswerError
from serving.bench import stimuli
from serving.bench.bare import BareAgent, Tally, Window


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stimuli.write(tmp_path_factory.mktemp("set") / "set.jsonl", {("word_association", None): 96})


@contextmanager
def bare(name: str, words: Path, **settings: Any) -> Iterator[BareAgent]:
    entry = ENTRIES.get(name) or catalogue.get(name)
    made = BareAgent(entry.make(settings), stimuli.read(words), 3)
    yield made
    made.close()


def ended(ends: Sequence[float], seconds: float, together: int = 1) -> Window:
    window = Window(seconds, 0.0, together)
    for end in ends:
        if not window.over:
            window.add(end)
    return window


@pytest.mark.parametrize(
    ("ends", "seconds", "began", "last"),
    [
        ([4.0, 8.0, 12.0, 16.0, 20.0], 5.0, 12.0, 20.0),  # three rounds warm up, and two are measured at the least
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2.5, 3.0, 6.0),
        ([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0], 10.0, 2.0, math.nan),  # a fifth of what is measured warms up
        ([4.0, 5.0, 6.0], 0.4, 4.0, 6.0),  # but rounds that take ten times as long are not waited for
    ],
)
def test_a_warm_up_is_left_out(ends: list[float], seconds: float, began: float, last: float) -> None:
    window = ended(ends, seconds)
    assert window.began == began
    assert window.over is not math.isnan(last)
    assert not window.over or window.ended == last


def test_a_rate_is_of_whole_rounds() -> None:
    pairs = [3.0 * pair + late for pair in range(1, 9) for late in (0.0, 0.1)]
    for seconds in (0.0, 3.05):
        assert ended(pairs, seconds, together=2).rate() == pytest.approx(2 / 3.0)
    assert ended([1.0, 2.0, 3.0, 4.0], 1.0).rate() is None  # too few
    assert ended([1.0, 2.0, 3.0, 4.0, 5.0], 9.0).rate() == 1.0


@pytest.mark.parametrize("name", ["null", "null-one"])
def test_answers_come_in_the_order_of_the_stimuli(name: str, words: Path) -> None:
    shown = stimuli.read(words)[:17]
    agent = catalogue.get("null").make()
    draws = [Draw(derive_seed(0, name, stimulus.id, 0, None, 0)) for stimulus in shown]
    with bare(name, words) as one:
        found: list[Any] = one.ask(shown)
    expected: Sequence[Any] = agent.respond(shown, draws)
    assert [reply.answer for reply in found] == [reply.answer for reply in expected]


def test_a_stimulus_that_cannot_be_prepared_fails_alone(words: Path) -> None:
    with bare("unprepared", words) as one:
        found = one.ask(one.stimuli[:9])
    assert [isinstance(reply, AnswerError) for reply in found] == [number % 4 == 0 for number in range(9)]


@pytest.mark.parametrize("name", ["null", "null-one"])
def test_a_rate_is_that_of_the_agent(name: str, words: Path) -> None:
    size, delay = 4, 0.01
    with bare(name, words, delay_s=delay) as one:
        tally = one.measure(size, 0.1)
    assert tally.seconds >= 0.1
    assert tally.failed == 0
    assert 2 * size <= tally.answered <= size * (tally.seconds / delay + 1)
    # of one batch: no part in which it waits for the others under way
    assert len(tally.latencies) * delay <= tally.responding <= sum(tally.latencies)
    assert min(tally.latencies) >= delay


def test_tokens_are_counted_where_an_agent_tells() -> None:
    tally = Tally(Window(1.0, 0.0))
    tally.note(Reply(WordAnswer(word="a"), "a"))
    assert tally.tokens is None
    for reply in (
        Reply(CaptionAnswer(text="a", tokens=7)),
        AnswerError("no_word", "no"),
        Reply(TurnAnswer(text="a"), {"tokens": 5, "prompt_tokens": 9}),
    ):
        tally.note(reply)
    assert (tally.tokens, tally.answered, tally.failed, tally.failure) == (12, 3, 1, "no_word: no")


def test_percentiles_are_the_nearest_ranks() -> None:
    for count in (1, 2, 101):
        tally = Tally(Window(1.0, 0.0), latencies=[float(value) for value in range(count, 0, -1)])
        assert [tally.percentile(share) for share in (0.5, 0.95)] == [math.ceil(0.5 * count), math.ceil(0.95 * count)]
