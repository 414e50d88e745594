"""A person and an agent: requests to the scheduler, flags, failures, by turns and in bursts (on a clock that jumps)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from agents import catalogue
from agents.answers import TurnAnswer
from agents.contract import Agent, Draw, Finding, Reply, Settings, derive_seed
from agents.errors import AnswerError
from agents.stimuli import ConversationStimulus, Stimulus, Task
from serving.conversations.dialogue import BurstDialogue, Dialogue, DialogueError, FlaggedMessage
from serving.conversations.scenario import DelaySettings
from serving.runs.records import RecordHeader, problems
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import Worker, WorkerSpec
from tests.helpers.in_process import InProcess
from tests.helpers.scripted import SlowScheduler
from tests.helpers.virtual_time import run_virtually

SEED = 7
HEADER = RecordHeader("0123456789ab", "machine", "d" * 64, None, None)
FAST = DelaySettings(base=0.5, type_mean=0, type_sd=0, read_mean=0, read_sd=0, think_scale=0)


@dataclass
class Script:
    """The replies by turn (a text, an error, or texts by attempt), and the requests."""

    replies: Mapping[int, str | Exception | Sequence[str]] = field(default_factory=dict)
    raws: Mapping[int, Any] = field(default_factory=dict)
    requests: list[tuple[list[tuple[str, str]], int, int, Mapping[str, Any]]] = field(default_factory=list)


class Scripted(Agent[Settings]):
    """Follows the script, else says the turn and the seed; its own filter rejects "bad" and notes "odd"."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation",)
    Settings = Settings
    attempts = 3
    script: Script

    def __init__(self, settings: Any, name: str) -> None:
        super().__init__(settings, name)
        self.filters = (self._bad,)

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        return [self._reply(stimulus, draw) for stimulus, draw in zip(batch, draws, strict=True)]

    def _reply(self, stimulus: ConversationStimulus, draw: Draw) -> Reply | Exception:
        history = [(line.speaker, line.text) for line in stimulus.history]
        turn = draw.options["turn"]
        self.script.requests.append((history, draw.seed, draw.attempt, draw.options))
        reply = self.script.replies.get(turn, f"Turn {turn}, seed {draw.seed}, is what I say now.")
        if isinstance(reply, Exception):
            return reply
        text = reply if isinstance(reply, str) else reply[draw.attempt]
        return Reply(TurnAnswer(text=text), self.script.raws.get(turn))

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str | None:
        return f"Speak as {draw.options['speaker']} of {stimulus.topic}, please, and tell nobody of it."

    def _bad(self, stimulus: Stimulus, reply: Reply) -> Finding | None:
        text = reply.answer.text
        return Finding("bad", text == "bad", text) if text in ("bad", "odd") else None


def stimulus(**fields: Any) -> ConversationStimulus:
    return ConversationStimulus(**{"id": "talk", "task": "conversation", "type": "HM", "who_starts": "A", **fields})


def converse(work: Callable[[Scheduler], Awaitable[Any]], agent: Agent[Any], worker: Worker) -> Any:
    """Run ``work`` with a scheduler that has one agent, loaded in this process."""

    async def main() -> Any:
        scheduler = Scheduler(SEED)
        dispatcher = Dispatcher(agent, lambda number: InProcess(worker))
        scheduler.dispatchers[dispatcher.name] = dispatcher
        try:
            await dispatcher.start()
            return await work(scheduler)
        finally:
            await scheduler.close()

    return asyncio.run(main())


def scripted(work: Callable[[Scheduler], Awaitable[Any]], script: Script | None = None) -> Any:
    agent = Scripted(Settings(), "talker")
    agent.script = script or Script()
    worker = Worker(WorkerSpec(catalogue.get("eliza"), {}, "/"))
    worker.agent = agent
    return converse(work, agent, worker)


def chat(texts: Sequence[str], script: Script, **fields: Any) -> Dialogue:
    """A dialogue in which the person says the ``texts``."""

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(**{"names": ("Ann", "Bob"), **fields}))
        for text in texts:
            await dialogue.say(text)
        return dialogue

    dialogue: Dialogue = scripted(work, script)
    return dialogue


def texts_of(messages: Sequence[FlaggedMessage]) -> list[tuple[str, str]]:
    return [(flagged.message.agent, flagged.message.text) for flagged in messages]


def flags_of(dialogue: Dialogue) -> list[set[str]]:
    return [{flag.filter for flag in flagged.flags} for flagged in dialogue.transcript()]


def record_of(dialogue: Dialogue) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(asyncio.run(dialogue.record(HEADER)))
    assert problems(record) == []
    return record


@pytest.mark.parametrize("person", ["A", "B"])
@pytest.mark.parametrize("starts", ["A", "B"])
def test_a_persons_message_goes_in_and_the_agents_answer_comes_out(person: str, starts: str) -> None:
    script = Script()
    fields = {"exchanges": 6, "who_starts": starts, "names": ("Ann", "Bob"), "topic": "tea"}

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(**fields), seed=11, person=person)  # type: ignore[arg-type]
        assert len(await dialogue.open()) == (starts != person)
        assert await dialogue.open() == []
        number = 0
        while not dialogue.ended:
            answer = await dialogue.say(f"My message number {number}.")
            assert (answer is None) == (dialogue.ended and starts != person)
            number += 1
        with pytest.raises(DialogueError, match="all 6 messages are there") as late:
            await dialogue.say("late")
        assert late.value.code == "ended"
        return dialogue

    dialogue = scripted(work, script)
    name = "human~talker" if person == "A" else "talker~human"
    mine, its = ("Ann", "Bob") if person == "A" else ("Bob", "Ann")
    expected: list[tuple[str, str]] = []
    requests = list(script.requests)
    for turn in range(6):
        if (turn % 2 == 0) == (starts == person):
            expected.append((mine, f"My message number {turn // 2}."))
        else:
            seed = derive_seed(11, name, "talk", 0, turn, 0)
            assert requests.pop(0) == (expected, seed, 0, {"speaker": "B" if person == "A" else "A", "turn": turn})
            expected.append((its, f"Turn {turn}, seed {seed}, is what I say now."))
    assert requests == []
    record = record_of(dialogue)
    messages = record["answer"]["messages"]
    assert [(message["speaker"], message["text"]) for message in messages] == expected
    assert [message["agent"] for message in messages] == [
        "human" if speaker == mine else "talker" for speaker, _ in expected
    ]
    assert (record["agent"], record["status"], record["answer"]["ended_early"]) == (name, "ok", False)
    assert record["seed"] == derive_seed(11, name, "talk", 0, None, 0)
    drawn = {"person": person, "topic": "tea", "names": ["Ann", "Bob"], "who_starts": starts}
    assert record["raw"].items() >= drawn.items()
    assert texts_of(dialogue.transcript()) == [(message["agent"], message["text"]) for message in messages]


@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_a_blank_reply_is_not_sent_nor_drawn_again(text: str) -> None:
    replies = {1: text}
    script = Script(replies)

    async def work(scheduler: Scheduler) -> list[tuple[str, str]]:
        dialogue = Dialogue(scheduler, "talker", stimulus())
        with pytest.raises(AnswerError, match="the answer is empty") as failed:
            await dialogue.say("Hello there!")
        assert failed.value.code == "no_text"
        assert dialogue.transcript() == []
        replies[1] = "Hello!"
        await dialogue.say("Hello there!")
        return texts_of(dialogue.transcript())

    assert scripted(work, script) == [("human", "Hello there!"), ("talker", "Hello!")]
    assert len({seed for _, seed, _, _ in script.requests}) == 2


@pytest.mark.parametrize(
    ("reply", "sent", "flagged"),
    [
        ("B: Hello.", "Hello.", set()),
        ("**Bob:** Hello.", "Hello.", set()),
        ("A: Hello.", "Hello.", {"other_speaker"}),
        ("D:Brad, good day", "Brad, good day", {"other_speaker"}),
    ],
)
def test_a_label_that_was_cut_is_flagged(reply: str, sent: str, flagged: set[str]) -> None:
    dialogue = chat(["Hello there, my friend!"], Script({1: sent}, {1: {"text": reply}}))
    assert flags_of(dialogue)[1] == flagged
    record = record_of(dialogue)
    assert record["answer"]["messages"][1]["text"] == sent
    noted = {verdict["filter"] for attempt in record["attempts"] for verdict in attempt["verdicts"]}
    assert noted - {"early_exit"} == flagged


def test_both_are_judged_and_nothing_follows() -> None:
    script = Script({1: "As an AI language model I have no friends.", 3: "...", 5: "Goodbye, I have to go now!"})
    person = ("Assistant: what do you say to that, my friend?", "Bye bye, see you tomorrow!", "well well")
    dialogue = chat(person, script)
    flags = [{"prompt_echo"}, {"self_disclosure"}, {"early_exit"}, {"empty", "too_short"}, set(), {"early_exit"}]
    assert flags_of(dialogue) == flags
    assert [attempt for _, _, attempt, _ in script.requests] == [0, 0, 0]
    record = record_of(dialogue)
    [noted] = record["attempts"]
    assert (noted["turn"], {verdict["filter"] for verdict in noted["verdicts"]}) == (None, set[str]().union(*flags))
    assert not any(verdict["rejected"] for verdict in noted["verdicts"])
    assert record["answer"]["ended_early"] is True
    assert "6 of 24 messages" in str(noted["verdicts"])


def test_the_agent_may_not_repeat_its_prompt_but_the_person_may() -> None:
    echo = "Speak as B of tea, please, and tell nobody of it."
    script = Script({1: f"{echo} Right?", 3: "Something else."}, {1: {"tokens": 5}})
    dialogue = chat([echo, "Well, well."], script, exchanges=4, topic="tea")
    assert flags_of(dialogue) == [set(), {"prompt_echo", "partner_echo"}, set(), set()]
    assert record_of(dialogue)["raw"]["turns"] == [None, {"tokens": 5}, None, None]


def test_the_agents_own_filters_ask_again_and_are_kept() -> None:
    dialogue = chat(["one", "two"], Script({1: ["bad", "bad", "good thing"], 3: "odd"}), exchanges=4)
    assert [text for who, text in texts_of(dialogue.transcript()) if who == "talker"] == ["good thing", "odd"]
    attempts = record_of(dialogue)["attempts"]
    assert [(each["turn"], each["attempt"], each["verdicts"][0]["rejected"]) for each in attempts] == [
        (1, 0, True),
        (1, 1, True),
        (3, 0, False),
    ]


def test_an_answer_that_fails_leaves_the_dialogue_as_it_was() -> None:
    """A failure is tried again with the same seed; what was rejected is not drawn again."""
    script = Script({1: AnswerError("server_busy", "try later"), 3: "bad"})

    async def work(scheduler: Scheduler) -> Dialogue:
        dialogue = Dialogue(scheduler, "talker", stimulus(exchanges=6))
        with pytest.raises(AnswerError, match="try later") as failed:
            await dialogue.say("first")
        assert failed.value.code == "server_busy"
        assert dialogue.transcript() == []
        script.replies = {3: "bad"}
        await dialogue.say("first, again")
        with pytest.raises(AnswerError, match="talker has nothing that its filters let pass: bad: bad") as failed:
            await dialogue.say("second")
        assert failed.value.code == "rejected"
        assert len(dialogue.transcript()) == 2
        script.replies = {}
        await dialogue.say("second, again")
        await dialogue.say("third")
        return dialogue

    dialogue = scripted(work, script)
    person = [text for who, text in texts_of(dialogue.transcript()) if who == "human"]
    assert person == ["first, again", "second, again", "third"]
    numbers = [(1, 0), (1, 0), (3, 0), (3, 1), (3, 2), (3, 3), (5, 0)]
    assert [seed for _, seed, _, _ in script.requests] == [
        derive_seed(SEED, "human~talker", "talk", 0, turn, attempt) for turn, attempt in numbers
    ]
    assert [history[-1][1] for history, _, _, _ in script.requests][:3] == ["first", "first, again", "second"]
    attempts = [(each["turn"], each["attempt"]) for each in record_of(dialogue)["attempts"]]
    assert [key for key in attempts if key[0] is not None] == [(3, 0), (3, 1), (3, 2)]


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
        return texts_of(dialogue.transcript())

    seed = derive_seed(SEED, "human~talker", "talk", 0, 1, 0)
    assert scripted(work) == [("human", "here I am"), ("talker", f"Turn 1, seed {seed}, is what I say now.")]


def test_several_dialogues_share_batches_and_each_keeps_its_own_thread() -> None:
    """Twelve dialogues at once are answered as each would be alone."""
    words = ["tea", "rain", "trains", "music", "cats", "maths", "bread", "chess", "snow", "ships", "kites", "law"]

    async def talk(scheduler: Scheduler, word: str) -> dict[str, Any]:
        dialogue = Dialogue(scheduler, "eliza", stimulus(id=f"talk-{word}", exchanges=6), clock=lambda: 0.0)
        for text in (f"I like {word}.", f"My mother hates {word}.", f"Tell me about {word}."):
            await dialogue.say(text)
        record: dict[str, Any] = json.loads(await dialogue.record(HEADER))
        return record

    async def together(scheduler: Scheduler) -> list[dict[str, Any]]:
        return await asyncio.gather(*(talk(scheduler, word) for word in words))

    async def alone(scheduler: Scheduler) -> list[dict[str, Any]]:
        return [await talk(scheduler, word) for word in words]

    entry = catalogue.get("eliza")
    first, second = (converse(work, entry.make({}), Worker(WorkerSpec(entry, {}, "/"))) for work in (together, alone))
    assert [record["answer"] for record in first] == [record["answer"] for record in second]
    assert {record["worker"]["batch_size"] for record in second} == {1}
    assert max(record["worker"]["batch_size"] for record in first) > 1


# bursts


def burst(
    work: Callable[[BurstDialogue, SlowScheduler], Awaitable[Any]],
    replies: Sequence[str | Exception],
    seconds: float = 0.0,
    **fields: Any,
) -> Any:
    """A burst dialogue in which the agent waits one second and types half a second."""

    async def main() -> Any:
        scheduler = SlowScheduler(replies, seconds)
        clock = asyncio.get_running_loop().time
        about = stimulus(**{"mode": "burst", "exchanges": 6, **fields})
        dialogue = BurstDialogue(scheduler, "talker", about, delays=FAST, quiet_s=1.0, clock=clock)  # type: ignore[arg-type]
        with pytest.raises(DialogueError, match="open the conversation"):
            await dialogue.say("too early")
        try:
            await dialogue.open()
            return await work(dialogue, scheduler)
        finally:
            dialogue.close()

    return run_virtually(main())


@pytest.mark.parametrize("seconds", [0.9, 0.1], ids=["while the model answers", "while the agent types"])
def test_a_person_interrupts(seconds: float) -> None:
    async def work(dialogue: BurstDialogue, scheduler: SlowScheduler) -> dict[str, Any]:
        await dialogue.say("Hello!")
        await asyncio.sleep(1.3)
        await dialogue.say("No, wait.")
        [answer, *_] = await dialogue.after(2, 5)
        assert answer.message.text == "What is it?"
        assert scheduler.requests == [["Hello!"], ["Hello!", "No, wait."]]
        record: dict[str, Any] = json.loads(await dialogue.record(HEADER))
        return record

    record = burst(work, ["Hi.", "What is it?"], seconds)
    assert [message["text"] for message in record["answer"]["messages"]] == ["Hello!", "No, wait.", "What is it?"]
    [withdrawn] = record["answer"]["withdrawn"]
    assert (withdrawn["text"], withdrawn["why"], withdrawn["turn"]) == ("Hi.", "interrupted", 2)
    assert record["answer"]["ended_early"]


def test_a_failure_is_raised_once_and_the_agent_is_asked_again_when_the_person_writes() -> None:
    async def work(dialogue: BurstDialogue, scheduler: SlowScheduler) -> None:
        await dialogue.say("Hello!")
        with pytest.raises(AnswerError):
            await dialogue.after(1, 5)
        assert await dialogue.after(1, 60) == []
        await dialogue.say("Again?")
        assert texts_of(await dialogue.after(2, 5)) == [("talker", "Here.")]
        assert scheduler.requests == [["Hello!"], ["Hello!", "Again?"]]

    burst(work, [AnswerError("deadline", "too slow"), "Here."])


def test_a_fault_in_the_agents_part_is_raised_and_not_waited_for() -> None:
    async def work(dialogue: BurstDialogue, scheduler: SlowScheduler) -> None:
        await dialogue.say("Hello")
        with pytest.raises(ZeroDivisionError):
            await dialogue.after(1, 60.0)

    burst(work, [ZeroDivisionError()])
