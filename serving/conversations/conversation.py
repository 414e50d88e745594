"""A conversation of two agents through the scheduler, on the conversation's clock.

Journalled turns are replayed. The turn attempts of conversation attempt c (from 0) begin at :data:`STRIDE` c."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from agents.answers import TurnAnswer, is_blank
from agents.errors import AnswerError
from agents.language.filters.policies import Judgement, Policy
from agents.stimuli import ConversationStimulus, parse_row
from serving.conversations.journal import Turn, Turns, add_costs, turn_line
from serving.conversations.pseudo import write_pseudo_dialogue
from serving.conversations.scenario import SIDES, PairSettings, draw_scenario
from serving.conversations.transcript import Instructions, Transcript, no_instructions
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import AgentRequest

STRIDE = 10_000
Options = Mapping[str, Any]


@dataclass(slots=True)
class Conversation:
    """A conversation of ``pair`` about ``row``; ``writers`` write pseudo-dialogues, ``on_turn`` gets journal lines."""

    name: str
    pair: tuple[str, str]
    row: bytes
    sample: int
    run_seed: int
    order: int
    policy: Policy = field(default_factory=Policy)
    settings: PairSettings = field(default_factory=PairSettings)
    instructions: tuple[Instructions, Instructions] = (no_instructions, no_instructions)
    writers: tuple[bool, bool] = (False, False)
    journalled: Turns = field(default_factory=dict)
    on_turn: Callable[[bytes], None] = lambda line: None
    failed_before: str = ""
    _replays: bool = field(init=False, default=True)
    _turns: list[Turn] = field(init=False, default_factory=list)  # of all attempts

    async def run(self, scheduler: Scheduler) -> AgentRequest:
        """Hold the conversation; returns a request that it answers. Raises AgentStoppedError."""
        stimulus = parse_row(self.row)
        assert isinstance(stimulus, ConversationStimulus)
        result = AgentRequest(self.pair[0], self.row, stimulus.id, self.sample, self.run_seed, self.name)
        result.sha256 = hashlib.sha256(self.row).hexdigest()
        if stimulus.pseudo is not None and not any(self.writers):
            result.draw_seed()
            result.fail("unsupported_pseudo", "neither agent writes pseudo-dialogues")
            return result
        for result.attempt in range(self.settings.attempts):
            drawn = draw_scenario(stimulus, result.draw_seed())
            settings = self.settings
            transcript = Transcript(
                drawn,
                self.pair,
                self.instructions,
                self.policy,
                settings.thresholds,
                self.sample,
                result.seed,
                settings.delays,
                settings.quiet_s,
            )
            verdicts = await self._hold(scheduler, transcript, result)
            result.raw = transcript.raw_json()
            has_answer = transcript.messages or result.status != "failed"
            result.answer = transcript.answer().model_dump_json().encode() if has_answer else None
            if verdicts:
                result.attempts.append(result.attempt_record(verdicts))
            if result.status != "rejected":
                break
        add_costs(result, self._turns)
        return result

    async def _hold(self, scheduler: Scheduler, transcript: Transcript, result: AgentRequest) -> list[dict[str, Any]]:
        result.status = "ok"
        if transcript.stimulus.pseudo is not None:
            await self._write_pseudo(scheduler, transcript, result)
            if result.status != "ok":
                return []
        while not transcript.ended:
            turn, judgements = await self._turn(scheduler, transcript, result.attempt)
            self._take(turn, result)
            transcript.raws.append(turn["raw"])
            if result.status != "ok":
                last = turn["attempts"][-1]["verdicts"] if result.status == "rejected" and turn["attempts"] else []
                return [verdict for verdict in last if verdict["rejected"]]
            transcript.add(TurnAnswer.model_validate(turn["answer"]))
            if rejected := [judgement for judgement in judgements if judgement.rejected]:
                result.status = "rejected"
                return _verdicts(rejected)
        # Nothing is sampled again for what the history did before the two spoke.
        return [{**verdict, "rejected": False} for verdict in _verdicts(transcript.judge_all())]

    def _take(self, turn: Turn, result: AgentRequest) -> None:
        self._turns.append(turn)
        result.attempts += turn["attempts"]
        result.status = turn["status"]
        result.error = turn["error"] and tuple(turn["error"])

    async def _turn(
        self, scheduler: Scheduler, transcript: Transcript, conversation_attempt: int
    ) -> tuple[Turn, list[Judgement]]:
        if (opener := transcript.opener()) is not None:
            return {"status": "ok", "error": None, "answer": opener.model_dump(), "attempts": [], "raw": None}, []
        known = self._known(conversation_attempt, transcript.number)
        if known is not None:
            is_ok = known["status"] == "ok"
            return known, transcript.judge_next(TurnAnswer.model_validate(known["answer"])) if is_ok else []
        earlier: list[dict[str, Any]] = []
        judgements: list[Judgement] = []
        first_attempt = STRIDE * conversation_attempt
        for attempt in range(1, self.settings.attempts + 1):
            side = transcript.side
            options = {"speaker": SIDES[side], "turn": len(transcript.messages)}
            request = await self._ask(scheduler, transcript, side, transcript.number, options, first_attempt)
            request.attempts = [*earlier, *request.attempts]
            if request.status != "ok":
                judgements = []
                break
            answer = TurnAnswer.model_validate_json(request.answer or b"")
            judgements = transcript.judge_next(answer)
            bad = [judgement for judgement in judgements if judgement.action == "resample_turn"]
            if not bad or attempt == self.settings.attempts:
                if is_blank(answer.text) and not any(judgement.rejected for judgement in judgements):
                    request.fail("bad_turn", "no message has any text")
                break
            earlier = [*request.attempts, request.attempt_record(_verdicts(bad))]
            first_attempt = request.first_attempt + request.attempt + 1
        return self._journal(request, conversation_attempt), judgements

    async def _write_pseudo(self, scheduler: Scheduler, transcript: Transcript, result: AgentRequest) -> None:
        side = self.writers.index(True)

        async def ask(number: int, options: Options) -> Turn:
            turn = self._known(result.attempt, number)
            if turn is None:
                request = await self._ask(scheduler, transcript, side, number, options, STRIDE * result.attempt)
                turn = self._journal(request, result.attempt)
            self._take(turn, result)
            return turn

        try:
            await write_pseudo_dialogue(transcript, side, ask, self.settings.attempts)
        except AnswerError as error:
            result.fail(error.code, str(error))

    def _journal(self, request: AgentRequest, conversation_attempt: int) -> Turn:
        line = turn_line(request, conversation_attempt)
        if request.status in ("ok", "rejected"):
            self.on_turn(line)
        turn: Turn = orjson.loads(line)
        return turn

    def _known(self, conversation_attempt: int, turn: int) -> Turn | None:
        known = self.journalled.get((conversation_attempt, turn)) if self._replays else None
        self._replays = known is not None
        return known

    async def _ask(
        self, scheduler: Scheduler, transcript: Transcript, side: int, turn: int, options: Options, first_attempt: int
    ) -> AgentRequest:
        return await scheduler.answer(
            self.pair[side],
            transcript.shown(),
            self.sample,
            seed=self.run_seed,
            turn=turn,
            options=options,
            name=self.name,
            order=self.order,
            first_attempt=first_attempt,
            failed_before=self.failed_before,
        )


def _verdicts(judgements: list[Judgement]) -> list[dict[str, Any]]:
    return [asdict(judgement.finding()) for judgement in judgements]
