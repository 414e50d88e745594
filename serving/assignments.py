"""What ``generate`` was asked for, and what follows from it for each agent or pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.catalogue import Entry
from agents.errors import AgentStoppedError
from serving.runs.eligibility import Kind, is_asked
from serving.runs.record_lines import RecordHeader
from serving.runs.resume_state import NONE, ResumeState
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
    retry_failed: bool = False
    skip_invalid: bool = False
    address: str | None = None
    here: bool = False  # agents answer in this process, however much there is
    limit: int | None = None
    device: Device = "auto"
    timeout: float = 600.0
    load_timeout: float = 1800.0
    quiet: bool = False
    verbose: bool = False


@dataclass(slots=True)
class Assignment:
    """What one name of ``--agents``, an agent or a pair that converses, has to answer in a run.

    ``resume`` says what it has answered before, ``total`` is how many answers there are to be in all.
    """

    name: str
    members: tuple[str, ...]
    about: Mapping[str, Any]  # what run.json keeps of it, without the task that is not its own
    header: RecordHeader
    resume: ResumeState
    records: Path
    journal: Path
    total: int = 0
    error: AgentStoppedError | None = None
    retried: int = 0  # failed before, and tried again now

    @property
    def is_pair(self) -> bool:
        return len(self.members) == 2

    def answers(self, kind: Kind) -> bool:
        return is_asked(self.about, kind)

    def left(self, limit: int | None) -> int:
        """How many answers are still to be made to the first ``limit`` stimuli."""
        return self.total - int((self.resume.state[:limit] != NONE).sum()) + self.retried
