"""``turinglike bench``: measure agents one after the other, say what limits them, remember their best batch sizes.

stdout has the table, then with ``--compare`` what has changed, and as its last line the JSON object; what is going on
is said on stderr. However it ends, by Ctrl-C too, what was measured so far is printed and written.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents import __version__
from agents.contract import Agent
from agents.entry import Entry
from agents.errors import AgentStoppedError, InputError, StorageError, TuringlikeError, UnavailableError
from agents.selection import checked_agents
from agents.tasks import Mode, Task
from serving.bench import apart, limits, machine, remembered, results, stimuli, table
from serving.bench.meter import Job
from serving.bench.results import Device, Failed, Limits, Measured, Result
from serving.bench.sweep import Sweep
from serving.runs.atomic_files import replacing
from serving.runs.record_lines import now
from serving.scheduling import interrupts
from serving.scheduling.placement import Device as Choice
from serving.scheduling.worker import describe

STIMULI = 1024  # of each kind
LIMITS_S = 1.0  # seconds for each of the device's limits, whatever is measured after them
JSON, PLOT = "bench.json", "bench.png"


@dataclass
class Options:
    """What the command line says. ``sizes`` None: doubling. ``bare``: nothing that needs Ray, and no other programs."""

    entries: Mapping[str, Entry]
    settings: Mapping[str, Mapping[str, Any]]
    sizes: tuple[int, ...] | None = None
    seconds: float = 5.0
    device: Choice = "auto"
    task: Task | None = None
    mode: Mode | None = None
    out: Path | None = None
    compare: Path | None = None
    bare: bool = False


def bench(options: Options) -> int:
    """Run the command; returns its exit code: 3 if something could not be measured. Raises TuringlikeError for wrong
    input, before anything is measured."""
    old = None if options.compare is None else results.read(options.compare)
    made = checked_agents(options.entries, options.settings)
    kinds = {name: _kind(name, agent, options) for name, agent in made.items()}
    if options.out is not None:
        try:
            options.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot write to {options.out}: {error.strerror}") from error
    ended: interrupts.Interrupted | None = None
    with interrupts.raised():
        with tempfile.TemporaryDirectory(prefix="turinglike-bench-") as folder:
            running = Bench(options, made, kinds, Path(folder))
            try:
                running.execute()
            except interrupts.Interrupted as interrupted:
                ended = interrupted
                for number in interrupts.SIGNALS:  # terminals and `timeout` send one twice; first what there is is told
                    signal.signal(number, signal.SIG_IGN)
        found = running.result(complete=ended is None)
        if found is not None:
            _show(found, old, options.out)
    if ended is not None:
        _say("ended; what was measured so far is told" if found is not None else "ended before anything was measured")
        return 128 + ended.number
    return 3 if running.failed else 0


def _kind(name: str, agent: Agent[Any], options: Options) -> tuple[Task, Mode | None]:
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


@dataclass
class Bench:
    """One run of the command: what was asked for, and what was found so far."""

    options: Options
    agents: Mapping[str, Agent[Any]]
    kinds: Mapping[str, tuple[Task, Mode | None]]
    folder: Path
    failed: list[Failed] = field(default_factory=list)
    _created: str = field(default_factory=now)
    _device: Device | None = None
    _limits: Limits = field(default_factory=lambda: Limits(None, None))
    _measured: dict[str, Measured] = field(default_factory=dict)
    _packed: results.Packed | None = None

    def execute(self) -> None:
        """Measure everything; what fails is noted. Raises TuringlikeError if there is no such device."""
        try:
            for message in apart.run(look, self.options.device, LIMITS_S):
                if isinstance(message, Device):
                    self._device = message
                    _say(f"measuring the limits of {message.name}")
                else:
                    self._limits = message
        except AgentStoppedError as error:
            if self._device is None:
                raise UnavailableError(str(error)) from None
            self._note(self.device.name, "limits", str(error))
        for name in self.agents:
            with self._noted(name, "bare"):
                self._sweep(name)
        with self._noted(", ".join(self._measured), "bare"):
            remembered.write(self._measured.values(), self.options.entries, self.options.settings, self.device.name)
        if not self.options.bare and self._measured:
            self._beyond()

    @property
    def device(self) -> Device:
        assert self._device is not None
        return self._device

    def _sweep(self, name: str) -> None:
        options = self.options
        task, mode = self.kinds[name]
        agent = self.agents[name]
        if (missing := agent.missing()) is not None:
            way = (
                f"; without weights: --set {name}.checkpoint=random"
                if options.entries[name].takes_random_weights()
                else ""
            )
            raise UnavailableError(f"{missing}{way}")
        source = self.folder / (f"{task}.jsonl" if mode is None else f"{task}-{mode}.jsonl")
        if not source.exists():
            stimuli.write(self.folder, task, mode, STIMULI)
        on = machine.runs_on(agent, self.device.kind)
        known = self._limits if on.startswith(self.device.kind) else Limits(None, None)
        sweep = Sweep(
            Job(
                options.entries[name], options.settings.get(name, {}), on, task, mode, source, options.seconds,
                options.sizes, known,
            )
        )  # fmt: skip
        try:
            sweep.run(_say)
        finally:
            if (found := sweep.measured()) is not None:
                self._measured[name] = found
        if sweep.problem is not None:
            raise AgentStoppedError(sweep.problem)

    def _beyond(self) -> None:
        """What needs Ray or other programs: the whole scheduler, and the peers."""
        from serving.bench import end_to_end, peers

        options = self.options
        together = ", ".join(self._measured)
        end = end_to_end.Found()
        try:
            with self._noted(together, "end_to_end"), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                end_to_end.measure(
                    end, list(self._measured.values()), options.entries, options.settings, Path(folder),
                    seconds=options.seconds, device=options.device, say=_say,
                )  # fmt: skip
        finally:
            for name, runs in end.runs.items():
                self._measured[name] = replace(self._measured[name], end_to_end=runs)
            self._packed = end.packed
            self.failed += end.failed
        for name, one in list(self._measured.items()):
            with self._noted(name, "peers"), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                for found in peers.measure(
                    one, options.entries[name], options.settings.get(name, {}), Path(folder),
                    seconds=options.seconds, say=_say,
                ):  # fmt: skip
                    if isinstance(found, Failed):
                        self.failed.append(found)
                    else:
                        self._measured[name] = replace(self._measured[name], peers=(*self._measured[name].peers, found))

    @contextlib.contextmanager
    def _noted(self, name: str, part: results.Part) -> Iterator[None]:
        """What fails within the block is one sentence, and the rest goes on."""
        try:
            yield
        except TuringlikeError as error:
            message = str(error)
        except Exception as error:
            message = describe(error)
        else:
            return
        self._note(name, part, message)

    def _note(self, name: str, part: results.Part, message: str) -> None:
        self.failed.append(Failed(name, part, message))
        _say(f"{name}: {message}")

    def result(self, *, complete: bool) -> Result | None:
        """What is known so far; None if not even the device is."""
        if self._device is None:
            return None
        return Result(
            version=__version__,
            created=self._created,
            host=machine.host(),
            device=self._device,
            limits=self._limits,
            agents=tuple(self._measured.values()),
            packed=self._packed,
            failed=tuple(self.failed),
            complete=complete,
        )


def look(send: Callable[[object], None], choice: str, seconds: float) -> None:
    """Sends the device that is to be measured, then its limits. Raises UnavailableError."""
    device = machine.device(choice)
    send(device)
    send(limits.measure("cuda:0" if device.kind == "cuda" else "cpu", seconds))


def _show(found: Result, old: Result | None, out: Path | None) -> None:
    """Write the JSON object, print the table, the comparison, and last of all the JSON object again, and write the
    plot. A disk that is full keeps nothing from being printed, and a reader of stdout that has gone nothing from being
    written. Raises StorageError."""
    try:
        if out is not None:
            with replacing(out / JSON) as file:
                file.write(found.to_json() + b"\n")
    finally:
        try:
            _print(found, old)
        finally:
            if out is not None:
                _plot(found, out / PLOT)


def _print(found: Result, old: Result | None) -> None:
    print("\n".join(table.lines(found)))
    if old is not None:
        print("\n" + "\n".join(table.comparison(found, old)))
    print(found.to_json().decode(), flush=True)


def _plot(found: Result, path: Path) -> None:
    from serving.bench import plot

    try:
        with replacing(path) as file:
            plot.plot(found, file)
    except UnavailableError as error:
        _say(str(error))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
