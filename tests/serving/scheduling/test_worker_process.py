"""What a process that hosts an agent is told, each in a fresh interpreter: it holds for the whole process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

TOLD = """
import json, os, sys
from serving.scheduling.worker import WorkerSpec
from serving.scheduling.ray_workers import WorkerActor
from agents import catalogue
WorkerActor(WorkerSpec(catalogue.get(sys.argv[1]), {}, "."))
print(json.dumps([os.environ.get("OMP_WAIT_POLICY"), sys.getswitchinterval()]))
"""


def ran(code: str, *arguments: str, **variables: str) -> Any:
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


@pytest.mark.parametrize(("agent", "variables", "policy"), [
    ("null", {}, "passive"),
    ("null", {"OMP_WAIT_POLICY": "active"}, "active"),
    ("null-one", {}, None),
])  # fmt: skip
def test_threads_wait_without_spinning_unless_told_otherwise(
    agent: str, variables: dict[str, str], policy: str | None
) -> None:
    told, interval = ran(TOLD, agent, **variables)
    assert told == policy
    assert interval < 0.001
