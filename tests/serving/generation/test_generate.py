"""``turinglike generate`` from its entry point, over workers in this process."""

import gc
import json
import os
import random
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from null_agent import NullAgent
from PIL import Image as PILImage

from serving.cli import build_parser, main
from serving.files.atomic_files import lock
from serving.runs import forecast_sample
from serving.runs.records import Record
from serving.runs.resume import ResumeState
from serving.runs.run import Run
from serving.runs.run_json import read_run_json
from serving.runs.stimulus_lookup import StimulusLookup
from serving.scheduling import machine
from serving.scheduling.request import Request
from serving.scheduling.scheduler import Scheduler
from tests.helpers import in_process

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(autouse=True)
def _without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    in_process.without_ray(monkeypatch)


def words(path: Path, count: int, shuffled: int | None = None, cue: str = "cue") -> Path:
    rows = [{"id": f"w{i:03d}", "task": "word_association", "cue": f"{cue}{i}"} for i in range(count)]
    if shuffled is not None:
        random.Random(shuffled).shuffle(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(source: Path, agents: str, out: Path, *more: str) -> int:
    return main(["generate", str(source), "--agents", agents, "--out", str(out), *more])


def records(out: Path, agent: str) -> list[dict[str, Any]]:
    """All records of an agent, each checked against the schema."""
    found = [json.loads(line) for line in (out / "records" / f"{agent}.jsonl").read_text().splitlines()]
    for record in found:
        Record.model_validate(record)
    return found


def answers(out: Path, agent: str) -> dict[tuple[str, int], Any]:
    """The answers by key; fails if a key has two lines."""
    found = records(out, agent)
    by_key = {(r["stimulus"], r["sample"]): (r["status"], r["seed"], r["answer"], r["raw"]) for r in found}
    assert len(by_key) == len(found)
    return by_key


def test_every_stimulus_and_sample_has_one_record_and_again_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = words(tmp_path / "set.jsonl", 30)
    out = tmp_path / "run"
    assert run(source, "null,echo", out, "--samples", "2") == 0
    keys = {(f"w{i:03d}", sample) for i in range(30) for sample in (0, 1)}
    assert answers(out, "null").keys() == answers(out, "echo").keys() == keys
    before = (out / "records" / "null.jsonl").read_bytes()
    capsys.readouterr()
    assert run(source, "null,echo", out, "--samples", "2") == 0
    assert "nothing is left to answer" in capsys.readouterr().out
    assert (out / "records" / "null.jsonl").read_bytes() == before
    assert (out / "stimuli.jsonl").read_text().count("\n") == 30


def test_a_run_leaves_its_caller_the_collector_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set[tuple[int, int, int]]()
    respond = NullAgent.respond

    def watched(agent: NullAgent, values: Any, draws: Any) -> Any:
        seen.add(gc.get_threshold())
        return respond(agent, values, draws)

    monkeypatch.setattr(NullAgent, "respond", watched)
    of_process = gc.get_threshold()
    of_caller = (777, *of_process[1:])
    gc.set_threshold(*of_caller)
    try:
        assert run(words(tmp_path / "set.jsonl", 5), "null", tmp_path / "run") == 0
        assert gc.get_threshold() == of_caller
    finally:
        gc.set_threshold(*of_process)
    assert seen == {(machine.NEW_OBJECTS, *of_process[1:])}


def test_a_run_grows_by_stimuli_agents_and_samples(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(words(tmp_path / "set.jsonl", 10), "null", out) == 0
    first = answers(out, "null")
    assert run(words(tmp_path / "set.jsonl", 25, shuffled=1), "null,null-one", out, "--samples", "2") == 0
    grown = answers(out, "null")
    assert len(grown) == len(answers(out, "null-one")) == 50
    assert {key: grown[key] for key in first} == first
    assert run(words(tmp_path / "set.jsonl", 25), "null", out, "--limit", "3") == 0


def test_a_sample_of_the_whole_set_is_asked_first_and_changes_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []
    stream = Scheduler.stream

    def noted(requests: Iterable[Request]) -> Iterator[Request]:
        for request in requests:
            asked.append(request.row.position)
            yield request

    monkeypatch.setattr(Scheduler, "stream", lambda scheduler, requests: stream(scheduler, noted(requests)))
    source = words(tmp_path / "set.jsonl", 500)
    together = ("--batch-size", "5", "--here")
    assert run(source, "null", tmp_path / "run", *together, "--limit", "400") == 0
    out = capsys.readouterr().out
    assert re.search(r"^records: \S+, after .+: 400 answers, [\d,.]+/s$", out, re.MULTILINE)
    sample = asked[:16]
    assert asked[16:] == [number for number in range(400) if number not in sample]
    assert min(sample) < 100
    assert max(sample) >= 300
    first = records(tmp_path / "run", "null")
    assert [record["stimulus"] for record in first] == [f"w{number:03}" for number in range(400)]
    asked.clear()
    assert run(source, "null", tmp_path / "run", *together) == 0
    assert sorted(asked) == [*range(400, 500)]
    assert asked != sorted(asked)
    monkeypatch.setattr(forecast_sample, "EVERY", 10**9)
    assert run(source, "null", tmp_path / "in order", *together) == 0
    assert answers(tmp_path / "run", "null") == answers(tmp_path / "in order", "null")


def same(record: dict[str, Any]) -> dict[str, Any]:
    """What does not depend on when, where and in which run a record was made."""
    return {k: v for k, v in record.items() if k not in ("run", "timing", "worker", "created")}


def test_agents_of_different_tasks_answer_a_folder_as_in_runs_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = tmp_path / "pictures"
    together = tmp_path / "together"
    pictures.mkdir()
    for number in range(3):
        PILImage.new("RGB", (64, 48), (80 * number, 90, 200)).save(pictures / f"{number}.png")
    tasks = {"mmcq": "color_estimation", "center": "attention_prediction"}
    assert run(pictures, "mmcq", together, "--limit", "2") == 0
    assert run(pictures, "mmcq,center", together, "--limit", "2") == 0
    assert [len(records(together, name)) for name in tasks] == [2, 2]
    assert run(pictures, "center,mmcq", together) == 0
    assert run(pictures, "center", together) == 0
    for name, task in tasks.items():
        assert run(pictures, name, tmp_path / name, "--task", task) == 0
        alone, beside = ([same(one) for one in records(out, name)] for out in (tmp_path / name, together))
        assert [record["task"] for record in alone] == [task] * 3
        assert sorted(beside, key=str) == sorted(alone, key=str)
    assert main(["status", str(together)]) == 0
    capsys.readouterr()

    assert run(pictures, "null", tmp_path / "none") == 2
    assert "null answers several tasks about images: say with task (--task) which one" in capsys.readouterr().err
    assert run(pictures, "eliza~eliza", tmp_path / "none") == 2
    assert "these agents answer nothing about images: eliza~eliza answers conversation" in capsys.readouterr().err


def test_an_agent_answers_the_tasks_that_stand_behind_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(3):
        PILImage.new("RGB", (64, 48), (80 * number, 90, 200)).save(pictures / f"{number}.png")
    out = tmp_path / "out"
    names = [f"{number}.png" for number in range(3)]
    assert run(pictures, "mmcq,null=caption", out) == 0
    assert [record["task"] for record in records(out, "null")] == ["image_captioning"] * 3
    assert [record["stimulus"] for record in records(out, "null")] == names
    assert [record["task"] for record in records(out, "mmcq")] == ["color_estimation"] * 3

    # The same name as where all agents are asked this task: one key, one seed, one answer.
    assert run(pictures, "null", tmp_path / "alone", "--task", "caption") == 0
    assert [same(one) for one in records(tmp_path / "alone", "null")] == [same(one) for one in records(out, "null")]

    several = tmp_path / "several"
    assert run(pictures, "mmcq,null=caption+object_detection", several) == 0
    tasks = [record["task"] for record in records(several, "null")]
    assert sorted(tasks) == ["image_captioning"] * 3 + ["object_detection"] * 3
    keys = [record["stimulus"] for record in records(several, "null")]
    assert len(set(keys)) == 6

    # A task that comes later is asked beside the first, under ids of its own.
    assert run(pictures, "null=caption", tmp_path / "later") == 0
    assert run(pictures, "null=object", tmp_path / "later") == 0
    later = records(tmp_path / "later", "null")
    assert sorted(record["stimulus"] for record in later) == sorted(
        names + [f"object_detection/{name}" for name in names]
    )
    assert main(["status", str(tmp_path / "later")]) == 0
    capsys.readouterr()

    for wrong, message in {
        "mmcq=caption": "mmcq does not answer image_captioning; it answers color_estimation",
        "eliza~null=color": "eliza~null: a pair has conversations alone",
        "null=colour": "bad agent name 'null=colour'",
        "null=color,null=caption": "an agent is given twice; several tasks are agent=color+caption",
    }.items():
        assert run(pictures, wrong, tmp_path / "none") == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_an_agent_of_several_tasks_answers_those_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows of a second task have ids of their own, so that its records have different keys. The first task's rows,
    and so their answers, are those of a run of this task alone; a record of people finds both by the picture."""
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(3):
        PILImage.new("RGB", (64, 48), (80 * number, 90, 200)).save(pictures / f"{number}.png")
    out = tmp_path / "together"
    names = [f"{number}.png" for number in range(3)]
    own = [f"attention_prediction/{name}" for name in names]
    assert run(pictures, "mmcq,center,null", out) == 0
    assert [record["stimulus"] for record in records(out, "mmcq")] == names
    assert [record["stimulus"] for record in records(out, "center")] == own
    assert sorted(record["stimulus"] for record in records(out, "null")) == sorted([*names, *own])
    assert [record["task"] for record in records(out, "null")] == ["color_estimation", "attention_prediction"] * 3
    assert run(pictures, "null", tmp_path / "alone", "--task", "color") == 0
    alone = [same(record) for record in records(tmp_path / "alone", "null")]
    assert alone == [same(record) for record in records(out, "null") if record["task"] == "color_estimation"]

    lines = (out / "stimuli.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["task"] == "attention_prediction"]
    assert [(row["id"], row["benchmark_id"]) for row in rows] == [*zip(own, names, strict=True)]
    lookup = StimulusLookup(Run(out, read_run_json(out)))
    assert lookup.find("attention_prediction", "1.png") == (0, rows[1])

    more = tmp_path / "alone"  # a further task later, and two at once
    assert run(pictures, "null", more, "--task", "caption,object") == 0
    assert run(pictures, "null", more, "--task", "caption") == 0
    tasks = [record["task"] for record in records(more, "null")]
    assert tasks == ["color_estimation", "image_captioning", "object_detection"] * 3
    assert alone == [same(record) for record in records(more, "null") if record["task"] == "color_estimation"]

    apart = tmp_path / "apart"  # one id in both tasks, as each agent answers one of them
    assert run(pictures, "mmcq,center", apart) == 0
    before = (apart / "run.json").read_bytes()
    capsys.readouterr()
    assert run(pictures, "null", apart, "--task", "color") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "such as AGENT=color, or choose another folder (--out)" in said
    assert "null: would answer color_estimation and attention_prediction" in said
    assert (apart / "run.json").read_bytes() == before
    assert run(pictures, "null=color", apart) == 0  # as the message says


@pytest.mark.parametrize(
    ("change", "more", "says"),
    [
        ({"cue": "other"}, [], "w000: has changed since the run began"),
        ({}, ["--seed", "6"], "seed: the run has 0, not 6"),
        ({}, ["--set", "null.delay_s=0.001"], "agents.null: setting delay_s was 0.0, is 0.001"),
    ],
)
def test_a_run_refuses_another_identity(
    change: dict[str, Any], more: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run(words(tmp_path / "set.jsonl", 10), "null", out) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert run(words(tmp_path / "set.jsonl", **{"count": 10, **change}), "null", out, *more) == 2
    assert says in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_failed_answers_are_kept_and_can_be_tried_again(tmp_path: Path) -> None:
    source = words(tmp_path / "set.jsonl", 12)
    out = tmp_path / "run"
    marker = tmp_path / "fixed"
    crash = ["--set", "null.crash=w00[35]", "--set", f"null.crash_unless={marker}", "--batch-size", "1"]
    marker.touch()
    assert run(source, "null", out, *crash) == 0
    path = out / "records" / "null.jsonl"
    for record in path.read_text().splitlines()[:2]:
        failed = json.loads(record) | {"status": "failed", "answer": None, "error": {"code": "x", "message": "y"}}
        path.write_text(path.read_text() + json.dumps(failed) + "\n")
    assert run(source, "null", out, *crash) == 1
    # the last line of a key counts, and a finished run has one line per key
    assert [r["status"] for r in records(out, "null")].count("failed") == 2
    assert len(answers(out, "null")) == 12
    assert run(source, "null", out, *crash, "--retry-failed") == 0
    assert {status for status, *_ in answers(out, "null").values()} == {"ok"}


def test_the_breaker_leaves_the_rest_unanswered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = words(tmp_path / "set.jsonl", 100)
    out = tmp_path / "run"
    fails = ["--set", "null.fail=.", "--retry-failed"]
    assert run(source, "null,null-one", out, *fails) == 3
    assert len(records(out, "null")) == 20
    assert len(records(out, "null-one")) == 100
    assert "null: 0 ok, 20 failed, 80 unanswered" in capsys.readouterr().out
    assert run(source, "null", out, *fails) == 3
    assert len(answers(out, "null")) in (20, 40)  # a line each of what was tried again


def test_what_failed_is_tried_again_after_what_is_new_and_does_not_stop_the_agent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = words(tmp_path / "set.jsonl", 70)
    out = tmp_path / "run"
    # 30, always
    fails = ["--set", "null.fail=w00|w01|w02"]
    again = "--retry-failed"
    assert run(source, "null", out, *fails, "--limit", "15") == 1
    assert run(source, "null", out, *fails, "--limit", "30") == 1
    with monkeypatch.context() as patched:  # the lines as they were written
        patched.setattr(ResumeState, "tidy", lambda self, path: None)
        assert run(source, "null", out, *fails, again, "--batch-size", "1") == 1
    assert all(r["stimulus"] >= "w030" for r in records(out, "null")[30:60])  # after those that failed before
    for _ in range(2):
        assert run(source, "null", out, *fails, again) == 1
        assert len(answers(out, "null")) == 70  # a line each
        assert Counter(r["status"] for r in records(out, "null")) == {"failed": 30, "ok": 40}


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A finished run of three words, from the set beside it."""
    assert run(words(tmp_path / "set.jsonl", 3), "null", tmp_path / "run") == 0
    return tmp_path / "run"


def edit(path: Path, changes: dict[str, Any]) -> None:
    """Change the second record of a file."""
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], json.dumps(json.loads(lines[1]) | changes), lines[2]]) + "\n")


@pytest.mark.parametrize("changes", [{"task": "no_such"}, {"sample": 2**70}, {"answer": {}}])
def test_edited_records_of_a_killed_run_are_named_by_their_line(
    finished: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any]
) -> None:
    meta = json.loads((finished / "run.json").read_text())
    del meta["agents"]["null"]["records"]  # their checksum
    (finished / "run.json").write_text(json.dumps(meta))
    edit(finished / "records" / "null.jsonl", changes)
    assert run(finished.parent / "set.jsonl", "null", finished) == 2
    assert "null.jsonl:2" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("way", ["answer", "coding"])
def test_records_that_were_changed_after_the_run_are_refused_and_left_as_they_are(
    finished: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    """Where no line parses any more, nothing but the checksum tells it from a torn end."""
    path = finished / "records" / "null.jsonl"
    if way == "coding":
        path.write_text(path.read_text(), "utf-16")
    else:
        edit(path, {"answer": {"word": "edited"}})
    before = path.read_bytes()
    assert run(finished.parent / "set.jsonl", "null", finished) == 2
    assert "checksum" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main(["status", str(finished)]) == 1
    assert "the file of records has changed since the run wrote it" in capsys.readouterr().out


def test_a_removed_lock_file_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = words(tmp_path / "set.jsonl", 9)
    out = tmp_path / "run"
    respond = NullAgent.respond
    calls = []

    def remove_lock(agent: NullAgent, *batch: Any) -> Any:
        calls.append(batch)
        while len(calls) > 1 and not (out / "records" / "null.jsonl").stat().st_size:
            time.sleep(0.001)
        if len(calls) > 1:
            (out / "lock").unlink(missing_ok=True)
        return respond(agent, *batch)

    monkeypatch.setattr(NullAgent, "respond", remove_lock)
    assert run(source, "null", out, "--batch-size", "1") == 4
    assert f"{out / 'lock'} was removed during the run" in capsys.readouterr().err
    assert 0 < len(answers(out, "null")) < 9


def test_a_second_writer_is_told_of_the_first_whatever_that_has_come_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = words(tmp_path / "set.jsonl", 3)
    out = tmp_path / "run"
    out.mkdir()
    with lock(out):
        for name in (".stimuli.new.abcd1234", "stimuli.new", ".run.json.abcd1234"):
            (out / name).touch()
        assert run(source, "null", out) == 4
    assert f"{out} is being written by process {os.getpid()}" in capsys.readouterr().err
    assert run(source, "null", out) == 0


def test_bad_input_starts_nothing_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = words(tmp_path / "set.jsonl", 3)
    with source.open("a") as file:
        file.write('{"id": "w001", "task": "word_association", "cue": ""}\nnot json\n')
    assert run(source, "null", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert "set.jsonl:4: cue" in said
    assert "set.jsonl:5" in said
    assert "duplicate" in said
    assert not (tmp_path / "run").exists()
    assert run(source, "nul", tmp_path / "run", "--set", "x.y=1") == 2
    assert "did you mean null" in capsys.readouterr().err
    assert run(conversations(tmp_path / "talks.jsonl"), "mmcq~null", tmp_path / "run") == 2
    assert "mmcq does not converse: it answers color_estimation" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert run(source, "null", tmp_path) == 2
    assert "is not empty and not a run folder" in capsys.readouterr().err


def test_rows_of_another_task_than_the_options_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = Path(__file__).parents[3] / "examples" / "demo.jsonl"
    tasks = [json.loads(line)["task"] for line in demo.read_text("utf-8").splitlines()]
    others = len(tasks) - tasks.count("color_estimation")
    assert main(["generate", str(demo), "--task", "color", "--agents", "null", "-o", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert f"{others} rows with another task than the one that is asked: leave out task (--task)" in said
    assert "but the task that is asked is" not in said
    assert "--skip-invalid" not in said


def test_skip_invalid_writes_failed_records(tmp_path: Path) -> None:
    PILImage.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    (tmp_path / "text.jpg").write_text("no picture")
    rows: list[Any] = [
        {"id": "good", "task": "color_estimation", "image": "a.png"},
        {"id": "missing", "task": "color_estimation", "image": "nowhere.png"},
        {"id": "text", "task": "color_estimation", "image": "text.jpg"},
        {"id": "odd", "task": "color_estimation", "image": "a.png", "colour": ["red"]},
        {"id": "good", "task": "color_estimation", "image": "a.png"},
    ]
    source = tmp_path / "set.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{\n")
    assert run(source, "null", tmp_path / "run", "--skip-invalid") == 1
    found = {r["stimulus"]: r for r in records(tmp_path / "run", "null")}
    assert {name: r["status"] for name, r in found.items()} == {
        "good": "ok",
        "missing": "failed",
        "text": "failed",
        "odd": "failed",
    }
    assert found["missing"]["error"]["code"] == "invalid_stimulus"
    assert "colour" in found["odd"]["error"]["message"]
    # once the picture is there, the stimulus can be answered
    PILImage.new("RGB", (8, 8), "blue").save(tmp_path / "nowhere.png")
    assert run(source, "null", tmp_path / "run", "--skip-invalid", "--retry-failed") == 1
    assert {r["stimulus"]: r["status"] for r in records(tmp_path / "run", "null")}["missing"] == "ok"


def conversations(path: Path, **more: Any) -> Path:
    """A set of three conversations of four messages, "c0" to "c2"."""
    about = {"task": "conversation", "topic": "books", "exchanges": 4, "names": ["Ann", "Bob"], **more}
    path.write_text("".join(json.dumps({"id": f"c{number}", **about}) + "\n" for number in range(3)))
    return path


@pytest.mark.parametrize("pair", ["null~null", "null-one~null"])
def test_conversations_alternate_and_are_the_same_again(pair: str, tmp_path: Path) -> None:
    bursts = conversations(tmp_path / "bursts.jsonl", mode="burst", exchanges=8)
    assert run(bursts, pair, tmp_path / "b") == run(bursts, pair, tmp_path / "b1", "--batch-size", "1") == 0
    assert answers(tmp_path / "b", pair) == answers(tmp_path / "b1", pair)
    source = conversations(tmp_path / "set.jsonl", who_starts="B", opener="Hi!")
    assert run(source, pair, tmp_path / "run") == run(source, pair, tmp_path / "again", "--batch-size", "1") == 0
    found = answers(tmp_path / "run", pair)
    assert found == answers(tmp_path / "again", pair)
    assert not (tmp_path / "run" / "turns").exists()
    if pair == "null~null":  # conversations advance together
        assert max(record["worker"]["batch_size"] for record in records(tmp_path / "run", pair)) > 1
    sides = dict(zip(["Ann", "Bob"], pair.split("~"), strict=True))
    for status, _, answer, _ in found.values():
        messages = answer["messages"]
        assert status == "ok"
        assert [m["turn"] for m in messages] == list(range(4))
        assert [m["speaker"] for m in messages] == ["Bob", "Ann"] * 2
        assert len({m["text"] for m in messages}) == 4
        assert all(m["agent"] == sides[m["speaker"]] for m in messages)
        assert messages[0]["text"] == "Hi!"


def test_unfinished_conversations_go_on_from_their_journal_and_a_limit_keeps_it(tmp_path: Path) -> None:
    source = conversations(tmp_path / "set.jsonl", who_starts="A")
    out = tmp_path / "run"
    pair = "null~null"
    assert run(source, pair, out, "--limit", "1") == 0
    (out / "turns").mkdir(exist_ok=True)
    said = [{"text": f"said {turn}", "raw": None, "finish": None, "delay_s": None} for turn in range(2)]
    about = {"stimulus": "c2", "sample": 0, "conversation_attempt": 0, "attempts": [], "worker": None}
    lines = [json.dumps({**about, "turn": turn, "answer": answer}) for turn, answer in enumerate(said)]
    (out / "turns" / f"{pair}.jsonl").write_text("\n".join(lines) + '\n{"stimulus": "c2", "torn')
    assert run(source, pair, out, "--limit", "2") == 0
    assert run(source, pair, out) == 0
    texts = {r["stimulus"]: [m["text"] for m in r["answer"]["messages"]] for r in records(out, pair)}
    assert texts["c2"][:2] == ["said 0", "said 1"]
    assert len(texts["c2"]) == 4
    assert all("said" not in text for text in [*texts["c1"], *texts["c2"][2:]])


@pytest.mark.parametrize("kind", ["HM", "HH"])
def test_a_pair_of_machines_is_not_asked_to_converse_as_people(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = conversations(tmp_path / "set.jsonl", type=kind)
    assert run(source, "null~null", tmp_path / "run") == 2
    assert f"null~null: answers conversation, but the set has conversation ({kind})" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    lines = source.read_text().splitlines()
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("\n".join([lines[0], lines[1].replace(f'"type": "{kind}"', '"type": "MM"')]) + "\n")
    assert run(mixed, "null~null", tmp_path / "run") == 0
    assert answers(tmp_path / "run", "null~null").keys() == {("c1", 0)}
    assert f"conversation ({kind}): 1 stimulus, and none of these agents answers it" in capsys.readouterr().out


def test_an_agent_has_begun_once_it_has_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = words(tmp_path / "set.jsonl", 3)
    out = tmp_path / "run"
    assert run(source, "null", out, "--set", "null.fail_load=true") == 3
    assert "told to fail while loading" in capsys.readouterr().out
    assert run(source, "null", out) == 0


def test_an_agent_without_a_stimulus_of_its_task_and_mode_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = words(tmp_path / "set.jsonl", 3)
    out = tmp_path / "run"
    assert run(source, "null,mmcq", out) == 2
    assert "answers color_estimation, but the set has word_association" in capsys.readouterr().err
    assert run(EXAMPLES / "images", "seeker", out, "--task", "attention") == 2
    expected = "answers attention_prediction (search), but the set has attention_prediction (free)"
    assert expected in capsys.readouterr().err
    assert not out.exists()


def test_a_folder_that_cannot_be_trusted_is_refused(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (finished / "run.json").unlink()
    assert run(finished.parent / "set.jsonl", "null", finished, "--seed", "9") == 2
    assert "has records (null.jsonl) but no run.json" in capsys.readouterr().err


def test_the_summary_names_a_command_that_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = words(tmp_path / "set.jsonl", 40)
    out = tmp_path / "a run"
    for command, more in (("view", ["--limit", "3"]), ("status", [])):
        assert run(source, "null", out, "--set", "null.fail=w003", *more) == (command == "status")
        [shown] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("next: ")]
        assert build_parser().parse_args(shlex.split(shown)[2:]).command == command
        assert str(out) in shown
    assert run(source, "null", tmp_path / "quiet", "-q") == 0
    assert capsys.readouterr().err == ""
