"""What has been said in a conversation: what the next speaker is shown, and what the filters find in it.

The same for two agents and for a person with an agent. Sides are 0 for A and 1 for B.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from pydantic import ValidationError

from agents.answers import ConversationAnswer, Message, PseudoMessage, TurnAnswer, is_blank
from agents.contract import Draw
from agents.language.filters.policies import FilterSettings, Judgement, Policy, judge_conversation, judge_turn
from agents.language.sent_messages import leading_label, short_names
from agents.stimuli import ConversationStimulus, Utterance, parse_row
from serving.conversations.delays import DelaySettings
from serving.conversations.scenario import SIDES
from serving.scheduling.request import AgentRequest

Instructions = Callable[[ConversationStimulus, Draw], str | None]  # see agents.contract.Agent.instructions


def no_instructions(stimulus: ConversationStimulus, draw: Draw) -> None:
    """What a person is told, or an agent without a prompt: nothing."""


@dataclass(slots=True)
class Transcript:
    """The messages, by turns, about ``stimulus``, which has names and who starts (see ``scenario.draw_scenario``).

    ``speakers`` are who is A and who is B, ``instructions`` what each of the two is told. ``seed`` is the
    conversation's, from which ``delays`` are drawn. ``raws`` holds what the agents told of each reply beside its text,
    null where nothing. ``pseudo`` is what was written beforehand, as if it had been said.
    """

    stimulus: ConversationStimulus
    speakers: tuple[str, str]
    instructions: tuple[Instructions, Instructions]
    policy: Policy
    thresholds: FilterSettings
    sample: int = 0
    seed: int = 0
    delays: DelaySettings = field(default_factory=DelaySettings)
    messages: list[Message] = field(default_factory=list)
    raws: list[Any] = field(default_factory=list)
    pseudo: list[PseudoMessage] = field(default_factory=list)

    def copy(self) -> Transcript:
        """The same, to go on with while it is not sure that what comes next counts."""
        return replace(self, messages=[*self.messages], raws=[*self.raws], pseudo=[*self.pseudo])

    @property
    def starts(self) -> int:
        """Who speaks first."""
        assert self.stimulus.who_starts is not None
        return SIDES.index(self.stimulus.who_starts)

    @property
    def side(self) -> int:
        """Whose turn it is."""
        return (self.starts + len(self.messages)) % 2

    @property
    def number(self) -> int:
        """The turn's, in seeds and journals."""
        return len(self.messages)

    @property
    def ended(self) -> bool:
        """Whether all exchanges have been made."""
        return len(self.messages) >= self.stimulus.exchanges

    def shown(self) -> ConversationStimulus:
        """The stimulus as the next speaker sees it: the messages are part of its history."""
        said = [Utterance(speaker=one.speaker, text=one.text, at=one.at) for one in self.messages]
        before = [Utterance(speaker=one.speaker, text=one.text) for one in self.pseudo]
        return self.stimulus.model_copy(update={"history": [*self.stimulus.history, *before, *said]})

    def opener(self) -> TurnAnswer | None:
        """What the stimulus puts into the first speaker's mouth, if nothing has been said yet."""
        if self.stimulus.opener is None or self.messages:
            return None
        return TurnAnswer(text=self.stimulus.opener, finish="opener")

    def add(self, answer: TurnAnswer) -> None:
        """The next speaker says this, after the delay that it brings with it or that is drawn."""
        last = self.messages[-1] if self.messages else None
        if answer.delay_s is None:
            delay = self.delays.draw(len(answer.text), len(last.text) if last else 0, self.numbers())
            answer = answer.model_copy(update={"delay_s": round(delay, 3)})
        before = (last.at if last else None) or 0.0
        self.append(self.side, answer, round(before + (answer.delay_s or 0.0), 3))

    def append(self, side: int, answer: TurnAnswer, at: float) -> Message:
        """The speaker on ``side`` says this, ``at`` seconds from the start."""
        assert self.stimulus.names is not None
        name, turn = self.stimulus.names[side], len(self.messages)
        message = Message(turn=turn, speaker=name, agent=self.speakers[side], at=at, **answer.model_dump())
        self.messages.append(message)
        return message

    def numbers(self) -> random.Random:
        """What the delays of the present reply are drawn from."""
        return random.Random(f"delay {self.seed} {self.number}")

    def why_unreadable(self, answer: bytes | None) -> str | None:
        """What keeps a reply from being a message, or None."""
        try:
            said = TurnAnswer.model_validate_json(answer or b"")
            Utterance(speaker="A", text=said.text)
        except ValidationError as error:
            return "; ".join(problem["msg"] for problem in error.errors(include_url=False))
        return None

    def why_unusable(self, answer: bytes | None) -> str | None:
        """What keeps a reply from being said to the other speaker, or None: an empty message too."""
        why = self.why_unreadable(answer)
        if why is None and is_blank(TurnAnswer.model_validate_json(answer or b"").text):
            why = "no message has any text"
        return why

    def judge_next(self, text: str, side: int | None = None, raw: Any = None) -> list[Judgement]:
        """What the filters find in ``text`` as the message of ``side``, or of whose turn it is, and in the label that
        stood before it in the ``raw`` reply."""
        assert self.stimulus.names is not None
        side = self.side if side is None else side
        return judge_turn(
            self._spoken(),
            self.stimulus.names[side],
            self._labelled(self.stimulus.names[side], text, raw),
            self.policy,
            self.thresholds,
            names=self.stimulus.names,
            prompt=self._prompt(side),
            total=self._total(),
        )

    def judge_whole(self) -> list[Judgement]:
        """What the filters find in all that was said, history included."""
        assert self.stimulus.names is not None
        prompts = {name: self._prompt(side) for side, name in enumerate(self.stimulus.names)}
        return judge_conversation(
            self._spoken(),
            self.policy,
            self.thresholds,
            names=self.stimulus.names,
            prompts={name: prompt for name, prompt in prompts.items() if prompt is not None},
            total=self._total(),
        )

    def answer(self) -> ConversationAnswer:
        """The record's answer."""
        return ConversationAnswer(messages=self.messages, ended_early=not self.ended, pseudo=self.pseudo)

    def raw_json(self, **more: Any) -> bytes:
        """The record's ``raw``: all that a stimulus may leave to be drawn, how it was held, ``more``, and what was told
        of the turns."""
        drawn = {key: getattr(self.stimulus, key) for key in ("topic", "names", "personas", "who_starts", "mode")}
        turns = {"turns": self.raws} if any(self.raws) else {}
        return orjson.dumps({**drawn, **more, **turns})

    def _prompt(self, side: int) -> str | None:
        """What the speaker on ``side`` was told, as it stands before its next message."""
        return self.instructions[side](self.shown(), Draw(0, self.sample, options={"speaker": SIDES[side]}))

    def _spoken(self) -> list[tuple[str, str]]:
        before = [(one.speaker, one.text) for one in self.stimulus.history]
        raws = self.raws if len(self.raws) == len(self.messages) else [None] * len(self.messages)  # not so in bursts
        said = zip(self.messages, raws, strict=True)
        return [*before, *((one.speaker, self._labelled(one.speaker, one.text, raw)) for one, raw in said)]

    def _labelled(self, speaker: str, text: str, raw: Any) -> str:
        """A message to a person, after the label of another's that was cut from it, if one was."""
        match raw:
            case {"text": str(said)} if self.stimulus.type != "MM":
                assert self.stimulus.names is not None
                label = leading_label(said, *short_names(self.stimulus.names, speaker))
                if label is not None and label.whose != "own" and not text.startswith(label.written):
                    return f"{label.written}{text}"
        return text

    def _total(self) -> int:
        return len(self.stimulus.history) + self.stimulus.exchanges


# one message of an agent after a history


def next_side(stimulus: ConversationStimulus) -> int:
    """Whose message is next: of the one who did not speak last, or of who starts (A, if nobody says)."""
    if not stimulus.history:
        return SIDES.index(stimulus.who_starts or "A")
    return int(stimulus.history[-1].speaker == (stimulus.names or SIDES)[0])


def turn_asked(stimulus: ConversationStimulus) -> tuple[int, dict[str, Any]]:
    """The number of the next message, and the options of a request for it."""
    turn = len(stimulus.history)
    return turn, {"speaker": SIDES[next_side(stimulus)], "turn": turn}


def as_conversation(request: AgentRequest) -> ConversationAnswer:
    """The message that was answered, in the form that a record has of conversations."""
    stimulus = parse_row(request.row)
    assert isinstance(stimulus, ConversationStimulus)
    turn_answer = TurnAnswer.model_validate_json(request.answer or b"")
    speaker, turn = (stimulus.names or SIDES)[next_side(stimulus)], len(stimulus.history)
    return ConversationAnswer(
        messages=[Message(turn=turn, speaker=speaker, agent=request.agent, **turn_answer.model_dump())]
    )
