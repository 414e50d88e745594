"""A conversation's state, without a clock: times are seconds from its start. Sides are 0 for A, 1 for B.

Burst dialogue follows X-Turing (ACL 2025, arXiv 2408.09853):

1. An agent is called once the other speaker was quiet for ``quiet_s``.
2. Each line of its reply is a message, sent once typed.
3. A message from the other speaker withdraws unsent ones.

By turns a reply is a message, without waiting for quiet."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import orjson

from agents.answers import ConversationAnswer, Message, PseudoMessage, TurnAnswer, Withdrawn
from agents.capabilities import Instructed
from agents.contract import Agent, Draw
from agents.language.filters.policies import FilterSettings, Judgement, Policy, judge_conversation
from agents.language.sent_messages import leading_label, short_names
from agents.stimuli import ConversationStimulus, Utterance
from serving.conversations.scenario import QUIET_S, SIDES, DelaySettings

Instructions = Callable[[ConversationStimulus, Draw], str | None]  # as agents.capabilities.Instructed


def no_instructions(stimulus: ConversationStimulus, draw: Draw) -> None:
    """No instructions, for a person or an agent without a prompt."""


def instructions_of(agent: Agent[Any]) -> Instructions:
    """What gives the texts that an agent's model reads before a conversation."""
    return agent.instructions if isinstance(agent, Instructed) else no_instructions


class Event(NamedTuple):
    """A message of ``side`` to send, or its agent to call, ``at`` seconds."""

    at: float
    what: Literal["send", "call"]
    side: int


class _Typed(NamedTuple):
    at: float  # when it is sent
    answer: TurnAnswer


@dataclass(slots=True)
class Transcript:
    """A conversation about ``stimulus``, which has names and who starts.

    ``agents`` are the sides of :attr:`next_event`; ``unread`` counts letters since a call (None: nothing due)."""

    stimulus: ConversationStimulus
    speakers: tuple[str, str]
    instructions: tuple[Instructions, Instructions]
    policy: Policy
    thresholds: FilterSettings
    sample: int = 0
    seed: int | str = 0
    delays: DelaySettings = field(default_factory=DelaySettings)
    quiet_s: float = QUIET_S
    agents: tuple[int, ...] = (0, 1)
    now: float = 0.0
    calls: int = 0
    messages: list[Message] = field(default_factory=list)
    raws: list[Any] = field(default_factory=list)
    pseudo: list[PseudoMessage] = field(default_factory=list)
    withdrawn: list[Withdrawn] = field(default_factory=list)
    typing: tuple[list[_Typed], list[_Typed]] = field(default_factory=lambda: ([], []))
    heard_at: list[float] = field(default_factory=lambda: [0.0, 0.0])
    unread: list[int | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.is_burst:
            self.quiet_s = 0.0
        if not self.unread:
            self.unread = [None, None]
            self.unread[self.starts] = 0
            self.heard_at[self.starts] = -self.quiet_s  # who starts waits for nothing

    def copy(self) -> Transcript:
        names = ("messages", "raws", "pseudo", "withdrawn", "heard_at", "unread")
        lists: dict[str, Any] = {name: [*getattr(self, name)] for name in names}
        return replace(self, typing=([*self.typing[0]], [*self.typing[1]]), **lists)

    @property
    def is_burst(self) -> bool:
        return self.stimulus.mode == "burst"

    @property
    def names(self) -> tuple[str, str]:
        assert self.stimulus.names is not None
        return self.stimulus.names

    @property
    def starts(self) -> int:
        return SIDES.index(self.stimulus.who_starts or "A")

    @property
    def side(self) -> int:
        """The side that is due now."""
        assert self.next_event is not None
        return self.next_event.side

    @property
    def number(self) -> int:
        """The number of the turn (burst: of the call) in seeds and journals."""
        return self.calls if self.is_burst else len(self.messages)

    @property
    def ended(self) -> bool:
        return len(self.messages) >= self.stimulus.exchanges

    @property
    def next_event(self) -> Event | None:
        """None at the end. At equal times sending precedes calls, and A precedes B."""
        if self.ended:
            return None
        events = [Event(typed[0].at, "send", side) for side, typed in enumerate(self.typing) if typed]
        due = [side for side in self.agents if self.unread[side] is not None]
        events += [Event(self.heard_at[side] + self.quiet_s, "call", side) for side in due]
        return min(events, key=lambda event: event.at, default=None)

    def shown(self) -> ConversationStimulus:
        """The stimulus with pseudo-dialogue and messages in its history."""
        sent = [Utterance(speaker=message.speaker, text=message.text, at=message.at) for message in self.messages]
        before = [Utterance(speaker=message.speaker, text=message.text) for message in self.pseudo]
        return self.stimulus.model_copy(update={"history": [*self.stimulus.history, *before, *sent]})

    # what happens

    def opener(self) -> TurnAnswer | None:
        """The stimulus's first message, if not yet sent."""
        text = self.stimulus.opener
        if text is None or self.messages or (self.is_burst and not lines_of(text)):
            return None
        return TurnAnswer(text=text, finish="opener")

    def add(self, answer: TurnAnswer) -> Message | None:
        """Add the due speaker's reply and go on to the next call; returns the last sent message."""
        event = self.next_event
        assert event is not None
        self.now = max(self.now, event.at)
        self.type(event.side, answer, self.call(event.side), self.now)
        message = None
        while (event := self.next_event) is not None and event.what == "send":
            message = self.send(event.side)
        self.now = event.at if event is not None else self.now
        return message

    def call(self, side: int) -> int:
        """Call the agent of ``side``; returns the letters it reads."""
        letters = self.unread[side] or 0
        self.unread[side] = None
        return letters

    def type(self, side: int, answer: TurnAnswer, read: int, at: float, answered: float = 0.0) -> None:
        """Begin the reply of ``side``, called at ``at``; sent after ``answered``, unless the agent heard something."""
        numbers = random.Random(f"delay {self.seed} {self.number}")
        raw = answer.raw
        for text in lines_of(answer.text) if self.is_burst else [answer.text]:
            delay = None if self.is_burst else answer.delay_s
            if delay is None:
                delay = round(self.delays.draw(len(text), read, numbers), 3)
            at = max(at + delay, answered)
            self.typing[side].append(_Typed(at, answer.model_copy(update={"text": text, "raw": raw})))
            # of the reply, which stands with its first message
            read = 0
            raw = None
        self.calls += 1
        if self.unread[side] is not None:
            self.withdraw(side, "interrupted")

    def send(self, side: int) -> Message:
        typed = self.typing[side].pop(0)
        return self.say(side, typed.answer, typed.at)

    def say(self, side: int, answer: TurnAnswer, at: float) -> Message:
        """Send a message of ``side`` at ``at``; its delay is since the last."""
        self.now = at
        at = round(at, 3)
        before = (self.messages[-1].at if self.messages else None) or 0.0
        fields = {**answer.model_dump(), "delay_s": round(max(at - before, 0.0), 3)}
        speaker = self.names[side]
        agent = self.speakers[side]
        message = Message(turn=len(self.messages), speaker=speaker, agent=agent, at=at, **fields)
        self.messages.append(message)
        other = 1 - side
        self.withdraw(other, "interrupted")
        self.unread[other] = (self.unread[other] or 0) + len(answer.text)
        self.heard_at[other] = self.now
        if self.ended:
            for each in (0, 1):
                self.withdraw(each, "ended")
        return message

    def withdraw(self, side: int, why: Literal["interrupted", "ended"]) -> None:
        turn = len(self.messages)
        at = round(self.now, 3)
        about = {"turn": turn, "speaker": self.names[side], "agent": self.speakers[side], "at": at, "why": why}
        self.withdrawn += [Withdrawn(text=typed.answer.text, **about) for typed in self.typing[side]]
        self.typing[side].clear()

    # filters

    def judge_next(self, answer: TurnAnswer, side: int | None = None, raw: Any = None) -> list[Judgement]:
        """The filters' findings in an answer by ``side`` (None: due), and in the label of ``raw``."""
        side = self.side if side is None else side
        speaker = self.names[side]
        lines = self._labelled_messages()
        new = (speaker, self._labelled(speaker, answer.text, raw))
        limit = [len(lines)] if _ended_at_limit(answer) else []
        return self._judge([*lines, new], [side], limit, last_only=True)

    def judge_all(self) -> list[Judgement]:
        """The filters' findings in all messages and the history."""
        before = len(self.stimulus.history)
        messages = self.messages
        # The lines of a burst have the limit of their reply, which ends with the last line.
        ends = [a.speaker != b.speaker for a, b in pairwise(messages)] + [True]
        limit = [before + at for at, end in enumerate(ends[: len(messages)]) if end and _ended_at_limit(messages[at])]
        return self._judge(self._labelled_messages(), [0, 1], limit)

    def _judge(
        self,
        messages: Sequence[tuple[str, str]],
        sides: Sequence[int],
        limit: Sequence[int],
        *,
        last_only: bool = False,
    ) -> list[Judgement]:
        draws = {side: Draw(0, self.sample, options={"speaker": SIDES[side]}) for side in sides}
        prompts = {self.names[side]: self.instructions[side](self.shown(), draw) for side, draw in draws.items()}
        total = len(self.stimulus.history) + self.stimulus.exchanges
        return judge_conversation(
            messages,
            self.policy,
            self.thresholds,
            names=self.names,
            prompts=prompts,
            total=total,
            last_only=last_only,
            ended_at_limit=limit,
        )

    def _labelled_messages(self) -> list[tuple[str, str]]:
        lines = [(line.speaker, line.text) for line in self.stimulus.history]
        raws = self.raws if len(self.raws) == len(self.messages) else [None] * len(self.messages)  # not so in bursts
        for message, raw in zip(self.messages, raws, strict=True):
            lines.append((message.speaker, self._labelled(message.speaker, message.text, raw)))
        return lines

    def _labelled(self, speaker: str, text: str, raw: Any) -> str:
        match raw:
            case {"text": str(reply)} if self.stimulus.type != "MM":
                label = leading_label(reply, *short_names(self.names, speaker))
                if label is not None and label.whose != "own" and not text.startswith(label.written):
                    return f"{label.written}{text}"
        return text

    def answer(self) -> ConversationAnswer:
        return ConversationAnswer(
            messages=self.messages, ended_early=not self.ended, withdrawn=self.withdrawn, pseudo=self.pseudo
        )

    def raw_json(self, **more: Any) -> bytes:
        """The record's ``raw``: what was drawn, ``more``, and extras."""
        drawn = {key: getattr(self.stimulus, key) for key in ("topic", "names", "personas", "who_starts", "mode")}
        turns = {"turns": self.raws} if any(self.raws) else {}
        return orjson.dumps({**drawn, **more, **turns})


def _ended_at_limit(message: TurnAnswer | Message) -> bool:
    return (message.finish or "").startswith("length")


def lines_of(text: str) -> list[str]:
    """A reply's non-empty lines with single spaces."""
    return [line for line in (" ".join(line.split()) for line in text.splitlines()) if line]


class AgentPart:
    """Use :meth:`run` as a task, and :meth:`wake` after a person's message.

    ``clock`` returns seconds, ``ask`` a side's reply (None: failed); ``send`` publishes."""

    def __init__(
        self,
        transcript: Transcript,
        clock: Callable[[], float],
        ask: Callable[[int], Awaitable[TurnAnswer | None]],
        send: Callable[[int], Awaitable[Message]],
    ) -> None:
        self.transcript = transcript
        self.clock = clock
        self._ask = ask
        self._send = send
        self._woken = asyncio.Event()
        self._has_failed = False

    async def run(self) -> None:
        """Run to the conversation's end. Raises what ``ask`` and ``send`` raise."""
        transcript = self.transcript
        while True:
            await self.send_due()
            if transcript.ended:
                return
            event = transcript.next_event
            if event is not None and event.what == "call" and self._has_failed:
                event = None
            if event is None or event.at > self.clock():
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), None if event is None else event.at - self.clock())
            elif event.what == "call":
                await self._call(event.side)

    def wake(self) -> None:
        """Note a person's message; a failed agent may go on."""
        self._has_failed = False
        self._woken.set()

    async def send_due(self) -> None:
        while (event := self.transcript.next_event) is not None and event.what == "send" and event.at <= self.clock():
            await self._send(event.side)

    async def _call(self, side: int) -> None:
        transcript = self.transcript
        at = self.clock()
        read = transcript.call(side)
        answer = await self._ask(side)
        if answer is None:
            transcript.unread[side] = read + (transcript.unread[side] or 0)
            self._has_failed = True
        else:
            transcript.type(side, answer, read, at, answered=self.clock())
