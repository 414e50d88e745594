"""Interrogations: a judge converses with two agents at once, until the clock stops."""

from __future__ import annotations

import asyncio
import csv
import json
import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from online_studies import made, replies
from study_folders import arrived, changed, lobby_of, run

from judging.study.events import Judge, read_state
from judging.study.meetings import Interrogation
from judging.study.study import Study
from judging.verdicts import open_verdicts, read_verdicts
from serving.cli import main
from serving.runs.records import problems

VERDICT = {"act": "judge", "human": 1, "confidence": 0.8, "reason": "so", "codes": []}


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.lobby.LOOK", 0.01)


def timed(folder: Path, **given: Any) -> Path:
    return made(folder, "interrogation", **given)


async def begun(served: Study, people: int = 2) -> tuple[Any, Interrogation, Judge, Judge | None]:
    """The lobby, a test whose clock runs, its judge, and the person whom the judge asks, if there is any."""
    lobby, all_of_them = lobby_of(served), [await arrived(served, "test") for _ in range(people)]
    for person in all_of_them:
        await lobby.at(person, "")
    test = served.state.meeting_of(all_of_them[0].code)
    assert isinstance(test, Interrogation)
    for person in all_of_them:
        if person.code in test.people:
            assert await lobby.move(person, {"test": test.id, "act": "ready"}) is None
    asked = [served.state.judges[code] for code in test.persons()[1:]]
    return lobby, test, served.state.judges[test.people[0]], asked[0] if asked else None


def stop(lobby: Any, test: Interrogation) -> None:
    """The clock, at its end."""
    left = test.seconds - lobby.clock(test)
    lobby.began[test.id] -= left


def say(test: Interrogation, text: str, side: int | None = None, name: str = "") -> dict[str, Any]:
    return {"test": test.id, "act": "say", "side": side, "text": text, "id": name or text}


async def until(lobby: Any, person: Judge, number: int) -> Any:
    """What a person sees once so many messages are there."""
    version = ""
    while True:
        view = await lobby.at(person, version)
        version = view["version"]
        if sum(map(len, view["chats"])) >= number:
            return view


def test_both_write_when_they_like_until_the_clock_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replies(monkeypatch, lambda agent, row: f"to {row['history'][-1]['text']}\nand more")

    async def work(served: Study) -> None:
        lobby, test, judge, person = await begun(served)
        assert person is not None
        side, other = test.people.index(person.code), 3 - test.people.index(person.code)
        assert await lobby.move(person, say(test, "first")) == "judge_first"
        for text in ("a", "b", "b"):  # the last is sent twice
            assert await lobby.move(judge, say(test, text, side)) is None
        assert await lobby.move(judge, say(test, "c", other)) is None
        assert await lobby.move(person, say(test, "d")) is None
        view = await until(lobby, judge, 6)
        chats = {
            side: [(True, "a"), (True, "b"), (False, "d")],
            other: [(True, "c"), (False, "to c"), (False, "and more")],
        }
        seen = [[(each["mine"], each["text"]) for each in chat] for chat in view["chats"]]
        assert seen == [chats[1], chats[2]]
        view = await lobby.at(person, "")
        assert [[each["text"] for each in chat] for chat in view["chats"]] == [["a", "b", "d"]]
        assert 290 < view["seconds_left"] <= 300
        assert await lobby.move(judge, {"test": test.id, **VERDICT}) == "not_your_turn"
        stop(lobby, test)
        for who in (judge, person):
            assert await lobby.move(who, say(test, "late", side)) == "time_over"
        assert await lobby.move(judge, say(test, "b", side)) is None  # it was taken before
        assert (await lobby.at(judge, ""))["act"] == "judge"
        for lacking in ({"human": 3}, {"confidence": None}, {"confidence": 1.1}, {"codes": "all"}, {"reason": None}):
            assert await lobby.move(judge, {"test": test.id, **VERDICT, **lacking}) == "incomplete"
        assert await lobby.move(person, {"test": test.id, **VERDICT}) == "not_your_turn"
        codes = [served.settings.tests.codes[1], "another"]  # type: ignore[union-attr]
        for _ in range(2):
            assert await lobby.move(judge, {"test": test.id, **VERDICT, "codes": codes}) is None
        for who in (judge, person):
            assert (await lobby.at(who, ""))["state"] == "over"
            assert (await served.answer(who, who.step, {})).is_new
        before.append(served.state)

    before: list[Any] = []
    run(study := timed(tmp_path, each=1), work)
    state = read_state(study)
    assert state == before[0]
    assert [len(body["stimulus"]["history"]) for _, body in asked] == [1]
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out")]) == 0
    [verdict] = lines(tmp_path / "out" / "verdicts")
    assert (verdict["answer"]["verdict"], verdict["answer"]["confidence"]) == ("human", 0.8)
    assert len(verdict["raw"]["codes"]) == 1


def lines(folder: Path) -> list[dict[str, Any]]:
    """The records of an exported run, which are all valid."""
    records = [json.loads(line) for path in (folder / "records").iterdir() for line in path.read_text().splitlines()]
    assert not any(problems(record) for record in records)
    return records


def test_a_machine_answers_a_burst_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked after some quiet, and what it has not sent is withdrawn by a message and by the clock."""
    asked = replies(monkeypatch, lambda agent, row: f"to {row['history'][-1]['text']}")

    async def work(served: Study) -> None:
        lobby, test, judge, _ = await begun(served, 1)
        for text in ("a", "b"):
            assert await lobby.move(judge, say(test, text, 1)) is None
        await typed(lobby, test)
        assert [[said["text"] for said in body["stimulus"]["history"]] for _, body in asked] == [["a", "b"]]
        assert await lobby.move(judge, say(test, "c", 1)) is None
        await typed(lobby, test)
        while len(test.withdrawn) < 2:  # the clock stops meanwhile
            await asyncio.sleep(0.02)
        assert [said["text"] for said in test.messages] == ["a", "b", "c"]
        assert await lobby.move(judge, {"test": test.id, **VERDICT}) is None

    async def typed(lobby: Any, test: Interrogation) -> None:
        while not lobby.parts[test.id, 1].transcript.typing[1]:
            lobby.drive(test)
            await asyncio.sleep(0.02)

    run(study := timed(tmp_path, two_machines=1.0, quiet_s=0.3, base=30.0, minutes=0.05), work)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out")]) == 0
    record = next(each for each in lines(tmp_path / "out" / "conversations") if each["raw"]["agent"] == 1)
    withdrawn = [(each["text"], each["turn"], each["why"]) for each in record["answer"]["withdrawn"]]
    assert withdrawn == [("to b", 3, "interrupted"), ("to c", 3, "ended")]


def test_after_a_restart_the_clock_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the time on disk: the server is away for most of a test; a machine answers what was asked before."""
    replies(monkeypatch, lambda agent, row: f"to {row['history'][-1]['text']}")
    names = list[str]()

    async def before(served: Study) -> None:
        lobby, test, judge, _ = await begun(served, 1)
        assert await lobby.move(judge, say(test, "a", 2)) is None
        names.append(judge.code)

    async def after(served: Study) -> None:
        lobby, judge = lobby_of(served), served.state.judges[names[0]]
        view = await lobby.at(judge, "")
        assert 50 < view["seconds_left"] <= 100
        view = await until(lobby, judge, 2)
        assert [each["text"] for each in view["chats"][1]] == ["a", "to a"]

    async def at_the_end(served: Study) -> None:
        lobby, judge = lobby_of(served), served.state.judges[names[0]]
        view = await lobby.at(judge, "")
        assert (view["act"], view["seconds_left"]) == ("judge", 0.0)
        assert await lobby.move(judge, {"test": view["test"], **VERDICT}) is None

    run(study := timed(tmp_path, two_machines=1.0, base=60.0), before)
    for work in (after, at_the_end):
        events = map(json.loads, (study / "events.jsonl").read_text().splitlines())
        times = [{**event, "at": earlier(event["at"], 200)} for event in events]
        (study / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in times))
        run(changed(study, base=0.0), work)
    [test] = read_state(study).meetings.values()
    assert isinstance(test, Interrogation)
    assert [said["clock"] for said in test.messages] == sorted(said["clock"] for said in test.messages)


def earlier(at: str, seconds: float) -> str:
    return (datetime.fromisoformat(at) - timedelta(seconds=seconds)).isoformat()


def test_what_a_judge_is_sent_does_not_tell_who_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two people, of two machines and of both the judge sees the same, from the lobby to the end."""
    replies(monkeypatch, lambda agent, row: "said")
    sent, pairs = [], []
    for number, kinds in enumerate(({"two_people": 1.0}, {"two_machines": 1.0}, {})):
        (folder := tmp_path / str(number)).mkdir()

        async def work(served: Study, people: int = (3, 1, 2)[number]) -> None:
            lobby, test, judge, _ = await begun(served, people)
            pairs.append(test.pair)
            views = [await lobby.at(judge, "")]
            for side in (1, 2):
                assert await lobby.move(judge, say(test, f"to {side}", side)) is None
                if test.parts[side - 1] == "person":
                    person = served.state.judges[test.people[side]]
                    assert await lobby.move(person, say(test, "said")) is None
                views.append(await until(lobby, judge, 2 * side))
            stop(lobby, test)
            views.append(await lobby.at(judge, ""))
            assert await lobby.move(judge, {"test": test.id, **VERDICT}) is None
            views.append(await lobby.at(judge, ""))
            sent.append([{**view, "seconds_left": view["seconds_left"] > 0} for view in views])

        run(timed(folder, seed=number, **kinds), work)
    assert pairs == ["two people", "two machines", "person machine"]
    assert [view["act"] for view in sent[0]] == ["say", "say", "say", "judge", None]
    assert sent[0] == sent[1] == sent[2]


def test_each_machine_is_in_equally_many_tests_and_who_leaves_voids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies(monkeypatch)

    async def work(served: Study) -> None:
        for _ in range(6):
            lobby, test, judge, _ = await begun(served, 1)
            stop(lobby, test)
            assert (await lobby.at(judge, ""))["act"] == "judge"
        assert await lobby.move(judge, {"test": test.id, "act": "back"}) == "not_your_turn"
        due, since = lobby.awaited[test.id]
        lobby.awaited[test.id] = due, since - 181
        assert (await lobby.at(judge, ""))["state"] == "void"
        assert await lobby.move(judge, {"test": test.id, **VERDICT}) == "test_void"
        await served.leave(judge)

    run(study := timed(tmp_path, two_machines=1.0, machines=["x", "y", "z"], participants_wanted=10), work)
    tests = list(read_state(study).meetings.values())
    assert set(Counter(who for test in tests for who in test.people[1:]).values()) == {4}
    assert [test.void for test in tests] == [None] * 5 + ["forgotten"]


def test_a_machine_that_does_not_answer_voids_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies(monkeypatch, lambda agent, row: {})

    async def work(served: Study) -> None:
        lobby, test, judge, _ = await begun(served, 1)
        assert await lobby.move(judge, say(test, "a", 1)) is None
        version = ""
        while (view := await lobby.at(judge, version))["state"] != "void":
            version = view["version"]
        assert await lobby.move(judge, say(test, "b", 1)) == "test_void"

    run(study := timed(tmp_path, two_machines=1.0), work)
    assert str(read_state(study).meetings["test-00001"].void).startswith("deceives: ")


def test_the_win_rate_is_scored(tmp_path: Path) -> None:
    """Of a judge who takes each machine for the human in a known number of tests, by the exact test."""
    study, at = timed(tmp_path), "2026-01-01T00:00:00.000Z"
    joined = {"session": "s", "number": 1, "keys": [], "steps": [], "end_code": "", "link": None, "kit": None}
    events: list[dict[str, Any]] = [{"event": "joined", "judge": code, **joined} for code in ("judge", "other")]
    chance, wins = random.Random(0), {"eliza": 4, "smollm2-135m": 14}
    for number, (machine, nth) in enumerate((machine, nth) for machine in wins for nth in range(20)):
        name, parts = f"test-{number:05}", chance.sample(["person", "machine"], 2)
        agents = ["other" if part == "person" else machine for part in parts]
        about = {"judge": "judge", "agents": agents, "parts": parts, "seconds": 300.0}
        events.append({"event": "test", "test": name, **about})
        events += [{"event": "test_ready", "test": name, "who": who} for who in ("judge", "other")]
        for clock, (who, side) in enumerate([("judge", 1), ("judge", 1), (agents[0], 1), ("judge", 2)], start=1):
            said = {"text": f"{number} {clock}", "clock": float(clock), "id": None}
            events.append({"event": "test_said", "test": name, "who": who, "side": side, **said})
        is_right = nth >= wins[machine]
        verdict = "human" if (parts[0] == "person") is is_right else "machine"
        about = {"verdict": verdict, "confidence": 0.5, "reason": None, "codes": [], "clock": 310.0}
        events.append({"event": "test_judged", "test": name, "who": "judge", **about})
    (study / "events.jsonl").write_text("".join(json.dumps({**event, "at": at}) + "\n" for event in events))
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out")]) == 0
    assert len(lines(tmp_path / "out" / "conversations")) == 80
    table = read_verdicts(open_verdicts([tmp_path / "out" / "verdicts"]))
    assert set(table["meta.minutes"]) == {"5"}
    scores = tmp_path / "scores"
    assert main(["score", str(tmp_path / "out" / "verdicts"), "-o", str(scores)]) == 0
    with (scores / "pass_rates.csv").open() as file:
        rates = {row["agent"]: row for row in csv.DictReader(file)}
    # The binomial distribution of 20 tests with 1/2, both tails: 2 (1 + 20 + 190 + 1140 + 4845) / 2^20, and so on.
    tails = {"eliza": 6196, "smollm2-135m": 60460}
    for machine, won in wins.items():
        assert float(rates[machine]["pass_rate"]) == won / 20
        assert float(rates[machine]["p_exact"]) == pytest.approx(2 * tails[machine] / 2**20)
