"""The record's schema: what is a record, what is not, and that the generated JSON Schemas agree."""

import copy
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from agents.answers import ScanpathAnswer, plain
from agents.contract import Finding
from agents.stimuli import ALL_TASKS, parse_row
from serving.library.typed_records import typed
from serving.runs import records
from serving.scheduling.request import Outcome, Request, Timing, Where
from serving.sets.stimulus_row import StimulusRow
from tests.helpers.run_folders import ANSWERS, attempt, failed, record, stimulus

ROOT = Path(__file__).parents[3]
GAZE = "attention_prediction"


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    content = orjson.loads((ROOT / "docs" / "record.schema.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(content)
    return jsonschema.Draft202012Validator(content)


GOOD: dict[str, Any] = {
    **{task: record(task=task) for task in ALL_TASKS},
    "failed": failed("s1"),
    "rejected": record(task="image_captioning", status="rejected", attempts=[attempt("no")]),
    "noted": record(task="image_captioning", attempts=[attempt("so so", rejected=False)]),
    "turn": record(
        task="conversation",
        agent="a~b",
        attempts=[attempt("", turn=3, answer={"text": "", "raw": None, "finish": None, "delay_s": None})],
    ),
    "half a conversation": record(task="conversation", status="failed", error={"code": "x", "message": "y"}),
    "human": record(
        agent="human:05",
        kind="human",
        seed=None,
        timing=None,
        worker=None,
        created=None,
        stimulus_sha256=None,
        raw=[[-12, 1324]],
    ),
    "raw is anything": record(raw={"deep": [1, None, "x"]}),
    "a screen with bars": record(task=GAZE, answer={**ANSWERS[GAZE], "frame": [1680, 1050], "fit": "bars"}),
    "nothing is said of the frame": record(task=GAZE, answer={**ANSWERS[GAZE], "fit": None}),
}


def _with(path: str, value: Any, base: dict[str, Any]) -> dict[str, Any]:
    row = copy.deepcopy(base)
    *parents, last = path.split(".")
    place: Any = row
    for part in parents:
        place = place[int(part)] if part.isdigit() else place[part]
    place[int(last) if last.isdigit() else last] = value
    return row


BAD = {
    "schema": record(schema="turinglike.record/2"),
    "run": record(run="xyz"),
    "task": {**record(), "task": "naming"},
    "sha256": record(stimulus_sha256="abc"),
    "negative sample": record(sample=-1),
    "sample as bool": record(sample=True),
    "seed too large": record(seed=2**53),
    "status": record(status="done"),
    "ok without an answer": record(answer=None),
    "ok with an error": record(error={"code": "a", "message": "b"}),
    "failed without an error": {**failed("s1"), "error": None},
    "answer of another task": record(answer=ANSWERS["word_association"]),
    "answer with a key too many": _with("answer.mood", "gay", record()),
    "answer with a wrong type": _with("answer.color", 3, record()),
    "answer with a wrong nested type": _with("answer.palette.0.population", "12", record()),
    "nested answer without a default": _with(
        "answer.messages.0", {"turn": 0, "speaker": "A", "agent": "a", "text": "Hi"}, record(task="conversation")
    ),
    "a picture that fills its frame in some other way": record(task=GAZE, answer={**ANSWERS[GAZE], "fit": "crop"}),
    "attempt": record(attempts=[{"attempt": 0}]),
    "worker": _with("worker.batch_size", 0, record()),
    "created": record(created="2025-01-01 00:00:00"),
    "machine without a time": record(created=None),
    "unknown key": {**record(), "mood": "gay"},
    "not an object": [1],
}


@pytest.mark.parametrize("name", GOOD)
def test_a_record_in_order_is_accepted(name: str, schema: jsonschema.Draft202012Validator) -> None:
    assert records.problems(GOOD[name]) == []
    schema.validate(GOOD[name])


# What a JSON Schema does not say: that a machine's record has a time.
@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_refused(name: str, schema: jsonschema.Draft202012Validator) -> None:
    found = records.problems(BAD[name], "f.jsonl", 7)
    assert found
    assert all((problem.where, problem.line) == ("f.jsonl", 7) for problem in found)
    if name != "machine without a time":
        assert not schema.is_valid(BAD[name])


def test_how_a_picture_fills_its_frame_is_written_only_if_it_is_said() -> None:
    """An answer that says nothing has the bytes of earlier versions, and theirs is read as one that says nothing."""
    old = orjson.dumps(ANSWERS[GAZE])
    answer = ScanpathAnswer.model_validate_json(old)
    assert answer.fit is None
    assert answer.model_dump_json().encode() == orjson.dumps(plain(answer)) == old
    said = plain(answer.model_copy(update={"fit": "bars"}))
    assert said == {**ANSWERS[GAZE], "fit": "bars"}
    assert ScanpathAnswer.model_validate(said).fit == "bars"
    assert typed(record(task=GAZE, answer=said)).model_dump()["answer"] == said


@pytest.mark.parametrize("task", ALL_TASKS)
def test_no_key_of_an_answer_may_lack(task: str, schema: jsonschema.Draft202012Validator) -> None:
    for key in ANSWERS[task]:
        answer = {name: value for name, value in ANSWERS[task].items() if name != key}
        row = record(task=task, answer=answer)
        assert key in str(records.problems(row)[0])
        assert not schema.is_valid(row)


def test_the_schemas_and_the_table_of_agents_in_docs_are_up_to_date_and_old_ones_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_reference.py"))
    assert script["main"](["--check"]) == 0
    (tmp_path / "tells.md").write_bytes((ROOT / "docs" / "tells.md").read_bytes())  # only a table of it is made
    script["main"].__globals__["DOCS"] = tmp_path
    assert script["main"](["--check"]) == 1
    assert "record.schema.json is out of date" in capsys.readouterr().err
    assert script["main"]([]) == 0
    assert script["main"](["--check"]) == 0


STIMULI = [
    stimulus("s1"),
    stimulus("s2", "object_detection", present=["cat"], absent=["dog"]),
    stimulus("s3", "attention_prediction"),
    stimulus("s4", "attention_prediction", mode="search", target_box=[1, 2, 3.5, 4], window=100),
    stimulus("s5", "image_captioning", domain="out", meta={"a": 1, "b": None, "c": True, "d": 0.5, "e": "x"}),
    stimulus("s6", "word_association", version="prompted", examples=[["a", "b"]]),
    stimulus("s7", "conversation", names=["Ann", "Bob"], history=[{"speaker": "Ann", "text": "Hi", "at": None}]),
    {"id": "s8", "task": "color_estimation"},
    stimulus("s16", "conversation", exchanges=4.5),
    stimulus("s17", "attention_prediction", max_fixations=3.0, window=1e2),
    {"id": "s9", "task": "color_estimation", "image": "x", "color": "red"},
    {"id": "", "task": "color_estimation", "image": "x"},
    {"id": "s12", "task": "attention_prediction", "image": "x", "target_box": [1, 2, 3]},
    {"id": "s13", "task": "image_captioning", "image": "x", "meta": {"nested": {}}},
    {"id": "s14", "task": "naming"},
]


@pytest.mark.parametrize("row", STIMULI, ids=lambda row: row["id"] or "empty")
def test_the_schema_of_stimuli_agrees_with_the_reader(row: dict[str, Any]) -> None:
    content = orjson.loads((ROOT / "docs" / "stimulus.schema.json").read_bytes())
    try:
        parse_row(orjson.dumps(row))
        accepted = True
    except ValueError:
        accepted = False
    assert jsonschema.Draft202012Validator(content).is_valid(row) == accepted


ROW = StimulusRow.of_line(b'{"id":"w","task":"word_association","cue":"tea"}', 0, None)
ASKED = Request(agent="null", row=ROW, run_seed=7)
ANSWERED = Outcome(
    request=ASKED,
    status="ok",
    seed=ASKED.seed(0),
    attempt=0,
    answer=b'{"word":"cup","candidates":null,"skipped":[]}',
    raw=b'"cup"',
    sha256="0" * 64,
    timing=Timing(0.1, 0.2, 0.3),
    worker=Where("here", "cpu", 2),
    created="2026-01-01T00:00:00.000Z",
)
NOTED = (Finding("repeats", True, "cup"),)


@pytest.mark.parametrize(
    "outcome",
    [
        ANSWERED,
        ANSWERED._replace(status="rejected", attempts=(ANSWERED.as_attempt(NOTED),)),
        Outcome.failed(ASKED, "no_word", "the agent knows none"),
    ],
    ids=lambda outcome: outcome.status,
)
def test_what_is_written_of_an_outcome_is_a_record(outcome: Outcome) -> None:
    header = records.RecordHeader("0123456789ab", "machine", "d" * 64, None, None)
    written = orjson.loads(header.line(outcome))
    assert records.problems(written) == []
    assert records.structural_fault(written) is None
    assert tuple(written) == tuple(record())
    assert [records.read_attempt(row) for row in written["attempts"]] == [*outcome.attempts]


def test_nothing_writes_a_key_that_no_record_has() -> None:
    with pytest.raises(TypeError, match="mood"):
        records.people_record("0123456789ab", {"mood": "gay"})
