"""Online tests: a judge and two agents who do not see each other, held over the lobby, without people, and resumed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import server_process

from judging.study.material import material_of
from judging.study.online.quotas import PARTS, Cell, next_cell
from judging.study.online.state import OnlineTest
from judging.study.online.tests import shortened
from judging.study.settings import Tests as Drawn
from judging.study.settings import read_settings, source_of
from judging.study.state import Judge, read_state
from judging.study.study import Refused, Study
from judging.verdicts import read_verdicts
from serving.cli import main
from serving.runs.records import problems

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BAD = "<img src=x onerror=document.title='broken'>"
NO_DELAY = {"base": 0.0, "type_mean": 0.0, "type_sd": 0.0, "read_mean": 0.0, "read_sd": 0.0, "think_scale": 0.0}
AGENTS = {"machine_argues": "argues", "machine_deceives": "deceives"}
BATCH = {f"batch_{name}": name for name in ("questions", "verdicts", "person_deceives", "person_argues")}


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.online.lobby.LOOK", 0.01)


def made(folder: Path, **given: Any) -> Path:
    """A study of online tests with some lines of ``study.toml`` changed; none may lack."""
    assert main(["study", "new", "--preset", "online", "-o", str(folder / "study")]) == 0
    path = folder / "study" / "study.toml"
    lines, left = path.read_text().split("\n"), {"before": [], "after": [], **AGENTS, **NO_DELAY, **given}
    table = ""
    for at, line in enumerate(lines):
        table = line.split("]")[0][1:] if line.startswith("[") else table
        name = line.partition(" = ")[0]
        dotted = f"{table}_{name}" if table in ("batch", "roles") or f"{table}_{name}" in left else name
        if dotted in left and "=" in line:
            lines[at] = f"{name} = {json.dumps(left.pop(dotted))}"
    assert not left
    path.write_text("\n".join(lines))
    return folder / "study"


def run(folder: Path, work: Callable[[Study], Awaitable[None]]) -> None:
    settings = read_settings(folder)

    async def inside() -> None:
        study = Study(folder, material_of(folder, settings, source_of(folder, settings)), lambda: None)
        study.start()
        await work(study)
        await study.close()

    asyncio.run(inside())


async def arrived(study: Study) -> Judge:
    judge, _ = await study.join(None, None)
    while judge.current is not None and judge.current["kind"] != "test":
        said = {"consent": {"agree": True}, "questions": {"country": "Iceland"}}
        await study.answer(judge, judge.step, said.get(judge.current["kind"], {}))
    return judge


async def take_part(study: Study, judge: Judge, name: str, human: int = 1) -> list[dict[str, Any]]:
    """Do whatever is awaited until the test ends; returns all that was seen."""
    lobby, seen, version = study.online, list[dict[str, Any]](), ""
    assert lobby is not None
    while True:
        found = await lobby.at(judge, version)
        version = found["version"]
        seen.append(found)
        if found["state"] in ("over", "void", "nobody"):
            return seen
        if found["state"] == "open" and found["act"]:
            said = {"test": found["test"], "act": found["act"], "turn": found["turn"]}
            said |= {"text": f"{name} {found['turn']}", "human": human, "reason": "because"}
            assert await lobby.move(judge, said) is None
            assert await lobby.move(judge, said) is None  # what is sent twice is done once


def replies(monkeypatch: pytest.MonkeyPatch, said: Callable[[str, dict[str, Any]], Any] | None = None) -> list[Any]:
    """Machines that answer here; returns the requests."""
    asked = []

    def post(address: str, body: dict[str, Any]) -> dict[str, Any]:
        asked.append((address, body))
        agent, row = body["agent"], body["stimulus"]
        text = f"{agent} {len(row.get('history', ()))}" if said is None else said(agent, row)
        return {"answer": text if isinstance(text, dict) else {"messages": [{"text": text}]}}

    monkeypatch.setattr("judging.study.online.tests._post", post)
    served = {*AGENTS.values(), *BATCH.values()}
    monkeypatch.setattr("judging.study.online.material.served_agents", lambda server: (served, ""))
    return asked


@pytest.mark.parametrize(("verdicts", "deceives"), [("end", 0.0), ("each", 1.0)])
def test_a_judge_a_person_and_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdicts: str, deceives: float
) -> None:
    study = made(tmp_path, exchanges=[2], verdicts=verdicts, person_deceives=deceives, before=["country"])
    asked = replies(monkeypatch)

    async def work(served: Study) -> None:
        people = [await arrived(served) for _ in range(2)]
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
            assert await served.answer(one, one.step, {})
            assert one.ended == "finished"
        before.append(served.state)

    before: list[Any] = []
    run(study, work)
    state = read_state(study)
    assert state == before[0]
    [test] = state.tests.by_id.values()
    person = test.agents[test.parts.index("person")]
    assert (len(test.asked), [one.exchanges for one in test.judged]) == (2, [1, 2] if verdicts == "each" else [2])
    assert {test.judged[-1].verdict, test.judged[-1].reason} == {"human", "because"}
    for address, body in asked:
        assert address == "http://127.0.0.1:8001/answers"
        texts = [one["text"] for one in body["stimulus"]["history"] if one["speaker"] == "B"]
        assert all(text.startswith(body["agent"]) for text in texts)
        assert person not in json.dumps(body)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out"), "--personal"]) == 0
    table = (tmp_path / "out" / "participants.csv").read_text().splitlines()
    assert sorted(line.partition(",")[0] for line in table[1:]) == sorted(f"human:{code}" for code in state.judges)
    assert all(",Iceland," in line for line in table[1:])
    others = [path for path in (tmp_path / "out").rglob("*.*") if path.is_file() and path.name != "participants.csv"]
    assert all(b"Iceland" not in path.read_bytes() for path in others)


def test_what_a_judge_is_sent_does_not_tell_who_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two people, of two machines and of one of either the judge sees the same, but for what is said."""
    asked = replies(monkeypatch, lambda agent, row: "said")
    sent = []
    for number, shares in enumerate(({"two_people": 1.0}, {"two_machines": 1.0}, {})):
        (folder := tmp_path / str(number)).mkdir()
        study = made(folder, exchanges=[1], person_deceives=0.0, seed=number, **shares)

        async def work(served: Study, people: int = (3, 1, 2)[number]) -> None:
            all_of_them = [await arrived(served) for _ in range(people)]
            views = await asyncio.gather(*(take_part(served, one, "said") for one in all_of_them))
            [judges] = [seen for seen in views if seen[-1]["role"] == "judge"]
            for view in judges:
                for one in view.get("exchanges", ()):
                    one["answers"] = ["said"] * len(one["answers"])
            acts = [view | {"version": "", "test": ""} for view in judges if view.get("act") or view["state"] == "over"]
            sent.append((acts, [test.pair for test in served.state.tests.by_id.values()]))

        run(study, work)
    assert [pairs for _, pairs in sent] == [["two people"], ["two machines"], ["person machine"]]
    assert [view["act"] for view in sent[0][0]] == ["ready", "ask", "judge", None]
    assert sent[0][0] == sent[1][0] == sent[2][0]
    assert len(asked) == 3


def test_answers_are_shown_when_the_delay_is_over_and_no_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = made(tmp_path, exchanges=[1], two_machines=1.0, base=1.0)
    replies(monkeypatch)

    async def work(served: Study) -> None:
        judge = await arrived(served)
        assert served.online is not None
        begun = asyncio.create_task(take_part(served, judge, "q"))
        while (
            not (tests := served.state.tests.by_id)
            or len((test := tests["test-00001"]).answers[-1:] and test.answers[-1]) < 2
        ):
            await asyncio.sleep(0.01)
        held = served.online.held
        assert served.online._view(test, judge.code)["exchanges"][0]["answers"] == []
        assert held.due(test) == []
        monkeypatch.setattr("judging.study.online.tests.time.time", lambda: test.began() + 1.5)
        seen = await begun
        assert len(seen[-1]["exchanges"][0]["answers"]) == 2
        assert all(said.delay_s >= 1.0 for said in test.answers[0].values())

    run(study, work)


def test_who_leaves_makes_it_void_and_the_other_one_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = made(tmp_path, seconds_away=0.3)
    replies(monkeypatch)

    async def work(served: Study) -> None:
        stays, leaves = [await arrived(served) for _ in range(2)]
        lobby = served.online
        assert lobby is not None
        waits = asyncio.create_task(take_part(served, stays, "x"))
        while (await lobby.at(leaves, ""))["state"] != "open":
            await asyncio.sleep(0.01)
        with pytest.raises(Refused, match="not_yet"):
            await served.answer(stays, stays.step, {"nobody": True})
        [*_, found] = await waits
        assert found["state"] == "void"
        assert await lobby.move(stays, {"test": found["test"], "act": "ask", "turn": 9, "text": "?"}) == "test_void"
        assert await lobby.move(stays, {"test": found["test"], "act": "back"}) is None
        assert (await lobby.at(stays, ""))["state"] == "waiting"
        comes = await arrived(served)
        assert (await lobby.at(comes, ""))["state"] == "open"
        assert (await lobby.at(stays, ""))["state"] == "open"

    run(study, work)
    first, second = read_state(study).tests.by_id.values()
    assert str(first.void).endswith(" left")
    assert second.void is None


def test_a_test_that_everybody_has_left_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.online.lobby.SWEEP", 0.0)
    replies(monkeypatch)

    async def work(served: Study) -> None:
        lobby, leaves = served.online, await arrived(served)
        assert lobby is not None
        assert (await lobby.at(leaves, ""))["state"] == "open"
        comes = await arrived(served)
        assert (await lobby.at(comes, ""))["state"] == "waiting"  # for one test alone is wanted
        assert (await take_part(served, comes, "x"))[-1]["state"] == "over"
        assert (await lobby.at(await arrived(served), ""))["state"] == "nobody"  # there are enough

    run(made(tmp_path, tests_wanted=1, exchanges=[1], two_machines=1.0, seconds_away=0.3), work)


def test_who_keeps_the_others_waiting_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies(monkeypatch)

    async def work(served: Study) -> None:
        people = [await arrived(served) for _ in range(2)]
        assert served.online is not None
        await asyncio.gather(*(served.online.at(one, "") for one in people))
        [test] = served.state.tests.by_id.values()
        while test.void is None:
            await asyncio.gather(*(served.online.at(one, "") for one in people))
            await asyncio.sleep(0.05)
        assert test.void.endswith("did nothing")

    run(made(tmp_path, seconds_to_act=0.3), work)


def test_what_nobody_may_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies(monkeypatch)

    async def work(served: Study) -> None:
        people = [await arrived(served) for _ in range(3)]
        lobby = served.online
        assert lobby is not None
        await asyncio.gather(*(lobby.at(one, "") for one in people[:2]))
        [test] = served.state.tests.by_id.values()
        judge, agent = sorted(people[:2], key=lambda one: one.code != test.judge)
        say = {"test": test.id, "turn": 1, "text": "hello"}
        assert await lobby.move(judge, say | {"act": "ask"}) == "not_your_turn"  # before the part is read
        for one in (judge, agent):
            assert await lobby.move(one, {"test": test.id, "act": "ready", "turn": 0}) is None
        assert await lobby.move(people[2], say | {"act": "ask"}) == "test_void"
        assert await lobby.move(agent, say | {"act": "ask"}) == "not_your_turn"
        assert await lobby.move(agent, say | {"act": "answer"}) == "not_your_turn"
        assert await lobby.move(judge, say | {"act": "judge", "human": 1}) == "not_your_turn"
        assert await lobby.move(judge, say | {"act": "back"}) == "not_your_turn"
        for text in (None, 3, " ", "x" * 2001):
            assert await lobby.move(judge, say | {"act": "ask", "text": text}) == "incomplete"
        assert await lobby.move(judge, say | {"act": "ask"}) is None
        assert await lobby.move(judge, say | {"act": "ask", "turn": 2}) == "not_your_turn"
        assert await lobby.move(agent, say | {"act": "answer", "text": "a " * 15}) == "too_many_words"
        assert await lobby.move(agent, say | {"act": "answer", "text": "\ud800 a " * 7}) is None
        assert len(test.answers[0]) >= 1

    run(made(tmp_path, exchanges=[5]), work)


def test_a_machine_whose_server_is_away_makes_it_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.online.tests.TRIES", 1)

    def away(address: str, body: Any) -> Any:
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr("judging.study.online.tests._post", away)

    async def work(served: Study) -> None:
        seen = await take_part(served, await arrived(served), "q")
        assert seen[-1]["state"] == "void"

    run(made(tmp_path, two_machines=1.0), work)


def test_nobody_comes_and_one_goes_on(tmp_path: Path) -> None:
    async def work(served: Study) -> None:
        judge = await arrived(served)
        assert served.online is not None
        assert (await served.online.at(judge, ""))["state"] == "nobody"
        assert await served.answer(judge, judge.step, {"nobody": True})
        assert (judge.ended, judge.answers[-1]["test"]) == ("finished", None)

    run(made(tmp_path, seconds_in_lobby=0.0), work)


def test_who_waited_for_one_test_waits_anew_for_the_next(tmp_path: Path) -> None:
    async def work(served: Study) -> None:
        judge, lobby = await arrived(served), served.online
        assert lobby is not None
        version = ""
        while (found := await lobby.at(judge, version))["state"] == "waiting":
            version = found["version"]
        await served.answer(judge, judge.step, {"nobody": True})
        assert (await lobby.at(judge, ""))["state"] == "waiting"

    run(made(tmp_path, seconds_in_lobby=0.2, each=2), work)


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
    text = (study / "study.toml").read_text().replace('machine_argues = ""', 'machine_argues = "eliza"')
    text = text.replace("http://127.0.0.1:8001/", f"http://127.0.0.1:{server_process.free_port()}/")
    (study / "study.toml").write_text(text.replace("person_deceives = 0.5", "person_deceives = 1.0"))
    assert main(["study", "check", str(study)]) == 2
    assert "does not answer; start `turinglike serve`" in capsys.readouterr().err


def test_a_participant_is_forgotten_with_what_they_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = made(tmp_path, exchanges=[1])
    replies(monkeypatch)

    async def work(served: Study) -> None:
        people = [await arrived(served) for _ in range(2)]
        await asyncio.gather(*(take_part(served, one, f"p{at}") for at, one in enumerate(people)))
        for one in people:
            await served.answer(one, one.step, {})

    run(study, work)
    first, second = read_state(study).judges
    assert main(["study", "forget", str(study), first]) == 0
    assert first not in (study / "events.jsonl").read_text()
    assert "p0 1" not in (study / "events.jsonl").read_text()
    state = read_state(study)
    assert (list(state.judges), state.judges[second].ended) == ([second], "finished")
    assert [test.void for test in state.tests.by_id.values()] == ["forgotten"]
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out")]) == 2


def test_every_value_has_its_share() -> None:
    """Whatever is drawn before, no number of exchanges, condition or kind is more than one test off its share."""
    settings = Drawn(wanted=100, two_machines=0.2, two_people=0.1, person_deceives=0.3)
    held: list[OnlineTest] = []
    for at in range(200):
        cell = next_cell(settings, held, random.Random(at))
        assert cell is not None
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
    alone = next_cell(settings, held, random.Random(0), people=1)
    assert alone is not None
    assert alone.pair == "two machines"
    assert next_cell(Drawn(wanted=1), [], random.Random(0), people=1) is None


def _held(cell: Cell) -> OnlineTest:
    return OnlineTest("t", "", "j", ["a", "b"], list(PARTS[cell.pair]), cell.condition, cell.exchanges, "end")


def test_what_a_machine_says_too_much_is_cut() -> None:
    assert shortened("One two. Three four. Five six.", 4) == "One two. Three four."
    assert shortened("one two three four five", 3) == "one two three"
    assert shortened("Fine, thank you", 14) == "Fine, thank you"


class _Machine(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        said = json.dumps({"answer": {"messages": [{"text": f"I am not sure. {BAD}"}]}}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *given: Any) -> None:
        pass


@pytest.fixture
def machine() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Machine) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_two_browsers_hold_a_test_and_one_leaves_the_next(browser: Browser, machine: str, tmp_path: Path) -> None:
    study = made(tmp_path, exchanges=[1], each=2, server=machine, seconds_away=1.0)
    command = [sys.executable, "-m", "serving.cli", "study", "serve", str(study)]
    (tmp_path / "log").mkdir()
    with server_process.running(tmp_path / "log", command, os.environ) as server:
        server.wait_for("/health")
        pages, faults = [], list[str]()
        for _ in range(2):
            page = browser.new_context().new_page()
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.goto(server.url)
            page.get_by_role("button", name="Begin").click()
            page.get_by_role("button", name="I agree").click()
            page.get_by_role("heading", name="What to do").wait_for()
            page.get_by_role("button", name="Continue").click()
            pages.append(page)
        for page in pages:
            page.get_by_role("button", name="I have read this").click()
        [judge] = [page for page in pages if page.get_by_role("heading", name="You are the judge").is_visible()]
        [agent] = [page for page in pages if page is not judge]
        judge.get_by_label("Your question").fill(f"what? {BAD}")
        judge.keyboard.press("Enter")
        agent.get_by_label("Your answer").fill("word " * 15)
        agent.get_by_role("button", name="Send").click()
        agent.get_by_text("Please use fewer than 15 words.").wait_for()
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
        assert judge.title() == "Which one is the human?"
        judge.context.close()
    assert faults == []
    first, second = read_state(study).tests.by_id.values()
    assert (len(first.asked), first.judged[0].reason, second.void is None) == (1, "so", False)
