"""Files as other programs write them come in with the right people and rows, or are refused with a way out.

The tests are named after the files: jsPsych 8.3.0, oTree 6.0.15, Gorilla, Qualtrics, Prolific, Mechanical Turk. Each
input is a small file in the form that the program writes.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from serving.cli import main
from tests.helpers.imported_tables import imported, refusal, remarks, words
from tests.helpers.run_folders import read_back

# who answered

PERSON_COLUMNS = (
    *("judge", "PROLIFIC_PID", "WorkerId", "Subject", "subject_nr", "annotator", "participant.code", "ResponseId"),
    *("Participant Private ID", "Participant", "workerID", "RATER", "participant_id", "Prolific ID", "vp", "user"),
)


@pytest.mark.parametrize("column", PERSON_COLUMNS)
def test_names_that_programs_write_are_people(column: str, tmp_path: Path) -> None:
    text = f'stimulus,"{column}",response\nsun,A1,moon\nsun,A2,hot\nsea,A1,blue\n'
    rows = imported(tmp_path, "words.csv", text, "--task", "word")
    assert words(rows) == [("human:A1", "sun", "moon"), ("human:A2", "sun", "hot"), ("human:A1", "sea", "blue")]


@pytest.mark.parametrize("column", PERSON_COLUMNS)
def test_names_that_programs_write_are_judges(column: str, tmp_path: Path) -> None:
    text = f'stimulus,"{column}",response\nt0001,A1,human\nt0001,A2,machine\nt0002,A1,human\n'
    rows = imported(tmp_path, "verdicts.csv", text, "--task", "judgement")
    assert [(row["agent"], row["stimulus"]) for row in rows] == [
        ("human:A1", "t0001"),
        ("human:A2", "t0001"),
        ("human:A1", "t0002"),
    ]


def test_nobody_is_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "stimulus,who,response\nt0001,A1,human\n"
    told = refusal(tmp_path, capsys, "verdicts.csv", table, "--task", "judgement")
    assert "does not say who judged" in told
    assert "its columns are stimulus, who, response. Say which with --columns subject=NAME" in told
    assert "does not say who judged" in refusal(
        tmp_path, capsys, "verdicts.csv", table, "--task", "judgement", "--unnamed"
    )
    told = refusal(tmp_path, capsys, "words.csv", "cue,response\nsun,moon\n", "--task", "word")
    assert "--unnamed takes each answer as another person's" in told
    rows = imported(tmp_path, "words.csv", "cue,response\nsun,moon\nsun,hot\n", "--task", "word", "--unnamed")
    assert words(rows) == [("human:unknown", "sun", "moon"), ("human:unknown", "sun", "hot")]
    assert "answers_without_a_name: 2" in remarks(tmp_path)
    rows = imported(tmp_path, "named.csv", table, "--task", "judgement", "--columns", "subject=who")
    assert rows[-1]["agent"] == "human:A1"


def test_two_columns_that_name_people_differently_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpenSesame counts every participant as 0 unless told otherwise."""
    table = "subject_nr,PROLIFIC_PID,cue,response\n0,aa,sun,moon\n0,bb,sun,hot\n"
    told = refusal(tmp_path, capsys, "words.csv", table, "--task", "word")
    assert "'0' in column subject_nr is several people in column PROLIFIC_PID" in told
    rows = imported(tmp_path, "words.csv", table, "--task", "word", "--columns", "subject=PROLIFIC_PID")
    assert [row["agent"] for row in rows] == ["human:aa", "human:bb"]
    # The other way round nobody is merged, but two names may be one person.
    table = "subject_nr,PROLIFIC_PID,cue,response\n1,aa,sun,moon\n2,aa,sun,hot\n3,bb,sea,blue\n"
    imported(tmp_path, "more.csv", table, "--task", "word")
    assert "column PROLIFIC_PID has one name, such as 'aa', for several of them" in remarks(tmp_path)


def test_numbers_are_one_name_only_where_all_of_a_column_are_whole(tmp_path: Path) -> None:
    def people(*names: str) -> list[str]:
        table = "cue,subject,response\n" + "".join(f"c{at},{name},x\n" for at, name in enumerate(names))
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return [row["agent"] for row in imported(folder, "words.csv", table, "--task", "word")]

    assert people("1", "1.0", "2.0") == ["human:1", "human:1", "human:2"]
    assert people("1", "1.0", "007") == ["human:1", "human:1.0", "human:007"]
    assert people("1", "01") == ["human:1", "human:01"]
    assert people("1.0", "1.10") == ["human:1.0", "human:1.10"]
    assert people("1.0", "x") == ["human:1.0", "human:x"]


# which rows


def test_jspsych_practice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ['"trial_type","trial_index","subject_id","phase","trial","response","rt"']
    lines += [f'"html-button-response","{at}","J01","practice","t000{at + 1}","1","900"' for at in range(4)]
    lines += [f'"html-button-response","{at + 4}","J01","test","t000{at + 1}","0","700"' for at in range(6)]
    text = "\n".join(lines)
    options = ("--task", "judgement", "--responses", "0=human,1=machine")
    rows = imported(tmp_path, "data.csv", text, *options)
    assert len(rows) == 10
    told = capsys.readouterr().out
    assert "In 4 cases a person gave several verdicts to one stimulus (4 additional verdicts)" in told
    assert "These verdicts differ in phase (practice, test)" in told
    assert "Only the first verdict counts in scores. To import only some rows: --rows phase=test" in told
    rows = imported(tmp_path, "data.csv", text, *options, "--rows", "phase=test")
    assert [(row["stimulus"], row["answer"]["verdict"]) for row in rows] == [
        (f"t000{at}", "human") for at in range(1, 7)
    ]
    assert "rows_that_--rows_leaves_out: 4" in remarks(tmp_path)
    rows = imported(tmp_path, "data.csv", text, *options, "--rows", "phase!=practice", "--rows", "trial=t0002")
    assert [row["stimulus"] for row in rows] == ["t0002"]
    told = refusal(tmp_path, capsys, "data2.csv", text, *options, "--rows", "phase=tset")
    assert "--rows phase=tset: no row is so; phase is 'practice', 'test'" in told
    assert "there is no column phases" in refusal(tmp_path, capsys, "data2.csv", text, *options, "--rows", "phases=a")


def test_jspsych_pages_of_a_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A timeline whose data hold the trial: a cross, a question, the verdict, another question."""
    rows: list[dict[str, Any]] = []
    for trial in range(4):
        for page, response in (("cross", None), ("known", 0), ("verdict", trial % 2), ("sure", 1)):
            rows.append(
                {
                    "trial_type": "html-button-response",
                    "trial_index": len(rows),
                    "participant": "P1",
                    "rt": 500,
                    "response": response,
                    "trial": f"t000{trial}",
                    "page": page,
                }
            )
    options = ("--task", "judgement", "--responses", "0=human,1=machine")
    imported(tmp_path, "data.json", json.dumps(rows), *options)
    told = capsys.readouterr().out
    assert "These verdicts differ in page (known, verdict, sure)" in told
    assert "trials without a response: 4" in told
    found = imported(tmp_path, "data.json", json.dumps(rows), *options, "--rows", "page=verdict")
    assert [row["answer"]["verdict"] for row in found] == ["human", "machine"] * 2


def test_jspsych_names_the_trial_by_row(tmp_path: Path) -> None:
    """Some screens have `trial`, others only `stimulus`; both are verdicts."""
    shared = {"trial_type": "html-button-response", "subject": "w1", "response": "human"}
    rows = [
        {**shared, "trial_index": 1, "stimulus": "<p>x</p>", "trial": "t0001"},
        {**shared, "trial_index": 2, "stimulus": "t0002"},
        {**shared, "trial_index": 3, "stimulus": "<p>The end</p>"},
    ]
    found = imported(tmp_path, "data.json", json.dumps(rows), "--task", "judgement")
    assert [row["stimulus"] for row in found] == ["t0001", "t0002"]
    assert "screens_that_name_no_trial: 1" in remarks(tmp_path)


QUALTRICS = """\ufeffStartDate,Finished,ResponseId,participant,stimulus,response
"Start Date","Finished","Response ID","participant","stimulus","Which word came to mind?"
"{""ImportId"":""startDate""}","{""ImportId"":""finished""}","{""ImportId"":""_recordId""}",\
"{""ImportId"":""participant""}","{""ImportId"":""stimulus""}","{""ImportId"":""QID1_TEXT""}"
2026-11-28 07:00:00,1,R_1,p1,table,chair
2026-11-28 07:05:00,1,R_2,p2,table,leg
"""


def test_qualtrics_header_lines_are_nobody(tmp_path: Path) -> None:
    rows = imported(tmp_path, "qualtrics.csv", QUALTRICS, "--task", "word")
    assert words(rows) == [("human:p1", "table", "chair"), ("human:p2", "table", "leg")]
    assert "header_lines_again: 2" in remarks(tmp_path)
    without_ids = "".join(line for line in QUALTRICS.splitlines(keepends=True) if "ImportId" not in line)
    rows = imported(tmp_path, "half.csv", without_ids.replace("participant", "who"), "--task", "word")
    assert [row["agent"] for row in rows[2:]] == ["human:R_1", "human:R_2"]


@pytest.mark.parametrize("last", ["END OF FILE,,,,,,\n", "END OF FILE\n", "END OF FILE"])
def test_gorilla_ends_with_a_line(last: str, tmp_path: Path) -> None:
    text = (
        "Event Index,UTC Date and Time,Participant Private ID,Participant Public ID,cue,response,Reaction Time\n"
        "1,28/11/2026 07:00:00,9001,BLIND,table,chair,512.4\n"
        "2,28/11/2026 07:00:05,9001,BLIND,dark,light,733.0\n"
        "3,28/11/2026 07:00:00,9002,BLIND,table,chair,411.4\n"
    )
    rows = imported(tmp_path, "gorilla.csv", text + last, "--task", "word")
    assert words(rows) == [
        ("human:9001", "table", "chair"),
        ("human:9001", "dark", "light"),
        ("human:9002", "table", "chair"),
    ]
    assert rows[0]["raw"] == {"response": "chair", "rt": 512.4}
    assert "end_of_file_lines: 1" in remarks(tmp_path)


def test_otree_rows_without_an_answer_are_counted(tmp_path: Path) -> None:
    text = (
        "session,participant,round,cue,word\ns,f1,1,table,chair\ns,x0,1,table,=1+1\ns,wz,1,table,\n"
        's,f1,2,dark,"so, loud"\ns,wz,2,dark,\n'
    )
    rows = imported(tmp_path, "otree.csv", text, "--task", "word")
    assert words(rows) == [
        ("human:f1", "table", "chair"),
        ("human:x0", "table", "=1+1"),
        ("human:f1", "dark", "so, loud"),
    ]
    told = remarks(tmp_path)
    assert "rows_without_an_answer: 2" in told
    assert "2 rows (at 4, 6) without an answer" in told
    assert "the answers are those of column word" in told
    assert "2 columns not read: session, round" in told


def test_rows_saved_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a column of time or number nobody can know; with one, an equal row is the same row."""
    once = "cue,subject,response\nsun,p0,blue\nsun,p1,road\nsea,p0,blue\n"
    twice = once + "".join(once.splitlines(keepends=True)[1:])
    assert len(imported(tmp_path, "twice.csv", twice, "--task", "word")) == 6
    assert "rows that repeat an earlier row in all cells: 3 (at 5, 6, 7)" in capsys.readouterr().out
    rows = imported(tmp_path, "twice.csv", twice, "--task", "word", "--drop-equal")
    assert words(rows) == [("human:p0", "sun", "blue"), ("human:p1", "sun", "road"), ("human:p0", "sea", "blue")]
    timed = "cue,subject,response,time_elapsed\nsun,p0,blue,900\nsun,p1,road,900\nsun,p0,blue,2000\n"
    again = timed + "".join(timed.splitlines(keepends=True)[1:])
    rows = imported(tmp_path, "timed.csv", again, "--task", "word", "--add")
    assert words(rows)[3:] == [("human:p0", "sun", "blue"), ("human:p1", "sun", "road"), ("human:p0", "sun", "blue")]
    assert "equal_rows_counted_once: 3" in remarks(tmp_path)
    # A day is a row's own in no table.
    dated = "cue,subject,response,date\nsun,p0,blue,2026-11-28\nsea,p0,blue,2026-11-28\nsun,p0,blue,2026-11-28\n"
    assert len(imported(tmp_path, "dated.csv", dated, "--task", "word", "--add")) == 9
    assert "equal_rows: 1" in remarks(tmp_path)


def test_a_file_downloaded_again_under_another_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether it is the same table again, corrected, or a second session, only the user knows."""
    first = "subject,cue,response\n1,table,chair\n1,dark,night\n"
    (tmp_path / "data.csv").write_text(first)
    (tmp_path / "data (1).csv").write_text(first + "1,music,loud\n")
    files = [str(tmp_path / "data.csv"), str(tmp_path / "data (1).csv")]
    assert main(["import", *files, "--task", "word", "--out", str(tmp_path / "asked")]) == 2
    told = capsys.readouterr().err
    both = "2 answers of 1 person to stimuli that were answered in data.csv, too; 2 of these answers are equal"
    assert f"data (1).csv: has {both}" in told
    assert "--replace takes the other file out" in told
    assert not (tmp_path / "asked").exists()
    assert main(["import", *files, "--task", "word", "--add", "--out", str(tmp_path / "both")]) == 0
    assert both in capsys.readouterr().out
    assert len(read_back(tmp_path / "both", "humans")) == 5
    assert main(["import", *files, "--task", "word", "--drop-equal", "--out", str(tmp_path / "once")]) == 0
    assert [row["stimulus"] for row in read_back(tmp_path / "once", "humans")] == ["table", "dark", "music"]
    copy = tmp_path / "copy.csv"
    copy.write_text(first)
    capsys.readouterr()
    assert main(["import", str(copy), "--task", "word", "--out", str(tmp_path / "once")]) == 0
    assert "has the same bytes as" in capsys.readouterr().out


def test_a_corrected_file_under_another_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "subject,cue,response\n1,table,chair\n1,dark,night\n"
    before = imported(tmp_path, "data.csv", table, "--task", "word")
    corrected = tmp_path / "corrected.csv"
    corrected.write_text(table.replace("night", "light") + "1,music,loud\n")
    out = tmp_path / "run"
    assert main(["import", str(corrected), "--task", "word", "--out", str(out)]) == 2
    assert "1 of these answers are equal" in capsys.readouterr().err
    assert read_back(out, "humans") == before
    assert main(["import", str(corrected), "--task", "word", "--add", "--replace", "--out", str(out)]) == 2
    assert main(["import", str(corrected), "--task", "word", "--replace", "--out", str(out)]) == 0
    assert f"replaces {tmp_path / 'data.csv'}" in capsys.readouterr().out
    assert [row["answer"]["word"] for row in read_back(out, "humans")] == ["chair", "light", "loud"]
    assert [Path(entry["path"]).name for entry in sources(out)] == ["corrected.csv"]


def test_a_file_that_was_added_is_not_asked_about_again(tmp_path: Path) -> None:
    """Nor does --replace take out what another task has of the other file."""
    table = "subject,cue,response\n1,table,chair\n1,dark,night\n"
    imported(tmp_path, "one.csv", table, "--task", "word")
    imported(tmp_path, "one.csv", table, "--task", "caption")
    imported(tmp_path, "two.csv", table.replace("night", "light"), "--task", "word", "--add")
    before = (tmp_path / "run" / "records" / "humans.jsonl").read_bytes()
    imported(tmp_path, "two.csv", table.replace("night", "light"), "--task", "word")
    assert (tmp_path / "run" / "records" / "humans.jsonl").read_bytes() == before
    imported(tmp_path, "two.csv", table.replace("night", "light"), "--task", "word", "--replace")
    assert [(Path(entry["path"]).name, entry["task"]) for entry in sources(tmp_path / "run")] == [
        ("one.csv", "image_captioning"),
        ("two.csv", "word_association"),
    ]


def sources(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "import.json").read_bytes())["sources"]
    return found


def test_a_few_answers_that_stand_twice_are_only_told(tmp_path: Path) -> None:
    """Somebody may see one stimulus again in a second session."""
    first = "subject,cue,response\n" + "".join(f"1,c{at},a\n" for at in range(10))
    second = "subject,cue,response\n1,c0,a\n" + "".join(f"1,d{at},a\n" for at in range(10))
    imported(tmp_path, "one.csv", first, "--task", "word")
    rows = imported(tmp_path, "two.csv", second, "--task", "word")
    assert len(rows) == 21
    assert "1 answer of 1 person to stimuli that were answered in one.csv, too" in remarks(tmp_path)


def test_a_file_is_taken_out_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = tmp_path / "one.csv"
    imported(tmp_path, "one.csv", "subject,cue,response\n1,sun,moon\n", "--task", "word")
    only_one = read_back(tmp_path / "run", "humans")
    table = "subject,cue,response\n1,sun,hot\n1,sea,blue\n2,sea,wave\n"
    imported(tmp_path, "two.csv", table, "--task", "word", "--add")
    out = str(tmp_path / "run")
    capsys.readouterr()
    assert main(["import", "--undo", str(tmp_path / "three.csv"), "--out", out]) == 2
    assert "three.csv: was not imported; the files are" in capsys.readouterr().err
    assert main(["import", "--undo", str(tmp_path / "two.csv"), "--rows", "a=b", "--out", out]) == 2
    (tmp_path / "two.csv").unlink()
    assert main(["import", "--undo", str(tmp_path / "two.csv"), "--out", out]) == 0
    assert "two.csv: word_association, 3 answers taken out" in capsys.readouterr().out
    assert read_back(tmp_path / "run", "humans") == only_one
    assert main(["import", "--undo", str(one), "--out", out]) == 0
    assert read_back(tmp_path / "run", "humans") == []
    assert main(["status", out]) == 0
    assert main(["import", str(one), "--task", "word", "--out", out]) == 0
    assert read_back(tmp_path / "run", "humans") == only_one
    assert main(["import", "--undo", str(one), "--out", str(tmp_path / "nothing")]) == 2
    assert not (tmp_path / "nothing").exists()


def test_a_dry_run_shows_the_first_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"p{who},c{at},w{at},80{at}\n" for who in range(12) for at in range(4)]
    table = "subject,cue,response,rt\n" + "".join(rows)
    (tmp_path / "data.csv").write_text(table + "p0,c9,,900\n")
    out = tmp_path / "run"
    command = ["import", str(tmp_path / "data.csv"), "--task", "word", "--out", str(out)]
    assert main([*command, "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  human:p0 | c2 | w2 | 802 ms" in lines
    assert not any("human:p0 | c3" in line or "human:p10" in line for line in lines)
    assert "  and 2 more names" in lines
    assert "  1 row (at 50) without an answer" in lines
    assert lines[-1] == f"nothing was written; without --dry-run this is imported into {out}"
    assert not out.exists()
    assert main(command) == 0
    (tmp_path / "again.csv").write_text(table)
    before = (out / "import.json").read_bytes()
    assert main(["import", str(tmp_path / "again.csv"), "--task", "word", "--out", str(out), "--dry-run"]) == 2
    assert "--replace takes the other file out" in capsys.readouterr().err
    assert (out / "import.json").read_bytes() == before


def test_answers_that_differ_in_their_time_alone_are_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second table was read without its times: it is the same table, and no answer has the same record."""
    table = "subject,cue,response,rt,age\n1,table,chair,700,31\n1,dark,night,800,31\n1,sea,blue,900,31\n"
    imported(tmp_path, "first.csv", table, "--task", "word")
    second = tmp_path / "second.csv"
    second.write_text(table.replace(",rt,age", ",what,ever").replace("blue", "fish"))
    assert main(["import", str(second), "--task", "word", "--out", str(tmp_path / "run")]) == 2
    assert (
        "3 answers of 1 person to stimuli that were answered in first.csv, too; 0 of these answers are equal to an "
        "answer in that file, and 2 are equal in what was answered, and differ in the time"
    ) in capsys.readouterr().err


def test_undo_says_which_file_does_not_come_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "subject,cue,response\n1,table,chair\n1,dark,night\n"
    imported(tmp_path, "first.csv", table, "--task", "word")
    imported(tmp_path, "second.csv", table.replace("night", "light"), "--task", "word", "--replace")
    imported(tmp_path, "second.csv", table.replace("night", "moon"), "--task", "word")
    capsys.readouterr()
    out = tmp_path / "run"
    assert main(["import", "--undo", str(tmp_path / "second.csv"), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert f"{tmp_path / 'first.csv'}, which it replaced, does not come back; to have it, import it again" in told
    assert read_back(out, "humans") == []
