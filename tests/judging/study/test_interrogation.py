"""Interrogations: a judge converses with two agents at once, until the clock stops."""

from __future__ import annotations

import asyncio
import csv
import json
import random
from collections import Counter
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judging.scores.verdicts import open_verdicts, read_verdicts
from judging.study.log.meeting import Interrogation
from judging.study.log.state import Judge, read_state
from judging.study.serving_study import ServedStudy
from serving.runs.records import problems
from tests.helpers import misbehaving_server
from tests.helpers.online_studies import made, replies
from tests.helpers.study_folders import (
    BAD,
    arrived,
    begin_in,
    changed,
    lobby_of,
    machines_stop,
    run,
    serving,
    turinglike,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser

VERDICT = {"act": "judge", "human": 1, "confidence": 0.8, "reason": "so", "codes": []}


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.meetings.lobby.LOOK", 0.01)


def timed(folder: Path, **given: Any) -> Path:
    return made(folder, "interrogation", **given)


async def begun(served: ServedStudy, people: int = 2) -> tuple[Any, Interrogation, Judge, Judge | None]:
    """The lobby, a test whose clock runs, its judge, and the person whom the judge asks, if there is any."""
    lobby = lobby_of(served)
    all_of_them = [await arrived(served, "test") for _ in range(people)]
    for person in all_of_them:
        await lobby.at(person, "")
    test = served.state.meeting_of(all_of_them[0].code)
    assert isinstance(test, Interrogation)
    judge, *asked = [served.state.judges[code] for code in test.persons()]
    for person in (judge, *asked):
        assert await lobby.move(person, {"test": test.id, "act": "ready"}) is None
    return lobby, test, judge, asked[0] if asked else None


def stop(lobby: Any, test: Interrogation) -> None:
    """The clock, at its end."""
    left = test.seconds - lobby.clock(test)
    lobby.began[test.id] -= left


def say(test: Interrogation, text: str, side: int | None = None) -> dict[str, Any]:
    return {"test": test.id, "act": "say", "side": side, "text": text, "id": text}


async def until(lobby: Any, person: Judge, number: int) -> Any:
    """What a person sees once so many messages are there."""
    view = await lobby.at(person, "")
    while sum(map(len, view["chats"])) < number:
        view = await lobby.at(person, view["version"])
    return view


def exported(study: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The records of conversations and of verdicts, which are all valid."""
    assert turinglike("study", "export", study, "-o", study.parent / "out") == 0
    files = [study.parent / "out" / name / "records" / "humans.jsonl" for name in ("conversations", "verdicts")]
    both = [list(map(json.loads, path.read_text().splitlines())) for path in files]
    assert not any(problems(record) for records in both for record in records)
    return both[0], both[1]


def test_both_write_when_they_like_until_the_clock_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replies(monkeypatch, lambda agent, row: f"to {row['history'][-1]['text']}\nand more")

    async def work(served: ServedStudy) -> None:
        lobby, test, judge, person = await begun(served)
        assert person is not None
        side = test.people.index(person.code)
        other = 3 - test.people.index(person.code)
        assert await lobby.move(person, say(test, "first")) == "judge_first"
        for text in ("a", "b", "b"):  # the last is sent twice
            assert await lobby.move(judge, say(test, text, side)) is None
        assert await lobby.move(judge, say(test, "c", other)) is None
        assert await lobby.move(person, say(test, "d")) is None
        chats = {side: {"a": True, "b": True, "d": False}, other: {"c": True, "to c": False, "and more": False}}
        view = await until(lobby, judge, 6)
        assert [{each["text"]: each["mine"] for each in chat} for chat in view["chats"]] == [chats[1], chats[2]]
        view = await lobby.at(person, "")
        assert [[each["text"] for each in chat] for chat in view["chats"]] == [["a", "b", "d"]]
        assert 0 < view["seconds_left"] <= 300
        assert await lobby.move(judge, {"test": test.id, **VERDICT}) == "not_your_turn"
        stop(lobby, test)
        for who in (judge, person):
            assert await lobby.move(who, say(test, "late", side)) == "time_over"
        assert await lobby.move(judge, say(test, "b", side)) is None  # it was taken before
        for lacking in ({"human": 3}, {"confidence": None}, {"confidence": 1.1}, {"codes": "all"}, {"reason": None}):
            assert await lobby.move(judge, {"test": test.id, **VERDICT, **lacking}) == "incomplete"
        assert await lobby.move(person, {"test": test.id, **VERDICT}) == "not_your_turn"
        codes = [served.settings.tests.codes[1], "another"]
        for _ in range(2):
            assert await lobby.move(judge, {"test": test.id, **VERDICT, "codes": codes}) is None
        for who in (judge, person):
            assert (await lobby.at(who, ""))["state"] == "over"
            assert (await served.answer(who, who.step, {})).is_new
        before.append(served.state)

    before: list[Any] = []
    run(study := timed(tmp_path, each=1), work)
    assert read_state(study) == before[0]
    assert [len(body["stimulus"]["history"]) for _, body in asked] == [1]
    _, [verdict] = exported(study)
    assert (verdict["answer"]["verdict"], verdict["answer"]["confidence"]) == ("human", 0.8)
    assert len(verdict["raw"]["codes"]) == 1


def test_a_machine_answers_a_burst_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked after some quiet, and what it has not sent is withdrawn by a message and by the clock."""
    asked = replies(monkeypatch, lambda agent, row: f"to {row['history'][-1]['text']}")

    async def work(served: ServedStudy) -> None:
        lobby, test, judge, _ = await begun(served, 1)
        for texts in ("ab", "c"):
            for text in texts:
                assert await lobby.move(judge, say(test, text, 1)) is None
            while not lobby.dialogues[test.id, 1].transcript.typing[1]:
                lobby.drive(test)
                await asyncio.sleep(0.02)
        while len(test.withdrawn) < 2:  # the clock stops meanwhile
            await asyncio.sleep(0.02)
        assert [message.text for message in test.messages] == ["a", "b", "c"]
        assert await lobby.move(judge, {"test": test.id, **VERDICT}) is None

    run(study := timed(tmp_path, two_machines=1.0, quiet_s=0.3, base=30.0, minutes=0.05), work)
    assert [len(body["stimulus"]["history"]) for _, body in asked] == [2, 3]
    [record] = [each for each in exported(study)[0] if each["raw"]["agent"] == 1]
    withdrawn = [(each["text"], each["turn"], each["why"]) for each in record["answer"]["withdrawn"]]
    assert withdrawn == [("to b", 3, "interrupted"), ("to c", 3, "ended")]


def test_after_a_restart_the_clock_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the time on disk: the server is away for most of a test; a machine answers what was asked before."""
    replies(monkeypatch, lambda agent, row: f"to {row['history'][-1]['text']}")

    async def before(served: ServedStudy) -> None:
        lobby, test, judge, _ = await begun(served, 1)
        assert await lobby.move(judge, say(test, "a", 2)) is None

    async def after(served: ServedStudy) -> None:
        [judge] = served.state.judges.values()
        views.append(await until(lobby_of(served), judge, 2))

    views: list[Any] = []
    run(study := timed(tmp_path, two_machines=1.0, base=60.0), before)
    for _ in range(2):
        events = list(map(json.loads, (study / "events.jsonl").read_text().splitlines()))
        for event in events:
            event["at"] = (datetime.fromisoformat(event["at"]) - timedelta(seconds=200)).isoformat()
        (study / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
        run(changed(study, base=0.0), after)
    assert [each["text"] for each in views[0]["chats"][1]] == ["a", "to a"]
    assert 0 < views[0]["seconds_left"] <= 100
    assert (views[1]["act"], views[1]["seconds_left"]) == ("judge", 0.0)


def test_what_a_judge_is_sent_does_not_tell_who_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two people, of two machines and of both the judge sees the same, from the lobby to the end."""
    replies(monkeypatch, lambda agent, row: "said")
    sent = []
    pairs = []
    for number, kinds in enumerate(({"two_people": 1.0}, {"two_machines": 1.0}, {})):
        (folder := tmp_path / str(number)).mkdir()

        async def work(served: ServedStudy, people: int = (3, 1, 2)[number]) -> None:
            lobby, test, judge, _ = await begun(served, people)
            pairs.append(test.pair)
            views = [await lobby.at(judge, "")]
            for side in (1, 2):
                assert await lobby.move(judge, say(test, f"to {side}", side)) is None
                if test.parts[side - 1] == "person":
                    assert await lobby.move(served.state.judges[test.people[side]], say(test, "said")) is None
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


def test_each_machine_has_equally_many_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And who gives no answer makes a test void."""
    replies(monkeypatch, lambda agent, row: {})

    async def work(served: ServedStudy) -> None:
        for _ in range(6):
            lobby, test, judge, _ = await begun(served, 1)
        assert await lobby.move(judge, say(test, "a", 1)) is None
        view = await lobby.at(judge, "")
        while view["state"] != "void":
            view = await lobby.at(judge, view["version"])
        assert await lobby.move(judge, say(test, "b", 1)) == "test_void"
        await machines_stop(lobby)  # the other one, too

    run(study := timed(tmp_path, two_machines=1.0, machines=["x", "y", "z"]), work)
    tests = list(read_state(study).meetings.values())
    assert set(Counter(who for test in tests for who in test.people[1:]).values()) == {4}
    assert [("KeyError" in test.void) if test.void else None for test in tests] == [None] * 5 + [True]


def test_the_win_rate_is_scored(tmp_path: Path) -> None:
    """Of a judge who takes each machine for the human in a known number of tests, by the exact test."""
    study = timed(tmp_path)
    chance = random.Random(0)
    wins = {"eliza": 4, "smollm2-135m": 14}
    joined = {"session": "s", "number": 1, "keys": [], "steps": [], "end_code": "", "link": None, "kit": None}
    events: list[dict[str, Any]] = [{"event": "joined", "judge": code, **joined} for code in ("judge", "other")]
    for number, (machine, nth) in enumerate((machine, nth) for machine in wins for nth in range(20)):
        name = f"test-{number:05}"
        parts = chance.sample(["person", "machine"], 2)
        agents = ["other" if part == "person" else machine for part in parts]
        about: dict[str, Any] = {"judge": "judge", "agents": agents, "parts": parts, "seconds": 300.0}
        events.append({"event": "test", "test": name, **about})
        for clock, (who, side) in enumerate([("judge", 1), ("judge", 1), (agents[0], 1), ("judge", 2)], start=1):
            about = {"text": f"{number} {clock}", "clock": float(clock), "id": None}
            events.append({"event": "test_said", "test": name, "who": who, "side": side, **about})
        verdict = "human" if (parts[0] == "person") is (nth >= wins[machine]) else "machine"
        about = {"verdict": verdict, "confidence": 0.5, "reason": None, "codes": [], "clock": 310.0}
        events.append({"event": "test_judged", "test": name, "who": "judge", **about})
    at = "2026-01-01T00:00:00.000Z"
    (study / "events.jsonl").write_text("".join(json.dumps({**event, "at": at}) + "\n" for event in events))
    assert list(map(len, exported(study))) == [80, 40]
    verdicts = tmp_path / "out" / "verdicts"
    assert set(read_verdicts(open_verdicts([verdicts]))["meta.minutes"]) == {"5"}
    assert turinglike("score", verdicts, "-o", tmp_path / "scores") == 0
    with (tmp_path / "scores" / "pass_rates.csv").open() as file:
        rates = {row["agent"]: row for row in csv.DictReader(file)}
    # Both tails of the binomial distribution of 20 tests: of at most 4, and of at least 14.
    for machine, tail in {"eliza": 6196, "smollm2-135m": 60460}.items():
        assert float(rates[machine]["pass_rate"]) == wins[machine] / 20
        assert float(rates[machine]["p_exact"]) == pytest.approx(2 * tail / 2**20)


def test_two_browsers_converse_until_the_clock_stops(browser: Browser, tmp_path: Path) -> None:
    """With a lost connection and a reload each message is there once; an agent sees one conversation."""
    reply = json.dumps({"answer": {"messages": [{"text": f"I am not sure. {BAD}"}]}}).encode()
    with ExitStack() as running:
        machine = running.enter_context(misbehaving_server.running())
        machine.otherwise = lambda request: misbehaving_server.body(reply)
        study = timed(tmp_path, each=1, minutes=0.4, server=machine.url, seed=1)
        server = running.enter_context(serving(study))
        pages = [begin_in(browser.new_context().new_page(), server.url) for _ in range(2)]
        faults = list[str]()
        for page in pages:
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.get_by_role("button", name="I have read this").click()
        for page in pages:
            page.get_by_text("Time left").wait_for()
        judge, agent = sorted(pages, key=lambda page: page.get_by_text("You are the judge").count(), reverse=True)
        for side in (1, 2):
            judge.get_by_label(f"Agent {side}").last.fill(f"who? {BAD}")
            judge.keyboard.press("Enter")
        judge.get_by_text(f"I am not sure. {BAD}").wait_for()
        agent.get_by_text(f"who? {BAD}").wait_for()
        agent.context.set_offline(True)
        agent.get_by_label("Your message").fill("me")
        agent.keyboard.press("Enter")
        agent.get_by_text("The connection is lost").wait_for()
        agent.context.set_offline(False)
        judge.get_by_text("me", exact=True).wait_for()
        judge.route("**/phrases", lambda route: route.abort(), times=1)  # the server starts again meanwhile
        judge.reload()
        judge.get_by_label("How sure are you?").wait_for()  # the clock has stopped
        assert [judge.get_by_text(text, exact=True).count() for text in ("me", f"who? {BAD}")] == [1, 2]
        assert agent.get_by_text("I am not sure.").count() == 0
        assert not judge.get_by_role("button", name="Send").is_visible()
        judge.get_by_label("Agent 2").last.check()
        judge.get_by_role("button", name="Continue").click()
        judge.get_by_text("Please answer every question").wait_for()  # how sure the judge is
        judge.get_by_label("How sure are you?").press("End")
        judge.get_by_label("a feeling").check()
        judge.get_by_role("button", name="Continue").click()
        for page in (judge, agent):
            page.get_by_text("The test is over").wait_for()
            assert page.title().endswith(" – Which one is the human?")
            page.context.close()
    assert faults == []
    [verdict] = exported(study)[1]
    assert (verdict["answer"]["verdict"], verdict["answer"]["confidence"]) == ("machine", 1.0)
    assert verdict["raw"]["codes"] == ["nothing in particular: a feeling"]
