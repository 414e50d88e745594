"""Online tests as they are held: whose move it is, what is moved, and what machines say.

Nothing here knows HTTP or the lobby. A move is checked and taken into the state in one go, so that two tabs that send
the same give one, the first; it is on disk before anybody is told of it. Machines are asked through a `turinglike
serve`, each agent for its own conversation with the judge; an answer that is too long loses its last sentences, or, if
the first is too long already, its last words. When an answer is shown the model of delays says
(:mod:`serving.conversations.pair_settings`).
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agents.answers import VerdictAnswer
from judging.study.agent_server import LONGEST, REPLY_SECONDS, TRIES, AgentClient, NoAnswerError, text_of, tidy
from judging.study.online.quotas import PARTS, Cell
from judging.study.online.state import SIDES, Act, OnlineTest, Tests
from judging.study.online.trials import trial_of
from judging.study.page_answers import LONGEST_REASON
from judging.study.settings import OnlineSettings
from judging.study.state import State

END = re.compile(r"[.!?…]['\"’”)\]]*$")  # of a sentence's last word
TITLE = re.compile(r"\W*(?:mrs?|ms|dr|prof|st|e\.g|i\.e)\.", re.IGNORECASE)
Row = dict[str, Any]
T = TypeVar("T")
Note = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(slots=True)
class HeldTests:
    """The tests of a study. ``note`` writes an event and returns once it is on disk. Without people
    (``is_simulated``) no time passes but that of the tests' own clocks."""

    settings: OnlineSettings
    state: State
    note: Note
    is_simulated: bool = False
    began: dict[str, float] = field(default_factory=dict)  # by test, on a clock that nobody sets
    _asking: dict[tuple[str, int], asyncio.Task[None]] = field(default_factory=dict)
    _client: AgentClient = field(default_factory=AgentClient)

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
        chance, batch, agents = self.chance(name), self.settings.batch, self.settings.agents
        judge, *others = people or [batch.questions]
        parts = list(PARTS[cell.pair])
        chance.shuffle(parts)
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
        if (who, "ready") in [(one, act) for one, _, act in self.due(test)]:
            await self.note({"event": "test_ready", "test": test.id, "who": who})

    async def ask(self, test: OnlineTest, text: str) -> None:
        """The judge's next question."""
        if not test.asked:
            before, read = 0.0, 0
        else:
            before = test.shown_at(len(test.asked) - 1)
            read = sum(len(said.text) for said in test.answers[-1].values())
        taken = self._delay(test, 0, len(text), read) if self.is_simulated else self.clock(test) - before
        await self._say("test_asked", test, test.judge, text, before + taken, taken)

    async def answer(self, test: OnlineTest, side: int, text: str, raw: str | None = None) -> None:
        """An agent's answer; ``raw`` is all that a machine said."""
        question, who = test.asked[-1], test.agents[side - 1]
        taken = self.clock(test) - question.clock
        if who not in self.state.judges:
            modelled = self._delay(test, side, len(text), len(question.text))
            taken = modelled if self.is_simulated else max(taken, modelled)
        await self._say("test_answered", test, who, text, question.clock + taken, taken, raw, side=side)

    async def judge(self, test: OnlineTest, who: str, verdict: str, reason: str | None) -> None:
        """The verdict of ``who``, which is not who asks where there are no people."""
        shown = test.shown_at(len(test.asked) - 1)
        clock = shown if self.is_simulated else self.clock(test)
        said = {"verdict": verdict, "reason": reason, "clock": round(clock, 3)}
        await self.note({"event": "test_judged", "test": test.id, "who": who, **said})

    async def void(self, test: OnlineTest, why: str) -> None:
        if test.void is None and not test.is_over():
            await self.note({"event": "test_void", "test": test.id, "why": why})

    async def _say(
        self,
        event: str,
        test: OnlineTest,
        who: str,
        text: str,
        clock: float,
        taken: float,
        raw: str | None = None,
        **more: Any,
    ) -> None:
        said = {"text": text, "clock": round(clock, 3), "delay_s": round(max(0.0, taken), 3), "raw": raw, **more}
        await self.note({"event": event, "test": test.id, "who": who, **said})

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
        name = self.settings.batch.verdicts if act == "judge" else who
        try:
            await self._moved(test, name, side, act)
        except NoAnswerError as error:
            await self.void(test, str(error))

    async def _moved(self, test: OnlineTest, name: str, side: int, act: Act) -> None:
        server = self.settings.agents.server if self._is_machines(test, side) else self.settings.batch.server
        number = len(test.asked)
        if act == "judge":
            row = as_row(trial_of(test, number), f"{test.id}/{number}")
            answer = await self._answer(server, name, row, VerdictAnswer.model_validate)
            if (test.judge, 0, "judge") in self.due(test):
                await self.judge(test, name, answer.verdict, tidy(answer.reason or "")[:LONGEST_REASON] or None)
            return
        raw = await self._answer(server, name, row_of(test, side), text_of)
        if (name, side, act) not in self.due(test) or len(test.asked) != number:
            return
        text = tidy(raw)
        if act == "ask":
            await self.ask(test, text[:LONGEST])
        else:
            text = shortened(text, self.settings.tests.words_below - 1)
            await self.answer(test, side, text, raw if raw != text else None)

    def _is_machines(self, test: OnlineTest, side: int) -> bool:
        return side in SIDES and test.parts[side - 1] == "machine"

    async def _answer(self, server: str, agent: str, row: Row, read: Callable[[Any], T]) -> T:
        """An agent's answer, for which a participant waits no longer than for a person's."""
        tests = self.settings.tests
        seconds = TRIES * REPLY_SECONDS if self.is_simulated else tests.seconds_to_act
        return await self._client.answer(server, agent, row, read, seconds=seconds, seed=tests.seed)


def shortened(text: str, words: int) -> str:
    """The sentences of ``text`` that have at most so many words together; if the first has more, its first words. No
    longer than a person's message may be."""
    found = text.split()
    if len(found) > words:
        ends = [at for at, word in enumerate(found[:words], start=1) if END.search(word) and not TITLE.fullmatch(word)]
        text = " ".join(found[: ends[-1] if ends else words])
    return text[:LONGEST]


def row_of(test: OnlineTest, side: int) -> Row:
    """The conversation that a machine is to go on with: the judge's (side 0), to whom B is both agents, or that of an
    agent, who is B and sees its own answers alone."""
    history = []
    for question, answers in zip(test.asked, test.answers, strict=True):
        history.append({"speaker": "A", "text": question.text})
        if side == 0:
            both = "\n".join(f"{one}: {answers[one].text}" for one in SIDES)
            history.append({"speaker": "B", "text": both})
        elif side in answers:
            history.append({"speaker": "B", "text": answers[side].text})
    return {
        "id": f"{test.id}/{side}",
        "task": "conversation",
        "type": "HM",
        "who_starts": "A",
        "exchanges": 2 * test.exchanges,
        "history": history,
    }


def as_row(trial: Row, name: str) -> Row:
    return {"id": name, "task": "judgement", "shown": name, **trial}
