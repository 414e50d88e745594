"""What the lobbies of live tests have in common.

Parts are drawn anew for each test, among those who have waited longest, and the kind of pair by its share alone. Who is
not heard of, or is late with a move, has left: the test is void.
"""

import hashlib
import random
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from judging.study.design.settings import TestsSettings
from judging.study.log.meeting import IDLE, PARTS_OF_PAIR, JudgedMeeting, Move, Pair
from judging.study.log.meeting_events import (
    InterrogationBegan,
    OnlineTestBegan,
    PersonOrMachine,
    TestJudged,
    TestLeft,
    TestReady,
    TestVoid,
)
from judging.study.log.state import Judge
from judging.study.log.study_log import StudyLog
from judging.study.meetings.acts import VerdictAct
from judging.study.meetings.cells import people_of, shares_of_pairs
from judging.study.meetings.lobby import Lobby, View
from serving.files.timestamps import now

J = TypeVar("J", bound=JudgedMeeting)


class Seats(NamedTuple):
    """Who takes part in a test that is to begin, but for the machines."""

    test: str
    """The test's id."""
    pair: Pair
    """The kind of pair that was drawn: whether agents 1 and 2 are people, machines, or one of each."""
    judge: str
    """The code of the participant who judges."""
    parts: list[PersonOrMachine]
    """What agents 1 and 2 are."""
    persons: list[str]
    """The participants who are agents."""

    def agents(self, machines: Sequence[str]) -> list[str]:
        """Agents 1 and 2: machines by name from ``machines`` in order, people by code from ``persons``."""
        next_machines = iter(machines)
        next_persons = iter(self.persons)
        return [next(next_machines if part == "machine" else next_persons) for part in self.parts]


class JudgedLobby(Lobby[J]):
    """Where participants wait for a live test, whose judge and agents are drawn when there are people enough.

    All that is drawn comes from ``tests.seed`` and the number of tests before, so it can be drawn again.
    """

    kind = "test"
    noun = "test"
    settings: TestsSettings

    def __init__(self, study_log: StudyLog, settings: TestsSettings) -> None:
        super().__init__(study_log, settings.tests, settings.agents.server, settings.delays)
        self.settings = settings
        self.seed = settings.tests.seed
        self.awaited: dict[str, tuple[list[Move], float]] = {}
        """By test, what is awaited of its people, and since when by the monotonic clock."""

    def is_over(self, test: J) -> bool:
        """Whether the last verdict is there."""
        return test.is_over()

    def void_event(self, test: J, why: str) -> TestVoid:
        """A :class:`TestVoid <judging.study.log.meeting_events.TestVoid>`, as of now."""
        return TestVoid(test=test.id, why=why, at=now())

    def is_enough(self) -> bool:
        """Whether as many tests came to their end as are wanted."""
        return sum(test.is_over() for test in self.state.counted(self.meeting)) >= self.settings.tests.wanted

    def due(self, test: J) -> list[Move]:
        """What is awaited now, and of whom."""
        return test.due(self.clock(test))

    def chance(self, what: str) -> random.Random:
        """Random numbers for a purpose, which ``what`` names; the same purpose gives the same numbers."""
        return random.Random(f"{self.seed} {what}")

    async def look(self, judge: Judge) -> View:
        """The view with its ``version``, which stays the same while nothing but the clock changes."""
        view = await super().look(judge)
        news = {name: value for name, value in view.items() if name != "seconds_left"}
        return view | {"version": hashlib.sha256(orjson.dumps(news)).hexdigest()[:16]}

    async def pair(self, judge: Judge) -> None:
        """Begin tests while there are people enough and fewer tests than are wanted."""
        kinds = shares_of_pairs(self.settings.tests)
        needed = max(map(people_of, kinds))
        while len(there := self.there()) >= needed:
            counted = self.state.counted(self.meeting)
            if len(counted) >= self.settings.tests.wanted:  # who waits is there for a test that becomes void
                return
            begun = len(self.state.meetings)
            [kind] = self.chance(f"pair {begun}").choices(list(kinds), list(kinds.values()))
            people = there[:needed]
            self.chance(f"people {begun}").shuffle(people)
            judge_code, *persons = people[: people_of(kind)]
            name = f"test-{begun + 1:05}"
            parts = list(PARTS_OF_PAIR[kind])
            self.chance(name).shuffle(parts)
            await self.note(self.drawn(Seats(name, kind, judge_code, parts, persons), begun, counted))

    def why_void(self, test: J) -> str | None:
        """As in any lobby, or because somebody is late with what is awaited of them."""
        due = [move for move in self.due(test) if move[0] in self.state.judges]
        if self.awaited.get(test.id, (None, 0.0))[0] != due:
            self.awaited[test.id] = (due, time.monotonic())
        is_late = due and time.monotonic() - self.awaited[test.id][1] > self.settings.tests.seconds_to_act
        return super().why_void(test) or (f"{due[0][0]} {IDLE}" if is_late else None)

    def view(self, test: J, code: str) -> View:
        """The part of one of its people, what is awaited of them, and what they see of what was said."""
        side = test.people.index(code)
        role = "judge"
        if side:
            role = "person_deceives" if test.condition == "person_deceives" else "person_argues"
        act = next((act for who, _, act in self.due(test) if who == code), None)
        return {
            "state": self.phase(test),
            "test": test.id,
            "role": role,
            "text": getattr(self.settings.roles, role),
            "void": test.void_to(code),
            "act": act,
            **self.shown(test, side, act),
        }

    # Between the check of an act and the state that has it nothing is awaited: of two tabs the first counts.

    async def moved(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        """Take that somebody is ready or goes back to the lobby; other acts are of the kind of test."""
        test = self.meeting_of(judge.code)
        act = body.get("act")
        if test is None or test.id != body.get("test"):
            return "test_void"
        if test.void is not None:
            if act != "back":
                return "test_void"
            await self.note(TestLeft(test=test.id, who=judge.code, at=now()))
        elif act != "ready":
            return await self.acted(test, test.people.index(judge.code), body)
        elif judge.code not in test.ready:  # or it was sent before
            await self.note(TestReady(test=test.id, who=judge.code, at=now()))
        return None

    async def judge(self, test: J, sent: VerdictAct, **asked: Any) -> None:
        """Take a verdict of the test's judge, with what not every test asks for. Raises StorageError."""
        await self.note(
            TestJudged(
                test=test.id,
                who=test.people[0],
                verdict="human" if sent.human == 1 else "machine",
                reason=sent.reason or None,
                clock=round(self.clock(test), 3),
                at=now(),
                **asked,
            )
        )

    @abstractmethod
    def drawn(self, seats: Seats, begun: int, counted: Sequence[J]) -> OnlineTestBegan | InterrogationBegan:
        """The event by which the next test begins, with the rest drawn.

        ``begun`` is the number of tests before, ``counted`` are those of them that are not void.
        """

    @abstractmethod
    def shown(self, test: J, side: int, act: str | None) -> View:
        """What the judge (``side`` 0) or an agent sees of what was said, and when they may act; ``act`` is due."""

    @abstractmethod
    async def acted(self, test: J, side: int, body: Mapping[str, Any]) -> str | None:
        """Take an act of the one at a side; returns the phrase that refuses it. Raises BadAnswer, StorageError."""
