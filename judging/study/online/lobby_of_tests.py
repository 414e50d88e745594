"""The lobby of online tests: participants wait, are given parts, and see what their part may see.

Who is to judge and who takes a person's part is drawn anew for each test, among those who have waited longest. More may
wait than a test takes: they are there when somebody leaves. Where kinds of tests take more and fewer people, everybody
waits for as many as any takes; the kind is drawn after that, by its share alone: a judge cannot tell from the time that
they waited whom they ask. Who is not heard of for a while, or does not do in time what is awaited of them, has left:
the test is void, and the others may go back to the lobby.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from agents.answers import is_blank
from judging.study.agent_server import LONGEST, tidy
from judging.study.events import Judge, State
from judging.study.lobby import Lobby, View
from judging.study.online.conduct import HeldTests, Note
from judging.study.online.course import SIDES, Act, OnlineTest, drawn_pair, next_cell
from judging.study.page_answers import LONGEST_REASON
from judging.study.settings import OnlineSettings


class OnlineLobby(Lobby[OnlineTest]):
    """Who waits, and since when something is ``awaited`` of whom, by test."""

    kind = "test"

    def __init__(
        self, settings: OnlineSettings, state: State, note: Note, written: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(state, note, written, settings.tests)
        self.settings = settings
        self.held = HeldTests(settings, state, note)
        self.awaited: dict[str, tuple[list[tuple[str, int, Act]], float]] = {}

    def meetings(self) -> list[OnlineTest]:
        return self.state.tests.counted()

    def meeting_of(self, code: str) -> OnlineTest | None:
        return self.state.tests.test_of(code)

    def is_enough(self) -> bool:
        """Whether as many tests as are wanted are over."""
        return sum(test.is_over() for test in self.meetings()) >= self.settings.tests.wanted

    def result(self, judge: Judge) -> str | None:
        test = self.meeting_of(judge.code)
        return test.id if test is not None and (test.void is not None or test.is_over()) else None

    def drive(self, test: OnlineTest) -> None:
        self.held.drive(test)

    async def close(self) -> None:
        await self.held.close()

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
            kind, needed = drawn_pair(tests, self.held.chance(f"pair {begun}"))
            if len(there) < needed:
                return
            cell = next_cell(tests, counted, self.held.chance(f"cell {begun}"), kind)
            chosen = there[:needed]
            self.held.chance(f"people {begun}").shuffle(chosen)
            chosen = chosen[: cell.people]
            for code in chosen:
                self.waiting.pop(code)
            await self.held.begin(cell, chosen)

    async def end_if_left(self, test: OnlineTest) -> None:
        """Also if somebody keeps the others waiting."""
        if test.void is not None or test.is_over():
            return
        due = [move for move in self.held.due(test) if move[0] in self.state.judges]
        if self.awaited.get(test.id, (None, 0.0))[0] != due:
            self.awaited[test.id] = (due, time.monotonic())
        if (code := self.absent(test.people)) is not None:
            await self.held.void(test, f"{code} left")
        elif due and time.monotonic() - self.awaited[test.id][1] > self.settings.tests.seconds_to_act:
            await self.held.void(test, f"{due[0][0]} did nothing")

    def view(self, test: OnlineTest, code: str) -> View:
        side = test.people.index(code)
        over = "void" if test.void is not None else "over" if test.is_over() else None
        of_agents = "person_deceives" if test.condition == "person_deceives" else "person_argues"
        role = of_agents if side else "judge"
        acts = [act for who, _, act in self.held.due(test) if who == code]
        act = acts[0] if acts else None
        both = test.shown(self.held.clock(test))
        exchanges = []
        for number, (question, answers) in enumerate(zip(test.asked, test.answers, strict=True)):
            sides = [side] if side else [*SIDES] if number < both else []
            texts = [answers[at].text for at in sides if at in answers]
            exchanges.append({"question": question.text, "answers": texts})
        verdicts = [
            {"after": judged.exchanges, "human": 1 if judged.verdict == "human" else 2, "reason": judged.reason}
            for judged in test.judged
            if side == 0
        ]
        return {
            "state": over or "open",
            "test": test.id,
            "role": role,
            "text": getattr(self.settings.roles, role),
            "act": act,
            "turn": _turn(test, act),
            "left": test.exchanges - (both if side == 0 else sum(side in answers for answers in test.answers)),
            "of": test.exchanges,
            "exchanges": exchanges,
            "verdicts": verdicts,
        }

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
            await self.written()
            return None
        if (judge.code, side, act) not in self.held.due(test) or turn != _turn(test, act):
            return "not_your_turn"
        text = body.get("reason" if act == "judge" else "text", "")
        if act == "ready":
            await self.held.ready(test, judge.code)
        elif not isinstance(text, str) or len(text) > (LONGEST_REASON if act == "judge" else LONGEST):
            return "incomplete"
        elif act == "judge":
            if type(body.get("human")) is not int or body["human"] not in SIDES:
                return "incomplete"
            verdict = "human" if body["human"] == 1 else "machine"
            await self.held.judge(test, judge.code, verdict, tidy(text) or None)
        elif is_blank(tidy(text)):
            return "incomplete"
        elif act == "ask":
            await self.held.ask(test, tidy(text))
        elif len(text.split()) >= self.settings.tests.words_below:
            return "too_many_words"
        else:
            await self.held.answer(test, side, tidy(text))
        return None


def _turn(test: OnlineTest, act: Any) -> int:
    """The number of the exchange that an act is of: it tells an act that is sent twice from the next."""
    return len(test.asked) + int(act == "ask")


def _is_done(test: OnlineTest, side: int, act: Any, turn: Any) -> bool:
    """Whether what is sent was sent before."""
    if type(turn) is not int or turn < 0:
        return False
    match act:
        case "ready":
            return test.people[side] in test.ready
        case "ask":
            return side == 0 and 0 < turn <= len(test.asked)
        case "answer":
            return side > 0 and 0 < turn <= len(test.answers) and side in test.answers[turn - 1]
        case "judge":
            return side == 0 and any(judged.exchanges == turn for judged in test.judged)
    return False
