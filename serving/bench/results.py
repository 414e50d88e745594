"""What ``turinglike bench`` found: the JSON object ``turinglike.bench/2``, as dataclasses that are filled on the way.

Rates are per second of wall time, times are seconds, memory is bytes; shares lie between 0 and 1 (a share of a measured
limit can be a little above). null stands for what there is not, or what could not be measured here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import TypeAdapter, ValidationError

from agents import __version__
from agents.errors import InputError
from agents.tasks import Mode, Task
from serving.scheduling.machine import Device, Host

Part = Literal["limits", "bare", "end_to_end", "peers", "packed"]
StopReason = Literal["out_of_memory", "no_gain", "largest", "error"]


@dataclass(frozen=True)
class Size:
    """One batch size in the steady state; of an agent whose engine batches by itself, so many calls at once.

    ``p50_s`` and ``p95_s`` are of one batch: to prepare it and to answer it. ``busy`` is the share of the time spent in
    ``respond``, which is not known of calls. ``flops`` are counted in one batch; ``flop_share`` is what they come to
    per second, of the device's limit for the type ``precision``. ``stimuli`` were answered in ``seconds``, and
    ``failed`` more were not.
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
    flops: int | None = None
    flop_share: float | None = None
    precision: str | None = None


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
    """The whole of ``generate`` with so many workers. ``ratio`` is to the bare agent at the same batch size,
    ``bare_stimuli_s``: the mean of what it did right before and right after (``bare``)."""

    replicas: int
    batch_size: int
    stimuli_s: float
    bare_stimuli_s: float
    ratio: float
    bare: tuple[float, float]


@dataclass(frozen=True)
class Peer:
    """Another program that does the same. ``our_stimuli_s`` is the bare agent's at that batch size, measured right
    after; beside Ray Data it is that of ``generate`` with one worker. ``ratio`` is ours to the peer's."""

    name: str
    batch_size: int
    stimuli_s: float
    our_stimuli_s: float
    ratio: float


@dataclass
class Measured:
    """One agent, asked stimuli of one task (and mode).

    ``digest`` is of the settings and the checkpoint, as in records; ``settings`` are all of them. ``device`` is "cpu"
    or "cuda:0". ``load_s`` is for opening and loading, ``first_answer_s`` for that and the first answer. ``best`` is
    the batch size to use (see :func:`serving.bench.sweep.best`); it is there as soon as one was measured.
    """

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
    peers: list[Peer] = field(default_factory=list)

    def at(self, batch_size: int) -> Size | None:
        """What was measured at a batch size."""
        return next((one for one in self.sizes if one.batch_size == batch_size), None)

    def at_best(self) -> Size:
        """What was measured at the best batch size, of an agent that was measured."""
        assert self.best is not None
        return self.best


@dataclass(frozen=True)
class Packed:
    """Several agents at work on one device together: stimuli per second of each, and what each does there alone."""

    agents: tuple[str, ...]
    stimuli_s: dict[str, float]
    alone: dict[str, float]


@dataclass(frozen=True)
class Failed:
    """What could not be measured (``part``) of an agent (or several, or the device), and why, in one sentence."""

    agent: str
    part: Part
    message: str


@dataclass
class BenchResult:
    """All of it. ``limits`` are operations per second of a product of large matrices, by type. ``complete`` is false
    until everything was measured."""

    created: str
    host: Host
    device: Device
    limits: dict[str, float] = field(default_factory=dict)
    agents: list[Measured] = field(default_factory=list)
    packed: Packed | None = None
    failed: list[Failed] = field(default_factory=list)
    complete: bool = False
    version: str = __version__
    schema: Literal["turinglike.bench/2"] = "turinglike.bench/2"

    def to_json(self) -> bytes:
        """One line of JSON, with its newline."""
        return orjson.dumps(self, option=orjson.OPT_APPEND_NEWLINE)


def read(path: Path) -> BenchResult:
    """The result in a file. Raises InputError."""
    try:
        return TypeAdapter(BenchResult).validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: not a result of `turinglike bench`: {where}: {first['msg']}") from None
