"""The commands that need no agent work where only the base install is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from agents.models import checkpoints
from agents.models.smollm2 import PACKAGE
from tests.helpers import run_folders, tiny_language

NOT_LISTED_BY = (
    "torch",
    "torchvision",
    "transformers",
    "vllm",
    "ray",
    "jax",
    "cv2",
    "sklearn",
    "pandas",
    "pyarrow",
    "scipy",
)
LOADED = """
import json, sys
from serving.cli import main
from serving.scheduling import machine
machine.may_have_gpu = lambda: False
code = main(sys.argv[1:])
print(json.dumps([code, [name for name in sys.modules if "." not in name]]), file=sys.stderr)
"""
HEAVY = ("torch", "ray", "transformers", "cv2", "pyarrow", "wordfreq", "safetensors", "fastapi", "openai", "pandas")
WITHOUT = """
import contextlib, io, json, sys

from importlib.machinery import PathFinder

class Light(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HEAVY else super().find_spec(name, path, target)

HEAVY, commands = json.loads(sys.argv[1])
sys.meta_path = [Light if finder is PathFinder else finder for finder in sys.meta_path]
from serving.cli import main
from serving.files import signs_of_life
signs_of_life.FIRST_SIGN = 3600.0
found = []
for command in commands:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(command.split())
    found.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(found))
"""
WORKS = {
    "agents": "mmcq",
    "agents git-base-coco": "no: the package torch is not installed: pip install 'turinglike[vision]'",
    "check set.jsonl": "1 stimulus (color_estimation 1): no problems.",
    "ask eliza~eliza --topic tea": "tea",
    "status run": "mmcq",
    "report run": "index.html",
    "report run --single-file": "report.html",
    "history chat.txt --person Ann -o ann.jsonl": "ann.jsonl: 1 message of Ann, 1 of 1 other",
    "export run --format csv --out answers.csv": "",
    "export run --format turingtest --out answers": "",
}
NEEDS = {
    "generate set.jsonl --agents mmcq --out other": "vision",
    "generate set.jsonl --agents eliza --replicas 1 --out other": "run",
    "serve --agents eliza": "serve",
    "export run --format parquet --out answers.parquet": "parquet",
}


def test_what_works_without_extras_and_what_says_which_to_install(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    Image.new("RGB", (8, 6), "red").save(tmp_path / "images" / "s1", "PNG")
    (tmp_path / "set.jsonl").write_bytes(run_folders.line(run_folders.stimulus("s1")))
    (tmp_path / "chat.txt").write_text("31.12.2023, 21:05 - Ann: hi\n31.12.2023, 21:06 - Bob: yes\n")
    run_folders.write_run(tmp_path / "run", [run_folders.stimulus("s1")], {"mmcq": [run_folders.record()]})
    call = [sys.executable, "-c", WITHOUT, json.dumps([HEAVY, [*WORKS, *NEEDS]])]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = dict(zip([*WORKS, *NEEDS], json.loads(done.stdout), strict=True))
    for command, says in WORKS.items():
        code, out, err = found[command]
        assert (code, err) == (0, ""), command
        assert says in out
    for command, extra in NEEDS.items():
        code, _, err = found[command]
        assert (code, err.count("\n")) == (2, 1), command
        assert f"pip install 'turinglike[{extra}]'" in err


@pytest.mark.parametrize("command", ["agents", "doctor", "agents gbvs", "agents git-base-coco --json", "agents svm"])
def test_what_there_is_is_listed_without_what_runs_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a model is here, which its agent says it can run: its configuration, its weights and its template are
    looked at."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tiny_language.llama(checkpoints.packaged_folder(PACKAGE))
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *command.split()], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0
    assert not {*NOT_LISTED_BY} & {*modules}
    assert {"agents", "serving"} <= {*modules}
    if command == "doctor":
        [here] = [line for line in done.stdout.splitlines() if line.startswith("agents that can run here")]
        assert "smollm2-135m" in here
