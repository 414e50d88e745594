"""``turinglike bench``: measure agents one after the other.

Stderr has the table. The JSON object is in a file, or on stdout where that is a pipe or a file. However it ends, by
Ctrl-C too, what was measured so far is printed and written.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.contract import Agent, Entry
from agents.errors import InputError, StorageError, TuringlikeError, UnavailableError
from agents.selection import checked_agents
from agents.stimuli import Mode, Task
from serving.bench import made_stimuli, results
from serving.bench.bare import Setup
from serving.bench.results import BenchResult, Failed
from serving.bench.sweep import end_to_end, sweep
from serving.runs.atomic_files import replacing
from serving.scheduling import interrupts, machine
from serving.scheduling.placement import Device
from serving.scheduling.recovery import describe
from serving.timestamps import now

STIMULI = 1024  # of each kind
JSON, PLOT = "bench.json", "bench.png"


@dataclass(frozen=True)
class BenchOptions:
    """The options of the command line. ``sizes`` None: doubling. ``bare``: nothing that needs Ray."""

    entries: Mapping[str, Entry]
    settings: Mapping[str, Mapping[str, Any]]
    sizes: tuple[int, ...] | None = None
    seconds: float = 5.0
    device: Device = "auto"
    task: Task | None = None
    mode: Mode | None = None
    out: Path | None = None
    bare: bool = False


def bench(options: BenchOptions) -> int:
    """Run the command; returns its exit code: 3 if something could not be measured. Raises TuringlikeError for wrong
    input, before anything is measured."""
    agents = checked_agents(options.entries, options.settings)
    kinds = {name: _kind(name, agent, options) for name, agent in agents.items()}
    if options.out is not None:
        try:
            options.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot write to {options.out}: {error.strerror}") from error
    result = BenchResult(now(), machine.host(), machine.device(options.device))
    with interrupts.raised():
        try:
            with tempfile.TemporaryDirectory(prefix="turinglike-bench-") as folder:
                _measure(options, agents, kinds, result, Path(folder))
        except interrupts.Interrupted as ended:
            for number in interrupts.SIGNALS:  # a second would end this
                signal.signal(number, signal.SIG_IGN)
            _log("ended; what was measured so far follows")
            _write(result, options.out)
            return 128 + ended.number
        _write(result, options.out)
    return 3 if result.failed else 0


def _kind(name: str, agent: Agent[Any], options: BenchOptions) -> tuple[Task, Mode | None]:
    """An agent's first task (and mode), or those of the options. Raises InputError."""
    tasks = [task for task in agent.tasks if options.task in (None, task)]
    if not tasks:
        raise InputError(f"--task {options.task}: {name} answers {', '.join(agent.tasks)}")
    if tasks[0] != "attention_prediction":
        return tasks[0], None
    modes = [mode for mode in agent.modes if options.mode in (None, mode)]
    if not modes:
        raise InputError(f"--mode {options.mode}: {name} answers {', '.join(agent.modes)}")
    return tasks[0], modes[0]


def _measure(
    options: BenchOptions,
    agents: Mapping[str, Agent[Any]],
    kinds: Mapping[str, tuple[Task, Mode | None]],
    result: BenchResult,
    folder: Path,
) -> None:
    """Measure everything into ``result``, failures too."""
    setups: dict[str, Setup] = {}
    for name, agent in agents.items():
        with _noted(result, name):
            if (missing := agent.missing()) is not None:
                takes_random = options.entries[name].takes_random_weights()
                raise UnavailableError(missing + f"; without weights: --set {name}.checkpoint=random" * takes_random)
            task, mode = kinds[name]
            device = "cuda:0" if result.device.kind == "cuda" and agent.device_memory > 0 else "cpu"
            source = made_stimuli.write(folder / f"{task}-{mode}.jsonl", task, mode, STIMULI)
            settings = options.settings.get(name, {})
            setups[name] = Setup(options.entries[name], settings, device, task, mode, source, options.seconds)
            for measured in sweep(setups[name], options.sizes, _log):
                result.agents[:] = [other for other in result.agents if other.agent != name] + [measured]
    for measured in [] if options.bare else result.agents:
        with _noted(result, measured.agent):
            for rates in end_to_end(measured, setups[measured.agent], folder):
                measured.end_to_end.append(rates)
                _log(f"{measured.agent}: {rates}")
    result.complete = True


@contextlib.contextmanager
def _noted(result: BenchResult, name: str) -> Iterator[None]:
    """A failure within the block becomes a sentence in the result, and the other measurements go on."""
    try:
        yield
    except Exception as error:
        message = str(error) if isinstance(error, TuringlikeError) else describe(error)
        result.failed.append(Failed(name, message))
        _log(f"{name}: {message}")


def _write(result: BenchResult, out: Path | None) -> None:
    """Print the table on stderr; write the JSON object and the plot, or print the object. Raises StorageError."""
    results.print_result(Console(stderr=True), result)
    if out is None:
        if not sys.stdout.isatty():
            print(result.to_json().decode(), end="", flush=True)
        return
    with replacing(out / JSON) as file:
        file.write(result.to_json())
    try:
        with replacing(out / PLOT) as file:
            results.plot(result, file)
    except UnavailableError as error:
        _log(str(error))


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
