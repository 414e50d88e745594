"""The lobbies: participants wait for each other, and meet. What happens is on disk before others see it. A meeting that
somebody leaves, or whose agent fails, is void.

In the lobby of conversations who comes waits for somebody else; then chance decides for both whether they meet each
other, or each an agent."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from agents.answers import Message, TurnAnswer, Withdrawn
from agents.language.filters.policies import MEASURE, THRESHOLDS
from agents.stimuli import ConversationStimulus, as_dict
from judging.study.codes import draw_code
from judging.study.events import Judge
from judging.study.meetings.agent_server import LONGEST_MESSAGE, AgentClient, NoAnswerError, text_of, tidy
from judging.study.meetings.meeting import LEFT, Meeting, Talk
from judging.study.pages.materials import TalkMaterial
from judging.study.pages.page_answers import BadAnswer, Refused, TextAct, parsed
from judging.study.settings import Talk as TalkSettings
from judging.study.settings import TestsOfAll, TimedTests
from serving.conversations.scenario import SIDES, DelaySettings, speaker_name
from serving.conversations.transcript import AgentPart, Transcript, lines_of, no_instructions

if TYPE_CHECKING:
    from judging.study.study import Study

CHANCE = random.SystemRandom()  # nobody can draw it again
LOOK = 0.25  # seconds after which it is looked again whether somebody came, wrote or left
HELD = 20.0  # seconds for which a question what is new is held open
SWEEP = 1.0  # seconds after which it is looked again who has left
TURN_SECONDS = 120.0  # within which an agent answers
log = logging.getLogger("turinglike.study")
VOID_PHRASES: Mapping[str | None, str] = {"fault": "talk_failed", "away": "talk_away"}  # of others: partner_left
M = TypeVar("M", bound=Meeting)
View = dict[str, Any]


class Lobby(ABC, Generic[M]):
    kind: ClassVar[str]
    noun: ClassVar[str]  # what a reader calls a meeting
    voids: ClassVar[str]  # the event that makes a meeting void
    meeting: type[M]

    def __init__(self, study: Study, waits: TalkSettings | TestsOfAll, server: str, delays: DelaySettings) -> None:
        self.state = study.state
        self.note = study.note
        self.written = study.written
        self.waits = waits
        self.server = server
        self.delays = delays
        self.seed: int | None = None  # of machines' answers; None: their server's
        self.seen: dict[str, float] = {}
        self.waiting: dict[str, float] = {}  # since when, in that order
        self.tasks: dict[tuple[str, int], asyncio.Task[None]] = {}  # of machines, by the meeting and the side
        self.parts: dict[tuple[str, int], AgentPart] = {}  # conversations as they go on, by the meeting and a number
        self.began: dict[str, float] = {}  # when each meeting's clock did, by the monotonic clock
        self.client = AgentClient()
        self.closing = False
        self._swept = 0.0
        self._told = ""  # the reason of a void meeting that the log has
        self._told_fault = False  # whether that was a machine's

    def meeting_of(self, code: str) -> M | None:
        meeting = self.state.meeting_of(code)
        return meeting if isinstance(meeting, self.meeting) else None

    async def at(self, judge: Judge, known: Any) -> View:
        """What a participant sees; held open, within limits, until there is news. Raises Refused after they left."""
        until = time.monotonic() + HELD
        while True:
            if judge.ended:  # in another request
                raise Refused("not_yet")
            await self._hear(judge)
            view = await self.look(judge)
            if self.closing or time.monotonic() > until or self.is_news(view, known):
                await self.written()
                return view
            await asyncio.sleep(LOOK)

    async def move(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        """Take a participant's act, once; returns the name of the phrase that refuses it."""
        if self.state.closed:
            return "closed"
        await self._hear(judge)
        try:
            return await self.moved(judge, body)
        except BadAnswer:
            return "incomplete"

    async def look(self, judge: Judge) -> View:
        await self._sweep()  # meanwhile somebody else may pair them
        since = time.monotonic()
        if self.meeting_of(judge.code) is None:
            since = self.waiting.setdefault(judge.code, since)
            await self.pair(judge)
        meeting = self.meeting_of(judge.code)
        if meeting is None:
            is_late = time.monotonic() - since > self.waits.seconds_in_lobby
            if not is_late and not self.is_enough():
                return {"state": "waiting", "messages": []}
            self.waiting.pop(judge.code, None)
            return {"state": "nobody", "messages": []}
        self.waiting.pop(judge.code, None)
        await self.end_if_left(meeting)
        self.drive(meeting)
        return self.view(meeting, judge.code)

    def there(self) -> list[str]:
        """Who waits and is still heard of, longest first."""
        return [
            code
            for code in self.waiting
            if (step := self.state.judges[code].current) is not None and step["kind"] == self.kind
            if self.meeting_of(code) is None and not self.is_away(code)
        ]

    def is_away(self, code: str) -> bool:
        now = time.monotonic()
        return now - self.seen.setdefault(code, now) > self.waits.seconds_away

    async def _hear(self, judge: Judge) -> None:
        # Who comes back too late has left.
        if self.is_away(judge.code):
            self.waiting.pop(judge.code, None)
            if (meeting := self.meeting_of(judge.code)) is not None:
                await self.end_if_left(meeting)
        self.seen[judge.code] = time.monotonic()

    async def _sweep(self) -> None:
        # Nobody else looks whether somebody has left a machine.
        if time.monotonic() - self._swept > SWEEP:
            self._swept = time.monotonic()
            for meeting in self.state.counted(self.meeting):
                await self.end_if_left(meeting)

    async def end_if_left(self, meeting: M) -> None:
        if self.phase(meeting) == "open" and (why := self.why_void(meeting)) is not None:
            await self.make_void(meeting, why)

    def stop(self, meeting: str | None) -> None:
        """No machine answers there any more."""
        for (name, _), task in self.tasks.items():
            if name == meeting and task is not asyncio.current_task():
                task.cancel()

    def why_void(self, meeting: M) -> str | None:
        away = [code for code in meeting.people if code in self.state.judges and self.is_away(code)]
        # Of several who are away it was the first who left: the others may have gone because of that.
        return f"{min(away, key=self.seen.__getitem__)} {LEFT}" if away else None

    async def make_void(self, meeting: M, why: str) -> None:
        if self.phase(meeting) == "open":
            self.stop(meeting.id)
            await self.note({"event": self.voids, self.kind: meeting.id, "why": why})
            self._tell(meeting)

    def _tell(self, meeting: M) -> None:
        # Whoever runs the study hears of the first void meeting, and of the next whose reason is another. A fault that
        # comes back after a machine has answered is news, too.
        reason = meeting.reason()
        if reason == self._told:
            return
        self._told = reason
        self._told_fault = meeting.cause() == "fault"
        level = logging.ERROR if self._told_fault else logging.INFO
        log.log(level, f"a {self.noun} is void: {reason}; `turinglike study status` counts those that are void")

    def phase(self, meeting: M) -> Literal["void", "over", "open"]:
        return "void" if meeting.void is not None else "over" if self.is_over(meeting) else "open"

    def clock(self, meeting: M) -> float:
        """Seconds since the meeting's clock began, monotonic; 0 before it."""
        if (began := meeting.began()) is None:
            return 0.0
        if meeting.id not in self.began:
            since = time.time() - datetime.fromisoformat(began).timestamp()
            self.began[meeting.id] = time.monotonic() - max(since, meeting.latest)  # of a server before this process
        return time.monotonic() - self.began[meeting.id]

    def is_enough(self) -> bool:
        return False

    def is_news(self, view: View, known: Any) -> bool:
        return bool(view["version"] != known)

    def result(self, judge: Judge) -> str | None:
        """The id of the meeting that a participant may end now."""
        meeting = self.meeting_of(judge.code)
        return meeting.id if meeting is not None and self.phase(meeting) != "open" else None

    def drive(self, meeting: M) -> None:
        """Let the machines play whose move it is, each once."""
        for side in self.machines(meeting) if self.phase(meeting) == "open" else ():
            key = meeting.id, side
            if key not in self.tasks or self.tasks[key].done():
                self.tasks[key] = asyncio.create_task(self._play(meeting, side))

    async def _play(self, meeting: M, side: int) -> None:
        try:
            await self.play(meeting, side)
        except NoAnswerError as error:
            await self.make_void(meeting, str(error))
        else:
            if self._told_fault:
                self._told = ""

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
    def machines(self, meeting: M) -> Iterable[int]:
        """The sides at which a machine is to play now."""

    @abstractmethod
    async def play(self, meeting: M, side: int) -> None:
        """Raises NoAnswerError."""

    @abstractmethod
    def view(self, meeting: M, code: str) -> View: ...

    @abstractmethod
    async def moved(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        """Take an act; returns the phrase that refuses it. Raises BadAnswer."""


class ConversingLobby(Lobby[M]):
    """Machines take part in conversations of the first of the people in a meeting with the others, by their number."""

    waits: TalkSettings | TimedTests

    def part(self, meeting: M, number: int) -> AgentPart:
        if (meeting.id, number) in self.parts:
            return self.parts[meeting.id, number]
        stimulus = self.stimulus(meeting, number)
        people = (meeting.people[0], meeting.people[number])
        transcript = Transcript(
            stimulus.model_copy(update={"names": SIDES, "who_starts": stimulus.who_starts or "A"}),
            people,
            (no_instructions, no_instructions),
            MEASURE,
            THRESHOLDS,
            seed=f"{self.seed} {stimulus.id}",
            delays=self.delays,
            quiet_s=self.waits.quiet_s,
            agents=tuple(side for side, who in enumerate(people) if who not in self.state.judges),
        )
        for line in meeting.lines(number):
            transcript.call(SIDES.index(line.speaker))
            transcript.say(SIDES.index(line.speaker), TurnAnswer(text=line.text), line.at)
        read = partial(read_reply, is_burst=transcript.is_burst)

        async def ask(side: int) -> TurnAnswer:
            said = [(speaker_name(each.speaker, stimulus.names), each.text) for each in transcript.messages]
            history = [{"speaker": speaker, "text": text} for speaker, text in said]
            row = as_dict(stimulus) | {"history": history}
            answering = self.client.answer(self.server, people[side], row, read, seconds=TURN_SECONDS, seed=self.seed)
            return TurnAnswer(text=await answering)

        async def send(side: int) -> Message:
            message = transcript.send(side)
            await self.publish(meeting, number)
            return message

        self.parts[meeting.id, number] = AgentPart(transcript, partial(self.clock, meeting), ask, send)
        return self.parts[meeting.id, number]

    async def play(self, meeting: M, side: int) -> None:
        await self.part(meeting, side).run()

    async def say(self, meeting: M, number: int, side: int, text: str, **about: Any) -> None:
        """Take a person's message, with what else is noted of it."""
        part = self.part(meeting, number)
        part.transcript.call(side)
        part.transcript.say(side, TurnAnswer(text=text), part.clock())
        await self.publish(meeting, number, **about)
        part.wake()  # who answers only what is on disk

    async def publish(self, meeting: M, number: int, **about: Any) -> None:
        """Note what was said or withdrawn since the last call."""
        transcript = self.part(meeting, number).transcript
        news = transcript.messages[len(meeting.lines(number)) :]
        events = [self.event_of(meeting, number, message) | about for message in news]
        events += [self.event_of(meeting, number, message) for message in transcript.withdrawn]
        transcript.withdrawn.clear()
        await self.note(*events)

    @abstractmethod
    def stimulus(self, meeting: M, number: int) -> ConversationStimulus: ...

    @abstractmethod
    def event_of(self, meeting: M, number: int, message: Message | Withdrawn) -> View:
        """What is noted of a message that was said or withdrawn."""


class TalkLobby(ConversingLobby[Talk]):
    kind = "talk"
    noun = "conversation"
    voids = "void"
    meeting = Talk

    def __init__(self, study: Study, material: TalkMaterial) -> None:
        self.settings = material.settings.talk
        self.stimuli = material.stimuli
        super().__init__(study, self.settings, self.settings.server, material.settings.delays)

    def is_over(self, talk: Talk) -> bool:
        return len(talk.messages) >= self.stimuli[talk.stimulus].exchanges

    def is_news(self, view: View, known: Any) -> bool:
        is_more = view["state"] != "open" or len(view["messages"]) > known
        return bool(view["state"] != "waiting" and is_more)

    async def pair(self, judge: Judge) -> None:
        others = [code for code in self.there() if code != judge.code]
        agent = self.settings.agent
        machines = self.settings.machines
        if machines == 1:  # all know who it is
            pairs = [[judge.code, agent]]
        elif others:
            both = [others[0], judge.code]
            with_agents = bool(agent) and CHANCE.random() < machines
            pairs = [[code, agent] for code in both] if with_agents else [both]
        else:
            return
        events = list[dict[str, Any]]()
        used = Counter(talk.stimulus for talk in self.state.counted(self.meeting))
        for speakers in pairs:
            CHANCE.shuffle(speakers)
            stimulus = min(self.stimuli, key=lambda name: (used[name], CHANCE.random()))
            used[stimulus] += 1
            name = f"talk-{draw_code()}"
            events.append({"event": "paired", "talk": name, "stimulus": stimulus, "speakers": speakers})
        await self.note(*events)

    def view(self, talk: Talk, code: str) -> View:
        stimulus = self.stimuli[talk.stimulus]
        transcript = self.part(talk, 1).transcript
        state = self.phase(talk)
        side = talk.people.index(code)
        return {
            "state": state,
            "void": talk.void_to(code),
            "topic": stimulus.topic,
            "mine": SIDES[side],
            "burst": transcript.is_burst,
            "my_turn": state == "open" and (transcript.is_burst or transcript.unread[side] is not None),
            "left": max(0, stimulus.exchanges - len(talk.messages)),
            "messages": [{"speaker": message["speaker"], "text": message["text"]} for message in talk.messages],
        }

    async def moved(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        talk = self.meeting_of(judge.code)
        turn = body["turn"]
        if talk is None or talk.void:
            why = None if talk is None else talk.void_to(judge.code)
            return VOID_PHRASES.get(why, "partner_left")
        transcript = self.part(talk, 1).transcript
        side = talk.people.index(judge.code)
        known = sum(message["speaker"] == SIDES[side] or not transcript.is_burst for message in talk.messages)
        if turn < known:
            return None  # it is there
        text = parsed(TextAct, body).text
        if self.is_over(talk):
            return "talk_over"
        if turn > known or (not transcript.is_burst and transcript.unread[side] is None):
            return "not_your_turn"
        await self.say(talk, 1, side, text)
        return None

    def stimulus(self, talk: Talk, number: int) -> ConversationStimulus:
        return self.stimuli[talk.stimulus].model_copy(update={"id": f"{talk.stimulus}/{talk.id}"})

    def machines(self, talk: Talk) -> list[int]:
        return [1] if self.part(talk, 1).transcript.agents else []

    def event_of(self, talk: Talk, number: int, message: Message | Withdrawn) -> View:
        about = {"talk": talk.id, "turn": message.turn, "speaker": message.speaker}
        if isinstance(message, Withdrawn):
            return {"event": "withdrawn", **about, "texts": [message.text]}
        return {"event": "said", **about, "text": message.text}


def read_reply(answer: Any, *, is_burst: bool) -> str:
    """A machine's message, of a burst several lines. Raises ValueError, KeyError, IndexError or TypeError."""
    text = text_of(answer)
    if any(len(message) > LONGEST_MESSAGE for message in (lines_of(text) if is_burst else [text])):
        raise ValueError("its message is too long")
    return text if is_burst else tidy(text)
