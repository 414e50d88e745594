"""The lobby of interrogations: both conversations are open at once, until the clock stops.

The judge writes first; then everybody writes when they like. Each machine takes part in its conversation as in a burst
dialogue.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from agents.answers import Message, Withdrawn
from agents.stimuli import ConversationStimulus
from judging.study.design.settings import InterrogationSettings
from judging.study.log.meeting import AGENT_SIDES, Interrogation
from judging.study.log.meeting_events import InterrogationBegan, TestSaid, TestWithdrawn
from judging.study.meetings.acts import TimedTextAct, TimedVerdictAct
from judging.study.meetings.conversing import ConversingLobby
from judging.study.meetings.lobby import View
from judging.study.meetings.lobby_of_tests import JudgedLobby, Seats
from judging.study.pages.page_answers import parsed_answer
from serving.files.timestamps import now

MOST_MESSAGES = 1000
"""Messages of a conversation, which a transcript wants to know; the clock ends it long before."""


class InterrogationLobby(JudgedLobby[Interrogation], ConversingLobby[Interrogation]):
    """Where participants wait for an interrogation."""

    meeting = Interrogation
    settings: InterrogationSettings

    def drawn(self, seats: Seats, begun: int, counted: Sequence[Interrogation]) -> InterrogationBegan:
        """The machines that took part in the fewest tests are in this one."""
        used = Counter(who for test in counted for who in test.people)
        chance = self.chance(f"machines {begun}")
        machines = sorted(self.settings.agents.machines, key=lambda name: (used[name], chance.random()))
        return InterrogationBegan(
            test=seats.test,
            judge=seats.judge,
            parts=seats.parts,
            agents=seats.agents(list(islice(cycle(machines), len(AGENT_SIDES)))),
            seconds=round(60 * self.settings.tests.minutes, 3),
            at=now(),
        )

    def shown(self, test: Interrogation, side: int, act: str | None) -> View:
        """The messages of both conversations to the judge, of the own one to an agent, and the time that is left."""
        clock = self.clock(test)
        mine = "B" if side else "A"
        agents = (side,) if side else AGENT_SIDES
        chats = [[{"mine": line.speaker == mine, "text": line.text} for line in test.lines(agent)] for agent in agents]
        return {
            "act": "say" if test.is_open(clock) else act,
            "has_begun": test.began() is not None,
            "seconds_left": round(max(0.0, test.seconds - clock), 3),
            "chats": chats,
        }

    async def acted(self, test: Interrogation, side: int, body: Mapping[str, Any]) -> str | None:
        """Take a message, or the verdict once the clock has stopped."""
        act = body.get("act")
        if act == "say":
            return await self._said(test, side, parsed_answer(TimedTextAct, {**body, "side": side or body.get("side")}))
        if act == "judge" and test.judged and not side:
            return None  # it was sent before
        if (test.people[side], side, act) not in self.due(test):
            return "not_your_turn"
        sent = parsed_answer(TimedVerdictAct, body)
        codes = [code for code in self.settings.tests.codes if code in sent.codes]
        await self.judge(test, sent, confidence=sent.confidence, codes=codes)
        return None

    async def _said(self, test: Interrogation, side: int, sent: TimedTextAct) -> str | None:
        if any((message.who, message.id) == (test.people[side], sent.id) for message in test.messages):
            return None  # it was sent before
        if test.began() is None or (side and not test.lines(sent.side)):
            return "judge_first"  # no machine begins
        is_taken = test.is_open(self.clock(test)) and await self.say(test, sent.side, min(side, 1), sent, sent.id)
        return None if is_taken else "time_over"

    def stimulus(self, test: Interrogation, number: int) -> ConversationStimulus:
        """A burst dialogue in which the judge writes first."""
        row = {"id": f"{test.id}/{number}", "task": "conversation", "type": "HM", "mode": "burst", "who_starts": "A"}
        return ConversationStimulus.model_validate({**row, "exchanges": MOST_MESSAGES})

    def event(
        self, test: Interrogation, number: int, news: Message | Withdrawn, id: str | None
    ) -> TestSaid | TestWithdrawn:
        """A message, of which ``id`` is None for a machine's; or one that was interrupted, or whose time was over."""
        common: dict[str, Any] = {"test": test.id, "side": number, "who": news.agent, "text": news.text, "at": now()}
        if isinstance(news, Message):
            traces = self.traces if news.agent in self.state.judges else {}
            return TestSaid(clock=news.at or 0.0, id=id, **common, **traces)
        return TestWithdrawn(clock=news.at, turn=news.turn, why=news.why, **common)

    def machines(self, test: Interrogation) -> list[int]:
        """The machines, while the clock runs: they may always have something to say."""
        return [side for side in AGENT_SIDES if test.is_open(self.clock(test)) and test.parts[side - 1] == "machine"]

    async def play(self, test: Interrogation, side: int) -> None:
        """As in any conversation, until the clock stops; what is not sent by then is withdrawn."""
        try:
            async with asyncio.timeout(test.seconds - self.clock(test)):
                await super().play(test, side)
        except TimeoutError:  # the clock has stopped
            self.dialogue(test, side).end(test.seconds)
            await self.written()
