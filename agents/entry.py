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
"""Whether the papers compared an agent, or a variant of it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An agent of the catalogue: a class with settings, under a name. A package may give one as its entry point, where
    a class alone does not say enough::

        echo = Entry("echo", "echo_agent:Echo", ("word_association",), "says the cue again", "its README",
        licence="MIT")
    """

    name: str
    """Its name on the command line and in records: small letters, digits, ".", "_" and "-"."""
    agent: str
    """Its class, as "module:Class"."""
    tasks: tuple[Task, ...]
    """The tasks that it is listed for, some or all of those that its class declares."""
    summary: str
    """What it is, in a few words."""
    source: str
    """The paper, program or package that it comes from."""
    in_paper: InPaper = "no"
    """Whether the papers compared it, or it is a variant of an agent that they compared (docs/fidelity.md)."""
    licence: str = "Apache-2.0"
    """The licence of its weights or service, else of its code."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings other than the defaults of the class."""
    role: Literal["machine", "control"] = "machine"
    """Whether its answers are a machine's, or those of a control such as a catch trial."""
    published: str = ""
    """The checkpoint whose architecture ``checkpoint=random`` means; by default the one of ``settings``."""
    ran: bool = True
    """Whether it ever ran with the weights or the service that it names."""
    typed: str = ""
    """What commands call it, where that is not its name, as ``hf:org/model``."""
    identity: str = ""
    """The name of the algorithm in the digest of a run, by default ``agent``. It stays when the class moves, or every
    older run of it would be refused. Many look like the place where the class stood when they were given. A new family
    is named ``NAME/1``; a change that changes answers raises the number, and older runs are then refused."""

    def __post_init__(self) -> None:
        if not self.published:
            object.__setattr__(self, "published", str(self.settings.get("checkpoint", "")))
        if not self.identity:
            object.__setattr__(self, "identity", self.agent)

    def load_class(self) -> type[Agent[Any]]:
        """Its class. Raises ImportError, also where the module ends the process, and InputError where the name is no
        agent's."""
        module, _, name = self.agent.partition(":")
        try:
            loaded = getattr(importlib.import_module(module), name)
        except SystemExit as error:
            raise ImportError(f"{module} ends the process that imports it: {error!r}") from None
        if not (isinstance(loaded, type) and issubclass(loaded, Agent)):
            raise InputError(f"agent {self.name}: {self.agent} is not an Agent")
        return loaded

    def make(self, overrides: Mapping[str, Any] | None = None) -> Agent[Any]:
        """The agent with the entry's settings and ``overrides``, by name; nothing is loaded. Raises InputError with
        every bad setting, and ImportError."""
        cls = self.load_class()
        values = {**self.settings, **(overrides or {})}
        if values.get("checkpoint") == "random" and self.published:
            values["checkpoint"] = f"random:{self.published}"
        try:
            settings = cls.Settings.model_validate(values)
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
