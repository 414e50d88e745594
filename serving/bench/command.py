"""``turinglike bench``: measures agents in turn; table on stderr, JSON in a file or on stdout."""

import contextlib
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.capabilities import device_bytes
from agents.catalogue.selection import checked_agents, read_names, resolve
from agents.contract import GIB, Agent
from agents.errors import InputError, TuringlikeError, UnavailableError, printable
from agents.stimuli import Mode, Task
from serving.bench import made_stimuli, results
from serving.bench.bare import Setup
from serving.bench.results import BenchResult, Failed
from serving.bench.sweep import sweep
from serving.files.atomic_files import replacing
from serving.files.output_paths import make_parent
from serving.files.timestamps import now
from serving.scheduling import interrupts, machine
from serving.scheduling.placement import CONTEXT, DeviceChoice
from serving.scheduling.recovery import describe

STIMULI = 1024  # of each kind
JSON = "bench.json"


def bench(
    agents: Sequence[str],
    settings: Sequence[str],
    config: Path | None,
    sizes: tuple[int, ...] | None,
    seconds: float,
    device: DeviceChoice,
    task: Task | None,
    mode: Mode | None,
    out: Path | None,
) -> int:
    """Run the command (``sizes`` None: doubling); 3 after a failure. Raises TuringlikeError."""
    names = read_names("bench", ",".join(agents), "measured")
    chosen = resolve(names, settings, config, "bench")
    result = BenchResult(now(), machine.host(), machine.device(device))
    setups = []
    for name, agent in checked_agents(chosen.entries, chosen.settings).items():
        of_task, of_mode = _kind(name, agent, task, mode)
        runs_on = "cuda:0" if result.device.kind == "cuda" and agent.declaration().device_memory > 0 else "cpu"
        setups.append(Setup(chosen.entries[name], chosen.settings.get(name, {}), runs_on, of_task, of_mode, seconds))
    if out is not None:
        make_parent(out / JSON)
    with interrupts.raised():
        try:
            measure(setups, sizes, result)
        except interrupts.Interrupted as ended:
            for number in interrupts.SIGNALS:  # a second would end this
                signal.signal(number, signal.SIG_IGN)
            _log("ended; what was measured so far follows")
            _write(result, out)
            return 128 + ended.number
        _write(result, out)
    return 3 if result.failed else 0


def _kind(name: str, agent: Agent[Any], task: Task | None, mode: Mode | None) -> tuple[Task, Mode | None]:
    declared = agent.declaration()
    tasks = [known for known in declared.tasks if task in (None, known)]
    if not tasks:
        raise InputError(f"--task {task}: {name} answers {', '.join(declared.tasks)}")
    if tasks[0] != "attention_prediction":
        return tasks[0], None
    modes = [known for known in declared.modes if mode in (None, known)]
    if not modes:
        raise InputError(f"--mode {mode}: {name} answers {', '.join(declared.modes)}")
    return tasks[0], modes[0]


def measure(setups: Sequence[Setup], sizes: Sequence[int] | None, result: BenchResult) -> None:
    """Measure everything into ``result``, failures too."""
    with tempfile.TemporaryDirectory(prefix="turinglike-bench-") as folder:
        for setup in setups:
            name = setup.entry.name
            with _noted(result, name):
                agent = setup.agent()
                if (missing := agent.missing()) is not None:
                    hint = f"; without weights: --set {name}.checkpoint=random"
                    raise UnavailableError(missing + hint * setup.entry.takes_random_weights())
                check_room(agent, setup.device, result)
                setup.source = Path(folder, f"{setup.task}-{setup.mode}.jsonl")
                made_stimuli.write(setup.source, setup.task, setup.mode, STIMULI)
                for measured in sweep(setup, sizes, _log):
                    result.agents[:] = [other for other in result.agents if other.agent != name] + [measured]
    result.complete = True


def check_room(agent: Agent[Any], device: str, result: BenchResult) -> None:
    """Raises UnavailableError for an agent that has no room here, as far as its declared memory says: loading it would
    end other programs first."""
    if device == "cpu":
        needed = agent.declaration().memory
        there = machine.available() or result.host.memory
        what = "memory"
    else:
        needed = device_bytes(agent, 1) + CONTEXT
        there = result.device.memory
        what = "GPU memory"
    if needed > there:
        sizes = f"{needed / GIB:.1f} GiB of {what}; there is {there / GIB:.1f} GiB"
        raise UnavailableError(f"too large to be loaded: it needs {sizes}")


@contextlib.contextmanager
def _noted(result: BenchResult, name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        message = str(error) if isinstance(error, TuringlikeError) else describe(error)
        result.failed.append(Failed(name, message))
        _log(f"{name}: {message}")


def _write(result: BenchResult, out: Path | None) -> None:
    results.print_result(Console(stderr=True), result)
    if out is None:
        if not sys.stdout.isatty():
            print(result.to_json().decode(), end="", flush=True)
        return
    with replacing(out / JSON) as file:
        file.write(result.to_json())


def _log(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)
