"""Agents who take part in conversations with people, as in dialogues of agents: by turns, or in bursts."""

from abc import abstractmethod
from functools import partial
from typing import Any, TypeVar

from agents.answers import Message, TurnAnswer, Withdrawn
from agents.stimuli import ConversationStimulus, as_dict
from judging.study.design.tables import TalkSettings, TestsOfAll, TimedTests
from judging.study.log.meeting import Interrogation, Talk
from judging.study.log.meeting_events import TalkSaid, TalkWithdrawn, TestSaid, TestWithdrawn
from judging.study.log.study_log import StudyLog
from judging.study.meetings.acts import TextAct
from judging.study.meetings.agent_server import text_of
from judging.study.meetings.lobby import Lobby
from judging.study.pages.page_answers import LONGEST_MESSAGE, tidy
from judging.study.pages.sent_traces import TracesFields
from serving.conversations.live_dialogue import LiveDialogue
from serving.conversations.scenario import SIDES, DelaySettings, speaker_name
from serving.conversations.transcript import Transcript, lines_of

TURN_SECONDS = 120.0
"""Seconds within which an agent answers."""
C = TypeVar("C", Talk, Interrogation)
News = TalkSaid | TalkWithdrawn | TestSaid | TestWithdrawn
"""An event of what is said, or not sent, in a conversation."""


class ConversingLobby(Lobby[C]):
    """A lobby whose meetings are conversations of the first of the people with each other, by the other's number.

    Each is a :class:`serving.conversations.live_dialogue.LiveDialogue`, whose messages are those of the log: a server
    that starts again goes on where the log ends.
    """

    waits: TalkSettings | TimedTests

    def __init__(
        self, study_log: StudyLog, waits: TalkSettings | TestsOfAll, server: str, delays: DelaySettings
    ) -> None:
        super().__init__(study_log, waits, server, delays)
        self.put = study_log.put
        self.dialogues: dict[tuple[str, int], LiveDialogue] = {}
        """The conversations as they go on, by the meeting and the other's number."""
        self.traces: TracesFields = {}
        """The fields on traces of the message that a person is saying. A dialogue notes it before its ``say`` returns,
        and nothing else of a person meanwhile."""

    def dialogue(self, meeting: C, number: int) -> LiveDialogue:
        """The conversation with the one of a number, as it goes on."""
        key = (meeting.id, number)
        if key in self.dialogues:
            return self.dialogues[key]
        stimulus = self.stimulus(meeting, number)
        people = (meeting.people[0], meeting.people[number])
        transcript = Transcript(
            stimulus.model_copy(update={"names": SIDES, "who_starts": stimulus.who_starts or "A"}),
            people,
            seed=f"{self.seed} {stimulus.id}",
            delays=self.delays,
            quiet_s=self.waits.quiet_s,
            agents=tuple(side for side, who in enumerate(people) if who not in self.state.judges),
        )
        read = partial(read_reply, is_burst=transcript.is_burst)

        async def ask(side: int) -> TurnAnswer:
            history = [
                {"speaker": speaker_name(message.speaker, stimulus.names), "text": message.text}
                for message in transcript.messages
            ]
            row = as_dict(stimulus) | {"history": history}
            await self.written()  # an agent answers only what is on disk
            answering = self.client.answer(self.server, people[side], row, read, seconds=TURN_SECONDS, seed=self.seed)
            return TurnAnswer(text=await answering)

        def note(news: Message | Withdrawn, id: str | None) -> None:
            self.put(self.event(meeting, number, news, id))

        said = [(SIDES.index(line.speaker), line.text, line.at) for line in meeting.lines(number)]
        self.dialogues[key] = LiveDialogue(transcript, partial(self.clock, meeting), ask, note, said)
        return self.dialogues[key]

    async def play(self, meeting: C, side: int) -> None:
        """Let the agent take part until nothing is due for it. Raises NoAnswerError."""
        await self.dialogue(meeting, side).run()

    async def say(self, meeting: C, number: int, side: int, sent: TextAct, id: str | None = None) -> bool:
        """Take a person's message: ``side`` is 0 for the first of the people, 1 for the one of the number.

        ``id`` is the page's number of the message, if it has one. Returns whether there was still room for it; on
        return it is on disk. Raises StorageError.
        """
        dialogue = self.dialogue(meeting, number)
        self.traces = self.traces_of((meeting.people[0], meeting.people[number])[side], sent)
        try:
            is_taken = dialogue.say(side, sent.text, id)
        finally:
            self.traces = {}
        await self.written()
        return is_taken

    @abstractmethod
    def stimulus(self, meeting: C, number: int) -> ConversationStimulus:
        """The conversation with the one of a number, as an agent is asked to take part in it."""

    @abstractmethod
    def event(self, meeting: C, number: int, news: Message | Withdrawn, id: str | None) -> News:
        """The event of a message that was said, ``id`` as in :meth:`say`, or that was ready and is not sent.

        A person's has :attr:`traces`."""


def read_reply(answer: Any, *, is_burst: bool) -> str:
    """The text of an agent's answer; in a burst each line is a message.

    Raises ValueError, KeyError, IndexError or TypeError for an answer that is no message, or too long.
    """
    text = text_of(answer)
    messages = lines_of(text) if is_burst else [text]
    if any(len(message) > LONGEST_MESSAGE for message in messages):
        raise ValueError("its message is too long")
    return text if is_burst else tidy(text)
