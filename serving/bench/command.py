"""``turinglike bench``: measures agents alone or over a set. Tables go to stderr, the JSON to a file or stdout."""

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
from agents.errors import TuringlikeError, UnavailableError, printable
from serving.bench import made_stimuli, results
from serving.bench.bare import Setup
from serving.bench.compare import compared, read_result
from serving.bench.options import SECONDS, BenchOptions
from serving.bench.results import BenchResult, Failed
from serving.bench.scaling_plot import pictures
from serving.bench.set_command import measure_set
from serving.bench.sweep import sweep
from serving.files.atomic_files import replacing
from serving.files.output_paths import make_parent
from serving.files.timestamps import now
from serving.scheduling import interrupts, machine
from serving.scheduling.placement import CONTEXT
from serving.scheduling.recovery import describe_error

STIMULI = 1024  # for each task and mode
RESULT_FILE = "bench.json"


def bench(options: BenchOptions) -> int:
    """Measure agents alone, or over a set, and print the results; returns 0, 3 if an agent could not be measured, 130
    or 143 after a signal. Raises InputError and StorageError before anything is measured."""
    options.check()
    result = BenchResult(now(), machine.host(), machine.device(options.device))
    earlier = None if options.compare is None else read_result(options.compare)
    setups = [] if options.agents is not None else _setups(options, result)
    if options.out is not None:
        make_parent(options.out / RESULT_FILE)
    with interrupts.raised():
        try:
            if options.agents is None:
                measure(setups, options.sizes, result)
            else:
                measure_set(options, result)
        except interrupts.Interrupted as ended:
            for number in interrupts.SIGNALS:  # a second would end this
                signal.signal(number, signal.SIG_IGN)
            _log("ended; what was measured so far follows")
            _write(result, earlier, options.out)
            return 128 + ended.number
        _write(result, earlier, options.out)
    return 3 if result.failed else 0


def _setups(options: BenchOptions, result: BenchResult) -> list[Setup]:
    names = read_names("bench", ",".join(options.what), "measured")
    selection = resolve(names, options.settings, options.config, "bench")
    setups = []
    for name, agent in checked_agents(selection.entries, selection.settings).items():
        task, mode = made_stimuli.first_task(name, agent, options.task, options.mode)
        runs_on = "cuda:0" if result.device.kind == "cuda" and agent.declaration().device_memory > 0 else "cpu"
        agent_settings = selection.settings.get(name, {})
        setups.append(Setup(selection.entries[name], agent_settings, runs_on, task, mode, options.seconds or SECONDS))
    return setups


def measure(setups: Sequence[Setup], sizes: Sequence[int] | None, result: BenchResult) -> None:
    """Measure all agents, adding to ``result`` what is measured and what fails; at the end it is ``complete``."""
    with tempfile.TemporaryDirectory(prefix="turinglike-bench-") as folder:
        for setup in setups:
            name = setup.entry.name
            with _noted(result, name):
                agent = setup.agent()
                missing = agent.missing()
                if missing is not None:
                    if setup.entry.takes_random_weights():
                        missing += f"; without weights: --set {name}.checkpoint=random"
                    raise UnavailableError(missing)
                check_room(agent, setup.device, result)
                setup.source = Path(folder, f"{setup.task}-{setup.mode}.jsonl")
                made_stimuli.write(setup.source, setup.task, setup.mode, STIMULI)
                for measured in sweep(setup, sizes, _log):
                    result.agents[:] = [other for other in result.agents if other.agent != name] + [measured]
    result.complete = True


def check_room(agent: Agent[Any], device: str, result: BenchResult) -> None:
    """Raises UnavailableError for an agent whose declared memory is more than ``device`` ("cpu", "cuda:0") has. The
    system might end other programs before it refused the memory."""
    if device == "cpu":
        needed = agent.declaration().memory
        free = machine.available() or result.host.memory
        what = "memory"
    else:
        needed = device_bytes(agent, 1) + CONTEXT
        free = result.device.memory
        what = "GPU memory"
    if needed > free:
        sizes = f"{needed / GIB:.1f} GiB of {what}; there is {free / GIB:.1f} GiB"
        raise UnavailableError(f"too large to be loaded: it needs {sizes}")


@contextlib.contextmanager
def _noted(result: BenchResult, name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        message = str(error) if isinstance(error, TuringlikeError) else describe_error(error)
        result.failed.append(Failed(name, message))
        _log(f"{name}: {message}")


def _write(result: BenchResult, earlier: BenchResult | None, out: Path | None) -> None:
    console = Console(stderr=True)
    results.print_result(console, result)
    if earlier is not None:
        for line in compared(earlier, result):
            console.print(line, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if out is None:
        if not sys.stdout.isatty():
            print(result.to_json().decode(), end="", flush=True)
        return
    with replacing(out / RESULT_FILE) as file:
        file.write(result.to_json())
    for name, picture in pictures(result).items():
        with replacing(out / name) as file:
            file.write(picture.encode())


def _log(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)
