"""A person and an agent in a burst dialogue: what is taken, sent, withdrawn and told, on a real clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from agents.answers import TurnAnswer
from agents.errors import AnswerError
from agents.stimuli import ConversationStimulus
from serving.conversations.burst_dialogue import BurstDialogue
from serving.conversations.delays import DelaySettings
from serving.conversations.dialogue import DialogueError
from serving.runs.records import RecordHeader
from serving.scheduling.request import AgentRequest

FAST = DelaySettings(base=0.03, type_mean=0, type_sd=0, read_mean=0, read_sd=0, think_scale=0)


class Agent:
    tasks = ("conversation",)
    writes_dialogues = True

    def instructions(self, stimulus: ConversationStimulus, draw: Any) -> None:
        return None


class Slow:
    """A scheduler whose one agent takes a while and then says, or fails with, the next of ``replies``."""

    run_seed = 7

    def __init__(self, replies: Sequence[str | Exception], takes: float) -> None:
        self.dispatchers = {"talker": type("Dispatcher", (), {"agent": Agent()})()}
        self.replies, self.takes = list(replies), takes
        self.heard: list[list[str]] = []
        self.deadlines: list[float | None] = []

    def next_order(self) -> int:
        return 1

    async def answer(
        self, agent: str, stimulus: ConversationStimulus, sample: int, *, turn: int, deadline: float | None, **more: Any
    ) -> AgentRequest:
        self.deadlines.append(deadline)
        self.heard.append([one.text for one in stimulus.history])
        await asyncio.sleep(self.takes)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        item = AgentRequest(agent, b"", stimulus.id, sample, 7, "", turn)
        item.draw_seed()
        item.status, item.answer = "ok", TurnAnswer(text=reply).model_dump_json().encode()
        return item


def talk(
    work: Callable[[BurstDialogue, Slow], Awaitable[Any]],
    replies: Sequence[str | Exception],
    takes: float = 0.0,
    quiet_s: float = 0.03,
    **fields: Any,
) -> Any:
    async def main() -> Any:
        fields_ = {"id": "t", "mode": "burst", "type": "HM", "who_starts": "A", "exchanges": 6, **fields}
        scheduler = Slow(replies, takes)
        dialogue = BurstDialogue(
            scheduler, "talker", ConversationStimulus(task="conversation", **fields_), delays=FAST, quiet_s=quiet_s
        )  # type: ignore[arg-type]
        try:
            await dialogue.open()
            return await work(dialogue, scheduler)
        finally:
            dialogue.close()

    return asyncio.run(main())


def test_a_burst_is_answered_once_and_by_a_burst() -> None:
    async def work(dialogue: BurstDialogue, scheduler: Slow) -> None:
        await dialogue.say("Hello!")
        await dialogue.say("Are you there?")
        first = await dialogue.after(2, 5)
        rest = await dialogue.after(3, 5)
        assert [one.message.text for one in [*first, *rest]] == ["Yes.", "I am."]
        assert scheduler.heard == [["Hello!", "Are you there?"]]
        assert await dialogue.after(4, 0.1) == []
        messages = [one.message for one in dialogue.transcript()]
        assert [one.agent for one in messages] == ["human", "human", "talker", "talker"]
        times = [one.at or 0.0 for one in messages]
        assert times == sorted(times)
        assert times[2] >= times[1] + 0.03 + 0.03 - 0.002  # the quiet interval, and the delay
        assert times[3] == pytest.approx(times[2] + 0.03, abs=0.002)

    talk(work, ["Yes.\nI am."])


@pytest.mark.parametrize("takes", [0.15, 0.0])
def test_a_person_interrupts_while_the_model_answers_or_the_agent_types(takes: float) -> None:
    async def work(dialogue: BurstDialogue, scheduler: Slow) -> dict[str, Any]:
        await dialogue.say("Hello!")
        while not scheduler.heard:
            await asyncio.sleep(0.002)
        await dialogue.say("No, wait.")
        [answer, *_] = await dialogue.after(2, 5)
        assert answer.message.text == "What is it?"
        assert scheduler.heard == [["Hello!"], ["Hello!", "No, wait."]]
        record: dict[str, Any] = json.loads(
            await dialogue.record(RecordHeader("0" * 12, "machine", "d" * 64, None, None))
        )
        return record

    record = talk(work, ["Hi.", "What is it?"], takes)
    assert [one["text"] for one in record["answer"]["messages"]] == ["Hello!", "No, wait.", "What is it?"]
    [withdrawn] = record["answer"]["withdrawn"]
    assert (withdrawn["text"], withdrawn["why"], withdrawn["turn"]) == ("Hi.", "interrupted", 2)
    assert record["answer"]["ended_early"]


def test_an_agent_that_fails_is_told_once_and_asked_again_when_the_person_writes() -> None:
    async def work(dialogue: BurstDialogue, scheduler: Slow) -> None:
        await dialogue.say("Hello!")
        with pytest.raises(AnswerError):
            await dialogue.after(1, 5)
        assert await dialogue.after(1, 0.1) == []
        await dialogue.say("Again?")
        [answer] = await dialogue.after(2, 5)
        assert answer.message.text == "Here."
        assert scheduler.heard == [["Hello!"], ["Hello!", "Again?"]]

    talk(work, [AnswerError("deadline", "too slow"), "Here."])


def test_who_speaks_first_does_and_the_dialogue_ends_at_its_length() -> None:
    async def work(dialogue: BurstDialogue, scheduler: Slow) -> None:
        assert len(await dialogue.after(0, 5)) == 1
        await dialogue.say("Two.")
        await dialogue.say("Three.")
        assert dialogue.ended
        assert await dialogue.after(3, 5) == []
        with pytest.raises(DialogueError, match="over") as ended:
            await dialogue.say("Four.")
        assert ended.value.code == "ended"
        with pytest.raises(DialogueError, match="taken"):
            await talked(dialogue, "x" * 200_000)

    async def talked(dialogue: BurstDialogue, text: str) -> None:
        other = BurstDialogue(dialogue._scheduler, "talker", dialogue.stimulus, delays=FAST)
        await other.open()
        try:
            await other.say(text)
        finally:
            other.close()

    talk(work, ["One.", "Never said."], who_starts="B", exchanges=3)


def test_a_message_that_a_slow_model_writes_has_the_time_at_which_it_is_heard() -> None:
    async def work(dialogue: BurstDialogue, scheduler: Slow) -> None:
        await dialogue.say("Hello")
        since = asyncio.get_running_loop().time()
        [_, first] = await dialogue.after(0, 5) + await dialogue.after(1, 5)
        heard = asyncio.get_running_loop().time() - since
        while len(dialogue.transcript()) < 3:
            await dialogue.after(2, 5)
        second = dialogue.transcript()[2]
        said, delay = first.message.at, first.message.delay_s
        assert said is not None
        assert second.message.at is not None
        assert delay is not None
        assert abs(said - dialogue.transcript()[0].message.at - heard) < 0.05  # type: ignore[operator]
        assert delay > 0.19
        assert second.message.at - said == pytest.approx(0.03, abs=0.002)  # and not at once

    talk(work, ["One\nTwo"], takes=0.2)


def test_each_message_brings_the_time_that_its_answer_may_take() -> None:
    async def work(dialogue: BurstDialogue, scheduler: Slow) -> None:
        await dialogue.say("Hello", 60.0)
        await dialogue.after(1, 5)
        assert scheduler.deadlines == [60.0]

    talk(work, ["One"])


def test_an_opener_of_two_lines_is_two_messages_and_delays_make_up_the_time() -> None:
    async def work(dialogue: BurstDialogue, scheduler: Slow) -> None:
        await dialogue.after(2, 5)
        messages = [one.message for one in dialogue.transcript()]
        assert [one.text for one in messages] == ["Hi", "you", "One"]
        assert messages[2].delay_s == messages[2].at
        assert (messages[2].at or 0) >= 0.06  # quiet, and then its own delay

    talk(work, ["One"], opener="Hi\nyou")


def test_a_part_of_a_pseudo_dialogue_that_is_empty_is_asked_for_again() -> None:
    async def work(dialogue: BurstDialogue, scheduler: Slow) -> None:
        record = json.loads(await dialogue.record(RecordHeader("talker", "machine", "d", "c", "r")))
        assert [one["text"] for one in record["answer"]["pseudo"]] == ["Mine", "Yours"]

    talk(work, ["", "Cats", " \n", "Mine", "Yours"], pseudo={"topics": 1, "turns": 2})


def test_a_fault_in_the_agents_part_is_told_and_not_waited_for() -> None:
    async def work(dialogue: BurstDialogue, scheduler: Slow) -> None:
        await dialogue.say("Hello")
        with pytest.raises(ZeroDivisionError):
            await dialogue.after(1, 1.0)

    talk(work, [ZeroDivisionError()])
