"""``turinglike completion``: what bash offers, asked of bash itself."""

import builtins
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from serving.cli import main

BASH = shutil.which("bash")
# Sources the script and prints what it offers for a line that is given word by word.
OFFERED = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_shtab_turinglike turinglike "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf "%s\\n" "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script for bash."""
    pytest.importorskip("shtab")
    if BASH is None:
        pytest.skip("no bash")
    path = tmp_path_factory.mktemp("completion") / "turinglike.bash"
    with path.open("w") as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        assert main(["completion", "bash"]) == 0
    return path


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gen", {"generate"}),
        ("generate --agents mmcq", {"mmcq", "mmcq-lab"}),
        ("generate --agents eliza,mmcq", {"eliza,mmcq", "eliza,mmcq-lab"}),
        ("generate --agents eliza~smol", {"eliza~smollm2-135m"}),
        ("generate --agents svm-n", set()),
        ("judge --judges cues,svm-n", {"cues,svm-new-people"}),
        ("ask mmcq-", {"mmcq-lab"}),
        ("generate --device c", {"cpu", "cuda"}),
        ("status sun", {"sunrise"}),
        ("score sun", {"sunrise"}),
        ("ask mmcq --image sun", {"sunrise"}),
        ("study ne", {"new"}),
    ],
)
def test_what_bash_offers(line: str, offered: set[str], script: Path, tmp_path: Path) -> None:
    (tmp_path / "sunrise").mkdir()
    command = [BASH or "", "-c", OFFERED, "bash", str(script), "turinglike", *line.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (set(done.stdout.split()), done.stderr) == (offered, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_with_the_names_of_agents(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert "mmcq-lab" in printed
    assert "svm-new-people" in printed


def test_the_package_that_lacks_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "shtab":
            raise ModuleNotFoundError("No module named 'shtab'")
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["completion", "bash"]) == 2
    assert "pip install shtab" in capsys.readouterr().err
