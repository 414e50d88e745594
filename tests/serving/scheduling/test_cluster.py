"""Workers on an existing cluster, and images that travel to them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from PIL import Image as PILImage

from agents.errors import ClusterError
from serving.cli import main
from serving.scheduling import local_ray


def test_generate_joins_a_cluster_and_leaves_it_running(tmp_path: Path, ray_address: str) -> None:
    source, out = tmp_path / "set.jsonl", tmp_path / "run"
    PILImage.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    source.write_text('{"id": "a", "task": "color_estimation", "image": "a.png"}\n')
    call = [sys.executable, "-m", "serving.cli", "generate", str(source), "--agents", "mmcq", "--out", str(out)]
    for samples in ("1", "2"):
        more = ["--address", ray_address, "--samples", samples]
        done = subprocess.run([*call, *more], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    records = [json.loads(line) for line in (out / "records" / "mmcq.jsonl").read_text().splitlines()]
    assert [record["answer"]["color"] for record in records] == ["red", "red"]


def test_a_stranger_without_the_token_gets_nothing(ray_address: str) -> None:
    code = (
        "import sys, ray\nray.init(address=sys.argv[1], log_to_driver=False)\nprint('inside', ray.cluster_resources())"
    )
    known = {key: value for key, value in os.environ.items() if not key.startswith("RAY_AUTH")}
    environment = known | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64, "RAY_NUM_REDIS_GET_RETRIES": "1"}
    call = [sys.executable, "-c", code, ray_address]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode != 0
    assert "inside" not in done.stdout


def test_its_surroundings_do_a_run_no_harm_and_get_nothing_from_it(tmp_path: Path) -> None:
    """Modules in the current folder are not imported, keys stay out of workers, Ray's sockets and files are its own."""
    here, temporary = tmp_path / "here", Path(tempfile.mkdtemp(prefix="r-"))
    here.mkdir()
    mark = f"open({str(tmp_path / 'imported')!r}, 'a').write(__name__)\n"
    for name in ("pydantic", "numpy", "h2", "orjson", "serving", "agents", "ray", "cloudpickle", "pickle"):
        (here / f"{name}.py").write_text(mark)
    rows = [{"id": f"s{number}", "task": "word_association", "cue": "sun"} for number in range(100)]
    (here / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    environment = os.environ | {"A_KEY": "secret", "HF_TOKEN": "secret", "DATABASE": "secret", "TMPDIR": str(temporary)}
    environment.pop("RAY_AUTH_TOKEN")
    call = [sys.executable, "-P", "-m", "serving.cli", "generate", "set.jsonl", "--agents", "null", "--out", "run"]
    call += ["--batch-size", "1", "--set", "null.delay_s=0.02", "--replicas", "1"]
    with subprocess.Popen(call, cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        records = here / "run" / "records" / "null.jsonl"
        while run.poll() is None and not (records.exists() and records.stat().st_size):
            time.sleep(0.05)
        family = psutil.Process(run.pid).children(recursive=True)
        workers = [process for process in family if "WorkerActor" in " ".join(process.cmdline())]
        seen = [process.environ() for process in family if "serving.cli" not in process.cmdline()]
        listening = {
            (one.laddr.ip.removeprefix("::ffff:"), one.laddr.port)
            for process in [*family, psutil.Process(run.pid)]
            for one in process.net_connections("inet")
            if one.status == psutil.CONN_LISTEN
        }
        metrics = [port for _, port in listening if _answers_anybody(port)]
        [folder] = temporary.iterdir()
        mode = folder.stat().st_mode & 0o777
        output, _ = run.communicate()
    assert run.returncode == 0, output
    assert not (tmp_path / "imported").exists()
    assert workers
    assert not any("secret" in one.values() for one in seen)
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


def test_folders_of_drivers_that_were_killed_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_ray, "LONGEST", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held, left, young, linked = (local_ray.PrivateFolder.make() for _ in range(4))
    for one in (left, young, linked):
        os.close(one.lock)
    linked.path.rename(tmp_path / "elsewhere")
    linked.path.symlink_to(tmp_path / "elsewhere")
    for path in (held.path, left.path, tmp_path / "elsewhere"):
        os.utime(path / local_ray.LOCK, (0, 0))
    somebodys = tmp_path / f"{local_ray.PREFIX}results" / "precious"
    somebodys.mkdir(parents=True)
    os.utime(somebodys.parent, (0, 0))
    made = local_ray.PrivateFolder.make()
    assert {path.name for path in tmp_path.iterdir()} == {
        "elsewhere",
        somebodys.parent.name,
        *(one.path.name for one in (held, young, linked, made)),
    }
    assert somebodys.exists()


@pytest.mark.parametrize("length", [18, 60])
def test_rays_sockets_have_a_path_that_the_system_takes(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    base = f"/tmp/{'a' * (length - 5)}"
    os.makedirs(base, exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", base)
    folder = local_ray.PrivateFolder.make()
    session = folder.ray / "session_2026-01-01_00-00-00_000000_4194304"
    assert len(str(session / "sockets" / "plasma_store")) <= 107
    folder.remove()
    assert not folder.path.exists()
    os.rmdir(base)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, True) for name in ("PATH", "LC_ALL", "CUDA_VISIBLE_DEVICES", "HF_HOME", "TOKENIZERS_PARALLELISM")),
        *((name, False) for name in ("OPENAI_API_KEY", "HF_TOKEN", "VLLM_API_KEY", "TURINGLIKE_API_KEY", "DATABASE")),
    ],
)
def test_workers_get_what_they_need_and_no_secrets(name: str, given: bool) -> None:
    assert local_ray.is_for_workers(name) == given


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text('{"id": "a", "task": "word_association", "cue": "b"}\n')
    call = ["generate", str(source), "--agents", "null", "--out", str(tmp_path / "run"), "--address", "127.0.0.1:1"]
    assert main(call) == ClusterError.exit_code
    assert "turinglike: the Ray cluster at 127.0.0.1:1 cannot be reached" in capsys.readouterr().err
