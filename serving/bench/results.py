"""Results of ``turinglike bench``: JSON ``turinglike.bench/4`` (seconds, bytes, shares of 1) and table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from rich.console import Console, RenderableType

from agents import __version__
from agents.contract import GIB, MIB
from agents.errors import printable
from agents.stimuli import Mode, Task
from serving.files.terminal import plain_table
from serving.scheduling.machine import Device, Host


@dataclass(frozen=True)
class Size:
    """A batch size (or calls at once): ``stimuli`` answered in ``seconds``, ``failed`` not."""

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


@dataclass
class Measured:
    """An agent's results; ``stopped`` is why no larger size was measured."""

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
    stopped: str | None = None
    best: Size | None = None


@dataclass(frozen=True)
class Failed:
    """Why an agent could not be measured."""

    agent: str
    message: str


@dataclass
class BenchResult:
    """``complete`` is false until everything was measured."""

    created: str
    host: Host
    device: Device
    agents: list[Measured] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    complete: bool = False
    version: str = __version__
    schema: Literal["turinglike.bench/4"] = "turinglike.bench/4"

    def to_json(self) -> bytes:
        return orjson.dumps(self, option=orjson.OPT_APPEND_NEWLINE)


def print_result(console: Console, result: BenchResult) -> None:
    for part in _parts(result):
        text = printable(part) if isinstance(part, str) else part
        console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=isinstance(part, str))


def _parts(result: BenchResult) -> Iterator[RenderableType]:
    host = result.host
    device = result.device
    yield f"{host.name}: {host.cpu}, {host.cores} cores, {host.memory / GIB:.0f} GiB; Turinglike {result.version}"
    yield f"{device.name}, {device.memory / GIB:.0f} GiB"
    for measured in result.agents:
        yield from _agent(measured)
    for failed in result.failed:
        yield f"{failed.agent} failed: {failed.message}"
    if not result.complete:
        yield "ended before everything was measured"


def _agent(measured: Measured) -> Iterator[RenderableType]:
    kind = measured.task if measured.mode is None else f"{measured.task}, {measured.mode}"
    weights = ", random weights" if measured.random_weights else ""
    times = f"loaded in {_seconds(measured.load_s)}, first answer after {_seconds(measured.first_answer_s)}"
    yield ""
    yield f"{measured.agent} ({kind}; {measured.device}{weights}): {times}"
    table = plain_table("calls" if measured.continuous else "batch", *(head for head, _ in COLUMNS.values()))
    for size in measured.sizes:
        values = [(getattr(size, name), formatted) for name, (_, formatted) in COLUMNS.items()]
        cells = ["-" if value is None else formatted(value) for value, formatted in values]
        mark = "*" if size == measured.best else ""
        table.add_row(f"{size.batch_size}{mark}", *cells)
    yield table
    if measured.stopped is not None:
        yield f"  {measured.stopped}"
    if measured.best is not None:
        yield f"  best: {measured.best.batch_size}, {rate(measured.best.stimuli_s)} stimuli/s"


def rate(value: float) -> str:
    """A number per second in four digits, without exponent."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= 0.1 or value == 0 else f"{100 * value:.2g} %"


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1000 * value:.3g} ms" if value >= 0.001 else f"{1e6 * value:.3g} µs"


def _memory(value: float) -> str:
    return f"{value / GIB:.1f} GiB" if value >= GIB else f"{value / MIB:.0f} MiB"


COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "stimuli_s": ("stimuli/s", rate),
    "tokens_s": ("tokens/s", rate),
    "fixations_s": ("fix/s", rate),
    "p50_s": ("p50", _seconds),
    "p95_s": ("p95", _seconds),
    "busy": ("busy", _share),
    "peak_host_bytes": ("host", _memory),
    "peak_device_bytes": ("device", _memory),
}
