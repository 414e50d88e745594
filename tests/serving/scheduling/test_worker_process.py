"""What a process that hosts an agent is told, each in a fresh interpreter: it holds for the whole process."""

import json
import os
import subprocess
import sys

import pytest

FAULTS = """
import ctypes, json, resource, sys
from serving.scheduling.worker import WorkerSpec
from serving.scheduling.ray_workers import WorkerActor
from agents import catalogue
if sys.argv[1] == "host":
    WorkerActor(WorkerSpec(catalogue.get("null"), {}, "."))
def pictures():
    for _ in range(20):
        held = [bytes(2_000_000) for _ in range(8)]  # zeros by calloc: a page that was kept is written to, no fault
        for one in held:
            ctypes.memset(one, 1, len(one))
        del held, one
pictures()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
pictures()
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before))
"""
TOLD = """
import json, os, sys
from serving.scheduling.worker import WorkerSpec
from serving.scheduling.ray_workers import WorkerActor
from agents import catalogue
WorkerActor(WorkerSpec(catalogue.get(sys.argv[1]), {}, "."))
print(json.dumps([os.environ.get("OMP_WAIT_POLICY"), sys.getswitchinterval()]))
"""


def ran(code, *arguments, **variables):
    """What a fresh interpreter prints as JSON."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"} | variables
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator is told so")
def test_the_memory_of_freed_pictures_is_kept_for_the_next_ones():
    pages = 20 * 8 * 2_000_000 // os.sysconf("SC_PAGE_SIZE")
    alone, hosted = ran(FAULTS, "alone"), ran(FAULTS, "host")
    assert hosted < 0.05 * pages, (alone, hosted)
    # Who has set the allocator by the environment, has it so.
    assert ran(FAULTS, "host", MALLOC_TRIM_THRESHOLD_="1000000", MALLOC_MMAP_THRESHOLD_="1000000") > 0.5 * pages


@pytest.mark.parametrize(("agent", "variables", "policy"), [
    ("null", {}, "passive"),
    ("null", {"OMP_WAIT_POLICY": "active"}, "active"),
    ("null-one", {}, None),
])  # fmt: skip
def test_threads_wait_without_spinning_unless_told_otherwise(agent, variables, policy):
    told, interval = ran(TOLD, agent, **variables)
    assert told == policy
    assert interval < 0.001
