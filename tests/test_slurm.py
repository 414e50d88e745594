"""examples/slurm.sh, with SLURM's, Ray's and our commands replaced by scripts that write down how they are called."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "slurm.sh"
COMMANDS = {
    "srun": 'echo "srun $*" >> log\necho "$SRUN_CPUS_PER_TASK" >> cores\n'
    'while [[ "$1" == -* ]]; do [ "$1" = -w ] && shift; shift; done\nexec "$@"',
    # Each look finds four more GPUs, after one at which there is no cluster yet.
    "ray": 'if [ "$1" = status ]; then echo look >> looks\n'
    'gpus=$((4 * ($(wc -l < looks) - 1))); [ $gpus -eq 0 ] || echo " 0.0/$gpus.0 GPU"\nelse exec sleep 60; fi',
    "turinglike": 'echo "turinglike $*" >> log\ntrap "exit 143" TERM\n'
    "if $HANG; then touch hangs; sleep 60 2>/dev/null & wait; fi\nexit 3",
    "sleep": '[ "$1" = 5 ] || exec /bin/sleep "$@"',
    "scontrol": 'echo "scontrol $*" >> log',
}


def start(tmp_path: Path, nodes: int, hangs: bool = False) -> subprocess.Popen[str]:
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "activate").write_text("")
    for name, lines in COMMANDS.items():
        (programs / name).write_text(f"#!/bin/bash\n{lines}\n")
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "VENV": str(tmp_path / "venv"),
        "LOCAL": str(tmp_path),
        "SLURM_JOB_ID": "77",
        "SLURM_NNODES": str(nodes),
        "SLURM_CPUS_PER_TASK": "64",
        "SLURM_GPUS_ON_NODE": "8",
        "SLURMD_NODENAME": "first",
        "HANG": "true" if hangs else "false",
    }
    command = ["bash", str(SCRIPT), "set.jsonl", "out", "mmcq", "--seed", "3"]
    return subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, stderr=subprocess.PIPE)


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_run_begins_once_all_gpus_are_there(tmp_path: Path, nodes: int) -> None:
    process = start(tmp_path, nodes)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3, errors  # the run's own
    lines = (tmp_path / "log").read_text().splitlines()
    calls = [line.partition(" ray start ")[2] for line in lines if " ray start " in line]
    address = " --address first:6379" if nodes > 1 else ""
    assert f"turinglike generate set.jsonl --agents mmcq --out out{address} --seed 3" in lines
    assert not (tmp_path / "tl77").exists()
    assert {*(tmp_path / "cores").read_text().split()} == {"64"}
    if nodes > 1:
        head, others = calls
        assert "--head" in head
        assert others.startswith("--address=first:6379 --num-gpus=8")
        assert (tmp_path / "looks").read_text().count("look") == 1 + 24 // 4
    else:
        assert calls == []


def test_before_the_limit_the_run_ends_and_the_job_is_queued_again(tmp_path: Path) -> None:
    process = start(tmp_path, 1, hangs=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "hangs").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert "scontrol requeue 77" in (tmp_path / "log").read_text().splitlines()
