"""What an agent is: the contract between agents and whatever runs them.

An agent is a plain object. In a notebook::

    agent = MedianCutAgent(MedianCutAgent.Settings(), "mmcq")
    agent.open(); agent.load("cpu")
    prepared = agent.prepare(stimulus)
    [reply] = agent.respond([prepared], [Draw(seed=1)])

The runner promises: ``open`` once, then ``load`` once; ``prepare`` from any number of threads; ``respond`` from a
single thread at a time; a stimulus is only ever of the agent's ``tasks`` and ``modes``.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar
from urllib.parse import urlsplit

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from agents.errors import InputError, bad_settings
from agents.stimuli import MODES, Asked, ConversationStimulus, Family, Mode, Stimulus, Task

if TYPE_CHECKING:
    from agents.checkpoints import Download

MIB = 1024 * 1024
GIB = 1024 * MIB

NO_ANSWER: dict[str, Any] = {"changes_answers": False}


def _check_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:  # or port raises ValueError
        raise ValueError("must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("must hold no user, password, query or fragment: they would stand in the records")
    return value


Address = Annotated[str, AfterValidator(_check_address)]  # of a server


class Settings(BaseModel):
    """Base of every agent's ``Settings``: all choices that can change an answer, checked before anything loads.

    A choice of speed or patience is a field with ``json_schema_extra=NO_ANSWER``.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), use_attribute_docstrings=True
    )

    def identity(self) -> dict[str, Any]:
        """What answers follow from: the settings without those of speed, and for a file the hash of its content."""
        values = self.model_dump(mode="json")
        for name, about in type(self).model_fields.items():
            value = getattr(self, name)
            if about.json_schema_extra == NO_ANSWER:
                del values[name]
            elif isinstance(value, Settings):
                values[name] = value.identity()
            elif isinstance(value, Path) and value.is_file():
                with value.open("rb") as file:
                    values[name] = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        return values


S = TypeVar("S", bound=Settings)


def derive_seed(run_seed: int, agent: str, stimulus: str, sample: int, turn: int | None, attempt: int) -> int:
    """The seed of an attempt at an answer: an integer in [0, 2**53), which JavaScript's doubles keep.

    It is the first 53 bits of SHA-256 over the compact JSON of [1, run seed, agent, stimulus id, sample, turn,
    attempt].
    """
    text = orjson.dumps([1, run_seed, agent, stimulus, sample, turn, attempt])
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 11


@dataclass(slots=True)  # not frozen: that makes each of many slower to make
class Draw:
    """The randomness and the options of an attempt.

    ``seed`` (53 bits) is all the randomness an agent may use: the same stimulus, seed and settings give the same
    reply in any batch. ``options`` holds what a request may choose, and for a turn of a conversation ``speaker`` ("A"
    or "B") and ``turn``. An agent may call ``say``, from any thread, with the text of its answer as far as it is final.
    """

    seed: int
    sample: int = 0
    attempt: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] | None = field(default=None, compare=False)


@dataclass(slots=True)
class Reply:
    """The typed ``answer`` (of ``agents.answers``) and what the model wrote before it was cleaned."""

    answer: BaseModel
    raw: Any = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a filter noticed. ``rejected`` asks for another attempt."""

    filter: str
    rejected: bool
    found: str


Filter = Callable[[Stimulus, Reply], Verdict | None]


class Agent(ABC, Generic[S]):
    """Base class. A subclass sets the class variables and overrides the verbs that it needs.

    An agent whose engine batches by itself overrides ``respond_one`` instead of ``respond``.
    """

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

    def __init__(self, settings: S, name: str) -> None:
        self.settings = settings
        self.name = name

    def takes_random_weights(self) -> bool:
        """Whether ``checkpoint=random``, with which this agent was made, gives it weights."""
        return False

    def environment(self) -> tuple[str, ...]:
        """The environment variables with keys that the agent reads: workers get no others that look like a secret."""
        return ()

    def continuous(self) -> bool:
        """Whether the agent's engine batches by itself."""
        return type(self).respond_one is not Agent.respond_one

    def is_elsewhere(self) -> bool:
        """Whether a server answers, so that the agent needs no process here."""
        return self.continuous() and not self.device_memory

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str | None:
        """What a model reads before a conversation and should not repeat. Needs no ``open``; of ``draw`` it uses the
        sample and the options."""
        return None

    def checkpoint(self) -> tuple[str | None, str | None]:
        """(checkpoint, revision) that the settings name, without loading anything; (None, None) if there is none."""
        return None, None

    def missing(self) -> str | None:
        """One sentence on what this machine lacks to run the agent and how to get it, or None."""
        return self.missing_packages()

    def missing_packages(self) -> str | None:
        for name in self.packages:
            if not is_installed(name):
                return f"the package {name} is not installed: pip install 'turinglike[{self.extra}]'"
        return None

    def device_bytes(self, batch_size: int) -> int:
        """Bytes on each GPU for batches of this size."""
        return self.device_memory

    def use_devices(self, count: int) -> None:
        """Spread the model over so many GPUs; before ``open``."""
        raise TypeError(f"{type(self).__name__} runs on one GPU")

    def fetch(self) -> Sequence[Download]:
        """Download what the settings name; no other verb uses the network for it."""
        return ()

    def open(self) -> None:
        """Load processors and tables; CPU only, no model."""

    def load(self, device: str) -> None:
        """Load the model onto ``device`` ("cpu", "cuda:0")."""

    def prepare(self, stimulus: Stimulus) -> Any:
        """CPU work for a stimulus. Thread-safe; may use only what ``open`` made. Raises AnswerError if this
        stimulus cannot be answered."""
        return stimulus

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """A reply per item, in order. An exception in an item's place fails that item alone; if it is raised, the
        runner tries the halves of the batch."""
        raise TypeError(f"{type(self).__name__} answers one at a time; call respond_one")

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        """The reply to a prepared stimulus, for engines that batch by themselves."""
        raise TypeError(f"{type(self).__name__} answers in batches; call respond")

    def provenance(self) -> dict[str, Any]:
        """What else a reader needs to repeat the answers (processor class, versions); read once, after ``load``."""
        return {name: importlib.import_module(name).__version__ for name in self.reports}

    async def aclose(self) -> None:
        """Close the connections of :meth:`respond_one`, in its event loop, before :meth:`close`."""

    def close(self) -> None:
        """Release what was loaded."""


def is_installed(module: str) -> bool:
    """Whether ``module`` could be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is missing, too
        return False


InPaper = Literal["compared", "variant", "no"]
COMPARED: InPaper = "compared"
VARIANT: InPaper = "variant"
NOT_IN_PAPER: InPaper = "no"


# Where classes were that moved since: the digests of older runs name these places.
MOVED = {
    "agents.language.chat:CompletionAgent": "agents.language.completion:CompletionAgent",
    "agents.vision.cloud:AzureVisionAgent": "agents.vision.azure_vision:AzureVisionAgent",
    "agents.vision.cloud:GoogleVisionAgent": "agents.vision.google_vision:GoogleVisionAgent",
    "agents.vision.cloud:RekognitionAgent": "agents.vision.rekognition:RekognitionAgent",
    "agents.vision.detector:DetrAgent": "agents.vision.detr:DetrAgent",
    "agents.vision.git_and_blip:Blip2Agent": "agents.vision.blip2:Blip2Agent",
    "agents.vision.git_and_blip:BlipAgent": "agents.vision.blip:BlipAgent",
    "agents.vision.git_and_blip:GitAgent": "agents.vision.git:GitAgent",
    "agents.vision.detector:TorchvisionMaskRCNNAgent": "agents.vision.torchvision_maskrcnn:TorchvisionMaskRCNNAgent",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What the catalogue knows of an agent without importing it.

    ``agent`` is "module:Class", ``settings`` are this entry's defaults. ``in_paper``: "compared" (the papers' agent,
    checked as docs/fidelity.md describes), "variant" (another size, other weights, or reconstructed parts), "no".
    ``ran``: whether it ever ran with the weights or the service that it names. ``published`` is the checkpoint whose
    architecture "random" means. ``hidden`` entries test the machinery.
    """

    name: str
    agent: str
    tasks: tuple[Task, ...]
    summary: str
    source: str
    in_paper: InPaper = "no"
    licence: str = "Apache-2.0"
    settings: Mapping[str, Any] = field(default_factory=dict)
    role: Literal["machine", "control"] = "machine"
    hidden: bool = False
    published: str = ""
    ran: bool = True

    def __post_init__(self) -> None:
        if not self.published:
            object.__setattr__(self, "published", str(self.settings.get("checkpoint", "")))

    @property
    def identity(self) -> str:
        """The name of the agent's class in the digest of a run."""
        return MOVED.get(self.agent, self.agent)

    def load_class(self) -> type[Agent[Any]]:
        """Import the agent's class. Raises ImportError, InputError."""
        module, _, name = self.agent.partition(":")
        try:
            loaded = getattr(importlib.import_module(module), name)
        except SystemExit as error:
            raise ImportError(f"{module} ends the process that imports it: {error!r}") from None
        if not (isinstance(loaded, type) and issubclass(loaded, Agent)):
            raise InputError(f"agent {self.name}: {self.agent} is not an Agent")
        return loaded

    def make(self, overrides: Mapping[str, Any] | None = None) -> Agent[Any]:
        """The agent with its settings checked, nothing loaded. Raises InputError with every bad setting."""
        cls = self.load_class()
        chosen = {**self.settings, **(overrides or {})}
        if chosen.get("checkpoint") == "random" and self.published:
            chosen["checkpoint"] = f"random:{self.published}"
        try:
            settings = cls.Settings.model_validate(chosen)
        except ValidationError as error:
            problems = bad_settings(self.name, cls.Settings.model_fields, error.errors(include_url=False))
            raise InputError(f"agent {self.name}: bad settings", problems) from None
        return cls(settings, self.name)

    def takes_random_weights(self) -> bool:
        """Whether ``checkpoint=random`` gives the agent its architecture without a checkpoint."""
        if "checkpoint" not in self.load_class().Settings.model_fields:
            return False
        return self.make({"checkpoint": "random"}).takes_random_weights()
