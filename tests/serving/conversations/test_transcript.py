"""The state of a conversation: who is asked, sends and is interrupted when, by turns and in bursts; and the delays."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agents.answers import TurnAnswer
from agents.language.filters.policies import THRESHOLDS, Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.scenario import DelaySettings
from serving.conversations.transcript import Transcript, no_instructions

NO_DELAY = {"base": 0.0, "type_mean": 0.0, "type_sd": 0.0, "read_mean": 0.0, "read_sd": 0.0, "think_scale": 0.0}
SECOND_A_LETTER = DelaySettings(**{**NO_DELAY, "type_mean": 1.0})
DRAWS = 4000


def transcript(mode: str = "burst", exchanges: int = 6, seed: int = 3, **settings: Any) -> Transcript:
    about = {"mode": mode, "names": ("Ann", "Bob"), "who_starts": "A", "exchanges": exchanges}
    stimulus = ConversationStimulus(id="c", task="conversation", **about)  # type: ignore[arg-type]
    nothing = (no_instructions, no_instructions)
    chosen = {"delays": SECOND_A_LETTER, "quiet_s": 2.0, **settings}
    return Transcript(stimulus, ("a", "b"), nothing, Policy(), THRESHOLDS, 0, seed, **chosen)


BURSTS: dict[str, tuple[Sequence[str], dict[str, Any], list[Any], list[Any], tuple[int, int, float] | None]] = {
    # replies; settings; messages (speaker, text, at); withdrawn (speaker, text, at, turn, why); (side, number, now)
    "each line is a message, sent when it is typed": (
        ["aaa\n\n  bb  b \r\n"],
        {},
        [("Ann", "aaa", 3)],
        [],
        (1, 1, 5),
    ),
    "what is not sent when the other one writes is withdrawn": (
        ["aaa\nbbbbbbbbbb\ncc", "dddd"],
        {},
        [("Ann", "aaa", 3), ("Bob", "dddd", 9)],
        [("Ann", "bbbbbbbbbb", 9, 2, "interrupted"), ("Ann", "cc", 9, 2, "interrupted")],
        (0, 2, 11),
    ),
    "who hears more before sending is asked anew": (
        ["aaa\nbbbb", "d" * 20],
        {},
        [("Ann", "aaa", 3), ("Ann", "bbbb", 7)],
        [("Bob", "d" * 20, 7, 2, "interrupted")],
        (1, 2, 9),
    ),
    "a burst is waited for within the other one's patience": (
        ["aaa\nbbbb\ncc"],
        {"quiet_s": 5.0},
        [("Ann", "aaa", 3), ("Ann", "bbbb", 7), ("Ann", "cc", 9)],
        [],
        (1, 1, 14),
    ),
    "what is written when all is sent is withdrawn": (
        ["a\nb\nc\nd"],
        {"exchanges": 2},
        [("Ann", "a", 1), ("Ann", "b", 2)],
        [("Ann", "c", 2, 2, "ended"), ("Ann", "d", 2, 2, "ended")],
        None,
    ),
    "by turns a reply is one message": (
        ["a\nb", "cc"],
        {"mode": "ping-pong"},
        [("Ann", "a\nb", 3), ("Bob", "cc", 5)],
        [],
        (0, 2, 5),
    ),
}


@pytest.mark.parametrize("case", BURSTS)
def test_rules_of_bursts(case: str) -> None:
    replies, chosen, messages, withdrawn, due = BURSTS[case]
    talk = transcript(**chosen)
    for reply in replies:
        talk.add(TurnAnswer(text=reply))
    assert [(message.speaker, message.text, message.at) for message in talk.messages] == messages
    unsent = [(message.speaker, message.text, message.at, message.turn, message.why) for message in talk.withdrawn]
    assert unsent == withdrawn
    assert talk.answer().withdrawn == talk.withdrawn
    assert due == (None if talk.ended else (talk.side, talk.number, talk.now))


def test_what_was_read_counts_for_the_first_message_only() -> None:
    talk = transcript(quiet_s=5.0, delays=SECOND_A_LETTER.model_copy(update={"read_mean": 0.5}))
    talk.add(TurnAnswer(text="aaa\nbbbb"))
    talk.add(TurnAnswer(text="cc\nd"))
    assert [message.delay_s for message in talk.messages] == [3.0, 4.0, 5 + 2 + 0.5 * 7, 1.0]  # with the wait of 5 s


@settings(max_examples=60)
@given(st.lists(st.lists(st.text("ab", min_size=1, max_size=30), min_size=1, max_size=5), min_size=40), st.floats(0, 9))
def test_every_dialogue_ends_and_nothing_that_was_written_is_lost(replies: list[list[str]], quiet: float) -> None:
    talk = transcript(exchanges=12, quiet_s=quiet, delays=DelaySettings())
    written = 0
    for reply in replies:
        if talk.ended:
            break
        before = talk.now
        talk.add(TurnAnswer(text="\n".join(reply)))
        written += len(reply)
        assert talk.now >= before
    assert talk.ended
    assert talk.number <= len(talk.messages) + 1  # nobody is asked but after a message
    assert len(talk.messages) + len(talk.withdrawn) == written
    times = [message.at or 0.0 for message in talk.messages]
    assert times == sorted(times)
    for message in talk.withdrawn:
        assert message.why == "ended" or talk.messages[message.turn - 1].speaker != message.speaker


def test_by_turns_messages_come_after_the_delays_that_they_bring() -> None:
    talk = transcript("ping-pong")
    draft = talk.copy()
    for turn, delay in enumerate([1.5, 2.0, 0.25]):
        draft.add(TurnAnswer(text=f"message {turn}", delay_s=delay))
    assert [(message.turn, message.speaker) for message in draft.messages] == [(0, "Ann"), (1, "Bob"), (2, "Ann")]
    assert [line.at for line in draft.shown().history] == [1.5, 3.5, 3.75]
    assert (talk.messages, talk.side) == ([], 0)  # of which it was a copy


def drawn(chosen: DelaySettings, written: int, read: int) -> list[float]:
    numbers = random.Random(5)
    return [chosen.draw(written, read, numbers) for _ in range(DRAWS)]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type_mean": 0.3, "type_sd": 0.03}, stats.norm(40 * 0.3, 40 * 0.03)),
        ({"read_mean": 0.03, "read_sd": 0.003}, stats.norm(100 * 0.03, 100 * 0.003)),
        ({"think_shape": 2.5, "think_scale": 0.25}, stats.gamma(2.5, scale=0.25)),
    ],
)
def test_each_part_of_a_delay_follows_its_distribution(part: dict[str, float], expected: Any) -> None:
    assert stats.kstest(drawn(DelaySettings(**{**NO_DELAY, **part}), 40, 100), expected.cdf).pvalue > 0.01


def test_a_delay_is_their_sum_and_never_below_zero() -> None:
    delays = drawn(DelaySettings(), 40, 100)
    variance = (40 * 0.03) ** 2 + (100 * 0.003) ** 2 + 2.5 * 0.25**2
    assert np.mean(delays) == pytest.approx(1 + 12 + 3 + 0.625, abs=4 * (variance / DRAWS) ** 0.5)
    assert np.var(delays) == pytest.approx(variance, rel=0.1)
    assert min(drawn(DelaySettings(**{**NO_DELAY, "type_sd": 1.0}), 10, 0)) == 0.0
