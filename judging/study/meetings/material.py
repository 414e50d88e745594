"""What people who meet do in a study: conversations about the topics of a set, and live tests."""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

from pydantic import Field

from agents.errors import InputError
from agents.stimuli import ConversationStimulus
from judging.study.design.settings import InterrogationSettings, TestsSettings
from judging.study.log.logged import HumanOrMachine, Sex
from judging.study.log.meeting import JudgedMeeting, Meeting, Talk
from judging.study.log.participant_events import TalkLeft, TestEnded
from judging.study.log.state import Judge
from judging.study.log.steps import MaterialStep
from judging.study.meetings.agent_server import served_agents
from judging.study.pages.first_page import MEETING_S, MESSAGE_S
from judging.study.pages.material import Extent, Material
from judging.study.pages.page_answers import BadAnswer, Sent, WrittenOrNot, parsed_answer
from judging.study.pages.stimulus_material import SetMaterial


class TalkAnswer(Sent):
    """For whom, and how old, a speaker takes the other one after a conversation (2022 paper, S7.1.2)."""

    guess: HumanOrMachine | None = None
    """For whom the speaker takes the other; None where they do not say."""
    sex: Sex | None = None
    """Whether for a woman or a man; None where they do not say."""
    age: Annotated[WrittenOrNot, Field(max_length=40)] = ""
    """How old, in the speaker's own words, at most 40 letters; "" where they do not say."""


class MeetingMaterial(Material):
    """Meetings of people, in which agents of a server may take part."""

    meeting: str
    """What a reader calls one of them."""
    meetings: str
    """What a reader calls several."""

    @abstractmethod
    def needed_agents(self) -> tuple[str, dict[str, str]]:
        """The server's address, and the names of the agents that are asked, by their place in ``study.toml``."""

    @abstractmethod
    def is_over(self, meeting: Meeting) -> bool:
        """Whether it came to its end. Raises InputError where that cannot be known."""

    def problems(self) -> list[str]:
        """The agents that are needed and not named."""
        return [f"{place}: name the agent" for place, name in self.needed_agents()[1].items() if not name]

    def served_problems(self) -> list[str]:
        """The agents that the server does not have, or not for conversations, or why it cannot be asked."""
        server, needed = self.needed_agents()
        named = {place: name for place, name in needed.items() if name}  # of the others ``problems`` tells
        if not named:
            return []
        served, why = served_agents(server)
        problems = []
        for place, name in named.items():
            if why:
                problems.append(f"{place}: {why}")
            elif name not in served:
                others = ", ".join(sorted(served)) or "no agent"
                problems.append(f"{place}: {server} does not serve {name}; the server has {others}")
            elif "conversation" not in served[name]:
                problems.append(f"{place}: {name} answers {', '.join(served[name])}, not conversation")
        return problems


class TalkMaterial(SetMaterial, MeetingMaterial):
    """Conversations about the topics of a set."""

    kind = "talk"
    meeting = "conversation"
    meetings = "conversations"
    stimuli: Mapping[str, ConversationStimulus]

    def needed_agents(self) -> tuple[str, dict[str, str]]:
        """The agent, if a share of the conversations is with it."""
        talk = self.settings.talk
        return talk.server, {"talk.agent": talk.agent} if talk.machines else {}

    def extent(self) -> Extent:
        """Conversations, as long as those of the set are on average."""
        seconds = MESSAGE_S * mean(stimulus.exchanges for stimulus in self.stimuli.values()) + MEETING_S
        return Extent("conversations", self.number, 0, seconds, "first_meet")

    def is_over(self, meeting: Meeting) -> bool:
        """Whether there are as many messages as the stimulus says. Raises InputError where the set lacks it."""
        assert isinstance(meeting, Talk)
        stimulus = self.stimuli.get(meeting.stimulus)
        if stimulus is None:
            raise InputError(
                f"{self.source}: the set has no {meeting.stimulus}, but people of this study talked about it; restore "
                "the set with which the study began"
            )
        return len(meeting.messages) >= stimulus.exchanges

    def show(self, judge: Judge, step: MaterialStep) -> dict[str, Any]:
        """Whether the page asks afterwards for whom one takes the other."""
        return {"practice": False, "asked": "conversation", "guess": self.settings.talk.guess}

    def warnings(self) -> list[str]:
        """An agent that is named, and that nobody meets."""
        talk = self.settings.talk
        if talk.agent and not talk.machines:
            return [f"talk.agent: nobody meets {talk.agent}, because talk.machines is 0"]
        return []

    def problems(self) -> list[str]:
        """Stimuli that begin in the middle, too: people are not shown what came before."""
        return super().problems() + [
            f"{name}: people are not shown what came before (history, opener, pseudo)"
            for name, stimulus in self.stimuli.items()
            if stimulus.history or stimulus.opener is not None or stimulus.pseudo
        ]

    def read(self, judge: Judge, number: int, answer: dict[str, Any], at: str, meeting: str | None = None) -> TalkLeft:
        """For whom somebody takes the other, where the study asks for it."""
        asked: dict[str, Any] = {}
        if self.settings.talk.guess:
            asked = parsed_answer(TalkAnswer, answer).model_dump()
        elif answer:
            raise BadAnswer("has parts that no page sends")
        return TalkLeft(judge=judge.code, at=at, step=number, kind="talk", talk=meeting, **asked)


class TestsMaterial(MeetingMaterial):
    """Online tests and interrogations, of which the study's own folder is the source."""

    settings: TestsSettings
    kind = "test"
    meeting = "test"
    meetings = "online tests"
    sha256 = hashlib.sha256(b"online").hexdigest()

    def __init__(self, settings: TestsSettings, study: Path) -> None:
        super().__init__(settings)
        self.source = study
        self.number = settings.tests.each

    def needed_agents(self) -> tuple[str, dict[str, str]]:
        """All machines, unless there are people alone."""
        needed = {} if self.settings.tests.two_people == 1 else self.settings.machines()
        return self.settings.agents.server, needed

    def extent(self) -> Extent:
        """Tests that last their minutes, or as long as the mean number of questions with their answers."""
        if isinstance(self.settings, InterrogationSettings):
            seconds = 60 * self.settings.tests.minutes
        else:
            seconds = 2 * MESSAGE_S * mean(self.settings.tests.exchanges)
        return Extent("tests", self.number, 0, seconds + MEETING_S, "first_meet")

    def is_over(self, meeting: Meeting) -> bool:
        """Whether the last verdict is there."""
        assert isinstance(meeting, JudgedMeeting)
        return meeting.is_over()

    def show(self, judge: Judge, step: MaterialStep) -> dict[str, Any]:
        """How long answers may be, and the reasons among which judges choose."""
        return {"practice": False, **self.settings.tests.model_dump(include={"words_below", "codes"})}

    def read(self, judge: Judge, number: int, answer: dict[str, Any], at: str, meeting: str | None = None) -> TestEnded:
        """Nothing but that a test has ended: the verdict was taken in the lobby."""
        if answer:
            raise BadAnswer("has parts that no page sends")
        return TestEnded(judge=judge.code, at=at, step=number, kind="test", test=meeting)
