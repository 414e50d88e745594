"""Turns of a conversation: what is the same whether two agents talk or an agent and a person.

Nothing is asked here: these are functions of a stimulus (with names and who starts, see
``scenario.draw_scenario``) and of the messages that have been said about it. Sides are 0 for A and 1 for B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from agents.answers import Message, TurnAnswer
from agents.language.filters.policies import Judgement, judge_conversation, judge_turn
from agents.language.filters.settings import FilterSettings, Policy
from agents.stimuli import ConversationStimulus, Utterance
from serving.scheduling.request import AgentRequest


def drawn(stimulus: ConversationStimulus) -> dict[str, Any]:
    """What a record's ``raw`` says of a conversation: all that a stimulus may leave to be drawn."""
    return {key: getattr(stimulus, key) for key in ("topic", "names", "personas", "who_starts")}


def shown(stimulus: ConversationStimulus, messages: Sequence[Message]) -> ConversationStimulus:
    """The stimulus as the next speaker sees it: the messages are part of its history."""
    said = [Utterance(speaker=one.speaker, text=one.text, at=one.at) for one in messages]
    return stimulus.model_copy(update={"history": [*stimulus.history, *said]})


def next_message(
    stimulus: ConversationStimulus, messages: Sequence[Message], side: int, agent: str, answer: TurnAnswer
) -> Message:
    """What ``agent``, on ``side``, says after ``messages``; ``at`` is null once a message had no modelled delay."""
    assert stimulus.names is not None
    before = messages[-1].at if messages else 0.0
    at = None if before is None or answer.delay_s is None else before + answer.delay_s
    return Message(turn=len(messages), speaker=stimulus.names[side], agent=agent, at=at, **answer.model_dump())


def judge_next(
    stimulus: ConversationStimulus,
    messages: Sequence[Message],
    side: int,
    text: str,
    policy: Policy,
    thresholds: FilterSettings,
    prompt: str | None = None,
) -> list[Judgement]:
    """What the filters find in a new message of ``side``, whose agent was told ``prompt``."""
    assert stimulus.names is not None
    total = len(stimulus.history) + stimulus.exchanges
    return judge_turn(
        _spoken(stimulus, messages),
        stimulus.names[side],
        text,
        policy,
        thresholds,
        names=stimulus.names,
        prompt=prompt,
        total=total,
    )


def judge_whole(
    stimulus: ConversationStimulus,
    messages: Sequence[Message],
    policy: Policy,
    thresholds: FilterSettings,
    prompts: Sequence[str | None] = (None, None),
) -> list[Judgement]:
    """What the filters find in all that was said, history included; ``prompts`` are what A and B were told."""
    assert stimulus.names is not None
    return judge_conversation(
        _spoken(stimulus, messages),
        policy,
        thresholds,
        names=stimulus.names,
        prompts={name: told for name, told in zip(stimulus.names, prompts, strict=True) if told is not None},
        total=len(stimulus.history) + stimulus.exchanges,
    )


def verdict(judgement: Judgement) -> dict[str, Any]:
    """A judgement as it stands in a record's ``attempts``."""
    found = judgement.verdict()
    return {"filter": found.filter, "rejected": found.rejected, "found": found.found}


def unusable(item: AgentRequest) -> str | None:
    """What keeps a turn from being said to the other speaker, or None."""
    try:
        said = TurnAnswer.model_validate_json(item.answer or b"")
        Utterance(speaker="A", text=said.text)
    except ValidationError as error:
        return "; ".join(problem["msg"] for problem in error.errors(include_url=False))
    return None


def _spoken(stimulus: ConversationStimulus, messages: Sequence[Message]) -> list[tuple[str, str]]:
    before = [(one.speaker, one.text) for one in stimulus.history]
    return [*before, *((one.speaker, one.text) for one in messages)]
