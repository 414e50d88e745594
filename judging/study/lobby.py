"""The lobby: participants who converse, two people or a person and an agent, by turns or in a burst dialogue.

Who comes to a conversation waits until somebody else does. Then chance decides for both whether they converse with each
other, or each with an agent that another server answers for (`turinglike serve`). So people and agents are waited for
alike: neither how long they waited nor who came first tells anybody with whom they converse. Nor does time: an agent
takes as long over a message as the delay that is drawn for it. What is said is on disk before the other one sees it.
Who is not heard of for a while has left: the conversation is void then, and is no answer of anybody's; so it is where
an agent does not answer in time.

In a burst dialogue an agent is asked once the person has been quiet for a while, and sends its messages one by one;
what it has not sent when the person writes is withdrawn (:mod:`serving.conversations.transcript`).
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from agents.answers import is_blank
from agents.stimuli import ConversationStimulus, as_dict
from judging.study.agent_server import LONGEST, AgentClient, NoAnswerError, text_of, tidy
from judging.study.settings import AnswersSettings
from judging.study.settings import Talk as TalkSettings
from judging.study.state import Judge, State, Talk
from serving.conversations.pair_settings import DelaySettings
from serving.conversations.scenario import speaker_name
from serving.conversations.transcript import lines_of as messages_of

SIDES = ("A", "B")
CHANCE = random.SystemRandom()  # nobody can draw it again
LOOK = 0.25  # seconds after which it is looked again whether somebody came, said something or left
HELD = 20.0  # seconds for which a question what is new is held open
TURN_SECONDS = 120.0  # within which an agent answers


@dataclass(slots=True)
class Lobby:
    """Who waits, and when each participant was last heard of. ``note`` takes events in at once, and returns when they
    are on disk."""

    study: AnswersSettings
    stimuli: dict[str, ConversationStimulus]
    state: State
    note: Any
    seen: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, float] = field(default_factory=dict)
    answering: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    client: AgentClient = field(default_factory=AgentClient)
    closing: bool = False

    @property
    def settings(self) -> TalkSettings:
        return self.study.talk

    @property
    def delays(self) -> DelaySettings:
        return self.study.delays

    async def at(self, judge: Judge, after: int) -> dict[str, Any]:
        """What is new for a participant since message ``after``; held open until something is, or for a while."""
        until = time.monotonic() + HELD
        await self._has_left(judge)
        while True:
            self.seen[judge.code] = time.monotonic()
            found = await self._look(judge)
            if found["state"] != "waiting" and (len(found["messages"]) > after or found["state"] != "open"):
                return found
            if self.closing or time.monotonic() > until or (found["state"] == "open" and after < 0):
                return found
            await asyncio.sleep(LOOK)

    async def say(self, judge: Judge, turn: int, text: Any) -> str | None:
        """Keep what a participant says as the message ``turn``, in a burst dialogue of their own; returns why it cannot
        be, as a phrase's name."""
        talk = self.state.talk_of(judge.code)
        if self.state.closed:
            return "closed"
        await self._has_left(judge)
        if talk is None or talk.void:
            return "partner_left"
        mine = SIDES[talk.speakers.index(judge.code)]
        is_burst = self._is_burst(talk)
        known = sum(one["speaker"] == mine for one in talk.messages) if is_burst else len(talk.messages)
        if turn < known:
            return None  # it is there
        if not isinstance(text, str) or is_blank(text) or len(text) > LONGEST:
            return "incomplete"
        if self._is_over(talk):
            return "talk_over"
        if turn > known or (not is_burst and self._next(talk) != mine):
            return "not_your_turn"
        await self._said(talk, judge.code, text)
        return None

    def result(self, judge: Judge) -> str | None:
        """The id of the conversation that a participant may end now; None while it goes on."""
        talk = self.state.talk_of(judge.code)
        return talk.id if talk is not None and (talk.void or self._is_over(talk)) else None

    async def close(self) -> None:
        """No agent is asked any more."""
        for task in self.answering.values():
            task.cancel()
        await asyncio.gather(*self.answering.values(), return_exceptions=True)
        await self.client.close()

    # what goes on

    async def _look(self, judge: Judge) -> dict[str, Any]:
        talk = self.state.talk_of(judge.code)
        if talk is None:
            self.waiting.setdefault(judge.code, time.monotonic())
            await self._pair(judge)
            talk = self.state.talk_of(judge.code)
        if talk is None:
            if time.monotonic() - self.waiting[judge.code] <= self.settings.seconds_in_lobby:
                return {"state": "waiting", "messages": []}
            del self.waiting[judge.code]  # for the next conversation one waits anew
            return {"state": "nobody", "messages": []}
        self.waiting.pop(judge.code, None)
        await self._who_left(talk)
        stimulus = self.stimuli[talk.stimulus]
        mine = SIDES[talk.speakers.index(judge.code)]
        is_over = self._is_over(talk)
        if not talk.void and not is_over:
            self._ask_agent(talk)
        return {
            "state": "void" if talk.void else "over" if is_over else "open",
            "topic": stimulus.topic,
            "mine": mine,
            "burst": self._is_burst(talk),
            "my_turn": not talk.void and not is_over and (self._is_burst(talk) or self._next(talk) == mine),
            "left": max(0, stimulus.exchanges - len(talk.messages)),
            "messages": [{"speaker": one["speaker"], "text": one["text"]} for one in talk.messages],
        }

    async def _pair(self, judge: Judge) -> None:
        """If another one waits, begin the conversations of both: one, or one of each with an agent."""
        now = time.monotonic()
        there = [
            code
            for code in self.waiting
            if code != judge.code and now - self.seen.get(code, 0) < HELD + 5 and self._can_talk(code)
        ]
        agent, machines = self.settings.agent, self.settings.machines
        if machines == 1:  # all know who it is
            await self._begin([[judge.code, agent]])
        elif there:
            both = [min(there, key=lambda code: self.waiting[code]), judge.code]
            with_agents = bool(agent) and CHANCE.random() < machines
            await self._begin([[code, agent] for code in both] if with_agents else [both])

    def _can_talk(self, code: str) -> bool:
        """Whether who waits has not gone on without a conversation."""
        step = self.state.judges[code].current
        return step is not None and step["kind"] == "talk"

    async def _begin(self, pairs: list[list[str]]) -> None:
        """Begin conversations, all at the same time."""
        events = list[dict[str, Any]]()
        used = self.state.talks_by_stimulus()
        for speakers in pairs:
            CHANCE.shuffle(speakers)
            stimulus = min(self.stimuli, key=lambda name: (used[name], CHANCE.random()))
            used[stimulus] += 1
            events.append({"event": "paired", "talk": secrets.token_hex(6), "stimulus": stimulus, "speakers": speakers})
            for code in speakers:
                self.waiting.pop(code, None)
        await self.note(*events)
        for talk in list(self.state.talks.values()):
            await self._who_left(talk)  # nobody else looks whether somebody has left an agent

    async def _has_left(self, judge: Judge) -> None:
        """Make the conversation void of who comes back after they have left it."""
        talk = self.state.talk_of(judge.code)
        if talk is not None:
            await self._who_left(talk)

    async def _who_left(self, talk: Talk) -> None:
        if talk.void or self._is_over(talk):
            return
        now = time.monotonic()
        for code in talk.speakers:
            if code in self.state.judges and now - self.seen.setdefault(code, now) > self.settings.seconds_away:
                await self.note({"event": "void", "talk": talk.id, "why": f"{code} left"})
                return

    def _is_burst(self, talk: Talk) -> bool:
        return self.stimuli[talk.stimulus].mode == "burst"

    def _next(self, talk: Talk) -> str:
        first = self.stimuli[talk.stimulus].who_starts or "A"
        return first if len(talk.messages) % 2 == 0 else "BA"[SIDES.index(first)]

    def _is_over(self, talk: Talk) -> bool:
        return len(talk.messages) >= self.stimuli[talk.stimulus].exchanges

    async def _said(self, talk: Talk, code: str, text: str) -> None:
        speaker = SIDES[talk.speakers.index(code)]
        about = {"turn": len(talk.messages), "speaker": speaker, "text": tidy(text)}  # of people and agents alike
        await self.note({"event": "said", "talk": talk.id, **about})

    # agents

    def _ask_agent(self, talk: Talk) -> None:
        agent = next((code for code in talk.speakers if code not in self.state.judges), None)
        if agent is None or not self._awaits(talk, agent):
            return
        if talk.id not in self.answering or self.answering[talk.id].done():
            says = self._agent_says_a_burst if self._is_burst(talk) else self._agent_says
            self.answering[talk.id] = asyncio.create_task(says(talk, agent))

    def _awaits(self, talk: Talk, agent: str) -> bool:
        """Whether the agent is to say something, now or after a while."""
        side = SIDES[talk.speakers.index(agent)]
        if talk.messages and self._is_burst(talk):
            return bool(talk.messages[-1]["speaker"] != side)
        return self._next(talk) == side

    async def _agent_says(self, talk: Talk, agent: str) -> None:
        asked = time.monotonic()
        text = await self._answer(talk, agent)
        if text is not None:
            await self._typed(talk, text, asked, sum(len(one["text"]) for one in talk.messages[-1:]))
            if talk.void is None:
                await self._said(talk, agent, text)

    async def _agent_says_a_burst(self, talk: Talk, agent: str) -> None:
        """Wait until the person is quiet, then say what there is to say as long as nothing else is said."""
        known = -1
        while known < len(talk.messages):
            known = len(talk.messages)
            await asyncio.sleep(self.settings.quiet_s if known else 0)
        asked = time.monotonic()
        text = await self._answer(talk, agent)
        side = SIDES[talk.speakers.index(agent)]
        read = takewhile(lambda one: one["speaker"] != side, reversed(talk.messages[:known]))
        letters = sum(len(one["text"]) for one in read)
        left = messages_of(text or "")
        while left and len(talk.messages) == known and not self._is_over(talk) and talk.void is None:
            await self._typed(talk, left[0], asked, letters)
            if len(talk.messages) == known and talk.void is None:
                await self._said(talk, agent, left.pop(0))
                asked, letters, known = time.monotonic(), 0, known + 1
        if left and talk.void is None:
            about = {"turn": len(talk.messages), "speaker": side, "texts": left}
            await self.note({"event": "withdrawn", "talk": talk.id, **about})

    async def _typed(self, talk: Talk, text: str, asked: float, read: int) -> None:
        """Wait until the agent, asked at ``asked``, has read so many letters and typed the message."""
        numbers = random.Random(f"{talk.id} {len(talk.messages)}")
        await asyncio.sleep(max(0.0, asked + self.delays.draw(len(text), read, numbers) - time.monotonic()))

    async def _answer(self, talk: Talk, agent: str) -> str | None:
        """What the agent says next; None where it could not be had, and the conversation is void."""
        row = as_dict(self.stimuli[talk.stimulus]) | {"id": f"{talk.stimulus}/{talk.id}"}
        names = self.stimuli[talk.stimulus].names
        row["history"] = [
            {"speaker": speaker_name(one["speaker"], names), "text": one["text"]} for one in talk.messages
        ]
        server, is_burst = self.settings.server, self._is_burst(talk)

        def read(answer: Any) -> str:
            text = text_of(answer)
            if any(len(one) > LONGEST for one in (messages_of(text) if is_burst else [text])):
                raise ValueError("its message is too long")
            return text

        try:
            return await self.client.answer(server, agent, row, read, seconds=TURN_SECONDS)
        except NoAnswerError as error:
            await self.note({"event": "void", "talk": talk.id, "why": str(error)})
            return None
