"""One reader of CSV: what moves or loses a cell is refused with its line, by whatever command reads the table."""

from pathlib import Path

import pytest

from serving.cli import main
from serving.runs.run import Run

JSPSYCH = "trial_type,trial_index,rt,response,subject,trial"


def imported(path: Path, task: str = "word") -> int:
    more = ["--responses", "0=human,1=machine"] if task == "judgement" else []
    return main(["import", str(path), "--task", task, *more, "--out", str(path.parent / "out")])


def answers(folder: Path) -> list[tuple[str, str, str]]:
    rows = Run(folder / "out").records("humans")
    return [(row["agent"], row["stimulus"], row["answer"].get("word", row["answer"].get("verdict"))) for row in rows]


@pytest.mark.parametrize(
    ("task", "text", "told"),
    [
        ("caption", "stimulus,subject,response\n1.jpg,5,a dog, running\n1.jpg,6\n", ["2: 4 cells", "3: 2 cells"]),
        ("word", "stimulus,subject,response\n\nsun,5,\nsea,5\n", ["4: 2 cells"]),
        ("judgement", f"{JSPSYCH}\nbutton,1,400,0,w1,t1,oops\nbutton,2,400,7,w1,t2\n", ["2: 7 cells", "3: response:"]),
        ("judgement", f"{JSPSYCH},subject\n", ["1: subject: two columns of this name, 5 and 7"]),
        ("word", "stimulus,subject,response, response\na,5,b,c\n", ["1: response: two columns of this name, 3 and 4"]),
        ("word", "stimulus;subject;response\nsun;5;moon;x\nsea;5\n", ["2: 4 cells", "3: 2 cells"]),
        ("word", "# by hand\nstimulus;subject;response\nsun;5\n", ["3: 2 cells"]),
        ("word", "sep=;\nstimulus;subject;response\nsun;5\n", ["3: 2 cells"]),
        ("word", 'stimulus,response\nsun,"moon" star\nsea,"open\n', ["2: not CSV: ", "3: not CSV: unexpected end"]),
    ],
)
def test_rows_that_are_no_rows_are_refused_all_at_once(
    task: str, text: str, told: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people.csv").write_text(text)
    assert imported(tmp_path / "people.csv", task) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line for line, begin in zip(lines, told, strict=False) if f"people.csv:{begin}" in line] == lines[:-1]
    assert len(lines) == len(told) + 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfstimulus, subject , response\nsun, 05, moon\n,,\n",
        b'"stimulus","subject","response",""\r\n"sun","05","moon","1"\r\n',  # with row numbers under no name
        b"stimulus;subject;response\nsun;05;moon\n",
        b'"stimulus";"subject";"response";"a, b"\nsun;05;moon;1,5\n',
        b"stimulus\tsubject\tresponse\nsun\t05\tmoon\n",
        b"stimulus|subject|response\nsun|05|moon\n",
        b"sep=;\r\nstimulus;subject;response\r\nsun;05;moon\r\n",
        b"#made by hand\n#date: today, at noon\nstimulus,subject,response\nsun,05,moon\n",
        b"#stimulus,subject,response\nsun,05,moon\n",  # as numpy's savetxt writes a header
        "stimulus,subject,response\nsun,05,moon\n".encode("utf-16"),
        "stimulus\tsubject\tresponse\nsun\t05\tmoon\n".encode("utf-16-le"),
        "stimulus,subject,response\nsun,05,moon\n".encode("utf-16-be"),
    ],
)
def test_tables_that_are_read(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes(data)
    assert imported(tmp_path / "people.csv") == 0
    assert answers(tmp_path) == [("human:05", "sun", "moon")]
