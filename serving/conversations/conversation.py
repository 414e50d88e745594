"""A conversation of two agents, turn by turn through the scheduler, on a clock of its own.

Where filters reject a message, the turn is tried again; where they reject the conversation, it begins anew. Attempts at
turns have numbers, from which their seeds follow: in the attempt c at the conversation (from 0) they begin at c times
:data:`STRIDE`. Each turn is a line of a journal, so that a resumed run goes on at the turn at which it ended.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from agents.answers import TurnAnswer, is_blank
from agents.contract import Finding
from agents.errors import AnswerError
from agents.language.filters.policies import Judgement, Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.journal import Turn, Turns, costs, turn_line
from serving.conversations.pseudo import write_pseudo_dialogue
from serving.conversations.scenario import SIDES, PairSettings, draw_scenario
from serving.conversations.transcript import InstructionsFor, Transcript, no_instructions
from serving.runs.records import read_attempt
from serving.scheduling.request import Attempt, Failure, Outcome, OutcomeStatus, Request
from serving.scheduling.scheduler import Scheduler
from serving.sets.stimulus_row import StimulusRow

STRIDE = 10_000  # more than the attempts at all turns of a conversation
TurnOptions = Mapping[str, Any]
"""The options of a request: the speaker, the turn, and what a pseudo-dialogue asks for."""


@dataclass(slots=True)
class Conversation:
    """A conversation of two agents that answers one request."""

    request: Request
    """The stimulus, sample and seed; ``name`` is the pair's."""
    pair: tuple[str, str]
    """The agents, speaker A's first."""
    policy: Policy = field(default_factory=Policy)
    """What follows from what filters find."""
    settings: PairSettings = field(default_factory=PairSettings)
    """The pair's settings."""
    instructions: tuple[InstructionsFor, InstructionsFor] = (no_instructions, no_instructions)
    """What each agent is told, for the filter of prompts that are said aloud."""
    writers: tuple[bool, bool] = (False, False)
    """Which agents write pseudo-dialogues."""
    journalled: Turns = field(default_factory=dict)
    """Turns of an earlier start; they are replayed as far as they go, not asked again."""
    on_turn: Callable[[bytes], None] = lambda line: None
    """Gets each new turn's journal line."""
    _replays: bool = field(init=False, default=True)
    _turns: list[Turn] = field(init=False, default_factory=list)  # of all attempts
    _attempts: list[Attempt] = field(init=False, default_factory=list)  # at turns and at the whole
    _status: OutcomeStatus = field(init=False, default="ok")
    _error: Failure | None = field(init=False, default=None)

    async def run(self, scheduler: Scheduler) -> Outcome:
        """Hold the conversation; returns what became of it. Raises AgentStoppedError."""
        request = self.request
        stimulus = request.row.parsed()
        assert isinstance(stimulus, ConversationStimulus)
        sha256 = hashlib.sha256(request.row.json).hexdigest()
        if stimulus.pseudo is not None and not any(self.writers):
            return Outcome.failed(request, "unsupported_pseudo", "neither agent writes pseudo-dialogues", sha256)
        for number in range(self.settings.attempts):
            seed = request.seed(number)
            transcript = Transcript(
                draw_scenario(stimulus, seed),
                self.pair,
                self.instructions,
                self.policy,
                self.settings.thresholds,
                request.sample,
                seed,
                self.settings.delays,
                self.settings.quiet_s,
            )
            findings = await self._hold(scheduler, transcript, number)
            has_answer = transcript.messages or self._status != "failed"
            outcome = Outcome(
                request=request,
                status=self._status,
                seed=seed,
                attempt=number,
                answer=transcript.answer().model_dump_json().encode() if has_answer else None,
                raw=transcript.raw_json(),
                error=self._error,
                sha256=sha256,
            )
            if findings:
                self._attempts.append(outcome.as_attempt(findings))
            if self._status != "rejected":
                break
        timing, worker = costs(self._turns)
        return outcome._replace(attempts=tuple(self._attempts), timing=timing, worker=worker)

    async def _hold(self, scheduler: Scheduler, transcript: Transcript, number: int) -> tuple[Finding, ...]:
        """Hold it once; returns what the filters found in it as a whole."""
        self._status = "ok"
        if transcript.stimulus.pseudo is not None:
            await self._write_pseudo(scheduler, transcript, number)
            if self._status != "ok":
                return ()
        while not transcript.ended:
            turn, judgements = await self._turn(scheduler, transcript, number)
            attempts = self._take(turn)
            transcript.raws.append(turn["raw"])
            if self._status != "ok":
                last = attempts[-1].findings if self._status == "rejected" and attempts else ()
                return tuple(finding for finding in last if finding.rejected)
            transcript.add(TurnAnswer.model_validate(turn["answer"]))
            if rejected := [judgement for judgement in judgements if judgement.rejected]:
                self._status = "rejected"
                return _findings(rejected)
        # Nothing is sampled again for what the history did before the two spoke.
        return tuple(replace(finding, rejected=False) for finding in _findings(transcript.judge_all()))

    def _take(self, turn: Turn) -> list[Attempt]:
        """Note a turn's costs and end; returns the attempts at it."""
        attempts = [read_attempt(row) for row in turn["attempts"]]
        self._turns.append(turn)
        self._attempts += attempts
        self._status = turn["status"]
        self._error = Failure(*turn["error"]) if turn["error"] else None
        return attempts

    async def _turn(
        self, scheduler: Scheduler, transcript: Transcript, conversation_attempt: int
    ) -> tuple[Turn, list[Judgement]]:
        if (opener := transcript.opener()) is not None:
            return {"status": "ok", "error": None, "answer": opener.model_dump(), "attempts": [], "raw": None}, []
        journalled = self._journalled_turn(conversation_attempt, transcript.number)
        if journalled is not None:
            if journalled["status"] != "ok":
                return journalled, []
            return journalled, transcript.judge_next(TurnAnswer.model_validate(journalled["answer"]))
        earlier: tuple[Attempt, ...] = ()
        judgements: list[Judgement] = []
        first_attempt = STRIDE * conversation_attempt
        for attempt in range(1, self.settings.attempts + 1):
            side = transcript.side
            options = {"speaker": SIDES[side], "turn": len(transcript.messages)}
            outcome = await self._ask(scheduler, transcript, side, transcript.number, options, first_attempt)
            outcome = outcome._replace(attempts=(*earlier, *outcome.attempts))
            if outcome.status != "ok":
                judgements = []
                break
            answer = TurnAnswer.model_validate_json(outcome.answer or b"")
            judgements = transcript.judge_next(answer)
            bad = [judgement for judgement in judgements if judgement.action == "resample_turn"]
            if not bad or attempt == self.settings.attempts:
                if is_blank(answer.text) and not any(judgement.rejected for judgement in judgements):
                    error = Failure("bad_turn", "no message has any text")
                    outcome = outcome._replace(status="failed", answer=None, error=error)
                break
            earlier = (*outcome.attempts, outcome.as_attempt(_findings(bad)))
            first_attempt = outcome.attempt + 1
        return self._journal(outcome, conversation_attempt), judgements

    async def _write_pseudo(self, scheduler: Scheduler, transcript: Transcript, conversation_attempt: int) -> None:
        side = self.writers.index(True)

        async def ask(number: int, options: TurnOptions) -> Turn:
            turn = self._journalled_turn(conversation_attempt, number)
            if turn is None:
                first_attempt = STRIDE * conversation_attempt
                outcome = await self._ask(scheduler, transcript, side, number, options, first_attempt)
                turn = self._journal(outcome, conversation_attempt)
            self._take(turn)
            return turn

        try:
            await write_pseudo_dialogue(transcript, side, ask, self.settings.attempts)
        except AnswerError as error:
            self._status = "failed"
            self._error = Failure(error.code, str(error))

    def _journal(self, outcome: Outcome, conversation_attempt: int) -> Turn:
        line = turn_line(outcome, conversation_attempt)
        if outcome.status in ("ok", "rejected"):
            self.on_turn(line)
        turn: Turn = orjson.loads(line)
        return turn

    def _journalled_turn(self, conversation_attempt: int, number: int) -> Turn | None:
        """The turn of that number as an earlier start has left it; None from the first turn on that it has not."""
        turn = self.journalled.get((conversation_attempt, number)) if self._replays else None
        self._replays = turn is not None
        return turn

    async def _ask(
        self,
        scheduler: Scheduler,
        transcript: Transcript,
        side: int,
        turn: int,
        options: TurnOptions,
        first_attempt: int,
    ) -> Outcome:
        of_turn = self.request._replace(
            agent=self.pair[side],
            row=StimulusRow.of(transcript.shown()),
            turn=turn,
            options=options,
            first_attempt=first_attempt,
        )
        return await scheduler.answer(of_turn)


def _findings(judgements: list[Judgement]) -> tuple[Finding, ...]:
    return tuple(judgement.finding() for judgement in judgements)
