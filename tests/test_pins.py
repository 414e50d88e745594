"""A tool has one version, wherever it is named, and so has Turinglike."""

import re
import tomllib
from pathlib import Path

import pytest

import agents

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("tool", ["ruff", "typos"])
def test_pre_commit_and_make_lint_run_the_same_version(tool: str) -> None:
    [made] = re.findall(rf"^{tool.upper()} := {tool}==(\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    hooks = re.findall(rf"\[{tool}==(\S+)\]", (ROOT / ".pre-commit-config.yaml").read_text())
    assert set(hooks) == {made}


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    cited = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert [agents.__version__, *cited] == [project, project]
