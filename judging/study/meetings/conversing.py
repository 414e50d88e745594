"""Agents who take part in conversations with people, as in dialogues of agents: by turns, or in bursts."""

from abc import abstractmethod
from functools import partial
from typing import Any, TypeVar

from agents.answers import Message, TurnAnswer, Withdrawn
from agents.language.filters.policies import MEASURE, THRESHOLDS
from agents.stimuli import ConversationStimulus, as_dict
from judging.study.design.tables import TalkSettings, TestsOfAll, TimedTests
from judging.study.log.meeting import Interrogation, Talk
from judging.study.log.meeting_events import TalkSaid, TalkWithdrawn, TestSaid, TestWithdrawn
from judging.study.log.study_log import StudyLog
from judging.study.meetings.agent_server import text_of
from judging.study.meetings.lobby import Lobby
from judging.study.pages.page_answers import LONGEST_MESSAGE, tidy
from serving.conversations.agent_part import AgentPart
from serving.conversations.scenario import SIDES, DelaySettings, speaker_name
from serving.conversations.transcript import Transcript, lines_of, no_instructions

TURN_SECONDS = 120.0
"""Seconds within which an agent answers."""
C = TypeVar("C", Talk, Interrogation)


class ConversingLobby(Lobby[C]):
    """A lobby whose meetings are conversations of the first of the people with each other, by the other's number.

    A :class:`serving.conversations.transcript.Transcript` says whose turn it is and how long an agent writes. It is
    made from the log, so a server that starts again goes on where the log ends.
    """

    waits: TalkSettings | TimedTests

    def __init__(
        self, study_log: StudyLog, waits: TalkSettings | TestsOfAll, server: str, delays: DelaySettings
    ) -> None:
        super().__init__(study_log, waits, server, delays)
        self.parts: dict[tuple[str, int], AgentPart] = {}
        """The conversations as they go on, by the meeting and the other's number."""

    def part(self, meeting: C, number: int) -> AgentPart:
        """The conversation with the one of a number, as it goes on."""
        key = (meeting.id, number)
        if key in self.parts:
            return self.parts[key]
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
            history = [
                {"speaker": speaker_name(message.speaker, stimulus.names), "text": message.text}
                for message in transcript.messages
            ]
            row = as_dict(stimulus) | {"history": history}
            answering = self.client.answer(self.server, people[side], row, read, seconds=TURN_SECONDS, seed=self.seed)
            return TurnAnswer(text=await answering)

        async def send(side: int) -> Message:
            message = transcript.send(side)
            await self.publish(meeting, number)
            return message

        self.parts[key] = AgentPart(transcript, partial(self.clock, meeting), ask, send)
        return self.parts[key]

    async def play(self, meeting: C, side: int) -> None:
        """Let the agent take part until nothing is due for it. Raises NoAnswerError."""
        await self.part(meeting, side).run()

    async def say(self, meeting: C, number: int, side: int, text: str, id: str | None = None) -> None:
        """Take a person's message: ``side`` is 0 for the first of the people, 1 for the one of the number.

        ``id`` is the page's number of the message, if it has one. Raises StorageError.
        """
        part = self.part(meeting, number)
        part.transcript.call(side)
        part.transcript.say(side, TurnAnswer(text=text), part.clock())
        await self.publish(meeting, number, id)
        part.wake()  # who answers only what is on disk

    async def publish(self, meeting: C, number: int, id: str | None = None) -> None:
        """Note what was said or withdrawn since the last call. Raises StorageError."""
        transcript = self.part(meeting, number).transcript
        news = transcript.messages[len(meeting.lines(number)) :]
        said = [self.said(meeting, number, message, id) for message in news]
        withdrawn = [self.withdrawn(meeting, number, message) for message in transcript.withdrawn]
        transcript.withdrawn.clear()
        await self.note(*said, *withdrawn)

    @abstractmethod
    def stimulus(self, meeting: C, number: int) -> ConversationStimulus:
        """The conversation with the one of a number, as an agent is asked to take part in it."""

    @abstractmethod
    def said(self, meeting: C, number: int, message: Message, id: str | None) -> TalkSaid | TestSaid:
        """The event of a message that was said; ``id`` as in :meth:`say`."""

    @abstractmethod
    def withdrawn(self, meeting: C, number: int, message: Withdrawn) -> TalkWithdrawn | TestWithdrawn:
        """The event of a message that was ready and is not sent."""


def read_reply(answer: Any, *, is_burst: bool) -> str:
    """The text of an agent's answer; in a burst each line is a message.

    Raises ValueError, KeyError, IndexError or TypeError for an answer that is no message, or too long.
    """
    text = text_of(answer)
    messages = lines_of(text) if is_burst else [text]
    if any(len(message) > LONGEST_MESSAGE for message in messages):
        raise ValueError("its message is too long")
    return text if is_burst else tidy(text)
