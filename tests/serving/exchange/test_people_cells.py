"""Cells of people's tables are read alike, whatever the task and the program; times and coordinates get their units.

The files are in the forms of jsPsych 8.3.0, Label Studio 1.23.2, PsychoPy 2026.2.5 and EyeLink's Data Viewer.
"""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from serving.cli import main
from tests.helpers.imported_tables import imported, refusal, remarks, words
from tests.helpers.run_folders import read_back
from tests.helpers.workbooks import Cell, write_workbook

# what the answer is

CELLS = [  # of objects, and the labels
    ('"[""mug"", ""lamp"", ""vase""]"', ["mug", "lamp", "vase"]),
    ('"mug, lamp, vase"', ["mug", "lamp", "vase"]),
    ("mug; lamp; vase", ["mug", "lamp", "vase"]),
    ('"mug\nlamp\nvase"', ["mug", "lamp", "vase"]),
    ('"{""Q0"":""mug"",""Q1"":""lamp"",""Q2"":""vase""}"', ["mug", "lamp", "vase"]),
    ('"{""Q0"":""mug, lamp"",""Q1"":"""",""Q2"":""vase""}"', ["mug", "lamp", "vase"]),
    ("\"['mug', 'lamp', 'vase']\"", ["mug", "lamp", "vase"]),
    ('"[mug, lamp]"', ["mug", "lamp"]),
    ('"""mug"", ""lamp"""', ["mug", "lamp"]),
    ('"{""objects"":[""mug"",""lamp""]}"', ["mug", "lamp"]),
    ("mug", ["mug"]),
]


@pytest.mark.parametrize(("cell", "labels"), CELLS)
def test_objects(cell: str, labels: list[str], tmp_path: Path) -> None:
    rows = imported(tmp_path, "objects.csv", f"image,subject,response\na.jpg,p1,{cell}\n", "--task", "object")
    assert [row["answer"]["labels"] for row in rows] == [labels]


JSPSYCH_WORDS: list[dict[str, Any]] = [
    {"trial_type": "preload", "trial_index": 0, "time_elapsed": 28, "subject_id": "5f3", "success": True},
    {
        "trial_type": "instructions",
        "trial_index": 1,
        "time_elapsed": 473,
        "subject_id": "5f3",
        "rt": 443,
        "view_history": [{"page_index": 0, "viewing_time": 443}],
    },
    {
        "trial_type": "survey-text",
        "trial_index": 2,
        "time_elapsed": 849,
        "subject_id": "5f3",
        "rt": 366,
        "cue": "table",
        "phase": "practice",
        "stimulus_id": "w0",
        "response": {"assoc": "chair"},
    },
    {
        "trial_type": "survey-text",
        "trial_index": 3,
        "time_elapsed": 1205,
        "subject_id": "5f3",
        "rt": 345,
        "cue": "dark",
        "phase": "test",
        "stimulus_id": "w1",
        "response": {"assoc": "light"},
    },
    {
        "trial_type": "survey-html-form",
        "trial_index": 4,
        "time_elapsed": 1594,
        "subject_id": "5f3",
        "rt": 384,
        "cue": "music",
        "phase": "test",
        "stimulus_id": "w2",
        "response": {"assoc": '"so, loud"'},
    },
    {
        "trial_type": "survey-text",
        "trial_index": 5,
        "time_elapsed": 2293,
        "subject_id": "5f3",
        "rt": 375,
        "phase": "debrief",
        "response": {"comment": "It was fine.\nToo long; really"},
    },
]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_jspsych_survey_plugins(form: str, tmp_path: Path) -> None:
    text = json.dumps(JSPSYCH_WORDS)
    if form == "csv":
        names = list(dict.fromkeys(name for row in JSPSYCH_WORDS for name in row))
        lines = [",".join(f'"{name}"' for name in names)]
        for row in JSPSYCH_WORDS:
            cells = [row.get(name, "") for name in names]
            texts = [cell if isinstance(cell, str) else json.dumps(cell) for cell in cells]
            lines.append(",".join('"' + text.replace('"', '""') + '"' for text in texts))
        text = "\n".join(lines)
    rows = imported(tmp_path, f"data.{form}", text, "--task", "word")
    assert words(rows) == [
        ("human:5f3", "table", "chair"),
        ("human:5f3", "dark", "light"),
        ("human:5f3", "music", '"so, loud"'),
    ]
    assert [row["raw"]["rt"] for row in rows] == [366, 345, 384]
    assert "rows_without_a_stimulus: 3" in remarks(tmp_path)
    assert len(imported(tmp_path, f"data.{form}", text, "--task", "word", "--rows", "phase=test")) == 2


def test_a_cell_with_several_answers_is_refused_unless_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = 'cue,subject,response\nsun,p1,"{""first"":""moon"",""second"":""hot""}"\n'
    told = refusal(tmp_path, capsys, "words.csv", table, "--task", "word")
    assert (
        "words.csv:2: response: holds several answers (first, second); say which with --columns response=resp" in told
    )
    rows = imported(tmp_path, "words.csv", table, "--task", "word", "--columns", "response=response.second")
    assert words(rows) == [("human:p1", "sun", "hot")]


def test_label_studio_text_of_two_lines(tmp_path: Path) -> None:
    table = 'image,annotator,response\na.jpg,1,"{""text"":[""Cup of coffee"",""two lines""]}"\n'
    [row] = imported(tmp_path, "captions.csv", table, "--task", "caption")
    assert row["answer"]["text"] == "Cup of coffee\ntwo lines"


@pytest.mark.parametrize("word", ["None", "NA", "NaN", "NULL", "null", "<NA>", "--", "undefined"])
def test_a_programs_word_for_no_answer_is_none(word: str, tmp_path: Path) -> None:
    table = f"cue,subject,response,rt\nsun,p1,{word},\nsun,p2,moon,500\n"
    rows = imported(tmp_path, "words.csv", table, "--task", "word")
    assert words(rows) == [("human:p2", "sun", "moon")]
    assert f"1 row (at 2) with `{word}` in column response, a program's word for no answer" in remarks(tmp_path)


@pytest.mark.parametrize("word", ["none", "nothing", "nan", "null"])
def test_words_of_people_stay(word: str, tmp_path: Path) -> None:
    """A grandmother is somebody's nan; a row with a time was answered."""
    rows = imported(tmp_path, "words.csv", f"cue,subject,response,rt\nsun,p1,{word},700\n", "--task", "word")
    assert words(rows) == [("human:p1", "sun", word)]


@pytest.mark.parametrize("cell", ["\u200b", "\ufeff\u00ad", "\u2060"])
def test_invisible_cells_are_no_answers(cell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = f"cue,subject,response\nsun,p1,{cell}\nsun,p2,moon\n"
    told = refusal(tmp_path, capsys, "words.csv", table, "--task", "word")
    assert "words.csv:2: response: is empty: it holds invisible characters alone" in told


def test_our_own_apostrophe_goes_on_the_way_back(tmp_path: Path) -> None:
    table = "cue,subject,response\nsun,p1,'=1+1\nsun,p2,''-x\nsun,p3,'tis\n"
    rows = imported(tmp_path, "words.csv", table, "--task", "word")
    assert [word for *_, word in words(rows)] == ["=1+1", "'-x", "'tis"]


def test_machines_of_a_table_are_no_people(tmp_path: Path) -> None:
    table = "cue,groundtruth,subject,machine,response\nsun,human,p1,,moon\nsun,machine,,gpt2,hot\n"
    rows = imported(tmp_path, "words.csv", table, "--task", "word")
    assert words(rows) == [("human:p1", "sun", "moon")]
    assert words(read_back(tmp_path / "run", "published")) == [("published:gpt2", "sun", "hot")]


# units


def test_psychopy_times_are_seconds(tmp_path: Path) -> None:
    table = "cue,participant,response,rt\ntable,007,chair,0.734\ndark,007,light,1.25\n"
    rows = imported(tmp_path, "psychopy.csv", table, "--task", "word")
    assert [row["raw"]["rt"] for row in rows] == [734, 1250]
    assert "half of the times are at most 0.992, so they are taken as seconds" in remarks(tmp_path)
    rows = imported(tmp_path, "psychopy.csv", table, "--task", "word", "--rt", "ms")
    assert [row["raw"]["rt"] for row in rows] == [0.734, 1.25]
    rows = imported(tmp_path, "slow.csv", table.replace("1.25", "125"), "--task", "word", "--add")
    assert [row["raw"]["rt"] for row in rows[2:]] == [0.734, 125]
    rows = imported(tmp_path, "slow.csv", table.replace("1.25", "125"), "--task", "word", "--rt", "seconds", "--add")
    assert [row["raw"]["rt"] for row in rows[2:]] == [734, 125_000]


PSYCHOPY = """\ufeffcue,practice.thisN,trials.thisN,textbox.text,key_resp.keys,key_resp.rt,debrief.text,\
participant,session,
practice,0,,ok,space,0.512,,007,001,
table,,0,chair,f,0.734,,007,001,
Müll,,2,,None,,,007,001,
"deep, sea",,3,"fish
water","['f', 'j']","[0.5, 0.9]",,007,001,
,,,,,,=done,007,001,
"""


def test_psychopy_wide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal(tmp_path, capsys, "wide.csv", PSYCHOPY, "--task", "word")
    assert "has no column response; its columns are cue, practice.thisN, trials.thisN, textbox.text" in told
    columns = "response=textbox.text,rt=key_resp.rt"
    rows = imported(tmp_path, "wide.csv", PSYCHOPY, "--task", "word", "--columns", columns, "--rows", "practice.thisN=")
    assert words(rows) == [("human:007", "table", "chair"), ("human:007", "deep, sea", "fish\nwater")]
    assert rows[0]["raw"] == {"response": "chair", "rt": 734}
    told = remarks(tmp_path)
    for part in ("rows_without_an_answer: 1", "rows_without_a_stimulus: 1", "rows_with_several_times: 1"):
        assert part in told


ATTENTION = ("--task", "attention", "--frame", "600x400")


def paths(rows: list[dict[str, Any]]) -> list[tuple[str, str, Any, Any]]:
    return [(row["agent"], row["stimulus"], row["answer"]["fixations"], row["answer"]["durations_ms"]) for row in rows]


PATH = [("human:s1", "coffee.png", [[300.5, 200.1], [140, 150]], [210, 180])]


def test_a_fixation_in_a_row_is_no_path(tmp_path: Path) -> None:
    table = 'subject,image,response,duration\ns1,coffee.png,"[[300.5, 200.1]]",210\ns1,coffee.png,"[[140, 150]]",180\n'
    assert paths(imported(tmp_path, "fixations.csv", table, *ATTENTION)) == PATH
    assert "2 rows of one fixation each became 1 path" in remarks(tmp_path)


def test_data_viewer(tmp_path: Path) -> None:
    table = (
        "RECORDING_SESSION_LABEL,image,CURRENT_FIX_INDEX,CURRENT_FIX_X,CURRENT_FIX_Y,CURRENT_FIX_DURATION\n"
        "s1,coffee.png,2,140,150,180\ns1,coffee.png,1,300.5,200.1,210\ns1,coffee.png,3,.,.,90\n"
    )
    assert paths(imported(tmp_path, "report.csv", table, *ATTENTION)) == PATH
    assert "rows_without_an_answer: 1" in remarks(tmp_path)


def test_fixations_that_begin_again_are_another_path(tmp_path: Path) -> None:
    table = "subject,image,fixation,x,y\n" + "".join(
        f"s1,a.png,{number},{10 * number},5\n" for number in (1, 2, 3, 1, 2)
    )
    found = paths(imported(tmp_path, "fixations.csv", table, *ATTENTION))
    assert [len(points) for _, _, points, _ in found] == [3, 2]


def test_durations_beside_a_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = 'subject,image,response,T,rt\ns1,coffee.png,"[[300.5, 200.1], [140, 150]]","[210, 180]",400\n'
    rows = imported(tmp_path, "fixations.csv", table, *ATTENTION)
    assert paths(rows) == PATH
    assert rows[0]["raw"]["rt"] == 400
    rows = imported(tmp_path, "seconds.csv", table.replace("[210, 180]", "[0.21, 0.18]"), *ATTENTION, "--add")
    assert paths(rows)[1:] == PATH
    assert "half of the fixations last at most 0.195, so durations are taken as seconds" in remarks(tmp_path)
    told = refusal(tmp_path, capsys, "short.csv", table.replace("[210, 180]", "[210]"), *ATTENTION)
    assert "short.csv:2: T: has 1 duration, but the path has 2 fixations" in told


def test_normalised_coordinates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = 'subject,image,response\ns1,coffee.png,"[[0.50, 0.50], [0.23, 0.37]]"\n'
    rows = imported(tmp_path, "fixations.csv", table, *ATTENTION)
    assert rows[0]["answer"]["fixations"] == [[300, 200], [138, 148]]
    assert "all coordinates lie from 0 to 1, so they are taken as shares of the frame" in remarks(tmp_path)
    told = refusal(tmp_path, capsys, "middle.csv", table.replace("0.23", "-0.23"), *ATTENTION)
    assert "has coordinates from -0.23 to 0.5, of which nobody can know the unit and the origin" in told
    middle = table.replace("0.50", "-100").replace("0.23", "-20")
    told = refusal(tmp_path, capsys, "pixels.csv", middle, *ATTENTION)
    assert "it seems that coordinates count from its middle" in told
    imported(tmp_path, "pixels.csv", table.replace("0.50", "-100").replace("0.23", "20"), *ATTENTION, "--add")
    assert "perhaps coordinates count from its middle" in remarks(tmp_path)


def test_the_edge_of_a_frame_is_outside(tmp_path: Path) -> None:
    """A frame of 600 pixels has the columns 0 to 599: x = 600 is none of them."""
    table = 'subject,image,response\ns1,a.png,"[[0, 0], [599.9, 399.9], [600, 10], [10, 400]]"\n'
    imported(tmp_path, "fixations.csv", table, *ATTENTION)
    assert "fixations_outside_their_frame: 2" in remarks(tmp_path)


def test_the_fit_of_a_picture_stands_in_the_answer(tmp_path: Path) -> None:
    table = 'subject,image,response\ns1,a.png,"[[0, 0], [5, 5]]"\n'
    [row] = imported(tmp_path, "fixations.csv", table, *ATTENTION, "--fit", "bars")
    assert row["answer"]["fit"] == "bars"


# verdicts


def test_confidence_beside_a_verdict(tmp_path: Path) -> None:
    table = "stimulus,judge,response,confidence\nt0001,a,human,0.5\nt0002,a,machine,\n"
    rows = imported(tmp_path, "verdicts.csv", table, "--task", "judgement")
    assert [row["answer"]["confidence"] for row in rows] == [0.5, None]
    table = table.replace("0.5", "4")
    imported(tmp_path, "likert.csv", table, "--task", "judgement", "--add")
    assert "column confidence is not from 0 to 1, and is left out" in remarks(tmp_path)


def test_a_verdict_without_an_answer_is_counted(tmp_path: Path) -> None:
    table = "stimulus,judge,response\nt0001,a,human\nt0002,a,\nt0003,a,None\n"
    rows = imported(tmp_path, "verdicts.csv", table, "--task", "judgement")
    assert len(rows) == 1
    assert "rows_without_an_answer: 2" in remarks(tmp_path)


def test_buttons_that_pandas_wrote(tmp_path: Path) -> None:
    """A column of buttons with a gap is written with decimals; survey plugins write JSON."""
    table = 'stimulus,judge,response\nt0001,a,0.0\nt0002,a,1.0\nt0003,a,\nt0004,a,"{""Q0"":""Human""}"\n'
    options = ("--task", "judgement", "--responses", "0=human,1=machine")
    rows = imported(tmp_path, "verdicts.csv", table, *options)
    assert [row["answer"]["verdict"] for row in rows] == ["human", "machine", "human"]


# other programs' files that are no tables


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("data.sav", "save it as CSV"),
        ("data.asc", "make a Fixation Report (Analysis, Reports)"),
    ],
)
def test_files_that_are_not_read_say_what_to_do(
    name: str, way_out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert way_out in refusal(tmp_path, capsys, name, "x", "--task", "word")


@pytest.mark.parametrize(
    "row",
    [{"messages": [{"role": "user", "content": "hi"}]}, {"conversations": [{"from": "human", "value": "hi"}]}],
)
def test_chats_with_a_model_say_what_to_do(
    row: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refusal(tmp_path, capsys, "chats.json", json.dumps([row]), "--task", "conversation")
    assert "does not say which machine spoke" in told
    assert "--name human~MODEL" in told


def test_options_of_tables_are_not_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = json.dumps({"sun": [{"response": "moon", "groundtruth": "human", "human_groundtruth": "5"}]})
    told = refusal(tmp_path, capsys, "word.json", truth, "--rows", "phase=test")
    assert "--rows is for tables, and these files are no tables" in told
    imported(tmp_path, "word.json", truth, "--fit", "bars", "--rt", "ms")
    told = capsys.readouterr().out
    assert "--fit is not used: these files contain no scanpaths" in told
    assert "--rt is not used: these files contain no times" in told


LOOP = ("thisRepN", "thisTrialN", "thisN", "thisIndex")


def of_two_loops(practice: str, cues: tuple[str, ...], test: str = "trials") -> str:
    """PsychoPy's wide table of a loop ``practice`` about ``cues``, and a loop ``test`` of three rows."""
    names = [f"{loop}.{name}" for loop in (practice, test) for name in LOOP]
    rows = ["\ufeff" + ",".join(["cue", *names, "textbox.text", "key_resp.rt", "participant"])]
    rows += [f"{cue},0,{at},{at},{at},,,,,practised,9.9,P01" for at, cue in enumerate(cues)]
    rows += [f"{cue},,,,,0,{at},{at},{at},moon,1.{at},P01" for at, cue in enumerate(("sun", "sea", "dog"))]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("cues", [("tree", "house"), ("sun", "sea")])
@pytest.mark.parametrize(
    "name",
    [
        *("practice", "Practice", "PRACTICE", "practice_loop", "loopPractice", "Training", "warm_up"),
        *("entraînement", "Entrainement", "entrai\u0302nement", "pratique", "échauffement"),
        *("Übung", "übungen", "Uebung", "práctica", "Practica", "entrenamiento", "练习", "تدريب"),
    ],
)
def test_practice_of_psychopy_is_known_by_its_name(tmp_path: Path, name: str, cues: tuple[str, ...]) -> None:
    rows = imported(tmp_path, "P01.csv", of_two_loops(name, cues), "--task", "word")
    assert words(rows) == [("human:P01", cue, "moon") for cue in ("sun", "sea", "dog")]
    told = remarks(tmp_path)
    composed = unicodedata.normalize("NFC", name)
    assert f"rows of the loop {composed} are left out as practice (2); --rows chooses other rows" in told
    assert "rows_that_rules_for_the_program_leave_out: 2" in told
    assert "several loops" not in told


@pytest.mark.parametrize("name", ["essais", "ensayos", "Durchgang", "probe", "first", "block1"])
def test_other_loops_are_read_and_named(tmp_path: Path, name: str) -> None:
    """What means "trials" in another language may be the test itself: nothing is left out, and all is told."""
    table = of_two_loops(name, ("tree", "house"))
    rows = imported(tmp_path, "P01.csv", table, "--task", "word")
    assert [row["answer"]["word"] for row in rows] == ["practised", "practised", "moon", "moon", "moon"]
    told = remarks(tmp_path)
    assert f"rows of several loops are read: {name} (2), trials (3)." in told
    assert "--rows 'trials.thisN!=' reads the loop trials alone" in told
    rows = imported(tmp_path, "P01.csv", table, "--task", "word", "--rows", "trials.thisN!=")
    assert {row["answer"]["word"] for row in rows} == {"moon"}


def test_a_loop_inside_of_another_is_no_other_loop(tmp_path: Path) -> None:
    header = ",".join(["cue", *(f"{loop}.{name}" for loop in ("blocks", "trials") for name in LOOP)])
    table = header + ",textbox.text,participant\nsun,0,0,0,0,0,0,0,0,moon,P1\nsea,0,1,1,1,0,0,0,0,blue,P1\n"
    imported(tmp_path, "P1.csv", table, "--task", "word")
    assert "several loops" not in remarks(tmp_path)


def test_a_table_of_practice_alone_is_read(tmp_path: Path) -> None:
    table = "cue,training.thisRepN,training.thisN,training.thisIndex,textbox.text,participant\nsun,0,0,0,moon,P1\n"
    assert len(imported(tmp_path, "P1.csv", table, "--task", "word")) == 1
    assert "all rows are of the loop training, so that none is left out" in remarks(tmp_path)


def test_the_advice_keeps_the_larger_part(tmp_path: Path) -> None:
    """One cue in both loops: a rule that keeps practice alone would throw the answers away."""
    rows = imported(tmp_path, "P01.csv", of_two_loops("essais", ("sun", "sea")), "--task", "word")
    assert len(rows) == 5
    [advice] = [line for line in remarks(tmp_path).splitlines() if "To import only some rows" in line]
    rule = advice.rpartition("--rows ")[2]
    assert rule in ("essais.thisRepN=", "trials.thisRepN=0")
    rows = imported(tmp_path, "P01.csv", of_two_loops("essais", ("sun", "sea")), "--task", "word", "--rows", rule)
    assert words(rows) == [("human:P01", cue, "moon") for cue in ("sun", "sea", "dog")]


LONG = [
    ["cue", "n", "response_raw", "rt_mean", "rt_raw", "rt_std", "order"],
    ["sun", "1.0", "'moon'", "2.3129", "2.3129", "0.0", "6.0"],
    [],
    ["extraInfo"],
    ["participant", "P01"],
]


@pytest.mark.parametrize("form", ["P01_trials.txt", "P01_trials.csv", "P01.xlsx"])
def test_a_table_of_one_loop_of_psychopy_is_refused_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """As ``TrialHandler.saveAsText`` and ``saveAsExcel`` of PsychoPy 2026.2.5 write them."""
    path = tmp_path / form
    if form.endswith(".xlsx"):
        pytest.importorskip("python_calamine")
        rows: list[list[Cell]] = [[*row] for row in LONG]
        write_workbook(path, {"trials": rows})
    else:
        separator = "," if form.endswith(".csv") else "\t"
        path.write_text("\ufeff" + "\n".join(separator.join(row) for row in LONG) + "\n", "utf-8")
    assert main(["import", str(path), "--task", "word", "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "was recognised as a table of one loop of PsychoPy by *_raw, order, a line 'extraInfo'" in said
    assert "import the wide .csv beside it" in said


def test_a_table_of_raw_times_is_not_psychopys(tmp_path: Path) -> None:
    """Without PsychoPy's line below the rows the names of columns say nothing for certain."""
    table = "participant,cue,response,rt,rt_raw,order\nP1,sun,moon,734,740,1\n"
    assert words(imported(tmp_path, "a.csv", table, "--task", "word")) == [("human:P1", "sun", "moon")]
