"""What a conversation says of a message: when it was said, and whether it can be said at all."""

from __future__ import annotations

import pytest

from agents.answers import TurnAnswer
from agents.language.filters.policies import THRESHOLDS, Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.transcript import Transcript, no_instructions


@pytest.fixture
def transcript() -> Transcript:
    stimulus = ConversationStimulus(id="c", task="conversation", names=("Ann", "Bob"), who_starts="A")
    return Transcript(stimulus, ("a", "b"), (no_instructions, no_instructions), Policy(), THRESHOLDS)


def test_messages_come_after_the_delays_that_they_bring(transcript: Transcript) -> None:
    for turn, delay in enumerate([1.5, 2.0, 0.25]):
        transcript.add(TurnAnswer(text=f"message {turn}", delay_s=delay))
    assert [one.at for one in transcript.messages] == [1.5, 3.5, 3.75]
    assert [(one.turn, one.speaker) for one in transcript.messages] == [(0, "Ann"), (1, "Bob"), (2, "Ann")]
    assert [one.at for one in transcript.shown().history] == [1.5, 3.5, 3.75]


def test_a_message_that_no_stimulus_may_have_cannot_be_said(transcript: Transcript) -> None:
    assert transcript.why_unusable(b'{"text": "Hello."}') is None
    assert "at most 100000" in (transcript.why_unusable(b'{"text": "%b"}' % (b"x" * 100_001)) or "")
