"""The results of ``turinglike bench``: as JSON ``turinglike.bench/5``, and as a table.

Names that end in ``_s`` are seconds or, of rates, a number in a second; names that end in ``_bytes`` are bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from rich.console import Console, RenderableType

from agents import __version__
from agents.contract import GIB
from agents.errors import printable
from agents.stimuli import Mode, Task
from serving.bench import figures
from serving.bench.run_results import MeasuredRuns
from serving.bench.run_tables import run_table
from serving.files.terminal import plain_table
from serving.scheduling.machine import Device, Host


@dataclass(frozen=True)
class BatchSizeResult:
    """What was measured with one batch size."""

    batch_size: int
    """Stimuli in a batch; calls at once, where the agent batches by itself."""
    stimuli_s: float
    """Stimuli answered in a second."""
    p50_s: float
    """The median time of a batch."""
    p95_s: float
    """The time within which 95 % of the batches were answered."""
    peak_host_bytes: int
    """The largest memory of the process so far."""
    seconds: float
    """How long was measured."""
    stimuli: int
    """Stimuli that were answered in that time."""
    failed: int = 0
    """Stimuli that were not answered."""
    tokens_s: float | None = None
    """Tokens written in a second; None where the agent counts none."""
    fixations_s: float | None = None
    """Fixations in a second; None for other tasks."""
    peak_device_bytes: int | None = None
    """The largest memory on the GPU; None without one."""
    busy: float | None = None
    """The part of the time in which the model computed, from 0 to 1; None where the agent batches by itself."""


@dataclass
class Measured:
    """What ``bench`` tells of one agent and one of its tasks."""

    agent: str
    """The agent's name."""
    task: Task
    """The only task that was measured."""
    mode: Mode | None
    """The viewing mode; None for tasks other than attention prediction."""
    digest: str
    """The hash of settings and checkpoint, as in ``run.json``."""
    settings: dict[str, Any]
    """All settings in effect, defaults with them, as in ``run.json``."""
    device: str
    """"cpu" or "cuda:0"."""
    continuous: bool
    """Whether the agent batches by itself."""
    random_weights: bool = False
    """Whether the weights are random: then only speed and memory mean anything."""
    load_s: float = 0.0
    """From the start of the process to the loaded agent."""
    first_answer_s: float = 0.0
    """From the start of the process to the first answer."""
    sizes: list[BatchSizeResult] = field(default_factory=list)
    """The batch sizes, in the order in which they were measured."""
    stopped: str | None = None
    """Why no larger batch size was measured."""
    best: BatchSizeResult | None = None
    """The smallest batch size that is nearly as fast as the fastest one."""


@dataclass(frozen=True)
class Failed:
    """An agent that could not be measured."""

    agent: str
    """The agent's name."""
    message: str
    """Why not, for people."""


@dataclass
class BenchResult:
    """All results of a command."""

    created: str
    """When the command began (UTC)."""
    host: Host
    """The machine."""
    device: Device
    """What agents with weights ran on."""
    agents: list[Measured] = field(default_factory=list)
    """The agents that were measured alone, in the order of the command line."""
    runs: list[MeasuredRuns] = field(default_factory=list)
    """What was measured over a set, in the same order."""
    failed: list[Failed] = field(default_factory=list)
    """The agents for which there are no results, in the same order."""
    complete: bool = False
    """Whether everything was measured; False after Ctrl-C."""
    version: str = __version__
    """Turinglike's version."""
    schema: Literal["turinglike.bench/5"] = "turinglike.bench/5"
    """The form of ``bench.json``; its number grows when a key changes its meaning."""

    def to_json(self) -> bytes:
        """The content of ``bench.json``."""
        return orjson.dumps(self, option=orjson.OPT_APPEND_NEWLINE)


def print_result(console: Console, result: BenchResult) -> None:
    """Print a table for each agent; a star marks the best batch size."""
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
    for runs in result.runs:
        yield from run_table(runs)
    for failed in result.failed:
        yield f"{failed.agent} failed: {failed.message}"
    if not result.complete:
        yield "ended before everything was measured"


def _agent(measured: Measured) -> Iterator[RenderableType]:
    kind = measured.task if measured.mode is None else f"{measured.task}, {measured.mode}"
    weights = ", random weights" if measured.random_weights else ""
    times = (
        f"loaded in {figures.seconds(measured.load_s)}, first answer after {figures.seconds(measured.first_answer_s)}"
    )
    yield ""
    yield f"{measured.agent} ({kind}; {measured.device}{weights}): {times}"
    table = plain_table("calls" if measured.continuous else "batch", *(header for header, _ in COLUMNS.values()))
    for size in measured.sizes:
        cells = []
        for name, (_, formatted) in COLUMNS.items():
            value = getattr(size, name)
            cells.append("-" if value is None else formatted(value))
        mark = "*" if size == measured.best else ""
        table.add_row(f"{size.batch_size}{mark}", *cells)
    yield table
    if measured.stopped is not None:
        yield f"  {measured.stopped}"
    if measured.best is not None:
        yield f"  best: {measured.best.batch_size}, {figures.rate(measured.best.stimuli_s)} stimuli/s"


COLUMNS: dict[
    str, tuple[str, Callable[[float], str]]
] = {  # fields of BatchSizeResult: header, and how a value is printed
    "stimuli_s": ("stimuli/s", figures.rate),
    "tokens_s": ("tokens/s", figures.rate),
    "fixations_s": ("fix/s", figures.rate),
    "p50_s": ("p50", figures.seconds),
    "p95_s": ("p95", figures.seconds),
    "busy": ("busy", figures.share),
    "peak_host_bytes": ("host", figures.memory),
    "peak_device_bytes": ("device", figures.memory),
}
