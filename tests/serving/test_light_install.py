"""The commands that need no agent work where only the base install is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import run_folders
from PIL import Image

HEAVY = ("torch", "ray", "transformers", "cv2", "pyarrow", "wordfreq", "safetensors", "fastapi", "openai", "pandas")
WITHOUT = """
import sys

from importlib.machinery import PathFinder

class Light(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {absent} else super().find_spec(name, path, target)

sys.meta_path = [Light if finder is PathFinder else finder for finder in sys.meta_path]
from serving.cli import main
sys.exit(main({arguments}))
"""


def call(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    program = WITHOUT.format(absent=set(HEAVY), arguments=list(arguments))
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of one colour stimulus, and a run over it."""
    folder = tmp_path_factory.mktemp("light")
    (folder / "images").mkdir()
    Image.new("RGB", (8, 6), "red").save(folder / "images" / "s1", "PNG")
    (folder / "set.jsonl").write_bytes(run_folders.line(run_folders.stimulus("s1")))
    (folder / "published.json").write_text('{"s1": {"A": ["red"]}}')
    run_folders.write_run(folder / "run", [run_folders.stimulus("s1")], {"mmcq": [run_folders.record()]})
    return folder


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("agents", "mmcq"),
        ("agents git-base-coco", "no: the package torch is not installed: pip install 'turinglike[vision]'"),
        ("check set.jsonl", "1 stimulus (color_estimation 1): no problems."),
        ("status run", "mmcq"),
        ("report run", "report.html"),
        ("export run --format csv --out answers.csv", ""),
        ("export run --format turingtest --out answers", ""),
    ],
)
def test_commands_without_agents(command: str, says: str, folder: Path) -> None:
    done = call(command.split(), folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("generate set.jsonl --agents mmcq --out other", "vision"),
        ("generate set.jsonl --agents eliza --out other", "run"),
        ("serve --agents eliza", "serve"),
        ("export run --format parquet --out answers.parquet", "parquet"),
    ],
)
def test_what_needs_more_says_what_to_install(command: str, extra: str, folder: Path) -> None:
    done = call(command.split(), folder)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"pip install 'turinglike[{extra}]'" in done.stderr
