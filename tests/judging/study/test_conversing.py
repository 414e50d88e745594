"""A study's conversation is that of the library: one script is played with both, and the same is said and withdrawn."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents.stimuli import ConversationStimulus
from judging.study.study import Study
from serving.conversations.dialogue import BurstDialogue
from serving.conversations.scenario import DelaySettings
from serving.runs.records import RecordHeader
from serving.scheduling.request import Outcome, Request
from tests.helpers.scripted import SlowScheduler
from tests.helpers.study_folders import arrived, lobby_of, run
from tests.helpers.talk_studies import ALONE, made, say

HEADER = RecordHeader("0123456789ab", "machine", "d" * 64, None, None)
TYPED = 30.0  # seconds after which a reply is typed, on the script's own clock
DELAYS = DelaySettings(base=TYPED, type_mean=0, type_sd=0, read_mean=0, read_sd=0, think_scale=0)
Say = Callable[[str], Awaitable[Any]]


class Stage:
    """A clock that the script sets, and a machine that answers when the script lets it. ``heard`` is what it read."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.heard: list[list[str]] = []
        self._asked = asyncio.Event()
        self._let = asyncio.Event()

    async def reply(self, heard: list[str]) -> str:
        self.heard.append(heard)
        self._asked.set()
        await self._let.wait()
        self._let.clear()
        return f"Reply {len(self.heard)}."

    async def asked(self) -> None:
        """Wait until the machine is asked."""
        await asyncio.wait_for(self._asked.wait(), 60)
        self._asked.clear()

    async def answers(self) -> None:
        """Let the machine answer; nothing waits for a file or a timer until its reply is typed."""
        self._let.set()
        for _ in range(50):
            await asyncio.sleep(0)


async def due_before(stage: Stage, say: Say) -> None:
    """The time of the reply has come when the person writes again."""
    await say("Hello!")
    await stage.asked()
    await stage.answers()
    stage.clock = TYPED + 1
    await say("And?")
    await stage.asked()


async def interrupted(stage: Stage, say: Say) -> None:
    """The person writes again while the reply is typed."""
    await say("Hello!")
    await stage.asked()
    await stage.answers()
    stage.clock = TYPED - 1
    await say("And?")
    await stage.asked()


async def overtaken(stage: Stage, say: Say) -> None:
    """The person writes again while the model answers; then nothing more is said."""
    await say("Hello!")
    await stage.asked()
    stage.clock = 1.0
    await say("And?")
    await stage.answers()
    await stage.asked()


async def at_the_end(stage: Stage, say: Say) -> None:
    """The second reply, whose time has come, is the last message: the person's comes too late."""
    await due_before(stage, say)
    await stage.answers()
    stage.clock = 2 * TYPED + 2
    with pytest.raises(Exception, match=r"the conversation is over|talk_over"):
        await say("So?")


Script = Callable[[Stage, Say], Coroutine[Any, Any, None]]
SCRIPTS: dict[Script, tuple[list[str], list[tuple[str, int]], list[list[str]]]] = {
    due_before: (["Hello!", "Reply 1.", "And?"], [], [["Hello!"], ["Hello!", "Reply 1.", "And?"]]),
    interrupted: (["Hello!", "And?"], [("Reply 1.", 2)], [["Hello!"], ["Hello!", "And?"]]),
    overtaken: (["Hello!", "And?"], [("Reply 1.", 2)], [["Hello!"], ["Hello!", "And?"]]),
    at_the_end: (["Hello!", "Reply 1.", "And?", "Reply 2."], [], [["Hello!"], ["Hello!", "Reply 1.", "And?"]]),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_in_the_library(script: Script) -> None:
    class Machine(SlowScheduler):
        async def answer(self, request: Request) -> Outcome:
            stimulus = request.row.parsed()
            assert isinstance(stimulus, ConversationStimulus)
            self.replies = [await stage.reply([line.text for line in stimulus.history])]
            return await super().answer(request)

    async def main() -> dict[str, Any]:
        fields: dict[str, Any] = {"id": "talk", "task": "conversation", "mode": "burst", "exchanges": 4}
        stimulus = ConversationStimulus(type="HM", who_starts="A", **fields)
        machine: Any = Machine([], 0.0)
        dialogue = BurstDialogue(machine, "talker", stimulus, delays=DELAYS, quiet_s=0.0, clock=lambda: stage.clock)
        await dialogue.open()
        await script(stage, dialogue.say)
        dialogue.close()
        record: dict[str, Any] = json.loads(await dialogue.record(HEADER))
        return record

    stage = Stage()
    answer = asyncio.run(main())["answer"]
    said = [message["text"] for message in answer["messages"]]
    withdrawn = [(message["text"], message["turn"]) for message in answer["withdrawn"]]
    assert (said, withdrawn, stage.heard) == SCRIPTS[script]


@pytest.mark.parametrize("script", SCRIPTS)
def test_in_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script) -> None:
    """And it is on disk before the machine is asked about it, and before anybody is told."""

    async def post(client: Any, server: str, body: dict[str, Any]) -> dict[str, Any]:
        heard = [line["text"] for line in body["stimulus"]["history"]]
        assert on_disk()[0] == heard
        return {"answer": {"messages": [{"text": await stage.reply(heard)}]}}

    def on_disk() -> tuple[list[str], list[tuple[str, int]]]:
        events = [json.loads(line) for line in (study / "events.jsonl").read_text().splitlines()]
        said = [event["text"] for event in events if event["event"] == "said"]
        return said, [(*event["texts"], event["turn"]) for event in events if event["event"] == "withdrawn"]

    async def work(served: Study) -> None:
        lobby = lobby_of(served)
        monkeypatch.setattr(lobby, "clock", lambda talk: stage.clock)
        judge = await arrived(served, "talk")
        assert (await lobby.at(judge, -1))["state"] == "open"
        texts: list[str] = []

        async def speak(text: str) -> None:
            why = await say(served, judge, len(texts), text)
            assert why is None, why
            texts.append(text)
            assert text in on_disk()[0]

        await script(stage, speak)
        await served.log.written()
        assert (*on_disk(), stage.heard) == SCRIPTS[script]

    monkeypatch.setattr("judging.study.meetings.agent_server.AgentClient.record", post)
    chance = SimpleNamespace(shuffle=lambda speakers: None, random=lambda: 0.0)  # the person is speaker A
    monkeypatch.setattr("judging.study.meetings.lobby_of_talks.CHANCE", chance)
    stage = Stage()
    study = made(tmp_path, 4, "burst", **ALONE, quiet_s=0.0, base=TYPED)
    run(study, work)
