"""The process around the driver: exit codes and signals pass through it, and an end without a word is Ray's or an
agent's."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from serving.scheduling.interrupts import AGENT_DIED, RAY_DIED

START = """
import os, sys, threading, time, signal
from serving.scheduling.interrupts import declare_answers_here as here, watched
"""
SLEEPING = "lambda: print('on', flush=True) or time.sleep(60) or 0"


def started(main: str) -> subprocess.Popen[str]:
    """A process that calls ``main``, a lambda, as the command does."""
    code = f"{START}sys.exit(watched({main}))"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("main", "code", "message"),
    [
        ("lambda: 3", 3, ""),
        ("lambda: sys.exit(2)", 2, ""),
        ("lambda: 1 / 0", 70, "ZeroDivisionError"),
        ("lambda: os.abort()", 5, RAY_DIED),
        ("lambda: os._exit(143)", 143, ""),
        ("lambda: here() and os.abort()", 3, AGENT_DIED),
        ("lambda: here() and os.kill(os.getpid(), signal.SIGKILL)", 3, AGENT_DIED),  # for want of memory, say
        ("lambda: here() and 1", 1, ""),
        ("lambda: here() and threading.Thread(target=time.sleep, args=[60]).start() or 3", 3, ""),
        ("lambda: os.kill(os.getpid(), signal.SIGKILL)", 137, "ended by SIGKILL"),
    ],
)
def test_the_exit_code_says_how_it_ended(main: str, code: int, message: str) -> None:
    process = started(main)
    _, errors = process.communicate()
    assert process.returncode == code, errors
    assert message in errors
    assert bool(message) == bool(errors)


def test_signals_are_passed_on() -> None:
    with started(SLEEPING) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")
def test_the_driver_does_not_outlive_it() -> None:
    with started(SLEEPING) as process:
        assert process.stdout is not None
        process.stdout.readline()
        [driver] = psutil.Process(process.pid).children()
        process.kill()
        deadline = time.monotonic() + 600
        while driver.is_running() and driver.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.01)
