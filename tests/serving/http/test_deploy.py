"""The application for Ray Serve, in a Ray Serve of its own: who has the key is answered, also when one of two
workers is killed, and it ends in order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import server_process

KEY = "a-key-for-the-tests-0123"
PROGRAM = """
import glob, json, os, sys, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor
import psutil, ray
from ray import serve

def ask(**headers):
    body = {"agent": "null", "stimulus": {"id": "w", "task": "word_association", "cue": "tea"}}
    headers["content-type"] = "application/json"
    url = f"http://127.0.0.1:{sys.argv[1]}/answers"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)

def folders():
    return glob.glob(os.environ["TMPDIR"] + "/turinglike-serve-*")

ray.init(include_dashboard=False, log_to_driver=False, object_store_memory=1 << 28, num_cpus=4)
serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
from serving.deploy import app
serve.run(app({"agents": "null", "seed": 7, "replicas": 2, "set": "null.delay_s=0.05", "batch_size": 1}))
key = {"authorization": "Bearer " + os.environ["TURINGLIKE_API_KEY"]}
found = [ask(**key), ask(), len(folders())]
with ThreadPoolExecutor(8) as pool:
    asked = [pool.submit(ask, **key) for number in range(60)]
    asked[10].result()
    children = psutil.Process().children(recursive=True)
    workers = [one for one in children if "ray::WorkerActor" in " ".join(one.cmdline())]
    workers[0].kill()
    found.append([one.result()[0] for one in asked])
found.append(len(workers))
serve.shutdown()
print(json.dumps([*found, len(folders())]))
"""


def test_ray_serve_asks_for_the_key_loses_no_request_with_a_worker_and_ends_the_service() -> None:
    pytest.importorskip("ray.serve", exc_type=ImportError)
    with tempfile.TemporaryDirectory(prefix="u") as folder:  # a short name: of sockets' paths few letters are left
        environment = {**os.environ, "TMPDIR": folder, "TURINGLIKE_API_KEY": KEY, "RAY_USAGE_STATS_ENABLED": "0"}
        # Ray Serve kills a proxy that is not ready after 5 s, which on a busy machine it is not.
        environment |= {f"RAY_SERVE_PROXY_{check}_CHECK_TIMEOUT_S": "300" for check in ("READY", "HEALTH")}
        command = [sys.executable, "-c", PROGRAM, str(server_process.free_port())]
        done = subprocess.run(
            command, env=environment, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    (status, record), refused, before, statuses, workers, after = json.loads(done.stdout.splitlines()[-1])
    assert (status, record["status"], record["agent"]) == (200, "ok", "null")
    assert (refused[0], refused[1]["error"]["code"]) == (401, "unauthorized")
    assert workers == 2
    assert statuses == [200] * 60  # one of the two was killed in the middle
    assert (before, after) == (1, 0)  # the service's own folder
