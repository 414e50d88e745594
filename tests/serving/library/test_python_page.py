"""The examples of docs/python.md print what the page says."""

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from serving.cli import main

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLE = re.compile(r"```(python|sh)\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def test_the_examples_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sections on answers and runs; they share their names, as in a notebook."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")
    page = (REPOSITORY / "docs" / "python.md").read_text("utf-8")
    before, heading, after = page.partition("## Records of a run")
    assert heading
    examples = EXAMPLE.findall(before + after.partition("\n## ")[0])
    assert len(examples) >= 8
    names: dict[str, object] = {}
    for language, code, printed in examples:
        if language == "sh":
            assert main(shlex.split(code.removeprefix("turinglike "))) == 0
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, "docs/python.md", "exec"), names)
        assert output.getvalue() == printed, code
