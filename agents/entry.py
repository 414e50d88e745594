"""Entries of the catalogue: which class is an agent, with which settings, under which name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from agents.agent import Agent
from agents.capabilities import RandomWeights
from agents.errors import InputError, bad_settings
from agents.stimuli import Task

InPaper = Literal["compared", "variant", "no"]


@dataclass(frozen=True, slots=True)
class Entry:
    """``agent``: "module:Class"; ``ran``: with the weights or service that it names; ``in_paper``: docs/fidelity.md;
    ``published``: the checkpoint whose architecture "random" means; ``typed``: what commands call it, where
    that is not its name.

    ``identity`` is the name of the algorithm in the digest of a run, by default ``agent``. It never changes with a
    class's place, so that classes may move: else every older run of them would be refused. Many of ours look like the
    place where the class stood when they were given. A new family is named ``NAME/1``; a change of the algorithm that
    changes answers raises the number (``…/2``), and older runs are then refused."""

    name: str
    agent: str
    tasks: tuple[Task, ...]
    summary: str
    source: str
    in_paper: InPaper = "no"
    licence: str = "Apache-2.0"
    settings: Mapping[str, Any] = field(default_factory=dict)
    role: Literal["machine", "control"] = "machine"
    published: str = ""
    ran: bool = True
    typed: str = ""
    identity: str = ""

    def __post_init__(self) -> None:
        if not self.published:
            object.__setattr__(self, "published", str(self.settings.get("checkpoint", "")))
        if not self.identity:
            object.__setattr__(self, "identity", self.agent)

    def load_class(self) -> type[Agent[Any]]:
        """Raises ImportError, InputError."""
        module, _, name = self.agent.partition(":")
        try:
            loaded = getattr(importlib.import_module(module), name)
        except SystemExit as error:
            raise ImportError(f"{module} ends the process that imports it: {error!r}") from None
        if not (isinstance(loaded, type) and issubclass(loaded, Agent)):
            raise InputError(f"agent {self.name}: {self.agent} is not an Agent")
        return loaded

    def make(self, overrides: Mapping[str, Any] | None = None) -> Agent[Any]:
        """The agent, nothing loaded. Raises InputError with every bad setting."""
        cls = self.load_class()
        chosen = {**self.settings, **(overrides or {})}
        if chosen.get("checkpoint") == "random" and self.published:
            chosen["checkpoint"] = f"random:{self.published}"
        try:
            settings = cls.Settings.model_validate(chosen)
        except ValidationError as error:
            problems = bad_settings(self.name, cls.Settings.model_fields, error.errors(include_url=False))
            raise InputError(f"agent {self.name}: bad settings", problems) from None
        agent = cls(settings, self.name)
        agent.typed = self.typed
        return agent

    def takes_random_weights(self) -> bool:
        """Whether ``checkpoint=random`` can be set. Raises InputError for settings that do not allow it."""
        if "checkpoint" not in self.load_class().Settings.model_fields:
            return False
        agent = self.make({"checkpoint": "random"})
        return isinstance(agent, RandomWeights) and agent.takes_random_weights()
