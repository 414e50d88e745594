"""``turinglike bench``: measure agents one after the other, and say what limits them.

On a terminal stdout has the table; where stdout is a pipe or a file, stderr has the table, and stdout the JSON object
alone, unless a file has it.
Progress goes to stderr. However it ends, by Ctrl-C too, what was measured so far is printed and written.
"""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.contract import Agent, Entry
from agents.errors import AgentStoppedError, InputError, StorageError, TuringlikeError, UnavailableError
from agents.selection import checked_agents
from agents.stimuli import Mode, Task
from serving.bench import child_process, output, results, stimuli, sweep
from serving.bench.bare import Setup
from serving.bench.results import BenchResult, Failed
from serving.runs.atomic_files import replacing
from serving.scheduling import interrupts, machine
from serving.scheduling.machine import Device
from serving.scheduling.placement import Device as DeviceChoice
from serving.scheduling.worker import describe
from serving.timestamps import now

STIMULI = 1024  # of each kind
JSON, PLOT = "bench.json", "bench.png"


@dataclass(frozen=True)
class BenchOptions:
    """What the command line says. ``sizes`` None: doubling. ``bare``: nothing that needs Ray."""

    entries: Mapping[str, Entry]
    settings: Mapping[str, Mapping[str, Any]]
    sizes: tuple[int, ...] | None = None
    seconds: float = 5.0
    device: DeviceChoice = "auto"
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
    result = BenchResult(now(), machine.host(), machine.cpu())
    minutes = math.ceil(len(agents) * _seconds(options) / 60)
    _log(f"this takes about {minutes} min, and longer where an agent loads slowly or the machine is busy")
    with interrupts.raised():
        try:
            with tempfile.TemporaryDirectory(prefix="turinglike-bench-") as folder:
                execute(options, agents, kinds, result, Path(folder))
        except interrupts.Interrupted as ended:
            for number in interrupts.SIGNALS:  # terminals and `timeout` send one twice; what there is comes first
                signal.signal(number, signal.SIG_IGN)
            _log("ended; what was measured so far follows")
            _write(result, options.out)
            return 128 + ended.number
        _write(result, options.out)
    return 3 if result.failed else 0


def _seconds(options: BenchOptions) -> float:
    """About how long one agent takes."""
    sizes = len(options.sizes) if options.sizes else math.log2(sweep.LARGEST) + 1
    sweeping = sizes * (options.seconds + 1)
    # three runs of three rounds with a start of Ray, and the bare agent before and after
    return sweeping if options.bare else sweeping + 3 * (5 * options.seconds + 16)


def _kind(name: str, agent: Agent[Any], options: BenchOptions) -> tuple[Task, Mode | None]:
    """What an agent is asked: its first task (and mode), or the one that was asked for. Raises InputError."""
    tasks = [task for task in agent.tasks if options.task in (None, task)]
    if not tasks:
        raise InputError(f"--task {options.task}: {name} answers {', '.join(agent.tasks)}")
    if tasks[0] != "attention_prediction":
        return tasks[0], None
    modes = [mode for mode in agent.modes if options.mode in (None, mode)]
    if not modes:
        raise InputError(f"--mode {options.mode}: {name} answers {', '.join(agent.modes)}")
    return tasks[0], modes[0]


def execute(
    options: BenchOptions, agents: Mapping[str, Agent[Any]], kinds: Mapping[str, tuple[Task, Mode | None]],
    result: BenchResult, folder: Path,
) -> None:  # fmt: skip
    """Measure everything into ``result``, failures too. Raises UnavailableError if there is no such device."""
    try:
        [result.device] = child_process.run(send_device, options.device)
    except AgentStoppedError as error:
        if options.device == "cuda":
            raise UnavailableError(str(error)) from None
        result.failed.append(Failed(result.device.name, "device", str(error)))
    setups: dict[str, Setup] = {}
    for name, agent in agents.items():
        with _noted(result, name, "bare"):
            setups[name] = setup = _setup(options, name, agent, kinds[name], result.device, folder)
            for measured in sweep.measure(setup, options.sizes, _log):
                result.agents[:] = [other for other in result.agents if other.agent != name] + [measured]
    if not options.bare:
        measure_generate(setups, result, folder)
    result.complete = True


def send_device(send: Callable[[object], None], choice: DeviceChoice) -> None:
    """Sends the device that is to be measured. Raises UnavailableError."""
    send(machine.device(choice))


def _setup(
    options: BenchOptions, name: str, agent: Agent[Any], kind: tuple[Task, Mode | None], device: Device, folder: Path
) -> Setup:
    if (missing := agent.missing()) is not None:
        takes_random = options.entries[name].takes_random_weights()
        raise UnavailableError(missing + f"; without weights: --set {name}.checkpoint=random" * takes_random)
    task, mode = kind
    place = "cuda:0" if device.kind == "cuda" and agent.device_memory > 0 else "cpu"
    source = stimuli.write(folder / f"{task}-{mode}.jsonl", {kind: STIMULI})
    return Setup(options.entries[name], options.settings.get(name, {}), place, task, mode, source, options.seconds)


def measure_generate(setups: Mapping[str, Setup], result: BenchResult, folder: Path) -> None:
    from serving.bench import end_to_end

    for measured in result.agents:
        with _noted(result, measured.agent, "end_to_end"):
            for rates in end_to_end.measure(measured, setups[measured.agent], folder):
                measured.end_to_end.append(rates)
                _log(f"{measured.agent}: {output.end_to_end_line(rates)}")


@contextlib.contextmanager
def _noted(result: BenchResult, name: str, part: results.Part) -> Iterator[None]:
    """A failure within the block becomes a sentence in the result, and the other measurements go on."""
    try:
        yield
    except Exception as error:
        message = str(error) if isinstance(error, TuringlikeError) else describe(error)
        result.failed.append(Failed(name, part, message))
        _log(f"{name}: {message}")


def _write(result: BenchResult, out: Path | None) -> None:
    """Write the JSON object and the plot, and print the table. A disk that is full keeps nothing from being printed,
    and a reader of stdout that has gone nothing from being written. Raises StorageError."""
    is_written = False
    try:
        if out is not None:
            with replacing(out / JSON) as file:
                file.write(result.to_json())
            is_written = True
            try:
                with replacing(out / PLOT) as file:
                    output.plot(result, file)
            except UnavailableError as error:
                _log(str(error))
    finally:
        is_terminal = sys.stdout.isatty()
        output.print_result(Console(stderr=not is_terminal), result)
        if not is_terminal and not is_written:
            print(result.to_json().decode(), end="", flush=True)


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
