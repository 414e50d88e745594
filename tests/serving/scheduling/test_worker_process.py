"""What a process that hosts an agent is told, each in a fresh interpreter: it holds for the whole process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

TOLD = """
import json, os, sys
from serving.scheduling.worker import WorkerSpec
from serving.scheduling.ray_workers import WorkerActor
from agents import catalogue
WorkerActor(WorkerSpec(catalogue.get(sys.argv[1]), {}, "."))
print(json.dumps([os.environ.get("OMP_WAIT_POLICY"), sys.getswitchinterval()]))
"""


@pytest.mark.parametrize(("agent", "policy"), [("null", "passive"), ("null-one", None)])
def test_threads_wait_without_spinning_unless_an_engine_batches_by_itself(agent: str, policy: str | None) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    call = [sys.executable, "-c", TOLD, agent]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=True)
    told, interval = json.loads(done.stdout)
    assert told == policy
    assert interval < 0.001
