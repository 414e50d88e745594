"""A conversation's scenario: what it is about, how the speakers are called, who begins; and a pair's settings.

The topics, names and personas that are drawn are those of the papers.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from agents.answers import ConversationAnswer, Message, TurnAnswer
from agents.contract import Agent, Settings
from agents.errors import InputError, bad_settings
from agents.language.filters.policies import FilterSettings, Policy, papers_policy
from agents.stimuli import ConversationStimulus, ConversationType
from serving.scheduling.request import Outcome

TOPICS = (
    "fashion",
    "politics",
    "books",
    "sports",
    "general entertainment",
    "music",
    "science",
    "technology",
    "movies",
    "food",
)
PERSONAS = (
    ("logical and skeptical", "excitable and passionate", "sarcastic and witty", "serious and intellectual"),
    ("curious and open-minded", "pragmatic and reserved", "opinionated and strong-willed", "friendly and cheerful"),
)
NAMES = (
    (
        "John",
        "Alice",
        "Mark",
        "Andrew",
        "Julia",
        "Georgia",
        "Juliet",
        "Lily",
        "Olivia",
        "Emmett",
        "Miles",
        "Oscar",
        "William",
    ),
    (
        "Frank",
        "Tom",
        "Elizabeth",
        "Gabriel",
        "Paul",
        "Alfie",
        "Christina",
        "Edward",
        "Ella",
        "Oliver",
        "Karen",
        "Isabel",
        "Brad",
    ),
)
SIDES = ("A", "B")
QUIET_S = 5.0  # X-Turing's t1 is not in the texts that are known here: a guess


def draw_scenario(stimulus: ConversationStimulus, seed: int) -> ConversationStimulus:
    """The stimulus with the fields filled that it leaves open: topic, names, personas and who starts.

    Each is drawn from ``seed`` whether it is needed or not, so that a field that is given changes none of the others.
    """
    numbers = random.Random(seed)
    drawn = {
        "topic": numbers.choice(TOPICS),
        "names": tuple(numbers.choice(names) for names in NAMES),
        "personas": tuple(numbers.choice(personas) for personas in PERSONAS),
        "who_starts": numbers.choice(SIDES),
    }
    full = stimulus.model_copy(update={key: value for key, value in drawn.items() if getattr(stimulus, key) is None})
    history = [line.model_copy(update={"speaker": speaker_name(line.speaker, full.names)}) for line in full.history]
    return full.model_copy(update={"history": history}) if history else full


def speaker_name(speaker: str, names: Sequence[str] | None) -> str:
    """The name of the speaker "A" or "B" of a history, if neither letter is itself one of ``names``; else
    ``speaker``."""
    return names[SIDES.index(speaker)] if names and speaker in SIDES and not {*SIDES} & {*names} else speaker


# a message of an agent after a history


def next_side(stimulus: ConversationStimulus) -> int:
    """The side that writes the next message after the stimulus's history; A where nothing says who starts."""
    if not stimulus.history:
        return SIDES.index(stimulus.who_starts or "A")
    return int(stimulus.history[-1].speaker == (stimulus.names or SIDES)[0])


def next_turn(stimulus: ConversationStimulus) -> tuple[int, dict[str, Any]]:
    """The number of the next message after the stimulus's history, and the options of the request for it."""
    turn = len(stimulus.history)
    return turn, {"speaker": SIDES[next_side(stimulus)], "turn": turn}


def as_conversation(outcome: Outcome) -> ConversationAnswer:
    """The answered message in a conversation record's form."""
    stimulus = outcome.request.row.parsed()
    assert isinstance(stimulus, ConversationStimulus)
    fields = TurnAnswer.model_validate_json(outcome.answer or b"").model_dump()
    speaker = (stimulus.names or SIDES)[next_side(stimulus)]
    turn = len(stimulus.history)
    return ConversationAnswer(messages=[Message(turn=turn, speaker=speaker, agent=outcome.request.agent, **fields)])


def is_message(outcome: Outcome) -> bool:
    """Whether an outcome is a message of a conversation, and no answer of its own. A failed one is none."""
    return outcome.request.turn is not None and outcome.answer is not None


def as_recorded(outcome: Outcome) -> Outcome:
    """The outcome as a record has it: a message in the form of a conversation, anything else as it is."""
    if is_message(outcome):
        return outcome._replace(answer=as_conversation(outcome).model_dump_json().encode())
    return outcome


class DelaySettings(Settings):
    """How long a speaker takes over a message: reading the one before, thinking, and typing.

    base + N(type_mean, type_sd) x letters written + N(read_mean, read_sd) x letters read + Gamma(think_shape,
    think_scale)

    Form and constants follow Jones and Bergen (2023, "Does GPT-4 pass the Turing test?"). They were not checked against
    their program.
    """

    model_config = ConfigDict(strict=True)

    base: float = Field(1.0, ge=0, le=3600)
    """Seconds before every message."""
    type_mean: float = Field(0.3, ge=0, le=60)
    """Seconds to type a letter, on average."""
    type_sd: float = Field(0.03, ge=0, le=60)
    """The standard deviation of the seconds to type a letter."""
    read_mean: float = Field(0.03, ge=0, le=60)
    """Seconds to read a letter, on average."""
    read_sd: float = Field(0.003, ge=0, le=60)
    """The standard deviation of the seconds to read a letter."""
    think_shape: float = Field(2.5, gt=0, le=1000)
    """The shape of the gamma distribution of the seconds to think."""
    think_scale: float = Field(0.25, ge=0, le=3600)
    """The scale of that distribution in seconds; with 0 nobody thinks."""

    def draw(self, written: int, read: int, numbers: random.Random) -> float:
        """The seconds, 0 or more, before a message of ``written`` letters after one of ``read`` letters; ``numbers``
        gives the random numbers."""
        typing = numbers.gauss(self.type_mean, self.type_sd) * written
        reading = numbers.gauss(self.read_mean, self.read_sd) * read
        thinking = numbers.gammavariate(self.think_shape, self.think_scale) if self.think_scale else 0.0
        return max(0.0, self.base + typing + reading + thinking)


class PairSettings(Settings):
    """What the conversation filters lead to, and how often a conversation is tried."""

    policy: Policy | None = None
    """What each filter leads to; by default the papers' policy for the families of the two agents."""
    thresholds: FilterSettings = FilterSettings()
    """From which values on the filters find something."""
    attempts: int = Field(5, ge=1, le=100)
    """How often a turn is tried, and how often a whole conversation."""
    delays: DelaySettings = DelaySettings()
    """How long both speakers take over a message, on the conversation's own clock."""
    quiet_s: float = Field(QUIET_S, ge=0, le=3600)
    """Seconds that the other speaker of a burst dialogue must be quiet before an agent is called."""

    def policy_for(self, kind: ConversationType, pair: Sequence[Agent[Any]]) -> Policy:
        """What the filters lead to in a conversation of that type of the two agents."""
        first, second = pair
        return self.policy or papers_policy(kind, first.declaration().family, second.declaration().family)


def read_pair_settings(name: str, values: Mapping[str, Any] | None) -> PairSettings:
    """The settings of the pair ``name``. Raises InputError with every fault."""
    try:
        return PairSettings.model_validate(values or {})
    except ValidationError as error:
        problems = bad_settings(name, PairSettings.model_fields, error.errors(include_url=False))
        raise InputError(f"pair {name}: bad settings", problems) from None
