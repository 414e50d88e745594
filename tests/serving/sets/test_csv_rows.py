"""CSV of texts that try to be more than one cell: read by Python's own reader and by pandas."""

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest

from serving.files.csv_tables import unguarded, write_rows

FORMULAS = [
    *("=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "'=1", "''=1", "'@x"),
    *("+49 30 123", "-", "=", "\uff1d1"),
]
OTHERS = [
    *("", "plain", "'tis", "a=1", " =1", "-5", "+5", "-1.5e-3", "1.10", "'", 'say "hi", now', "Zoë", "\u2028", "[1]"),
    *("x\rhuman:forged", "two\nlines", "a\r\nb"),
]


@pytest.mark.parametrize("text", [*FORMULAS, *OTHERS])
def test_every_text_is_one_cell_of_one_row_and_comes_back(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, ["id", "text", "id2"], [[1, text, 2], [3, text, 4]])
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "text", "id2"]
    assert [(row[0], unguarded(row[1]), row[2]) for row in rows] == [("1", text, "2"), ("3", text, "4")]
    cells = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert len(cells) == 2
    assert [unguarded(cell) for cell in cells["text"]] == [text, text]
    is_guarded = rows[0][1] != text
    assert is_guarded == (text in FORMULAS)
    assert not re.match(r"[=+\-@\t\r]", rows[0][1]) or float(rows[0][1]) is not None  # numbers alone


def test_numbers_stay_numbers_and_what_is_not_there_is_empty() -> None:
    text = io.StringIO(newline="")
    write_rows(text, ["a", "-b", "c", "d"], [[-1, -0.5, None, float("nan")], [True, 1e-9, "", -3]])
    assert text.getvalue() == "a,'-b,c,d\r\n-1,-0.5,,\r\nTrue,1e-09,,-3\r\n"
