"""What a people's table leaves open is refused with what to do, or told; it is never taken for something else."""

import json
from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers.imported_tables import imported, refusal, remarks, words
from tests.helpers.run_folders import read_back

WORD = ("--task", "word")
ATTENTION = ("--task", "attention", "--frame", "600x400")
OBJECTS = ("--task", "object")

REFUSED = {
    "one name for all": (
        WORD,
        "experimenter,rater,studyResultId,cue,response\nx,MK,1,sun,moon\nx,MK,2,sun,hot\n",
        "column rater is 'MK' in all rows, and column studyResultId has 2 values; say which is right with --columns "
        "subject=studyResultId or subject=rater",
    ),
    "nobody": (WORD, "subject,cue,response\nNA,sun,moon\np1,sun,hot\n", "csv:2: subject: is 'NA', which names nobody"),
    "unknown": (WORD, "subject,cue,response\nunknown,sun,moon\n", "subject: is 'unknown', which names nobody"),
    "kinds": (
        WORD,
        "subject,kind,cue,response\np1,human,sun,moon\np2,alien,sun,hot\n",
        "words.csv:3: kind: is 'alien'; it must be human or machine",
    ),
    "empty kinds": (
        WORD,
        "subject,kind,cue,response\np1,ai,sun,moon\np2,,sun,hot\n",
        "words.csv:3: kind: is empty; it must be human or machine",
    ),
    "machines without names": (
        (*WORD, "--unnamed"),
        "kind,cue,response\nhuman,sun,moon\nmachine,sun,hot\n",
        "words.csv:3: kind: is a machine, and no column names it; add a column machine",
    ),
    "several answers": (
        WORD,
        "subject,cue,word,word2\np1,sun,moon,hot\n",
        "has several answers in a row, in columns word, word2; say which to take with --columns response=word",
    ),
    "wide": (WORD, "subject,sun,sea\np1,moon,blue\n", "One row must be one answer"),
    "columns in another order": (
        WORD,
        "subject,cue,response\np1,sun,moon\nresponse,cue,subject\nhot,sun,p2\n",
        "line 3 repeats the header with its columns in another order",
    ),
    "braces": (WORD, "subject,cue,response\np1,sun,{moon\np2,sun,{so on}\n", "words.csv:3: response: looks like JSON"),
    "a name that stands twice": (
        WORD,
        'subject,cue,response\np1,sun,"{""a"":""moon"",""a"":""hot""}"\n',
        "words.csv:2: response: the key 'a' stands twice in one object",
    ),
    "boxes without labels": (
        OBJECTS,
        'subject,image,response\np1,a.png,"[{""x"":1,""width"":20}]"\n',
        "words.csv:2: response: must be labels",
    ),
    "units": (
        ATTENTION,
        'subject,image,response\np1,a.png,"[[-0.5,0.2],[0.5,0.1]]"\n',
        "has coordinates from -0.5 to 0.5, of which nobody can know the unit and the origin",
    ),
    "the middle": (
        ATTENTION,
        'subject,image,response\np1,a.png,"[[-50,20],[50,-10],[5,-9]]"\n',
        "3 of 3 fixations lie left of or above the frame: it seems that coordinates count from its middle",
    ),
    "onsets": (
        ATTENTION,
        "subject,image,fixation,x,y,t\np1,a.png,1,3,4,0\np1,a.png,2,3,9,210\np1,a.png,3,9,9,450\n",
        "has in column t numbers that rise along every path",
    ),
    "samples": (
        ATTENTION,
        "subject,image,fixation,x,y\np1,a.png,1,3,4\np1,a.png,1,3,4\np1,a.png,2,9,9\n",
        "has rows 2 and 3 with one number in column fixation and one place: these are samples of the gaze",
    ),
    "two eyes": (
        ATTENTION,
        "subject,image,x,y,EYE_USED\np1,a.png,3,4,LEFT\np1,a.png,3,5,RIGHT\n",
        "has fixations of LEFT and RIGHT in column EYE_USED; take one eye with --rows EYE_USED=RIGHT",
    ),
    "fixations of nobody": (
        (*ATTENTION, "--unnamed"),
        "image,x,y\na.png,3,4\na.png,3,5\n",
        "has one fixation in each row, but 2 rows (at 2, 3) name no person",
    ),
    "a fixation without a number": (
        ATTENTION,
        "subject,image,fixation,x,y\np1,a.png,1,3,4\np1,a.png,NA,3,5\n",
        "words.csv:3: fixation: must be the fixation's number in its path, not 'NA'",
    ),
    "our own verdicts": (
        ("--task", "judgement"),
        "judge,judge_kind,sample,verdict,trial,truth,beside_truth\na,human,0,human,t1,human,\n",
        "is a table of verdicts that `score` or `study export` wrote",
    ),
    "verdicts that mean nothing yet": (
        ("--task", "judgement"),
        "judge,trial,response\na,t1,0\na,t2,1\nb,t1,1\n",
        "not '0', '1' (3 rows are so); say what each means, as --responses 0=human,1=machine",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_nobody_can_know_is_refused(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options, table, message = REFUSED[case]
    assert message in refusal(tmp_path, capsys, "words.csv", table, *options)


def test_a_machine_is_named_by_the_column_of_who_answered(tmp_path: Path) -> None:
    rows = imported(tmp_path, "w.csv", "subject,kind,cue,response\np1,human,sun,moon\ngpt2,AI,sun,hot\n", *WORD)
    assert words(rows) == [("human:p1", "sun", "moon")]
    assert words(read_back(tmp_path / "run", "published")) == [("published:gpt2", "sun", "hot")]


def test_a_column_about_something_else_is_no_truth(tmp_path: Path) -> None:
    rows = imported(tmp_path, "w.csv", "subject,kind,cue,response\np1,noun,sun,moon\np2,verb,run,leg\n", *WORD)
    assert [agent for agent, *_ in words(rows)] == ["human:p1", "human:p2"]


def test_machines_look_too(tmp_path: Path) -> None:
    table = 'subject,kind,image,response\np1,human,a.png,"[[3,4]]"\nivsn,machine,a.png,"[[5,6]]"\n'
    assert [row["agent"] for row in imported(tmp_path, "w.csv", table, *ATTENTION)] == ["human:p1"]
    assert [row["agent"] for row in read_back(tmp_path / "run", "published")] == ["published:ivsn"]


LABELS = [
    ('"[{""label"":""mug"",""x"":1},{""label"":""lamp"",""x"":2}]"', ["mug", "lamp"]),
    ('"[{""rectanglelabels"":[""mug""],""x"":1.5}]"', ["mug"]),
    ('"{""mug"":""on"",""lamp"":""on""}"', ["mug", "lamp"]),
    ('"{""a"":true,""b"":true}"', ["a", "b"]),
    ('"[""mug"",""NA""]"', ["mug"]),
    ('"mug, NA"', ["mug"]),
]


@pytest.mark.parametrize(("cell", "labels"), LABELS)
def test_labels_of_boxes_and_ticked_boxes(cell: str, labels: list[str], tmp_path: Path) -> None:
    rows = imported(tmp_path, "objects.csv", f"image,subject,response\na.jpg,p1,{cell}\n", *OBJECTS)
    assert [row["answer"]["labels"] for row in rows] == [labels]


def test_labels_in_several_columns(tmp_path: Path) -> None:
    table = 'subject,image,object,object2,object3\np1,a.png,mug,"lamp; vase",\np2,a.png,,,\np3,a.png,cup,,jug\n'
    rows = imported(tmp_path, "objects.csv", table, *OBJECTS)
    assert [row["answer"]["labels"] for row in rows] == [["mug", "lamp", "vase"], ["cup", "jug"]]
    assert "the labels are those of columns object, object2, object3" in remarks(tmp_path)
    other = table.replace("object,object2,object3", "one,two,three")
    rows = imported(tmp_path, "objects.csv", other, *OBJECTS, "--columns", "response=one+three")
    assert [row["answer"]["labels"] for row in rows] == [["mug"], ["cup", "jug"]]


def test_names_inside_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = 'cue,subject,response\nsun,p1,"{""assoc"":{""first"":""moon"",""second"":""hot""}}"\n'
    assert "(assoc.first, assoc.second)" in refusal(tmp_path, capsys, "w.csv", table, *WORD)
    rows = imported(tmp_path, "w.csv", table, *WORD, "--columns", "response=response.assoc.second")
    assert words(rows) == [("human:p1", "sun", "hot")]


def test_an_empty_column_gives_way(tmp_path: Path) -> None:
    table = "subject,participant_id,stimulus,cue,rt,response_time,response\n,p1,,sun,,512,moon\n"
    [row] = imported(tmp_path, "w.csv", table, *WORD)
    assert (row["agent"], row["stimulus"], row["raw"]["rt"]) == ("human:p1", "sun", 512)


@pytest.mark.parametrize(
    ("times", "remark", "expected"),
    [
        (["0.7", "0.9", "31.5"], "half of the times are at most 0.9, so they are taken as seconds", [700, 900, 31500]),
        (["40", "50", "60"], "half of the times are at most 50 ms, which is odd for people", [40, 50, 60]),
        (["0", "0", "700"], "", [0, 0, 700]),
    ],
)
def test_the_middle_time_says_the_unit(times: list[str], remark: str, expected: list[float], tmp_path: Path) -> None:
    lines = [f"p{at},sun,moon,{time}" for at, time in enumerate(times)]
    rows = imported(tmp_path, "w.csv", "\n".join(["subject,cue,response,rt", *lines]), *WORD)
    assert [row["raw"]["rt"] for row in rows] == expected
    told = [line for line in remarks(tmp_path).splitlines() if "half of the times" in line]
    assert len(told) == bool(remark)
    assert remark in remarks(tmp_path)


def test_a_rule_that_leaves_nothing_out_is_told(tmp_path: Path) -> None:
    table = "subject,cue,phase,response\np1,sun,test,moon\np1,sea,Practice,blue\n"
    imported(tmp_path, "w.csv", table, *WORD, "--rows", "phase!=practice")
    assert "--rows phase!=practice leaves no row out: phase is 'test', 'Practice'" in remarks(tmp_path)


def test_the_example_of_rows_is_a_column_of_the_experiment(tmp_path: Path) -> None:
    table = "subject,cue,response,rt,trial_nr\np1,sun,moon,500,1\np1,sun,hot,600,2\n"
    imported(tmp_path, "w.csv", table, *WORD)
    told = remarks(tmp_path)
    assert "In 1 case a person gave several answers to one stimulus" in told
    assert "--rows" not in told
    imported(tmp_path, "w.csv", table.replace("trial_nr", "phase"), *WORD)
    assert "--rows phase=2" in remarks(tmp_path)


def test_header_lines_of_files_that_were_put_together(tmp_path: Path) -> None:
    table = "subject,cue,response\np1,sun,moon\nSubject,Cue,Response\np2,sun,hot\n"
    assert len(imported(tmp_path, "w.csv", table, *WORD)) == 2
    assert "header_lines_again: 1" in remarks(tmp_path)


def test_x_and_y_as_lists(tmp_path: Path) -> None:
    table = 'subject,image,X,Y,T\np1,a.png,"[3, 5]","[4, 6]","[200, 300]"\n'
    [row] = imported(tmp_path, "w.csv", table, *ATTENTION)
    assert row["answer"]["fixations"] == [[3, 4], [5, 6]]
    assert row["answer"]["durations_ms"] == [200, 300]


def test_shares_of_which_some_lie_beside_the_frame(tmp_path: Path) -> None:
    points = [[at / 40, at / 80] for at in range(39)] + [[1.02, 0.5]]
    [row] = imported(tmp_path, "w.csv", f'subject,image,response\np1,a.png,"{points}"\n', *ATTENTION)
    assert row["answer"]["fixations"][20] == [300, 100]
    assert "79 of 80 coordinates lie from 0 to 1, so they are taken as shares of the frame" in remarks(tmp_path)


def test_equal_fixations_are_fixations(tmp_path: Path) -> None:
    table = "subject,image,x,y\np1,a.png,3,4\np1,a.png,3,4\n"
    [row] = imported(tmp_path, "w.csv", table, *ATTENTION)
    assert row["answer"]["fixations"] == [[3, 4], [3, 4]]
    assert "drop-equal" not in remarks(tmp_path)


def test_blocks_part_the_viewings_of_an_image(tmp_path: Path) -> None:
    table = "subject,image,block,x,y,response\np1,a.png,1,3,4,left\np1,a.png,1,5,6,left\np1,a.png,2,7,8,right\n"
    rows = imported(tmp_path, "w.csv", table, *ATTENTION)
    assert [row["answer"]["fixations"] for row in rows] == [[[3, 4], [5, 6]], [[7, 8]]]


def test_an_excel_line_before_the_header(tmp_path: Path) -> None:
    assert len(imported(tmp_path, "w.csv", "sep=,\r\nsubject,cue,response\r\np1,sun,moon\r\n", *WORD)) == 1


def test_programs_that_call_a_table_with_tabs_excel(tmp_path: Path) -> None:
    [row] = imported(tmp_path, "fixations.xls", "subject\timage\tx\ty\np1\ta.png\t3\t4\n", *ATTENTION)
    assert (row["agent"], row["stimulus"], row["answer"]["fixations"]) == ("human:p1", "a.png", [[3, 4]])


def test_label_studios_full_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal(tmp_path, capsys, "l.json", json.dumps([{"id": 1, "annotations": [], "data": {}}]), *WORD)
    assert "contains no answers that can be imported: no entry of it has annotations" in told


def test_one_file_read_for_two_tasks_and_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "subject,cue,response\np1,sun,moon\n"
    imported(tmp_path, "w.csv", table, *WORD)
    rows = imported(tmp_path, "w.csv", table, "--task", "caption")
    assert [row["task"] for row in rows] == ["word_association", "image_captioning"]
    assert "an earlier import from this path stays: word_association" in capsys.readouterr().out
    rows = imported(tmp_path, "w.csv", table.replace("moon", "hot"), *WORD)
    assert len(rows) == 2
    assert "replaces 1 answer of an earlier import from this path" in capsys.readouterr().out


def test_drop_equal_without_equal_rows_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported(tmp_path, "w.csv", "subject,cue,response\np1,sun,moon\n", *WORD, "--drop-equal")
    assert "--drop-equal is not used: no row or answer occurs twice" in capsys.readouterr().out


def test_searches_and_captions_that_stand_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"name": "a.jpg", "subject": 1, "task": "none", "condition": "freeview", "X": [3.0], "Y": [4.0]}
    assert len(imported(tmp_path, "c.json", json.dumps([entry, entry]), *ATTENTION)) == 1
    coco = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [{"id": 7, "image_id": 1, "caption": "A cup."}] * 2,
    }
    rows = imported(tmp_path, "k.json", json.dumps(coco))
    assert [row["task"] for row in rows].count("image_captioning") == 1
    coco["annotations"] = [*coco["annotations"], {"id": 7, "image_id": 1, "caption": "A mug."}]
    told = refusal(tmp_path, capsys, "l.json", json.dumps(coco))
    assert "the id 7 stands in two annotations that differ" in told


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("turinglike.kit/1", "take it in with: turinglike study import STUDY FILE"),
        (
            "turinglike.export/1",
            "is a file of Turinglike's own (turinglike.export/1), which holds no answers to import",
        ),
    ],
)
def test_files_of_our_own_that_hold_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schema: str, said: str
) -> None:
    (tmp_path / "saved.json").write_text(json.dumps({"schema": schema, "body": "{}"}))
    for task in ("word", "judgement"):
        assert main(["import", str(tmp_path / "saved.json"), "--task", task, "--out", str(tmp_path / "run")]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


# verdicts on stimuli of others


def test_a_stimulus_in_several_trials(tmp_path: Path) -> None:
    """A column `trial` whose values are of one stimulus each names trials; a number of a screen does not."""
    table = (
        "judge,trial,stimulus,agent,truth,verdict,rt,confidence\n"
        "a,t1,dog,gpt2,machine,human,500,0.5\na,t2,dog,gpt2,machine,machine,600,NA\nb,t1,dog,gpt2,machine,machine,700,\n"
    )
    rows = imported(tmp_path, "v.csv", table, "--task", "judgement")
    assert [row["stimulus"] for row in rows] == ["t1", "t2", "t1"]
    assert [(row["raw"]["stimulus"], row["raw"]["rt"], row["raw"]["confidence"]) for row in rows] == [
        ("dog", 500, 0.5),
        ("dog", 600, None),
        ("dog", 700, None),
    ]
    assert main(["score", str(tmp_path / "run"), "--out", str(tmp_path / "S")]) == 0
    scores = json.loads((tmp_path / "S" / "scores.json").read_bytes())["scores"]
    assert scores[0]["p_machine"] == pytest.approx(2 / 3)
    screens = table.replace("b,t1,dog", "b,t1,cat")
    rows = imported(tmp_path, "w.csv", screens, "--task", "judgement")
    assert rows[-1]["stimulus"] == "cat · gpt2 · machine"


def test_jspsych_with_a_column_of_truth(tmp_path: Path) -> None:
    screen = {"trial_type": "html-button-response", "trial_index": 1, "subject": "w1", "rt": 900, "response": 0}
    rows = [{**screen, "stimulus": "dog", "correct_response": "machine"}]
    options = ("--task", "judgement", "--responses", "0=human,1=machine", "--columns", "truth=correct_response")
    [row] = imported(tmp_path, "v.json", json.dumps(rows), *options)
    assert (row["raw"]["truth"], row["answer"]["verdict"]) == ("machine", "human")
