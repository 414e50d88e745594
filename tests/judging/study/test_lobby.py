"""Participants converse through the lobby: two people, somebody who leaves, an agent of a server."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import scipy.stats

from judging.study.log.state import read_state
from judging.study.pages.page_answers import Refused
from judging.study.serving_study import ServedStudy
from serving.cli import main
from tests.helpers import misbehaving_server, server_process
from tests.helpers.online_studies import replies
from tests.helpers.study_folders import (
    BAD,
    Visitor,
    arrivals,
    arrived,
    begin_in,
    exported,
    lobby_of,
    machines_stop,
    run,
    serving,
)
from tests.helpers.talk_studies import ALONE, converse, made, say, speak

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def test_two_people_converse_and_become_trials(tmp_path: Path) -> None:
    study = made(tmp_path)
    run(study, converse)
    state = read_state(study)
    [talk] = state.meetings.values()
    assert re.fullmatch("talk-[bcdfghjkmnpqrstvwxz]{10}", talk.id)  # no number to a spreadsheet
    assert [(one.speaker, one.text.partition(" ")[2]) for one in talk.messages] == [
        ("AB"[at % 2], f"says {at}") for at in range(4)
    ]
    [record] = exported(study)
    for name, value in {"guesses": "human", "sexes": "female", "ages": "30"}.items():
        assert record["raw"][name] == dict.fromkeys(state.judges, value)
    assert main(["trials", str(tmp_path / "people"), "-o", str(tmp_path / "T"), "--every", "--lengths", "4"]) == 0
    with (tmp_path / "T.key.csv").open() as file:
        assert sum(",human," in line for line in file) == 2
    first, second = state.judges
    assert main(["study", "forget", str(study), first]) == 0
    events = (study / "events.jsonl").read_text()
    assert first not in events
    assert " says " not in events
    assert list(read_state(study).judges) == [second]
    [left] = read_state(study).meetings.values()
    assert ({*left.people}, left.void, left.messages) == ({"nobody", second}, "forgotten", [])
    assert main(["study", "export", str(study), "-o", str(tmp_path / "half")]) == 2  # half of it is no conversation
    assert main(["study", "forget", str(study), second]) == 0
    [left] = read_state(study).meetings.values()
    assert (left.people, left.void) == (["nobody", "nobody"], "forgotten")


def test_the_same_two_may_meet_again_and_each_record_has_its_key(tmp_path: Path) -> None:
    study = made(tmp_path, exchanges=2, number=5)  # of two orders of two people some come again
    run(study, converse)
    assert len({(row["agent"], row["stimulus"], row["sample"]) for row in exported(study)}) == 5


def test_who_leaves_makes_it_void_and_nobodys_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = made(tmp_path, seconds_away=1.0)

    async def work(served: ServedStudy) -> None:
        stays, leaves = [await arrived(served, "talk") for _ in range(2)]
        waits = asyncio.create_task(speak(served, stays, "x"))
        while (view := await lobby_of(served).at(leaves, -1))["state"] != "open":
            pass
        if view["my_turn"]:
            await say(served, leaves, 0, "hello")
        for answer in ({"guess": "human"}, {"nobody": True}):
            with pytest.raises(Refused, match="not_yet"):
                await served.answer(stays, stays.step, answer)
        assert await waits == "void"
        assert await say(served, stays, 3, "are you there?") == "partner_left"
        assert (await served.answer(stays, stays.step, {})).is_new
        assert stays.ended == "finished"

    run(study, work)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "people")]) == 2
    assert "nobody has answered yet" in capsys.readouterr().err


@pytest.mark.parametrize("when", ["waits", "speaks", "has ended", "alone"])
def test_who_leaves_and_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """In the lobby, in a conversation, after it, or with an agent, which then says nothing more."""
    replies(monkeypatch, lambda agent, row: "hello")

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        leaves = await arrived(served, "talk")
        held = asyncio.create_task(lobby.at(leaves, 99))
        await asyncio.sleep(0)
        stays = await arrived(served, "talk")
        if when == "waits":
            await served.leave(leaves)
        waits = asyncio.create_task(speak(served, stays, "x"))
        if when == "has ended":
            assert await speak(served, leaves, "secret") == await waits == "over"
            assert (await served.answer(leaves, leaves.step, {"guess": "human"})).is_new
        elif when == "waits":
            assert await speak(served, await arrived(served, "talk"), "y") == await waits == "over"
        else:
            view = await lobby.at(leaves, -1)
            while not view["my_turn"]:
                view = await lobby.at(leaves, len(view["messages"]))
            assert await say(served, leaves, len(view["messages"]), "secret") is None
        if when != "waits":
            await served.leave(leaves)
        if when != "has ended":
            with pytest.raises(Refused, match="not_yet"):
                await held
        assert await waits == ("void" if when == "speaks" else "over")
        await machines_stop(lobby)
        assert (await served.answer(stays, stays.step, {})).is_new
        gone.append(leaves.code)

    gone: list[str] = []
    run(study := made(tmp_path, **(ALONE if when == "alone" else {})), work)
    events = (study / "events.jsonl").read_text()
    assert gone[0] not in events
    assert "secret" not in events
    assert next(iter(read_state(study).judges.values())).ended == "finished"
    is_left = when in ("waits", "alone")  # a conversation of those who stay
    assert main(["study", "export", str(study), "-o", str(tmp_path / "people")]) == (0 if is_left else 2)


def test_nobody_has_two_partners(tmp_path: Path) -> None:
    """Three come while the lobby notes that somebody has left."""

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        people = [await arrived(served, "talk") for _ in range(5)]
        await asyncio.gather(*(lobby.look(judge) for judge in people[:2]))
        lobby.seen[people[0].code] = lobby._swept = float("-inf")
        await asyncio.gather(*(lobby.look(judge) for judge in people[2:]))
        [talk] = served.state.counted(lobby.meeting)
        assert {*talk.people} < {judge.code for judge in people[2:]}

    run(made(tmp_path), work)


def test_nobody_speaks_out_of_turn_or_for_another(tmp_path: Path) -> None:
    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        people = [await arrived(served, "talk") for _ in range(3)]
        views = await asyncio.gather(*(lobby.at(judge, -1) for judge in people[:2]))
        third = asyncio.create_task(lobby.at(people[2], -1))
        first, second = people[:2] if views[0]["my_turn"] else people[1::-1]
        assert await say(served, second, 0, "me first") == "not_your_turn"
        assert await say(served, first, 1, "later") == "not_your_turn"
        assert await say(served, people[2], 0, "I am another") == "partner_left"
        for text in (None, 3, " ", "\u200b\n", "x" * 2001):
            assert await say(served, first, 0, text) == "incomplete"
        served.state.closed = "2026-01-01T00:00:00Z"
        assert await say(served, first, 0, "hello") == "closed"
        served.state.closed = None
        assert await say(served, first, 0, "hello") is None
        assert [one["text"] for one in (await lobby.at(second, 0))["messages"]] == ["hello"]
        third.cancel()

    run(made(tmp_path), work)


def test_what_people_and_agents_say_is_of_one_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line breaks and spaces tell nobody who it is. A server that starts again goes on where the conversation was."""
    replies(monkeypatch, lambda agent, row: " Well,\n\n  I see.\n")

    async def begin(served: ServedStudy) -> None:
        judge = await arrived(served, "talk")
        view = await lobby_of(served).at(judge, -1)
        while not view["my_turn"]:
            view = await lobby_of(served).at(judge, len(view["messages"]))
        assert await say(served, judge, len(view["messages"]), " Well,\t\nI  see\ud800. ") is None

    async def work(served: ServedStudy) -> None:
        [judge] = served.state.judges.values()
        after = -1
        while (view := await lobby_of(served).at(judge, after))["state"] == "open":
            after = len(view["messages"])
            if view["my_turn"]:
                assert await say(served, judge, after, " Well,\t\nI  see\ud800. ") is None
        assert [one["text"] for one in view["messages"] if one["speaker"] == view["mine"]] == ["Well, I see?."] * 3
        assert [one["text"] for one in view["messages"] if one["speaker"] != view["mine"]] == ["Well, I see."] * 3
        before.append(served.state)

    before: list[Any] = []
    run(study := made(tmp_path, exchanges=6, **ALONE), begin)
    run(study, work)
    assert read_state(study) == before[0]


def test_in_a_burst_dialogue_two_people_write_whenever_they_like(tmp_path: Path) -> None:
    async def work(served: ServedStudy) -> None:
        one, other = [await arrived(served, "talk") for _ in range(2)]
        await asyncio.gather(*(lobby_of(served).at(judge, -1) for judge in (one, other)))
        for turn in (0, 1, 1):  # what is sent twice is there once
            assert await say(served, one, turn, f"one {turn}") is None
        assert await say(served, other, 1, "too many") == "not_your_turn"
        assert await asyncio.gather(say(served, other, 0, "other 0"), say(served, one, 2, "one 2")) == [None, None]
        view = await lobby_of(served).at(one, 3)
        assert [message["text"] for message in view["messages"]] == ["one 0", "one 1", "other 0", "one 2"]
        assert (view["state"], view["burst"]) == ("over", True)
        assert await say(served, other, 1, "late") == "talk_over"
        for judge in (one, other):
            assert (await served.answer(judge, judge.step, {"guess": "human"})).is_new

    study = made(tmp_path, mode="burst")
    run(study, work)
    messages = exported(study)[0]["answer"]["messages"]
    assert [one["turn"] for one in messages] == [0, 1, 2, 3]
    delays = [one["delay_s"] for one in messages]
    assert [one["at"] for one in messages] == pytest.approx([sum(delays[: at + 1]) for at in range(4)])


@pytest.mark.parametrize("interrupts", [False, True])
def test_an_agent_sends_as_it_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupts: bool) -> None:
    requests = replies(monkeypatch, lambda agent, row: "first\n\nsecond")

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "talk")
        mine = 0
        after = -1
        while (view := await lobby_of(served).at(judge, after))["state"] == "open":
            after = len(view["messages"])
            newest = view["messages"][-1]["text"] if after else ""
            if newest in ("", "second") or (newest, mine, interrupts) == ("first", 1, True):
                assert await say(served, judge, mine, f"mine {mine}") is None
                mine += 1
        assert len(view["messages"]) == 6
        assert (await served.answer(judge, judge.step, {"guess": "machine"})).is_new

    study = made(tmp_path, 6, "burst", **ALONE, quiet_s=0.3, base=0.3)
    run(study, work)
    [record] = exported(study)
    withdrawn = [(one["text"], one["agent"], one["why"]) for one in record["answer"]["withdrawn"]]
    assert withdrawn[:1] == [("second", "eliza", "interrupted")] or not interrupts
    texts = [one["text"] for one in record["answer"]["messages"]]
    heard = [[one["text"] for one in body["stimulus"]["history"]] for _, body in requests]
    assert [texts[: len(one)] for one in heard] == heard  # it is asked with what was said


@pytest.mark.parametrize("machines", [0.5, 0.2])
def test_waiting_does_not_tell_who_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machines: float) -> None:
    """Neither whether somebody waits, nor how long, nor the pair before tells whether it is an agent."""
    monkeypatch.setattr("judging.study.meetings.lobby_of_talks.CHANCE", random.Random(6))
    waits: list[tuple[float, bool]] = []

    async def work(served: ServedStudy) -> None:
        for wait, judge, _ in await arrivals(served, "talk", monkeypatch, (0.2, 0.02), 1600):
            talk = served.state.meeting_of(judge.code)
            assert talk is not None
            waits.append((wait, "eliza" in talk.people))

    run(made(tmp_path, agent="eliza", machines=machines), work)
    first, second = ([one for one in waits if (one[0] > 0) is waited] for waited in (True, False))
    for group in (first, second):
        share = sum(kind for _, kind in group) / len(group)
        assert share == pytest.approx(machines, abs=3 * (machines * (1 - machines) / len(group)) ** 0.5)
    times = [wait for wait, _ in first]
    kinds = [kind for _, kind in first]
    both = [[wait for wait, kind in first if kind is which] for which in (True, False)]
    assert scipy.stats.ks_2samp(*both).pvalue > 0.01
    assert len(set(times)) > 20
    assert abs(scipy.stats.pearsonr(kinds[1:], kinds[:-1]).statistic) < 3 / len(kinds) ** 0.5


def test_who_went_on_is_nobodys_partner(tmp_path: Path) -> None:
    async def work(served: ServedStudy) -> None:
        for _ in range(2):
            judge = await arrived(served, "talk")
            assert (await lobby_of(served).at(judge, -1))["state"] == "nobody"
            assert (await served.answer(judge, judge.step, {"nobody": True})).is_new
            assert (judge.ended, judge.answers[-1].talk) == ("finished", None)

    run(made(tmp_path, seconds_in_lobby=0.0), work)


def message(text: Any) -> misbehaving_server.Act:
    return misbehaving_server.body(json.dumps({"answer": {"messages": [{"text": text}]}}).encode())


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (message("\u200b\n "), "says nothing"),
        (message({"agent": "gpt-4"}), "no text"),
        (message("x" * 2001), "too long"),
        (misbehaving_server.body(b"[1]"), "no object"),
        (misbehaving_server.huge(200), "too long"),
        (misbehaving_server.drip, "no answer within 0.5 s"),
        (None, "connect"),
    ],
    ids=["blank", "no text", "long", "no object", "huge", "slow", "away"],
)
def test_what_no_person_says_makes_it_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Any, why: str) -> None:
    """The person's conversation with an agent that says so, or that does not answer."""
    monkeypatch.setattr("judging.study.meetings.agent_server.PAUSE", 0.0)
    monkeypatch.setattr(
        "judging.study.meetings.conversing.TURN_SECONDS", 0.5 if act is misbehaving_server.drip else 60.0
    )

    async def work(served: ServedStudy) -> None:
        assert await speak(served, await arrived(served, "talk"), "x") == "void"

    with misbehaving_server.running() as server:
        server.otherwise = lambda request: act
        url = server.url if act else f"http://127.0.0.1:{server_process.free_port()}"
        run(study := made(tmp_path, **ALONE, server=url), work)
        samples = [request.body["sample"] for request in server.requests]
    [talk] = read_state(study).meetings.values()
    assert why in str(talk.void)
    assert samples == ([] if act is None else [0] if act is misbehaving_server.drip else [0, 1, 2])


def test_who_comes_back_to_an_agent_too_late_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies(monkeypatch, lambda agent, row: "hello")
    monkeypatch.setattr("judging.study.meetings.lobby.SWEEP", 0.0)

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        for comes_back in ("by a look", "by a message", "not at all"):
            judge = await arrived(served, "talk")
            assert (await lobby.at(judge, -1))["state"] == "open"
            lobby.seen[judge.code] -= 46
            if comes_back == "by a look":
                assert (await lobby.at(judge, -1))["state"] == "void"
            elif comes_back == "by a message":
                assert await say(served, judge, 0, "hello") == "talk_away"
        await lobby.at(await arrived(served, "talk"), -1)
        assert [talk.void is None for talk in served.state.meetings.values()] == [False, False, False, True]

    run(made(tmp_path, **ALONE), work)


def test_an_agents_server_that_hangs_holds_up_its_own_talks_alone(tmp_path: Path) -> None:
    """More questions hang than Python's own pool has threads: others join, and the server ends when it is to."""
    with misbehaving_server.running() as agents:
        agents.otherwise = lambda request: misbehaving_server.hang
        study = made(tmp_path, **ALONE, server=agents.url)
        with serving(study) as server:
            most = min(32, (os.cpu_count() or 1) + 4)
            for number in range(most + 4):
                visitor = Visitor(server.port)
                visitor.post("/join")
                for step, answer in enumerate(({"agree": True}, {})):
                    status, reply = visitor.post("/answer", step=step, answer=answer)
                    assert (status, reply["new"]) == (200, True)
                _, view = visitor.post("/talk", after=-1)
                assert view["state"] == "open"
                if view["my_turn"]:
                    assert visitor.post("/say", turn=0, text="hello") == (200, {"why": None})
                    visitor.post("/talk", after=0)
                while agents.under_way <= number:
                    time.sleep(0.01)
            server.process.terminate()
            assert server.process.wait(20) == 128 + signal.SIGTERM
        assert main(["study", "close", str(study)]) == 0


def test_what_people_would_not_be_shown_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = made(tmp_path)
    row = json.loads((tmp_path / "set.jsonl").read_text())
    (tmp_path / "set.jsonl").write_text(json.dumps(row | {"opener": "Hi"}))
    assert main(["study", "check", str(study)]) == 2
    assert "talk: people are not shown what came before" in capsys.readouterr().err


def test_nobody_is_asked_of_the_other_where_guess_is_false(tmp_path: Path) -> None:
    study = made(tmp_path, guess=False)
    run(study, converse)
    [record] = exported(study)
    assert all(set(record["raw"][name].values()) == {None} for name in ("guesses", "sexes", "ages"))


def test_an_age_that_shows_nothing_is_not_said(tmp_path: Path) -> None:
    async def work(served: ServedStudy) -> None:
        both = [await arrived(served, "talk") for _ in range(2)]
        assert await asyncio.gather(*(speak(served, judge, "x") for judge in both)) == ["over", "over"]
        for judge, age in zip(both, ("\u200b ", "30"), strict=True):
            assert (await served.answer(judge, judge.step, {"guess": "human", "sex": "male", "age": age})).is_new

    run(study := made(tmp_path, exchanges=2), work)
    assert sorted(exported(study)[0]["raw"]["ages"].values()) == ["", "30"]


@pytest.mark.parametrize(
    ("number", "said"), [(1, "You take part in one conversation."), (3, "You take part in 3 conversations, one after")]
)
def test_the_page_tells_how_many_conversations_there_are(
    browser: Browser, tmp_path: Path, number: int, said: str
) -> None:
    study = made(tmp_path, number=number)
    with serving(study) as server:
        page = browser.new_context().new_page()
        page.goto(server.url)
        for name in ("Begin", "I agree"):
            page.get_by_role("button", name=name).click()
        page.get_by_text(said).wait_for()
        assert page.get_by_text("trials").count() == 0
        page.context.close()


def test_two_browsers_say_whom_they_spoke_with(browser: Browser, tmp_path: Path) -> None:
    study = made(tmp_path, exchanges=2)
    with serving(study) as server:
        pages: list[Page] = [begin_in(browser.new_context().new_page(), server.url) for _ in range(2)]
        for page in pages:
            page.get_by_role("heading", name="Conversation").wait_for()
        [speaks] = [page for page in pages if page.get_by_text("It is your turn.").is_visible()]
        [listens] = [page for page in pages if page is not speaks]
        for _ in range(2):
            speaks.get_by_label("Your message").fill("Hello")
            speaks.keyboard.press("Enter")
            listens.get_by_text("It is your turn.").or_(listens.get_by_text("The conversation is over.")).wait_for()
            speaks, listens = listens, speaks
        for page, name in zip(pages, ("a woman", "a male machine"), strict=True):
            page.get_by_label("How old is the other one").fill("30")
            page.get_by_role("button", name=name).click()
            page.locator(".code").wait_for()
            page.context.close()
    [record] = exported(study)
    said = {
        (record["raw"]["guesses"][code], record["raw"]["sexes"][code], age)
        for code, age in record["raw"]["ages"].items()
    }
    assert said == {("human", "female", "30"), ("machine", "male", "30")}


@pytest.mark.parametrize("deletes", [False, True])
def test_two_browsers_converse_and_one_leaves(browser: Browser, tmp_path: Path, deletes: bool) -> None:
    study = made(tmp_path, exchanges=6, seconds_away=2.0)
    with serving(study) as server:
        pages: list[Page] = [begin_in(browser.new_context().new_page(), server.url) for _ in range(2)]
        for page in pages:
            page.get_by_role("heading", name="Conversation").wait_for()
        for number in range(3):
            [speaks] = [page for page in pages if page.get_by_text("It is your turn.").is_visible()]
            [listens] = [page for page in pages if page is not speaks]
            speaks.get_by_label("Your message").fill(f"{number} {BAD}")
            speaks.keyboard.press("Enter")
            listens.get_by_text(f"{number} {BAD}").wait_for()
            listens.get_by_text("It is your turn.").wait_for()
            speaks.get_by_text("The other one is writing.").wait_for()
        if deletes:
            pages[0].once("dialog", lambda dialog: dialog.accept())
            with pages[0].expect_response("**/talk"):
                pages[0].get_by_role("button", name="Leave and delete").click()
            pages[0].get_by_text("You have left.").wait_for()
            assert pages[0].get_by_text("The other one has left").count() == 0
        pages[0].context.close()
        pages[1].get_by_text("The other one has left").wait_for()
        assert pages[1].title() == "Conversation – A conversation"
        pages[1].get_by_role("button", name="Continue").click()
        pages[1].locator(".code").wait_for()
        pages[1].context.close()
    [talk] = read_state(study).meetings.values()
    assert (len(talk.messages), talk.void == "forgotten") == ((0, True) if deletes else (3, False))
    assert talk.void is not None
