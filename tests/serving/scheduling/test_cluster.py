"""Workers on an existing cluster, and images that travel to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from PIL import Image as PILImage

from agents.errors import ClusterError


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
    wrong = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    modes: tuple[dict[str, str], ...] = ({}, wrong)
    for mode in modes:
        done = subprocess.run(
            [sys.executable, "-c", code, ray_address], capture_output=True, text=True, check=False, env=known | mode
        )
        assert done.returncode != 0
        assert "inside" not in done.stdout


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text('{"id": "a", "task": "word_association", "cue": "b"}\n')
    call = [sys.executable, "-m", "serving.cli", "generate", str(source), "--agents", "null", "--out"]
    done = subprocess.run(
        [*call, str(tmp_path / "run"), "--address", "127.0.0.1:1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == ClusterError.exit_code
    assert "the Ray cluster at 127.0.0.1:1 cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr
