"""The lobby of interrogations: both conversations are open at once, until the clock stops. The judge writes first; then
everybody writes when they like. Each machine takes part in its conversation as in a burst dialogue."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from agents.answers import Message, TurnAnswer, is_blank
from agents.stimuli import ConversationStimulus
from judging.study.agent_server import LONGEST_MESSAGE, NoAnswerError, tidy
from judging.study.lobby import TURN_SECONDS, View, read_reply, transcript_of
from judging.study.lobby_of_tests import JudgedLobby
from judging.study.meetings import SIDES, Interrogation, Pair
from judging.study.page_answers import LONGEST_REASON
from judging.study.settings import InterrogationSettings
from serving.conversations.scenario import SIDES as LETTERS
from serving.conversations.transcript import AgentPart

if TYPE_CHECKING:
    from judging.study.study import Study

MOST_MESSAGES = 1000  # of a conversation
LONGEST_ID = 40


class InterrogationLobby(JudgedLobby[Interrogation]):
    meeting = Interrogation

    def __init__(self, study: Study, settings: InterrogationSettings) -> None:
        super().__init__(study, settings)
        self.settings = settings
        self.parts: dict[tuple[str, int], AgentPart] = {}  # of machines, by the test and the side

    def drawn(self, counted: Sequence[Interrogation], begun: int, kind: Pair) -> tuple[list[str], View]:
        used = Counter(who for test in counted for who in test.people)
        chance = self.chance(f"machines {begun}")
        machines = sorted(self.settings.agents.machines, key=lambda name: (used[name], chance.random()))
        seconds = round(60 * self.settings.tests.minutes, 3)
        return list(islice(cycle(machines), len(SIDES))), {"seconds": seconds}

    def view(self, test: Interrogation, code: str) -> View:
        side, clock = test.people.index(code), self.clock(test)
        over = "void" if test.void is not None else "over" if test.is_over() else None
        act = next((act for who, _, act in self.due(test) if who == code), None)
        role = "person_argues" if side else "judge"
        chats = [
            [{"mine": message["who"] == code, "text": message["text"]} for message in test.chat(each)]
            for each in ([side] if side else SIDES)
        ]
        return {
            "state": over or "open",
            "test": test.id,
            "role": role,
            "text": getattr(self.settings.roles, role),
            "act": "say" if test.is_open(clock) else act,
            "turn": 0,
            "has_begun": test.began() is not None,
            "seconds_left": round(max(0.0, test.seconds - clock), 3),
            "chats": chats,
        }

    # acts

    async def acted(self, test: Interrogation, side: int, body: Mapping[str, Any], event: View) -> str | None:
        act = {"say": self._said, "judge": self._judged}.get(str(body.get("act")))
        return "not_your_turn" if act is None else await act(test, side, body, event)

    async def _said(self, test: Interrogation, side: int, body: Mapping[str, Any], event: View) -> str | None:
        who, text, name, where = event["who"], body.get("text"), body.get("id"), side or body.get("side")
        if any(message["who"] == who and message["id"] == name for message in test.messages):
            return None  # it was sent before
        if type(where) is not int or where not in SIDES or not isinstance(name, str) or len(name) > LONGEST_ID:
            return "incomplete"
        if not isinstance(text, str) or is_blank(text) or len(text) > LONGEST_MESSAGE:
            return "incomplete"
        chat, clock = test.chat(where), self.clock(test)
        if test.began() is None or (side and not chat):
            return "judge_first"  # no machine begins
        if not test.is_open(clock) or len(chat) >= MOST_MESSAGES:
            return "time_over"
        text, part = tidy(text), self._part(test, where) if test.parts[where - 1] == "machine" else None
        if part is not None:
            part.transcript.call(0)
            part.transcript.say(0, TurnAnswer(text=text), clock)
        await self._publish(test, where, {**event, "id": name, "text": text, "clock": round(clock, 3)})
        if part is not None:
            part.wake()  # who answers only what is on disk
        return None

    async def _judged(self, test: Interrogation, side: int, body: Mapping[str, Any], event: View) -> str | None:
        if test.judged is not None and not side:
            return None  # it was sent before
        if (event["who"], side, "judge") not in self.due(test):
            return "not_your_turn"
        human, sure, codes, reason = (body.get(name) for name in ("human", "confidence", "codes", "reason"))
        if type(human) is not int or human not in SIDES or not isinstance(codes, list):
            return "incomplete"
        if type(sure) not in (int, float) or not 0 <= float(sure or 0) <= 1:
            return "incomplete"
        if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
            return "incomplete"
        verdict = {"verdict": "human" if human == 1 else "machine", "confidence": sure, "reason": tidy(reason) or None}
        chosen = [code for code in self.settings.tests.codes if code in codes]
        about = {**verdict, "codes": chosen, "clock": round(self.clock(test), 3)}
        await self.note({"event": "test_judged", **event, **about})
        return None

    async def _publish(self, test: Interrogation, side: int, *messages: View) -> None:
        events = [{"event": "test_said", "side": side, **message} for message in messages]
        about = {"event": "test_withdrawn", "test": test.id, "who": test.people[side], "side": side}
        if (part := self.parts.get((test.id, side))) is not None:
            for message in part.transcript.withdrawn:
                when = {"turn": message.turn, "clock": message.at, "why": message.why}
                events.append({**about, **when, "text": message.text})
            part.transcript.withdrawn.clear()
        await self.note(*events)

    # machines

    def drive(self, test: Interrogation) -> None:
        if test.is_open(self.clock(test)):
            for side in SIDES:
                if test.parts[side - 1] == "machine":
                    self.begin_task((test.id, side), partial(self._take_part, test, side))

    def _part(self, test: Interrogation, side: int) -> AgentPart:
        if (test.id, side) in self.parts:
            return self.parts[test.id, side]
        name, machine = f"{test.id}/{side}", test.people[side]
        row = {"id": name, "task": "conversation", "type": "HM", "mode": "burst", "exchanges": MOST_MESSAGES}
        transcript = transcript_of(
            ConversationStimulus.model_validate(row),
            (test.people[0], machine),
            ((LETTERS.index(test.letter(each)), each["text"], each["clock"]) for each in test.chat(side)),
            seed=f"{self.tests.seed} {name}",
            delays=self.settings.delays,
            quiet_s=self.settings.tests.quiet_s,
            agents=(1,),
        )
        row["who_starts"], read = "A", partial(read_reply, is_burst=True)

        async def ask(_: int) -> TurnAnswer:
            history = [{"speaker": test.letter(each), "text": each["text"]} for each in test.chat(side)]
            answering = self.client.answer(
                self.settings.agents.server, machine, {**row, "history": history}, read,
                seconds=TURN_SECONDS, seed=self.tests.seed,
            )  # fmt: skip
            return TurnAnswer(text=await answering)

        async def send(_: int) -> Message:
            message = transcript.send(1)
            about = {"test": test.id, "who": machine, "id": None, "text": message.text, "clock": message.at}
            await self._publish(test, side, about)
            return message

        self.parts[test.id, side] = AgentPart(transcript, partial(self.clock, test), ask, send)
        return self.parts[test.id, side]

    async def _take_part(self, test: Interrogation, side: int) -> None:
        part = self._part(test, side)
        try:
            async with asyncio.timeout(test.seconds - self.clock(test)):
                await part.run()
        except NoAnswerError as error:
            await self.make_void(test, str(error))
        except TimeoutError:  # the clock has stopped
            part.transcript.now = test.seconds
            part.transcript.withdraw(1, "ended")
            await self._publish(test, side)
