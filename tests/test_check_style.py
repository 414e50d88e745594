"""What scripts/check_style.py names, and what it lets pass, by examples."""

from pathlib import Path

import check_style
import pytest

NAMED = {
    "a, b = 1, 2": "several assignments packed into one",
    "self.a, self.b = one, two": "several assignments packed into one",
    "a, b = (float(x) for x in found)": "a comprehension taken apart",
    "a, b = [float(x) for x in found]": "a comprehension taken apart",
    "a, b = (1, 2) if found else (3, 4)": "a condition's values taken apart",
    "text = 's' * (number != 1)": "text or a list times a condition",
    "parts = [1] + [2] * any(found)": "text or a list times a condition",
    "name = ('no', 'yes')[number > 1]": "a condition as the index of a literal",
    "for item in [one]: pass": "a loop over one element",
    "x = [b for a in found for b in [a.first]]": "a `for` over one element",
    "x = [c for a in x for b in a for c in b]": "a comprehension with three `for`",
    "x = {  # fmt: skip\n}": "layout kept by hand",
}
PLAIN = (
    "a, b = b, a",
    "low, high = high, low + high",
    "a, b = pair()",
    "[only] = [x for x in found if x]",
    "zeros = [0] * count",
    "line = '-' * len(title)",
    "chosen = table[table['a'] > 1]",
    "x = [b for a in found for b in a]",
    "for item in [*found]: pass",
    "text = '# fmt: skip'",
)
DOCUMENTED = '''
import pathlib
class Run(BaseModel):
    """A folder of records. ``seed`` is that of the whole run."""

    seed: int
    name: str
    """The name of a run."""
    size: int
    """Bytes on the disk."""
    agents: list[str]

    def read(self) -> None:
        """Reads a run."""

    def close(self) -> None:
        pass

    def wait(self) -> Path:
        """As :meth:`read` and :meth:`Run.stop`, :class:`pathlib.Path`, ``answers.json``; not :func:`example.wait`.

        See :class:`Old`, :func:`~example.Old` and ``example.Young``, :mod:`example` and :mod:`sample`."""


def load(path: Path) -> bytes:
    """Raises OSError."""


def _store(path: Path) -> None:
    """Raise OSError for what cannot be written."""


def check_answer(answer: dict) -> dict:
    """Raises ValueError for a wrong one."""


def _refuse_numbers(column: list) -> None:
    """Raises ValueError where all are numbers."""


class Old(Run):
    def read(self) -> None:
        pass
'''


def _found(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, *options: str) -> tuple[int, list[str]]:
    (tmp_path / "example.py").write_text(text)
    code = check_style.main([*options, str(tmp_path)])
    return code, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("line", NAMED)
def test_what_is_not_plain_is_named(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = _found(tmp_path, capsys, f"x = 0\n{line}\n")
    assert code == 1
    [message] = found
    assert message.startswith(f"{tmp_path / 'example.py'}:2: {NAMED[line]}")


def test_what_is_plain_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _found(tmp_path, capsys, "\n".join(PLAIN) + "\n") == (0, [])


def test_tests_may_take_apart_what_they_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tests").mkdir()
    assert _found(tmp_path / "tests", capsys, "first, second = (sum(x) for x in found)\n") == (0, [])


def test_docstrings_that_are_missing_or_repeat_the_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = _found(tmp_path, capsys, DOCUMENTED, "--docstrings")
    assert code == 1
    assert [line.split(": ", 1)[1] for line in found] == [
        "the docstring of read says no more than its name and signature",
        "Run.close has no docstring",
        "the docstring of Run.name says no more than its name",
        "Run.agents has no docstring",
        "the docstring of load says what is raised before what it does",
        "the docstring of _store says what is raised before what it does",
        "the docstring of check_answer says what is raised before what it does",
        "nothing is named Run.stop",
        "nothing is named example.wait",
        "nothing is named example.Young",
        "nothing is named sample",
    ]
