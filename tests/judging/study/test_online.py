"""Online tests: a judge and two agents who do not see each other, over the lobby and in two browsers."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import scipy.stats

from agents.word_boundaries import count_words
from judging.scores.verdicts import open_verdicts, read_verdicts
from judging.study.design.settings import OnlineSettings, read_settings
from judging.study.design.tables import Tests as Drawn
from judging.study.log.meeting import PARTS_OF_PAIR, OnlineTest
from judging.study.log.state import read_state
from judging.study.meetings.cells import next_cell, wanted_shares
from judging.study.meetings.short_texts import shortened
from judging.study.pages.page_answers import Refused
from judging.study.serving_study import ServedStudy
from serving.cli import main
from serving.runs.records import problems
from tests.helpers import misbehaving_server, server_process
from tests.helpers.online_studies import made, replies, take_part
from tests.helpers.study_folders import BAD, arrivals, arrived, begin_in, changed, lobby_of, run, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TEXTS_OF_WORDS = [
    "",
    " ",
    "one  two\nthree",
    "well-known - and/or 3.5, don't!",
    "naïve café",
    "नमस्ते दुनिया",
    "안녕하세요 여러분",
    "我每天早上喝咖啡。",
    "私はコーヒーが好きです",
    "ラーメン",
    "ﾗｰﾒﾝ を食べた",
    "我用Python写3.5行代码",
    "…",
    "。。。",
    "がぎ\u3099",
    "他说“well-known”，好吗？ yes",
    "日本 2026年11月",
]


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.meetings.lobby.LOOK", 0.01)


@pytest.mark.parametrize(("verdicts", "deceives"), [("end", 0.0), ("each", 1.0)])
def test_a_judge_a_person_and_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdicts: str, deceives: float
) -> None:
    study = made(tmp_path, exchanges=[2], verdicts=verdicts, person_deceives=deceives, before=["country"])
    asked = replies(monkeypatch)

    async def work(served: ServedStudy) -> None:
        people = [await arrived(served, "test") for _ in range(2)]
        both = await asyncio.gather(*(take_part(served, one, f"p{at}") for at, one in enumerate(people)))
        views = {seen[-1]["role"]: seen for seen in both}
        assert set(views) == {"judge", "person_deceives" if deceives else "person_argues"}
        for seen in views["judge"]:  # both answers of an exchange, or none
            assert all(len(one["answers"]) in (0, 2) for one in seen.get("exchanges", ()))
        [agent] = views.keys() - {"judge"}
        machine = "argues" if deceives else "deceives"
        assert machine not in json.dumps(views[agent])  # who sees own answers alone
        assert not views[agent][-1]["verdicts"]
        for one in people:
            assert (await served.answer(one, one.step, {})).is_new
            assert one.ended == "finished"
        before.append(served.state)

    before: list[Any] = []
    run(study, work)
    state = read_state(study)
    assert state == before[0]
    [test] = state.counted(OnlineTest)
    person = test.people[1 + test.parts.index("person")]
    assert (len(test.questions), [one.exchanges for one in test.judged]) == (2, [1, 2] if verdicts == "each" else [2])
    assert {test.judged[-1].verdict, test.judged[-1].reason} == {"human", "because"}
    for server, body in asked:
        assert server == "http://127.0.0.1:8001/"
        texts = [one["text"] for one in body["stimulus"]["history"] if one["speaker"] == "B"]
        assert all(text.startswith(body["agent"]) for text in texts)
        assert person not in json.dumps(body)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out"), "--personal"]) == 0
    table = (tmp_path / "out" / "participants.csv").read_text().splitlines()
    assert sorted(line.partition(",")[0] for line in table[1:]) == sorted(f"human:{code}" for code in state.judges)
    assert all(",Iceland," in line for line in table[1:])
    verdicts_run = open_verdicts([tmp_path / "out" / "verdicts"])
    assert set(read_verdicts(verdicts_run)["judge.country"]) == {"Iceland"}
    assert main(["study", "export", str(study), "-o", str(tmp_path / "plain")]) == 0
    assert all(b"Iceland" not in path.read_bytes() for path in (tmp_path / "plain").rglob("*.*") if path.is_file())
    first, second = state.judges
    assert main(["study", "forget", str(study), first]) == 0
    events = (study / "events.jsonl").read_text()
    assert first not in events
    assert "p0 1" not in events
    state = read_state(study)
    assert (list(state.judges), state.judges[second].ended) == ([second], "finished")
    assert [test.void for test in state.meetings.values()] == ["forgotten"]
    assert main(["study", "export", str(study), "-o", str(tmp_path / "none")]) == 2


def test_a_reason_that_shows_nothing_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies(monkeypatch)

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "test")
        lobby = lobby_of(served)
        for act in ("ready", "ask", "judge"):
            version = ""
            while (view := await lobby.at(judge, version))["act"] != act:
                version = view["version"]
            said = {"test": view["test"], "act": act, "turn": view["turn"], "text": "why?", "human": 1}
            assert await lobby.move(judge, said | {"reason": "\u200b \u2060"}) is None
        [test] = served.state.meetings.values()
        assert [judged.reason for judged in test.judged] == [None]

    run(made(tmp_path, exchanges=[1], two_machines=1.0), work)


def test_an_agent_may_be_ready_after_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an agent sends from a page older than the judge's question is taken."""
    replies(monkeypatch)

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        both = [await arrived(served, "test") for _ in range(2)]
        for person in both:
            await lobby.at(person, "")
        test = served.state.meeting_of(both[0].code)
        assert test is not None
        judge, agent = sorted(both, key=lambda person: person.code != test.people[0])
        view = await lobby.at(agent, "")
        for act, turn in (("ready", 0), ("ask", 1)):
            assert await lobby.move(judge, {"test": test.id, "act": act, "turn": turn, "text": "why?"}) is None
        assert view["act"] == "ready"
        assert await lobby.move(agent, {"test": test.id, "act": view["act"], "turn": view["turn"]}) is None
        assert (await lobby.at(agent, view["version"]))["act"] == "answer"

    run(made(tmp_path, exchanges=[1], person_deceives=0.0), work)


def test_what_a_judge_is_sent_does_not_tell_who_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two people, of two machines and of one of either the judge sees the same, but for what is said."""
    asked = replies(monkeypatch, lambda agent, row: "said")
    sent = []
    cases: list[dict[str, Any]] = [{"two_people": 1.0}, {"two_machines": 1.0}, {}]
    for number, kinds in enumerate(cases):
        (folder := tmp_path / str(number)).mkdir()
        study = made(folder, exchanges=[1], person_deceives=0.0, seed=number, **kinds)

        async def work(served: ServedStudy, people: int = (3, 1, 2)[number]) -> None:
            all_of_them = [await arrived(served, "test") for _ in range(people)]
            views = await asyncio.gather(*(take_part(served, one, "said") for one in all_of_them))
            [judges] = [seen for seen in views if seen[-1]["role"] == "judge"]
            for view in judges:
                for one in view.get("exchanges", ()):
                    one["answers"] = ["said"] * len(one["answers"])
            acts = [view | {"version": "", "test": ""} for view in judges if view.get("act") or view["state"] == "over"]
            sent.append((acts, [test.pair for test in served.state.meetings.values()]))

        run(study, work)
    assert [pairs for _, pairs in sent] == [["two people"], ["two machines"], ["person machine"]]
    assert [view["act"] for view in sent[0][0]] == ["ready", "ask", "judge", None]
    assert sent[0][0] == sent[1][0] == sent[2][0]
    assert len(asked) == 3


def test_waiting_does_not_tell_a_judge_whom_they_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither whether the judge waits, nor how long, nor the kind before tells the kind of pair."""
    shares = {"two machines": 0.3, "two people": 0.3, "person machine": 0.4}
    waits: list[tuple[float, str]] = []

    async def work(served: ServedStudy) -> None:
        for wait, judge, view in await arrivals(served, "test", monkeypatch, (0.2, 0.05), 1000):
            test = served.state.meeting_of(judge.code)
            assert test is not None
            if view["role"] == "judge":
                waits.append((wait, test.pair))

    run(made(tmp_path, two_machines=0.3, two_people=0.3, tests_wanted=10_000), work)
    groups = [[kind for wait, kind in waits if (wait > 0) is waited] for waited in (True, False)]
    for kinds in groups:
        counts = [kinds.count(kind) for kind in shares]
        assert scipy.stats.chisquare(counts, [share * len(kinds) for share in shares.values()]).pvalue > 0.01
    times = [[wait for wait, kind in waits if kind == which] for which in shares]
    assert scipy.stats.kruskal(*times).pvalue > 0.01
    kinds = [kind for _, kind in waits]
    table = [[list(pairwise(kinds)).count((one, other)) for other in shares] for one in shares]
    assert scipy.stats.chi2_contingency(table).pvalue > 0.01


def test_answers_are_shown_when_the_delay_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = made(tmp_path, exchanges=[1], two_machines=1.0, base=1.0)
    replies(monkeypatch)

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "test")
        begun = asyncio.create_task(take_part(served, judge, "q"))
        while (
            not (tests := served.state.meetings)
            or len((test := tests["test-00001"]).answers[-1:] and test.answers[-1]) < 2
        ):
            await asyncio.sleep(0.01)
        held = lobby_of(served)
        assert lobby_of(served).view(test, judge.code)["exchanges"][0]["answers"] == []
        assert held.due(test) == []
        held.began[test.id] -= 1.5
        seen = await begun
        assert len(seen[-1]["exchanges"][0]["answers"]) == 2
        assert all(said.delay_s >= 1.0 for said in test.answers[0].values())

    run(study, work)


@pytest.mark.parametrize("deletes", [False, True])
def test_who_is_left_goes_back_to_the_lobby(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deletes: bool) -> None:
    study = made(tmp_path, seconds_away=60.0 if deletes else 0.3)
    replies(monkeypatch)

    async def work(served: ServedStudy) -> None:
        stays, leaves = [await arrived(served, "test") for _ in range(2)]
        lobby = lobby_of(served)
        waits = asyncio.create_task(take_part(served, stays, "x"))
        while (await lobby.at(leaves, ""))["state"] != "open":
            await asyncio.sleep(0.01)
        with pytest.raises(Refused, match="not_yet"):
            await served.answer(stays, stays.step, {"nobody": True})
        if deletes:
            held = asyncio.create_task(lobby.at(leaves, (await lobby.at(leaves, ""))["version"]))
            await served.leave(leaves)
            with pytest.raises(Refused, match="not_yet"):
                await held
        [*_, found] = await waits
        assert found["state"] == "void"
        assert await lobby.move(stays, {"test": found["test"], "act": "ask", "turn": 9, "text": "?"}) == "test_void"
        assert await lobby.move(stays, {"test": found["test"], "act": "back"}) is None
        assert (await lobby.at(stays, ""))["state"] == "waiting"
        comes = await arrived(served, "test")
        assert (await lobby.at(comes, ""))["state"] == "open"
        assert (await lobby.at(stays, ""))["state"] == "open"

    run(study, work)
    first, second = read_state(study).meetings.values()
    assert main(["study", "status", str(study)]) == 0
    assert str(first.void).endswith("forgotten" if deletes else " left")
    assert second.void is None
    assert len(read_state(study).judges) == (2 if deletes else 3)


def test_who_does_nothing_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies(monkeypatch)

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        judge = await arrived(served, "test")
        assert (await lobby.at(judge, ""))["state"] == "open"
        due, since = lobby.awaited["test-00001"]
        lobby.awaited["test-00001"] = due, since - 181
        assert (await lobby.at(judge, ""))["state"] == "void"

    run(study := made(tmp_path, two_machines=1.0), work)
    assert str(read_state(study).meetings["test-00001"].void).endswith("did nothing")


def test_what_nobody_may_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies(monkeypatch)

    async def work(served: ServedStudy) -> None:
        people = [await arrived(served, "test") for _ in range(3)]
        lobby = lobby_of(served)
        await asyncio.gather(*(lobby.at(one, "") for one in people[:2]))
        [test] = served.state.meetings.values()
        judge, agent = sorted(people[:2], key=lambda one: one.code != test.people[0])
        say = {"test": test.id, "turn": 1, "text": "hello"}
        assert await lobby.move(judge, say | {"act": "ask"}) == "not_your_turn"  # before the part is read
        for one in (judge, agent):
            assert await lobby.move(one, {"test": test.id, "act": "ready", "turn": 0}) is None
        assert await lobby.move(people[2], say | {"act": "ask"}) == "test_void"
        assert await lobby.move(agent, say | {"act": "ask"}) == "not_your_turn"
        assert await lobby.move(agent, say | {"act": "answer"}) == "not_your_turn"
        assert await lobby.move(judge, say | {"act": "judge", "human": 1}) == "not_your_turn"
        assert await lobby.move(judge, say | {"act": "back"}) == "not_your_turn"
        for text in (None, 3, " ", "\u200b\n", "x" * 2001):
            assert await lobby.move(judge, say | {"act": "ask", "text": text}) == "incomplete"
        assert await lobby.move(judge, say | {"act": "ask"}) is None
        assert await lobby.move(judge, say | {"act": "ask", "turn": 2}) == "not_your_turn"
        for text in ("a " * 15, "好" * 15):  # as a machine's answer would be cut
            assert await lobby.move(agent, say | {"act": "answer", "text": text}) == "too_many_words"
        assert await lobby.move(agent, say | {"act": "answer", "text": "\ud800 a " * 7}) is None
        assert len(test.answers[0]) >= 1

    run(made(tmp_path, exchanges=[5]), work)


def test_each_study_has_a_seed_of_its_own(tmp_path: Path) -> None:
    """With the tests' ids, which judges are sent, a seed that everybody knows tells which agent is the machine."""
    seeds = set()
    for name in ("one", "another"):
        assert main(["study", "new", "--preset", "online", "-o", str(tmp_path / name)]) == 0
        settings = read_settings(tmp_path / name)
        assert isinstance(settings, OnlineSettings)
        seeds.add(settings.tests.seed)
    assert len(seeds - {0}) == 2


def test_who_was_in_no_test_that_counts_takes_nobodys_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.meetings.agent_server.TRIES", 1)
    replies(monkeypatch)

    async def work(served: ServedStudy) -> None:
        for name in ("void", "over"):
            if name == "void":
                replies(monkeypatch, lambda agent, row: {})
            else:
                replies(monkeypatch)
            judge = await arrived(served, "test")
            assert (await take_part(served, judge, "q"))[-1]["state"] == name
            assert (await served.answer(judge, judge.step, {})).is_new
            assert judge.ended == "finished"
        with pytest.raises(Refused, match="no_new"):
            await served.join(None, None)

    run(made(tmp_path, participants_wanted=1, participants_most=1, exchanges=[1], two_machines=1.0), work)


def test_the_export_of_tests_is_scored(tmp_path: Path) -> None:
    """Of a judge whose ability is known; in a tenth of the tests both agents are machines."""
    study = made(tmp_path)
    at = "2026-01-01T00:00:00.000Z"
    chance = random.Random(0)
    joined = {"session": "s", "number": 1, "keys": [], "steps": [], "end_code": "", "link": None, "kit": None}
    events = [{"event": "joined", "judge": code, **joined} for code in ("judge", "other")]
    for number in range(60):
        name = f"test-{number:05}"
        parts = chance.sample(["person", "machine"], 2)
        parts = ["machine", "machine"] if number % 10 == 0 else parts
        agents = ["other" if part == "person" else "argues" for part in parts]
        about: dict[str, Any] = {"condition": "person_deceives", "exchanges": 1 + 2 * (number % 2), "verdicts": "each"}
        events.append({"event": "test", "test": name, "judge": "judge", "agents": agents, "parts": parts, **about})
        right = "human" if parts[0] == "person" else "machine"
        for exchange in range(about["exchanges"]):
            said = {"test": name, "delay_s": 1.0, "raw": None, "text": f"{number} {exchange}"}
            events.append({"event": "test_asked", "who": "judge", **said, "clock": 5.0 * exchange + 1})
            for side in (1, 2):
                answer = {"event": "test_answered", "who": agents[side - 1], "side": side}
                events.append({**answer, **said, "text": f"{side} {number} {exchange}", "clock": 5.0 * exchange + 2})
            verdict = right if chance.random() < 0.75 else {"human": "machine", "machine": "human"}[right]
            judged = {"event": "test_judged", "test": name, "who": "judge", "verdict": verdict, "reason": None}
            events.append({**judged, "clock": 5.0 * exchange + 3})
    (study / "events.jsonl").write_text("".join(json.dumps({**event, "at": at}) + "\n" for event in events))
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out")]) == 0
    for folder in ("conversations", "verdicts"):
        for path in (tmp_path / "out" / folder / "records").iterdir():
            assert all(problems(json.loads(line)) == [] for line in path.read_text().splitlines())
    table = read_verdicts(open_verdicts([tmp_path / "out" / "verdicts"]))
    alike = table[table["truth"] == table["beside_truth"]]
    assert alike["stimulus"].nunique() == 6
    apart = table[table["truth"] != table["beside_truth"]]
    assert abs((apart["verdict"] == apart["truth"]).mean() - 0.75) < 0.1
    assert main(["score", str(tmp_path / "out" / "verdicts"), "-o", str(tmp_path / "scores"), "--by", "condition"]) == 0


def test_what_an_online_study_lacks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def checked(**values: Any) -> str:
        changed(study, **values)
        assert main(["study", "check", str(study)]) == 2
        return capsys.readouterr().err

    study = made(tmp_path, machine_argues="", machine_deceives="", two_machines=0.5)
    said = checked()
    assert "agents.machine_argues: name" in said
    assert "agents.machine_deceives: name" in said
    server = f"http://127.0.0.1:{server_process.free_port()}/"
    said = checked(machine_argues="eliza", machine_deceives="eliza", server=server, tests_person_deceives=1.0)
    assert "does not answer; start `turinglike serve`" in said
    assert "machine_deceives" not in said  # which no test has
    with misbehaving_server.running() as other:
        other.otherwise = lambda request: misbehaving_server.body(b"[1]")
        assert "is no `turinglike serve`: it sends no list of agents" in checked(server=other.url)
    monkeypatch.setattr("judging.study.meetings.material.served_agents", lambda server: ({"eliza": ["judgement"]}, ""))
    assert "agents.machine_argues: eliza answers judgement, not conversation" in checked()


def test_every_value_has_its_share() -> None:
    """Whatever kind is drawn, no number of exchanges and no condition is more than one test off its share."""
    settings = Drawn(wanted=100, seed=0, two_machines=0.2, two_people=0.1, person_deceives=0.3)
    held = list[OnlineTest]()
    kinds = wanted_shares(settings)[2]
    assert kinds == {"person machine": 0.7, "two machines": 0.2, "two people": 0.1}
    for at in range(200):
        chance = random.Random(at)
        [kind] = chance.choices(list(kinds), list(kinds.values()))
        exchanges, condition = next_cell(settings, held, chance, kind)
        held.append(OnlineTest("t", "", ["j", "a", "b"], [*PARTS_OF_PAIR[kind]], condition, exchanges, "end"))
        counts = Counter(test.exchanges for test in held)
        assert all(abs(counts[number] - (at + 1) / 4) < 1.5 for number in settings.exchanges)
        assert abs(sum(test.condition == "person_deceives" for test in held) - 0.3 * (at + 1)) < 1.5
    assert len({(test.exchanges, test.condition, test.pair) for test in held}) == 24


def test_what_a_machine_says_too_much_is_cut() -> None:
    assert shortened("One two. Three four. Five six.", 4) == "One two. Three four."
    assert shortened("one two three four five", 3) == "one two three"
    assert shortened("Fine, thank you", 14) == "Fine, thank you"
    assert shortened("It costs 3.50 dollars a day", 5) == "It costs 3.50 dollars a"
    assert shortened('I said "No." Then Dr. Smith came in', 6) == 'I said "No."'
    assert shortened("我每天早上喝咖啡。你呢？今天很冷", 12) == "我每天早上喝咖啡。你呢？"
    assert shortened("我每天早上喝咖啡，你喝茶", 5) == "我每天早上"
    assert shortened("私はコーヒーが好き", 4) == "私はコーヒーが"  # a run of Katakana is one word
    assert shortened("well-known - and/or 3.5 नमस्ते दुनिया", 5) == "well-known - and/or 3.5 नमस्ते"


def test_two_browsers_hold_a_test_and_one_leaves_the_next(browser: Browser, tmp_path: Path) -> None:
    reply = json.dumps({"answer": {"messages": [{"text": f"I am not sure. {BAD}"}]}}).encode()
    with ExitStack() as running:
        machine = running.enter_context(misbehaving_server.running())
        machine.otherwise = lambda request: misbehaving_server.body(reply)
        study = made(tmp_path, exchanges=[1], each=2, server=machine.url, seconds_away=10.0)
        server = running.enter_context(serving(study))
        assert "online tests with this agent will be void: agents.machine_argues: " in server.said()
        pages = []
        faults = list[str]()
        for _ in range(2):
            page = browser.new_context().new_page()
            page.on("pageerror", lambda error: faults.append(str(error)))
            pages.append(begin_in(page, server.url))
        for page in pages:
            page.get_by_role("button", name="I have read this").click()
        [judge] = [page for page in pages if page.get_by_role("heading", name="You are the judge").is_visible()]
        [agent] = [page for page in pages if page is not judge]
        counted = agent.evaluate("texts => texts.map(Turinglike.countWords)", TEXTS_OF_WORDS)
        assert counted == [count_words(text) for text in TEXTS_OF_WORDS]
        judge.get_by_label("Your question").fill(f"what? {BAD}")
        judge.keyboard.press("Enter")
        agent.get_by_label("Your answer").fill("word " * 15)
        agent.get_by_role("button", name="Send").click()
        agent.get_by_text("Please use fewer than 15 words.").wait_for()
        agent.get_by_label("Your answer").fill("好" * 14)
        agent.get_by_text("14 of at most 14 words").wait_for()
        agent.get_by_label("Your answer").fill(f"mine {BAD}")
        agent.keyboard.press("Enter")
        judge.get_by_text(f"mine {BAD}").wait_for()
        assert judge.get_by_text(f"I am not sure. {BAD}").is_visible()
        assert agent.get_by_text("I am not sure.").count() == 0
        judge.reload()
        judge = judge.context.new_page()  # a second tab
        judge.goto(server.url)
        judge.get_by_label("Agent 2").check()
        judge.get_by_label("Why?").fill("so")
        judge.get_by_role("button", name="Continue").click()
        for page in (judge, agent):
            page.get_by_text("The test is over").wait_for()
            page.get_by_role("button", name="Continue").click()
        for page in (judge, agent):
            page.get_by_role("button", name="I have read this").click()
        agent.context.close()
        judge.get_by_text("Somebody has left").wait_for()
        judge.get_by_role("button", name="Wait for another test").click()
        judge.get_by_role("button", name="Go on without").click()
        judge.locator(".code").wait_for()
        assert judge.title().endswith(" – Which one is the human?")
        judge.context.close()
    assert faults == []
    first, second = read_state(study).meetings.values()
    assert (len(first.questions), first.judged[0].reason, second.void is None) == (1, "so", False)
