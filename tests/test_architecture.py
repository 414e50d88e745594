"""Imports point one way: between files without a circle, and between rooms as docs/architecture.md says."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.helpers import rooms

ROOT = Path(__file__).parents[1]
PAGE = "docs/architecture.md, section Rooms"


@pytest.fixture(scope="module")
def files() -> dict[str, Path]:
    return rooms.modules(ROOT)


@pytest.fixture(scope="module")
def imports(files: dict[str, Path]) -> list[rooms.Import]:
    return rooms.imports(files)


@pytest.fixture(scope="module")
def arrows(files: dict[str, Path], imports: list[rooms.Import]) -> dict[tuple[str, str], list[str]]:
    """From room to room, and the imports behind each arrow."""
    found = defaultdict(list)
    for importer, imported, line in imports:
        start = rooms.room(importer, files[importer])
        end = rooms.room(imported, files[imported])
        if start != end:
            found[start, end].append(f"{files[importer].relative_to(ROOT)}:{line} imports {imported}")
    return found


@pytest.fixture(scope="module")
def table() -> list[rooms.Row]:
    return rooms.table(ROOT / "docs" / "architecture.md")


def test_no_circle_of_files(imports: list[rooms.Import]) -> None:
    circle = rooms.circle((importer, imported) for importer, imported, _ in imports)
    assert " -> ".join(circle) == ""


def test_no_circle_of_rooms(arrows: dict[tuple[str, str], list[str]]) -> None:
    assert " -> ".join(rooms.circle(arrows)) == ""


def test_the_table_has_every_room_once(files: dict[str, Path], table: list[rooms.Row]) -> None:
    assert sorted(row.room for row in table) == sorted({rooms.room(name, path) for name, path in files.items()})


def test_a_room_imports_only_rooms_above_it_in_the_table(table: list[rooms.Row]) -> None:
    seen: set[str] = set()
    for row in table:
        assert set(row.may_import) <= seen, f"{row.room}: the table has the lowest room first"
        seen.add(row.room)


def test_rooms_import_what_the_table_says(arrows: dict[tuple[str, str], list[str]], table: list[rooms.Row]) -> None:
    allowed = {(row.room, name) for row in table for name in row.may_import}
    missing = [
        f"{start} may not import {end}: {', '.join(lines)}"
        for (start, end), lines in sorted(arrows.items())
        if (start, end) not in allowed
    ]
    unused = [f"{start} no longer imports {end}" for start, end in sorted(allowed - set(arrows))]
    assert missing + unused == [], f"{PAGE}, says otherwise"


def test_no_table_of_the_page_stands_twice() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    heads = Counter(re.findall(r"^(\|.*\|)\n\|[-|]+\|$", text, re.MULTILINE))
    assert heads["| room | holds | may import |"] == 1
    assert [head for head, number in heads.items() if number > 1] == []


def test_the_walks_name_files_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    walks = text[text.index("\n## Walks\n") : text.index("\n## The run folder\n")]
    named = set(re.findall(r"`([\w/]+\.(?:py|js|html))`", walks))
    paths = [f"/{path.relative_to(ROOT)}" for name in (*rooms.PACKAGES, "tests") for path in (ROOT / name).rglob("*.*")]
    assert len(named) > 40
    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in paths)] == []


def test_the_page_names_members_that_are_there(files: dict[str, Path]) -> None:
    """Such as `Scheduler.stream`, in whichever class of that name."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([A-Z][a-z]\w*\.\w+)(?:\(…\))?`", text))
    defined = set[str]()
    for path in files.values():
        classes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
        defined.update(f"{node.name}.{member}" for node in classes for member in _members(node))
    assert len(named) > 15
    assert sorted(named - defined) == []


def _members(node: ast.ClassDef) -> set[str]:
    """Methods, declared fields, and what methods set of ``self``."""
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(part.name)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            names.add(part.target.id)
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            names.add(part.attr)
    return names


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A package of two rooms, in which a type points down and a deferred import points up."""
    written = {
        "house/__init__.py": "",
        "house/roof.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.cellar import wine",
        "house/cellar/__init__.py": "",
        "house/cellar/wine.py": "def pour():\n    import house.roof\n",
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_reader_sees_types_and_deferred_imports(house: Path) -> None:
    found = rooms.imports(rooms.modules(house, ["house"]))
    assert sorted(found) == [("house.cellar.wine", "house.roof", 2), ("house.roof", "house.cellar.wine", 3)]
    circle = rooms.circle((importer, imported) for importer, imported, _ in found)
    assert sorted(set(circle)) == ["house.cellar.wine", "house.roof"]


def test_the_reader_refuses_a_relative_import(house: Path) -> None:
    (house / "house/roof.py").write_text("from .cellar import wine")
    with pytest.raises(ValueError, match=r"roof\.py:1: a relative import"):
        rooms.imports(rooms.modules(house, ["house"]))
