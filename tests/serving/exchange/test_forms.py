"""Known forms: a small file of each program comes in by one command, without an option for its columns.

The files were written by hand after the output that the programs' makers document, unless a case says otherwise.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from serving.cli import main
from serving.exchange.importing.form_files import known_forms
from tests.helpers.imported_tables import imported, refusal, remarks
from tests.helpers.run_folders import read_back

Answer = tuple[str, str, Any, float | None]  # who, the stimulus, the answer, milliseconds


class Case(NamedTuple):
    """A file and what is right for it."""

    file: str
    text: str
    answers: list[Answer]
    told: str = ""
    """A part of what is said of the file."""
    options: tuple[str, ...] = ("--task", "word")


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


def chatgpt_message(role: str, text: str) -> dict[str, Any]:
    return {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}}


CASES = {
    "jspsych": Case(
        "data.json",
        json.dumps(
            [
                {"trial_type": "instructions", "trial_index": 0, "subject": "5f3", "rt": 443},
                {
                    "trial_type": "survey-text",
                    "trial_index": 1,
                    "subject": "5f3",
                    "cue": "dark",
                    "response": {"assoc": "light"},
                    "rt": 345,
                },
            ]
        ),
        [("human:5f3", "dark", "light", 345)],
        "recognised as jsPsych by trial_type, trial_index",
    ),
    "psychopy": Case(
        "7_assoc.csv",
        "\ufeff"
        + lines(
            "cue,practice.thisRepN,practice.thisN,practice.thisIndex,trials.thisRepN,trials.thisN,trials.thisIndex,"
            "textbox.text,key_resp.keys,key_resp.rt,debrief.text,participant,session,",
            "practice,0,0,0,,,,ok,space,0.512,,007,001,",
            "table,,,,0,0,0,chair,f,0.734,,007,001,",
            "Müll,,,,0,1,1,,None,,,007,001,",
            ",,,,,,,,,,done,007,001,",
        ),
        [("human:007", "table", "chair", 734)],
        "columns by the form: response is textbox.text, rt is key_resp.rt",
    ),
    "otree": Case(
        "words_2026-11-28.csv",
        lines(
            "participant.id_in_session,participant.code,participant.label,player.id_in_group,player.payoff,"
            "player.cue,player.word,player.rt,group.id_in_subsession,subsession.round_number,session.code",
            "1,f937w3jz,,1,0,table,chair,812,1,1,pc7o",
            "2,x06lxbu9,,2,0,table,,,1,1,pc7o",
        ),
        [("human:f937w3jz", "table", "chair", 812)],
        "1 row (at 3) without an answer",
    ),
    "e_prime": Case(
        "assoc.txt",
        lines(
            "ExperimentName\tSubject\tSession\tTrial\tCue\tAnswer.ACC\tAnswer.RESP\tAnswer.RT",
            "assoc\t12\t1\t1\tsun\t0\tmoon\t812",
            "assoc\t13\t1\t1\tsun\t0\t\t0",
        ),
        [("human:12", "sun", "moon", 812)],
        "recognised as E-Prime by ExperimentName, Subject, Session",
    ),
    "opensesame": Case(
        "subject-1.csv",
        lines(
            "count_trial,cue,experiment_file,response,response_time,subject_nr",
            "0,sun,assoc.osexp,moon,812.4,1",
            "1,sea,assoc.osexp,None,3000,1",
        ),
        [("human:1", "sun", "moon", 812.4)],
        "1 row (at 3) with `None` in column response, a program's word for no answer",
    ),
    "lab_js": Case(
        "labjs.csv",
        lines(
            "sender,sender_type,sender_id,timestamp,participant,cue,word,duration,ended_on",
            "Instruction,html.Screen,0,2026,p1,,,900.5,response",
            "Cue,html.Form,1_0,2026,p1,sun,moon,1234.5,response",
            "Cue,html.Form,1_1,2026,p1,sea,,5000,timeout",
        ),
        [("human:p1", "sun", "moon", 1234.5)],
        "recognised as lab.js by sender, sender_type, sender_id",
    ),
    "expyriment": Case(
        "assoc_01.xpd",
        lines(
            "#Expyriment 1.0.1 (Python 3.11.7), .xpd-file, coding: UTF-8",
            "#e Experiment: assoc",
            "#s id: 7",
            "subject_id,cue,response,rt",
            '7,dark,he said ""night"",734',
            '7,"deep, sea","fish, ""blue""",None',
            "7,music,line",
            "break,0.5",
            "7,Müll,,600",
        ),
        [("human:7", "dark", 'he said "night"', 734), ("human:7", "deep, sea", 'fish, "blue"', None)],
        "lines with too few or too many cells are left out: 7, 8",
    ),
    "label_studio": Case(
        "project-1.csv",
        lines(
            "annotation_id,annotator,created_at,cue,id,lead_time,updated_at,word",
            "5,1,2026-11-28,sun,9,31.5,2026-11-28,moon",
            "6,2,2026-11-28,sun,9,22,2026-11-28,hot",
        ),
        [("human:1", "sun", "moon", 31500), ("human:2", "sun", "hot", 22000)],
        "the answers are those of column word",
    ),
    "label_studio_json": Case(
        "project-1.json",
        json.dumps(
            [
                {
                    "id": 9,
                    "data": {"cue": "sun"},
                    "annotations": [
                        {
                            "id": 5,
                            "completed_by": 1,
                            "was_cancelled": False,
                            "lead_time": 31.5,
                            "result": [{"type": "textarea", "value": {"text": ["moon"]}}],
                        },
                        {"id": 6, "completed_by": 2, "was_cancelled": True, "lead_time": 2, "result": []},
                    ],
                }
            ]
        ),
        [("human:1", "sun", "moon", 31500)],
        "only rows with annotations.was_cancelled!=true are read",
    ),
    "qualtrics": Case(
        "survey.csv",
        lines(
            "StartDate,Finished,ResponseId,participant,stimulus,response",
            '"Start Date","Finished","Response ID","participant","stimulus","Which word came to mind?"',
            '"{""ImportId"":""startDate""}","{""ImportId"":""finished""}","{""ImportId"":""_recordId""}",'
            '"{""ImportId"":""participant""}","{""ImportId"":""stimulus""}","{""ImportId"":""QID1_TEXT""}"',
            "2026-11-28 07:00:00,1,R_1,p1,table,chair",
        ),
        [("human:p1", "table", "chair", None)],
        "recognised as Qualtrics by StartDate, ResponseId",
    ),
    "gorilla": Case(
        "data_exp_1.csv",
        lines(
            "Event Index,UTC Date and Time,Participant Private ID,Spreadsheet: Cue,Response,Reaction Time",
            "1,28/11/2026 07:00:00,9001,table,chair,512.4",
            "END OF FILE,,,,,",
        ),
        [("human:9001", "table", "chair", 512.4)],
        "end_of_file_lines: 1",
    ),
    "mturk": Case(
        "Batch_1_batch_results.csv",
        lines(
            "HITId,AssignmentId,WorkerId,AssignmentStatus,WorkTimeInSeconds,Input.cue,Answer.association",
            "H1,A1,W1,Approved,31,sun,moon",
            "H1,A2,W2,Approved,24,sun,hot",
        ),
        [("human:W1", "sun", "moon", 31000), ("human:W2", "sun", "hot", 24000)],
        "recognised as Mechanical Turk by HITId, AssignmentId, WorkerId",
    ),
    "soscisurvey": Case(
        "rdata_assoc.csv",
        lines(
            "CASE\tSERIAL\tQUESTNNR\tMODE\tSTARTED\tcue\tresponse",
            "214\t\tbase\tinterview\t2026-11-28 07:00:00\tsun\tmoon",
        ),
        [("human:214", "sun", "moon", None)],
        "recognised as SoSci Survey by CASE, QUESTNNR, STARTED",
    ),
    "eyelink_data_viewer": Case(
        "fixations.csv",
        lines(
            "RECORDING_SESSION_LABEL,image,CURRENT_FIX_INDEX,CURRENT_FIX_X,CURRENT_FIX_Y,CURRENT_FIX_DURATION",
            "s1,coffee.png,2,140.0,150.0,180",
            "s1,coffee.png,1,300.5,200.1,210",
        ),
        [("human:s1", "coffee.png", [[300.5, 200.1], [140.0, 150.0]], None)],
        "in the order of column CURRENT_FIX_INDEX",
        ("--task", "attention", "--frame", "600x400"),
    ),
    "inspect": Case(
        "log.json",
        json.dumps(
            {
                "version": 2,
                "status": "success",
                "eval": {"model": "mockllm/model"},
                "samples": [
                    {
                        "id": 1,
                        "metadata": {"cue": "sun"},
                        "output": {"choices": [{"message": {"role": "assistant", "content": "moon"}}]},
                    },
                    {"id": 2, "metadata": {"cue": "sea"}, "output": {"choices": []}},
                ],
            }
        ),
        [("published:mockllm/model", "sun", "moon", None)],
        "1 row (at [1]) without an answer",
    ),
    "lmsys": Case(
        "lmsys.json",
        json.dumps(
            [
                {
                    "conversation_id": "x1",
                    "model": "vicuna-13b",
                    "conversation": [{"content": "hi", "role": "user"}, {"content": "Hello!", "role": "assistant"}],
                    "turn": 1,
                }
            ]
        ),
        [("published:human~vicuna-13b", "x1", [("human", "hi"), ("vicuna-13b", "Hello!")], None)],
        "recognised as LMSYS-Chat-1M",
        (),
    ),
    "wildchat": Case(
        "wildchat.jsonl",
        lines(
            '{"conversation_hash": "h1", "model": "gpt-4", "conversation": [{"role": "user", "content": "hi", '
            '"country": "x"}, {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": ""}]}'
        ),
        [("published:human~gpt-4", "h1", [("human", "hi"), ("gpt-4", "Hello!")], None)],
        "messages_without_a_text: 1",
        (),
    ),
    "sharegpt": Case(
        "share.json",
        json.dumps(
            [{"id": "s_0", "conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "Yo"}]}]
        ),
        [("published:human~chatgpt", "s_0", [("human", "hi"), ("chatgpt", "Yo")], None)],
        "recognised as ShareGPT by conversations",
        ("--name", "human~chatgpt"),
    ),
    "chat_messages": Case(
        "tuning.jsonl",
        lines(
            '{"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": [{"type": "text", '
            '"text": "Which is this?"}, {"type": "image_url"}]}, {"role": "assistant", "content": "A poodle."}]}'
        ),
        [("published:human~tiny", "tuning/1", [("human", "Which is this?"), ("tiny", "A poodle.")], None)],
        "parts_of_messages_that_are_no_text: 1",
        ("--name", "human~tiny"),
    ),
    "chatgpt": Case(
        "conversations.json",
        json.dumps(
            [
                {
                    "title": "Dogs",
                    "current_node": "a2",
                    "conversation_id": "c1",
                    "mapping": {
                        "r": {"id": "r", "message": None, "parent": None},
                        "u1": {"message": chatgpt_message("user", "Do you like dogs?"), "parent": "r"},
                        "a1": {"message": chatgpt_message("assistant", "I do."), "parent": "u1"},
                        "a2": {"message": chatgpt_message("assistant", "Very much, yes."), "parent": "u1"},
                    },
                }
            ]
        ),
        [("published:human~gpt", "c1", [("human", "Do you like dogs?"), ("gpt", "Very much, yes.")], None)],
        "recognised as ChatGPT's export by mapping, current_node",
        ("--name", "human~gpt"),
    ),
    "lm_eval": Case(
        "samples_word_2026.jsonl",
        lines(
            '{"doc_id": 0, "doc": {"cue": "sun"}, "target": "", "resps": [["moon"]], "filtered_resps": ["moon"]}',
            '{"doc_id": 1, "doc": {"cue": "sea"}, "target": "", "resps": [["blue"]], "filtered_resps": ["blue"]}',
        ),
        [("published:tiny", "sun", "moon", None), ("published:tiny", "sea", "blue", None)],
        "recognised as lm-eval's samples by doc_id, doc, resps, filtered_resps",
        ("--task", "word", "--name", "tiny"),
    ),
}
REFUSED = {
    "otree_wide": (
        "all_apps_wide.csv",
        "participant.code,words.1.player.cue,words.1.player.word,words.2.player.word\nf9,sun,moon,hot\n",
        "download the table of the app",
    ),
    "prolific": (
        "prolific_export.csv",
        "Submission id,Participant id,Status,Age\nS1,P1,APPROVED,31\n",
        "says who took part, and holds no answers",
    ),
    "psychopy_loop": (
        "P01_trials.txt",
        "cue\tn\tresponse_raw\torder\nsun\t1.0\t'moon'\t0.0\n\nextraInfo\nparticipant\tP01\n",
        "import the wide .csv beside it",
    ),
}


def test_each_known_form_has_a_case() -> None:
    assert {form.key for form in known_forms()} == {*CASES, *REFUSED}


@pytest.mark.parametrize("key", CASES)
def test_a_file_of_the_program(key: str, tmp_path: Path) -> None:
    case = CASES[key]
    path = tmp_path / case.file
    path.write_text(case.text, encoding="utf-8")
    assert main(["import", str(path), *case.options, "--out", str(tmp_path / "run")]) == 0
    kind = "humans" if case.answers[0][0].startswith("human:") else "published"
    found = []
    for row in read_back(tmp_path / "run", kind):
        answer = row["answer"].get("word", row["answer"].get("fixations"))
        if row["task"] == "conversation":
            answer = [(message["agent"], message["text"]) for message in row["answer"]["messages"]]
        time = row["raw"].get("rt") if isinstance(row["raw"], dict) else None
        found.append((row["agent"], row["stimulus"], answer, time))
    assert found == case.answers
    assert case.told in remarks(tmp_path)
    [source] = json.loads((tmp_path / "run" / "import.json").read_bytes())["sources"]
    assert source["form"] == key


@pytest.mark.parametrize("key", REFUSED)
def test_a_file_without_answers(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, text, way_out = REFUSED[key]
    told = refusal(tmp_path, capsys, file, text, "--task", "word")
    assert "was recognised as" in told
    assert way_out in told


LAB = """name = "Our lab"
recognised_by = ["vp_code"]
task = "word"
rows = ["phase!=practice", "phase!=instructions"]
rt = "seconds"

[columns]
subject = "vp_code"
stimulus = ["reiz", "prime"]
response = ["antwort.text"]
rt = "zeit"
"""
TABLE = lines(
    "vp_code;phase;prime;antwort;zeit",
    'a1;practice;sun;"{""text"":""x""}";1,5',
    'a1;test;sun;"{""text"":""moon""}";31,25',
)


def test_a_form_of_a_lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    form = tmp_path / "lab.toml"
    form.write_text(LAB)
    [row] = imported(tmp_path, "data.csv", TABLE, "--form", str(form))
    assert (row["agent"], row["stimulus"], row["answer"]["word"], row["raw"]["rt"]) == (
        "human:a1",
        "sun",
        "moon",
        31250,
    )
    assert "read with the form Our lab" in remarks(tmp_path)
    # The command goes before the form.
    [row] = imported(tmp_path, "data.csv", TABLE, "--form", str(form), "--rows", "phase=practice", "--rt", "ms")
    assert (row["answer"]["word"], row["raw"]["rt"]) == ("x", 1.5)
    told = refusal(tmp_path, capsys, "b.csv", "subject,cue,response\n1,sun,moon\n", "--form", str(form))
    assert "is no table of the form Our lab: it has no column vp_code" in told


def test_a_form_of_a_lab_beside_a_known_one(tmp_path: Path) -> None:
    """A lab's form adds to what is known of its program."""
    form = tmp_path / "lab.toml"
    form.write_text('name = "Our lab"\ntask = "word"\n\n[columns]\nsubject = "vp_code"\n')
    case = CASES["jspsych"]
    rows = imported(tmp_path, case.file, case.text.replace('"subject"', '"vp_code"'), "--form", str(form))
    assert [(row["agent"], row["answer"]["word"]) for row in rows] == [("human:5f3", "light")]


def test_all_faults_of_a_form_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    form = tmp_path / "lab.toml"
    form.write_text('age = "x"\nrt = "hours"\nframe = "wide"\nrows = ["phase"]\ntask = "sing"\n[columns]\nwho = "a"\n')
    told = refusal(tmp_path, capsys, "data.csv", TABLE, "--form", str(form))
    assert "lab.toml: age: a form has no such key here; at the top the keys are name, recognised_by," in told
    for fault in ("name: is missing", "rt: ", "frame: must be a width", "rows.0: must be as phase"):
        assert f"lab.toml: {fault}" in told
    for fault in ("task: must be one of", "columns.who"):
        assert f"lab.toml: {fault}" in told
    form.write_text("name = ")
    assert "is no TOML" in refusal(tmp_path, capsys, "data.csv", TABLE, "--form", str(form))


def test_two_columns_of_one_meaning_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = lines("HITId,AssignmentId,WorkerId,Input.cue,Answer.first,Answer.second", "H1,A1,W1,sun,moon,hot")
    told = refusal(tmp_path, capsys, "batch.csv", table, "--task", "word")
    assert "has several columns that may be the response: Answer.first, Answer.second" in told
    assert "--columns response=Answer.first" in told


def test_rows_by_what_stands_in_json(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "who": {"code": "a"}, "item": {"cue": "sun", "phase": phase}, "says": [{"text": word}]}
        for phase, word in (("practice", "x"), ("test", "moon"))
    ]
    options = ("--columns", "subject=who.code,stimulus=item.cue,response=says.0.text", "--rows", "item.phase=test")
    found = imported(tmp_path, "a.json", json.dumps(rows), "--task", "word", *options)
    assert [(row["agent"], row["stimulus"], row["answer"]["word"]) for row in found] == [("human:a", "sun", "moon")]


def test_a_table_of_one_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gpt.csv"
    path.write_text("cue,response\nsun,moon\nsea,blue\n")
    assert main(["import", str(path), "--task", "word", "--name", "gpt", "--out", str(tmp_path / "run")]) == 0
    found = read_back(tmp_path / "run", "published")
    assert [(row["agent"], row["stimulus"]) for row in found] == [("published:gpt", "sun"), ("published:gpt", "sea")]
    for column in ("subject", "truth"):
        table = f"{column},cue,response\nhuman,sun,moon\n"
        told = refusal(tmp_path, capsys, "p.csv", table, "--task", "word", "--name", "gpt")
        assert f"says in column {column} who answered" in told


def test_lines_of_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JATOS writes the data of each participant, a JSON list, on a line."""
    row = json.loads(CASES["jspsych"].text)[1]
    text = lines(json.dumps([row]), json.dumps([{**row, "subject": "6a1"}]))
    rows = imported(tmp_path, "jatos_results.txt", text, "--task", "word")
    assert [row["agent"] for row in rows] == ["human:5f3", "human:6a1"]
    told = refusal(tmp_path, capsys, "a.jsonl", '{"a": 1}\n{"a": \n[1\n', "--task", "word")
    assert "a.jsonl:2: is not JSON" in told
    assert "a.jsonl:3: is not JSON" in told


def test_all_faults_of_conversations_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"conversation_id": "a", "model": "m", "conversation": "hi"},
        {"conversation_id": "b", "model": "m", "conversation": [{"role": "wizard", "content": "hi"}]},
        {"conversation_id": "c", "model": "m", "conversation": [{"role": "user", "content": 1}]},
        {"conversation_id": "d", "model": "", "conversation": [{"role": "user", "content": "hi"}]},
    ]
    told = refusal(tmp_path, capsys, "lmsys.json", json.dumps(rows))
    faults = (
        "must be a list of messages",
        "message 0: the speaker must be one of user, assistant, not 'wizard'",
        "message 0: has no text",
        "does not say which machine spoke",
    )
    for place, fault in enumerate(faults):
        assert f"lmsys.json: [{place}].conversation: {fault}" in told


def test_one_name_for_two_speakers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES["lmsys"]
    told = refusal(tmp_path, capsys, case.file, case.text, "--name", "gpt")
    assert "holds conversations of two speakers: --name A~B" in told


def test_rules_of_a_form_that_no_row_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the rule and the values that are there, and no column that the form names already."""
    form = tmp_path / "lab.toml"
    form.write_text('name = "Lab"\ntask = "word"\nrows = ["phase=test"]\n[columns]\nstimulus = "prime"\n')
    table = "subject,prime,response,phase\n1,sun,moon,Test\n1,sea,blue,practice\n"
    told = refusal(tmp_path, capsys, "data.csv", table, "--form", str(form))
    assert "the rows of the form Lab (phase=test): no row is so; phase is 'Test', 'practice'" in told
    assert "names the stimulus" not in told
