"""A conversation of a person with an agent, by turns (:class:`Dialogue`) or as both like (:class:`BurstDialogue`). ::

    stimulus = ConversationStimulus(id="talk-1", task="conversation", type="HM", topic="books")
    dialogue = Dialogue(scheduler, "eliza", stimulus, seed=7)
    for opening in await dialogue.open():
        print(opening.message.text)
    reply = await dialogue.say("Hello!")
    line = await dialogue.record(header)

After an error the dialogue is as it was before the call: a message is there with its answer, or not at all.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from agents.answers import Message, TurnAnswer, Withdrawn, is_blank
from agents.contract import Finding
from agents.errors import AgentStoppedError, AnswerError, InputError
from agents.stimuli import ConversationStimulus
from serving.conversations.journal import Turn, costs, turn_line
from serving.conversations.live_dialogue import LiveDialogue
from serving.conversations.pseudo import write_pseudo_dialogue
from serving.conversations.scenario import QUIET_S, SIDES, DelaySettings, draw_scenario
from serving.conversations.transcript import Transcript, instructions_of, no_instructions
from serving.runs.records import RecordHeader, read_attempt
from serving.scheduling.request import Failure, Outcome, Request
from serving.scheduling.scheduler import Scheduler
from serving.sets.stimulus_row import StimulusRow

PSEUDO_TRIES = 5  # answers in a row that may bring nothing to a pseudo-dialogue
PERSON_NAME = re.compile(r"human(?::[^\s~]{1,100})?")  # what a record may call the person
RefusalCode = Literal["busy", "ended", "not_open"]


class DialogueError(InputError):
    """A message that cannot be taken now. ``code`` says why: "busy" while the agent answers, "ended" after the last
    message, "not_open" before :meth:`Dialogue.open`, where the agent speaks first."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class FlaggedMessage:
    """A message, and what the conversation filters found in it."""

    message: Message
    """The message as it was sent."""
    flags: tuple[Finding, ...] = ()
    """The findings. Nothing of it is held back or asked again: a person has already read it."""


class Dialogue:
    """A person and a loaded agent converse by turns.

    - ``agent``: the agent's name; ``stimulus``: what they talk about. What it leaves open is drawn.
    - ``seed``: the run's seed; None: the scheduler's.
    - ``person``: the person's side; ``who``: what records call the person, "human" or "human:NAME".
    - ``delays``: how long the agent is said to take over a message; ``quiet_s``: see :class:`BurstDialogue`.
    - ``clock``: returns seconds.

    Raises AgentStoppedError for an agent that is not loaded, InputError for one that writes no pseudo-dialogue where
    the stimulus asks for one.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        agent: str,
        stimulus: ConversationStimulus,
        *,
        seed: int | None = None,
        person: Literal["A", "B"] = "A",
        who: str = "human",
        delays: DelaySettings | None = None,
        quiet_s: float = QUIET_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        dispatcher = scheduler.dispatchers.get(agent)
        if dispatcher is None:
            raise AgentStoppedError(f"agent {agent} is not loaded")
        if stimulus.pseudo is not None and not dispatcher.declared.writes_dialogues:
            raise InputError(f"agent {agent} writes no pseudo-dialogues")
        self.person = SIDES.index(person)
        self.agent = agent
        self.speakers = (who, agent) if self.person == 0 else (agent, who)
        self._scheduler = scheduler
        prompts = instructions_of(dispatcher.agent)
        self._request = Request(
            agent=agent,
            row=StimulusRow.of(stimulus),
            name="~".join(self.speakers),
            run_seed=scheduler.run_seed if seed is None else seed,
            order=scheduler.next_order(),
        )
        drawn_seed = self._request.seed(0)
        self._transcript = Transcript(
            draw_scenario(stimulus, drawn_seed),
            self.speakers,
            (no_instructions, prompts) if self.person == 0 else (prompts, no_instructions),
            seed=drawn_seed,
            delays=delays or DelaySettings(),
            quiet_s=quiet_s,
            agents=(0, 1) if stimulus.mode == "ping-pong" else (1 - self.person,),
        )
        self._clock = clock
        self._since = clock()
        self._flagged: list[FlaggedMessage] = []
        self._turns: list[Turn] = []  # the agent's, as a journal has them
        self._next_attempt = 0  # the number of the next attempt at the present turn
        self._is_busy = False

    @property
    def name(self) -> str:
        """The pair's name in records, "human~eliza": speaker A's first."""
        return self._request.name

    @property
    def stimulus(self) -> ConversationStimulus:
        """The stimulus with everything that was drawn for it: topic, names, personas and who starts."""
        return self._transcript.stimulus

    @property
    def ended(self) -> bool:
        """Whether all messages that the stimulus asks for are sent."""
        return self._transcript.ended

    def transcript(self) -> list[FlaggedMessage]:
        """All messages so far."""
        return list(self._flagged)

    async def open(self, deadline: float | None = None) -> list[FlaggedMessage]:
        """The messages before the person's first one: the stimulus's opener, the agent's first message, or none. Raises
        as :meth:`say`."""
        with self._at_work():
            await self._write_pseudo(deadline)
            return await self._exchange(self._transcript.opener(), deadline)

    async def say(self, text: str, deadline: float | None = None) -> FlaggedMessage | None:
        """Send the person's message; returns the agent's answer, or None after the last message.

        Raises AnswerError with the code of the failure where the agent has no answer within ``deadline`` seconds (None:
        as long as it takes) or none that its filters let pass, AgentStoppedError where it is there no more,
        DialogueError, and pydantic's ValidationError for a text that no message may have.
        """
        with self._at_work():
            if self.ended:
                raise self._ended_error()
            is_unopened = self._transcript.opener() is not None or self._lacks_pseudo()
            if is_unopened or self._transcript.side != self.person:
                raise DialogueError("not_open", f"{self.agent} is to speak first: open the conversation")
            delay = round(self._seconds(), 3)
            messages = await self._exchange(TurnAnswer(text=text, delay_s=delay), deadline)
        return messages[1] if len(messages) > 1 else None

    async def after(self, count: int, wait: float = 0.0) -> list[FlaggedMessage]:
        """The messages after the first ``count``. By turns there is nothing to ``wait`` for."""
        return self._flagged[count:]

    def close(self) -> None:
        """End what goes on in the background: nothing, in a conversation by turns."""

    async def record(self, header: RecordHeader) -> bytes:
        """The record of the conversation so far, a line of JSON. ``header`` is the agent's."""
        transcript = self._transcript
        turns = list(self._turns)
        judgements = await asyncio.to_thread(transcript.judge_all) if self._flagged else []
        request = self._request
        timing, worker = costs(turns)
        attempts = [read_attempt(row) for turn in turns for row in turn["attempts"]]
        outcome = Outcome(
            request=request,
            status="ok",
            seed=request.seed(0),
            attempt=0,
            answer=transcript.answer().model_dump_json().encode(),
            raw=transcript.raw_json(person=SIDES[self.person]),
            sha256=hashlib.sha256(request.row.json).hexdigest(),
            timing=timing,
            worker=worker,
        )
        if judgements:
            attempts.append(outcome.as_attempt(tuple(judged.finding() for judged in judgements)))
        return header.line(outcome._replace(attempts=tuple(attempts)))

    def _seconds(self) -> float:
        return self._clock() - self._since

    def _ended_error(self) -> DialogueError:
        return DialogueError("ended", f"the conversation is over: all {self.stimulus.exchanges} messages are there")

    def _lacks_pseudo(self) -> bool:
        return self.stimulus.pseudo is not None and not self._transcript.pseudo

    async def _write_pseudo(self, deadline: float | None) -> None:
        if not self._lacks_pseudo():
            return
        draft = self._transcript.copy()
        turns = list[Turn]()

        async def ask(number: int, options: Mapping[str, Any]) -> Turn:
            turns.append(await self._reply(draft, deadline, number, options))
            return turns[-1]

        await write_pseudo_dialogue(draft, 1 - self.person, ask, PSEUDO_TRIES)
        self._transcript = draft
        self._turns += turns

    async def _exchange(self, message: TurnAnswer | None, deadline: float | None) -> list[FlaggedMessage]:
        draft = self._transcript.copy()
        new_messages = [] if message is None else [_add(draft, message, None)]
        if not draft.ended and draft.side != self.person:
            answer, raw = await self._turn(draft, deadline)
            new_messages.append(_add(draft, answer, raw))
        self._transcript = draft
        self._flagged += new_messages
        self._since = self._clock()
        return new_messages

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        if self._is_busy:
            raise DialogueError("busy", f"{self.agent} is still answering; wait for its message")
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    async def _turn(self, draft: Transcript, deadline: float | None) -> tuple[TurnAnswer, Any]:
        options = {"speaker": SIDES[1 - self.person], "turn": len(draft.messages)}
        turn = await self._reply(draft, deadline, draft.number, options)
        return TurnAnswer.model_validate(turn["answer"]), turn["raw"]

    async def _reply(self, draft: Transcript, deadline: float | None, number: int, options: Mapping[str, Any]) -> Turn:
        request = self._request._replace(
            row=StimulusRow.of(draft.shown()),
            turn=number,
            options=options,
            first_attempt=self._next_attempt,
            deadline=deadline,
        )
        outcome = await self._scheduler.answer(request)
        turn: Turn = orjson.loads(turn_line(outcome, 0))
        status = outcome.status
        error = outcome.error or Failure("failed", f"{self.agent} gave no answer")
        if "pseudo" not in options:
            self._turns.append(turn)
            if status == "ok" and is_blank(turn["answer"]["text"]):
                status = "failed"
                error = Failure("no_text", "the answer is empty")
        in_vain = status == "rejected" or error.code == "no_text"
        self._next_attempt = outcome.attempt + 1 if in_vain else outcome.attempt
        if status == "rejected":
            rejected = [verdict for verdict in turn["attempts"][-1]["verdicts"] if verdict["rejected"]]
            reasons = "; ".join(f"{verdict['filter']}: {verdict['found']}" for verdict in rejected)
            raise AnswerError("rejected", f"{self.agent} has nothing that its filters let pass: {reasons}")
        if status != "ok":
            raise AnswerError(error.code, error.message)
        self._next_attempt = 0
        return turn


class BurstDialogue(Dialogue):
    """A person and an agent write at any time, on a real clock.

    The agent is asked when the person has been quiet for ``quiet_s`` seconds. Its messages appear when they are typed;
    the time that its model takes is part of that. Arguments and errors are those of :class:`Dialogue`.
    """

    _task: asyncio.Task[None] | None = None
    _live: LiveDialogue
    _failure: AnswerError | AgentStoppedError | None = None
    _deadline: float | None = None

    async def open(self, deadline: float | None = None) -> list[FlaggedMessage]:
        """Start the clock and the agent's part; returns the stimulus's opener, if any. ``deadline`` is that of the
        agent's answers, in seconds. A second call changes nothing."""
        if self._task is None:
            with self._at_work():
                await self._write_pseudo(deadline)
            self._deadline = deadline
            self._since = self._clock()
            self._news = asyncio.Event()
            self._live = LiveDialogue(self._transcript, self._seconds, self._ask_agent, self._note)
            self._task = asyncio.create_task(self._live.run())
            self._task.add_done_callback(lambda task: self._notify())
        return self.transcript()

    async def say(self, text: str, deadline: float | None = None) -> None:
        """Take the person's message at once; the agent's come by :meth:`after`. ``deadline`` is that of the answers
        from now on. Raises DialogueError."""
        if self._task is None:
            raise DialogueError("not_open", "open the conversation")
        if not self._live.say(self.person, text):
            raise self._ended_error()
        self._deadline = deadline
        self._failure = None

    async def after(self, count: int, wait: float = 0.0) -> list[FlaggedMessage]:
        """The messages after the first ``count``; if there are none, wait up to ``wait`` seconds for one.

        A failure of the agent is raised once, as AnswerError or AgentStoppedError; the agent is asked again after the
        person's next message.
        """
        try:
            async with asyncio.timeout(wait):
                while len(self._flagged) <= count and self._goes_on() and self._failure is None:
                    await self._news.wait()
        except TimeoutError:
            return []
        if self._failure is not None:
            failure = self._failure
            self._failure = None
            raise failure
        return self._flagged[count:]

    def close(self) -> None:
        """End the agent's part. The messages stay."""
        if self._task is not None:
            self._task.cancel()

    def _goes_on(self) -> bool:
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()
        return not self.ended

    async def _ask_agent(self, side: int) -> TurnAnswer | None:
        try:
            answer, raw = await self._turn(self._transcript, self._deadline)
        except (AnswerError, AgentStoppedError) as error:
            self._failure = error
            self._notify()
            return None
        self._transcript.raws.append(raw)
        return answer

    def _note(self, news: Message | Withdrawn, id: str | None) -> None:
        if isinstance(news, Message):
            judgements = self._transcript.judge_last()
            self._flagged.append(FlaggedMessage(news, tuple(judged.finding() for judged in judgements)))
            self._notify()

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _add(draft: Transcript, answer: TurnAnswer, raw: Any) -> FlaggedMessage:
    judgements = draft.judge_next(answer, raw=raw)
    draft.raws.append(raw)
    draft.add(answer)
    return FlaggedMessage(draft.messages[-1], tuple(judged.finding() for judged in judgements))
