"""Burst dialogue: who listens, is asked, sends and is interrupted when, on the conversation's own clock."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, fresh, row

from agents.answers import ConversationAnswer, TurnAnswer
from agents.language.filters.policies import THRESHOLDS, Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.burst import BurstTranscript, messages_of
from serving.conversations.conversation import STRIDE, Conversation
from serving.conversations.delays import DelaySettings
from serving.conversations.policies import PairSettings
from serving.conversations.transcript import no_instructions

ONE_PER_LETTER = DelaySettings(base=0, type_mean=1, type_sd=0, read_mean=0, read_sd=0, think_scale=0)


def transcript(exchanges: int = 6, quiet_s: float = 2.0, delays: DelaySettings = ONE_PER_LETTER) -> BurstTranscript:
    stimulus = ConversationStimulus(
        id="c", task="conversation", mode="burst", names=("Ann", "Bob"), who_starts="A", exchanges=exchanges
    )
    nothing = (no_instructions, no_instructions)
    return BurstTranscript(stimulus, ("a", "b"), nothing, Policy(), THRESHOLDS, 0, 3, delays, quiet_s=quiet_s)


def said(talk: BurstTranscript) -> list[tuple[str, str, float | None]]:
    return [(one.speaker, one.text, one.at) for one in talk.messages]


def unsent(talk: BurstTranscript) -> list[tuple[str, str, float, int, str]]:
    return [(one.speaker, one.text, one.at, one.turn, one.why) for one in talk.withdrawn]


def test_each_line_of_a_reply_is_a_message_that_goes_out_when_it_is_typed() -> None:
    talk = transcript()
    assert (talk.side, talk.number, talk.now) == (0, 0, 0.0)
    talk.add(TurnAnswer(text="aaa\n\n  bb  b \r\n"))
    # sent at 3 and, of four letters, at 7; Bob would be asked at 5, when Ann has been quiet for 2
    assert said(talk) == [("Ann", "aaa", 3.0)]
    assert (talk.side, talk.number, talk.now) == (1, 1, 5.0)


def test_what_is_not_sent_when_the_other_one_writes_is_withdrawn() -> None:
    talk = transcript()
    talk.add(TurnAnswer(text="aaa\nbbbbbbbbbb\ncc"))  # at 3, 13, 15
    talk.add(TurnAnswer(text="dddd"))  # asked at 5, sent at 9: Ann's two are withdrawn
    assert said(talk) == [("Ann", "aaa", 3.0), ("Bob", "dddd", 9.0)]
    assert unsent(talk) == [("Ann", "bbbbbbbbbb", 9.0, 2, "interrupted"), ("Ann", "cc", 9.0, 2, "interrupted")]
    assert (talk.side, talk.now) == (0, 11.0)  # Ann has heard Bob at 9


def test_who_hears_more_before_writing_is_asked_anew_with_all_of_it() -> None:
    talk = transcript()
    talk.add(TurnAnswer(text="aaa\nbbbb"))  # at 3 and 7
    talk.add(TurnAnswer(text="d" * 20))  # asked at 5, would be sent at 25
    assert said(talk) == [("Ann", "aaa", 3.0), ("Ann", "bbbb", 7.0)]
    assert unsent(talk) == [("Bob", "d" * 20, 7.0, 2, "interrupted")]
    assert (talk.side, talk.number, talk.now) == (1, 2, 9.0)
    assert [one.text for one in talk.shown().history] == ["aaa", "bbbb"]


def test_a_burst_is_waited_for_where_its_messages_come_before_the_other_ones_patience_ends() -> None:
    talk = transcript(quiet_s=5.0)
    talk.add(TurnAnswer(text="aaa\nbbbb\ncc"))
    assert said(talk) == [("Ann", "aaa", 3.0), ("Ann", "bbbb", 7.0), ("Ann", "cc", 9.0)]
    assert (talk.side, talk.now, talk.withdrawn) == (1, 14.0, [])


def test_what_was_read_counts_for_the_first_message_only() -> None:
    reading = ONE_PER_LETTER.model_copy(update={"read_mean": 0.5})
    talk = transcript(quiet_s=5.0, delays=reading)
    talk.add(TurnAnswer(text="aaa\nbbbb"))
    talk.add(TurnAnswer(text="cc\nd"))
    assert [one.delay_s for one in talk.messages] == [3.0, 4.0, 5 + 2 + 0.5 * 7, 1.0]  # with the wait of 5 s


def test_what_is_being_written_when_all_is_said_is_not_sent() -> None:
    talk = transcript(exchanges=2)
    talk.add(TurnAnswer(text="a\nb\nc\nd"))
    assert talk.ended
    assert said(talk) == [("Ann", "a", 1.0), ("Ann", "b", 2.0)]
    assert unsent(talk) == [("Ann", "c", 2.0, 2, "ended"), ("Ann", "d", 2.0, 2, "ended")]
    answer = talk.answer()
    assert not answer.ended_early
    assert answer.withdrawn == talk.withdrawn


@pytest.mark.parametrize("text", ["", " \n ", "\u2028"])
def test_a_reply_without_a_message_fails(text: str) -> None:
    assert messages_of(text) == []
    assert transcript().why_unusable(TurnAnswer(text=text).model_dump_json().encode()) == "no message has any text"


@settings(max_examples=60)
@given(st.lists(st.lists(st.text("ab", min_size=1, max_size=30), min_size=1, max_size=5), min_size=40), st.floats(0, 9))
def test_every_dialogue_ends_and_nothing_that_was_written_is_lost(replies: list[list[str]], quiet: float) -> None:
    talk = transcript(exchanges=12, quiet_s=quiet, delays=DelaySettings())
    written = 0
    for reply in replies:
        if talk.ended:
            break
        before = talk.now
        talk.add(TurnAnswer(text="\n".join(reply)))
        written += len(reply)
        assert talk.now >= before
    assert talk.ended
    assert talk.number <= len(talk.messages) + 1  # nobody is asked but after a message
    assert len(talk.messages) == 12
    assert len(talk.messages) + len(talk.withdrawn) == written
    times = [one.at or 0.0 for one in talk.messages]
    assert times == sorted(times)
    assert all(one.why == "ended" or talk.messages[one.turn - 1].speaker != one.speaker for one in talk.withdrawn)


def hold(turns: Any = None, **fields: Any) -> tuple[Any, Scripted, list[dict[str, Any]]]:
    def script(turn: int, attempt: int) -> str:
        return "\n".join(f"{fresh(turn, attempt)} Part {part}." for part in range(1 + turn % 3))

    scheduler, lines = Scripted(script), []
    talk = Conversation(
        "a~b", ("a", "b"), row(mode="burst", exchanges=20, **fields), 0, 7, 1, Policy(), PairSettings(),
        journalled=turns or {}, on_turn=lambda line: lines.append(json.loads(line)),
    )  # fmt: skip
    return asyncio.run(talk.run(scheduler)), scheduler, lines  # type: ignore[arg-type]


def test_a_burst_dialogue_is_a_conversation_of_its_calls() -> None:
    item, scheduler, lines = hold()
    answer = ConversationAnswer.model_validate_json(item.answer)
    assert (item.status, len(answer.messages), answer.ended_early) == ("ok", 20, False)
    assert [turn for turn, _ in scheduler.asked] == [line["turn"] for line in lines] == list(range(len(lines)))
    assert answer.withdrawn
    assert max(map(len, bursts(answer))) > 1
    for (_, stimulus, options), line in zip(scheduler.seen, lines, strict=True):
        assert stimulus.mode == "burst"
        assert options["turn"] == len(stimulus.history)
        assert line["turn"] <= len(stimulus.history)


def bursts(answer: ConversationAnswer) -> list[list[str]]:
    found: list[list[str]] = []
    speaker = None
    for one in answer.messages:
        if one.speaker != speaker:
            found.append([])
        found[-1].append(one.text)
        speaker = one.speaker
    return found


def test_a_burst_dialogue_that_is_resumed_anywhere_ends_as_it_would_have() -> None:
    whole, _, lines = hold()
    for known in range(len(lines) + 1):
        item, scheduler, fresh_lines = hold({(0, line["turn"]): line for line in lines[:known]})
        assert (item.answer, item.raw, item.seed) == (whole.answer, whole.raw, whole.seed)
        assert len(scheduler.asked) == len(fresh_lines) == len(lines) - known


def test_an_opener_without_a_message_is_none_and_one_of_two_lines_is_two() -> None:
    def hold(opener: str) -> list[str]:
        talk = Conversation("a~b", ("a", "b"), row(mode="burst", exchanges=2, opener=opener), 0, 7, 1, Policy())
        item = asyncio.run(talk.run(Scripted(fresh)))  # type: ignore[arg-type]
        return [one.text for one in ConversationAnswer.model_validate_json(item.answer or b"").messages]

    assert hold("Hi\nyou") == ["Hi", "you"]
    assert hold(" \n ") == [fresh(0, 0), fresh(1, 0)]


@pytest.mark.parametrize(("again", "until", "status"), [(True, 1, "ok"), (True, 5, "rejected"), (False, 1, "failed")])
def test_a_reply_without_a_message_is_asked_for_again_where_the_policy_says_so(
    again: bool, until: int, status: str
) -> None:
    def script(turn: int, attempt: int) -> str:
        return " \n" if turn == 1 and attempt % STRIDE < until else fresh(turn, attempt)

    policy = Policy(empty="resample_turn") if again else Policy()
    talk = Conversation("a~b", ("a", "b"), row(mode="burst"), 0, 7, 1, policy, PairSettings(attempts=4))
    item = asyncio.run(talk.run(Scripted(script)))  # type: ignore[arg-type]
    assert item.status == status
    answer = ConversationAnswer.model_validate_json(item.answer or b"")
    assert len(answer.messages) == (6 if status == "ok" else 1)
