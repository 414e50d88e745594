"""Replies of agents, and filters, which look at a reply before it becomes an answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agents.stimuli import Stimulus


@dataclass(slots=True)
class Reply:
    """What an agent gives back for a stimulus."""

    answer: BaseModel
    """The answer, of the task's type in :mod:`agents.answers`."""
    raw: Any = None
    """What the model wrote or computed before cleaning, as JSON values; it stands in the record beside the answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a filter found in a reply. It stands in the record, under the attempt's ``verdicts``."""

    filter: str
    """The filter's name, such as "too_short"."""
    rejected: bool
    """Whether another attempt is wanted; otherwise the finding is a note."""
    found: str
    """What was found, such as the message itself, in at most some hundred characters."""


Filter = Callable[[Stimulus, Reply], Finding | None]
"""A pure function that looks at a stimulus and its reply; None: it found nothing."""
