"""A card: what one command found out about a model, as values. ``docs/card.schema.json`` describes ``card.json``.

Nothing is computed twice: who passes, by which judge and with which interval, are the rows of ``scores.json`` in the
card's folder. So a card cannot claim anything else than the page of scores does.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import InputError
from agents.stimuli import Asked
from judging.statistics.tables import Estimate
from serving.files.row_problems import as_problems
from serving.files.words import count

FEW_PEOPLE = 6  # judges: fewer are too few to speak of others
FEW_ANSWERS = 10
JudgeKind = Literal["classifier", "language model", "people", "other"]


class CardPart(BaseModel):
    """What all parts of a card have in common."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False, populate_by_name=True
    )


class Figure(CardPart):
    """A figure with its 95 % interval."""

    value: float | None
    """The figure; null for none."""
    low: float | None
    """The interval's lower end; null without an interval."""
    high: float | None
    """Its upper end, likewise."""

    @classmethod
    def of(cls, estimate: Estimate) -> Self:
        """An estimate as a card has it: NaN becomes null."""
        return cls(value=_finite(estimate.value), low=_finite(estimate.low), high=_finite(estimate.high))

    @property
    def estimate(self) -> Estimate:
        """The figure as tables and pages print it."""
        return Estimate(_or_nan(self.value), _or_nan(self.low), _or_nan(self.high))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


class JudgeResult(CardPart):
    """What one judge's verdicts say of an agent's answers to one task."""

    judge: str
    """Its name in the catalogue, or of a variant."""
    kind: JudgeKind
    """What kind of judge it is."""
    outcome: str
    """The outcome of :mod:`judging.scores.conclusions`, such as "passes" or "may or may not pass"."""
    why: str
    """The figures behind it, in words."""
    more: str
    """What more would decide, in words; "" where it is decided."""
    detectability: Figure
    """The mean of p(H|H) and p(M|M), 0.5 is chance, with its 95 % interval."""
    corrected: Figure | None
    """The same, corrected for answers that participants did not write; null where the pool has no traces, or they do
    not tell enough."""
    p_human: float | None
    """The share of participants' answers that it took for a person's."""
    p_machine: float | None
    """The share of the agent's answers that it took for a machine's."""
    of_people: int
    """How many answers of participants it judged."""
    of_agent: int
    """How many answers of the agent it judged."""
    least_stimuli: int | None
    """How many stimuli are needed at the least, so that an agent that cannot be told passes in half of all cases by
    this judge; null where there are as many."""
    above_cue: Figure
    """Its detectability minus that of the best single cue, in points; null without one."""
    missing: int
    """How many verdicts it did not give: refused, unparsed or failed."""


class Tell(CardPart):
    """A property that was taken away from all answers, the agent's and participants'. If a judge then tells them apart
    less often, it went by this property: a cause, and no correlation (``docs/tells.md``)."""

    tell: str
    """The name of the transformation, such as "length"."""
    judge: str
    """Who judged, and learned anew on each version of the answers."""
    taken: Literal["alone", "last"]
    """Whether all other properties were there ("alone"), or had been taken away ("last"). Where two properties tell the
    same, taking one of them away changes little, and taking away the last one much."""
    summary: str
    """What was taken away, in words."""
    before: float | None
    """Detectability with the property, 0.5 is chance."""
    after: float | None
    """Detectability without it."""
    change: Figure
    """``before`` minus ``after``, with its 95 % interval."""
    p: float | None
    """p of no change, corrected by Holm for all tells of this agent and judge; null without a test."""


class Remaining(CardPart):
    """What a judge still tells when all properties are taken away."""

    judge: str
    """Who judged."""
    detectability: Figure
    """The detectability of answers without any of the properties, 0.5 is chance."""


class Cue(CardPart):
    """A property of answers by which a judge that looks at nothing else tells the agent from participants."""

    cue: str
    """The judge that goes by this property alone, such as "cue-length"."""
    summary: str
    """What it looks at."""
    detectability: Figure
    """Its detectability, 0.5 is chance, with the 95 % interval."""


class Beside(CardPart):
    """Answers to one stimulus, side by side."""

    stimulus: str
    """Its name in the pool."""
    shown: str
    """What is shown of the stimulus: a cue, a topic, the name of a picture."""
    participants: Sequence[str]
    """What participants answered, in words."""
    agent: Sequence[str]
    """What the agent answered, in words; a failure is told in words."""


class Usage(CardPart):
    """What the agent's answers to one task took."""

    ok: int
    """How many answers there are."""
    rejected: int
    """How many stimuli have no answer that a filter let pass."""
    failed: int
    """How many ended with an error."""
    unanswered: int
    """How many stimuli have no record yet."""
    attempts: int
    """How many attempts that was; a filter may refuse one, and the next is made."""
    refusals: int
    """How many attempts a filter refused because the agent refused to answer."""
    seconds: float
    """The agent's own time in seconds: preparing and responding; an answer counts its share of its batch."""
    tokens: Mapping[str, int] | None
    """Tokens of prompts and replies; None where the agent does not count any."""
    cost: float | None
    """The tokens times ``--price-token``; None without a price or without tokens."""
    failures: Sequence[str]
    """The most frequent failures, in words."""


class TaskResult(CardPart):
    """An agent in one task."""

    task: Asked
    """What was answered, in full: "word_association"."""
    pool: str
    """The pool whose participants it is compared with, "words-1910/1"."""
    stimuli: int
    """How many stimuli it was asked."""
    outcome: str
    """The outcome by all judges: it does not pass if one of them tells it from people."""
    sentence: str
    """The same in one sentence."""
    judges: Sequence[JudgeResult]
    """Judge by judge, those that look at whole answers."""
    cues: int
    """How many judges by a single cue were tried. The one that sees order, ids and files alone is not among them."""
    strongest_cues: Sequence[Cue]
    """Of these the three strongest whose whole interval is above chance. Being chosen, they look stronger than they
    are; and they are correlations, which prove no cause."""
    best_cue: Cue | None
    """The strongest cue, whatever its interval; null where none was tried."""
    tells: Sequence[Tell]
    """Each property that was taken away, in both ways; those with the smallest p first. Empty where ``no_tells`` says
    why."""
    remaining: Sequence[Remaining]
    """What each judge still tells when all these properties are gone."""
    no_tells: str
    """Why no property was taken away, in a sentence; "" where some were."""
    leak: Cue | None
    """The judge that sees order, ids and files alone, where its whole interval is above chance: then something besides
    the answers gives away whose they are. Null where it is not."""
    usage: Usage
    """What the answers took."""
    beside: Sequence[Beside]
    """Some answers beside those of participants."""


class AgentResult(CardPart):
    """An agent, with what is needed to ask it again, and its results task by task."""

    agent: str
    """Its name in records; a pair that was tested as a pair has both names, ``a~b``."""
    provenance: Mapping[str, Mapping[str, Any]]
    """By name in the run its entry of ``run.json``: settings, checkpoint, revision, digest, versions."""
    tasks: Sequence[TaskResult]
    """Its results, in the order of the tasks."""


class PoolContamination(CardPart):
    """How many of the participants' answers they did not write, by the traces of how they were written."""

    rate: Figure
    """The share of answers, 0 to 1, with its 95 % interval; null where it cannot be estimated."""
    answers: int
    """How many answers have traces."""
    persons: int
    """How many participants gave these."""
    why: str
    """Why the rate cannot be estimated; "" where it is."""


class PoolUsed(CardPart):
    """A pool that the card stands on."""

    pool: str
    """Its name and version."""
    task: Asked
    """What these people answered."""
    source: str
    """Who published the answers."""
    licence: str
    """Under which licence."""
    collected: str
    """How the answers were collected."""
    participants: int | None
    """How many people answered, as the manifest says; null where it does not."""
    names: int
    """How many participants the file names; 0 where it names none."""
    answers: int
    """How many answers the card's run has of them."""
    sha256: str
    """The checksum of the file that was read."""
    contamination: PoolContamination | None
    """The contamination of the answers; null where the pool has no traces: then nobody knows."""
    verified: bool
    """Whether the manifest names this checksum; if not, nobody has verified that it is the published file."""


class AgentCalibration(CardPart):
    """How often one agent's answers were taken for a person's, by the AI judge and by people."""

    agent: str
    """Whose answers; "people" are those of participants."""
    trials: int
    """How many answers both judged."""
    judge_says: float
    """The share that the AI judge took for a person's, 0 to 1; an answer counts once for each person who judged it."""
    people_say: float
    """The share that people took for a person's, likewise."""
    difference: Figure
    """The first minus the second."""


class Calibration(CardPart):
    """How well an AI judge predicts people's verdicts on the answers to one task."""

    task: Asked
    """The task that was answered."""
    judge: str
    """The AI judge."""
    pool: str
    """The pool whose verdicts of people these are."""
    is_trained: bool
    """Whether the judge learned from these trials. On the card itself it learned from others, so that this is a figure
    of the method."""
    trials: int
    """How many answers both judged."""
    without_verdict: int
    """How many further answers people judged, of which the AI judge gave no verdict."""
    people: int
    """How many people judged these."""
    agreement: Figure
    """The share of people's verdicts that are the AI judge's, 0 to 1."""
    constant: Literal["human", "machine"]
    """The one word that people said most often."""
    constant_agrees: float
    """The share of people's verdicts that are this word: a judge that always says it would agree so often."""
    above_constant: Figure
    """The agreement minus that."""
    people_agree: Figure
    """How often two people say the same of an answer, 0 to 1; null where no answer has two verdicts. Single people
    scatter, so that a judge may agree with them more often than they do."""
    after_human: Figure
    """Where the AI judge says human: the share of people who say so, too."""
    after_machine: Figure
    """Where it says machine: the share of people who say human."""
    agents: Sequence[AgentCalibration] = ()
    """The same agent by agent, people's answers first."""

    @property
    def in_words(self) -> str:
        """One sentence for the page."""
        text = (
            f"{self.judge} says what a person says in {_percent(self.agreement)} of verdicts; always saying "
            f"{self.constant} would in {100 * self.constant_agrees:.0f} %"
        )
        if self.people_agree.value is not None:
            text += f"; two people say the same in {_percent(self.people_agree)}"
        return f"{text} ({count(self.trials, 'answer')}, {count(self.people, 'person', 'people')}){self._limits()}"

    def _limits(self) -> str:
        """For whom these figures hold, and what is missing in them; "" for nothing."""
        parts = []
        if self.people == 1:
            parts.append("this holds for this person only")
        elif self.people < FEW_PEOPLE or self.trials < FEW_ANSWERS:
            parts.append("these are too few to speak of others")
        if self.is_trained:
            parts.append(f"{self.judge} was trained anew on those answers, so that this is of the method")
        if self.without_verdict:
            parts.append(f"{self.without_verdict:,} further answers have no verdict of {self.judge}")
        return "".join(f"; {part}" for part in parts)


def _percent(share: Figure) -> str:
    value = 100 * (share.value or 0)
    if share.low is None or share.high is None:
        return f"{value:.0f} %"
    return f"{value:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f} %)"


class PublishedAgent(CardPart):
    """An agent of the papers on the same scale."""

    task: Asked
    """What it answered."""
    agent: str
    """The agent as the paper calls it."""
    paper: str
    """The year of the paper."""
    kind: JudgeKind
    """Who judged there."""
    detectability: float
    """The printed detectability, or the mean of the printed p(H|H) of the task and p(M|M) of the agent."""
    is_mean: bool
    """Whether it is such a mean."""
    source: str
    """Where it is printed."""
    note: str
    """What must be known of the printed figure; "" for nothing."""


class Card(CardPart):
    """All that a card says."""

    schema_: Literal["turinglike.card/1"] = Field(default="turinglike.card/1", alias="schema")
    """The version of this form."""
    turinglike: str
    """The version of the program."""
    created: str
    """When the agent's run began, ISO 8601 in UTC."""
    bounds: float
    """An agent passes if the 90 % interval of its detectability lies within 0.5 ± this."""
    agents: Sequence[AgentResult]
    """Those that were tested: those of pairs first, then the others as they were named."""
    pools: Sequence[PoolUsed]
    """The pools that the card stands on."""
    left_out: Sequence[str] = ()
    """Sentences on what could not be tested, and why."""
    published: Sequence[PublishedAgent] = ()
    """Agents of the papers in the same tasks."""
    calibration: Sequence[Calibration] = ()
    """How well the AI judges predict people's verdicts; empty where no pool has verdicts of people."""
    commands: Sequence[str] = ()
    """The lines of the commands that made the card."""

    def as_json(self) -> bytes:
        """The content of ``card.json``."""
        return orjson.dumps(self.model_dump(by_alias=True), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_card(text: bytes, where: str) -> Card:
    """The card in the bytes of a ``card.json``. Raises InputError with everything that is wrong with it."""
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{where}: is not JSON: {error}") from None
    try:
        return Card.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{where} is no card that this version reads", as_problems(error, where)) from None


def card_schema() -> dict[str, Any]:
    """The JSON Schema of ``card.json``."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Card.model_json_schema(by_alias=True)}
