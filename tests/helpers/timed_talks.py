"""Runs of conversations whose messages took a known time."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.helpers.run_folders import NOT_MODELLED, agent_entry, record, stimulus, write_run

Delays = Sequence[float | None]
WORDS = ("sun", "tea", "house", "river", "green", "dog", "bread", "night")
OF_PEOPLE: dict[str, Any] = {"kind": "human", "seed": None, "timing": None, "worker": None, "created": None}


def conversation(name: str, agents: tuple[str, str], texts: Sequence[str], delays: Delays) -> dict[str, Any]:
    """The record of a conversation by turns of two speakers, A first, about the stimulus ``name``."""
    messages = [
        {**NOT_MODELLED, "turn": at, "speaker": "AB"[at % 2], "agent": agents[at % 2], "text": text, "delay_s": delay}
        for at, (text, delay) in enumerate(zip(texts, delays, strict=True))
    ]
    answer = {"messages": messages, "ended_early": False, "withdrawn": [], "pseudo": []}
    are_people = all(agent.startswith("human") for agent in agents)
    return record(name, "conversation", "~".join(agents), answer=answer, **(OF_PEOPLE if are_people else {}))


def talks(
    folder: Path,
    number: int,
    *,
    people: Callable[[random.Random], float | None],
    machine: Callable[[random.Random], float | None],
    turns: int = 6,
) -> Path:
    """A run of ``number`` conversations of two people, and as many of two machines called alpha, on the same topics.
    Texts come from one distribution; ``people`` and ``machine`` draw the delay of a message, in seconds."""
    chance = random.Random(7)
    records: dict[str, list[Any]] = {"humans": [], "alpha~alpha": []}
    stimuli = []
    for at in range(number):
        stimuli.append(stimulus(f"s{at}", "conversation", topic=WORDS[at % len(WORDS)]))
        for name, agents, delay in (
            ("humans", (f"human:{2 * at}", f"human:{2 * at + 1}"), people),
            ("alpha~alpha", ("alpha", "alpha"), machine),
        ):
            texts = [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))) for _ in range(turns)]
            delays = [delay(chance) for _ in range(turns)]
            records[name].append(conversation(f"s{at}", agents, texts, delays))
    return write_run(folder, stimuli, records, {"alpha~alpha": agent_entry("conversation")})
