"""What only some agents can do: a protocol for each capability, as those of ``collections.abc``.

A class that has the method has the capability; it need not name the protocol. The runner asks ``isinstance(agent,
Fetching)``, and calls the method where the answer is yes.

| protocol | method | who has it |
| --- | --- | --- |
| :class:`BatchesByItself` | ``respond_one`` | engines that batch by themselves, and servers |
| :class:`Connected` | ``aclose`` | those with connections of an event loop |
| :class:`Keyed` | ``environment`` | those that read a key from an environment variable |
| :class:`SeveralGPUs` | ``use_devices`` | models that can be spread over GPUs |
| :class:`MemoryByBatch` | ``device_bytes`` | models whose memory on a GPU is known for each size of batch |
| :class:`WithCheckpoint` | ``checkpoint`` | those with weights, or a model of a server |
| :class:`OnDisk` | ``size`` | those whose weights are files of this machine |
| :class:`Fetching` | ``fetch`` | those whose weights can be downloaded |
| :class:`RandomWeights` | ``takes_random_weights`` | those that ``checkpoint=random`` may be set of |
| :class:`Traced` | ``provenance`` | those with more to say than versions of packages |
| :class:`Instructed` | ``instructions`` | those that read a text before a conversation |
| :class:`Prompted` | ``prompt`` | models of texts |
| :class:`Templated` | ``template_adds``, ``template_effects`` | models that chat by a template of their own |
| :class:`Limited` | ``limits`` | those that can say what the model cannot do |
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from agents.agent import Agent
from agents.draws import Draw
from agents.errors import UnavailableError
from agents.replies import Reply
from agents.settings import Settings
from agents.stimuli import ConversationStimulus, Stimulus

# how it is asked


@runtime_checkable
class BatchesByItself(Protocol):
    """Answers a stimulus at a time, since its engine or a server makes batches."""

    @abstractmethod
    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        """The reply to what ``prepare`` returned; calls overlap, as many as ``max_in_flight``. Raises AnswerError."""


@runtime_checkable
class Connected(Protocol):
    """Holds connections that belong to an event loop."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close them, in the loop of ``respond_one`` and before ``close``."""


@runtime_checkable
class Keyed(Protocol):
    """Reads keys from the environment."""

    @abstractmethod
    def environment(self) -> tuple[str, ...]:
        """The names of these variables. A worker gets no other variable that looks like a secret."""


# where it runs


@runtime_checkable
class SeveralGPUs(Protocol):
    """Can be spread over GPUs of one machine, up to ``most_devices`` of its declaration."""

    @abstractmethod
    def use_devices(self, count: int) -> None:
        """Be spread over ``count`` GPUs, before ``open``; ``declaration`` then says what each holds."""


@runtime_checkable
class MemoryByBatch(Protocol):
    """Knows how its memory grows with the batch."""

    @abstractmethod
    def device_bytes(self, batch_size: int) -> int:
        """Bytes on each GPU for batches of this size."""


def device_bytes(agent: Agent[Any], batch_size: int) -> int:
    """Bytes on each GPU for batches of this size; what the agent declares, where it does not know more."""
    return agent.device_bytes(batch_size) if isinstance(agent, MemoryByBatch) else agent.declaration().device_memory


# what it is made of


@dataclass(frozen=True, slots=True)
class Download:
    """What :meth:`Fetching.fetch` brought."""

    name: str
    """Its name at its source, such as ``owner/model``."""
    path: Path
    """The file or folder on this machine."""
    size: int
    """Bytes."""
    revision: str | None
    """The commit, or a hash of the content; None where it has neither."""
    licence: str | None
    """As its source names it; None where it names none."""


@runtime_checkable
class WithCheckpoint(Protocol):
    """Goes by weights with a name."""

    @abstractmethod
    def checkpoint(self) -> tuple[str | None, str | None]:
        """(checkpoint, revision) that the settings name, without loading anything. Both enter the digest of a run."""


def checkpoint_of(agent: Agent[Any]) -> tuple[str | None, str | None]:
    """(checkpoint, revision), or (None, None) for an agent without one."""
    return agent.checkpoint() if isinstance(agent, WithCheckpoint) else (None, None)


@runtime_checkable
class OnDisk(Protocol):
    """Reads weights from files of this machine."""

    @abstractmethod
    def size(self) -> int | None:
        """Bytes of these files; None where there are none, as with random weights. Raises UnavailableError."""


@runtime_checkable
class Fetching(Protocol):
    """Can download what it needs."""

    @abstractmethod
    def fetch(self) -> Sequence[Download]:
        """Download what the settings name, if it is not here. Nothing else of an agent uses the network for weights.
        Raises UnavailableError."""


@runtime_checkable
class RandomWeights(Protocol):
    """May run with random weights, to try or measure a machine."""

    @abstractmethod
    def takes_random_weights(self) -> bool:
        """Whether the architecture that its settings name is known, so that ``checkpoint=random`` can be set."""


# what it says of itself


@runtime_checkable
class Traced(Protocol):
    """Adds to the provenance of its records."""

    def provenance(self) -> dict[str, Any]:
        """JSON values by name that a reader needs to repeat the answers, asked once after ``load``."""
        return {}


def provenance_of(agent: Agent[Any]) -> dict[str, Any]:
    """Versions of the modules that the agent reports, and what else it says; after ``load``. Raises UnavailableError
    for a module of its ``reports`` without a version."""
    provenance: dict[str, Any] = {name: _version(agent, name) for name in agent.declaration().reports}
    if isinstance(agent, Traced):
        provenance |= agent.provenance()
    return provenance


def _version(agent: Agent[Any], module: str) -> str:
    """The ``__version__`` of a module, else the version of the package that installed it."""
    try:
        stated = getattr(importlib.import_module(module), "__version__", None)
    except ImportError as error:
        raise UnavailableError(f"agent {agent.name}: its declaration reports {module}, and {error}") from None
    if stated is not None:
        return stated  # type: ignore[no-any-return]
    for package in metadata.packages_distributions().get(module.partition(".")[0], ()):
        return metadata.version(package)
    raise UnavailableError(
        f"agent {agent.name}: its declaration reports {module}, which has no version: it has no __version__, and "
        "belongs to no installed package; leave it out of reports"
    )


@runtime_checkable
class Limited(Protocol):
    """Says what its model cannot do."""

    @abstractmethod
    def limits(self) -> Sequence[str]:
        """A clause for each limit, such as "takes no seed"; after ``open``."""


def limits_of(agent: Agent[Any]) -> list[str]:
    """A clause for each limit of the model; after ``open``."""
    return [*agent.limits()] if isinstance(agent, Limited) else []


# what its model reads


@runtime_checkable
class Instructed(Protocol):
    """Its model reads a text before a conversation begins."""

    @abstractmethod
    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str | None:
        """This text, which a message should not repeat; None: there is none for this draw. It is asked without
        ``open``; of ``draw`` only sample and options count."""


@runtime_checkable
class Prompted(Protocol):
    """Asks a model of texts."""

    @abstractmethod
    def prompt(self, stimulus: Stimulus, draw: Draw) -> str | None:
        """What the model would read about a stimulus; "" where that is private, None where no model is asked; after
        ``open``. Raises AnswerError."""


@runtime_checkable
class Templated(Protocol):
    """Its model chats by a template that came with the weights."""

    @abstractmethod
    def template_adds(self) -> str | None:
        """What the template writes beside a message, after ``open``; None where another template is used."""

    @abstractmethod
    def template_effects(self) -> Mapping[str, Any]:
        """How the template makes other prompts than version 0.2 did, by name; empty where they are the same. They
        enter the digest of a run under ``chat_template``."""


def template_effects_of(agent: Agent[Any]) -> dict[str, Any]:
    """How the prompts of an agent differ from those of version 0.2, by name."""
    return dict(agent.template_effects()) if isinstance(agent, Templated) else {}


def identity_of(agent: Agent[Any]) -> dict[str, Any]:
    """An agent's part of the digest of a run, beside its checkpoint: the settings that change answers, and under
    ``chat_template`` how a template changes prompts. Keys and values never change for an old run, or it is refused."""
    settings: Settings = agent.settings
    identity = settings.identity()
    effects = template_effects_of(agent)
    if effects:
        return {**identity, "chat_template": effects}
    return identity
