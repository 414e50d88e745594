"""When a message is said: after the modelled delays before it, as long as all are modelled."""

from __future__ import annotations

import pytest

from agents.answers import TurnAnswer
from agents.language.filters.policies import THRESHOLDS
from agents.language.filters.settings import Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.transcript import Transcript, no_instructions, why_unusable


@pytest.mark.parametrize(
    ("delays", "times"),
    [
        ([1.5, 2.0, 0.25], [1.5, 3.5, 3.75]),
        ([1.5, None, 2.0], [1.5, None, None]),
        ([None, 1.0, 2.0], [None, None, None]),
        ([0.0], [0.0]),
    ],
)
def test_messages_come_after_the_delays_before_them(delays: list[float | None], times: list[float | None]) -> None:
    stimulus = ConversationStimulus(id="c", task="conversation", names=("Ann", "Bob"))
    nothing = (no_instructions, no_instructions)
    transcript = Transcript(stimulus.model_copy(update={"who_starts": "A"}), ("a", "b"), nothing, Policy(), THRESHOLDS)
    for turn, delay in enumerate(delays):
        transcript.add(TurnAnswer(text=f"message {turn}", delay_s=delay))
    assert [one.at for one in transcript.messages] == times
    assert [(one.turn, one.speaker) for one in transcript.messages] == [
        (turn, ("Ann", "Bob")[turn % 2]) for turn in range(len(times))
    ]
    assert [one.at for one in transcript.shown().history] == times


def test_a_message_that_no_stimulus_may_have_cannot_be_said() -> None:
    assert why_unusable(b'{"text": "Hello."}') is None
    assert "at most 100000" in (why_unusable(b'{"text": "%b"}' % (b"x" * 100_001)) or "")
