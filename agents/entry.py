"""What the catalogue says of one agent, without importing it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from agents.contract import Agent
from agents.errors import InputError, bad_settings
from agents.pretrained import PretrainedAgent, WeightsFileAgent
from agents.random_weights import RANDOM, random_setting
from agents.stimuli import Task

InPaper = Literal["compared", "variant", "no"]
COMPARED: InPaper = "compared"
VARIANT: InPaper = "variant"
NOT_IN_PAPER: InPaper = "no"
# Where classes were that moved since: the digests of older runs name these places.
MOVED = {
    "agents.vision.blip:Blip2Agent": "agents.vision.blip2:Blip2Agent",
    "agents.vision.cloud:AzureVisionAgent": "agents.vision.azure_vision:AzureVisionAgent",
    "agents.vision.cloud:GoogleVisionAgent": "agents.vision.google_vision:GoogleVisionAgent",
    "agents.vision.cloud:RekognitionAgent": "agents.vision.rekognition:RekognitionAgent",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the catalogue. ``agent`` is "module:Class"; ``settings`` are this entry's defaults.

    ``in_paper``: "compared" (the papers' agent, held against its authors' program or its reference as docs/fidelity.md
    tells), "variant" (the same family: another size, other weights, or parts that had to be reconstructed), "no".
    ``ran``: whether it ever ran as it is, with the weights or the service that it names.
    ``published`` is the checkpoint whose architecture "random" means, also in a copy with other settings.
    ``role`` "machine" for participants, "control" for catch trials; ``hidden`` entries are for testing the machinery.
    """

    name: str
    agent: str
    tasks: tuple[Task, ...]
    summary: str
    source: str
    in_paper: InPaper = "no"
    licence: str = "Apache-2.0"
    settings: Mapping[str, Any] = field(default_factory=dict)
    role: Literal["machine", "control"] = "machine"
    hidden: bool = False
    published: str = ""
    ran: bool = True

    def __post_init__(self) -> None:
        if not self.published:
            object.__setattr__(self, "published", str(self.settings.get("checkpoint", "")))

    @property
    def identity(self) -> str:
        """The name of the agent's class in the digest of a run."""
        return MOVED.get(self.agent, self.agent)

    def load_class(self) -> type[Agent[Any]]:
        """Import the agent's class."""
        module, _, name = self.agent.partition(":")
        try:
            loaded = getattr(importlib.import_module(module), name)
        except SystemExit as error:
            raise ImportError(f"{module} ends the process that imports it: {error!r}") from None
        if not (isinstance(loaded, type) and issubclass(loaded, Agent)):
            raise InputError(f"agent {self.name}: {self.agent} is not an Agent")
        return loaded

    def make(self, overrides: Mapping[str, Any] | None = None) -> Agent[Any]:
        """The agent with its settings checked, nothing loaded. Raises InputError with every bad setting."""
        cls = self.load_class()
        chosen = {**self.settings, **(overrides or {})}
        if chosen.get("checkpoint") == RANDOM and issubclass(cls, PretrainedAgent):
            chosen["checkpoint"] = random_setting(
                self.published or str(cls.Settings.model_fields["checkpoint"].default)
            )
        try:
            settings = cls.Settings.model_validate(chosen)
        except ValidationError as error:
            problems = bad_settings(self.name, cls.Settings.model_fields, error.errors(include_url=False))
            raise InputError(f"agent {self.name}: bad settings", problems) from None
        return cls(settings, self.name)

    def takes_random_weights(self) -> bool:
        """Whether ``checkpoint=random`` gives the agent its architecture without a checkpoint."""
        cls = self.load_class()
        if "checkpoint" not in cls.Settings.model_fields:
            return False
        agent = self.make({"checkpoint": RANDOM})
        if isinstance(agent, PretrainedAgent):
            return agent.unknown_architecture() is None
        return isinstance(agent, WeightsFileAgent)
