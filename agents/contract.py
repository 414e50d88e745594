"""The contract between agents and whatever runs them: all that a package with agents of its own imports.

:class:`Agent` is the base class and :class:`Declaration` what it declares. An agent gets a stimulus
(:mod:`agents.stimuli`) with a :class:`Draw`, and gives a :class:`Reply` with an answer (:mod:`agents.answers`). What
only some agents can do is in :mod:`agents.capabilities`. How to write one: docs/agents.md.
"""

from agents.agent import Agent
from agents.capabilities import Download
from agents.declaration import GIB, MIB, Declaration, is_installed
from agents.draws import Draw, derive_seed
from agents.entry import Entry
from agents.replies import Filter, Finding, Reply
from agents.settings import LATER, NO_ANSWER, Address, Settings

Verdict = Finding  # as filters of version 0.2 call it

__all__ = [
    "GIB",
    "LATER",
    "MIB",
    "NO_ANSWER",
    "Address",
    "Agent",
    "Declaration",
    "Download",
    "Draw",
    "Entry",
    "Filter",
    "Finding",
    "Reply",
    "Settings",
    "Verdict",
    "derive_seed",
    "is_installed",
]
