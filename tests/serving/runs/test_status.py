"""Status: counted again the plain way, and what a person is shown."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from serving.runs.status import print_status, status
from tests.helpers.run_folders import agent_entry, attempt, failed, record, stimulus, write_run

COLOR = "color_estimation"
CAPTION = "image_captioning"


def _run(tmp_path: Path, **changes: Any) -> Path:
    """Two tasks, three agents: mmcq complete, blip with everything that can happen, gbvs not begun."""
    stimuli = [stimulus(name) for name in "abc"] + [stimulus(name, CAPTION) for name in "vwxyz"]
    blip = [
        record("v", CAPTION, "blip", created="2025-01-01T00:00:00.000Z"),
        record("w", CAPTION, "blip", attempts=[attempt("two words"), attempt("again")]),
        record("x", CAPTION, "blip", status="rejected", attempts=[attempt("no"), attempt("there is", "starts")]),
        failed("y", task=CAPTION, agent="blip", message="cannot be decoded"),
        record("v", CAPTION, "blip", attempts=[attempt("noted", rejected=False)], created="2025-01-01T00:00:04.000Z"),
    ]
    agents = {
        "mmcq": agent_entry(COLOR),
        "blip": agent_entry(CAPTION),
        "gbvs": agent_entry("attention_prediction"),
        "late": agent_entry(CAPTION),
    }
    records = {"mmcq": [record(name) for name in "abc"], "blip": blip}
    return write_run(tmp_path / "run", stimuli, {**records, **changes}, agents)


def test_everything_that_can_happen(tmp_path: Path) -> None:
    found = status(_run(tmp_path))
    assert (found["stimuli"], found["run"], found["seed"]) == ({COLOR: 3, CAPTION: 5}, "0123456789ab", 3)
    blip = found["agents"]["blip"]
    counts = ("ok", "rejected", "failed", "unanswered", "expected", "outside")
    assert [blip[key] for key in counts] == [2, 1, 1, 1, 5, 0]
    # Attempts made: one for v (a note is no rejection), three for w, two for x, one for y.
    assert blip["attempts_per_answer"] == 7 / 4
    example = {"stimulus": "y", "sample": 0, "message": "cannot be decoded"}
    assert blip["failures"] == [{"code": "bad_image", "count": 1, "example": example}]
    assert blip["rejections"] == [
        {"filter": "min_words", "count": 3, "example": {"stimulus": "w", "sample": 0, "found": "2 words"}},
        {"filter": "starts", "count": 1, "example": {"stimulus": "x", "sample": 0, "found": "2 words"}},
    ]
    assert blip["notes"] == [
        {"filter": "min_words", "count": 1, "example": {"stimulus": "v", "sample": 0, "found": "2 words"}}
    ]
    assert found["agents"]["gbvs"]["expected"] == found["agents"]["gbvs"]["unanswered"] == 0
    assert found["agents"]["late"]["unanswered"] == 5
    assert found["agents"]["late"]["attempts_per_answer"] is None
    assert found["complete"] is False


def test_what_a_person_sees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _run(tmp_path)
    assert print_status(path) == 0
    cells = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["blip", "machine", "2", "1", "1", "1", "1.75"] in cells
    assert ["blip", "bad_image", "1", "y:", "cannot", "be", "decoded"] in cells
    assert ["blip", "min_words", "3", "w:", "2", "words"] in cells
    assert ["blip", "min_words", "1", "v:", "2", "words"] in cells  # noted, not rejected
    assert print_status(path, json=True) == 0
    assert orjson.loads(capsys.readouterr().out) == status(path)


def test_text_from_models_does_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[2J\r\u202e\n" + "x" * 1000
    rows = [
        failed("a", code="c\x1b", message=evil),
        record("b", CAPTION, status="rejected", attempts=[attempt(evil, "f\x1b")]),
    ]
    print_status(write_run(tmp_path / "run", [stimulus("a"), stimulus("b", CAPTION)], {"mmcq": rows}))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b[2J\\r\\u202e\\n" in out
    assert max(map(len, out.splitlines())) < 400
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**about, "run": evil}))
    print_status(tmp_path / "run")
    assert "\x1b" not in capsys.readouterr().out


def test_damage_is_counted_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Any] = [record("a"), b"broken\n", record("b"), b"{}\n", record("b")]
    path = write_run(tmp_path / "run", [stimulus("a"), stimulus("b")], {"mmcq": rows})
    agent = status(path)["agents"]["mmcq"]
    assert (agent["ok"], agent["unanswered"], agent["damaged"]["lines"]) == (2, 0, 2)
    assert "mmcq.jsonl:2: not JSON" in agent["damaged"]["first"]
    assert print_status(path) == 1
    assert "mmcq: 2 damaged lines; " in capsys.readouterr().out


def test_imports_alone_are_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    humans = [record("a", agent=f"human:{number}", kind="human", created=None) for number in range(3)]
    path = write_run(tmp_path / "run", [], {"humans": humans}, {}, set={}, seed=0, samples=0)
    (path / "stimuli.jsonl").unlink()
    found = status(path)
    assert found["imports"] == {"humans": {"records": 3, "agents": 3, "tasks": {COLOR: 3}, "damaged": None}}
    assert print_status(path) == 0
    assert "imported humans: 3 answers of 3 participants" in capsys.readouterr().out
    with (path / "records" / "humans.jsonl").open("ab") as file:
        file.write(b"{}\n{}\n")
    assert print_status(path) == 1
    assert capsys.readouterr().out.endswith("not complete: damaged\n")


def test_an_unfinished_run_has_rate_and_time_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer in each 2 s, and 40 of 100 stimuli lack one."""
    stimuli = [stimulus(f"s{number:02}") for number in range(100)]
    where = {"host": "h", "device": "cpu", "batch_size": 1}
    rows = []
    for number in range(60):
        created = f"2025-01-01T00:{2 * number // 60:02}:{2 * number % 60:02}.000Z"
        timing = {"waiting": 0.0, "preparing": 0.0, "responding": 2.0}
        place = number * 7 % 100
        rows.append(record(f"s{place:02}", created=created, timing=timing, worker=where))
    path = write_run(tmp_path / "run", stimuli, {"mmcq": rows})
    agent = status(path)["agents"]["mmcq"]
    assert agent["rate"] == 0.5
    assert agent["left"]["value"] == pytest.approx(80, rel=0.01)
    assert agent["left"]["low"] < 80 < agent["left"]["high"]
    print_status(path)
    assert "mmcq: 0.5/s lately; at this pace the rest takes 1 min 20 s (" in capsys.readouterr().out
    complete = write_run(tmp_path / "complete", [stimulus("s00")], {"mmcq": rows[:1]})
    agent = status(complete)["agents"]["mmcq"]
    assert agent["rate"] is None
    assert agent["left"] is None


def test_tokens_of_all_attempts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def text(prompt: int | None, reply: int, model: str = "gpt-4o-2024-08-06", **more: Any) -> dict[str, Any]:
        return {"text": "x", "prompt_tokens": prompt, "tokens": reply, "model": model, **more}

    noted = {**attempt("noted", rejected=False), "raw": text(10, 2)}
    talk = {"topic": "tea", "turns": [text(1000, 50), None, text(2000, 70, reasoning_tokens=30)]}
    provenance = {"digest": "d" * 64, "checkpoint": "gpt-4o", "revision": None}
    more = {"provenance": provenance, "attempts": [{**attempt("no"), "raw": text(10, 9)}, noted]}
    rows = {
        "server": [
            record("v", CAPTION, "server", raw=text(10, 2), **more),
            record("w", CAPTION, "server", raw=talk, provenance=provenance),
        ],
        "local": [record("v", CAPTION, "local", raw={"text": "x", "prompt_tokens": 5, "tokens": 6})],
    }
    path = write_run(tmp_path / "run", [stimulus("v", CAPTION), stimulus("w", CAPTION)], rows)
    agents = status(path)["agents"]
    assert agents["server"]["tokens"] == {"prompt": 3020, "reply": 131, "reasoning": 30}
    assert agents["local"]["tokens"] == {"prompt": 5, "reply": 6, "reasoning": 0}
    print_status(path)
    assert ["server", "3,020", "131", "30"] in [line.split() for line in capsys.readouterr().out.splitlines()]
