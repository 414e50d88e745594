"""The package that a page of the documentation shows, as if it were installed."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.catalogue import lookup
from tests.helpers import in_process

REPOSITORY = Path(__file__).resolve().parents[2]
EGG_INFO = "from setuptools import setup; setup()"  # what an install writes, without the network


def examples(page: str, language: str) -> list[str]:
    """The examples of docs/``page`` in a language, in their order."""
    text = (REPOSITORY / "docs" / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@contextmanager
def installed(page: str, module: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be in ``folder``, which has the examples, with the page's package: its Python is ``module``, its first TOML is
    ``pyproject.toml``. What is answered is answered in this process."""
    package = folder / "package"
    package.mkdir()
    (package / f"{module}.py").write_text("".join(examples(page, "python")))
    (package / "pyproject.toml").write_text(examples(page, "toml")[0])
    subprocess.run([sys.executable, "-c", EGG_INFO, "-q", "egg_info"], cwd=package, check=True)
    shutil.copytree(REPOSITORY / "examples", folder / "examples")
    in_process.without_ray(monkeypatch)
    monkeypatch.syspath_prepend(package)
    monkeypatch.chdir(folder)
    _forget_packages()
    yield
    monkeypatch.undo()
    sys.modules.pop(module, None)
    _forget_packages()


def _forget_packages() -> None:
    lookup._installed.cache_clear()
    lookup._known.cache_clear()
    lookup.entries.cache_clear()
