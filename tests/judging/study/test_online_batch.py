"""Online tests without people, what is drawn for them, and their export."""

from __future__ import annotations

import http.server
import json
import random
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import server_process
from online_studies import AGENTS, BATCH, made, replies

from judging.study.online.quotas import PARTS, Cell, next_cell
from judging.study.online.state import OnlineTest
from judging.study.online.tests import shortened
from judging.study.settings import Tests as Drawn
from judging.study.state import read_state
from judging.verdicts import read_verdicts
from serving.cli import main
from serving.runs.records import problems


def test_a_batch_that_is_killed_goes_on_and_its_export_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without people, in no time but the tests' own: what was said before the end and after is what an undisturbed
    batch says; the export's verdicts, scored, are those of a judge whose ability is known."""

    def said(agent: str, row: dict[str, Any]) -> Any:
        if row["task"] == "judgement":  # the machine's answers name it: three in four are found
            chance = random.Random(row["id"]).random() < 0.75
            in_first = not row["answer"]["messages"][1]["text"].startswith("person")
            return {"verdict": "machine" if in_first == chance else "human", "reason": None}
        if agent == "questions":  # of whom B is both
            assert all(re.fullmatch("1: .+\n2: .+", one["text"]) for one in row["history"] if one["speaker"] == "B")
        return f"{agent} says {len(row['history'])}. " + "word " * 20

    replies(monkeypatch, said)
    study = made(tmp_path, exchanges=[1, 3], two_machines=0.1, verdicts="each", base=1.0, type_mean=0.3, **BATCH)
    command = ["study", "batch", str(study), "--tests", "60", "--at-once", "20"]
    assert main(command) == 0
    whole = read_state(study).tests.by_id
    events = (study / "events.jsonl").read_bytes()
    (study / "events.jsonl").write_bytes(events[: len(events) * 3 // 5])
    assert main(command) == 0
    resumed = read_state(study).tests.by_id
    assert len(resumed) == 60
    for name, test in whole.items():
        other = resumed[name]
        assert (test.agents, test.condition, test.exchanges) == (other.agents, other.condition, other.exchanges)
        assert (test.asked, test.answers, test.judged) == (other.asked, other.answers, other.judged)
        assert all(len(said.text.split()) < 15 for both in test.answers for said in both.values())
        assert all(one.delay_s > 1 for one in test.asked)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out")]) == 0
    for folder in ("conversations", "verdicts"):
        for path in (tmp_path / "out" / folder / "records").iterdir():
            assert all(problems(json.loads(line)) == [] for line in path.read_text().splitlines())
    table = read_verdicts([tmp_path / "out" / "verdicts"])
    alike = table[table["truth"] == table["beside_truth"]]
    assert alike["stimulus"].nunique() == 6
    apart = table[table["truth"] != table["beside_truth"]]
    assert abs((apart["verdict"] == apart["truth"]).mean() - 0.75) < 0.1
    assert main(["study", "status", str(study)]) == 0
    told = capsys.readouterr().out
    last = apart[apart["turns"] == apart["meta.exchanges"].astype(int) * 2]
    for condition, some in last.groupby("meta.condition"):
        right = (some["verdict"] == some["truth"]).sum()
        assert any(
            line.split()[:4] == ["condition", condition, str(len(some)), str(right)] for line in told.splitlines()
        )
    assert main(["score", str(tmp_path / "out" / "verdicts"), "-o", str(tmp_path / "scores"), "--by", "condition"]) == 0


def test_all_that_is_missing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = made(tmp_path, machine_argues="", machine_deceives="", two_machines=0.5)
    assert main(["study", "check", str(study)]) == 2
    said = capsys.readouterr().err
    assert "agents.machine_argues: name" in said
    assert "agents.machine_deceives: name" in said
    assert main(["study", "batch", str(study), "--tests", "1"]) == 2
    said = capsys.readouterr().err
    assert all(f"batch.{name.removeprefix('batch_')}: name" in said for name in BATCH)
    text = re.sub('(machine_.+) = ""', r'\1 = "eliza"', (study / "study.toml").read_text())
    text = text.replace("http://127.0.0.1:8001/", f"http://127.0.0.1:{server_process.free_port()}/")
    (study / "study.toml").write_text(text.replace("person_deceives = 0.5", "person_deceives = 1.0"))
    assert main(["study", "check", str(study)]) == 2
    said = capsys.readouterr().err
    assert "does not answer; start `turinglike serve`" in said
    assert "machine_deceives" not in said  # which no test has


def test_every_value_has_its_share() -> None:
    """Whatever is drawn before, no number of exchanges, condition or kind is more than one test off its share."""
    settings = Drawn(wanted=100, seed=0, two_machines=0.2, two_people=0.1, person_deceives=0.3)
    held: list[OnlineTest] = []
    for at in range(200):
        cell = next_cell(settings, held, random.Random(at))
        held.append(_held(cell))
        counts = Counter(test.exchanges for test in held)
        assert all(abs(counts[number] - (at + 1) / 4) < 1.5 for number in settings.exchanges)
        for found, share in (
            (sum(test.condition == "person_deceives" for test in held), 0.3),
            (sum(test.pair == "two machines" for test in held), 0.2),
            (sum(test.pair == "two people" for test in held), 0.1),
        ):
            assert abs(found - share * (at + 1)) < 1.5
    cells = Counter((test.exchanges, test.condition, test.pair) for test in held)
    assert len(cells) == 24
    assert {next_cell(settings, held, random.Random(0), kind).pair for kind in PARTS} == set(PARTS)


def _held(cell: Cell) -> OnlineTest:
    return OnlineTest("t", "", "j", ["a", "b"], list(PARTS[cell.pair]), cell.condition, cell.exchanges, "end")


def test_what_a_machine_says_too_much_is_cut() -> None:
    assert shortened("One two. Three four. Five six.", 4) == "One two. Three four."
    assert shortened("one two three four five", 3) == "one two three"
    assert shortened("Fine, thank you", 14) == "Fine, thank you"
    assert shortened("It costs 3.50 dollars a day", 5) == "It costs 3.50 dollars a"
    assert shortened('I said "No." Then Dr. Smith came in', 6) == 'I said "No."'
    assert shortened("x" * 5000, 14) == "x" * 2000


class _Server(http.server.BaseHTTPRequestHandler):
    """A `turinglike serve` of one agent, which no request is right for."""

    requests = 0

    def do_GET(self) -> None:
        self._say(200, {"agents": [{"name": "eliza", "tasks": ["conversation"]}]})

    def do_POST(self) -> None:
        type(self).requests += 1
        self._say(422, {"error": {"code": "wrong", "message": "not this", "request_id": str(self.requests)}})

    def log_message(self, format: str, *values: Any) -> None:
        """Nothing is logged."""

    def _say(self, status: int, body: Any) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())


def test_an_agent_that_cannot_take_a_part_is_named_and_what_makes_tests_void_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("judging.study.agent_server.TRIES", 1)
    names = dict.fromkeys([*AGENTS, *BATCH], "eliza")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        study = made(tmp_path, **names)
        text = (study / "study.toml").read_text()
        (study / "study.toml").write_text(text.replace(":8001/", f":{server.server_port}/"))
        command = ["study", "batch", str(study), "--tests", "3"]
        assert main(command) == 2
        said = capsys.readouterr().err.splitlines()
        assert said[0] == "batch.verdicts: eliza answers conversation, not judgement"
        assert len(said) == 2
        monkeypatch.setattr("judging.study.online.material.OnlineMaterial.served_problems", lambda self: [])
        assert main(command) == 1
        assert "next:" not in capsys.readouterr().out.splitlines()[0]
        assert main(["study", "status", str(study)]) == 0
        assert "  void: 3 eliza: OSError: 422: wrong: not this" in capsys.readouterr().out.splitlines()
        server.shutdown()
