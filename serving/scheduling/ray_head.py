"""The process that starts Ray's on this machine and ends with them; run as a file, with Ray's options as JSON.

It writes lines of JSON to its standard output: the ``pid`` and ``name`` of each of Ray's processes, and at last the
``address`` of Ray, or an ``error``. It ends, and Ray with it, when its standard input does. A start that hangs can be
ended from outside only, as Ray holds the interpreter's lock while it waits. This file imports nothing of the package.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from typing import Any

PATIENCE = 200.0  # seconds for the raylet to come up, of which Ray gives it 30


def job_config() -> Any:
    """Ray's JobConfig, without the driver's script and current folder for the workers' ``sys.path``."""
    from ray.job_config import JobConfig

    class InstalledPackages(JobConfig):
        def _runtime_env_has_working_dir(self) -> bool:
            """Ray passes the driver's folders on unless the job has a folder of its own."""
            return True

    return InstalledPackages()


def main(options: dict[str, Any]) -> None:
    """Start Ray, and leave it when the input has ended."""
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Ray's output is dropped

    def send(**what: Any) -> None:
        answer.write(json.dumps(what) + "\n")
        answer.flush()

    import ray
    from ray._private import services as _services

    services: Any = _services
    logging.getLogger("ray").setLevel(logging.ERROR)
    start, look, until = services.start_ray_process, services.get_node, time.monotonic() + PATIENCE

    def noted(command: Any, process_type: str, *more: Any, **others: Any) -> Any:
        begun = start(command, process_type, *more, **others)
        send(name=process_type, pid=begun.process.pid)
        return begun

    def patient(*where: Any) -> Any:
        while True:
            try:
                return look(*where)
            except RuntimeError:  # the raylet is not there yet
                if time.monotonic() > until:
                    raise
            time.sleep(0.1)

    services.start_ray_process, services.get_node = noted, patient
    started = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        if not started.is_set():
            os._exit(1)

    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        ray.init(address="local", job_config=job_config(), log_to_driver=False, configure_logging=False, **options)
    except Exception as error:
        reason = str(error).strip().splitlines()
        send(error=reason[0] if reason else type(error).__name__)
        os._exit(1)
    started.set()
    send(address=ray.get_runtime_context().gcs_address)
    waiting.join()
    ray.shutdown()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
