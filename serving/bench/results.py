"""What ``turinglike bench`` found: the JSON object ``turinglike.bench/1``, as dataclasses.

Rates are per second of wall time, times are seconds, memory is bytes; shares lie between 0 and 1 (a share of a measured
limit can be a little above). null stands for what there is not, or what could not be measured here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError

from agents.errors import InputError
from agents.tasks import Mode, Task

SCHEMA: Literal["turinglike.bench/1"] = "turinglike.bench/1"
Part = Literal["limits", "bare", "end_to_end", "peers", "packed"]
Why = Literal["out_of_memory", "too_little_memory", "no_gain", "largest", "error", "interrupted"]


class _Part:
    """Base of the parts: a key that is none of theirs is an error."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Host(_Part):
    """The machine: its name, its processor's, how many cores this process may use, and its memory."""

    name: str
    cpu: str
    cores: int
    memory: int


@dataclass(frozen=True)
class Device(_Part):
    """What the models ran on. ``kind`` is "cpu" or "cuda"; ``memory`` is the device's own, or the host's."""

    name: str
    kind: Literal["cpu", "cuda"]
    memory: int


@dataclass(frozen=True)
class Limits(_Part):
    """The most that the device was seen to do: bytes read and written per second while memory is copied, and floating
    point operations per second of a product of large matrices of the type ``precision``; ``others`` are those of
    further types, by type."""

    copy_bytes_s: float | None
    matrix_flop_s: float | None
    precision: str = "float32"
    others: dict[str, float] = field(default_factory=dict)

    def matrix(self, precision: str | None) -> float | None:
        """Operations per second with matrices of a type, if that was measured."""
        return self.matrix_flop_s if precision == self.precision else self.others.get(precision or "")


@dataclass(frozen=True)
class Size(_Part):
    """One batch size, in the steady state; with agents that batch by themselves, so many calls at once.

    ``p50_s`` and ``p95_s`` are of one batch, from the beginning of its preparation to its answers. ``busy`` is the
    share of the time spent in ``respond``, ``waiting`` that spent waiting for input to be prepared, ``device_busy``
    that in which a kernel ran on the GPU. ``flops`` and ``bytes`` are what one batch has to do at least, most of it
    in ``precision``, ``flop_share`` and ``byte_share`` what they come to per second, of the :class:`Limits`.
    ``stimuli`` were answered in ``seconds``, and ``failed`` more were not.
    """

    batch_size: int
    stimuli_s: float
    tokens_s: float | None
    fixations_s: float | None
    p50_s: float
    p95_s: float
    peak_host_bytes: int
    peak_device_bytes: int | None
    busy: float
    waiting: float
    device_busy: float | None
    flops: int | None
    bytes: int | None
    flop_share: float | None
    byte_share: float | None
    seconds: float
    stimuli: int
    failed: int = 0
    precision: str | None = None


@dataclass(frozen=True)
class Stopped(_Part):
    """Why the sweep ended: ``batch_size`` is the first that was not measured, or the last that was (``no_gain``,
    ``largest``)."""

    batch_size: int
    why: Why
    message: str


@dataclass(frozen=True)
class Best(_Part):
    """The smallest batch size that is nearly as fast as the fastest, and not so small that handing batches over costs
    more than that; see :func:`serving.bench.best.best`."""

    batch_size: int
    stimuli_s: float


@dataclass(frozen=True)
class Differing(_Part):
    """``count`` of ``of`` answers in batches of ``batch_size`` were not what the same stimuli get one at a time."""

    share: float
    count: int
    of: int
    batch_size: int


@dataclass(frozen=True)
class EndToEnd(_Part):
    """The whole scheduler with so many workers; ``ratio`` to the bare agent's throughput at the same batch size,
    ``bare_stimuli_s``, the mean of what it was right before and right after (``bare``; before alone, if it could not be
    measured again)."""

    replicas: int
    batch_size: int
    stimuli_s: float
    bare_stimuli_s: float
    ratio: float
    bare: tuple[float, ...] = ()


@dataclass(frozen=True)
class Peer(_Part):
    """Another program that does the same, and ``our_stimuli_s``: the bare agent's at that batch size, measured right
    before, or beside Ray Data the scheduler's with one worker. ``ratio`` is ours to the peer's."""

    name: str
    batch_size: int
    stimuli_s: float
    our_stimuli_s: float
    ratio: float


@dataclass(frozen=True)
class Measured(_Part):
    """One agent, asked stimuli of one task (and mode).

    ``digest`` is of the settings and the checkpoint, as in records; ``settings`` are all of them. ``device`` is "cpu"
    or "cuda:0". ``load_s`` is for opening and loading, ``first_answer_s`` for that and the first answer.
    """

    agent: str
    task: Task
    mode: Mode | None
    digest: str
    settings: dict[str, Any]
    device: str
    random_weights: bool
    continuous: bool
    load_s: float
    first_answer_s: float
    sizes: tuple[Size, ...]
    stopped: Stopped | None
    best: Best | None
    differing: Differing | None = None
    end_to_end: tuple[EndToEnd, ...] = ()
    peers: tuple[Peer, ...] = ()

    def at(self, batch_size: int) -> Size | None:
        """What was measured at a batch size."""
        return next((one for one in self.sizes if one.batch_size == batch_size), None)


@dataclass(frozen=True)
class Packed(_Part):
    """Several agents at work on one device together: stimuli per second of each, and what each does there alone."""

    agents: tuple[str, ...]
    stimuli_s: dict[str, float]
    alone: dict[str, float]


@dataclass(frozen=True)
class Failed(_Part):
    """What could not be measured (``part``) of an agent (or several, or the device), and why, in one sentence."""

    agent: str
    part: Part
    message: str


@dataclass(frozen=True)
class Result(_Part):
    """All of it. ``complete`` is false if the command was ended before everything was measured."""

    version: str
    created: str
    host: Host
    device: Device
    limits: Limits
    agents: tuple[Measured, ...]
    packed: Packed | None = None
    failed: tuple[Failed, ...] = ()
    complete: bool = True
    schema: Literal["turinglike.bench/1"] = SCHEMA

    def to_json(self) -> bytes:
        """One line of JSON, without a newline."""
        return orjson.dumps(self)


ADAPTER: TypeAdapter[Result] = TypeAdapter(Result)


def from_json(text: bytes | str) -> Result:
    """The result that a line of JSON holds. Raises pydantic's ValidationError."""
    return ADAPTER.validate_json(text)


def read(path: Path) -> Result:
    """The result in a file: the JSON object alone, or the command's whole output, of which it is the last line.

    Raises InputError.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    last = text.strip().rpartition(b"\n")[2]
    for candidate in (text, last):
        try:
            return from_json(candidate)
        except ValidationError as error:
            wrong = error
    first = wrong.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    raise InputError(f"{path}: not a result of `turinglike bench`: {where + ': ' if where else ''}{first['msg']}")
