"""A person and an agent: what is asked of the scheduler, what is told, and what a failure leaves behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from in_process import InProcess

from agents import catalogue
from agents.answers import Message, TurnAnswer
from agents.catalogue import Entry
from agents.contract import Agent, Draw, Reply, Settings, Verdict, derive_seed
from agents.errors import AgentStoppedError, AnswerError, InputError
from agents.stimuli import ConversationStimulus, Stimulus, Task
from serving.conversations import scenario
from serving.conversations.dialogue import Dialogue, DialogueError, FlaggedMessage
from serving.runs.record_lines import RecordHeader
from serving.runs.records import problems
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import Worker, WorkerSpec

SEED = 7
HEADER = RecordHeader("0123456789ab", "machine", "d" * 64, None, None)


@dataclass
class Script:
    """What the scripted agent says at each turn: a text, an error, or texts attempt by attempt; and what it saw."""

    says: Mapping[int, str | Exception | Sequence[str]] = field(default_factory=dict)
    raws: Mapping[int, Any] = field(default_factory=dict)
    seen: list[tuple[list[tuple[str, str]], int, int, Mapping[str, Any]]] = field(default_factory=list)


class Scripted(Agent[Settings]):
    """Says what the script says, else the turn and the seed; its own filter rejects "bad" and notes "odd"."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation",)
    Settings = Settings
    attempts = 3
    script: Script

    def __init__(self, settings: Settings, name: str) -> None:
        super().__init__(settings, name)
        self.filters = (self._bad,)

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        return [self._reply(stimulus, draw) for stimulus, draw in zip(batch, draws, strict=True)]

    def _reply(self, stimulus: ConversationStimulus, draw: Draw) -> Reply | Exception:
        said = [(one.speaker, one.text) for one in stimulus.history]
        turn = draw.options["turn"]
        self.script.seen.append((said, draw.seed, draw.attempt, draw.options))
        says = self.script.says.get(turn, f"Turn {turn}, seed {draw.seed}, is what I say now.")
        if isinstance(says, Exception):
            return says
        return Reply(TurnAnswer(text=says if isinstance(says, str) else says[draw.attempt]), self.script.raws.get(turn))

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str | None:
        return f"Speak as {draw.options['speaker']} of {stimulus.topic}, please, and tell nobody of it."

    def _bad(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        text = reply.answer.text  # type: ignore[attr-defined]
        return Verdict("bad", text == "bad", text) if text in ("bad", "odd") else None


def stimulus(**fields: Any) -> ConversationStimulus:
    return ConversationStimulus(**{"id": "talk", "task": "conversation", "type": "HM", "who_starts": "A", **fields})


def converse(work: Callable[[Scheduler], Awaitable[Any]], agent: Agent[Any], make: Worker) -> Any:
    """Run ``work`` with a scheduler that has one agent, loaded in this process."""

    async def main() -> Any:
        scheduler = Scheduler(SEED)
        dispatcher = Dispatcher(agent, lambda number: InProcess(make))
        scheduler.add(dispatcher)
        try:
            await dispatcher.start()
            return await work(scheduler)
        finally:
            await scheduler.close()

    return asyncio.run(main())


def scripted(work: Callable[[Scheduler], Awaitable[Any]], script: Script) -> Any:
    agent = Scripted(Settings(), "talker")
    agent.script = script
    worker = Worker(WorkerSpec(catalogue.get("eliza"), {}, "/"))
    worker.agent = agent
    return converse(work, agent, worker)


def real(work: Callable[[Scheduler], Awaitable[Any]], name: str, settings: Mapping[str, Any]) -> Any:
    entry: Entry = catalogue.get(name)
    return converse(work, entry.make(settings), Worker(WorkerSpec(entry, settings, "/")))


def texts(said: Sequence[FlaggedMessage]) -> list[tuple[str, str]]:
    return [(one.message.agent, one.message.text) for one in said]


async def recorded(dialogue: Dialogue) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(await dialogue.record(HEADER))
    assert problems(row) == []
    return row


@pytest.mark.parametrize("person", ["A", "B"])
@pytest.mark.parametrize("starts", ["A", "B"])
def test_a_persons_message_goes_in_and_the_agents_answer_comes_out(person: str, starts: str) -> None:
    script = Script()
    fields = {"exchanges": 6, "who_starts": starts, "names": ("Ann", "Bob"), "topic": "tea"}

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(**fields), seed=11, person=person)  # type: ignore[arg-type]
        opened = await dialogue.open()
        assert len(opened) == (starts != person)
        assert await dialogue.open() == []
        number = 0
        while not dialogue.ended:
            answer = await dialogue.say(f"My message number {number}.")
            assert (answer is None) == (dialogue.ended and starts != person)
            number += 1
        return dialogue

    dialogue = scripted(work, script)
    name = "human~talker" if person == "A" else "talker~human"
    side = "B" if person == "A" else "A"
    mine, its = ("Ann", "Bob") if person == "A" else ("Bob", "Ann")
    said: list[tuple[str, str]] = []
    asked = list(script.seen)
    for turn in range(6):
        if (turn % 2 == 0) == (starts == person):
            said.append((mine, f"My message number {turn // 2}."))
        else:
            seed = derive_seed(11, name, "talk", 0, turn, 0)
            assert asked.pop(0) == (said, seed, 0, {"speaker": side, "turn": turn})
            said.append((its, f"Turn {turn}, seed {seed}, is what I say now."))
    assert asked == []
    record = asyncio.run(recorded(dialogue))
    messages = record["answer"]["messages"]
    assert [(one["speaker"], one["text"]) for one in messages] == said
    assert [one["turn"] for one in messages] == list(range(6))
    assert [one["agent"] for one in messages] == ["human" if speaker == mine else "talker" for speaker, _ in said]
    assert (record["agent"], record["status"], record["kind"]) == (name, "ok", "machine")
    assert record["seed"] == derive_seed(11, name, "talk", 0, None, 0)
    assert record["raw"] == {
        **record["raw"], "person": person, "topic": "tea", "names": ["Ann", "Bob"], "who_starts": starts,
    }  # fmt: skip
    assert record["answer"]["ended_early"] is False
    assert record["worker"] == {"host": "here", "device": "cpu", "batch_size": 1}
    assert texts(dialogue.transcript()) == [(one["agent"], one["text"]) for one in messages]


def test_what_is_open_is_drawn_from_the_dialogues_own_seed() -> None:
    bare = ConversationStimulus(id="talk", task="conversation", type="HM")

    async def work(scheduler: Scheduler) -> list[ConversationStimulus]:
        return [
            Dialogue(scheduler, "talker", bare).stimulus,
            Dialogue(scheduler, "talker", bare, seed=SEED).stimulus,
            Dialogue(scheduler, "talker", bare, seed=8).stimulus,
            Dialogue(scheduler, "talker", bare, who="human:05", sample=2, person="B").stimulus,
        ]

    found = scripted(work, Script())
    expected = [
        scenario.draw_scenario(bare, derive_seed(seed, name, "talk", sample, None, 0))
        for seed, name, sample in [
            (SEED, "human~talker", 0), (SEED, "human~talker", 0), (8, "human~talker", 0), (SEED, "talker~human:05", 2),
        ]
    ]  # fmt: skip
    assert found == expected


@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_an_empty_message_is_not_said(text: str) -> None:
    says = {1: text}
    script = Script(says)

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(names=("Ann", "Bob")))
        with pytest.raises(AnswerError, match="the answer is empty") as failed:
            await dialogue.say("Hello there, my friend!")
        assert failed.value.code == "no_text"
        assert dialogue.transcript() == []
        says[1] = "Hello!"
        await dialogue.say("Hello there, my friend!")
        return dialogue

    assert [said.message.text for said in scripted(work, script).transcript()] == ["Hello there, my friend!", "Hello!"]
    assert len({seed for _, seed, _, _ in script.seen}) == 2  # what was said in vain is not drawn again


@pytest.mark.parametrize(
    ("said", "sent", "flagged"),
    [
        ("B: Hello.", "Hello.", set()),
        ("**Bob:** Hello.", "Hello.", set()),
        ("A: Hello.", "Hello.", {"other_speaker"}),
        ("D:Brad, good day", "Brad, good day", {"other_speaker"}),
    ],
)
def test_a_label_that_was_cut_is_flagged(said: str, sent: str, flagged: set[str]) -> None:
    script = Script({1: sent}, {1: {"text": said}})

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(names=("Ann", "Bob")))
        await dialogue.say("Hello there, my friend!")
        return dialogue

    dialogue = scripted(work, script)
    assert {one.filter for one in dialogue.transcript()[1].flags} == flagged
    record = asyncio.run(recorded(dialogue))
    assert record["answer"]["messages"][1]["text"] == sent
    noted = {one["filter"] for attempt in record["attempts"] for one in attempt["verdicts"]}
    assert noted - {"early_exit"} == flagged


def test_both_are_judged_and_nothing_follows() -> None:
    script = Script({1: "As an AI language model I have no friends.", 3: "...", 5: "Goodbye, I have to go now!"})

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(names=("Ann", "Bob")))
        for text in ("Assistant: what do you say to that, my friend?", "Bye bye, see you tomorrow!", "well well"):
            await dialogue.say(text)
        return dialogue

    dialogue = scripted(work, script)
    flags = [{one.filter for one in said.flags} for said in dialogue.transcript()]
    assert flags == [
        {"prompt_echo"},
        {"self_disclosure"},
        {"early_exit"},
        {"empty", "too_short"},
        set(),
        {"early_exit"},
    ]
    assert not any(one.rejected for said in dialogue.transcript() for one in said.flags)
    assert [attempt for _, _, attempt, _ in script.seen] == [0, 0, 0]
    record = asyncio.run(recorded(dialogue))
    [noted] = record["attempts"]
    assert noted["turn"] is None
    assert {one["filter"] for one in noted["verdicts"]} == set().union(*flags)
    assert not any(one["rejected"] for one in noted["verdicts"])
    assert record["answer"]["ended_early"] is True
    assert "6 of 24 messages" in str(noted["verdicts"])


def test_the_agent_may_not_say_what_it_was_told_but_the_person_may() -> None:
    echo = "Speak as B of tea, please, and tell nobody of it."

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(exchanges=4, topic="tea"))
        await dialogue.say(echo)
        await dialogue.say("Well, well.")
        return dialogue

    dialogue = scripted(work, Script({1: f"{echo} Right?", 3: "Something else."}, {1: {"tokens": 5}}))
    flags = [{one.filter for one in said.flags} for said in dialogue.transcript()]
    assert flags == [set(), {"prompt_echo"}, set(), set()]
    record = asyncio.run(recorded(dialogue))
    assert record["raw"]["turns"] == [None, {"tokens": 5}, None, None]
    [noted] = record["attempts"]
    assert {one["filter"] for one in noted["verdicts"]} == {"prompt_echo"}


def test_the_agents_own_filters_ask_again_and_are_kept() -> None:
    script = Script({1: ["bad", "bad", "good thing"], 3: "odd"})

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(exchanges=4))
        assert (await dialogue.say("one")).message.text == "good thing"  # type: ignore[union-attr]
        assert (await dialogue.say("two")).message.text == "odd"  # type: ignore[union-attr]
        return dialogue

    record = asyncio.run(recorded(scripted(work, script)))
    assert [(one["turn"], one["attempt"], one["verdicts"][0]["rejected"]) for one in record["attempts"]] == [
        (1, 0, True), (1, 1, True), (3, 0, False),
    ]  # fmt: skip


def test_an_answer_that_fails_leaves_the_dialogue_as_it_was() -> None:
    """A failure is tried again with the same seed; what was rejected is not drawn again."""
    script = Script({1: AnswerError("server_busy", "try later"), 3: "bad"})

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(exchanges=6))
        with pytest.raises(AnswerError, match="try later") as failed:
            await dialogue.say("first")
        assert failed.value.code == "server_busy"
        assert dialogue.transcript() == []
        script.says = {3: "bad"}
        await dialogue.say("first, again")
        with pytest.raises(AnswerError, match="talker said nothing that its filters let pass: bad: bad") as failed:
            await dialogue.say("second")
        assert failed.value.code == "rejected"
        assert len(dialogue.transcript()) == 2
        assert (await recorded(dialogue))["answer"]["messages"][-1]["turn"] == 1
        script.says = {}
        await dialogue.say("second, again")
        await dialogue.say("third")
        return dialogue

    dialogue = scripted(work, script)
    assert [text for who, text in texts(dialogue.transcript()) if who == "human"] == [
        "first, again", "second, again", "third",
    ]  # fmt: skip
    numbers = [(1, 0), (1, 0), (3, 0), (3, 1), (3, 2), (3, 3), (5, 0)]
    assert [seed for _, seed, _, _ in script.seen] == [
        derive_seed(SEED, "human~talker", "talk", 0, turn, attempt) for turn, attempt in numbers
    ]
    assert [said[-1][1] for said, _, _, _ in script.seen][:3] == ["first", "first, again", "second"]
    record = asyncio.run(recorded(dialogue))
    assert [(one["turn"], one["attempt"]) for one in record["attempts"] if one["turn"] is not None] == [
        (3, 0), (3, 1), (3, 2),
    ]  # fmt: skip


def test_an_opening_that_fails_can_be_tried_again() -> None:
    script = Script({0: AnswerError("no", "not now")})

    async def work(scheduler: Scheduler) -> list[tuple[str, str]]:
        dialogue = Dialogue(scheduler, "talker", stimulus(who_starts="B"))
        with pytest.raises(DialogueError, match="talker is to speak first") as early:
            await dialogue.say("me first")
        assert early.value.code == "not_open"
        with pytest.raises(AnswerError, match="not now"):
            await dialogue.open()
        script.says = {0: "hello"}
        await dialogue.open()
        return texts(dialogue.transcript())

    assert scripted(work, script) == [("talker", "hello")]


@pytest.mark.parametrize(("starts", "whose"), [("A", "human"), ("B", "talker")])
def test_an_opener_is_said_by_who_starts(starts: str, whose: str) -> None:
    async def work(scheduler: Scheduler) -> list[tuple[str, str]]:
        dialogue = Dialogue(scheduler, "talker", stimulus(who_starts=starts, opener="Hi there", exchanges=4))
        with pytest.raises(DialogueError, match="open the conversation"):
            await dialogue.say("me first")
        opened = await dialogue.open()
        assert texts(opened) == texts(dialogue.transcript())
        assert opened[0].message.finish == "opener"
        await dialogue.say("And I say this.")
        return texts(dialogue.transcript())

    script = Script({1: "An answer.", 2: "An answer.", 3: "The last."})
    found = scripted(work, script)
    assert found[0] == (whose, "Hi there")
    order = [whose, {"human": "talker", "talker": "human"}[whose]] * 2
    assert [who for who, _ in found] == order[: len(found)]
    assert len(found) == (4 if whose == "human" else 3)


def test_history_is_seen_by_the_agent_and_the_filters() -> None:
    sentence = "I have never been to the sea before."
    history = [{"speaker": name, "text": sentence} for name in ("Ann", "Bob", "Ann", "Bob")]
    script = Script()

    async def work(scheduler: Scheduler) -> FlaggedMessage | None:
        dialogue = Dialogue(scheduler, "talker", stimulus(names=("Ann", "Bob"), history=history))
        await dialogue.say(sentence)
        return dialogue.transcript()[0]

    first = scripted(work, script)
    assert script.seen[0][0] == [("Ann", sentence), ("Bob", sentence)] * 2 + [("Ann", sentence)]
    assert {one.filter for one in first.flags} >= {"repeated_sentence", "same_message"}


def test_two_messages_at_once_are_refused_and_neither_is_lost() -> None:
    async def work(scheduler: Scheduler) -> list[tuple[str, str]]:
        dialogue = Dialogue(scheduler, "talker", stimulus())
        results = await asyncio.gather(
            dialogue.say("one"), dialogue.say("two"), dialogue.open(), return_exceptions=True
        )
        assert isinstance(results[0], FlaggedMessage)
        for late in results[1:]:
            assert isinstance(late, DialogueError)
            assert late.code == "busy"
        await dialogue.say("two")
        return texts(dialogue.transcript())

    assert [text for who, text in scripted(work, Script()) if who == "human"] == ["one", "two"]


def test_a_caller_that_goes_away_or_waits_too_short_leaves_it_as_it_was() -> None:
    async def work(scheduler: Scheduler) -> list[tuple[str, str]]:
        dialogue = Dialogue(scheduler, "talker", stimulus())
        going = asyncio.create_task(dialogue.say("never mind"))
        await asyncio.sleep(0)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        with pytest.raises(AnswerError, match="no answer within"):
            await dialogue.say("quick", deadline=1e-9)
        assert dialogue.transcript() == []
        await dialogue.say("here I am")
        return texts(dialogue.transcript())

    found = scripted(work, Script())
    seed = derive_seed(SEED, "human~talker", "talk", 0, 1, 0)
    assert found == [("human", "here I am"), ("talker", f"Turn 1, seed {seed}, is what I say now.")]


@pytest.mark.parametrize("text", ["x" * 100_001, "\ud800", 5, None])
def test_what_is_no_message_is_refused(text: Any) -> None:
    async def work(scheduler: Scheduler) -> list[FlaggedMessage]:
        dialogue = Dialogue(scheduler, "talker", stimulus())
        with pytest.raises(DialogueError, match="the message cannot be taken") as caught:
            await dialogue.say(text)
        assert caught.value.code == "bad_message"
        await dialogue.say("x" * 100_000)
        return dialogue.transcript()

    assert len(scripted(work, Script())) == 2


def test_a_conversation_ends() -> None:
    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(exchanges=3))
        assert await dialogue.say("one") is not None
        assert await dialogue.say("two, the last") is None
        with pytest.raises(DialogueError, match="all 3 messages have been said") as caught:
            await dialogue.say("three")
        assert caught.value.code == "ended"
        return dialogue

    script = Script()
    assert len(scripted(work, script).transcript()) == 3
    assert len(script.seen) == 1


def test_who_cannot_converse() -> None:
    async def work(scheduler: Scheduler) -> None:
        with pytest.raises(AgentStoppedError, match="agent nobody is not loaded"):
            Dialogue(scheduler, "nobody", stimulus())
        dialogue = Dialogue(scheduler, "talker", stimulus())
        await scheduler.remove("talker")
        with pytest.raises(AgentStoppedError, match="agent talker is not loaded"):
            await dialogue.say("hello")
        assert dialogue.transcript() == []

    async def wrong(scheduler: Scheduler) -> None:
        for who in ("eliza", "human:", "human~b", "human:a~b", "human: 5"):
            with pytest.raises(InputError, match='called "human"'):
                Dialogue(scheduler, "talker", stimulus(), who=who)
        scheduler.dispatchers["talker"].agent.tasks = ("word_association",)  # type: ignore[misc]
        with pytest.raises(InputError, match="does not converse; its tasks are word_association"):
            Dialogue(scheduler, "talker", stimulus())

    scripted(work, Script())
    scripted(wrong, Script())


def test_an_agents_delay_is_drawn_and_a_persons_is_what_it_took() -> None:
    now = [100.0]

    async def chat(scheduler: Scheduler) -> list[Message]:
        dialogue = Dialogue(scheduler, "talker", stimulus(), clock=lambda: now[0])
        for seconds in (2.5, 40.0):
            now[0] += seconds
            await dialogue.say("Here I am.")
        return [one.message for one in dialogue.transcript()]

    messages = scripted(chat, Script())
    delays = [one.delay_s for one in messages]
    assert (delays[0], delays[2]) == (2.5, 40.0)
    assert 5 < delays[1] != delays[3] > 5  # some 40 letters are typed in some 12 s, and nobody waited for it
    assert [one.at for one in messages] == pytest.approx([sum(delays[: at + 1]) for at in range(4)])


def test_several_dialogues_share_batches_and_each_keeps_its_own_thread() -> None:
    """Twelve dialogues at once are answered as each would be alone."""
    words = ["tea", "rain", "trains", "music", "cats", "maths", "bread", "chess", "snow", "ships", "kites", "law"]

    async def chat(scheduler: Scheduler, word: str) -> dict[str, Any]:
        dialogue = Dialogue(scheduler, "eliza", stimulus(id=f"talk-{word}", exchanges=6), clock=lambda: 0.0)
        for text in (f"I like {word}.", f"My mother hates {word}.", f"Tell me about {word}."):
            await dialogue.say(text)
        return await recorded(dialogue)

    async def together(scheduler: Scheduler) -> list[dict[str, Any]]:
        return await asyncio.gather(*(chat(scheduler, word) for word in words))

    async def alone(scheduler: Scheduler) -> list[dict[str, Any]]:
        return [await chat(scheduler, word) for word in words]

    first, second = real(together, "eliza", {}), real(alone, "eliza", {})
    assert [row["answer"] for row in first] == [row["answer"] for row in second]
    assert {row["worker"]["batch_size"] for row in second} == {1}
    assert max(row["worker"]["batch_size"] for row in first) > 1
