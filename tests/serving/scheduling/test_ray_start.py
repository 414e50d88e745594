"""The start of Ray: one that hangs, fails or is ended by a signal leaves nothing behind, and is tried once more; and
its surroundings, which it neither harms nor is harmed by."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from agents.errors import AgentStoppedError, ClusterError
from serving.scheduling import local_ray
from serving.scheduling.interrupts import AGENT_DIED

HANGING = {  # a Ray whose start never returns, whatever becomes of the raylet
    "__init__.py": """
import time
import urllib.request
from pathlib import Path
from ray._private import services

def is_initialized():
    return False

def init(**options):
    services.start_ray_process(Path(__file__).with_name("raylet").read_text().split(), "raylet")
    time.sleep(600)
""",
    "job_config.py": "class JobConfig: pass",
    "_private/__init__.py": "",
    "_private/services.py": """
import subprocess, types

get_node = None

def start_ray_process(command, process_type):
    return types.SimpleNamespace(process=subprocess.Popen(command))
""",
}
GENERATE = ("generate", "set.jsonl", "--agents", "null", "--out", "run")
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command with a Ray whose raylet is the given program, or with the real Ray; there is nothing left of it
    in its temporary folder at the end."""
    temporary = Path(tempfile.mkdtemp(prefix="r-"))

    def started(*command: str, raylet: str | None = None) -> subprocess.Popen[str]:
        paths = os.environ["PYTHONPATH"]
        if raylet is not None:
            for name, text in {**HANGING, "raylet": raylet}.items():
                (tmp_path / "fake" / "ray" / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / "fake" / "ray" / name).write_text(text)
            paths = os.pathsep.join([str(tmp_path / "fake"), paths])
        environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(temporary)}
        environment.pop("RAY_AUTH_TOKEN", None)
        call = [sys.executable, "-m", "serving.cli", *command]
        return subprocess.Popen(call, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)

    write_words(tmp_path, 1)
    yield started
    assert list(temporary.iterdir()) == []
    temporary.rmdir()


def write_words(folder: Path, count: int) -> None:
    rows = [{"id": f"w{number}", "task": "word_association", "cue": "sun"} for number in range(count)]
    (folder / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def family_with(process: subprocess.Popen[str], name: str) -> list[psutil.Process]:
    """The processes that the command has started, once one with that name is among them; it comes first."""
    while process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                if member.name() == name and member.status() != psutil.STATUS_ZOMBIE:
                    return [member, *family]
        time.sleep(0.02)
    raise AssertionError(process.communicate()[1])


def have_ended(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=30)[1]  # Ray's take a moment


def test_a_raylet_that_ends_at_the_start_is_noticed(start: Start, tmp_path: Path) -> None:
    write_words(tmp_path, 100)  # not few enough to be answered without Ray
    with start(*GENERATE, "--batch-size", "1", raylet="false") as process:
        _, errors = process.communicate(timeout=120)
    assert process.returncode == ClusterError.exit_code, errors
    lines = [line for line in errors.splitlines() if not line.startswith("still starting Ray (")]
    assert lines[1:] == [
        "starting Ray",
        "Ray did not start: its raylet ended; trying once more",
        "turinglike: Ray cannot be started: its raylet ended; run the same command again, when the machine has less to "
        "do, or with here (--here), which needs no Ray",
    ]


@pytest.mark.parametrize(
    ("number", "command"), [(signal.SIGINT, GENERATE), (signal.SIGTERM, ("serve", "--agents", "null"))]
)
def test_a_signal_ends_a_start_that_hangs(start: Start, number: int, command: tuple[str, ...], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    more = ("--replicas", "1") if command is GENERATE else ("--port", port)
    with start(*command, *more, raylet="sleep 600") as process:
        family = family_with(process, "sleep")
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in errors
    assert have_ended(family)
    if command is GENERATE:  # the run's folder can be had again, and needs no Ray
        with start(*GENERATE, "--here", raylet="sleep 600") as again:
            assert again.wait(60) == 0
        [record] = (tmp_path / "run" / "records" / "null.jsonl").read_text().splitlines()
        assert json.loads(record)["status"] == "ok"


def test_what_needs_no_ray_starts_none(start: Start, tmp_path: Path) -> None:
    """Agents that servers answer for, and all with --here, however much it is; here Ray would hang."""
    write_words(tmp_path, 300)
    with start(*GENERATE, "--here", "--batch-size", "1", raylet="sleep 600") as process:
        assert process.wait(100) == 0
    with start("generate", "set.jsonl", "--agents", "null-one", "--out", "run", raylet="sleep 600") as process:
        assert process.wait(100) == 0
    for agent in ("null", "null-one"):
        assert (tmp_path / "run" / "records" / f"{agent}.jsonl").read_text().count("\n") == 300


def test_an_agent_that_ends_the_process_ends_a_run_here(start: Start, tmp_path: Path) -> None:
    write_words(tmp_path, 9)
    for more in (["--here"], []):  # few enough to be answered here
        with start(*GENERATE, *more, "--set", "null.crash=w5", raylet="sleep 600") as process:
            _, errors = process.communicate(timeout=100)
        assert process.returncode == AgentStoppedError.exit_code, errors
        assert errors.splitlines()[-1] == f"turinglike: {AGENT_DIED}"
    with start(*GENERATE, "--here", "--replicas", "2", raylet="sleep 600") as process:
        _, errors = process.communicate(timeout=100)
    assert (process.returncode, errors.count("\n")) == (2, 1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")
def test_a_start_that_failed_is_tried_once_more(start: Start) -> None:
    with start(*GENERATE, "--replicas", "1") as process:
        first, *family = family_with(process, "raylet")
        first.kill()
        _, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors
    assert "Ray did not start: its raylet ended; trying once more" in errors
    assert have_ended(family)


def test_its_surroundings_do_a_run_no_harm_and_get_nothing_from_it(tmp_path: Path) -> None:
    """Modules in the current folder are not imported, keys stay out of workers, Ray's sockets and files are its own. A
    driver that is killed leaves no process and no folder."""
    here = tmp_path / "here"
    temporary = Path(tempfile.mkdtemp(prefix="r-"))
    here.mkdir()
    mark = f"open({str(tmp_path / 'imported')!r}, 'a').write(__name__)\n"
    for name in ("pydantic", "numpy", "h2", "orjson", "serving", "agents", "ray", "cloudpickle", "pickle"):
        (here / f"{name}.py").write_text(mark)
    write_words(here, 100)
    environment = os.environ | {"A_KEY": "secret", "HF_TOKEN": "secret", "DATABASE": "secret", "TMPDIR": str(temporary)}
    environment.pop("RAY_AUTH_TOKEN")
    call = [sys.executable, "-P", "-m", "serving.cli", *GENERATE]
    call += ["--batch-size", "1", "--set", "null.delay_s=0.2", "--replicas", "1"]
    with subprocess.Popen(call, cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        records = here / "run" / "records" / "null.jsonl"
        while run.poll() is None and not (records.exists() and records.stat().st_size):
            time.sleep(0.05)
        family = psutil.Process(run.pid).children(recursive=True)
        workers = [process for process in family if "WorkerActor" in " ".join(process.cmdline())]
        environments = [process.environ() for process in family if "serving.cli" not in process.cmdline()]
        listening = {
            (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
            for process in [*family, psutil.Process(run.pid)]
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        metrics = [port for _, port in listening if _answers_anybody(port)]
        [folder] = temporary.iterdir()
        mode = folder.stat().st_mode & 0o777
        run.kill()
        if sys.platform == "linux":  # whose kernel ends the others
            assert have_ended(family)
    assert not (tmp_path / "imported").exists()
    assert workers
    assert not any("secret" in environment.values() for environment in environments)
    assert {ip for ip, _ in listening} == {"127.0.0.1"}
    assert not metrics
    assert mode == 0o700
    assert list(temporary.iterdir()) == []
    temporary.rmdir()


def _answers_anybody(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=0.5)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/metrics")
        with connection.getresponse() as reply:
            return reply.status == 200
    return False


def test_workers_get_what_they_need_and_no_secrets() -> None:
    needed = ["PATH", "LC_ALL", "CUDA_VISIBLE_DEVICES", "HF_HOME", "TOKENIZERS_PARALLELISM"]
    secrets = ["OPENAI_API_KEY", "HF_TOKEN", "VLLM_API_KEY", "TURINGLIKE_API_KEY", "DATABASE"]
    assert [*filter(local_ray.is_for_workers, [*needed, *secrets])] == needed
