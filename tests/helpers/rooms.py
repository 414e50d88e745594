"""Which file imports which, and the table of rooms in docs/architecture.md that says which may."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("agents", "serving", "judging")


class Import(NamedTuple):
    """One import of a module by another; both are dotted names. A folder's ``__init__.py`` has the folder's name."""

    importer: str
    imported: str
    line: int


class Row(NamedTuple):
    """A row of the table: a room, and the rooms that it may import."""

    room: str
    may_import: tuple[str, ...]


def modules(root: Path, packages: Iterable[str] = PACKAGES) -> dict[str, Path]:
    """The Python files of ``packages``, folders below ``root``, by their dotted names."""
    named = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def room(module: str, path: Path) -> str:
    """The folder in which a module lies, as a dotted name."""
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def imports(files: dict[str, Path]) -> list[Import]:
    """Every import between ``files``: at the top, inside functions, and those for types alone.

    A relative import is refused, since a reader would have to work out what it names.
    """
    return [Import(module, name, line) for module, path in files.items() for name, line in _named(path, files)]


def _named(path: Path, files: dict[str, Path]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in files:
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}:{node.lineno}: a relative import")
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in files:
                    yield submodule, node.lineno
                elif node.module in files:
                    yield node.module, node.lineno


def circle(arrows: Iterable[tuple[str, str]]) -> list[str]:
    """The names along one circle of ``arrows``, the first one again at the end; empty if there is none."""
    graph = defaultdict(set)
    for start, end in arrows:
        if start != end:
            graph[start].add(end)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # graphlib names each node before the one that depends on it, which is against the arrows.
        return list(reversed(error.args[1]))
    return []


def table(page: Path) -> list[Row]:
    """The rows of the table below the heading "Rooms" of a page; names stand in backticks, and "–" is none."""
    _, _, after = page.read_text().partition("\n## Rooms\n")
    section = re.split(r"^## ", after, maxsplit=1, flags=re.MULTILINE)[0]
    rows = []
    for line in section.splitlines():
        if line.startswith("| `"):
            name, _, may_import = line.strip("|").split("|")
            rows.append(Row(name.strip(" `"), tuple(re.findall(r"`([^`]+)`", may_import))))
    return rows
