"""A conversation of a person with an agent: a person's message goes in, the agent's answer comes out. ::

    stimulus = ConversationStimulus(id="talk-1", task="conversation", type="HM", topic="books")
    dialogue = Dialogue(scheduler, "eliza", stimulus, seed=7)
    for said in await dialogue.open():  # who starts is drawn from the seed where the stimulus does not say
        print(said.message.text)
    said = await dialogue.say("Hello!")
    line = dialogue.record(header)

Each answer is an item of the scheduler, as a turn of any conversation: seeds are derived for the pair (``human~eliza``,
or ``eliza~human`` where the person is B), and the agent's own filters may ask it again. The filters of conversations
judge both speakers and nothing follows from what they find, as in the papers: it is told as flags.

Whatever goes wrong, the dialogue is as it was before the call, and the same or another message may be sent. Time-outs,
limits on how many dialogues there are, and who may speak in one are the caller's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from pydantic import ValidationError

from agents import stimuli
from agents.answers import ConversationAnswer, Message, TurnAnswer
from agents.contract import Draw, Verdict
from agents.errors import AgentStoppedError, AnswerError, InputError
from agents.language.filters.policies import THRESHOLDS
from agents.language.filters.settings import MEASURE, FilterSettings
from agents.stimuli import ConversationStimulus, Utterance
from serving.conversations import turns
from serving.conversations.scenario import SIDES, draw_scenario
from serving.runs.record_lines import RecordHeader
from serving.scheduling.request import AgentRequest
from serving.scheduling.scheduler import Scheduler

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
    ) -> None:
        lane = scheduler.dispatchers.get(agent)
        if lane is None:
            raise AgentStoppedError(f"agent {agent} is not loaded")
        if "conversation" not in lane.agent.tasks:
            raise InputError(f"agent {agent} does not converse; its tasks are {', '.join(lane.agent.tasks)}")
        if PERSON.fullmatch(who) is None:
            raise InputError(f'who: a person is called "human" or "human:NAME", not {who!r}')
        self.person = SIDES.index(person)
        self.speakers = (who, agent) if self.person == 0 else (agent, who)
        self._scheduler, self._agent, self._thresholds = scheduler, agent, thresholds
        self._told = lane.agent.instructions
        self._row, self._sample = stimuli.canonical(stimulus), sample
        self._seed = scheduler.run_seed if seed is None else seed
        self._order = scheduler.next_order()
        self._id = stimulus.id
        self.stimulus = draw_scenario(stimulus, self._item().draw_seed())
        self._said: list[FlaggedMessage] = []
        self._raws: list[Any] = []  # what the agent told of each message, null for the person's
        self._answered: list[AgentRequest] = []  # with the attempts that the agent's own filters rejected or noted
        self._tried = 0  # the number of the next attempt at the present turn
        self._busy = False

    @property
    def name(self) -> str:
        """The name of the pair, which the record is kept under."""
        return "~".join(self.speakers)

    @property
    def ended(self) -> bool:
        """Whether all exchanges have been made."""
        return len(self._said) >= self.stimulus.exchanges

    def transcript(self) -> list[FlaggedMessage]:
        """What has been said, both speakers' messages."""
        return list(self._said)

    async def open(self, deadline: float | None = None) -> list[FlaggedMessage]:
        """What is said before the person speaks: the stimulus's opener, whoever says it, and the agent's message if it
        is the agent's turn. Nothing where the person is to begin, or where it has been said. Raises as :meth:`say`."""
        with self._at_work():
            fresh: list[FlaggedMessage] = []
            if self._opens_with_opener():
                opener = TurnAnswer(text=self.stimulus.opener or "", finish="opener")
                fresh.append(self._heard(fresh, opener))
            await self._answer(fresh, deadline)
        return fresh

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
            if self._opens_with_opener() or self._side(0) != self.person:
                raise DialogueError("not_open", f"{self._agent} is to speak first: open the conversation")
            fresh = [self._heard([], TurnAnswer(text=_checked(text)))]
            await self._answer(fresh, deadline)
        return fresh[1] if len(fresh) > 1 else None

    def record(self, header: RecordHeader) -> bytes:
        """The record of what has been said so far: one line of JSON with its newline. ``header`` is the agent's.

        In the record's ``raw`` stand what was drawn, the person's side (``person``) and, if the agent tells anything,
        what it told of each turn (``turns``, null for the person's). ``ended_early`` tells that exchanges are left,
        which the filter early_exit notes too.
        """
        whole = self._item()
        whole.draw_seed()
        whole.status, whole.sha256 = "ok", hashlib.sha256(self._row).hexdigest()
        told = {"turns": self._raws} if any(self._raws) else {}
        whole.raw = orjson.dumps({**turns.drawn(self.stimulus), "person": SIDES[self.person], **told})
        messages = [one.message for one in self._said]
        whole.answer = ConversationAnswer(messages=messages, ended_early=not self.ended).model_dump_json().encode()
        for item in self._answered:
            whole.attempts += item.attempts
            whole.waiting += item.waiting
            whole.preparing += item.preparing
            whole.responding = round(whole.responding + item.responding, 6)
        batches = [item.worker["batch_size"] for item in self._answered if item.worker is not None]
        if batches:
            last = next(item.worker for item in reversed(self._answered) if item.worker is not None)
            whole.worker = {**last, "batch_size": round(sum(batches) / len(batches))}
        prompts = [self._prompt(side, messages) for side in range(2)]
        found = turns.judge_whole(self.stimulus, messages, MEASURE, self._thresholds, prompts)
        if messages and found:
            whole.attempts.append(whole.attempt_record([turns.verdict(one) for one in found]))
        return header.line(whole, "conversation")

    def _item(self) -> AgentRequest:
        """The whole conversation as an item: what its seed and its record are of."""
        return AgentRequest(self._agent, self._row, self._id, self._sample, self._seed, self.name)

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

    def _opens_with_opener(self) -> bool:
        return self.stimulus.opener is not None and not self._said

    def _side(self, ahead: int) -> int:
        """Whose turn it is, ``ahead`` messages from now."""
        assert self.stimulus.who_starts is not None
        return (SIDES.index(self.stimulus.who_starts) + len(self._said) + ahead) % 2

    def _heard(self, fresh: list[FlaggedMessage], answer: TurnAnswer) -> FlaggedMessage:
        """The next message after ``fresh``, which are not part of the dialogue yet."""
        before = self._messages(fresh)
        side = self._side(len(fresh))
        message = turns.next_message(self.stimulus, before, side, self.speakers[side], answer)
        prompt = self._prompt(side, before)
        found = turns.judge_next(self.stimulus, before, side, message.text, MEASURE, self._thresholds, prompt)
        return FlaggedMessage(message, tuple(one.verdict() for one in found))

    def _prompt(self, side: int, before: Sequence[Message]) -> str | None:
        """What the speaker on ``side`` was told, as it stands before its next message; a person is told nothing."""
        if side == self.person:
            return None
        draw = Draw(0, self._sample, options={"speaker": SIDES[side]})
        return self._told(turns.shown(self.stimulus, before), draw)

    async def _answer(self, fresh: list[FlaggedMessage], deadline: float | None) -> None:
        """Let the agent answer if it is its turn after ``fresh``; then they are all said."""
        turn = len(self._said) + len(fresh)
        raws: list[Any] = [None] * len(fresh)
        if turn < self.stimulus.exchanges and self._side(len(fresh)) != self.person:
            item = await self._scheduler.answer(
                self._agent,
                turns.shown(self.stimulus, self._messages(fresh)),
                self._sample,
                seed=self._seed,
                turn=turn,
                options={"speaker": SIDES[1 - self.person], "turn": turn},
                name=self.name,
                order=self._order,
                first_attempt=self._tried,
                deadline=deadline,
            )
            item.row = b""  # it holds all that was said before, which is kept here once
            self._answered.append(item)
            fresh.append(self._heard(fresh, self._usable(item)))
            raws.append(None if item.raw is None else orjson.loads(item.raw))
            self._tried = 0
        self._said += fresh
        self._raws += raws

    def _usable(self, item: AgentRequest) -> TurnAnswer:
        """What the agent said. Raises AnswerError; what it said in vain is not drawn again."""
        wrong = turns.unusable(item) if item.status == "ok" else None
        self._tried = item.first_attempt + item.attempt + (item.status == "rejected" or wrong is not None)
        if item.status == "rejected":
            verdicts: list[dict[str, Any]] = item.attempts[-1]["verdicts"]
            why = "; ".join(f"{one['filter']}: {one['found']}" for one in verdicts if one["rejected"])
            raise AnswerError("rejected", f"{self._agent} said nothing that its filters let pass: {why}")
        if item.status != "ok":
            raise AnswerError(*(item.error or ("failed", f"{self._agent} gave no answer")))
        if wrong is not None:
            raise AnswerError("bad_turn", wrong)
        return TurnAnswer.model_validate_json(item.answer or b"")

    def _messages(self, fresh: list[FlaggedMessage]) -> list[Message]:
        return [one.message for one in (*self._said, *fresh)]


def _checked(text: str) -> str:
    """A person's message, if it can be said. Raises DialogueError."""
    try:
        return Utterance(speaker="A", text=text).text
    except ValidationError as error:
        reasons = "; ".join(problem["msg"] for problem in error.errors(include_url=False, include_input=False))
        raise DialogueError("bad_message", f"the message cannot be taken: {reasons}") from None
