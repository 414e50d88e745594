"""The records of conversations: what people and agents said to each other, as ``generate`` writes it of agents."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from agents.answers import ConversationAnswer, Message, Withdrawn, plain
from judging.study.log.meeting import Meeting, Talk
from judging.study.log.meeting_events import TalkSaid, TalkWithdrawn
from judging.study.log.participant_events import TalkLeft
from judging.study.log.state import State
from judging.study.meetings.material import TalkMaterial
from judging.study.results.writing import WritingResults

RecordFields = dict[str, Any]
"""The keys of a run's record that a study knows."""


def agent_name(who: str, state: State) -> str:
    """How a record calls a participant or an agent."""
    return f"human:{who}" if who in state.judges else who


def conversations(state: State, material: TalkMaterial, writing: WritingResults) -> Iterator[RecordFields]:
    """The conversations that came to their end, which is when all is said. Raises InputError where a topic is gone.

    Who closed the page at the questions after it has said nothing of the other (null). Void conversations, and those
    that still go on, are no answers.
    """
    answers = [answer for judge in state.judges.values() for answer in judge.answers]
    ends = {(answer.talk, answer.judge): answer for answer in answers if isinstance(answer, TalkLeft)}
    for talk in state.counted(Talk):
        if not material.is_over(talk):
            continue
        people = [code for code in talk.people if code in state.judges]
        ended = {code: ends.get((talk.id, code)) for code in people}
        raw: RecordFields = {
            "talk": talk.id,
            # what each says of the other
            "guesses": {code: None if end is None else end.guess for code, end in ended.items()},
            "sexes": {code: None if end is None else end.sex for code, end in ended.items()},
            "ages": {code: None if end is None else end.age for code, end in ended.items()},
            **writing.of_conversation(talk.people, talk.lines(1)),
        }
        yield {"stimulus": talk.stimulus, "raw": raw, **conversation(talk, talk.people, state, *_timed(talk))}


def _timed(talk: Talk) -> tuple[list[RecordFields], list[RecordFields]]:
    """The messages that were sent, and those withdrawn, with seconds from the beginning."""
    began = datetime.fromisoformat(talk.at)

    def seconds(event: TalkSaid | TalkWithdrawn) -> float:
        return round((datetime.fromisoformat(event.at) - began).total_seconds(), 3)

    times = [seconds(event) for event in talk.messages]
    gaps = [time - before for time, before in zip(times, [0.0, *times], strict=False)]
    was_set = min(gaps, default=0.0) < 0  # the machine's clock, backwards: such times are not known
    messages = []
    for message, time, gap in zip(talk.messages, times, gaps, strict=True):
        when = {"at": None if was_set else time, "delay_s": round(gap, 3) if gap >= 0 else None}
        messages.append({"speaker": message.speaker, "text": message.text, **when})
    withdrawn = []
    for event in talk.withdrawn:
        why = "ended" if event.turn == len(messages) else "interrupted"
        common: RecordFields = {"turn": event.turn, "speaker": event.speaker, "at": seconds(event), "why": why}
        withdrawn += [{"text": text, **common} for text in event.texts]
    return messages, withdrawn


def conversation(
    meeting: Meeting,
    people: Sequence[str],
    state: State,
    messages: Sequence[RecordFields],
    withdrawn: Sequence[RecordFields],
) -> RecordFields:
    """The record of a conversation of two ``people``, but for its stimulus.

    ``messages`` and ``withdrawn`` are those of :class:`agents.answers.ConversationAnswer`, without agents.
    """
    agents = dict(zip("AB", (agent_name(who, state) for who in people), strict=True))
    sent = [Message(turn=turn, agent=agents[message["speaker"]], **message) for turn, message in enumerate(messages)]
    unsent = [Withdrawn(agent=agents[message["speaker"]], **message) for message in withdrawn]
    return {
        "task": "conversation",
        "agent": "~".join(agents.values()),
        "answer": plain(ConversationAnswer(messages=sent, withdrawn=unsent)),
        "created": meeting.at,
    }


def numbered(records: Iterable[RecordFields]) -> Iterator[RecordFields]:
    """The records with their sample numbers, from 0 for each agent and stimulus.

    The same two may meet again about the same stimulus, and two machines of a test may be the same agent.
    """
    samples: Counter[tuple[str, str]] = Counter()
    for record in records:
        key = record["agent"], record["stimulus"]
        yield {**record, "sample": samples[key]}
        samples[key] += 1
