"""The tables of ``study.toml``, each with its fields; :mod:`judging.study.design.settings` puts them together."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from agents.catalogue.named_models import is_model_name, plain_name
from agents.errors import InputError
from agents.stimuli import Asked
from serving.conversations.scenario import QUIET_S

TOPIC = "topic"
OBJECT = "object"
"""Words of ``trials.control``: what a conversation is about, what is in a picture or clip."""
OBJECT_TASKS: tuple[Asked, ...] = ("color_estimation", "object_detection", "attention_prediction", "image_captioning")
"""The tasks whose stimuli have objects to ask about."""
Before = Literal["age", "gender", "education", "country", "native_language", "ai_experience"]
After = Literal["engaging", "difficult", "comments"]
ASKED_BEFORE: tuple[str, ...] = get_args(Before)
"""Questions before the study's own steps, which are columns of ``participants.csv``."""
CLOSING: tuple[str, ...] = get_args(After)
"""Questions behind the study's own steps, which are columns of ``participants.csv``."""
PageText = Annotated[str, Field(max_length=20_000)]
Count = Annotated[int, Field(ge=0, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=3600)]
Number = Annotated[int, Field(ge=1, le=1000)]
Exchanges = Annotated[int, Field(ge=1, le=100)]
ShortText = Annotated[str, Field(max_length=100)]
Parameter = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
Key = Annotated[str, Field(pattern=r"^[a-z0-9]$")]


def _plain(name: object) -> object:
    try:
        return plain_name(name) if isinstance(name, str) and is_model_name(name) else name
    except InputError as error:
        raise ValueError(str(error)) from None


AgentName = Annotated[str, BeforeValidator(_plain), Field(pattern=r"^([a-z0-9][a-z0-9._-]*)?$")]
Server = Annotated[str, Field(pattern=r"^https?://\S+$")]


def refuse(is_broken: bool, why: str) -> None:
    """Raise the error of a validator where choices do not go together."""
    if is_broken:
        raise PydanticCustomError("choices", "{why}", {"why": why})


class StudyTable(BaseModel):
    """A table of ``study.toml``; a key that it does not have is an error."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, frozen=True, use_attribute_docstrings=True
    )


class Texts(StudyTable):
    """Texts of pages; an empty line begins a paragraph, an empty text leaves its page out."""

    title: PageText
    """The heading of all pages, and the browser's title."""
    institution: Annotated[str, Field(max_length=200)] = ""
    """Who runs the study, told on the first page; "" tells nobody."""
    duration_minutes: Annotated[int, Field(ge=0, le=1000)] = 0
    """How many minutes it takes, told on the first page; 0 tells an assumption from the number of pages."""
    welcome: PageText = ""
    """What will happen, told on the first page; "" lists the pages in their order."""
    consent: PageText = ""
    """What one agrees to before anything else."""
    instructions: PageText
    """What is to be done, before the first step."""
    thanks: PageText = ""
    """Said at the end to who has finished."""


class People(StudyTable):
    """Who takes part: the table ``judges`` or ``participants``."""

    wanted: Annotated[int, Field(ge=1, le=100_000)]
    """How many are to finish; then nobody new may begin."""
    most: Annotated[int, Field(ge=1, le=100_000)]
    """How many may have finished or be at it at one time; at least ``wanted``, for some will not finish."""
    entry: Literal["open", "links"] = "open"
    """Whether anybody may begin, or who has a personal link alone."""
    reload: Literal["resume", "block"] = "resume"
    """Whether who loads the page again goes on or is out."""
    hours: Annotated[float, Field(gt=0, le=10_000)] = 2.0
    """Hours without an act after which somebody's trials go to others."""
    worker: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,40}$")] = ""
    """The parameter of the address that has a panel's id of the person, such as PROLIFIC_PID; "" for none."""
    parameters: Annotated[list[Parameter], Field(max_length=10)] = Field(default_factory=list)
    """Further parameters of the address that are kept, such as STUDY_ID."""
    screen: Count = 0
    """CSS pixels that the shorter side of a screen must have; 0 for any."""
    break_every: Count = 0
    """Trials or stimuli after which the page offers a break; 0 for none."""

    @model_validator(mode="after")
    def _can_be(self) -> People:
        is_taken = not {"worker", "code", *ASKED_BEFORE, *CLOSING}.isdisjoint(self.parameters)
        refuse(is_taken, "parameters: has the name of a column of participants.csv")
        refuse(self.most < self.wanted, "most: must not be below wanted")
        return self


class Questions(StudyTable):
    """What participants are asked about themselves; the answers stand in ``personal.jsonl``."""

    before: list[Before] = Field(default_factory=list)
    """Asked before the instructions."""
    after: list[After] = Field(default_factory=list)
    """Asked at the end."""
    required: list[Before | After] = Field(default_factory=list)
    """Questions of either list that must be answered."""
    out: dict[Before, list[str]] = Field(default_factory=dict)
    """By question, the answers with which somebody takes no part."""
    public: bool = False
    """Whether exports have the answers beside the verdicts, to which the participants must have consented."""

    @model_validator(mode="after")
    def _are_there(self) -> Questions:
        refuse(not {*self.required} <= {*self.before, *self.after}, "required: has a question that is in no list")
        refuse(not self.out.keys() <= {*self.before}, "out: has a question that is not in before")
        return self


class Trials(StudyTable):
    """The trials of each judge, and what their page asks for."""

    number: Number
    """Pages of trials that count, without practice, catch trials and repeats."""
    practice: Count = 0
    """Pages before them, after which the truth is told."""
    feedback: Count = 0
    """How many of the first that count are followed by the truth."""
    catch: Share = 0.0
    """Catch trials that come to ``number``, as a share of it."""
    repeats: Share = 0.0
    """Trials that come a second time, as a share of ``number``."""
    choices: Literal["one", "both", "four"] = "one"
    """Conversations alone: a verdict on one speaker, on both, or one of the four pairs of verdicts."""
    prior_told: bool = False
    """Whether judges are told that half of the answers are people's."""
    sex: bool = False
    """Whether judges say for a woman or a man they take who answered."""
    confidence: bool = False
    """Whether judges say how sure they are."""
    reason: bool = False
    """Whether judges may say why, in their own words."""
    seconds_before: Seconds = 0.0
    """Seconds before one may answer."""
    play_once: bool = False
    """Whether a clip must have been seen once before one may answer."""
    control: Annotated[str, Field(max_length=1000)] = ""
    """The control question beside each trial: "topic", "object", the path of a table, or "" for none."""
    sample: bool = True
    """Whether the instructions show an answer of a person and one of a machine."""
    keys: list[Key] = Field(default_factory=lambda: ["f", "j"], min_length=2, max_length=2)
    """Keys for "human" and "machine", exchanged for every other judge."""

    @model_validator(mode="after")
    def _can_be(self) -> Trials:
        refuse(self.keys[0] == self.keys[1], "keys: must be two different ones")
        refuse(self.feedback > self.number, f"feedback: there are only {self.number} trials")
        return self


class End(StudyTable):
    """What somebody gets at the end, by which a panel pays."""

    code: ShortText = ""
    """The code of all who finish; "" gives each a random one."""
    failed_checks: ShortText = ""
    """The code of who finished with too few control questions right; "" gives that of all who finish."""
    screened_out: ShortText = ""
    """The code of who is out by an answer; "" gives none."""
    no_consent: ShortText = ""
    """The code of who declines or leaves; "" gives none."""
    redirect: Annotated[str, Field(pattern=r"^(https?://\S+)?$", max_length=2000)] = ""
    """An address to go to, in which {code}, {worker} and the names of ``parameters`` are replaced; "" for none."""


class Exclude(StudyTable):
    """Rules that mark verdicts as excluded; none is removed. No rule knows the truth, but that of catch trials."""

    finished: bool = True
    """Verdicts of judges who did not finish."""
    controls: Share = 0.0
    """Verdicts of judges with a smaller share of control questions right."""
    catch: Share = 0.0
    """Verdicts of judges who caught a smaller share of catch trials."""
    right: Annotated[float, Field(ge=0, le=0, exclude=True)] = 0.0
    """A rule of version 0.1, which must be 0."""
    one_sided: bool = False
    """Verdicts of judges who said the same in all trials."""
    native: bool = False
    """Verdicts of judges who did not say that the language is their first."""
    fastest: Seconds = 0.0
    """Verdicts that took fewer seconds."""
    wrong_control: bool = False
    """Verdicts beside a control question that was answered wrongly."""


class Analysis(StudyTable):
    """What is decided by the verdicts, stated before the study."""

    bounds: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    """An agent passes whose detectability is within 0.5 ± bounds; 0 decides on none."""


class Answers(StudyTable):
    """The answers of each participant."""

    number: Number
    """Stimuli, or conversations, of each."""
    checks: Literal["tell", "note"] = "tell"
    """What the papers' form would refuse: it is to be answered anew, or is kept with a flag."""


class TalkSettings(StudyTable):
    """Conversations of participants with each other, and with an agent."""

    agent: AgentName = ""
    """The agent that converses with a share of the participants; "" for none."""
    server: Server = "http://127.0.0.1:8001/"
    """The address of the `turinglike serve` that answers for it."""
    machines: Share = 0.0
    """The probability with which two who wait get the agent each, and not each other."""
    quiet_s: Seconds = QUIET_S
    """Seconds without a message after which the agent is asked in a burst dialogue."""
    seconds_in_lobby: Seconds = 300.0
    """Seconds after which somebody who waits is told that nobody came."""
    seconds_away: Seconds = 45.0
    """Seconds after which somebody who is not heard of has left, and the conversation is void."""
    guess: bool = True
    """Whether it is asked afterwards for whom one takes the other."""


class RolesOfAll(StudyTable):
    """What people are told of their part before a test."""

    judge: PageText
    """Told to the judge."""
    person_argues: PageText
    """Told to a person who is to be taken for one."""


class Roles(RolesOfAll):
    """The same for online tests."""

    person_deceives: PageText
    """Told to a person who poses as a machine."""


class TestsOfAll(StudyTable):
    """Live tests of either kind."""

    wanted: Annotated[int, Field(ge=1, le=100_000)]
    """Tests that are held to their end."""
    each: Exchanges = 1
    """In how many one participant may take part, one after the other."""
    two_machines: Share = 0.0
    """The share of tests in which both agents are machines."""
    two_people: Share = 0.0
    """The share of tests in which both agents are people."""
    seed: Annotated[int, Field(ge=0, lt=2**53)]
    """The seed of all that is drawn, such as who is the machine; a secret, for whoever knows it can draw it again."""
    seconds_in_lobby: Seconds = 300.0
    """Seconds after which somebody who waits is told that nobody came."""
    seconds_away: Seconds = 45.0
    """Seconds after which somebody who is not heard of has left, and the test is void."""
    seconds_to_act: Seconds = 180.0
    """Seconds after which somebody of whom an act is awaited has left as well."""

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        alike = self.two_machines + self.two_people
        refuse(alike > 1, "two_machines, two_people: are more than all tests together")
        return self


class Tests(TestsOfAll):
    """Online tests, by questions."""

    exchanges: list[Exchanges] = Field(default_factory=lambda: [1, 5, 10, 20], min_length=1, max_length=20)
    """Numbers of questions; equally many tests have each."""
    person_deceives: Share = 0.5
    """The share in which the person poses as a machine; in the others the machine poses as a person."""
    verdicts: Literal["each", "end"] = "end"
    """Whether the judge gives a verdict after each exchange, or after the last alone."""
    words_below: Annotated[int, Field(ge=2, le=1000)] = 15
    """An answer has fewer words, of people and machines alike."""

    @model_validator(mode="after")
    def _differ(self) -> Tests:
        refuse(len(set(self.exchanges)) < len(self.exchanges), "exchanges: has a number twice")
        return self


class TimedTests(TestsOfAll):
    """Interrogations, by the clock."""

    minutes: Annotated[float, Field(gt=0, le=120)]
    """How long both conversations are open."""
    quiet_s: Seconds = 2.0
    """Seconds without a message after which a machine is asked."""
    codes: Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=30)] = Field(
        default_factory=list
    )
    """Reasons among which judges choose; none are asked for where there are none."""


class MachineAgents(StudyTable):
    """The machines of online tests, by condition."""

    server: Server = "http://127.0.0.1:8001/"
    """The address of the `turinglike serve` that answers for them."""
    machine_argues: AgentName = ""
    """Answers where the person poses as a machine: it argues that it is one."""
    machine_deceives: AgentName = ""
    """Answers where the machine poses as a person."""


class Machines(StudyTable):
    """The machines of interrogations."""

    server: Server = "http://127.0.0.1:8001/"
    """The address of the `turinglike serve` that answers for them."""
    machines: Annotated[list[AgentName], Field(max_length=100)] = Field(default_factory=list)
    """Each is in equally many tests."""
