"""When a message is said: after the modelled delays before it, as long as all are modelled."""

from __future__ import annotations

import pytest

from agents.answers import Message, TurnAnswer
from agents.stimuli import ConversationStimulus
from serving.conversations import turns


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
    said: list[Message] = []
    for turn, delay in enumerate(delays):
        answer = TurnAnswer(text=f"message {turn}", delay_s=delay)
        said.append(turns.next_message(stimulus, said, turn % 2, "a", answer))
    assert [one.at for one in said] == times
    assert [(one.turn, one.speaker) for one in said] == [(turn, ("Ann", "Bob")[turn % 2]) for turn in range(len(said))]
    assert [one.at for one in turns.shown(stimulus, said).history] == times
