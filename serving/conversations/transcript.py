"""What has been said in a conversation: what the next speaker is shown, and what the filters find in it.

The same for two agents and for a person with an agent. Sides are 0 for A and 1 for B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from pydantic import ValidationError

from agents.answers import ConversationAnswer, Message, TurnAnswer
from agents.contract import Draw
from agents.language.filters.policies import Judgement, judge_conversation, judge_turn
from agents.language.filters.settings import FilterSettings, Policy
from agents.stimuli import ConversationStimulus, Utterance
from serving.conversations.scenario import SIDES

Instructions = Callable[[ConversationStimulus, Draw], str | None]  # see agents.contract.Agent.instructions


def no_instructions(stimulus: ConversationStimulus, draw: Draw) -> None:
    """What a person is told, or an agent without a prompt: nothing."""


@dataclass(slots=True)
class Transcript:
    """The messages about ``stimulus``, which has names and who starts (see ``scenario.draw_scenario``).

    ``speakers`` are who is A and who is B, ``instructions`` what each of the two is told. ``raws`` holds what the
    agents told of each turn beside its text, null where nothing.
    """

    stimulus: ConversationStimulus
    speakers: tuple[str, str]
    instructions: tuple[Instructions, Instructions]
    policy: Policy
    thresholds: FilterSettings
    sample: int = 0
    messages: list[Message] = field(default_factory=list)
    raws: list[Any] = field(default_factory=list)

    def copy(self) -> Transcript:
        """The same, to go on with while it is not sure that what comes next counts."""
        return replace(self, messages=[*self.messages], raws=[*self.raws])

    @property
    def side(self) -> int:
        """Whose turn it is."""
        assert self.stimulus.who_starts is not None
        return (SIDES.index(self.stimulus.who_starts) + len(self.messages)) % 2

    @property
    def ended(self) -> bool:
        """Whether all exchanges have been made."""
        return len(self.messages) >= self.stimulus.exchanges

    def shown(self) -> ConversationStimulus:
        """The stimulus as the next speaker sees it: the messages are part of its history."""
        said = [Utterance(speaker=one.speaker, text=one.text, at=one.at) for one in self.messages]
        return self.stimulus.model_copy(update={"history": [*self.stimulus.history, *said]})

    def opener(self) -> TurnAnswer | None:
        """What the stimulus puts into the first speaker's mouth, if nothing has been said yet."""
        if self.stimulus.opener is None or self.messages:
            return None
        return TurnAnswer(text=self.stimulus.opener, finish="opener")

    def add(self, answer: TurnAnswer) -> Message:
        """The next speaker says this. The message's time is null once a message had no modelled delay."""
        assert self.stimulus.names is not None
        before = self.messages[-1].at if self.messages else 0.0
        at = None if before is None or answer.delay_s is None else before + answer.delay_s
        name, turn = self.stimulus.names[self.side], len(self.messages)
        message = Message(turn=turn, speaker=name, agent=self.speakers[self.side], at=at, **answer.model_dump())
        self.messages.append(message)
        return message

    def judge_next(self, text: str) -> list[Judgement]:
        """What the filters find in ``text`` as the next speaker's message."""
        assert self.stimulus.names is not None
        return judge_turn(
            self._spoken(),
            self.stimulus.names[self.side],
            text,
            self.policy,
            self.thresholds,
            names=self.stimulus.names,
            prompt=self._prompt(self.side),
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

    def answer_json(self) -> bytes:
        """The record's answer."""
        answer = ConversationAnswer(messages=self.messages, ended_early=not self.ended)
        return answer.model_dump_json().encode()

    def raw_json(self, **more: Any) -> bytes:
        """The record's ``raw``: all that a stimulus may leave to be drawn, ``more``, and what was told of the turns."""
        drawn = {key: getattr(self.stimulus, key) for key in ("topic", "names", "personas", "who_starts")}
        turns = {"turns": self.raws} if any(self.raws) else {}
        return orjson.dumps({**drawn, **more, **turns})

    def _prompt(self, side: int) -> str | None:
        """What the speaker on ``side`` was told, as it stands before its next message."""
        return self.instructions[side](self.shown(), Draw(0, self.sample, options={"speaker": SIDES[side]}))

    def _spoken(self) -> list[tuple[str, str]]:
        before = [(one.speaker, one.text) for one in self.stimulus.history]
        return [*before, *((one.speaker, one.text) for one in self.messages)]

    def _total(self) -> int:
        return len(self.stimulus.history) + self.stimulus.exchanges


def why_unusable(answer: bytes | None) -> str | None:
    """What keeps a turn's answer from being said to the other speaker, or None."""
    try:
        said = TurnAnswer.model_validate_json(answer or b"")
        Utterance(speaker="A", text=said.text)
    except ValidationError as error:
        return "; ".join(problem["msg"] for problem in error.errors(include_url=False))
    return None
