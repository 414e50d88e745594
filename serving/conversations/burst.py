"""Burst dialogue: both speakers write whenever they like, several messages in a row, and may be interrupted.

X-Turing's system has three parts (ACL 2025, arXiv 2408.09853); here each is a rule about events on the
conversation's own clock, so that a dialogue takes no longer than its agents do:

- Listener: a speaker who hears a message waits for more until the other one has been quiet for ``quiet_s`` (t1).
- Caller: then its agent is asked, with all that has been said; each line of the reply is a message.
- Sender: each message goes out once it has been typed, one after the other (:mod:`serving.conversations.delays`).
  What a speaker has not sent when a message comes is withdrawn, and it listens again.

X-Turing's t1 is not in the texts that are known here: the default is a guess. An agent is asked only after a message
was sent, and what it says is sent unless another message is sent before: so a dialogue ends.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from agents.answers import ConversationAnswer, Message, TurnAnswer, Withdrawn
from serving.conversations.transcript import Transcript

QUIET_S = 5.0


def messages_of(text: str) -> list[str]:
    """The messages of a reply: its lines."""
    return [line for line in (" ".join(line.split()) for line in text.splitlines()) if line]


class Event(NamedTuple):
    """What happens next, and when: a message of the speaker on ``side`` is sent, or its agent is to be asked."""

    at: float
    what: Literal["send", "call"]
    side: int


class _Typed(NamedTuple):
    """A message that goes out at ``at``."""

    at: float
    answer: TurnAnswer


@dataclass(slots=True)
class BurstTranscript(Transcript):
    """A burst dialogue as it stands at ``now``, in seconds from its start.

    For two agents it is used as a :class:`Transcript`: :attr:`side` is whose agent is to be asked now, and :meth:`add`
    takes its reply. Where a person takes part (whose side is none of the ``agents``), who holds the dialogue follows
    :attr:`next_event` on a real clock.
    """

    quiet_s: float = QUIET_S
    agents: tuple[int, ...] = (0, 1)
    now: float = 0.0
    withdrawn: list[Withdrawn] = field(default_factory=list)
    calls: int = 0
    typing: tuple[deque[_Typed], deque[_Typed]] = field(default_factory=lambda: (deque(), deque()))
    unread: list[int | None] = field(default_factory=lambda: [None, None])
    """Letters that each has heard since its agent was asked; None where nothing is to be answered."""
    heard: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def __post_init__(self) -> None:
        self.unread[self.starts] = 0
        self.heard[self.starts] = -self.quiet_s  # who starts waits for nothing

    @property
    def side(self) -> int:
        """Whose agent is to be asked now."""
        event = self.next_event
        assert event is not None
        return event.side

    @property
    def number(self) -> int:
        """How often an agent has been asked."""
        return self.calls

    @property
    def next_event(self) -> Event | None:
        """None once the dialogue is over. Of two at one time a message is sent first, and A's before B's."""
        if self.ended:
            return None
        sent = [Event(typed[0].at, "send", side) for side, typed in enumerate(self.typing) if typed]
        calls = [
            Event(self.heard[side] + self.quiet_s, "call", side)
            for side in self.agents
            if self.unread[side] is not None
        ]
        return min([*sent, *calls], key=lambda event: event.at, default=None)

    def opener(self) -> TurnAnswer | None:
        opener = Transcript.opener(self)
        return opener if opener is not None and messages_of(opener.text) else None

    def add(self, answer: TurnAnswer) -> None:
        """The reply of the agent on :attr:`side`; then the clock goes on to the next call, or to the end."""
        event = self.next_event
        assert event is not None
        self.now = max(self.now, event.at)
        self.type(event.side, answer, self.call(event.side), self.now)
        while (event := self.next_event) is not None and event.what == "send":
            typed = self.typing[event.side].popleft()
            self.say(event.side, typed.answer, typed.at)
        self.now = event.at if event is not None else self.now

    def call(self, side: int) -> int:
        """The agent of ``side`` is asked; returns how many letters it reads. What it hears from now on is unread."""
        letters, self.unread[side] = self.unread[side] or 0, None
        return letters

    def type(self, side: int, answer: TurnAnswer, read: int, at: float, answered: float = 0.0) -> None:
        """What the agent of ``side`` says, that was asked at ``at`` and read so many letters: its messages go out when
        they are typed, and none before it ``answered``, unless it has heard something meanwhile."""
        numbers, raw = self.numbers(), answer.raw
        for text in messages_of(answer.text):
            at = max(at + round(self.delays.draw(len(text), read, numbers), 3), answered)
            self.typing[side].append(_Typed(at, answer.model_copy(update={"text": text, "raw": raw})))
            read, raw = 0, None  # of the whole reply, which stands with its first message
        self.calls += 1
        if self.unread[side] is not None:
            self.withdraw(side, "interrupted")

    def say(self, side: int, answer: TurnAnswer, at: float) -> Message:
        """A message of the speaker on ``side`` goes out at ``at``, and the other one hears it. Its delay is all the
        time since the last one, whoever's: with that in which the speaker waited for more."""
        self.now, at = at, round(at, 3)
        before = (self.messages[-1].at if self.messages else None) or 0.0
        answer = answer.model_copy(update={"delay_s": round(max(at - before, 0.0), 3)})
        message = self.append(side, answer, at)
        other = 1 - side
        self.withdraw(other, "interrupted")
        self.unread[other] = (self.unread[other] or 0) + len(answer.text)
        self.heard[other] = self.now
        if self.ended:
            for each in (0, 1):
                self.withdraw(each, "ended")
        return message

    def withdraw(self, side: int, why: Literal["interrupted", "ended"]) -> None:
        """What the speaker on ``side`` was typing is not sent."""
        assert self.stimulus.names is not None
        for typed in self.typing[side]:
            self.withdrawn.append(
                Withdrawn(
                    turn=len(self.messages),
                    speaker=self.stimulus.names[side],
                    agent=self.speakers[side],
                    text=typed.answer.text,
                    at=round(self.now, 3),
                    why=why,
                )
            )
        self.typing[side].clear()

    def answer(self) -> ConversationAnswer:
        return Transcript.answer(self).model_copy(update={"withdrawn": self.withdrawn})
