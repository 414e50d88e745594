"""``turinglike generate`` from its entry point: the real agents over Ray, the rest over workers in this process."""

from __future__ import annotations

import codecs
import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import in_process
import pytest
from PIL import Image as PILImage

from serving.cli import main
from serving.runs.atomic_files import lock
from serving.runs.records import Record

EXAMPLES = Path(__file__).parents[2] / "examples"


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
    source, out = words(tmp_path / "set.jsonl", 30), tmp_path / "run"
    assert run(source, "null,echo", out, "--samples", "2") == 0
    keys = {(f"w{i:03d}", sample) for i in range(30) for sample in (0, 1)}
    assert answers(out, "null").keys() == answers(out, "echo").keys() == keys
    before = (out / "records" / "null.jsonl").read_bytes()
    capsys.readouterr()
    assert run(source, "null,echo", out, "--samples", "2") == 0
    assert "nothing is left to answer" in capsys.readouterr().out
    assert (out / "records" / "null.jsonl").read_bytes() == before
    assert (out / "stimuli.jsonl").read_text().count("\n") == 30


def test_order_batches_and_replicas_change_no_answer(tmp_path: Path) -> None:
    plain = words(tmp_path / "set.jsonl", 100)
    shuffled = words(tmp_path / "other.jsonl", 100, shuffled=3)
    variants: list[tuple[Path, list[str]]] = [
        (plain, []),
        (plain, ["--batch-size", "1"]),
        (plain, ["--batch-size", "7", "--replicas", "2"]),
        (shuffled, ["--batch-size", "64"]),
    ]
    found = []
    for number, (source, more) in enumerate(variants):
        out = tmp_path / f"run{number}"
        assert (
            run(source, "null", out, "--seed", "5", "--set", "null.reject=0.3", "--set", "null.attempts=9", *more) == 0
        )
        found.append(answers(out, "null"))
    assert all(one == found[0] for one in found)
    hashes = {json.loads((tmp_path / f"run{n}" / "run.json").read_text())["set"]["sha256"] for n in range(4)}
    assert len(hashes) == 1


@pytest.mark.usefixtures("ray_address")
def test_the_real_agents_answer_the_examples_alike_in_any_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other in this process, and in batches over Ray, as users have it."""
    rows = [json.loads(line) for line in (EXAMPLES / "demo.jsonl").read_text().splitlines()]
    pictures = {row["id"]: {"image": str(EXAMPLES / row["image"])} for row in rows if "image" in row}
    rows = [{**row, **pictures.get(row["id"], {})} for row in rows if not row["id"].endswith("broken")]
    agents = ("mmcq", "mmcq-lab", "gbvs", "eliza~eliza")
    found = []
    for number, more in enumerate((["--batch-size", "1"], ["--batch-size", "7", "--replicas", "2"])):
        random.Random(number).shuffle(rows)
        source = tmp_path / f"set{number}.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        out = tmp_path / f"run{number}"
        if number:
            monkeypatch.undo()
        assert run(source, ",".join(agents), out, *more) == 0
        found.append([answers(out, agent) for agent in agents])
    assert found[0] == found[1]
    versions = json.loads((tmp_path / "run0" / "run.json").read_text())["agents"]["gbvs"]["versions"]
    assert {"torch", "numpy", "pillow"} <= versions.keys()


def test_a_run_grows_by_stimuli_agents_and_samples(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(words(tmp_path / "set.jsonl", 10), "null", out) == 0
    first = answers(out, "null")
    assert run(words(tmp_path / "set.jsonl", 25, shuffled=1), "null,null-one", out, "--samples", "2") == 0
    grown = answers(out, "null")
    assert len(grown) == len(answers(out, "null-one")) == 50
    assert {key: grown[key] for key in first} == first
    assert run(words(tmp_path / "set.jsonl", 25), "null", out, "--limit", "3") == 0


@pytest.mark.parametrize(
    ("change", "more", "says"),
    [
        ({"count": 9}, [], "w009: is missing from the set"),
        ({"cue": "other"}, [], "w000: has changed since the run began"),
        ({}, ["--seed", "6"], "seed: the run has 0, given is 6"),
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


def test_a_changed_picture_is_another_stimulus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def paint(name: str, color: str) -> None:
        PILImage.new("RGB", (8, 8), color).save(tmp_path / name)

    for name in ("a.png", "b.png"):
        paint(name, "red")
    rows = [{"id": name, "task": "color_estimation", "image": f"{name}.png"} for name in ("a", "b")]
    source = tmp_path / "set.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(source, "null", tmp_path / "run") == 0
    os.utime(tmp_path / "a.png")  # touched, the same bytes: still the same stimulus
    assert run(source, "null", tmp_path / "run") == 0
    paint("b.png", "blue")
    assert run(source, "null", tmp_path / "run", "--samples", "2") == 2
    assert "b: has changed since the run began" in capsys.readouterr().err


def test_failed_answers_are_kept_and_can_be_tried_again(tmp_path: Path) -> None:
    source, out, marker = words(tmp_path / "set.jsonl", 12), tmp_path / "run", tmp_path / "fixed"
    crash = ["--set", "null.crash=w00[35]", "--set", f"null.crash_unless={marker}", "--batch-size", "1"]
    marker.touch()
    assert run(source, "null", out, *crash) == 0
    for record in (path := out / "records" / "null.jsonl").read_text().splitlines()[:2]:
        failed = json.loads(record) | {"status": "failed", "answer": None, "error": {"code": "x", "message": "y"}}
        with path.open("a") as file:
            file.write(json.dumps(failed) + "\n")
    assert run(source, "null", out, *crash) == 1
    # the last line of a key counts, and a finished run has one line per key
    assert [r["status"] for r in records(out, "null")].count("failed") == 2
    assert len(answers(out, "null")) == 12
    assert run(source, "null", out, *crash, "--retry-failed") == 0
    assert {status for status, *_ in answers(out, "null").values()} == {"ok"}


def test_the_breaker_leaves_the_rest_unanswered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = words(tmp_path / "set.jsonl", 300)
    assert run(source, "null,null-one", tmp_path / "run", "--set", "null.fail=.") == 3
    assert len(records(tmp_path / "run", "null")) == 20
    assert len(records(tmp_path / "run", "null-one")) == 300
    assert "null: 0 ok, 20 failed, 280 unanswered" in capsys.readouterr().out


def test_pictures_that_are_cut_off_stop_no_agent(tmp_path: Path) -> None:
    PILImage.effect_noise((64, 64), 90).convert("RGB").save(tmp_path / "whole.jpg")
    whole = (tmp_path / "whole.jpg").read_bytes()
    (folder := tmp_path / "set").mkdir()
    for number in range(80):
        (folder / f"{number:02d}.jpg").write_bytes(whole[:700] if number < 60 else whole)
    out = tmp_path / "run"
    assert main(["generate", str(folder), "--task", "color_estimation", "--agents", "mmcq", "--out", str(out)]) == 1
    assert Counter(r["status"] for r in records(out, "mmcq")) == {"failed": 60, "ok": 20}


def test_what_failed_is_tried_again_after_what_is_new_and_does_not_stop_the_agent_again(tmp_path: Path) -> None:
    source, out = words(tmp_path / "set.jsonl", 70), tmp_path / "run"
    fails, again = ["--set", "null.fail=w00|w01|w02"], "--retry-failed"  # 30, always
    assert run(source, "null", out, *fails, "--limit", "15") == 1
    assert run(source, "null", out, *fails, "--limit", "30") == 1
    assert run(source, "null", out, *fails, again, "--batch-size", "1") == 1
    assert all(r["stimulus"] >= "w030" for r in records(out, "null")[:30])
    before = records(out, "null")
    assert Counter(r["status"] for r in before) == {"failed": 30, "ok": 40}
    for _ in range(2):
        assert run(source, "null", out, *fails, again) == 1
        assert len(answers(out, "null")) == 70  # a line each


def test_an_agent_that_stops_leaves_one_line_of_what_was_tried_again(tmp_path: Path) -> None:
    source, out = words(tmp_path / "set.jsonl", 100), tmp_path / "run"
    for _ in range(3):
        assert run(source, "null", out, "--set", "null.fail=.", "--retry-failed") == 3
        assert len(answers(out, "null")) in (20, 40, 60)


EDITS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "answer": lambda record: record | {"answer": {"word": "edited"}},
    "seed": lambda record: record | {"seed": record["seed"] + 1},
    "agent": lambda record: record | {"agent": "other"},
    "task": lambda record: record | {"task": "no_such"},
    "schema": lambda record: record | {"schema": "turinglike.record/9"},
    "stimulus": lambda record: record | {"stimulus": 5},
    "no stimulus": lambda record: record | {"stimulus": None},
    **{
        f"sample {json.dumps(sample)[:5]}": lambda record, sample=sample: record | {"sample": sample}
        for sample in ("0", 0.5, None, [0], 2**70, 1e300, -1, True)
    },
    "error": lambda record: record | {"status": "failed", "error": None, "answer": None},
    **{
        f"code {json.dumps(code)}": lambda record, code=code: (
            record | {"status": "failed", "error": {"code": code, "message": "x"}, "answer": None}
        )
        for code in (None, 5, ["x"], {"x": 1})
    },
    **{f"seed {json.dumps(seed)}": lambda record, seed=seed: record | {"seed": seed} for seed in ("x", -1, 0.5)},
    "word": lambda record: record | {"answer": record["answer"] | {"word": 5}},
    "word left out": lambda record: record | {"answer": {}},
}


@pytest.mark.parametrize("covered", [True, False], ids=["finished", "killed"])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_records_that_were_edited_are_not_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: Callable[[dict[str, Any]], Any], covered: bool
) -> None:
    source, out = words(tmp_path / "set.jsonl", 3), tmp_path / "run"
    assert run(source, "null", out) == 0
    path, about = out / "records" / "null.jsonl", out / "run.json"
    assert main(["status", str(out)]) == 0
    if not covered:
        meta = json.loads(about.read_text())
        del meta["agents"]["null"]["records"]
        about.write_text(json.dumps(meta))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], json.dumps(edit(json.loads(lines[1]))), lines[2]]) + "\n")
    capsys.readouterr()
    if not covered and edit in (EDITS["answer"], EDITS["seed"]):
        return  # nothing tells it before the run has ended once
    assert run(source, "null", out) == 2
    said = capsys.readouterr().err.splitlines()
    assert "null.jsonl" in said[-1]
    assert ("checksum" in said[-1]) == covered
    assert covered or "null.jsonl:2" in said[-1]
    if covered:
        assert main(["status", str(out)]) == 1
        assert "the records are not those that the run wrote" in capsys.readouterr().out


@pytest.mark.parametrize("coding", ["utf-16", "rot13"])
def test_an_encoded_file_of_records_is_refused_and_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], coding: str
) -> None:
    """Where no line parses any more, nothing but the checksum tells it from a torn end."""
    source, out = words(tmp_path / "set.jsonl", 3), tmp_path / "run"
    assert run(source, "null", out) == 0
    path = out / "records" / "null.jsonl"
    path.write_text(codecs.encode(path.read_text(), "rot13") if coding == "rot13" else path.read_text(), "utf-16")
    before = path.read_bytes()
    assert run(source, "null", out) == 2
    assert "checksum" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_removed_lock_file_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = words(tmp_path / "set.jsonl", 3000), tmp_path / "run"
    removed = threading.Timer(0.5, lambda: (out / "lock").unlink())
    removed.start()
    slow = ["--set", "null.delay_s=0.001", "--batch-size", "1"]
    assert run(source, "null", out, *slow) == 4
    assert f"{out / 'lock'} was removed during the run" in capsys.readouterr().err
    before = len(answers(out, "null"))
    assert 0 < before < 3000
    assert run(source, "null", out, *slow) == 0
    assert len(answers(out, "null")) == 3000


def test_a_second_writer_is_told_of_the_first_whatever_that_has_come_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = words(tmp_path / "set.jsonl", 3), tmp_path / "run"
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


def test_skip_invalid_writes_failed_records(tmp_path: Path) -> None:
    PILImage.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    (tmp_path / "text.jpg").write_text("no picture")
    rows: list[Any] = [
        {"id": "good", "task": "color_estimation", "image": "a.png"},
        {"id": "missing", "task": "color_estimation", "image": "nowhere.png"},
        {"id": "text", "task": "color_estimation", "image": "text.jpg"},
        {"id": "odd", "task": "color_estimation", "image": "a.png", "colour": "red"},
        {"id": "good", "task": "color_estimation", "image": "a.png"},
    ]
    source = tmp_path / "set.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{\n")
    assert run(source, "null", tmp_path / "run", "--skip-invalid") == 1
    found = {r["stimulus"]: r for r in records(tmp_path / "run", "null")}
    assert {name: r["status"] for name, r in found.items()} == {
        "good": "ok", "missing": "failed", "text": "failed", "odd": "failed",
    }  # fmt: skip
    assert found["missing"]["error"]["code"] == "invalid_stimulus"
    assert "colour" in found["odd"]["error"]["message"]
    # once the picture is there, the stimulus can be answered
    PILImage.new("RGB", (8, 8), "blue").save(tmp_path / "nowhere.png")
    assert run(source, "null", tmp_path / "run", "--skip-invalid", "--retry-failed") == 1
    assert {r["stimulus"]: r["status"] for r in records(tmp_path / "run", "null")}["missing"] == "ok"


def test_a_picture_that_breaks_when_decoded_fails_alone(tmp_path: Path) -> None:
    PILImage.effect_noise((64, 64), 90).convert("RGB").save(tmp_path / "a.jpg")
    (tmp_path / "b.jpg").write_bytes((tmp_path / "a.jpg").read_bytes()[:700])
    out = tmp_path / "run"
    assert main(["generate", str(tmp_path), "--task", "color_estimation", "--agents", "mmcq", "--out", str(out)]) == 1
    assert {r["stimulus"]: (r["status"], (r["error"] or {}).get("code")) for r in records(out, "mmcq")} == {
        "a.jpg": ("ok", None), "b.jpg": ("failed", "bad_image"),
    }  # fmt: skip


@pytest.mark.parametrize("pair", ["null~null", "null-one~null"])
def test_conversations_alternate_and_are_the_same_again(pair: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": f"c{i}", "task": "conversation", "topic": "books", "exchanges": 5 + i, "names": ["Ann", "Bob"]}
        for i in range(6)
    ]
    rows[0] |= {"who_starts": "B", "opener": "Hi!"}
    source = tmp_path / "set.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(source, pair, tmp_path / "run") == run(source, pair, tmp_path / "again", "--batch-size", "1") == 0
    assert answers(tmp_path / "run", pair) == answers(tmp_path / "again", pair)
    assert not (tmp_path / "run" / "turns").exists()
    if pair == "null~null":  # conversations advance together
        assert max(record["worker"]["batch_size"] for record in records(tmp_path / "run", pair)) > 3
    for (name, _), (status, _, answer, _) in answers(tmp_path / "run", pair).items():
        messages = answer["messages"]
        assert status == "ok"
        assert len(messages) == 5 + int(name[1:])
        assert [m["turn"] for m in messages] == list(range(len(messages)))
        assert all(a["speaker"] != b["speaker"] for a, b in pairwise(messages))
        assert len({m["text"] for m in messages}) == len(messages)
        sides = dict(zip(["Ann", "Bob"], pair.split("~"), strict=True))
        assert all(m["agent"] == sides[m["speaker"]] for m in messages)
        if name == "c0":
            assert (messages[0]["speaker"], messages[0]["text"]) == ("Bob", "Hi!")


def journalled(stimulus: str, turn: int) -> dict[str, Any]:
    """A line of the journal but for its answer."""
    keys = {"stimulus": stimulus, "sample": 0, "conversation_attempt": 0, "turn": turn}
    return {**keys, "attempts": [], "worker": None}


def test_an_unfinished_conversation_goes_on_from_its_journal(tmp_path: Path) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text('{"id": "c", "task": "conversation", "exchanges": 6, "who_starts": "A"}\n')
    pair, out = "null~null", tmp_path / "run"
    assert run(source, pair, out) == 0
    path = out / "records" / f"{pair}.jsonl"
    path.unlink()
    (out / "turns").mkdir()
    said = [{"text": f"said {turn}", "raw": None, "finish": None, "delay_s": None} for turn in range(2)]
    lines = [json.dumps({**journalled("c", turn), "answer": answer}) for turn, answer in enumerate(said)]
    (out / "turns" / f"{pair}.jsonl").write_text("\n".join(lines) + '\n{"stimulus": "c", "torn')
    assert run(source, pair, out) == 0
    [record] = records(out, pair)
    texts = [message["text"] for message in record["answer"]["messages"]]
    assert texts[:2] == ["said 0", "said 1"]
    assert len(texts) == 6
    assert all(text.startswith(("A says", "B says")) for text in texts[2:])


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    source, out = words(tmp_path / "set.jsonl", 3), tmp_path / "run"
    out.mkdir()
    holder = (
        "import sys, time; from pathlib import Path; from serving.runs.atomic_files import lock\n"
        "with lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", holder, str(out)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        second = subprocess.run(
            [sys.executable, "-m", "serving.cli", "generate", str(source), "--agents", "null", "--out", str(out)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 4
        assert f"is being written by process {process.pid}" in second.stderr
        process.kill()
    assert run(source, "null", out) == 0


def test_a_picture_that_could_not_be_read_once_must_be_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, source, out = tmp_path / "a.png", tmp_path / "set.jsonl", tmp_path / "run"
    PILImage.new("RGB", (8, 8), "red").save(picture)
    source.write_text('{"id": "a", "task": "color_estimation", "image": "a.png"}\n')
    assert run(source, "null", out) == 0
    red = picture.read_bytes()
    picture.unlink()
    assert run(source, "null", out, "--skip-invalid") == 0
    PILImage.new("RGB", (8, 8), "blue").save(picture)
    assert run(source, "null", out) == 2
    assert "a: has changed since the run began" in capsys.readouterr().err
    picture.write_bytes(red)
    assert run(source, "null", out) == 0


def test_a_turn_that_cannot_be_said_fails_its_conversation_alone(tmp_path: Path) -> None:
    rows = [{"id": f"c{i}", "task": "conversation", "exchanges": 4, "who_starts": "A"} for i in range(3)]
    source, out = tmp_path / "set.jsonl", tmp_path / "run"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(source, "null~null", out, "--set", "null.fail=c1") == 1
    found = {r["stimulus"]: r for r in records(out, "null~null")}
    assert {name: r["status"] for name, r in found.items()} == {"c0": "ok", "c1": "failed", "c2": "ok"}
    assert found["c1"]["error"]["code"] == "told_to_fail"
    assert found["c1"]["worker"] is not None


def test_a_limit_keeps_the_journal_of_the_other_conversations(tmp_path: Path) -> None:
    rows = [{"id": f"c{i}", "task": "conversation", "exchanges": 4, "who_starts": "A"} for i in range(3)]
    source, out, pair = tmp_path / "set.jsonl", tmp_path / "run", "null~null"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(source, pair, out, "--limit", "1") == 0
    answer = {"text": "said before", "raw": None, "finish": None, "delay_s": None}
    line = {**journalled("c2", 0), "answer": answer}
    (out / "turns").mkdir(exist_ok=True)
    (out / "turns" / f"{pair}.jsonl").write_text(json.dumps(line) + "\n")
    assert run(source, pair, out, "--limit", "2") == 0
    assert run(source, pair, out) == 0
    texts = {r["stimulus"]: r["answer"]["messages"][0]["text"] for r in records(out, pair)}
    assert texts["c2"] == "said before"
    assert texts["c1"] != "said before"


def test_a_pair_must_be_able_to_converse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text('{"id": "c", "task": "conversation", "exchanges": 4}\n')
    assert run(source, "mmcq~null", tmp_path / "run") == 2
    assert "mmcq does not converse: it answers color_estimation" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_agent_has_begun_once_it_has_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = words(tmp_path / "set.jsonl", 3), tmp_path / "run"
    assert run(source, "null", out, "--set", "null.fail_load=true") == 3
    assert "told to fail while loading" in capsys.readouterr().out
    assert run(source, "null", out) == 0
    assert run(source, "null,mmcq", tmp_path / "other") == 2
    assert "answers color_estimation, but the set has word_association" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda out: (out / "run.json").unlink(), "has records (null.jsonl) but no run.json"),
        (lambda out: (out / "run.json").write_text("{"), "is damaged"),
        (lambda out: (out / "run.json").write_text('{"schema": "turinglike.run/1", "agents": 5}'), "is damaged"),
        (lambda out: (out / "run.json").write_text('{"schema": "turinglike.run/9"}'), "newer version"),
    ],
)
def test_a_folder_that_cannot_be_trusted_is_refused(
    damage: Callable[[Path], Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = words(tmp_path / "set.jsonl", 3), tmp_path / "run"
    assert run(source, "null", out) == 0
    damage(out)
    assert run(source, "null", out, "--seed", "9") == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("name", ["stimuli.jsonl", "stimuli.index"])
@pytest.mark.parametrize("damage", ["gone", "cut", "garbage"])
def test_rows_and_index_are_made_again_from_the_same_set(name: str, damage: str, tmp_path: Path) -> None:
    source, out = words(tmp_path / "set.jsonl", 20), tmp_path / "run"
    assert run(source, "null", out) == 0
    path = out / name
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:40] if damage == "cut" else b"\xff\x00garbage" * 9)
    assert run(source, "null", out) == 0
    assert (out / "stimuli.jsonl").read_text().count("\n") == 20
    assert path.read_bytes() == whole
    if damage == "cut" and name == "stimuli.jsonl":
        path.write_bytes(whole[:40])
        assert run(words(tmp_path / "other.jsonl", 25), "null", out) == 2


def test_an_out_folder_of_somebody_else_is_not_filled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = words(tmp_path / "set.jsonl", 3)
    assert run(source, "null", tmp_path) == 2
    assert "is not empty and not a run folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["set.jsonl"]
