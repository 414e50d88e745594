"""What ``turinglike bench`` measured: the JSON object ``turinglike.bench/3``, as dataclasses.

docs/bench.md says what each key means. Rates are per second of wall time, times are seconds, memory is bytes, shares
lie between 0 and 1; null stands for what there is not, or what could not be measured here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from agents import __version__
from agents.stimuli import Mode, Task
from serving.scheduling.machine import Device, Host

Part = Literal["device", "bare", "end_to_end"]
StopReason = Literal["out_of_memory", "no_gain", "largest", "error"]


@dataclass(frozen=True)
class Size:
    """One batch size in the steady state; of an agent whose engine batches by itself, so many calls at once.

    ``stimuli`` were answered in ``seconds``, and ``failed`` more were not.
    """

    batch_size: int
    stimuli_s: float
    p50_s: float
    p95_s: float
    peak_host_bytes: int
    seconds: float
    stimuli: int
    failed: int = 0
    tokens_s: float | None = None
    fixations_s: float | None = None
    peak_device_bytes: int | None = None
    busy: float | None = None


@dataclass(frozen=True)
class Stopped:
    """Why the sweep ended: ``batch_size`` is the first that was not measured, or the last that was (``no_gain``,
    ``largest``)."""

    batch_size: int
    why: StopReason
    message: str


@dataclass(frozen=True)
class Differing:
    """``count`` of ``of`` answers in batches of ``batch_size`` were not what the same stimuli get one at a time."""

    share: float
    count: int
    of: int
    batch_size: int


@dataclass(frozen=True)
class EndToEnd:
    """The whole of ``generate`` with so many workers, and what the bare agent did right before and right after."""

    replicas: int
    batch_size: int
    stimuli_s: float
    bare_stimuli_s: float
    ratio: float
    bare: tuple[float, float]


@dataclass
class Measured:
    """One agent, asked stimuli of one task (and mode). ``best`` is there as soon as one size was measured."""

    agent: str
    task: Task
    mode: Mode | None
    digest: str
    settings: dict[str, Any]
    device: str
    continuous: bool
    random_weights: bool = False
    load_s: float = 0.0
    first_answer_s: float = 0.0
    sizes: list[Size] = field(default_factory=list)
    stopped: Stopped | None = None
    best: Size | None = None
    differing: Differing | None = None
    end_to_end: list[EndToEnd] = field(default_factory=list)

    def at_best(self) -> Size:
        assert self.best is not None
        return self.best


@dataclass(frozen=True)
class Failed:
    """The ``part`` that could not be measured of an agent or the device, and why."""

    agent: str
    part: Part
    message: str


@dataclass
class BenchResult:
    """The whole result. ``complete`` is false until everything was measured."""

    created: str
    host: Host
    device: Device
    agents: list[Measured] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    complete: bool = False
    version: str = __version__
    schema: Literal["turinglike.bench/3"] = "turinglike.bench/3"

    def to_json(self) -> bytes:
        """One line of JSON, with its newline."""
        return orjson.dumps(self, option=orjson.OPT_APPEND_NEWLINE)
