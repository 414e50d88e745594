"""Everything about a GPU in one call, for a machine that is at hand for a quarter of an hour and has no network.

    python scripts/measure_gpu.py --collect wheels            # at home: download what the machine will install
    python scripts/measure_gpu.py --wheels wheels --out gpu   # there: install it, then check and measure
    python scripts/measure_gpu.py --out gpu                   # there, where all is installed
    python scripts/measure_gpu.py --pretend --out gpu         # anywhere: the same steps on the CPU

Runs ``check_gpu.py``, then ``turinglike bench`` of agents of each kind with random weights, and writes ``gpu.md``: the
device, the versions, both tables. A part that fails or takes too long is told in its place, and the others follow.
Exit code 1 if a part failed.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("run", "vision", "attention", "language", "chat")
RANDOM = ["--set", "git-large-coco.checkpoint=random"]
BENCHES: dict[str, list[str]] = {
    "mmcq": [],
    "gbvs": [],
    "git-large-coco": RANDOM,
    "smollm2-135m": [],
    "llama-3.1-8b": ["--set", "llama-3.1-8b.checkpoint=random"],
}
PRETENDED: dict[str, list[str]] = {"mmcq": [], "gbvs": []}
CHECKED = "gbvs,git-base-coco"  # by --pretend; all are checked in the tests
SECONDS = {"check": 300, "bench": 120}  # at most, of each part
PACKAGES = ("torch", "transformers", "accelerate", "vllm", "ray", "numpy")


def collect(folder: Path) -> int:
    """Download the wheels of this project's extras, and of the project itself."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = f"{ROOT}[{','.join(EXTRAS)}]"
    command = [sys.executable, "-m", "pip", "wheel", "--wheel-dir", str(folder), wanted]
    constraints = ROOT / "constraints.txt"
    return subprocess.run([*command, "--constraint", str(constraints)], check=False).returncode


def install(folder: Path, environment: Path) -> Path:
    """Install the wheels of ``folder`` into a new environment; returns its Python. Raises SystemExit."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(folder)]
    done = subprocess.run([*command, f"turinglike[{','.join(EXTRAS)}]"], check=False)
    if done.returncode:
        raise SystemExit(
            f"measure_gpu: {folder} lacks a wheel; collect again with the same Python ({platform.python_version()})"
        )
    return python


def part(title: str, command: Sequence[str], seconds: float) -> tuple[bool, str]:
    """Run a command; returns whether it ended with 0, and a section with what it printed on its terminal."""
    print(f"measure_gpu: {title}", file=sys.stderr, flush=True)
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with tempfile.TemporaryFile("w+") as said:
        try:
            code = subprocess.run(
                command, stdout=said, stderr=said, cwd=ROOT, env=environment, timeout=seconds, check=False
            ).returncode
            ended = f"exit code {code}"
        except subprocess.TimeoutExpired:
            code = 124
            ended = f"not finished after {seconds:.0f} s"
        said.seek(0)
        lines = [line for line in said.read().splitlines() if not line.startswith(("{", "["))]
    took = time.monotonic() - began
    shown = " ".join(command[1:]).replace(f"{ROOT}/", "")
    return code == 0, "\n".join([f"## {title}", "", f"`{shown}`: {ended}, {took:.0f} s", "", "```", *lines, "```", ""])


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
    parts = {"check_gpu": (check, SECONDS["check"])}
    for name, settings in (PRETENDED if pretend else BENCHES).items():
        command = [sys.executable, "-m", "serving.cli", "bench", name, *settings, "--out", str(out / name)]
        command += ["--seconds", "0.2", "--batch-sizes", "1,2"] if pretend else ["--seconds", "3"]
        parts[f"bench {name}"] = (command, SECONDS["bench"])
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
        command = [str(python), __file__, "--out", str(options.out.absolute())]
        return subprocess.run([*command, *(["--pretend"] if options.pretend else [])], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
