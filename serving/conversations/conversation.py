"""A conversation: a coroutine that asks its two agents for one turn after the other, through the scheduler.

It holds no device. Every accepted turn goes into the run's journal; a conversation that is resumed takes its turns
from there and goes on where it ended.

What its filters find may mean that a turn, or the whole conversation, is sampled again (see
:mod:`agents.language.filters`). The first attempt of a turn has number 0, further ones count on; those in the c-th
attempt at the conversation (from 0) begin at :data:`STRIDE` c. Everything that is drawn for the conversation (topic,
names, personas, who starts) comes from the seed of that attempt. Filters are pure functions, so a conversation that is
replayed is rejected again where it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from agents.answers import TurnAnswer
from agents.language.filters.policies import Judgement, Policy
from agents.stimuli import ConversationStimulus, parse_row
from serving.conversations.burst import BurstTranscript
from serving.conversations.journal import Turn, Turns, add_costs, turn_line
from serving.conversations.policies import PairSettings
from serving.conversations.pseudo import NothingWritten, write_pseudo_dialogue
from serving.conversations.scenario import SIDES, draw_scenario
from serving.conversations.transcript import Instructions, Transcript, no_instructions
from serving.scheduling.request import AgentRequest
from serving.scheduling.scheduler import Scheduler

STRIDE = 10_000


@dataclass(slots=True)
class Conversation:
    """One conversation of the pair ``name`` = (``first``, ``second``) about one stimulus.

    ``policy`` says what is done about bad turns, ``settings`` all else. ``instructions`` are the two agents'
    :meth:`agents.contract.Agent.instructions`; ``writers`` says which of them write pseudo-dialogues. ``journalled``
    turns are replayed, ``on_turn`` is called with each new one's journal line. ``failed_before`` is the code of the
    failure that is tried again.
    """

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
        """Hold the conversation; returns what the scheduler would, with the whole conversation as its answer. Raises
        AgentStoppedError if one of the two stops."""
        stimulus = parse_row(self.row)
        assert isinstance(stimulus, ConversationStimulus)
        whole = AgentRequest(self.pair[0], self.row, stimulus.id, self.sample, self.run_seed, self.name)
        whole.sha256 = hashlib.sha256(self.row).hexdigest()
        if stimulus.pseudo is not None and not any(self.writers):
            whole.draw_seed()
            whole.fail("unsupported_pseudo", "neither agent writes pseudo-dialogues")
            return whole
        for whole.attempt in range(self.settings.attempts):
            transcript = self._transcript(draw_scenario(stimulus, whole.draw_seed()), whole.seed)
            verdicts = await self._hold(scheduler, transcript, whole)
            whole.raw = transcript.raw_json()
            has_answer = transcript.messages or whole.status != "failed"
            whole.answer = transcript.answer().model_dump_json().encode() if has_answer else None
            if verdicts:
                whole.attempts.append(whole.attempt_record(verdicts))
            if whole.status != "rejected":
                break
        add_costs(whole, self._turns)
        return whole

    def _transcript(self, drawn: ConversationStimulus, seed: int) -> Transcript:
        chosen = self.settings
        about = (drawn, self.pair, self.instructions, self.policy, chosen.thresholds, self.sample, seed, chosen.delays)
        return BurstTranscript(*about, quiet_s=chosen.quiet_s) if drawn.mode == "burst" else Transcript(*about)

    async def _hold(self, scheduler: Scheduler, transcript: Transcript, whole: AgentRequest) -> list[dict[str, Any]]:
        """One attempt at the conversation: puts its status into ``whole`` and returns what the filters found; where an
        agent's own end it, what these found in the turn's last attempt."""
        whole.status = "ok"
        if transcript.stimulus.pseudo is not None and not await self._write_pseudo(scheduler, transcript, whole):
            return []
        while not transcript.ended:
            turn, rejected = await self._turn(scheduler, transcript, whole)
            self._turns.append(turn)
            whole.attempts += turn["attempts"]
            transcript.raws.append(turn["raw"])
            if turn["status"] != "ok":
                whole.status, whole.error = turn["status"], turn["error"] and tuple(turn["error"])
                last = turn["attempts"][-1]["verdicts"] if whole.status == "rejected" and turn["attempts"] else []
                return [verdict for verdict in last if verdict["rejected"]]
            transcript.add(TurnAnswer.model_validate(turn["answer"]))
            if rejected:
                whole.status = "rejected"
                return [asdict(one.verdict()) for one in rejected]
        # Nothing is sampled again for what the history did before the two spoke.
        return [{**asdict(one.verdict()), "rejected": False} for one in transcript.judge_whole()]

    async def _turn(
        self, scheduler: Scheduler, transcript: Transcript, whole: AgentRequest
    ) -> tuple[Turn, list[Judgement]]:
        """One turn, and for which findings the conversation ends with it.

        A turn that is to be sampled again is, as often as the rules allow; after that the conversation is.
        """
        if (opener := transcript.opener()) is not None:
            return {"status": "ok", "answer": opener.model_dump(), "attempts": [], "raw": None}, []
        known = self._known(whole.attempt, transcript.number)
        if known is not None:
            found = transcript.judge_next(known["answer"]["text"]) if known["status"] == "ok" else []
            return known, [one for one in found if one.rejected]
        earlier: list[dict[str, Any]] = []
        number = STRIDE * whole.attempt
        found = []
        for attempt in range(1, self.settings.attempts + 1):
            side, turn = transcript.side, transcript.number
            options = {"speaker": SIDES[side], "turn": len(transcript.messages)}
            request = await self._ask(scheduler, transcript.shown(), side, turn, options, number)
            if request.status == "ok" and (why := transcript.why_unreadable(request.answer)) is not None:
                request.status, request.error = "failed", ("bad_turn", why)
            request.attempts = [*earlier, *request.attempts]
            if request.status != "ok":
                found = []
                break
            found = transcript.judge_next(TurnAnswer.model_validate_json(request.answer or b"").text)
            bad = [one for one in found if one.action == "resample_turn"]
            if not bad or attempt == self.settings.attempts:
                why = transcript.why_unusable(request.answer)
                if why is not None and not any(one.rejected for one in found):
                    request.status, request.error = "failed", ("bad_turn", why)
                break
            earlier = [*request.attempts, request.attempt_record([asdict(one.verdict()) for one in bad])]
            number = request.first_attempt + request.attempt + 1
        return self._journalled(request, whole.attempt), [one for one in found if one.rejected]

    async def _write_pseudo(self, scheduler: Scheduler, transcript: Transcript, whole: AgentRequest) -> bool:
        """Whether the pseudo-dialogue is there; where not, ``whole`` says why."""
        side = self.writers.index(True)

        async def ask(number: int, options: Mapping[str, Any]) -> Turn:
            turn = self._known(whole.attempt, number)
            if turn is None:
                first_attempt = STRIDE * whole.attempt
                request = await self._ask(scheduler, transcript.shown(), side, number, options, first_attempt)
                turn = self._journalled(request, whole.attempt)
            self._turns.append(turn)
            whole.attempts += turn["attempts"]
            return turn

        try:
            failed = await write_pseudo_dialogue(transcript, side, ask, self.settings.attempts)
        except NothingWritten:
            whole.fail("no_pseudo_dialogue", f"{self.pair[side]} wrote nothing that could be read, however often asked")
            return False
        if failed is not None:
            whole.status, whole.error = failed["status"], failed["error"] and tuple(failed["error"])
        return failed is None

    def _journalled(self, request: AgentRequest, attempt: int) -> Turn:
        """A turn as it stands in the journal. What failed is not journalled: it may be asked again."""
        line = turn_line(request, attempt)
        if request.status in ("ok", "rejected"):
            self.on_turn(line)
        found: Turn = orjson.loads(line)
        return found

    def _known(self, attempt: int, turn: int) -> Turn | None:
        """A turn that is replayed; none once one was asked anew, as what comes after it was said after another."""
        known = self.journalled.get((attempt, turn)) if self._replays else None
        self._replays = known is not None
        return known

    async def _ask(
        self,
        scheduler: Scheduler,
        shown: ConversationStimulus,
        side: int,
        turn: int,
        options: Mapping[str, Any],
        first_attempt: int,
    ) -> AgentRequest:
        return await scheduler.answer(
            self.pair[side],
            shown,
            self.sample,
            seed=self.run_seed,
            turn=turn,
            options=options,
            name=self.name,
            order=self.order,
            first_attempt=first_attempt,
            failed_before=self.failed_before,
        )
