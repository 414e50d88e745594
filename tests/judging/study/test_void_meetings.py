"""Conversations and tests that do not count: who is told, who is paid, what is exported all the same."""

from __future__ import annotations

import asyncio
import csv
import json
import logging
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judging.study.log.state import Judge, State, read_state
from judging.study.pages.page_answers import Refused
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import view
from serving.cli import main
from tests.helpers import misbehaving_server, online_studies, server_process
from tests.helpers.online_studies import replies
from tests.helpers.study_folders import Visitor, arrived, begin_in, changed, exported, lobby_of, run, serving
from tests.helpers.talk_studies import ALONE, converse, made, say, speak

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FAULT = "eliza: ValueError: no_words: it has none"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.meetings.lobby.LOOK", 0.01)
    monkeypatch.setattr("judging.study.meetings.agent_server.PAUSE", 0.0)


@pytest.fixture
def told() -> Iterator[list[logging.LogRecord]]:
    """What the server's log says of a study."""
    log = logging.getLogger("turinglike.study")
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[assignment, method-assign]
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield records
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


def fails(monkeypatch: pytest.MonkeyPatch, message: str = "it has none") -> None:
    """The agents' server, which answers, has no words."""

    async def record(client: Any, server: str, body: Any) -> dict[str, Any]:
        return {"error": {"code": "no_words", "message": message}}

    monkeypatch.setattr("judging.study.meetings.agent_server.AgentClient.record", record)


def status_of(study: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """What ``study status`` says as JSON and as text."""
    capsys.readouterr()
    assert main(["study", "status", str(study), "--json"]) == 0
    status: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert main(["study", "status", str(study)]) == 0
    return status, capsys.readouterr().out


def participants(folder: Path) -> list[dict[str, str]]:
    with (folder / "participants.csv").open(newline="") as file:
        return list(csv.DictReader(file))


async def ended(served: ServedStudy, judge: Judge, answer: dict[str, Any] | None = None) -> dict[str, Any]:
    """The last page of somebody who goes on after their conversation."""
    assert (await served.answer(judge, judge.step, answer or {})).is_new
    return view(served, judge)


@pytest.mark.parametrize("command", ["check", "serve"])
def test_an_agent_that_no_server_answers_for_is_told_before_anybody_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """A spelling mistake, a server that is away, an agent of pictures; not where no conversation is with an agent."""

    def told(**values: Any) -> str:
        study = changed(made_here, **values)
        capsys.readouterr()
        if command == "check":
            assert main(["study", "check", str(study)]) == 2
            return capsys.readouterr().err
        with serving(study) as server:
            said = server.said()
        assert "conversations with this agent will be void: talk.agent: " in said
        return said

    (tmp_path / "study").mkdir()
    made_here = made(tmp_path / "study", **ALONE)
    agents = {"agents": [{"name": "eliza", "tasks": ["conversation"]}, {"name": "mmcq", "tasks": ["color_estimation"]}]}
    reply = json.dumps(agents).encode()
    answer = partial(misbehaving_server.Handler.send, status=200, body=reply)
    monkeypatch.setattr(misbehaving_server.Handler, "do_GET", lambda handler: answer(handler), raising=False)
    with misbehaving_server.running() as server:
        url = server.url
        said = told(agent="elisa", server=url)
        assert f"talk.agent: {url} does not serve elisa; the server has eliza, mmcq" in said
        assert "mmcq answers color_estimation, not conversation" in told(agent="mmcq")
        assert main(["study", "check", str(changed(made_here, agent="eliza"))]) == 0
    away = f"http://127.0.0.1:{server_process.free_port()}/"
    assert f"talk.agent: {away} does not answer; start `turinglike serve`" in told(server=away)
    assert main(["study", "check", str(changed(made_here, machines=0.0))]) == 0  # who meets people alone


def test_void_conversations_are_counted_by_reason_and_the_log_names_each_reason_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    told: list[logging.LogRecord],
) -> None:
    study = made(tmp_path, 2, **ALONE)
    ends = []

    async def work(served: ServedStudy) -> None:
        for why in ("it has none", "it has none", "it is busy"):
            fails(monkeypatch, why)
            judge = await arrived(served, "talk")
            assert await speak(served, judge, "x") == "void"
            ends.append(await ended(served, judge))
        replies(monkeypatch, lambda agent, row: "hello")
        judge = await arrived(served, "talk")
        assert await speak(served, judge, "x") == "over"
        ends.append(await ended(served, judge, {"guess": "machine"}))
        fails(monkeypatch, "it is busy")  # which is news, as it has answered meanwhile
        judge = await arrived(served, "talk")
        assert await speak(served, judge, "x") == "void"
        await ended(served, judge)

    run(study, work)
    lines = [record.getMessage() for record in told]
    reasons = [re.fullmatch(r"a conversation is void: eliza: ValueError: no_words: (.*); .*", line) for line in lines]
    assert [match and match[1] for match in reasons] == ["it has none", "it is busy", "it is busy"]
    assert {record.levelno for record in told} == {logging.ERROR}  # so that a quiet server says it, too
    status, text = status_of(study, capsys)
    assert status["conversations"] == {"over": 1, "under_way": 0, "void": 4}
    assert status["void"] == {FAULT: 2, FAULT.replace("has none", "is busy"): 2}
    assert status["judges"] == {
        "wanted": 50,
        "joined": 5,
        "finished": 1,
        "finished without a conversation that counts": 4,
    }
    assert "conversations: 1 complete (0 not complete, 4 void)" in text
    assert f"  2 void: {FAULT}" in text
    assert "participants: 1 of 50 finished (5 joined, 4 finished without a conversation that counts)" in text
    assert [end["kind"] for end in ends] == ["end"] * 4
    assert [end.get("note") for end in ends] == ["end_fault"] * 3 + [None]
    assert all(end["code"] for end in ends)  # they are paid
    assert main(["study", "export", str(study), "-o", str(tmp_path / "people"), "--personal"]) == 0
    assert f"conversations that are left out: 2 void ({FAULT}), 2 void (" in capsys.readouterr().out
    rows = [(row["outcome"], row["paid"], row["counts"], row["void"]) for row in participants(tmp_path / "people")]
    assert rows == [("finished", "1", "0", "fault")] * 3 + [("finished", "1", "1", ""), ("finished", "1", "0", "fault")]


def test_who_has_no_conversation_that_counts_takes_nobodys_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And is in the table for payment, even where nothing else can be exported."""

    async def work(served: ServedStudy) -> None:
        for name in ("void", "over"):
            if name == "void":
                fails(monkeypatch)
            else:
                replies(monkeypatch, lambda agent, row: "hello")
            judge = await arrived(served, "talk")
            assert await speak(served, judge, "x") == name
            await ended(served, judge)
            if name == "void":
                assert main(["study", "export", str(study), "-o", str(tmp_path / "none")]) == 2
                assert main(["study", "export", str(study), "-o", str(tmp_path / "pay"), "--personal"]) == 0
        with pytest.raises(Refused, match="no_new"):
            await served.join(None, None)

    study = made(tmp_path, 2, **ALONE, wanted=1, most=1)
    run(study, work)
    said = capsys.readouterr()
    assert f"nobody has answered yet; its conversations: 1 void ({FAULT})" in said.err
    assert f"no answer counts: {tmp_path / 'pay'} contains only participants.csv" in said.out
    [paid] = participants(tmp_path / "pay")
    assert (paid["outcome"], paid["paid"], paid["counts"], paid["void"]) == ("finished", "1", "0", "fault")
    assert [path.name for path in (tmp_path / "pay").iterdir()] == ["participants.csv"]


def test_who_left_is_told_so_and_who_stayed_is_not_blamed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], told: list[logging.LogRecord]
) -> None:
    study = made(tmp_path)

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        stays, leaves = [await arrived(served, "talk") for _ in range(2)]
        await asyncio.gather(lobby.look(stays), lobby.look(leaves))
        lobby.seen[leaves.code] -= 46
        assert (await lobby.at(stays, -1))["void"] == "left"
        assert (await lobby.at(leaves, -1))["void"] == "away"
        assert await say(served, leaves, 0, "sorry") == "talk_away"
        assert await say(served, stays, 0, "where?") == "partner_left"
        for judge in (stays, leaves):
            assert (await ended(served, judge))["note"] == "end_uncounted"
        alone = await arrived(served, "talk")
        lobby.waiting[alone.code] = float("-inf")
        assert (await lobby.at(alone, -1))["state"] == "nobody"
        assert (await ended(served, alone, {"nobody": True}))["note"] == "end_uncounted"

    run(study, work)
    assert [record.getMessage().partition(";")[0] for record in told] == ["a conversation is void: a participant left"]
    status, _ = status_of(study, capsys)
    assert (status["void"], status["judges"].get("finished")) == ({"a participant left": 1}, None)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "pay"), "--personal"]) == 0
    assert [row["void"] for row in participants(tmp_path / "pay")] == ["left", "away", "nobody"]


def test_who_closed_the_page_has_the_reason_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody goes on after the conversation: who left, who was left, whose agent failed, and two who still speak."""

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        leaves, stays = [await arrived(served, "talk") for _ in range(2)]
        await asyncio.gather(lobby.look(leaves), lobby.look(stays))
        lobby.seen[leaves.code] -= 46
        assert (await lobby.at(stays, -1))["void"] == "left"
        lobby.settings = lobby.settings.model_copy(update={"agent": "eliza", "machines": 1.0})
        fails(monkeypatch)
        assert await speak(served, await arrived(served, "talk"), "x") == "void"
        lobby.settings = lobby.settings.model_copy(update={"machines": 0.0})
        both = [await arrived(served, "talk") for _ in range(2)]
        await asyncio.gather(*(lobby.look(judge) for judge in both))

    run(study := made(tmp_path), work)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "pay"), "--personal"]) == 0
    rows = [(row["outcome"], row["paid"], row["counts"], row["void"]) for row in participants(tmp_path / "pay")]
    assert rows == [("", "0", "0", void) for void in ("away", "left", "fault", "unfinished", "unfinished")]


def test_a_void_test_before_one_that_counts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies(monkeypatch)
    study = online_studies.made(tmp_path, exchanges=[1])

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        leaves, stays = [await arrived(served, "test") for _ in range(2)]
        for judge in (leaves, stays):
            await lobby.at(judge, "")
        lobby.seen[leaves.code] -= 46
        found = await lobby.at(stays, "")
        assert await lobby.move(stays, {"test": found["test"], "act": "back"}) is None
        both = [stays, await arrived(served, "test")]
        states = [online_studies.take_part(served, judge, "q") for judge in both]
        assert [seen[-1]["state"] for seen in await asyncio.gather(*states)] == ["over", "over"]
        for judge in both:
            await ended(served, judge)

    run(study, work)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "pay"), "--personal"]) == 0
    rows = [(row["paid"], row["counts"], row["void"]) for row in participants(tmp_path / "pay")]
    assert rows == [("0", "0", "away"), ("1", "1", "left"), ("1", "1", "")]


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_who_are_away_the_first_has_left(tmp_path: Path, first: int) -> None:
    """Whichever of the two speaks first."""

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        both = [await arrived(served, "talk") for _ in range(2)]
        await asyncio.gather(*(lobby.look(judge) for judge in both))
        [talk] = served.state.meetings.values()
        for at, code in enumerate(talk.people):
            lobby.seen[code] -= 60 if at == first else 50
        lobby._swept = float("-inf")
        await lobby.look(await arrived(served, "talk"))
        assert talk.left_by() == talk.people[first]

    run(made(tmp_path), work)


@pytest.mark.parametrize("kind", ["talk", "test"])
@pytest.mark.parametrize("has_ended", [False, True])
def test_what_somebody_deleted_stays_deleted_and_void_for_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str, has_ended: bool
) -> None:
    """While the server runs, after it has ended and deleted, and after ``study forget`` of the other one's partner."""
    seen: list[Any] = []

    def look(name: str) -> None:
        assert main(["study", "export", str(study), "-o", str(tmp_path / name), "--personal"]) == 0
        rows = [(row["outcome"], row["paid"], row["counts"], row["void"]) for row in participants(tmp_path / name)]
        status, _ = status_of(study, capsys)
        seen.append((rows, status["void"], status["conversations" if kind == "talk" else "tests"]["void"]))

    async def meet(served: ServedStudy, judge: Judge) -> str:
        if kind == "talk":
            return await speak(served, judge, "secret")
        return str((await online_studies.take_part(served, judge, "secret"))[-1]["state"])

    async def work(served: ServedStudy) -> None:
        replies(monkeypatch)
        leaves, stays = [await arrived(served, kind) for _ in range(2)]
        if has_ended:
            assert await asyncio.gather(meet(served, leaves), meet(served, stays)) == ["over", "over"]
            await ended(served, leaves)
            await ended(served, stays)
        else:
            await asyncio.gather(*(lobby_of(served).look(judge) for judge in (leaves, stays)))
        await served.leave(leaves)
        if not has_ended:
            assert await meet(served, stays) == "void"
            await ended(served, stays)
        gone.append(leaves.code)
        look("while it runs")

    async def forgotten(served: ServedStudy) -> None:
        replies(monkeypatch)
        both = [await arrived(served, kind) for _ in range(2)]
        assert await asyncio.gather(*(meet(served, judge) for judge in both)) == ["over", "over"]
        for judge in both:
            await ended(served, judge)
        gone.append(both[0].code)

    gone: list[str] = []
    study = made(tmp_path, 2, guess=False) if kind == "talk" else online_studies.made(tmp_path, exchanges=[1])
    run(study, work)
    look("after it")
    assert seen[0] == seen[1] == ([("finished", "1", "0", "deleted")], {"a participant deleted it": 1}, 1)
    run(study, forgotten)
    assert main(["study", "forget", str(study), gone[1]]) == 0
    look("forgotten")
    assert seen[2] == ([("finished", "1", "0", "deleted")] * 2, {"a participant deleted it": 2}, 2)
    events = (study / "events.jsonl").read_text()
    assert not any(word in events for word in (*gone, "secret"))


def test_a_test_whose_machine_fails_is_told_as_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[logging.LogRecord]
) -> None:
    study = online_studies.made(tmp_path, exchanges=[1], two_machines=1.0)

    async def work(served: ServedStudy) -> None:
        fails(monkeypatch)
        for _ in range(2):
            judge = await arrived(served, "test")
            seen = await online_studies.take_part(served, judge, "q")
            assert (seen[-1]["state"], seen[-1]["void"]) == ("void", "fault")
            assert [one["void"] for one in seen[:-1]] == [None] * len(seen[:-1])
            assert (await ended(served, judge))["note"] == "end_fault"

    run(study, work)
    [record] = told
    assert re.match("a test is void: (argues|deceives): ValueError: no_words: it has none; ", record.getMessage())


def test_a_whole_conversation_is_exported_whoever_answers_about_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two people close the page at the questions after it; of two others one answers; a third pair has not ended."""
    study = made(tmp_path, exchanges=4)
    codes: list[str] = []

    async def work(served: ServedStudy) -> None:
        for answers in (0, 1):
            people = [await arrived(served, "talk") for _ in range(2)]
            states = [speak(served, judge, name) for judge, name in zip(people, "xy", strict=True)]
            assert await asyncio.gather(*states) == ["over", "over"]
            for judge in people[:answers]:
                await served.answer(judge, judge.step, {"guess": "human", "sex": "male", "age": "40"})
            codes.extend(judge.code for judge in people)
        people = [await arrived(served, "talk") for _ in range(2)]
        views = await asyncio.gather(*(lobby_of(served).at(judge, -1) for judge in people))
        [speaks] = [judge for judge, seen in zip(people, views, strict=True) if seen["my_turn"]]
        assert await say(served, speaks, 0, "only this") is None

    run(study, work)
    status, text = status_of(study, capsys)
    assert status["conversations"] == {"over": 2, "under_way": 1, "void": 0}
    assert status["answers"]["all"] == 2
    assert "conversations: 2 complete (1 not complete, 0 void)" in text
    unsaid, half = exported(study)
    assert "conversations that are left out: 1 not complete" in capsys.readouterr().out
    assert [len(record["answer"]["messages"]) for record in (unsaid, half)] == [4, 4]
    first, second, third, fourth = codes
    assert unsaid["raw"]["guesses"] == {first: None, second: None}
    assert half["raw"]["guesses"] == {third: "human", fourth: None}
    assert half["raw"]["sexes"] == {third: "male", fourth: None}
    assert half["raw"]["ages"] == {third: "40", fourth: None}
    assert main(["trials", str(tmp_path / "people"), "-o", str(tmp_path / "T"), "--every", "--lengths", "4"]) == 0
    assert main(["study", "export", str(study), "-o", str(tmp_path / "pay"), "--personal"]) == 0
    rows = [(row["paid"], row["counts"], row["void"]) for row in participants(tmp_path / "pay")]
    closed_the_page = ("0", "1", "")
    speaks = ("0", "0", "unfinished")
    assert rows == [closed_the_page, closed_the_page, ("1", "1", ""), closed_the_page, speaks, speaks]


def test_a_conversation_whose_topic_is_gone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = made(tmp_path)
    run(study, converse)
    row = json.loads((tmp_path / "set.jsonl").read_text())
    (tmp_path / "set.jsonl").write_text(json.dumps(row | {"id": "another"}))
    for action in (["status", str(study)], ["export", str(study), "-o", str(tmp_path / "people")]):
        assert main(["study", *action]) == 2
        assert "the people of this study began with another set" in capsys.readouterr().err
    # A log without its first line does not say with which set the study began.
    log = study / "events.jsonl"
    kept = [line for line in log.read_text().splitlines() if '"event":"settings"' not in line]
    log.write_text("\n".join([*kept, ""]))
    for action in (["status", str(study)], ["export", str(study), "-o", str(tmp_path / "people")]):
        assert main(["study", *action]) == 2
        assert "the set has no talk, but people of this study talked about it; restore" in capsys.readouterr().err


def test_an_older_study_counts_as_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its codes are of digits, and its conversations of hexadecimal numbers."""
    study = made(tmp_path, exchanges=1)
    at = "2026-01-01T00:00:00.000Z"
    joined = {"session": "s", "number": 1, "keys": [], "end_code": "0123456789", "link": None, "kit": None}
    step = {"kind": "talk", "trials": [], "phase": "test", "again": False}
    events: list[dict[str, Any]] = [
        {"event": "joined", "judge": code, "steps": [step], **joined} for code in ("2345e678", "23456789")
    ]
    events += [
        {"event": "paired", "talk": "0123456e1234", "stimulus": "talk", "speakers": ["2345e678", "23456789"]},
        {"event": "said", "talk": "0123456e1234", "turn": 0, "speaker": "A", "text": "hello"},
        {"event": "step", "judge": "2345e678", "step": 0, "kind": "talk", "talk": "0123456e1234", "guess": "human"},
    ]
    (study / "events.jsonl").write_text("".join(json.dumps({**event, "at": at}) + "\n" for event in events))
    status, _ = status_of(study, capsys)
    assert status["judges"] == {"wanted": 50, "joined": 2, "finished": 1, "begun": 1}
    [record] = exported(study)
    assert record["raw"]["guesses"] == {"2345e678": "human", "23456789": None}
    assert main(["study", "forget", str(study), "23456789"]) == 0
    state: State = read_state(study)
    assert not state.has_finished(state.judges["2345e678"])  # of whom the conversation was taken away
    older = [line for line in (study / "events.jsonl").read_text().splitlines() if '"talk":"0123456e1234"' not in line]
    ended_here = [json.dumps({**events[-1], "at": at}, separators=(",", ":"))]  # as that version left the file
    (study / "events.jsonl").write_text("".join(f"{line}\n" for line in [*older, *ended_here]))
    assert main(["study", "export", str(study), "-o", str(tmp_path / "pay"), "--personal"]) == 0
    assert [(row["paid"], row["counts"], row["void"]) for row in participants(tmp_path / "pay")] == [
        ("1", "0", "deleted")
    ]


def test_a_server_says_in_its_log_that_conversations_are_void(tmp_path: Path) -> None:
    """The server's own log, where nobody listens at the agents' address; the person is told, and has a code."""
    away = f"http://127.0.0.1:{server_process.free_port()}/"
    study = made(tmp_path, **ALONE, server=away)
    with serving(study, TURINGLIKE_API_KEY="a-key-for-the-tests-0123") as server:
        for _ in range(2):
            visitor = Visitor(server.port)
            visitor.post("/join")
            for step, answer in enumerate(({"agree": True}, {})):
                visitor.post("/answer", step=step, answer=answer)
            seen = visitor.post("/talk", after=-1)[1]
            while seen["state"] == "open":
                if seen["my_turn"]:
                    visitor.post("/say", turn=len(seen["messages"]), text="hello")
                seen = visitor.post("/talk", after=len(seen["messages"]) + 1)[1]
            assert (seen["state"], seen["void"]) == ("void", "fault")
            last = visitor.post("/answer", step=2, answer={})[1]["next"]
            while last["kind"] == "after":
                last = visitor.post("/answer", step=last["step"], answer={})[1]["next"]
            assert (last["kind"], last["note"], bool(last["code"])) == ("end", "end_fault", True)
        assert server.said().count("a conversation is void: eliza: ConnectError") == 1
        admin = Visitor(server.port, authorization="Bearer a-key-for-the-tests-0123")
        status = json.loads(admin.ask("GET", "/admin/status")[1])
        assert status["conversations"] == {"over": 0, "under_way": 0, "void": 2}
        assert sum(status["void"].values()) == 2


def test_pages_tell_a_fault_as_a_fault_and_ask_before_they_thank(browser: Browser, tmp_path: Path) -> None:
    """In a conversation whose agent fails, and in one that comes to its end and is left at the question after it."""
    with misbehaving_server.running() as machine:
        study = made(tmp_path, exchanges=2, **ALONE, server=machine.url)
        with serving(study, TURINGLIKE_API_KEY="a-key-for-the-tests-0123") as server:

            def conversing(page: Page) -> Page:
                page.get_by_role("heading", name="Conversation").wait_for()
                turn = page.get_by_text("It is your turn.")
                over = page.locator("p.truth")
                while True:
                    turn.or_(over).first.wait_for()
                    if over.is_visible():
                        return page
                    page.get_by_label("Your message").fill("Hello")
                    page.keyboard.press("Enter")
                    turn.wait_for(state="hidden")

            machine.otherwise = lambda request: misbehaving_server.body(b"[1]")
            page = conversing(begin_in(browser.new_context().new_page(), server.url))
            page.get_by_text("A fault of this study has ended the conversation. It is not your fault.").wait_for()
            page.get_by_role("button", name="Continue").click()
            page.get_by_text("A fault of this study has ended what you took part in, so it does not count.").wait_for()
            page.locator(".code").wait_for()
            page.context.close()
            reply = json.dumps({"answer": {"messages": [{"text": "Hm."}]}}).encode()
            machine.otherwise = lambda request: misbehaving_server.body(reply)
            page = conversing(begin_in(browser.new_context().new_page(), server.url))
            page.get_by_text("The conversation is over. Please tell us what you think about the other one:").wait_for()
            assert page.get_by_text("Thank you").count() == 0
            page.context.close()  # as who believes that this is the end
            page = browser.new_context().new_page()
            page.goto(f"{server.url}/admin")
            page.get_by_label("Secret key").fill("a-key-for-the-tests-0123")
            page.get_by_role("button", name="Show").click()
            page.get_by_role("rowheader", name="void: eliza: ValueError: its reply is no object").wait_for()
            shown = page.locator("#tiles").inner_text().replace("\n", " ")
            assert "Conversations 1 complete" in shown
            assert "Void 1 1 person finished without one that counts" in shown
            page.context.close()
    [record] = exported(study)
    assert list(record["raw"]["guesses"].values()) == [None]
    assert len(record["answer"]["messages"]) == 2
