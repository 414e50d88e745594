"""What the pages, the settings of tools and the code's comments name by its path is there."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A folder or file of the packages, and files of the other folders; studies and runs have folders of such names too.
PATH = re.compile(
    r"(?<![\w/.:-])(?:(?:agents|judging|serving)/[\w./-]*\w|(?:docs|examples|findings|scripts|tests)/[\w./-]*\.\w+)"
)
FOLDERS = (".github", "agents", "docs", "examples", "findings", "judging", "scripts", "serving", "tests")
SUFFIXES = {".md", ".py", ".toml", ".yml", ".yaml"}


def _pages() -> Iterator[Path]:
    """The texts that name paths, but for the changelog, which names what there was."""
    yield ROOT / "Makefile"
    for folder in FOLDERS:
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES)
    yield from (path for path in sorted(ROOT.glob("*")) if path.suffix in SUFFIXES and path.name != "CHANGELOG.md")


def test_every_path_that_is_named_exists() -> None:
    missing = []
    for page in _pages():
        for number, line in enumerate(page.read_text().splitlines(), 1):
            named = [path for path in PATH.findall(line) if path != "findings/NAME.sh"]
            gone = [path for path in named if not (ROOT / path).exists()]
            missing += [f"{page.relative_to(ROOT)}:{number}: {path}" for path in gone]
    assert missing == []
