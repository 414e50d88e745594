"""The contract between agents and whatever runs them.
``open`` comes once, then ``load`` once; ``prepare`` from any thread; ``respond`` from a single thread at a time. A
stimulus is only ever of the agent's ``tasks`` and ``modes``.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar
from urllib.parse import urlsplit

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from agents.errors import InputError, bad_settings
from agents.stimuli import MODES, Asked, ConversationStimulus, Family, Mode, Stimulus, Task

MIB = 1024 * 1024
GIB = 1024 * MIB

NO_ANSWER: dict[str, Any] = {"changes_answers": False}
# Of a setting that came after version 0.2. With its default it stands in no digest: otherwise every older run of its
# agents would be refused, although nothing in it changes.
LATER: dict[str, Any] = {"later": True}


def _check_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:  # or port raises ValueError
        raise ValueError("must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("must hold no user, password, query or fragment: they would stand in the records")
    return value


Address = Annotated[str, AfterValidator(_check_address)]  # of a server


class Settings(BaseModel):
    """All choices that can change an answer; a choice of speed is a field with ``json_schema_extra=NO_ANSWER``, and a
    choice that came later one with ``json_schema_extra=LATER``."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), use_attribute_docstrings=True
    )

    def identity(self) -> dict[str, Any]:
        """The settings without those of speed, and without later ones at their default; files by the hash of their
        content."""
        values = self.model_dump(mode="json")
        for name, about in type(self).model_fields.items():
            value = getattr(self, name)
            is_left_out = about.json_schema_extra == LATER and value == about.get_default(call_default_factory=True)
            if about.json_schema_extra == NO_ANSWER or is_left_out:
                del values[name]
            elif isinstance(value, Settings):
                values[name] = value.identity()
            elif isinstance(value, Path) and value.is_file():
                with value.open("rb") as file:
                    values[name] = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        return values


S = TypeVar("S", bound=Settings)


def derive_seed(run_seed: int, agent: str, stimulus: str, sample: int, turn: int | None, attempt: int) -> int:
    """The first 53 bits of SHA-256 over the compact JSON of [1, run seed, agent, stimulus id, sample, turn,
    attempt]."""
    text = orjson.dumps([1, run_seed, agent, stimulus, sample, turn, attempt])
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 11


@dataclass(frozen=True, slots=True)
class Download:
    """``size`` in bytes."""

    name: str
    path: Path
    size: int
    revision: str | None
    licence: str | None


@dataclass(slots=True)  # not frozen: that makes each of many slower to make
class Draw:
    """Options and randomness: the same stimulus, settings and ``seed`` (53 bits) give the same reply in any batch.
    ``options`` are the request's, and ``speaker`` ("A" or "B") and ``turn`` of a conversation. ``say`` takes the
    answer's text as far as it is final, from any thread."""

    seed: int
    sample: int = 0
    attempt: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] | None = field(default=None, compare=False)


@dataclass(slots=True)
class Reply:
    """The typed ``answer``, and what the model wrote before cleaning."""

    answer: BaseModel
    raw: Any = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a filter noticed; ``rejected`` asks for another attempt."""

    filter: str
    rejected: bool
    found: str


Filter = Callable[[Stimulus, Reply], Verdict | None]


class Agent(ABC, Generic[S]):
    """A subclass sets the class variables and overrides what it needs: ``respond``, or ``respond_one`` if its engine
    batches by itself."""

    tasks: ClassVar[tuple[Task, ...]]
    modes: ClassVar[tuple[Mode, ...]] = MODES  # of attention prediction
    judges: tuple[Asked, ...] = ()  # the tasks whose answers a judge judges
    extra: ClassVar[str] = ""  # of Turinglike, which installs the packages
    packages: ClassVar[tuple[str, ...]] = ()  # modules that are imported beyond the base install
    reports: ClassVar[tuple[str, ...]] = ()  # modules whose versions the provenance names
    Settings: ClassVar[type[Settings]]
    memory: int = 512 * MIB  # bytes on the host
    memory_beside_gpu: int | None = None  # the same where the model is on a GPU; None: as much
    device_memory: int = 0  # bytes on each GPU; 0: the agent has no use for a GPU
    devices: int = 1  # GPUs that the model is spread over
    most_devices: int = 1
    batch_size: int = 32  # what the runner tries first
    parallel: bool = True  # whether operations on the CPU are large enough to be shared among threads
    max_in_flight: int = 0  # calls of respond_one at a time
    writes_dialogues: ClassVar[bool] = False  # both speakers' parts, and topics, where the options hold "pseudo"
    family: ClassVar[Family] = "other"  # by which the papers chose a policy for conversations

    settings: S
    filters: Sequence[Filter] = ()  # judge each reply
    attempts: int = 1  # while filters reject replies
    max_samples: int | None = None  # answers to a stimulus, if there is a limit

    parameters: int = 0  # weights of the model, where they are known
    typed: str = ""  # what commands call it, where that is not its name

    def __init__(self, settings: S, name: str) -> None:
        self.settings = settings
        self.name = name

    def takes_random_weights(self) -> bool:
        return False

    def environment(self) -> tuple[str, ...]:
        """Variables with keys; workers get no other secrets."""
        return ()

    def continuous(self) -> bool:
        return type(self).respond_one is not Agent.respond_one

    def is_elsewhere(self) -> bool:
        return self.continuous() and not self.device_memory

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str | None:
        """What a model reads before a conversation and should not repeat."""
        return None

    def checkpoint(self) -> tuple[str | None, str | None]:
        """(checkpoint, revision) that the settings name, or (None, None)."""
        return None, None

    def identity(self) -> dict[str, Any]:
        """What enters the digest of a run beside the checkpoint: :meth:`Settings.identity`, and where there are any,
        :meth:`template_effects`."""
        effects = self.template_effects()
        return self.settings.identity() | ({"chat_template": effects} if effects else {})

    def template_effects(self) -> Mapping[str, Any]:
        """How prompts differ, by the model's own template, from those of version 0.2; empty where they are the same."""
        return {}

    def missing(self) -> str | None:
        """A sentence on what this machine lacks and how to get it, or None."""
        return self.missing_packages()

    def missing_packages(self) -> str | None:
        for name in self.packages:
            if not is_installed(name):
                return f"the package {name} is not installed: pip install 'turinglike[{self.extra}]'"
        return None

    def size(self) -> int | None:
        """Bytes of the checkpoint's files on this machine, if it has any."""
        return None

    def device_bytes(self, batch_size: int) -> int:
        return self.device_memory

    def use_devices(self, count: int) -> None:
        """Before ``open``."""
        raise TypeError(f"{type(self).__name__} runs on one GPU")

    def fetch(self) -> Sequence[Download]:
        """Download what the settings name; no other verb does."""
        return ()

    def open(self) -> None:
        """Load processors and tables; CPU only, no model."""

    def load(self, device: str) -> None:
        """Load the model onto ``device`` ("cpu", "cuda:0")."""

    def prepare(self, stimulus: Stimulus) -> Any:
        """CPU work, thread-safe, after ``open``. Raises AnswerError if the stimulus cannot be answered."""
        return stimulus

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """A reply per item, in order. An exception in an item's place fails that item; a raised one halves the
        batch."""
        raise TypeError(f"{type(self).__name__} answers one at a time; call respond_one")

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        """The reply to a prepared stimulus."""
        raise TypeError(f"{type(self).__name__} answers in batches; call respond")

    def prompt(self, stimulus: Stimulus, draw: Draw) -> str | None:
        """What a model of texts would read about a stimulus, after ``open``; "" where that is private, None where no
        such model is asked. Raises AnswerError."""
        return None

    def template_adds(self) -> str | None:
        """What a model's own template writes beside a message, after ``open``; None where there is no template."""
        return None

    def limits(self) -> Sequence[str]:
        """What the model cannot do, each in a clause; after ``open``."""
        return ()

    def provenance(self) -> dict[str, Any]:
        """What else a reader needs to repeat the answers; after ``load``."""
        return {name: importlib.import_module(name).__version__ for name in self.reports}

    async def aclose(self) -> None:
        """Close connections, in the loop of :meth:`respond_one`, before :meth:`close`."""

    def close(self) -> None:
        """Release what was loaded."""


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is missing, too
        return False


InPaper = Literal["compared", "variant", "no"]
COMPARED: InPaper = "compared"
VARIANT: InPaper = "variant"
NOT_IN_PAPER: InPaper = "no"


@dataclass(frozen=True, slots=True)
class Entry:
    """``agent``: "module:Class"; ``ran``: with the weights or service that it names; ``in_paper``: docs/fidelity.md;
    ``published``: the checkpoint whose architecture "random" means; ``typed``: what commands call it, where
    that is not its name.

    ``identity`` is the name of the algorithm in the digest of a run, by default ``agent``. It never changes with a
    class's place, so that classes may move: else every older run of them would be refused. Many of ours look like the
    place where the class stood when they were given. A new family is named ``NAME/1``; a change of the algorithm that
    changes answers raises the number (``…/2``), and older runs are then refused."""

    name: str
    agent: str
    tasks: tuple[Task, ...]
    summary: str
    source: str
    in_paper: InPaper = "no"
    licence: str = "Apache-2.0"
    settings: Mapping[str, Any] = field(default_factory=dict)
    role: Literal["machine", "control"] = "machine"
    published: str = ""
    ran: bool = True
    typed: str = ""
    identity: str = ""

    def __post_init__(self) -> None:
        if not self.published:
            object.__setattr__(self, "published", str(self.settings.get("checkpoint", "")))
        if not self.identity:
            object.__setattr__(self, "identity", self.agent)

    def load_class(self) -> type[Agent[Any]]:
        """Raises ImportError, InputError."""
        module, _, name = self.agent.partition(":")
        try:
            loaded = getattr(importlib.import_module(module), name)
        except SystemExit as error:
            raise ImportError(f"{module} ends the process that imports it: {error!r}") from None
        if not (isinstance(loaded, type) and issubclass(loaded, Agent)):
            raise InputError(f"agent {self.name}: {self.agent} is not an Agent")
        return loaded

    def make(self, overrides: Mapping[str, Any] | None = None) -> Agent[Any]:
        """The agent, nothing loaded. Raises InputError with every bad setting."""
        cls = self.load_class()
        chosen = {**self.settings, **(overrides or {})}
        if chosen.get("checkpoint") == "random" and self.published:
            chosen["checkpoint"] = f"random:{self.published}"
        try:
            settings = cls.Settings.model_validate(chosen)
        except ValidationError as error:
            problems = bad_settings(self.name, cls.Settings.model_fields, error.errors(include_url=False))
            raise InputError(f"agent {self.name}: bad settings", problems) from None
        agent = cls(settings, self.name)
        agent.typed = self.typed
        return agent

    def takes_random_weights(self) -> bool:
        if "checkpoint" not in self.load_class().Settings.model_fields:
            return False
        return self.make({"checkpoint": "random"}).takes_random_weights()
