"""Who converses about what: what a stimulus leaves open is drawn from the conversation's seed, before anyone speaks.

Topics are those that people were given in the papers (2025: food too, which GPT-4o's program leaves out); names and
personas are the two lists of the papers' programs, of which each speaker has one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from agents.stimuli import ConversationStimulus

TOPICS = (
    "fashion",
    "politics",
    "books",
    "sports",
    "general entertainment",
    "music",
    "science",
    "technology",
    "movies",
    "food",
)
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
    """The stimulus with topic, names, personas and who starts filled in; what it gives itself stays.

    ``seed`` is the conversation's own. Each of the four has its own draw, so that giving one changes no other. Speakers
    that the history calls "A" and "B" get their names there too.
    """
    drawn = random.Random(seed)
    topic = drawn.choice(TOPICS)
    names = tuple(drawn.choice(those) for those in NAMES)
    personas = tuple(drawn.choice(those) for those in PERSONAS)
    starts = drawn.choice(SIDES)
    found = {"topic": topic, "names": names, "personas": personas, "who_starts": starts}
    full = stimulus.model_copy(update={key: value for key, value in found.items() if getattr(stimulus, key) is None})
    history = [one.model_copy(update={"speaker": speaker_name(one.speaker, full.names)}) for one in full.history]
    return full.model_copy(update={"history": history}) if history else full


def speaker_name(speaker: str, names: Sequence[str] | None) -> str:
    """The name of a ``speaker`` who may be called "A" or "B", if neither is one of the ``names``."""
    return names[SIDES.index(speaker)] if names and speaker in SIDES and not {*SIDES} & {*names} else speaker
