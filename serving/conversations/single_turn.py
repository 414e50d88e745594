"""One message of an agent, after what was said before: the request for it, and its answer as a conversation."""

from __future__ import annotations

from typing import Any

from agents.answers import ConversationAnswer, Message, TurnAnswer
from agents.stimuli import ConversationStimulus, parse_row
from serving.conversations.scenario import SIDES
from serving.scheduling.request import AgentRequest


def next_side(stimulus: ConversationStimulus) -> int:
    """Whose message is next: of the one who did not speak last, or of who starts (A, if nobody says)."""
    if not stimulus.history:
        return SIDES.index(stimulus.who_starts or "A")
    return int(stimulus.history[-1].speaker == (stimulus.names or SIDES)[0])


def turn_asked(stimulus: ConversationStimulus) -> tuple[int, dict[str, Any]]:
    """The number of the next message, and the options of a request for it."""
    turn = len(stimulus.history)
    return turn, {"speaker": SIDES[next_side(stimulus)], "turn": turn}


def as_conversation(request: AgentRequest) -> ConversationAnswer:
    """The message that was answered, in the form that a record has of conversations."""
    stimulus = parse_row(request.row)
    assert isinstance(stimulus, ConversationStimulus)
    said = TurnAnswer.model_validate_json(request.answer or b"")
    speaker, turn = (stimulus.names or SIDES)[next_side(stimulus)], len(stimulus.history)
    return ConversationAnswer(messages=[Message(turn=turn, speaker=speaker, agent=request.agent, **said.model_dump())])
