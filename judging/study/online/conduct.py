"""Online tests as they are held: whose move it is, what is moved, and what machines say.

Nothing here knows HTTP or the lobby. A move is checked and taken into the state in one go, so that two tabs that send
the same give a single move, the first; it is on disk before anybody hears of it. Machines are asked through a
`turinglike serve`, each agent for its own conversation with the judge. When an answer is shown the model of delays says
(:mod:`serving.conversations.pair_settings`).
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agents.answers import VerdictAnswer
from judging.study.agent_server import (
    LONGEST,
    REPLY_SECONDS,
    TRIES,
    AgentClient,
    NoAnswerError,
    served_agents,
    text_of,
    tidy,
)
from judging.study.events import State
from judging.study.materials import Material
from judging.study.online.course import PARTS, SIDES, Act, Cell, OnlineTest, Tests, next_cell
from judging.study.page_answers import LONGEST_REASON
from judging.study.settings import OnlineSettings
from serving.runs.display_text import count

END = re.compile(r"[.!?…]['\"’”)\]]*$")  # of a sentence's last word
TITLE = re.compile(r"\W*(?:mrs?|ms|dr|prof|st|e\.g|i\.e)\.", re.IGNORECASE)
T = TypeVar("T")


class Note(Protocol):
    """Writes events; returns once they are on disk."""

    def __call__(self, *events: dict[str, Any]) -> Awaitable[None]: ...


class OnlineMaterial(Material):
    """Online tests: participants see what the others write."""

    settings: OnlineSettings

    def __init__(self, settings: OnlineSettings, study: Path) -> None:
        digest = hashlib.sha256(b"online").hexdigest()
        page = {"words_below": settings.tests.words_below}
        super().__init__(settings, digest, "test", settings.tests.each, page, study)

    def _parts(self, *, with_batch: bool) -> dict[str, tuple[str, str]]:
        """(agent, server) of each part that the tests have, by its place in ``study.toml``."""
        tests, agents, batch = self.settings.tests, self.settings.agents, self.settings.batch
        machines, people = tests.two_people < 1, with_batch and tests.two_machines < 1
        played = {
            "agents.machine_argues": machines and tests.person_deceives > 0,
            "agents.machine_deceives": machines and tests.person_deceives < 1,
            "batch.questions": with_batch,
            "batch.verdicts": with_batch,
            "batch.person_deceives": people and tests.person_deceives > 0,
            "batch.person_argues": people and tests.person_deceives < 1,
        }
        parts = {}
        for place in (place for place, is_played in played.items() if is_played):
            table, name = place.split(".")
            whose = agents if table == "agents" else batch
            parts[place] = getattr(whose, name), whose.server
        return parts

    def problems(self, *, with_batch: bool = False) -> list[str]:
        parts = self._parts(with_batch=with_batch)
        return [f"{place}: name the agent" for place, (name, _) in parts.items() if not name]

    def served_problems(self, *, with_batch: bool = True) -> list[str]:
        problems: list[str] = []
        parts = {place: part for place, part in self._parts(with_batch=with_batch).items() if part[0]}
        servers = {server: served_agents(server) for server in sorted({server for _, server in parts.values()})}
        for place, (name, server) in parts.items():
            served, why = servers[server]
            task = "judgement" if place == "batch.verdicts" else "conversation"
            if name not in served:
                problems.append(f"{place}: {why or f'{server} does not serve {name}'}")
            elif task not in served[name]:
                problems.append(f"{place}: {name} answers {', '.join(served[name])}, not {task}")
        return problems

    def about(self) -> list[str]:
        tests = self.settings.tests
        numbers = ", ".join(map(str, tests.exchanges))
        each = f"each participant: at most {count(tests.each, 'test')}"
        return [f"{count(tests.wanted, 'online test')} of {numbers} exchanges", each]


class HeldTests:
    """The tests of a study. Without people (``is_simulated``) no time passes but that of the tests' own clocks."""

    def __init__(self, settings: OnlineSettings, state: State, note: Note) -> None:
        self.settings, self.state, self.note = settings, state, note
        self.is_simulated = False
        self.began: dict[str, float] = {}  # by test, on a clock that nobody sets
        self._asking: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._client = AgentClient()

    @property
    def tests(self) -> Tests:
        return self.state.tests

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
        """Numbers for one purpose, the same whenever they are drawn."""
        return random.Random(f"{self.settings.tests.seed} {what}")

    async def begin(self, cell: Cell, people: list[str]) -> OnlineTest:
        """Begin a test of a cell; the first of ``people`` is its judge, the others take the persons' parts. Whom
        nobody is there for an agent of the batch plays."""
        name = f"test-{len(self.tests.by_id) + 1:05}"
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
        return self.tests.by_id[name]

    # moves

    async def ready(self, test: OnlineTest, who: str) -> None:
        await self.note({"event": "test_ready", "test": test.id, "who": who})

    async def ask(self, test: OnlineTest, text: str) -> None:
        """The judge's next question."""
        before = test.shown_at(len(test.asked) - 1) if test.asked else 0.0
        read = sum(len(answer.text) for answer in test.answers[-1].values()) if test.asked else 0
        taken = self._delay(test, 0, len(text), read) if self.is_simulated else self.clock(test) - before
        await self._say("test_asked", test, test.judge, text, before, taken)

    async def answer(self, test: OnlineTest, side: int, text: str, raw: str | None = None) -> None:
        """An agent's answer; ``raw`` is all that a machine said."""
        question, who = test.asked[-1], test.agents[side - 1]
        taken = self.clock(test) - question.clock
        if who not in self.state.judges:
            modelled = self._delay(test, side, len(text), len(question.text))
            taken = modelled if self.is_simulated else max(taken, modelled)
        await self._say("test_answered", test, who, text, question.clock, taken, raw, side=side)

    async def judge(self, test: OnlineTest, who: str, verdict: str, reason: str | None) -> None:
        """The verdict of ``who``, which is not who asks where there are no people."""
        clock = test.shown_at(len(test.asked) - 1) if self.is_simulated else self.clock(test)
        about = {"verdict": verdict, "reason": reason, "clock": round(clock, 3)}
        await self.note({"event": "test_judged", "test": test.id, "who": who, **about})

    async def void(self, test: OnlineTest, why: str) -> None:
        if test.void is None and not test.is_over():
            await self.note({"event": "test_void", "test": test.id, "why": why})

    async def _say(
        self,
        event: str,
        test: OnlineTest,
        who: str,
        text: str,
        before: float,
        taken: float,
        raw: str | None = None,
        **more: Any,
    ) -> None:
        clock, delay = round(before + taken, 3), round(max(0.0, taken), 3)
        about = {"text": text, "clock": clock, "delay_s": delay, "raw": raw, **more}
        await self.note({"event": event, "test": test.id, "who": who, **about})

    def _delay(self, test: OnlineTest, side: int, written: int, read: int) -> float:
        return self.settings.delays.draw(written, read, self.chance(f"{test.id} delay {len(test.asked)} {side}"))

    # machines

    def drive(self, test: OnlineTest) -> None:
        """Ask the machines whose move it is, each once."""
        for who, side, act in self.due(test):
            key = test.id, side
            if who not in self.state.judges and (key not in self._asking or self._asking[key].done()):
                self._asking[key] = asyncio.create_task(self._move(test, who, side, act))

    async def hold(self, test: OnlineTest) -> None:
        """Hold a test without people, to its end or until it is void."""
        while (due := self.due(test)) and test.void is None:
            await asyncio.gather(*(self._move(test, who, side, act) for who, side, act in due))

    async def close(self) -> None:
        """No machine is asked any more."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        await self._client.close()

    async def _move(self, test: OnlineTest, who: str, side: int, act: Act) -> None:
        is_machine = side in SIDES and test.parts[side - 1] == "machine"
        server = self.settings.agents.server if is_machine else self.settings.batch.server
        number = len(test.asked)
        try:
            if act == "judge":
                name = self.settings.batch.verdicts
                row = {"id": f"{test.id}/{number}", "task": "judgement", "shown": f"{test.id}/{number}"}
                answer = await self._answer(server, name, row | test.trial(number), VerdictAnswer.model_validate)
                if (who, side, act) in self.due(test):
                    await self.judge(test, name, answer.verdict, tidy(answer.reason or "")[:LONGEST_REASON] or None)
                return
            raw = await self._answer(server, who, row_of(test, side), text_of)
        except NoAnswerError as error:
            await self.void(test, str(error))
            return
        if (who, side, act) not in self.due(test) or len(test.asked) != number:
            return
        if act == "ask":
            await self.ask(test, tidy(raw)[:LONGEST])
        else:
            text = shortened(tidy(raw), self.settings.tests.words_below - 1)
            await self.answer(test, side, text, raw if raw != text else None)

    async def _answer(self, server: str, agent: str, row: dict[str, Any], read: Callable[[Any], T]) -> T:
        """An agent's answer, for which a participant waits no longer than for a person's."""
        tests = self.settings.tests
        seconds = TRIES * REPLY_SECONDS if self.is_simulated else tests.seconds_to_act
        return await self._client.answer(server, agent, row, read, seconds=seconds, seed=tests.seed)


def shortened(text: str, words: int) -> str:
    """The sentences of ``text`` that have at most so many words together; if the first has more, its first words. No
    longer than a person's message may be."""
    parts = text.split()
    if len(parts) > words:
        ends = [at for at, word in enumerate(parts[:words], start=1) if END.search(word) and not TITLE.fullmatch(word)]
        text = " ".join(parts[: ends[-1] if ends else words])
    return text[:LONGEST]


def row_of(test: OnlineTest, side: int) -> dict[str, Any]:
    """The conversation that a machine is to go on with: the judge's (side 0), or that of an agent, who is B and sees
    its own answers alone."""
    return {
        "id": f"{test.id}/{side}",
        "task": "conversation",
        "type": "HM",
        "who_starts": "A",
        "exchanges": 2 * test.exchanges,
        "history": test.messages(side),
    }


async def hold_tests(held: HeldTests, number: int, at_once: int) -> tuple[int, int]:
    """Hold tests without people until the study has ``number`` that are not void, ``at_once`` together, those first
    that were begun and not ended; returns how many it has, and how many became void now."""
    held.is_simulated = True
    room = asyncio.Semaphore(at_once)
    under_way: list[asyncio.Task[None]] = []
    counted = held.tests.counted()
    void_before = len(held.tests.by_id) - len(counted)

    async def hold(test: OnlineTest) -> None:
        try:
            await held.hold(test)
        finally:
            room.release()

    try:
        for test in counted:
            if not test.is_over() and held.state.judges.keys().isdisjoint(test.people):
                await room.acquire()
                under_way.append(asyncio.create_task(hold(test)))
        for _ in range(number - len(counted)):
            await room.acquire()
            begun = len(held.tests.by_id)
            cell = next_cell(held.settings.tests, held.tests.counted(), held.chance(f"cell {begun}"))
            under_way.append(asyncio.create_task(hold(await held.begin(cell, []))))
        await asyncio.gather(*under_way)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    counted = held.tests.counted()
    return sum(test.is_over() for test in counted), len(held.tests.by_id) - len(counted) - void_before
