"""What looks like an answer, a person, a stimulus or a pixel, and is none, is never taken in silence."""

import json
from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers.imported_tables import imported

GAZE = ("--task", "attention", "--frame", "1680x1050")
WORD = ("--task", "word")
HEADER = "participant,cue,response"

REFUSED = {
    "other words for a machine": (
        "a.csv",
        "participant,cue,response,truth\np1,sun,moon,H\np2,sun,hot,H\ngpt,sun,light,M\n",
        WORD,
        "column truth says of each row 'h', 'm': write human or machine there",
    ),
    "a machine in a column that nobody reads": (
        "a.csv",
        "participant,cue,response,source\np1,sun,moon,human\nm1,sun,light,machine\n",
        WORD,
        "says in column source that answers are a machine's; read it with --columns truth=source",
    ),
    "ticks that may be none": (
        "a.csv",
        'participant,image,response\np1,a.png,"{""mug"":""yes"",""lamp"":""no""}"\n',
        ("--task", "object"),
        "a.csv:2: response: must be labels, not",
    ),
    "places of buttons": (
        "a.csv",
        "participant,image,response\np1,a.png,0\np2,a.png,3\n",
        ("--task", "color"),
        "has numbers alone in column response (0, 3), as programs store the places of buttons",
    ),
    "heights from the bottom": (
        "a.csv",
        "participant,image,norm_pos_x,norm_pos_y\np1,a.png,0.5,0.9\np1,a.png,0.2,0.3\n",
        (*GAZE, "--columns", "x=norm_pos_x,y=norm_pos_y"),
        "has in column norm_pos_y heights that count from the bottom of the frame",
    ),
    "two eyes of Pupil": (
        "a.csv",
        "participant,image,x,y,eye_id\np1,a.png,100,90,0\np1,a.png,101,91,1\n",
        GAZE,
        "has fixations of 0 and 1 in column eye_id; take one eye with --rows eye_id=1",
    ),
    "people whom a spreadsheet has rounded": (
        "a.csv",
        f"{HEADER}\n4.91761E+11,sun,moon\n4.91761E+11,sun,hot\n",
        WORD,
        "a.csv:2: participant: is '4.91761E+11': a spreadsheet has rounded it",
    ),
    "words for nobody": (
        "a.csv",
        f"{HEADER}\n#NULL!,sun,moon\nnone,sun,hot\n",
        WORD,
        "a.csv:3: participant: is 'none', which names nobody",
    ),
    "answers to several tasks": (
        "a.csv",
        f"{HEADER},task\np1,sun,moon,word\np1,a.png,a red boat,caption\n",
        WORD,
        "holds answers to caption, word (column task); take one with --rows task=word",
    ),
    "a table by columns": (
        "a.json",
        json.dumps({"participant": {"0": "p1"}, "cue": {"0": "sun"}, "response": {"0": "moon"}}),
        WORD,
        "is a table by columns; write it as a list of rows",
    ),
    "rows under a name": (
        "a.json",
        json.dumps({"data": [{"participant": "p1", "cue": "sun", "response": "moon"}]}),
        WORD,
        "has its rows under the name 'data'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_looks_like_an_answer_is_refused(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, content, options, message = REFUSED[case]
    (tmp_path / name).write_text(content)
    assert main(["import", str(tmp_path / name), *options, "--out", str(tmp_path / "run")]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("cell", ["NA", "None", "nan", ".", "#N/A", "UNDEFINEDnull"])
def test_a_word_for_nothing_is_no_stimulus(cell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As R writes the cue of a screen of instructions, and EyeLink the picture of a blank screen."""
    rows = imported(tmp_path, "a.csv", f"{HEADER}\np1,{cell},space\np1,sun,moon\n", *WORD)
    assert [(row["stimulus"], row["answer"]["word"]) for row in rows] == [("sun", "moon")]
    assert "1 row (at 2) name no stimulus, and are left out" in capsys.readouterr().out


def test_a_spreadsheets_words_are_no_answers(tmp_path: Path) -> None:
    table = f"{HEADER}\np1,sun,#NAME?\np1,sea,.\np1,sky,n/a\np1,tree,leaf\n"
    assert [row["answer"]["word"] for row in imported(tmp_path, "a.csv", table, *WORD)] == ["leaf"]


def test_a_ticked_box_beside_another_label(tmp_path: Path) -> None:
    table = 'participant,image,response\np1,a.png,"{""mug"":""on"",""other"":""vase""}"\n'
    [row] = imported(tmp_path, "a.csv", table, "--task", "object")
    assert row["answer"]["labels"] == ["mug", "vase"]


def test_durations_go_before_a_column_t(tmp_path: Path) -> None:
    """Where both stand, `t` is the time at which a fixation began."""
    table = "subject,image,fixation,x,y,t,duration\ns1,a.png,1,100,200,150,210\ns1,a.png,2,300,220,380,190\n"
    [row] = imported(tmp_path, "a.csv", table, *GAZE)
    assert row["answer"]["durations_ms"] == [210, 190]


def test_a_screen_of_instructions_is_no_stimulus_where_others_have_a_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = {"trial_type": "html-keyboard-response", "trial_index": 0, "subject": "p1", "rt": 800}
    rows = [
        {**screen, "stimulus": "Press any key to begin", "response": "enter"},
        {**screen, "stimulus": "What is this?", "cue": "sun", "response": "moon"},
    ]
    found = imported(tmp_path, "a.json", json.dumps(rows), *WORD)
    assert [(row["stimulus"], row["answer"]["word"]) for row in found] == [("sun", "moon")]
    assert "name no stimulus" in capsys.readouterr().out
    judged = [
        {**screen, "stimulus": "Press a key", "response": "human"},
        {**screen, "stimulus": "t0001", "response": "machine"},
    ]
    found = imported(tmp_path, "b.json", json.dumps(judged), "--task", "judgement")
    assert [row["stimulus"] for row in found if row["task"] == "judgement"] == ["t0001"]


def test_stimuli_are_one_as_people_are(tmp_path: Path) -> None:
    """1 and 1.0 where all of a column are whole; composed and decomposed letters."""
    table = "participant,item,response\n3.0,1.0,moon\n4.0,2.0,blue\n"
    assert [row["stimulus"] for row in imported(tmp_path, "a.csv", table, *WORD)] == ["1", "2"]
    table = "participant,item,response\n3,01,moon\n4,1.0,blue\n"
    assert [row["stimulus"] for row in imported(tmp_path, "b.csv", table, *WORD)][-2:] == ["01", "1.0"]
    table = f"{HEADER}\np1,caf\u00e9,tea\np2,cafe\u0301,cup\n"
    assert {row["stimulus"] for row in imported(tmp_path, "c.csv", table, *WORD)} >= {"caf\u00e9"}
    assert "cafe\u0301" not in (tmp_path / "run" / "records" / "humans.jsonl").read_text()


@pytest.mark.parametrize(
    ("rows", "remark"),
    [
        ("s1,a.png,30.5,20,200\ns1,a.png,55,61.1,250\n", "perhaps they are percent or degrees"),
        ("s1,a.png,300.5,200,180000\ns1,a.png,550,610,250000\n", "half of the fixations last at most 215000 ms"),
    ],
)
def test_odd_units_of_paths_are_told(
    rows: str, remark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(tmp_path, "a.csv", f"subject,image,x,y,duration\n{rows}", *GAZE)
    assert remark in " ".join(capsys.readouterr().out.split())


def test_days_part_the_viewings_of_a_picture(tmp_path: Path) -> None:
    table = "subject,image,day,fixation,x,y\n" + "".join(
        f"s1,a.png,{day},{at},{100 * day + at},50\n" for at in (1, 2) for day in (1, 2)
    )
    found = imported(tmp_path, "a.csv", table, *GAZE)
    assert [row["answer"]["fixations"] for row in found] == [[[101, 50], [102, 50]], [[201, 50], [202, 50]]]


def test_times_of_two_programs_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = f"{HEADER},rt\np1,sun,moon,812\np1,sea,blue,955\np2,sun,hot,0.91\n"
    imported(tmp_path, "a.csv", table, *WORD)
    assert "1 of 3 times are below 20, as if in seconds, and the others are not" in capsys.readouterr().out


def test_a_model_in_some_rows_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported(tmp_path, "a.csv", f"{HEADER},model\np1,sun,moon,\nx,sun,hot,gpt2\n", *WORD)
    assert "column model is filled in 1 of 2 rows, which count as people's answers" in capsys.readouterr().out


def test_an_agent_that_is_not_there_is_no_agent(tmp_path: Path) -> None:
    table = "judge,stimulus,truth,agent,verdict\nj1,b.png,human,NA,human\nj2,c.png,machine,NA,machine\n"
    found = imported(tmp_path, "v.csv", table, "--task", "judgement")
    assert [row["raw"]["agent"] for row in found] == ["human", "unknown"]


def test_captions_without_words_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coco = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [
            {"id": 1, "image_id": 1, "caption": "a boat"},
            {"id": 2, "image_id": 1, "caption": "  "},
        ],
    }
    assert len(imported(tmp_path, "coco.json", json.dumps(coco))) == 1
    assert "annotations without words: 1" in capsys.readouterr().out


def test_braces_in_the_name_of_a_column(tmp_path: Path) -> None:
    table = "subject,cue,said {rows\n1,sun,moon\n1,sea,NA\n"
    rows = imported(tmp_path, "a.csv", table, *WORD, "--columns", "response=said {rows")
    assert [row["stimulus"] for row in rows] == ["sun"]
    [source] = json.loads((tmp_path / "run" / "import.json").read_bytes())["sources"]
    assert "1 row (at 3) with `NA` in column said {rows, a program's word for no answer" in source["remarks"]


def test_a_path_without_a_fixation_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = 'subject,image,response\n1,a.png,[]\n2,a.png,"[[100, 200], [300, 400]]"\n'
    rows = imported(tmp_path, "a.csv", table, *GAZE)
    assert [row["agent"] for row in rows] == ["human:2"]
    (tmp_path / "b.csv").write_text("subject,image,response\n1,a.png,[]\n")
    assert main(["import", str(tmp_path / "b.csv"), *GAZE, "--out", str(tmp_path / "b")]) == 2
    assert "contains no answers that can be imported: 1 row (at 2) have no answer" in capsys.readouterr().err


def test_a_header_without_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text('" "\nsun\n')
    assert main(["import", str(tmp_path / "a.csv"), *WORD, "--out", str(tmp_path / "run")]) == 2
    assert "has no column that names the stimulus" in capsys.readouterr().err
