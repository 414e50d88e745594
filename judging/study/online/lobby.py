"""The lobby of online tests: participants wait, are given parts, and see what their part may see.

Who is to judge and who takes a person's part is drawn anew for each test, among those who have waited longest. More may
wait than a test takes: they are there for one who leaves. Where kinds of tests take more and fewer people, everybody
waits for as many as any takes; the kind is drawn after that, by its share alone: a judge cannot tell from the time that
they waited whom they ask. Who is not heard of for a while, or does not do in time what is awaited of them, has left:
the test is void, and the others may go back to the lobby.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.answers import is_blank
from judging.study.agent_server import LONGEST, tidy
from judging.study.lobby import HELD, LOOK
from judging.study.online.quotas import drawn_pair, next_cell
from judging.study.online.state import SIDES, Act, OnlineTest
from judging.study.online.tests import HeldTests
from judging.study.page_answers import LONGEST_REASON
from judging.study.settings import OnlineSettings
from judging.study.state import Judge, State

SWEEP = 1.0  # seconds after which it is looked again who has left


@dataclass(slots=True)
class OnlineLobby:
    """Who waits, when each participant was last heard of, and since when something is awaited of them. ``written``
    returns once all that has happened is on disk."""

    held: HeldTests
    written: Callable[[], Awaitable[None]]
    closing: bool = False
    seen: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, tuple[int, float]] = field(default_factory=dict)  # at which step, and since when
    awaited: dict[str, tuple[list[tuple[str, int, Act]], float]] = field(default_factory=dict)  # by test
    swept: float = 0.0

    @property
    def settings(self) -> OnlineSettings:
        return self.held.settings

    @property
    def state(self) -> State:
        return self.held.state

    async def at(self, judge: Judge, version: str) -> dict[str, Any]:
        """What a participant sees now; held open while that is still ``version``, for as long as a request may be."""
        until = time.monotonic() + HELD
        await self._has_left(judge)
        while True:
            self.seen[judge.code] = time.monotonic()
            found = await self._look(judge)
            if found["version"] != version or self.closing or time.monotonic() > until:
                await self.written()
                return found
            await asyncio.sleep(LOOK)

    async def move(self, judge: Judge, said: dict[str, Any]) -> str | None:
        """Take what a participant does; returns why it cannot be, as a phrase's name. Sent twice it is done once."""
        await self._has_left(judge)
        test = self.state.tests.test_of(judge.code)
        self.seen[judge.code] = time.monotonic()
        act = said.get("act")
        if self.state.closed:
            return "closed"
        if test is None or test.id != said.get("test"):
            return "test_void"
        if act == "back":
            if test.void is None:
                return "not_your_turn"
            await self.held.note({"event": "test_left", "test": test.id, "who": judge.code})
            return None
        if test.void is not None:
            return "test_void"
        side = _side(test, judge.code)
        if _is_done(test, side, act, said.get("turn")):
            await self.written()
            return None
        if (judge.code, side, act) not in self.held.due(test) or said.get("turn") != _turn(test, act):
            return "not_your_turn"
        return await self._moved(test, side, judge, said)

    async def _moved(self, test: OnlineTest, side: int, judge: Judge, said: dict[str, Any]) -> str | None:
        act = said["act"]
        if act == "ready":
            await self.held.ready(test, judge.code)
        elif act == "judge":
            reason = said.get("reason", "")
            if (
                type(said.get("human")) is not int
                or said["human"] not in SIDES
                or not isinstance(reason, str)
                or len(reason) > LONGEST_REASON
            ):
                return "incomplete"
            await self.held.judge(test, judge.code, "human" if said["human"] == 1 else "machine", tidy(reason) or None)
        else:
            given = said.get("text")
            text = tidy(given) if isinstance(given, str) else ""
            if is_blank(text) or len(text) > LONGEST:
                return "incomplete"
            if act == "answer" and len(text.split()) >= self.settings.tests.words_below:
                return "too_many_words"
            await (self.held.ask(test, text) if act == "ask" else self.held.answer(test, side, text))
        return None

    def result(self, judge: Judge) -> str | None:
        """The id of the test that a participant may end now; None while it goes on."""
        test = self.state.tests.test_of(judge.code)
        return test.id if test is not None and (test.void is not None or test.is_over()) else None

    async def close(self) -> None:
        await self.held.close()

    # what goes on

    async def _has_left(self, judge: Judge) -> None:
        """Who comes back after they have left waits anew; their test is void."""
        if time.monotonic() - self.seen.get(judge.code, 0.0) > self.settings.tests.seconds_away:
            self.waiting.pop(judge.code, None)
            if (test := self.state.tests.test_of(judge.code)) is not None:
                await self._who_left(test)

    async def _look(self, judge: Judge) -> dict[str, Any]:
        test = self.state.tests.test_of(judge.code)
        if test is None:
            if self.waiting.get(judge.code, (-1, 0.0))[0] != judge.step:
                self.waiting[judge.code] = judge.step, time.monotonic()
            await self._pair()
            test = self.state.tests.test_of(judge.code)
        if test is None:
            late = time.monotonic() - self.waiting[judge.code][1] > self.settings.tests.seconds_in_lobby
            return _versioned({"state": "nobody" if late or self.is_enough() else "waiting"})
        self.waiting.pop(judge.code, None)
        await self._who_left(test)
        self.held.drive(test)
        return _versioned(self._view(test, judge.code))

    def _view(self, test: OnlineTest, code: str) -> dict[str, Any]:
        side = _side(test, code)
        over = "void" if test.void is not None else "over" if test.is_over() else None
        of_agents = "person_deceives" if test.condition == "person_deceives" else "person_argues"
        role = of_agents if side else "judge"
        clock = self.held.clock(test)
        mine = [act for who, _, act in self.held.due(test) if who == code]
        shown = test.shown(clock)
        exchanges = []
        for number, (question, answers) in enumerate(zip(test.asked, test.answers, strict=True)):
            if side == 0:
                own = [answers[one].text for one in SIDES] if number < shown else []
            else:
                own = [answers[side].text] if side in answers else []
            exchanges.append({"question": question.text, "answers": own})
        verdicts = [
            {"after": one.exchanges, "human": 1 if one.verdict == "human" else 2, "reason": one.reason}
            for one in test.judged
            if side == 0
        ]
        act = mine[0] if mine else None
        return {
            "state": over or "open",
            "test": test.id,
            "role": role,
            "text": getattr(self.settings.roles, role),
            "act": act,
            "turn": _turn(test, act),
            "left": test.exchanges - (shown if side == 0 else sum(side in answers for answers in test.answers)),
            "of": test.exchanges,
            "exchanges": exchanges,
            "verdicts": verdicts,
        }

    async def _pair(self) -> None:
        """Begin the tests for which there are people enough; of a test that everybody has left those hear who wait."""
        tests, now = self.settings.tests, time.monotonic()
        if now - self.swept > SWEEP:
            self.swept = now
            for test in self.state.tests.counted():
                await self._who_left(test)
        while there := sorted(
            (code for code in self.waiting if self._is_there(code, now)), key=lambda code: self.waiting[code][1]
        ):
            counted = self.state.tests.counted()
            if len(counted) >= tests.wanted:  # those who wait are there for one that is void
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

    def is_enough(self) -> bool:
        """Whether as many tests as are wanted are over."""
        return sum(test.is_over() for test in self.state.tests.counted()) >= self.settings.tests.wanted

    def _is_there(self, code: str, now: float) -> bool:
        """Whether who waits is still heard of, and has not gone on without a test."""
        step = self.state.judges[code].current
        is_heard = now - self.seen.get(code, 0) < self.settings.tests.seconds_away
        return is_heard and step is not None and step["kind"] == "test" and code not in self.state.tests.of

    async def _who_left(self, test: OnlineTest) -> None:
        """Make the test void if somebody has left it, or keeps the others waiting."""
        if test.void is not None or test.is_over():
            return
        now, tests = time.monotonic(), self.settings.tests
        due = [one for one in self.held.due(test) if one[0] in self.state.judges]
        if self.awaited.get(test.id, (None, 0.0))[0] != due:
            self.awaited[test.id] = (due, now)
        since = self.awaited[test.id][1]
        for code in test.people:
            if code in self.state.judges and now - self.seen.setdefault(code, now) > tests.seconds_away:
                await self.held.void(test, f"{code} left")
                return
        if due and now - since > tests.seconds_to_act:
            await self.held.void(test, f"{due[0][0]} did nothing")


def _side(test: OnlineTest, code: str) -> int:
    return 0 if code == test.judge else test.agents.index(code) + 1


def _turn(test: OnlineTest, act: Any) -> int:
    """The number of the exchange that an act is of: it tells an act that is sent twice from the next one."""
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
            return side == 0 and any(one.exchanges == turn for one in test.judged)
    return False


def _versioned(view: dict[str, Any]) -> dict[str, Any]:
    return view | {"version": hashlib.sha256(orjson.dumps(view)).hexdigest()[:16]}
