"""What ``generate`` was asked for, and the units of work that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.catalogue import Entry
from agents.errors import AgentStoppedError
from serving.runs.eligibility import Kind, is_asked
from serving.runs.record_lines import RecordHeader
from serving.runs.resume_state import ResumeState
from serving.scheduling.placement import Device


@dataclass(slots=True)
class GenerateOptions:
    """What the command line says."""

    source: Path
    agents: list[str]
    out: Path
    entries: Mapping[str, Entry]
    task: str | None = None
    samples: int = 1
    seed: int | None = None
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replicas: int | None = None
    batch_size: int | None = None
    auto_batch: bool = False  # instead of the agents' own sizes those that `turinglike bench` has found
    retry_failed: bool = False
    skip_invalid: bool = False
    address: str | None = None
    limit: int | None = None
    device: Device = "auto"
    timeout: float = 600.0
    load_timeout: float = 1800.0


@dataclass(slots=True)
class Unit:
    """One name of ``--agents``: an agent, or a pair that converses."""

    name: str
    members: tuple[str, ...]
    about: Mapping[str, Any]  # what run.json keeps of it, without the task that is not its own
    header: RecordHeader
    done: ResumeState
    total: int = 0
    error: AgentStoppedError | None = None

    again: int = 0  # failed before, and tried again now

    @property
    def is_pair(self) -> bool:
        return len(self.members) == 2

    def answers(self, kind: Kind) -> bool:
        return is_asked(self.about, kind)
