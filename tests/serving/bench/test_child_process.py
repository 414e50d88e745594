"""A process for each measurement: it does not outlive whoever wants to know."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PARENT = """
from measured_agents import linger
from serving.bench import child_process

if __name__ == "__main__":
    for pid in child_process.run(linger):
        print(pid, flush=True)
"""


def test_a_process_ends_when_its_parent_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, str(script)]
    with subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert runs(child)
        os.kill(parent.pid, signal.SIGKILL)
    until = time.monotonic() + 600
    while runs(child):
        assert time.monotonic() < until
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether a process is at work still: one that has ended may stay in the system's list until somebody asks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
