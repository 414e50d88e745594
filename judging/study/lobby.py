"""The lobby: participants wait for each other, and converse. Who comes waits for somebody else; then chance decides for
both whether they meet each other, or each an agent. What happens is on disk before others see it. A conversation that
somebody leaves, or whose agent fails, is void."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from agents.answers import Message, TurnAnswer, is_blank
from agents.language.filters.policies import MEASURE, THRESHOLDS
from agents.stimuli import ConversationStimulus, as_dict
from judging.study.agent_server import LONGEST_MESSAGE, AgentClient, NoAnswerError, text_of, tidy
from judging.study.events import Judge
from judging.study.materials import TalkMaterial
from judging.study.meetings import Meeting, Talk
from judging.study.page_answers import Refused
from judging.study.settings import Talk as TalkSettings
from judging.study.settings import TestsOfAll
from serving.conversations.scenario import SIDES, speaker_name
from serving.conversations.transcript import AgentPart, Transcript, lines_of, no_instructions

if TYPE_CHECKING:
    from judging.study.study import Study

CHANCE = random.SystemRandom()  # nobody can draw it again
LOOK = 0.25  # seconds after which it is looked again whether somebody came, wrote or left
HELD = 20.0  # seconds for which a question what is new is held open
SWEEP = 1.0  # seconds after which it is looked again who has left
TURN_SECONDS = 120.0  # within which an agent answers
M = TypeVar("M", bound=Meeting)
View = dict[str, Any]


class Lobby(ABC, Generic[M]):
    kind: ClassVar[str]
    voids: ClassVar[str]  # the event that makes a meeting void
    meeting: type[M]

    def __init__(self, study: Study, waits: TalkSettings | TestsOfAll) -> None:
        self.state, self.note, self.written, self.waits = study.state, study.note, study.written, waits
        self.seen: dict[str, float] = {}
        self.waiting: dict[str, float] = {}
        self.tasks: dict[tuple[str, int], asyncio.Task[None]] = {}  # of machines, by the meeting and the side
        self.client = AgentClient()
        self.closing = False
        self._swept = 0.0

    def meeting_of(self, code: str) -> M | None:
        meeting = self.state.meeting_of(code)
        return meeting if isinstance(meeting, self.meeting) else None

    async def at(self, judge: Judge, known: Any) -> View:
        """What a participant sees; held open, within limits, until there is news. Raises Refused after they left."""
        until = time.monotonic() + HELD
        await self._has_left(judge)
        while True:
            if judge.ended:  # in another request
                raise Refused("not_yet")
            self.seen[judge.code] = time.monotonic()
            view = await self.look(judge)
            if self.closing or time.monotonic() > until or self.is_news(view, known):
                await self.written()
                return view
            await asyncio.sleep(LOOK)

    async def move(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        """Take a participant's act, once; returns the name of the phrase that refuses it."""
        if self.state.closed:
            return "closed"
        await self._has_left(judge)
        self.seen[judge.code] = time.monotonic()
        return await self.moved(judge, body)

    async def look(self, judge: Judge) -> View:
        if self.meeting_of(judge.code) is None:
            self.waiting.setdefault(judge.code, time.monotonic())
            await self._sweep()
            await self.pair(judge)
        meeting = self.meeting_of(judge.code)
        if meeting is None:
            is_late = time.monotonic() - self.waiting[judge.code] > self.waits.seconds_in_lobby
            if not is_late and not self.is_enough():
                return {"state": "waiting", "messages": []}
            del self.waiting[judge.code]
            return {"state": "nobody", "messages": []}
        self.waiting.pop(judge.code, None)
        await self.end_if_left(meeting)
        self.drive(meeting)
        return self.view(meeting, judge.code)

    def there(self) -> list[str]:
        """Who waits and is still heard of, longest first."""
        now = time.monotonic()
        steps = {code: self.state.judges[code].current for code in self.waiting}
        there = [
            code
            for code, step in steps.items()
            if step is not None and step["kind"] == self.kind and self.meeting_of(code) is None
            if now - self.seen.get(code, 0.0) < self.waits.seconds_away
        ]
        return sorted(there, key=lambda code: self.waiting[code])

    async def _has_left(self, judge: Judge) -> None:
        if time.monotonic() - self.seen.get(judge.code, 0.0) > self.waits.seconds_away:
            self.waiting.pop(judge.code, None)
            if (meeting := self.meeting_of(judge.code)) is not None:
                await self.end_if_left(meeting)

    async def _sweep(self) -> None:
        # Nobody else looks whether somebody has left a machine.
        if time.monotonic() - self._swept > SWEEP:
            self._swept = time.monotonic()
            for meeting in self.state.counted(self.meeting):
                await self.end_if_left(meeting)

    async def end_if_left(self, meeting: M) -> None:
        if meeting.void is None and not self.is_over(meeting) and (why := self.why_void(meeting)) is not None:
            self.stop(meeting.id)
            await self.make_void(meeting, why)

    def stop(self, meeting: str | None) -> None:
        """No machine answers there any more."""
        for (name, _), task in self.tasks.items():
            if name == meeting:
                task.cancel()

    def why_void(self, meeting: M) -> str | None:
        now = time.monotonic()
        for code in meeting.people:
            if code in self.state.judges and now - self.seen.setdefault(code, now) > self.waits.seconds_away:
                return f"{code} left"
        return None

    async def make_void(self, meeting: M, why: str) -> None:
        if meeting.void is None and not self.is_over(meeting):
            await self.note({"event": self.voids, self.kind: meeting.id, "why": why})

    def is_enough(self) -> bool:
        return False

    def is_news(self, view: View, known: Any) -> bool:
        return bool(view["version"] != known)

    def result(self, judge: Judge) -> str | None:
        """The id of the meeting that a participant may end now."""
        meeting = self.meeting_of(judge.code)
        return meeting.id if meeting is not None and (meeting.void is not None or self.is_over(meeting)) else None

    def begin_task(self, key: tuple[str, int], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if key not in self.tasks or self.tasks[key].done():
            self.tasks[key] = asyncio.create_task(work())

    async def close(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        await self.client.close()

    @abstractmethod
    def is_over(self, meeting: M) -> bool: ...

    @abstractmethod
    async def pair(self, judge: Judge) -> None:
        """Begin the meetings for which there are people enough."""

    @abstractmethod
    def drive(self, meeting: M) -> None:
        """Ask the machines whose move it is, each once."""

    @abstractmethod
    def view(self, meeting: M, code: str) -> View: ...

    @abstractmethod
    async def moved(self, judge: Judge, body: Mapping[str, Any]) -> str | None: ...


class TalkLobby(Lobby[Talk]):
    kind, voids, meeting = "talk", "void", Talk

    def __init__(self, study: Study, material: TalkMaterial) -> None:
        super().__init__(study, material.settings.talk)
        self.settings, self.delays, self.stimuli = material.settings.talk, material.settings.delays, material.talks
        self.parts: dict[str, AgentPart] = {}

    def is_over(self, talk: Talk) -> bool:
        return len(talk.messages) >= self.stimuli[talk.stimulus].exchanges

    def is_news(self, view: View, known: Any) -> bool:
        is_more = view["state"] != "open" or len(view["messages"]) > known
        return bool(view["state"] != "waiting" and is_more)

    async def pair(self, judge: Judge) -> None:
        others = [code for code in self.there() if code != judge.code]
        agent, machines = self.settings.agent, self.settings.machines
        if machines == 1:  # all know who it is
            await self._begin([[judge.code, agent]])
        elif others:
            both = [others[0], judge.code]
            with_agents = bool(agent) and CHANCE.random() < machines
            await self._begin([[code, agent] for code in both] if with_agents else [both])

    async def _begin(self, pairs: list[list[str]]) -> None:
        events = list[dict[str, Any]]()
        used = Counter(talk.stimulus for talk in self.state.counted(self.meeting))
        for speakers in pairs:
            CHANCE.shuffle(speakers)
            stimulus = min(self.stimuli, key=lambda name: (used[name], CHANCE.random()))
            used[stimulus] += 1
            events.append({"event": "paired", "talk": secrets.token_hex(6), "stimulus": stimulus, "speakers": speakers})
            for code in speakers:
                self.waiting.pop(code, None)
        await self.note(*events)

    def view(self, talk: Talk, code: str) -> View:
        stimulus, transcript = self.stimuli[talk.stimulus], self._part(talk).transcript
        side, is_open = talk.people.index(code), talk.void is None and not self.is_over(talk)
        return {
            "state": "void" if talk.void else "open" if is_open else "over",
            "topic": stimulus.topic,
            "mine": SIDES[side],
            "burst": transcript.is_burst,
            "my_turn": is_open and (transcript.is_burst or transcript.unread[side] is not None),
            "left": max(0, stimulus.exchanges - len(talk.messages)),
            "messages": [{"speaker": message["speaker"], "text": message["text"]} for message in talk.messages],
        }

    async def moved(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        talk, turn, text = self.meeting_of(judge.code), body["turn"], body.get("text")
        if talk is None or talk.void:
            return "partner_left"
        part, side = self._part(talk), talk.people.index(judge.code)
        is_burst = part.transcript.is_burst
        known = sum(message["speaker"] == SIDES[side] or not is_burst for message in talk.messages)
        if turn < known:
            return None  # it is there
        if not isinstance(text, str) or is_blank(text) or len(text) > LONGEST_MESSAGE:
            return "incomplete"
        if self.is_over(talk):
            return "talk_over"
        if turn > known or (not is_burst and part.transcript.unread[side] is None):
            return "not_your_turn"
        part.transcript.call(side)
        part.transcript.say(side, TurnAnswer(text=tidy(text)), part.clock())
        await self._publish(talk)
        part.wake()  # who answers only what is on disk
        return None

    # agents

    def drive(self, talk: Talk) -> None:
        is_open = talk.void is None and not self.is_over(talk)
        if is_open and self._part(talk).transcript.agents:
            self.begin_task((talk.id, 0), partial(self._take_part, talk))

    def _part(self, talk: Talk) -> AgentPart:
        if talk.id in self.parts:
            return self.parts[talk.id]
        transcript = transcript_of(
            self.stimuli[talk.stimulus],
            (talk.people[0], talk.people[1]),
            ((SIDES.index(message["speaker"]), message["text"], 0.0) for message in talk.messages),
            seed=talk.id,
            delays=self.delays,
            quiet_s=self.settings.quiet_s,
            agents=tuple(side for side, code in enumerate(talk.people) if code not in self.state.judges),
        )
        begun = time.monotonic()

        async def ask(side: int) -> TurnAnswer:
            return TurnAnswer(text=await self._answer(talk, talk.people[side]))

        async def send(side: int) -> Message:
            message = transcript.send(side)
            await self._publish(talk)
            return message

        self.parts[talk.id] = AgentPart(transcript, lambda: time.monotonic() - begun, ask, send)
        return self.parts[talk.id]

    async def _take_part(self, talk: Talk) -> None:
        try:
            await self._part(talk).run()
        except NoAnswerError as error:
            await self.make_void(talk, str(error))

    async def _publish(self, talk: Talk) -> None:
        transcript = self._part(talk).transcript
        events = [
            {"event": "said", "talk": talk.id, "turn": message.turn, "speaker": message.speaker, "text": message.text}
            for message in transcript.messages[len(talk.messages) :]
        ]
        for (turn, speaker), group in groupby(transcript.withdrawn, lambda message: (message.turn, message.speaker)):
            texts = [message.text for message in group]
            events.append({"event": "withdrawn", "talk": talk.id, "turn": turn, "speaker": speaker, "texts": texts})
        transcript.withdrawn.clear()
        await self.note(*events)

    async def _answer(self, talk: Talk, agent: str) -> str:
        stimulus = self.stimuli[talk.stimulus]
        history = [
            {"speaker": speaker_name(message["speaker"], stimulus.names), "text": message["text"]}
            for message in talk.messages
        ]
        row = as_dict(stimulus) | {"id": f"{talk.stimulus}/{talk.id}", "history": history}
        read = partial(read_reply, is_burst=stimulus.mode == "burst")
        return await self.client.answer(self.settings.server, agent, row, read, seconds=TURN_SECONDS)


def transcript_of(
    stimulus: ConversationStimulus, people: tuple[str, str], before: Iterable[tuple[int, str, float]], **settings: Any
) -> Transcript:
    """A conversation after the messages ``before``, each with its side and seconds, of an earlier process."""
    named = stimulus.model_copy(update={"names": SIDES, "who_starts": stimulus.who_starts or "A"})
    transcript = Transcript(named, people, (no_instructions, no_instructions), MEASURE, THRESHOLDS, **settings)
    for side, text, at in before:
        transcript.call(side)
        transcript.say(side, TurnAnswer(text=text), at)
    return transcript


def read_reply(answer: Any, *, is_burst: bool) -> str:
    """A machine's message, of a burst several lines. Raises ValueError, KeyError, IndexError or TypeError."""
    text = text_of(answer)
    if any(len(message) > LONGEST_MESSAGE for message in (lines_of(text) if is_burst else [text])):
        raise ValueError("its message is too long")
    return text if is_burst else tidy(text)
