"""A conversation's state: who said what, what is being typed, and what happens next.

Times are seconds from the conversation's start. A side is 0 for speaker A and 1 for B. The state has no clock of its
own: a conversation of two agents jumps from event to event, and one with a person follows a real clock
(:class:`serving.conversations.live_dialogue.LiveDialogue`).

A burst dialogue follows X-Turing (ACL 2025, arXiv 2408.09853):

1. An agent is called when the other speaker has been quiet for ``quiet_s`` seconds.
2. Each line of its reply is a message, which is sent when it is typed.
3. A message from the other speaker withdraws the messages that are not sent yet.

In a conversation by turns ("ping-pong") a whole reply is one message, and nobody waits for quiet.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import orjson

from agents.answers import ConversationAnswer, Message, PseudoMessage, TurnAnswer, Withdrawn
from agents.capabilities import Instructed
from agents.contract import Agent, Draw
from agents.language.filters.policies import MEASURE, THRESHOLDS, FilterSettings, Judgement, Policy, judge_conversation
from agents.language.sent_messages import leading_label, short_names
from agents.stimuli import ConversationStimulus, Utterance
from serving.conversations.scenario import QUIET_S, SIDES, DelaySettings

InstructionsFor = Callable[[ConversationStimulus, Draw], str | None]
"""What an agent's prompt says before the messages, as :class:`agents.capabilities.Instructed`."""


def no_instructions(stimulus: ConversationStimulus, draw: Draw) -> None:
    """No instructions, for a person or an agent without a prompt."""


def instructions_of(agent: Agent[Any]) -> InstructionsFor:
    """What gives the texts that an agent's model reads before a conversation."""
    return agent.instructions if isinstance(agent, Instructed) else no_instructions


class DueEvent(NamedTuple):
    """Something that is due."""

    at: float
    """When, in seconds from the conversation's start."""
    what: Literal["send", "call"]
    """"send": a typed message is to be sent; "call": the side's agent is to be asked for a reply."""
    side: int
    """Who writes: 0 for speaker A, 1 for B."""


class _TypedMessage(NamedTuple):
    at: float  # when it is to be sent
    answer: TurnAnswer


@dataclass(slots=True)
class Transcript:
    """A conversation as it stands. Pairs (A's, B's) are by side."""

    stimulus: ConversationStimulus
    """With names and who starts, as :func:`serving.conversations.scenario.draw_scenario` gives them."""
    speakers: tuple[str, str]
    """The agents' names in records; a person is "human" or "human:NAME"."""
    instructions: tuple[InstructionsFor, InstructionsFor] = (no_instructions, no_instructions)
    """What the agents' prompts say."""
    policy: Policy = MEASURE
    """What each conversation filter leads to. With a person nothing is held back."""
    thresholds: FilterSettings = THRESHOLDS
    """From which values on the filters find something."""
    sample: int = 0
    """The number of the conversation among those about the stimulus."""
    seed: int | str = 0
    """The delays are drawn from it."""
    delays: DelaySettings = field(default_factory=DelaySettings)
    """How long speakers take over a message."""
    quiet_s: float = QUIET_S
    """Seconds that the other speaker of a burst dialogue must be quiet before an agent is called."""
    agents: tuple[int, ...] = (0, 1)
    """The sides that :attr:`next_event` calls; a person's side is called by nobody."""
    now: float = 0.0
    """The time of the last event."""
    calls: int = 0
    """How many replies were begun."""
    messages: list[Message] = field(default_factory=list)
    """What was sent."""
    raws: list[Any] = field(default_factory=list)
    """What the agents wrote before it was cleaned, for each message or, in a burst dialogue, each reply."""
    pseudo: list[PseudoMessage] = field(default_factory=list)
    """What an agent wrote for both speakers before the conversation."""
    withdrawn: list[Withdrawn] = field(default_factory=list)
    """Messages that were typed and never sent."""
    typing: tuple[list[_TypedMessage], list[_TypedMessage]] = field(default_factory=lambda: ([], []))
    """Messages that are typed and not yet sent, in their order."""
    heard_at: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """When each side last heard from the other one."""
    unread: list[int | None] = field(default_factory=list)
    """The letters that each side has heard since it was last called; None where nothing is due from it."""

    def __post_init__(self) -> None:
        if not self.is_burst:
            self.quiet_s = 0.0
        if not self.unread:
            self.unread = [None, None]
            self.unread[self.starts] = 0
            self.heard_at[self.starts] = -self.quiet_s  # who starts waits for nothing

    def copy(self) -> Transcript:
        """A draft that can be changed without changing this one."""
        names = ("messages", "raws", "pseudo", "withdrawn", "heard_at", "unread")
        lists: dict[str, Any] = {name: [*getattr(self, name)] for name in names}
        return replace(self, typing=([*self.typing[0]], [*self.typing[1]]), **lists)

    @property
    def is_burst(self) -> bool:
        """Whether both write whenever they like; otherwise they take turns."""
        return self.stimulus.mode == "burst"

    @property
    def names(self) -> tuple[str, str]:
        """The names by which the speakers know each other."""
        assert self.stimulus.names is not None
        return self.stimulus.names

    @property
    def starts(self) -> int:
        """The side that writes first."""
        return SIDES.index(self.stimulus.who_starts or "A")

    @property
    def side(self) -> int:
        """The side of the next event."""
        assert self.next_event is not None
        return self.next_event.side

    @property
    def number(self) -> int:
        """The number of the next turn in seeds and journals; in a burst dialogue that of the next call."""
        return self.calls if self.is_burst else len(self.messages)

    @property
    def ended(self) -> bool:
        """Whether all messages that the stimulus asks for are sent."""
        return len(self.messages) >= self.stimulus.exchanges

    @property
    def next_event(self) -> DueEvent | None:
        """The earliest event that is due; None at the end, and while only a person can go on. Of events at one time,
        sending goes before calls, and A before B."""
        if self.ended:
            return None
        events = [DueEvent(typed[0].at, "send", side) for side, typed in enumerate(self.typing) if typed]
        for side in self.agents:
            if self.unread[side] is not None:
                events.append(DueEvent(self.heard_at[side] + self.quiet_s, "call", side))
        return min(events, key=lambda event: event.at, default=None)

    def shown(self) -> ConversationStimulus:
        """The stimulus as the next speaker sees it: its history goes on with the pseudo-dialogue and the messages."""
        sent = [Utterance(speaker=message.speaker, text=message.text, at=message.at) for message in self.messages]
        before = [Utterance(speaker=message.speaker, text=message.text) for message in self.pseudo]
        return self.stimulus.model_copy(update={"history": [*self.stimulus.history, *before, *sent]})

    # what happens

    def opener(self) -> TurnAnswer | None:
        """The first message that the stimulus prescribes, if it is not sent yet."""
        text = self.stimulus.opener
        if text is None or self.messages or (self.is_burst and not lines_of(text)):
            return None
        return TurnAnswer(text=text, finish="opener")

    def add(self, answer: TurnAnswer) -> Message | None:
        """Add the reply of the side that is due, send all that is due before the next call, and go on to that. Returns
        the last message that was sent, if any."""
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
        """Note that ``side`` is called; returns how many letters it has to read."""
        letters = self.unread[side] or 0
        self.unread[side] = None
        return letters

    def type(self, side: int, answer: TurnAnswer, read: int, at: float, answered: float = 0.0) -> None:
        """Begin to type the reply ``answer`` of ``side``, which was called at ``at`` and has ``read`` letters to read.

        Nothing is sent before ``answered``, when the agent had its reply. If the side has heard something since it was
        called, the reply is withdrawn at once.
        """
        numbers = random.Random(f"delay {self.seed} {self.number}")
        raw = answer.raw
        for text in lines_of(answer.text) if self.is_burst else [answer.text]:
            delay = None if self.is_burst else answer.delay_s
            if delay is None:
                delay = round(self.delays.draw(len(text), read, numbers), 3)
            at = max(at + delay, answered)
            self.typing[side].append(_TypedMessage(at, answer.model_copy(update={"text": text, "raw": raw})))
            # What was read and the raw reply count for the first message alone.
            read = 0
            raw = None
        self.calls += 1
        if self.unread[side] is not None:
            self.withdraw(side, "interrupted")

    def send(self, side: int) -> Message:
        """Send the first typed message of ``side``."""
        typed = self.typing[side].pop(0)
        return self.say(side, typed.answer, typed.at)

    def say(self, side: int, answer: TurnAnswer, at: float) -> Message:
        """Send a message of ``side`` at the time ``at``. It withdraws what the other side has typed, and the last
        message withdraws everything. The message's ``delay_s`` are the seconds since the message before."""
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
            for either in (0, 1):
                self.withdraw(either, "ended")
        return message

    def withdraw(self, side: int, why: Literal["interrupted", "ended"]) -> None:
        """Take back what ``side`` has typed and not sent, and note the reason."""
        turn = len(self.messages)
        at = round(self.now, 3)
        for typed in self.typing[side]:
            self.withdrawn.append(
                Withdrawn(
                    text=typed.answer.text,
                    turn=turn,
                    speaker=self.names[side],
                    agent=self.speakers[side],
                    at=at,
                    why=why,
                )
            )
        self.typing[side].clear()

    # filters

    def judge_next(self, answer: TurnAnswer | Message, side: int | None = None, raw: Any = None) -> list[Judgement]:
        """What the filters find in ``answer`` as the next message of ``side`` (None: the side that is due). A speaker's
        label in the uncleaned reply ``raw`` counts as written."""
        side = self.side if side is None else side
        speaker = self.names[side]
        lines = self._labelled_messages()
        new = (speaker, self._labelled(speaker, answer.text, raw))
        limit = [len(lines)] if _ended_at_limit(answer) else []
        return self._judge([*lines, new], [side], limit, last_only=True)

    def judge_last(self) -> list[Judgement]:
        """What the filters find in the last message of a burst dialogue, as :meth:`judge_next` before it was sent."""
        before = self.copy()
        message = before.messages.pop()
        return before.judge_next(message, self.names.index(message.speaker))

    def judge_all(self) -> list[Judgement]:
        """What the filters find in all messages, after the stimulus's history."""
        before = len(self.stimulus.history)
        messages = self.messages
        # The lines of a burst have the limit of their reply, which ends with the last line.
        ends_a_reply = [message.speaker != later.speaker for message, later in pairwise(messages)] + [True]
        limit = []
        for place, message in enumerate(messages):
            if ends_a_reply[place] and _ended_at_limit(message):
                limit.append(before + place)
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
        """The conversation as the answer of a record."""
        return ConversationAnswer(
            messages=self.messages, ended_early=not self.ended, withdrawn=self.withdrawn, pseudo=self.pseudo
        )

    def raw_json(self, **more: Any) -> bytes:
        """The JSON of the record's ``raw``: the scenario that was drawn, ``more``, and what the agents wrote before it
        was cleaned."""
        drawn = {key: getattr(self.stimulus, key) for key in ("topic", "names", "personas", "who_starts", "mode")}
        content = {**drawn, **more}
        if any(self.raws):
            content["turns"] = self.raws
        return orjson.dumps(content)


def _ended_at_limit(message: TurnAnswer | Message) -> bool:
    return (message.finish or "").startswith("length")


def lines_of(text: str) -> list[str]:
    """The lines of a reply that are not empty, with single spaces between words."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line]
