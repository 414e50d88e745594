"""A conversation of a person with an agent: a person's message goes in, the agent's answer comes out. ::

    stimulus = ConversationStimulus(id="talk-1", task="conversation", type="HM", topic="books")
    dialogue = Dialogue(scheduler, "eliza", stimulus, seed=7)
    for opening in await dialogue.open():  # who starts is drawn from the seed where the stimulus does not say
        print(opening.message.text)
    reply = await dialogue.say("Hello!")
    line = await dialogue.record(header)

Each answer is a request to the scheduler, as a turn of any conversation. Seeds are derived for the pair
(``human~eliza``, or ``eliza~human`` where the person is B), and the agent's own filters may ask it again. The filters
of conversations judge both speakers and nothing follows from what they find, as in the papers: it is told as flags.
The agent's delay is drawn and not waited for; the person's is the time that really passed since the last message.

Whatever goes wrong, the dialogue is as it was before the call, and the same or another message may be sent. Time-outs,
limits on how many dialogues there are, and who may speak in one are the caller's.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

import orjson
from pydantic import ValidationError

from agents import stimuli
from agents.answers import Message, TurnAnswer
from agents.contract import Verdict
from agents.errors import AgentStoppedError, AnswerError, InputError
from agents.language.filters.policies import MEASURE, THRESHOLDS, FilterSettings
from agents.stimuli import ConversationStimulus, Utterance
from serving.conversations.delays import DelaySettings
from serving.conversations.journal import Turn, add_costs, turn_line
from serving.conversations.pseudo import NothingWritten, write_pseudo_dialogue
from serving.conversations.scenario import SIDES, draw_scenario
from serving.conversations.transcript import Transcript, no_instructions
from serving.runs.records import RecordHeader
from serving.scheduling.request import AgentRequest
from serving.scheduling.scheduler import Scheduler

PSEUDO_TRIES = 5
PERSON = re.compile(r"human(?::[^\s~]{1,100})?")
Code = Literal["busy", "ended", "not_open", "bad_message"]


class DialogueError(InputError):
    """A message that cannot be taken now, or at all. ``code`` is a short word for programs."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class FlaggedMessage:
    """One message, and what the filters of conversations found in it."""

    message: Message
    flags: tuple[Verdict, ...] = ()


class Dialogue:
    """One person and ``agent`` converse about ``stimulus``, as long as it has exchanges left.

    ``person`` is the person's side, ``who`` what records call the person ("human", "human:05"). ``seed`` is the run
    seed (the scheduler's, if None) from which topic, names, personas and who starts are drawn where the stimulus
    leaves them open, and the agent's answers too. Raises InputError for an agent that does not converse,
    AgentStoppedError for one that the scheduler does not know.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        agent: str,
        stimulus: ConversationStimulus,
        *,
        seed: int | None = None,
        sample: int = 0,
        person: Literal["A", "B"] = "A",
        who: str = "human",
        thresholds: FilterSettings = THRESHOLDS,
        delays: DelaySettings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        dispatcher = scheduler.dispatchers.get(agent)
        if dispatcher is None:
            raise AgentStoppedError(f"agent {agent} is not loaded")
        if "conversation" not in dispatcher.agent.tasks:
            raise InputError(f"agent {agent} does not converse; its tasks are {', '.join(dispatcher.agent.tasks)}")
        if PERSON.fullmatch(who) is None:
            raise InputError(f'who: a person is called "human" or "human:NAME", not {who!r}')
        self.person = SIDES.index(person)
        self.speakers = (who, agent) if self.person == 0 else (agent, who)
        self._scheduler, self._agent = scheduler, agent
        self._row, self._id, self._sample = stimuli.canonical(stimulus), stimulus.id, sample
        self._seed = scheduler.run_seed if seed is None else seed
        self._order = scheduler.next_order()
        if stimulus.pseudo is not None and not dispatcher.agent.writes_dialogues:
            raise InputError(f"agent {agent} writes no pseudo-dialogues")
        told = dispatcher.agent.instructions
        whole_seed = self._whole().draw_seed()
        self._transcript = self._new_transcript(
            stimulus=draw_scenario(stimulus, whole_seed),
            speakers=self.speakers,
            instructions=(no_instructions, told) if self.person == 0 else (told, no_instructions),
            policy=MEASURE,
            thresholds=thresholds,
            sample=sample,
            seed=whole_seed,
            delays=delays or DelaySettings(),
        )
        self._clock, self._since = clock, clock()
        self._flagged: list[FlaggedMessage] = []
        self._turns: list[Turn] = []  # the agent's, as a journal has them
        self._next_attempt = 0  # the number of the next attempt at the present turn
        self._busy = False

    @property
    def name(self) -> str:
        """The name of the pair, which the record is kept under."""
        return "~".join(self.speakers)

    @property
    def stimulus(self) -> ConversationStimulus:
        """The stimulus with all that was drawn for it."""
        return self._transcript.stimulus

    @property
    def ended(self) -> bool:
        """Whether all exchanges have been made."""
        return self._transcript.ended

    def transcript(self) -> list[FlaggedMessage]:
        """What has been said, both speakers' messages."""
        return list(self._flagged)

    async def open(self, deadline: float | None = None) -> list[FlaggedMessage]:
        """What is said before the person speaks: the stimulus's opener, whoever says it, and the agent's message if it
        is the agent's turn. Nothing where the person is to begin, or where it has been said. A pseudo-dialogue is
        written first. Raises as :meth:`say`."""
        with self._at_work():
            await self._write_pseudo(deadline)
            return await self._exchange(self._transcript.opener(), deadline)

    async def say(self, text: str, deadline: float | None = None) -> FlaggedMessage | None:
        """The agent's answer to the person's message; None where that was the last message of the conversation.

        ``deadline`` in seconds. Raises DialogueError, AnswerError (the agent failed, every attempt was rejected by its
        own filters, or the deadline passed), AgentStoppedError.
        """
        with self._at_work():
            if self.ended:
                raise DialogueError(
                    "ended", f"the conversation is over: all {self.stimulus.exchanges} messages have been said"
                )
            unopened = self._transcript.opener() is not None or self._lacks_pseudo()
            if unopened or self._transcript.side != self.person:
                raise DialogueError("not_open", f"{self._agent} is to speak first: open the conversation")
            delay = round(self._clock() - self._since, 3)
            fresh = await self._exchange(TurnAnswer(text=checked(text), delay_s=delay), deadline)
        return fresh[1] if len(fresh) > 1 else None

    def close(self) -> None:
        """Nothing is said any more: ends what goes on by itself, if anything does."""

    async def record(self, header: RecordHeader) -> bytes:
        """The record of what has been said so far: one line of JSON with its newline. ``header`` is the agent's.

        In the record's ``raw`` stand what was drawn, the person's side (``person``) and, if the agent tells anything,
        what it told of each turn (``turns``, null for the person's). ``ended_early`` tells that exchanges are left,
        which the filter early_exit notes too. A long conversation takes a while to judge, in a thread.
        """
        transcript, turns = self._transcript, list(self._turns)
        found = await asyncio.to_thread(transcript.judge_whole) if self._flagged else []
        whole = self._whole()
        whole.draw_seed()
        whole.status, whole.sha256 = "ok", hashlib.sha256(self._row).hexdigest()
        whole.raw = transcript.raw_json(person=SIDES[self.person])
        whole.answer = transcript.answer().model_dump_json().encode()
        whole.attempts = [attempt for turn in turns for attempt in turn["attempts"]]
        add_costs(whole, turns)
        if found:
            whole.attempts.append(whole.attempt_record([asdict(one.verdict()) for one in found]))
        return header.line(whole, "conversation")

    def _new_transcript(self, **about: Any) -> Transcript:
        return Transcript(**about)

    def _lacks_pseudo(self) -> bool:
        return self.stimulus.pseudo is not None and not self._transcript.pseudo

    async def _write_pseudo(self, deadline: float | None) -> None:
        """Have the agent write the pseudo-dialogue: all of it, or nothing. Each request has the deadline."""
        if not self._lacks_pseudo():
            return
        draft = self._transcript.copy()
        turns: list[Turn] = []

        async def ask(number: int, options: Mapping[str, Any]) -> Turn:
            request = await self._request(draft, deadline, number, options)
            self._usable(request, is_turn=False)
            self._next_attempt = 0
            turns.append(orjson.loads(turn_line(request, 0)))
            return turns[-1]

        try:
            await write_pseudo_dialogue(draft, 1 - self.person, ask, PSEUDO_TRIES)
        except NothingWritten:
            raise AnswerError("no_pseudo_dialogue", f"{self._agent} wrote nothing that could be read") from None
        self._transcript = draft
        self._turns += turns
        self._next_attempt = 0

    def _whole(self) -> AgentRequest:
        """The whole conversation as a request: what its seed and its record are of."""
        return AgentRequest(self._agent, self._row, self._id, self._sample, self._seed, self.name)

    async def _exchange(self, said: TurnAnswer | None, deadline: float | None) -> list[FlaggedMessage]:
        """Add what is ``said``, if anything, and the agent's answer if it is its turn then: both or nothing."""
        fresh: list[FlaggedMessage] = []
        draft = self._transcript.copy()
        if said is not None:
            fresh.append(_add(draft, said, None))
        if not draft.ended and draft.side != self.person:
            request = await self._ask(draft, deadline)
            turn = orjson.loads(turn_line(request, 0))
            self._turns.append(turn)
            fresh.append(_add(draft, self._usable(request), turn["raw"]))
            self._next_attempt = 0
        self._transcript = draft
        self._flagged += fresh
        self._since = self._clock()
        return fresh

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """One call at a time: an answer is to what was said before it, and to nothing that came meanwhile."""
        if self._busy:
            raise DialogueError("busy", f"{self._agent} is still answering; wait for its message")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    async def _ask(self, draft: Transcript, deadline: float | None) -> AgentRequest:
        options = {"speaker": SIDES[1 - self.person], "turn": len(draft.messages)}
        return await self._request(draft, deadline, draft.number, options)

    async def _request(
        self, draft: Transcript, deadline: float | None, turn: int, options: Mapping[str, Any]
    ) -> AgentRequest:
        return await self._scheduler.answer(
            self._agent,
            draft.shown(),
            self._sample,
            seed=self._seed,
            turn=turn,
            options=options,
            name=self.name,
            order=self._order,
            first_attempt=self._next_attempt,
            deadline=deadline,
        )

    def _usable(self, request: AgentRequest, is_turn: bool = True) -> TurnAnswer:
        """What the agent said. Raises AnswerError; what it said in vain is not drawn again."""
        is_said = is_turn and request.status == "ok"
        why = self._transcript.why_unusable(request.answer) if is_said else None
        in_vain = request.status == "rejected" or why is not None or (request.error or ("",))[0] == "no_text"
        self._next_attempt = request.first_attempt + request.attempt + in_vain
        if request.status == "rejected":
            verdicts: list[dict[str, Any]] = request.attempts[-1]["verdicts"]
            reasons = "; ".join(f"{one['filter']}: {one['found']}" for one in verdicts if one["rejected"])
            raise AnswerError("rejected", f"{self._agent} said nothing that its filters let pass: {reasons}")
        if request.status != "ok":
            raise AnswerError(*(request.error or ("failed", f"{self._agent} gave no answer")))
        if why is not None:
            raise AnswerError("bad_turn", why)
        return TurnAnswer.model_validate_json(request.answer or b"")


def _add(draft: Transcript, answer: TurnAnswer, raw: Any) -> FlaggedMessage:
    """Judge and add the next message."""
    found = draft.judge_next(answer.text, raw=raw)
    draft.raws.append(raw)
    draft.add(answer)
    return FlaggedMessage(draft.messages[-1], tuple(one.verdict() for one in found))


def checked(text: str) -> str:
    """A person's message, if it can be said. Raises DialogueError."""
    try:
        return Utterance(speaker="A", text=text).text
    except ValidationError as error:
        reasons = "; ".join(problem["msg"] for problem in error.errors(include_url=False, include_input=False))
        raise DialogueError("bad_message", f"the message cannot be taken: {reasons}") from None
