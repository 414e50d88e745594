"""What `export --format csv` wrote comes back as it was: people stay people, and machines are published."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from serving.cli import main
from serving.exchange.exporting.command import export_run
from tests.helpers.run_folders import ANSWERS, read_back, record, stimulus, write_run

ODD = ["=1+1", "'-x", "moon", 'a "quoted", word', "two\nlines", "007", "1.0", "null", "None", "[sic]", "{}"]


def test_words_come_back_letter_for_letter(tmp_path: Path) -> None:
    lines = ["cue,subject,response", *(f'sun,p{at},"{text}"' for at, text in enumerate(["moon", "hot", "yellow"]))]
    (tmp_path / "words.csv").write_text("\n".join(lines))
    people = str(tmp_path / "people")
    assert main(["import", str(tmp_path / "words.csv"), "--task", "word", "--out", people]) == 0
    # Texts that no table could have brought in are written into the records.
    rows = read_back(tmp_path / "people", "humans")
    odd = [
        {**rows[0], "agent": f"human:o{at}", "raw": text, "answer": {**rows[0]["answer"], "word": text}}
        for at, text in enumerate(ODD)
    ]
    path = tmp_path / "people" / "records" / "humans.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in [*rows, *odd]))
    export_run(tmp_path / "people", "csv", tmp_path / "out.csv")
    assert main(["import", str(tmp_path / "out.csv"), "--out", str(tmp_path / "back")]) == 0
    back = read_back(tmp_path / "back", "humans")

    def content(rows: list[dict[str, Any]]) -> list[Any]:
        return [(row["agent"], row["stimulus"], row["sample"], row["answer"]) for row in rows]

    assert content(back) == content([*rows, *odd])


def test_machines_become_published_and_failures_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = record("s2", status="failed", answer=None, error={"code": "x", "message": "y"})
    run = write_run(tmp_path / "run", [stimulus("s1"), stimulus("s2")], {"mmcq": [record("s1"), failed]})
    export_run(run, "csv", tmp_path / "out.csv")
    assert main(["import", str(tmp_path / "out.csv"), "--out", str(tmp_path / "back")]) == 0
    assert "noticed: failed answers: 1" in capsys.readouterr().out
    [row] = read_back(tmp_path / "back", "published")
    assert (row["agent"], row["stimulus"], row["answer"]) == ("published:mmcq", "s1", record("s1")["answer"])


@pytest.mark.parametrize("task", ANSWERS)
def test_answers_of_every_task_come_back(task: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [stimulus("s1")], {"mmcq": [record("s1"), record("s2", task)]})
    export_run(run, "csv", tmp_path / "out.csv")
    assert main(["import", str(tmp_path / "out.csv"), "--task", task, "--out", str(tmp_path / "back")]) == 0
    rows = read_back(tmp_path / "back", "published")
    assert rows[-1]["answer"] == {**rows[-1]["answer"], **ANSWERS[task]}
    assert len(rows) == (2 if task == "color_estimation" else 1)
