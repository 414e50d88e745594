"""What tables tell about who answered: kept with each answer, and the columns that scores are told by."""

import csv
import json
from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers.imported_tables import imported, refusal, remarks

CUES = ("sun", "sea", "tree", "dog")
PEOPLE = "participant,cue,response,rt,Age,player.sex,IP Address,e-mail\n" + "".join(
    f"p{number},{cue},{word}{number},812,{20 + number},{sex},10.0.0.{number},p{number}@example.org\n"
    for number, sex in ((1, "f"), (2, "m"))
    for cue, word in zip(CUES, ("moon", "blue", "leaf", "cat"), strict=True)
)
MACHINE = "cue,response\n" + "".join(f"{cue},thing\n" for cue in CUES)


def test_age_and_sex_go_with_answers_and_addresses_do_not(tmp_path: Path) -> None:
    rows = imported(tmp_path, "people.csv", PEOPLE, "--task", "word")
    assert rows[0]["raw"] == {"response": "moon1", "rt": 812, "meta": {"age": "21", "sex": "f"}}
    assert "told about who answered: age, sex" in remarks(tmp_path)
    assert "2 columns that may tell who a person is, left out: IP Address, e-mail" in remarks(tmp_path)
    assert "@example.org" not in (tmp_path / "run" / "records" / "humans.jsonl").read_text()


def test_a_questionnaire_in_a_row_of_its_own(tmp_path: Path) -> None:
    """One row has the age, and it is true of all rows of the person. A condition that changes stays with its row."""
    text = (
        "participant,cue,response,age,condition\np1,,,31,\np1,sun,moon,,near\np1,sea,blue,,far\np2,sun,hot,,near\n"
        "p2,,,40.0,\n"
    )
    rows = imported(tmp_path, "people.csv", text, "--task", "word")
    about = [(row["agent"], row["raw"]["meta"]) for row in rows]
    assert about == [
        ("human:p1", {"age": "31", "condition": "near"}),
        ("human:p1", {"age": "31", "condition": "far"}),
        ("human:p2", {"age": "40", "condition": "near"}),
    ]


def test_columns_of_other_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'participant,cue,response,Years of study,demo,age\np1,sun,moon,3,"{""dialect"":""Bavarian""}",31\n'
    columns = ("--columns", "meta=Years of study+demo.dialect")
    [row] = imported(tmp_path, "people.csv", text, "--task", "word", *columns)
    assert row["raw"]["meta"] == {"years_of_study": "3", "dialect": "Bavarian"}
    form = tmp_path / "lab.toml"
    form.write_text('name = "Lab"\n[columns]\nmeta = ["Years*", "age"]\n')
    [row] = imported(tmp_path, "people.csv", text, "--task", "word", "--form", str(form))
    assert row["raw"]["meta"] == {"years_of_study": "3", "age": "31"}
    text = "participant,cue,response,email\np1,sun,moon,a@example.org\n"
    told = refusal(tmp_path, capsys, "named.csv", text, "--task", "word", "--columns", "meta=email")
    assert "column email may tell strangers who a person is" in told


def test_scores_by_who_answered_and_by_who_judged(tmp_path: Path) -> None:
    """The judge a (f) takes all answers of people for people's, the judge b (m) none: rates of 1 and 0, whoever
    answered. Each person gave half of the answers."""
    (tmp_path / "machine.csv").write_text(MACHINE)
    imported(tmp_path, "people.csv", PEOPLE, "--task", "word")
    machine = ["import", str(tmp_path / "machine.csv"), "--task", "word", "--name", "gpt"]
    assert main([*machine, "--out", str(tmp_path / "run")]) == 0
    trials = tmp_path / "trials"
    assert main(["trials", str(tmp_path / "run"), "--seed", "1", "--out", str(trials)]) == 0
    with (tmp_path / "trials.key.csv").open(newline="") as file:
        key = list(csv.DictReader(file))
    columns = {row["agent"]: json.loads(row["columns"]) for row in key}
    assert columns["human:p1"] == {"person.age": "21", "person.sex": "f"}
    assert columns["published:gpt"] == {}
    lines = ["judge,trial,verdict,sex,confidence"]
    for row in key:
        lines.append(f"a,{row['trial']},human,f,1")
        lines.append(f"b,{row['trial']},machine,m,1")
    (tmp_path / "judged.csv").write_text("\n".join(lines) + "\n")
    judged = ["import", str(tmp_path / "judged.csv"), "--task", "judgement"]
    assert main([*judged, "--out", str(tmp_path / "V")]) == 0
    score = ["score", str(tmp_path / "V"), "--key", str(tmp_path / "trials.key.csv")]
    assert main([*score, "--by", "sex,person.sex", "--out", str(tmp_path / "S")]) == 0
    with (tmp_path / "S" / "by.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["agent"] in ("all", "human")]
    found = {
        (row["column"], row["value"]): (int(row["human_human"]), int(row["human_machine"]))
        for row in rows
        if row["agent"] == "all"
    }
    people = [row for row in key if row["truth"] == "human"]
    assert found["sex", "f"] == (len(people), 0)
    assert found["sex", "m"] == (0, len(people))
    of_p1 = sum(row["agent"] == "human:p1" for row in people)
    assert 0 < of_p1 < len(people)
    assert found["person.sex", "f"] == (of_p1, of_p1)
