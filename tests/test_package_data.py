"""A wheel has every file that the packages read; setuptools takes none but those that pyproject.toml names."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]


@pytest.mark.parametrize("package", ["agents", "judging", "serving"])
def test_a_wheel_has_every_file_of_a_package(package: str) -> None:
    there = {path for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    code = {path for path in there if path.suffix == ".py"}
    by_pattern = {pattern: set((ROOT / package).glob(pattern)) for pattern in DATA[package]}
    assert [pattern for pattern, paths in by_pattern.items() if not paths] == []
    assert there - code == set().union(*by_pattern.values())
