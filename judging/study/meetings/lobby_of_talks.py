"""The lobby of conversations.

Who comes waits for somebody else. Then chance decides for both whether they meet each other, or each an agent. So the
time that they waited tells nobody whom they meet.
"""

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from agents.answers import Message, Withdrawn
from agents.stimuli import ConversationStimulus
from judging.study.log.codes import draw_code
from judging.study.log.meeting import Talk
from judging.study.log.meeting_events import Speaker, TalkBegan, TalkSaid, TalkVoid, TalkWithdrawn
from judging.study.log.state import Judge
from judging.study.log.study_log import StudyLog
from judging.study.meetings.acts import TextAct
from judging.study.meetings.conversing import ConversingLobby
from judging.study.meetings.lobby import View
from judging.study.meetings.material import TalkMaterial
from judging.study.pages.page_answers import parsed_answer
from serving.conversations.scenario import SIDES
from serving.files.timestamps import now

CHANCE = random.SystemRandom()
"""Nobody can draw it again, so nobody can know whom they meet."""
VOID_PHRASES: Mapping[str | None, str] = {"fault": "talk_failed", "away": "talk_away"}
"""What the page says of a void conversation, by its cause; of other causes it says ``partner_left``."""


class TalkLobby(ConversingLobby[Talk]):
    """Where participants wait for a conversation, about the stimuli of ``material``."""

    kind = "talk"
    noun = "conversation"
    meeting = Talk

    def __init__(self, study_log: StudyLog, material: TalkMaterial) -> None:
        self.settings = material.settings.talk
        self.stimuli = material.stimuli
        super().__init__(study_log, self.settings, self.settings.server, material.settings.delays)

    def is_over(self, talk: Talk) -> bool:
        """Whether there are as many messages as the stimulus says."""
        return len(talk.messages) >= self.stimuli[talk.stimulus].exchanges

    def void_event(self, talk: Talk, why: str) -> TalkVoid:
        """A :class:`TalkVoid <judging.study.log.meeting_events.TalkVoid>`, as of now."""
        return TalkVoid(talk=talk.id, why=why, at=now())

    def is_news(self, view: View, shown: Any) -> bool:
        """Whether the page, which has ``shown`` messages, sees another state or further messages."""
        is_more = view["state"] != "open" or len(view["messages"]) > shown
        return bool(view["state"] != "waiting" and is_more)

    async def pair(self, judge: Judge) -> None:
        """Pair somebody with who waits longest, or both with the agent; stimuli that were used least come first."""
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
        events: list[TalkBegan] = []
        used = Counter(talk.stimulus for talk in self.state.counted(self.meeting))
        for speakers in pairs:
            CHANCE.shuffle(speakers)
            stimulus = min(self.stimuli, key=lambda name: (used[name], CHANCE.random()))
            used[stimulus] += 1
            name = f"talk-{draw_code()}"
            events.append(TalkBegan(talk=name, stimulus=stimulus, speakers=speakers, at=now()))
        await self.note(*events)

    def view(self, talk: Talk, code: str) -> View:
        """The messages so far, whose turn it is, and how many messages are left."""
        stimulus = self.stimuli[talk.stimulus]
        transcript = self.dialogue(talk, 1).transcript
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
            "messages": [{"speaker": message.speaker, "text": message.text} for message in talk.messages],
        }

    async def moved(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        """Take a message, which ``turn`` numbers."""
        talk = self.meeting_of(judge.code)
        turn = body["turn"]
        if talk is None or talk.void:
            why = None if talk is None else talk.void_to(judge.code)
            return VOID_PHRASES.get(why, "partner_left")
        transcript = self.dialogue(talk, 1).transcript
        side = talk.people.index(judge.code)
        # By turns a message has its number in the conversation, in a burst its number among one's own.
        number = sum(message.speaker == SIDES[side] or not transcript.is_burst for message in talk.messages)
        if turn < number:
            return None  # it was sent before
        sent = parsed_answer(TextAct, body)
        if self.is_over(talk):
            return "talk_over"
        if turn > number or (not transcript.is_burst and transcript.unread[side] is None):
            return "not_your_turn"
        return None if await self.say(talk, 1, side, sent) else "talk_over"

    def stimulus(self, talk: Talk, number: int) -> ConversationStimulus:
        """The stimulus of the conversation, with an id of its own: agents draw their numbers by it."""
        return self.stimuli[talk.stimulus].model_copy(update={"id": f"{talk.stimulus}/{talk.id}"})

    def machines(self, talk: Talk) -> list[int]:
        """The other one of the two, if that is an agent."""
        return [1] if self.dialogue(talk, 1).transcript.agents else []

    def event(self, talk: Talk, number: int, news: Message | Withdrawn, id: str | None) -> TalkSaid | TalkWithdrawn:
        """A message, or one that is not sent; its time is the event's own time."""
        speaker: Speaker = "A" if news.speaker == "A" else "B"
        if isinstance(news, Message):
            traces = self.traces if news.agent in self.state.judges else {}
            return TalkSaid(talk=talk.id, turn=news.turn, speaker=speaker, text=news.text, at=now(), **traces)
        return TalkWithdrawn(talk=talk.id, turn=news.turn, speaker=speaker, texts=[news.text], at=now())
