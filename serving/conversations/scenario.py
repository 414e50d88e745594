"""Who converses about what: what a stimulus leaves open is drawn from the conversation's seed, before anyone speaks.

Topics are those that people had in the papers; names and personas are the two lists of the papers' programs, a list for
each speaker.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from agents.answers import ConversationAnswer, Message, TurnAnswer
from agents.stimuli import ConversationStimulus, parse_row
from serving.scheduling.request import AgentRequest

TOPICS = (
    "fashion", "politics", "books", "sports", "general entertainment", "music", "science", "technology", "movies",
    "food",
)  # fmt: skip
PERSONAS = (
    ("logical and skeptical", "excitable and passionate", "sarcastic and witty", "serious and intellectual"),
    ("curious and open-minded", "pragmatic and reserved", "opinionated and strong-willed", "friendly and cheerful"),
)
NAMES = (
    ("John", "Alice", "Mark", "Andrew", "Julia", "Georgia", "Juliet", "Lily", "Olivia", "Emmett", "Miles", "Oscar",
     "William"),
    ("Frank", "Tom", "Elizabeth", "Gabriel", "Paul", "Alfie", "Christina", "Edward", "Ella", "Oliver", "Karen",
     "Isabel", "Brad"),
)  # fmt: skip
SIDES = ("A", "B")


def draw_scenario(stimulus: ConversationStimulus, seed: int) -> ConversationStimulus:
    """The stimulus with topic, names, personas and who starts filled in from ``seed``; what it brings itself stays, and
    changes none of the others. Speakers that the history calls "A" and "B" get their names there too."""
    numbers = random.Random(seed)
    drawn = {
        "topic": numbers.choice(TOPICS),
        "names": tuple(numbers.choice(names) for names in NAMES),
        "personas": tuple(numbers.choice(personas) for personas in PERSONAS),
        "who_starts": numbers.choice(SIDES),
    }
    full = stimulus.model_copy(update={key: value for key, value in drawn.items() if getattr(stimulus, key) is None})
    history = [line.model_copy(update={"speaker": speaker_name(line.speaker, full.names)}) for line in full.history]
    return full.model_copy(update={"history": history}) if history else full


def speaker_name(speaker: str, names: Sequence[str] | None) -> str:
    """The name of a ``speaker`` who may be called "A" or "B", if neither is among the ``names``."""
    return names[SIDES.index(speaker)] if names and speaker in SIDES and not {*SIDES} & {*names} else speaker


# a message of an agent after a history


def next_side(stimulus: ConversationStimulus) -> int:
    """The side that writes after the history: who did not write last, or who starts (A, if that is open)."""
    if not stimulus.history:
        return SIDES.index(stimulus.who_starts or "A")
    return int(stimulus.history[-1].speaker == (stimulus.names or SIDES)[0])


def next_turn(stimulus: ConversationStimulus) -> tuple[int, dict[str, Any]]:
    """The number of the message after the history, and the options of a request for it."""
    turn = len(stimulus.history)
    return turn, {"speaker": SIDES[next_side(stimulus)], "turn": turn}


def as_conversation(request: AgentRequest) -> ConversationAnswer:
    """The answered message, in the form that a record has of conversations."""
    stimulus = parse_row(request.row)
    assert isinstance(stimulus, ConversationStimulus)
    fields = TurnAnswer.model_validate_json(request.answer or b"").model_dump()
    speaker, turn = (stimulus.names or SIDES)[next_side(stimulus)], len(stimulus.history)
    return ConversationAnswer(messages=[Message(turn=turn, speaker=speaker, agent=request.agent, **fields)])
