"""The contract between agents and whatever runs them: all that a package with agents of its own imports.

An agent gets a stimulus with a draw, and gives a reply with an answer. How to write one: docs/agents.md. Nothing is
defined here, so that a package has one place to import from:

| file | what of it is here |
| --- | --- |
| ``agents/agent.py`` | :class:`Agent`, the base class with its six verbs |
| ``agents/declaration.py`` | :class:`Declaration`, what a class declares; ``MIB``, ``GIB`` |
| ``agents/settings.py`` | :class:`Settings`, from which an agent's settings derive |
| ``agents/draws.py`` | :class:`Draw`, what an answer is drawn by; :func:`derive_seed` |
| ``agents/replies.py`` | :class:`Reply`, :class:`Finding` and :data:`Filter` |
| ``agents/entry.py`` | :class:`Entry`, an agent in the catalogue |

Stimuli are in ``agents/stimuli.py``, answers in ``agents/answers.py``. What only some agents can do is in
``agents/capabilities.py``, a protocol for each, and in ``agents/errors.py`` is what they raise.
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
