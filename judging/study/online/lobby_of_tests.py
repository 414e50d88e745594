"""The lobby of online tests: participants wait, get parts, see what their part may see, and make their moves.

Who is to judge and who takes a person's part is drawn anew for each test, among those who have waited longest. More may
wait than a test takes: they are there when somebody leaves. Where kinds of tests take more and fewer people, everybody
waits for as many as any takes; the kind is drawn after that, by its share alone: a judge cannot tell from the time that
they waited whom they ask. Who is not heard of for a while, or does not do in time what is awaited of them, has left:
the test is void, and the others may go back to the lobby.

A `turinglike serve` answers for machines, each agent for its conversation with the judge. When an answer is
shown the model of delays says (:mod:`serving.conversations.scenario`).
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import orjson

from agents.answers import VerdictAnswer, is_blank
from judging.study.agent_server import LONGEST, REPLY_SECONDS, TRIES, NoAnswerError, text_of, tidy
from judging.study.events import Judge, State
from judging.study.lobby import Lobby, Note, View
from judging.study.online.course import PARTS, SIDES, Act, Cell, OnlineTest, drawn_pair, next_cell, people_of, shortened
from judging.study.page_answers import LONGEST_REASON
from judging.study.settings import OnlineSettings

T = TypeVar("T")


class OnlineLobby(Lobby[OnlineTest]):
    """The tests of a study. Without people (``is_simulated``) no time passes but that of the tests' own clocks.

    ``awaited`` is what is awaited of whom in a test, and since when; ``began`` when each began, on a clock that nobody
    sets.
    """

    kind = "test"

    def __init__(
        self, settings: OnlineSettings, state: State, note: Note, written: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(state, note, written, settings.tests)
        self.settings = settings
        self.is_simulated = False
        self.began: dict[str, float] = {}
        self.awaited: dict[str, tuple[list[tuple[str, int, Act]], float]] = {}

    def meetings(self) -> list[OnlineTest]:
        return self.state.tests.counted()

    def meeting_of(self, code: str) -> OnlineTest | None:
        return self.state.tests.test_of(code)

    def is_over(self, test: OnlineTest) -> bool:
        return test.is_over()

    def is_enough(self) -> bool:
        """Whether as many tests as are wanted are over."""
        return sum(test.is_over() for test in self.meetings()) >= self.settings.tests.wanted

    def clock(self, test: OnlineTest) -> float:
        """Seconds since the test began, whatever becomes of the machine's clock while this process runs."""
        if self.is_simulated:
            return float("inf")
        if test.id not in self.began:
            self.began[test.id] = time.monotonic() - max(time.time() - test.began(), test.last_clock())
        return time.monotonic() - self.began[test.id]

    def due(self, test: OnlineTest) -> list[tuple[str, int, Act]]:
        return test.due(self.clock(test), self.state.judges)

    def chance(self, what: str) -> random.Random:
        """Numbers for a purpose, the same whenever they are drawn."""
        return random.Random(f"{self.settings.tests.seed} {what}")

    async def look(self, judge: Judge) -> View:
        view = await super().look(judge)
        return view | {"version": hashlib.sha256(orjson.dumps(view)).hexdigest()[:16]}

    async def pair(self, judge: Judge) -> None:
        tests = self.settings.tests
        while there := self.there():
            counted = self.meetings()
            if len(counted) >= tests.wanted:  # those who wait are there for a test that becomes void
                return
            begun = len(self.state.tests.by_id)
            kind, needed = drawn_pair(tests, self.chance(f"pair {begun}"))
            if len(there) < needed:
                return
            cell = next_cell(tests, counted, self.chance(f"cell {begun}"), kind)
            chosen = there[:needed]
            self.chance(f"people {begun}").shuffle(chosen)
            chosen = chosen[: people_of(cell.pair)]
            for code in chosen:
                self.waiting.pop(code)
            await self.begin(cell, chosen)

    async def begin(self, cell: Cell, people: list[str]) -> OnlineTest:
        """Begin a test of a cell; the first of ``people`` is its judge, the others take the persons' parts. Whom
        nobody is there for an agent of the batch plays."""
        name = f"test-{len(self.state.tests.by_id) + 1:05}"
        batch, agents = self.settings.batch, self.settings.agents
        judge, *others = people or [batch.questions]
        parts = list(PARTS[cell.pair])
        self.chance(name).shuffle(parts)
        poses = cell.condition == "person_deceives"
        machine = agents.machine_argues if poses else agents.machine_deceives
        stands_in = batch.person_deceives if poses else batch.person_argues
        who = [machine if part == "machine" else others.pop(0) if others else stands_in for part in parts]
        await self.note(
            {
                "event": "test", "test": name, "judge": judge, "agents": who, "parts": parts,
                "condition": cell.condition, "exchanges": cell.exchanges, "verdicts": self.settings.tests.verdicts,
            }
        )  # fmt: skip
        return self.state.tests.by_id[name]

    async def end_if_left(self, test: OnlineTest) -> None:
        """Also if somebody keeps the others waiting."""
        if test.void is not None or test.is_over():
            return
        due = [move for move in self.due(test) if move[0] in self.state.judges]
        if self.awaited.get(test.id, (None, 0.0))[0] != due:
            self.awaited[test.id] = (due, time.monotonic())
        if (code := self.absent(test.people)) is not None:
            await self._void(test, f"{code} left")
        elif due and time.monotonic() - self.awaited[test.id][1] > self.settings.tests.seconds_to_act:
            await self._void(test, f"{due[0][0]} did nothing")

    async def _void(self, test: OnlineTest, why: str) -> None:
        if test.void is None and not test.is_over():
            await self.note({"event": "test_void", "test": test.id, "why": why})

    def view(self, test: OnlineTest, code: str) -> View:
        side = test.people.index(code)
        over = "void" if test.void is not None else "over" if test.is_over() else None
        of_agents = "person_deceives" if test.condition == "person_deceives" else "person_argues"
        role = of_agents if side else "judge"
        act = next((act for who, _, act in self.due(test) if who == code), None)
        both = test.shown(self.clock(test))
        exchanges = []
        for number, (question, answers) in enumerate(zip(test.questions, test.answers, strict=True)):
            sides = [side] if side else [*SIDES] if number < both else []
            texts = [answers[at].text for at in sides if at in answers]
            exchanges.append({"question": question.text, "answers": texts})
        verdicts = [
            {"after": judged.exchanges, "human": 1 if judged.verdict == "human" else 2, "reason": judged.reason}
            for judged in test.judged
        ]
        return {
            "state": over or "open",
            "test": test.id,
            "role": role,
            "text": getattr(self.settings.roles, role),
            "act": act,
            "turn": _turn(test, act),
            "left": test.exchanges - (sum(side in answers for answers in test.answers) if side else both),
            "of": test.exchanges,
            "exchanges": exchanges,
            "verdicts": [] if side else verdicts,
        }

    # moves: each is checked and taken into the state at once, so that of two tabs the first counts

    async def moved(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        test, act, turn = self.meeting_of(judge.code), body.get("act"), body.get("turn")
        if test is None or test.id != body.get("test"):
            return "test_void"
        if act == "back":
            if test.void is None:
                return "not_your_turn"
            await self.note({"event": "test_left", "test": test.id, "who": judge.code})
            return None
        if test.void is not None:
            return "test_void"
        side = test.people.index(judge.code)
        if _is_done(test, side, act, turn):
            return None
        if (judge.code, side, act) not in self.due(test) or turn != _turn(test, act):
            return "not_your_turn"
        text = body.get("reason" if act == "judge" else "text", "")
        if act == "ready":
            await self.note({"event": "test_ready", "test": test.id, "who": judge.code})
        elif not isinstance(text, str) or len(text) > (LONGEST_REASON if act == "judge" else LONGEST):
            return "incomplete"
        elif act == "judge":
            if type(body.get("human")) is not int or body["human"] not in SIDES:
                return "incomplete"
            await self._judge(test, judge.code, "human" if body["human"] == 1 else "machine", text)
        elif is_blank(tidy(text)):
            return "incomplete"
        elif act == "ask":
            await self._ask(test, tidy(text))
        elif len(text.split()) >= self.settings.tests.words_below:
            return "too_many_words"
        else:
            await self._answer(test, side, tidy(text))
        return None

    async def _ask(self, test: OnlineTest, text: str) -> None:
        before = test.shown_at(len(test.questions) - 1) if test.questions else 0.0
        read = sum(len(answer.text) for answer in test.answers[-1].values()) if test.questions else 0
        taken = self._delay(test, 0, len(text), read) if self.is_simulated else self.clock(test) - before
        await self._say({"event": "test_asked", "who": test.judge}, test, text, before, taken)

    async def _answer(self, test: OnlineTest, side: int, text: str, raw: str | None = None) -> None:
        question, who = test.questions[-1], test.agents[side - 1]
        taken = self.clock(test) - question.clock
        if who not in self.state.judges:
            modelled = self._delay(test, side, len(text), len(question.text))
            taken = modelled if self.is_simulated else max(taken, modelled)
        await self._say({"event": "test_answered", "who": who, "side": side}, test, text, question.clock, taken, raw)

    async def _judge(self, test: OnlineTest, who: str, verdict: str, reason: str) -> None:
        """The verdict of ``who``, which is not who asks where there are no people."""
        clock = test.shown_at(len(test.questions) - 1) if self.is_simulated else self.clock(test)
        about = {"verdict": verdict, "reason": tidy(reason)[:LONGEST_REASON] or None, "clock": round(clock, 3)}
        await self.note({"event": "test_judged", "test": test.id, "who": who, **about})

    async def _say(
        self, event: View, test: OnlineTest, text: str, before: float, taken: float, raw: str | None = None
    ) -> None:
        times = {"clock": round(before + taken, 3), "delay_s": round(max(0.0, taken), 3)}
        await self.note({**event, "test": test.id, "text": text, **times, "raw": raw})

    def _delay(self, test: OnlineTest, side: int, written: int, read: int) -> float:
        return self.settings.delays.draw(written, read, self.chance(f"{test.id} delay {len(test.questions)} {side}"))

    # machines

    def drive(self, test: OnlineTest) -> None:
        for who, side, act in self.due(test):
            if who not in self.state.judges:
                self.begin_task((test.id, side), partial(self._move, test, who, side, act))

    async def hold(self, test: OnlineTest) -> None:
        """Hold a test without people, to its end or until it is void."""
        while (due := self.due(test)) and test.void is None:
            await asyncio.gather(*(self._move(test, who, side, act) for who, side, act in due))

    async def _move(self, test: OnlineTest, who: str, side: int, act: Act) -> None:
        is_machine = side in SIDES and test.parts[side - 1] == "machine"
        server = self.settings.agents.server if is_machine else self.settings.batch.server
        number = len(test.questions)
        try:
            if act == "judge":
                name = self.settings.batch.verdicts
                row = {"id": f"{test.id}/{number}", "task": "judgement", "shown": f"{test.id}/{number}"}
                verdict = await self._reply(server, name, row | test.trial(number), VerdictAnswer.model_validate)
            else:
                raw = await self._reply(server, who, _row(test, side), text_of)
        except NoAnswerError as error:
            await self._void(test, str(error))
            return
        if (who, side, act) not in self.due(test) or len(test.questions) != number:
            return
        if act == "judge":
            await self._judge(test, name, verdict.verdict, verdict.reason or "")
        elif act == "ask":
            await self._ask(test, tidy(raw)[:LONGEST])
        else:
            text = shortened(tidy(raw), self.settings.tests.words_below - 1)[:LONGEST]
            await self._answer(test, side, text, raw if raw != text else None)

    async def _reply(self, server: str, agent: str, row: View, read: Callable[[Any], T]) -> T:
        """An agent's reply, for which a participant waits no longer than for a person's."""
        tests = self.settings.tests
        seconds = TRIES * REPLY_SECONDS if self.is_simulated else tests.seconds_to_act
        return await self.client.answer(server, agent, row, read, seconds=seconds, seed=tests.seed)


def _turn(test: OnlineTest, act: Any) -> int:
    """The number of the exchange that an act is of: it tells an act that is sent twice from the next."""
    return len(test.questions) + int(act == "ask")


def _is_done(test: OnlineTest, side: int, act: Any, turn: Any) -> bool:
    """Whether what is sent was sent before."""
    if type(turn) is not int or turn < 0:
        return False
    match act:
        case "ready":
            return test.people[side] in test.ready
        case "ask":
            return side == 0 and 0 < turn <= len(test.questions)
        case "answer":
            return side > 0 and 0 < turn <= len(test.answers) and side in test.answers[turn - 1]
        case "judge":
            return side == 0 and any(judged.exchanges == turn for judged in test.judged)
    return False


def _row(test: OnlineTest, side: int) -> View:
    """The conversation that a machine is to go on with: the judge's (side 0), or that of an agent, who is B and sees
    its own answers alone."""
    about = {"id": f"{test.id}/{side}", "task": "conversation", "type": "HM", "who_starts": "A"}
    return {**about, "exchanges": 2 * test.exchanges, "history": test.messages(side)}


async def hold_tests(lobby: OnlineLobby, number: int, at_once: int) -> tuple[int, int]:
    """Hold tests without people until the study has ``number`` that are not void, ``at_once`` together, those first
    that were begun and not ended; returns how many it has, and how many became void now."""
    lobby.is_simulated = True
    room, under_way = asyncio.Semaphore(at_once), list[asyncio.Task[None]]()
    counted, tests = lobby.meetings(), lobby.state.tests.by_id
    void_before = len(tests) - len(counted)

    async def hold(test: OnlineTest) -> None:
        try:
            await lobby.hold(test)
        finally:
            room.release()

    try:
        for test in counted:
            if not test.is_over() and lobby.state.judges.keys().isdisjoint(test.people):
                await room.acquire()
                under_way.append(asyncio.create_task(hold(test)))
        for _ in range(number - len(counted)):
            await room.acquire()
            cell = next_cell(lobby.settings.tests, lobby.meetings(), lobby.chance(f"cell {len(tests)}"))
            under_way.append(asyncio.create_task(hold(await lobby.begin(cell, []))))
        await asyncio.gather(*under_way)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    counted = lobby.meetings()
    return sum(test.is_over() for test in counted), len(tests) - len(counted) - void_before
