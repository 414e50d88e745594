"""What the lobbies have in common: participants wait for each other, and meet.

A lobby answers what a participant may see (:meth:`Lobby.at`) and takes what they do (:meth:`Lobby.move`). It asks the
agents that take part. What happens is on disk before others see it. A meeting that somebody leaves is void, and so is
one whose agent fails.

A study has one lobby, in one process: the state that is read from the log is the truth of who meets whom. What stands
here besides may be lost, such as who was heard of when: after a new start it comes again by itself.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, TypeVar

from judging.study.design.tables import TalkSettings, TestsOfAll
from judging.study.log.meeting import LEFT, Meeting
from judging.study.log.meeting_events import TalkVoid, TestVoid
from judging.study.log.state import Judge
from judging.study.log.steps import MaterialKind
from judging.study.log.study_log import StudyLog
from judging.study.meetings.acts import TextAct
from judging.study.meetings.agent_server import AgentClient, NoAnswerError
from judging.study.pages.page_answers import BadAnswer, Refused
from judging.study.pages.sent_traces import TracesFields, kept
from serving.conversations.scenario import DelaySettings

LOOK = 0.25
"""Seconds after which it is looked again whether somebody came, wrote or left."""
HELD = 20.0
"""Seconds for which a question what is new is held open."""
SWEEP = 1.0
"""Seconds after which it is looked again who has left."""
log = logging.getLogger("turinglike.study")
M = TypeVar("M", bound=Meeting)
View = dict[str, Any]
"""What a participant sees, as JSON."""


class Lobby(ABC, Generic[M]):
    """Where the participants of a study wait and meet; ``M`` is the kind of their meetings.

    ``study_log`` is the study's log. ``waits`` has the seconds after which somebody who waits is told that nobody came,
    or who is not heard of has left. ``server`` answers for the agents, ``delays`` says how long they seem to write.
    """

    kind: ClassVar[MaterialKind]
    """The kind of the steps that are done here."""
    noun: ClassVar[str]
    """What a reader calls a meeting."""
    meeting: type[M]

    def __init__(
        self, study_log: StudyLog, waits: TalkSettings | TestsOfAll, server: str, delays: DelaySettings
    ) -> None:
        self.state = study_log.state
        self.note = study_log.note
        self.written = study_log.written
        self.waits = waits
        self.server = server
        self.delays = delays
        self.seed: int | None = None
        """Of the agents' answers; None leaves it to their server."""
        self.seen: dict[str, float] = {}
        """When each participant was last heard of, by the monotonic clock."""
        self.waiting: dict[str, float] = {}
        """Who waits, and since when by the monotonic clock; who came first is first."""
        self.tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        """What agents are at, by the meeting and the agent's number in it."""
        self.began: dict[str, float] = {}
        """When each meeting's clock began, by the monotonic clock."""
        self.records_traces: Callable[[Judge], bool] = lambda judge: False
        """Whether traces of what a participant writes are kept."""
        self.client = AgentClient()
        self.closing = False
        self._swept = 0.0
        self._told = ""  # the reason of a void meeting that the log has
        self._told_fault = False  # whether that was an agent's

    def meeting_of(self, code: str) -> M | None:
        """The meeting that a participant is in; None while they wait."""
        meeting = self.state.meeting_of(code)
        return meeting if isinstance(meeting, self.meeting) else None

    async def at(self, judge: Judge, shown: Any) -> View:
        """What a participant sees; held open for at most ``HELD`` seconds until there is news.

        ``shown`` is what the page has: see :meth:`is_news`. Raises Refused after they left, and StorageError.
        """
        until = time.monotonic() + HELD
        while True:
            if judge.ended:  # in another request
                raise Refused("not_yet")
            await self._hear(judge)
            view = await self.look(judge)
            if self.closing or time.monotonic() > until or self.is_news(view, shown):
                await self.written()
                return view
            await asyncio.sleep(LOOK)

    async def move(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        """Take what a participant does, once, also where it is sent twice.

        Returns the name of the phrase that refuses it, or None. Raises StorageError.
        """
        if self.state.closed:
            return "closed"
        await self._hear(judge)
        try:
            return await self.moved(judge, body)
        except BadAnswer:
            return "incomplete"

    async def look(self, judge: Judge) -> View:
        """What a participant sees now, after all that is due has been done: people are paired, agents asked."""
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
            if (step := self.state.judges[code].current) is not None and step.kind == self.kind
            if self.meeting_of(code) is None and not self.is_away(code)
        ]

    def is_away(self, code: str) -> bool:
        """Whether a participant has not been heard of for so long that they count as gone."""
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
        """Make a meeting void where somebody has left it."""
        if self.phase(meeting) == "open" and (why := self.why_void(meeting)) is not None:
            await self.make_void(meeting, why)

    def stop(self, meeting: str | None) -> None:
        """End what agents are at in a meeting, whose id it is; nothing happens for None."""
        for (name, _), task in self.tasks.items():
            if name == meeting and task is not asyncio.current_task():
                task.cancel()

    def why_void(self, meeting: M) -> str | None:
        """Why an open meeting is to become void now; None where it may go on."""
        away = [code for code in meeting.people if code in self.state.judges and self.is_away(code)]
        # Of several who are away it was the first who left: the others may have gone because of that.
        return f"{min(away, key=self.seen.__getitem__)} {LEFT}" if away else None

    async def make_void(self, meeting: M, why: str) -> None:
        """Make a meeting void, unless it has ended before. Raises StorageError."""
        if self.phase(meeting) == "open":
            self.stop(meeting.id)
            await self.note(self.void_event(meeting, why))
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
        log.log(level, f"a {self.noun} is void: {reason}; `turinglike study status` counts all void {self.noun}s")

    def phase(self, meeting: M) -> Literal["void", "over", "open"]:
        """How far a meeting is; void and over are for ever."""
        if meeting.void is not None:
            return "void"
        return "over" if self.is_over(meeting) else "open"

    def clock(self, meeting: M) -> float:
        """Seconds since the meeting's clock began; 0 before it.

        It never goes back: the monotonic clock counts, from where the log left it when the server starts again.
        """
        if (began := meeting.began()) is None:
            return 0.0
        if meeting.id not in self.began:
            since = time.time() - datetime.fromisoformat(began).timestamp()
            self.began[meeting.id] = time.monotonic() - max(since, meeting.latest)  # of a server before this process
        return time.monotonic() - self.began[meeting.id]

    def traces_of(self, code: str, sent: TextAct) -> TracesFields:
        """The fields on traces of the event of what a participant writes; none where they are not to be kept."""
        return kept(sent.traces, is_agreed=self.records_traces(self.state.judges[code]))

    def is_enough(self) -> bool:
        """Whether nobody need come any more, for there are as many meetings as are wanted."""
        return False

    def is_news(self, view: View, shown: Any) -> bool:
        """Whether a participant's view is another than the page has, which sent ``shown`` (here the view's version)."""
        return bool(view["version"] != shown)

    def result(self, judge: Judge) -> str | None:
        """The id of the meeting that a participant may end now; None where there is none."""
        meeting = self.meeting_of(judge.code)
        return meeting.id if meeting is not None and self.phase(meeting) != "open" else None

    def drive(self, meeting: M) -> None:
        """Let the agents play whose move it is; who is at it already is not asked again."""
        if self.phase(meeting) != "open":
            return
        for side in self.machines(meeting):
            key = (meeting.id, side)
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
        """End what agents are at; what they have not sent is lost."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        await self.client.close()

    @abstractmethod
    def is_over(self, meeting: M) -> bool:
        """Whether a meeting came to its end."""

    @abstractmethod
    def void_event(self, meeting: M, why: str) -> TalkVoid | TestVoid:
        """What the log gets when a meeting ceases to count, as of now; ``why`` is a reason such as "CODE left"."""

    @abstractmethod
    async def pair(self, judge: Judge) -> None:
        """Begin the meetings for which there are people enough, now that ``judge`` waits, too. Raises StorageError."""

    @abstractmethod
    def machines(self, meeting: M) -> Iterable[int]:
        """The numbers of the agents who are to play now, by their position in ``meeting.people``."""

    @abstractmethod
    async def play(self, meeting: M, side: int) -> None:
        """Let the agent of a number do what is due. Raises NoAnswerError, by which the meeting becomes void."""

    @abstractmethod
    def view(self, meeting: M, code: str) -> View:
        """What one of its people sees of a meeting; nothing in it tells who is a machine."""

    @abstractmethod
    async def moved(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        """As :meth:`move`, for a study that is open. Raises BadAnswer for what no page sends."""
