"""A measurement over a set: which agents, which stimuli, for how long, and where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.contract import Entry
from serving.bench.drawn_set import Material
from serving.scheduling.placement import DeviceChoice


@dataclass(frozen=True, slots=True)
class Prices:
    """What a run costs."""

    hour: float | None = None
    """Of an hour of a GPU, or of the machine where agents run on its CPU."""
    token: float | None = None
    """Of a token that is written."""


@dataclass(frozen=True, slots=True)
class SetBench:
    """Agents, their stimuli and the conditions of a measurement over a set."""

    entries: Mapping[str, Entry]
    """The agents, by name."""
    settings: Mapping[str, Mapping[str, Any]]
    """Their settings, by name, where they are not the defaults."""
    source: str
    """The set, for results; "made stimuli" for the program's own."""
    materials: Mapping[str, Material]
    """What each agent, or pair, is asked, by name."""
    has_forecast: bool
    """Whether the user gave a set; only then there is a forecast for all of it."""
    seconds: float
    """Seconds of answering for each repeat."""
    for_answers: int | None = None
    """The answers that the forecast is for; None: as many as the whole set has."""
    device: DeviceChoice = "auto"
    """Where agents run."""
    address: str | None = None
    """The Ray cluster's address."""
    batch_size: int | None = None
    """Stimuli that are answered at once; None: as the agent declares."""
    prices: Prices = field(default_factory=Prices)
    """For forecasts."""
    connections: int | None = None
    """Requests under way at once, where the agents are asked by HTTP; None: by ``generate``."""
    arguments: Sequence[str] = ()
    """Of ``turinglike serve``: the options that give agents their settings."""
