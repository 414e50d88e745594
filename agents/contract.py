"""What an agent is: the contract between agents and whatever runs them.

An agent is a plain object. In a notebook::

    agent = MedianCutAgent(MedianCutAgent.Settings(), "mmcq")
    agent.open(); agent.load("cpu")
    prepared = agent.prepare(stimulus)
    [reply] = agent.respond([prepared], [Draw(seed=1)])

The runner promises: ``open`` once, then ``load`` once; ``prepare`` from any number of threads; ``respond`` from one
thread at a time; a stimulus is only ever one of the agent's ``tasks`` and ``modes``.
"""

from __future__ import annotations

import hashlib
import importlib.util
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from agents.stimuli import ConversationStimulus, Stimulus, Task
from agents.tasks import MODES, Asked, Family, Mode

if TYPE_CHECKING:
    from agents.checkpoints import Download

MIB = 1024 * 1024
GIB = 1024 * MIB

NO_ANSWER: dict[str, Any] = {"changes_answers": False}


class Settings(BaseModel):
    """Base of every agent's ``Settings``: all choices that can change an answer, checked before anything loads.

    A choice that changes no answer, of speed or patience, is a field with ``json_schema_extra=NO_ANSWER``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())

    def identity(self) -> dict[str, Any]:
        """What answers follow from: the settings without those of speed, and for a file its content's hash."""
        found = self.model_dump(mode="json")
        for name, field_ in type(self).model_fields.items():
            value = getattr(self, name)
            if field_.json_schema_extra == NO_ANSWER:
                del found[name]
            elif isinstance(value, Settings):
                found[name] = value.identity()
            elif isinstance(value, Path) and value.is_file():
                with value.open("rb") as file:
                    found[name] = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        return found


S = TypeVar("S", bound=Settings)


@dataclass(slots=True)  # not frozen: that makes each of many slower to make
class Draw:
    """The randomness and the options of one attempt.

    ``seed`` (53 bits) is all the randomness an agent may use: the same stimulus, seed and settings give the same
    reply, whatever else is in the batch. ``options`` holds what one request may choose (empty in a run), and for a
    turn of a conversation ``speaker`` ("A" or "B") and ``turn``. ``say`` is there where somebody listens: an agent may
    call it, from any thread, with the text of its answer as far as it will not change any more.
    """

    seed: int
    sample: int = 0
    attempt: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] | None = field(default=None, compare=False)


@dataclass(slots=True)
class Reply:
    """One reply: the typed ``answer`` (of ``agents.answers``) and what the model said before it was cleaned."""

    answer: BaseModel
    raw: Any = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a filter found. ``rejected`` asks for another attempt; otherwise the finding is only noted."""

    filter: str
    rejected: bool
    found: str


Filter = Callable[[Stimulus, Reply], Verdict | None]


class Agent(ABC, Generic[S]):
    """Base class. A subclass sets the class variables and overrides the verbs that it needs.

    ``memory`` is the host memory, in bytes, that one loaded agent needs, ``memory_beside_gpu`` what it needs where its
    model is on a GPU (None: as much). ``device_memory`` is what it needs on a GPU (0: the agent has no use for one), or
    on each of its ``devices`` GPUs, of which ``use_devices`` gives it more, up to ``most_devices``. ``batch_size``
    is what the runner tries first.
    ``parallel``: on the CPU, its operations are large enough to be shared among torch's threads. An agent whose engine
    batches by itself overrides ``respond_one`` instead of ``respond`` and says how many calls it takes at once
    (``max_in_flight``). One that ``writes_dialogues`` writes both speakers' parts of a conversation, or
    names topics for one, where the options hold ``pseudo`` (:mod:`agents.language.pseudo_dialogue`). ``modes`` are
    those of attention prediction that it answers; a judge ``judges`` the answers to these tasks. ``packages`` are the
    modules that it imports beyond the base install; the ``extra`` of Turinglike installs them. By its ``family`` the
    papers chose a policy for conversations. ``filters`` judge each reply; ``attempts`` is how often one is asked for
    while they reject it. ``max_samples`` is how many answers to one stimulus the agent has, if there is a limit.
    """

    tasks: ClassVar[tuple[Task, ...]]
    modes: ClassVar[tuple[Mode, ...]] = MODES
    judges: tuple[Asked, ...] = ()
    extra: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()
    Settings: ClassVar[type[Settings]]
    memory: int = 512 * MIB
    memory_beside_gpu: int | None = None
    device_memory: int = 0
    devices: int = 1
    most_devices: int = 1
    batch_size: int = 32
    parallel: bool = True
    max_in_flight: int = 0
    writes_dialogues: ClassVar[bool] = False
    family: ClassVar[Family] = "other"

    settings: S
    filters: Sequence[Filter] = ()
    attempts: int = 1
    max_samples: int | None = None

    def __init__(self, settings: S, name: str) -> None:
        self.settings = settings
        self.name = name

    def environment(self) -> tuple[str, ...]:
        """The environment variables with keys that the agent reads: workers get no others that look like a secret."""
        return ()

    def continuous(self) -> bool:
        """Whether the agent's engine batches by itself."""
        return type(self).respond_one is not Agent.respond_one

    def is_elsewhere(self) -> bool:
        """Whether a server answers, so that the agent needs no process of its own here."""
        return self.continuous() and not self.device_memory

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str | None:
        """What the model is told before a conversation begins and should not say again, if it is told something.

        Asked where conversations are judged, so without ``open``; of ``draw`` only the sample and the options.
        """
        return None

    def checkpoint(self) -> tuple[str | None, str | None]:
        """(checkpoint, revision) that the settings name, without loading anything; (None, None) if there is none."""
        return None, None

    def missing(self) -> str | None:
        """One sentence that says what this machine lacks to run the agent and how to get it, or None."""
        return self.missing_packages()

    def missing_packages(self) -> str | None:
        for name in self.packages:
            if not is_installed(name):
                return f"the package {name} is not installed: pip install 'turinglike[{self.extra}]'"
        return None

    def device_bytes(self, batch_size: int) -> int:
        """Bytes on each GPU for batches of this size; what the agent declares, where it cannot tell."""
        return self.device_memory

    def use_devices(self, count: int) -> None:
        """Be spread over so many GPUs of one machine, where one cannot hold the model; before ``open``."""
        raise TypeError(f"{type(self).__name__} runs on one GPU")

    def fetch(self) -> Sequence[Download]:
        """Download what the settings name and ``missing`` misses; the only verb that may use the network for it."""
        return ()

    def open(self) -> None:
        """Load processors and tables; CPU only, no model."""

    def load(self, device: str) -> None:
        """Load the model onto ``device`` ("cpu", "cuda:0")."""

    def prepare(self, stimulus: Stimulus) -> Any:
        """CPU work for one stimulus. Thread-safe; may use only what ``open`` made. Raises AnswerError if this
        stimulus cannot be answered."""
        return stimulus

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """One reply per item, in order. An exception in an item's place fails that item alone; one that is raised
        makes the runner try the halves of the batch."""
        raise TypeError(f"{type(self).__name__} answers one at a time; call respond_one")

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        """The reply to one prepared stimulus, for engines that batch by themselves."""
        raise TypeError(f"{type(self).__name__} answers in batches; call respond")

    def provenance(self) -> dict[str, Any]:
        """What else a reader needs to repeat the answers (processor class, versions); asked once, after ``load``."""
        return {}

    async def aclose(self) -> None:
        """Close the connections that :meth:`respond_one` has opened, in the event loop that it runs in; before
        :meth:`close`. A process that ends needs neither."""

    def close(self) -> None:
        """Release what was loaded."""


def is_installed(module: str) -> bool:
    """Whether ``module`` could be imported, without importing it (but for what it is a part of)."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # what it is a part of is missing, too
        return False
