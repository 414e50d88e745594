"""Tables with a row for each person and a column for each stimulus."""

from pathlib import Path

import pytest

from tests.helpers.imported_tables import imported, refusal, remarks, words

WORD = ("--task", "word")
LONG = [  # of all tables below: who, the stimulus, the word
    ("human:p1", "sun", "moon"),
    ("human:p1", "deep sea", "blue"),
    ("human:p2", "deep sea", "fish"),
]
TABLES = {
    "word_*": "participant,age,word_sun,word_deep sea\np1,31,moon,blue\np2,40,,fish\n",
    "Which word comes to mind? [*]": (
        "Timestamp,participant,Which word comes to mind? [sun],Which word comes to mind? [deep sea]\n"
        "2026/11/29 9:00:00,p1,moon,blue\n2026/11/29 9:01:00,p2,,fish\n"
    ),
    "*": "participant,age,sun,deep sea,IP\np1,31,moon,blue,10.0.0.1\np2,40,,fish,10.0.0.2\n",
}


@pytest.mark.parametrize("pattern", TABLES)
def test_a_column_for_each_stimulus(tmp_path: Path, pattern: str) -> None:
    rows = imported(tmp_path, "wide.csv", TABLES[pattern], *WORD, "--wide", pattern)
    assert words(rows) == LONG
    told = remarks(tmp_path)
    assert "2 columns of answers, one for each stimulus" in told
    assert "rows_without_an_answer: 1" in told
    if "age" in TABLES[pattern]:
        assert [row["raw"]["meta"] for row in rows] == [{"age": "31"}, {"age": "31"}, {"age": "40"}]


def test_times_columns_without_a_pattern_and_a_form(tmp_path: Path) -> None:
    text = "participant,sun,deep sea,time_sun,time_deep sea\np1,moon,blue,0.8,1.25\np2,,fish,,0.5\n"
    options = ("--wide", "sun", "--wide", "deep sea", "--columns", "rt=time_*")
    rows = imported(tmp_path, "wide.csv", text, *WORD, *options)
    assert words(rows) == LONG
    assert [row["raw"]["rt"] for row in rows] == [800, 1250, 500]
    form = tmp_path / "lab.toml"
    form.write_text('name = "Lab"\ntask = "word"\nwide = ["sun", "deep sea"]\n')
    assert len(imported(tmp_path, "wide.csv", text, "--form", str(form))) == 3


def test_qualtrics(tmp_path: Path) -> None:
    """Its labels and import ids stand below the header, and its id of a response names people."""
    text = (
        "StartDate,ResponseId,Q1_sun,Q1_deep sea\n"
        '"Start Date","Response ID","Which word? - sun","Which word? - deep sea"\n'
        '"{""ImportId"":""startDate""}","{""ImportId"":""_recordId""}","{""ImportId"":""QID1_1""}","{""ImportId"":""QID1_2""}"\n'
        "2026-11-29 09:00:00,p1,moon,blue\n2026-11-29 09:01:00,p2,,fish\n"
    )
    assert words(imported(tmp_path, "wide.csv", text, *WORD, "--wide", "Q1_*")) == LONG


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TABLES["word_*"]
    assert "--wide 'word_*' says which columns" in refusal(tmp_path, capsys, "a.csv", text, *WORD)
    assert "no column is so" in refusal(tmp_path, capsys, "a.csv", text, *WORD, "--wide", "wort_*")
    twice = "participant,a_sun,b_sun\np1,moon,hot\n"
    told = refusal(tmp_path, capsys, "b.csv", twice, *WORD, "--wide", "a_*", "--wide", "b_*")
    assert "both hold answers to sun" in told
    long = "participant,cue,response,rt\np1,sun,moon,512\n"
    assert "* is for tables with --wide" in refusal(tmp_path, capsys, "c.csv", long, *WORD, "--columns", "rt=time_*")
    assert "one * at most" in refusal(tmp_path, capsys, "b.csv", twice, *WORD, "--wide", "*_*")


def test_a_message_names_the_columns_of_the_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal(tmp_path, capsys, "a.csv", "who,word_sun\n1,moon\n", "--task", "word", "--wide", "word_*")
    assert "its columns are who. Say which with --columns subject=NAME" in told
    assert "(stimulus)" not in told
