"""What a class of agents declares: the tasks it is for, the packages it needs, the memory it takes."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from agents.replies import Filter
from agents.stimuli import MODES, Asked, Family, Mode, Task

MIB = 1024 * 1024
"""Bytes of a mebibyte."""
GIB = 1024 * MIB
"""Bytes of a gibibyte."""


class Declaration(BaseModel):
    """What is said of an agent before it is opened. A class states what differs from its base::

        class Echo(Agent[EchoSettings]):
            declares = Declaration(tasks=("word_association",), memory=64 * MIB, batch_size=256)

    Everything else is as its bases declare it, of several bases the first that says something. Where the settings
    decide, the class overrides :meth:`agents.agent.Agent.declaration`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, protected_namespaces=())

    tasks: tuple[Task, ...] = ()
    """The tasks that it answers. It is given no stimulus of another."""
    modes: tuple[Mode, ...] = MODES
    """The modes of attention prediction that it answers: free viewing, search."""
    judges: tuple[Asked, ...] = ()
    """The tasks whose answers a judge judges; empty for whoever is no judge."""
    single_cue: bool = False
    """Whether a judge goes by one cue alone, such as length. It is scored, but concludes nothing and is not ranked."""
    family: Family = "other"
    """The kind of language model by which the papers chose a policy for conversations."""
    writes_dialogues: bool = False
    """Whether it writes the parts of both speakers, and topics, where the options of a draw hold ``pseudo``."""

    extra: str = ""
    """The extra of Turinglike that installs ``packages``, as in ``pip install 'turinglike[vision]'``."""
    packages: tuple[str, ...] = ()
    """Modules that it imports beyond the base install."""
    reports: tuple[str, ...] = ()
    """Modules whose versions stand in its records' provenance: their ``__version__``, or their package's version."""

    memory: int = 512 * MIB
    """Bytes on the host of one loaded agent. Agents are admitted to a machine by them."""
    memory_beside_gpu: int | None = None
    """Bytes on the host where the model is on a GPU; None: as many as ``memory``."""
    device_memory: int = 0
    """Bytes on each GPU; 0: it has no use for a GPU."""
    devices: int = 1
    """GPUs that the model is spread over."""
    most_devices: int = 1
    """GPUs that it could be spread over at most; above 1 it has :class:`agents.capabilities.SeveralGPUs`."""
    parameters: int = 0
    """Weights of the model; 0: they are not known, or there is no model."""

    batch_size: int = 32
    """Stimuli in a batch that the runner tries first. It is halved where memory runs out."""
    max_in_flight: int = 0
    """Calls of ``respond_one`` under way at a time in a worker; 0: it answers in batches, by ``respond``."""
    parallel: bool = True
    """Whether operations on the CPU are large enough to be shared among threads."""

    filters: tuple[Filter, ...] = ()
    """What looks at each reply; a finding that rejects it asks for another attempt."""
    attempts: int = 1
    """Attempts at an answer at most, while filters reject replies."""
    max_samples: int | None = None
    """Answers to one stimulus at most, as a beam search has so many beams; None: there is no limit."""

    @property
    def batches_by_itself(self) -> bool:
        """Whether its engine batches by itself, so that it is asked by ``respond_one``."""
        return self.max_in_flight > 0

    @property
    def is_elsewhere(self) -> bool:
        """Whether a server answers, so that it needs no process of its own here."""
        return self.batches_by_itself and not self.device_memory

    def replace(self, **changes: Any) -> Self:
        """The same with other values of some fields. Raises ValidationError for a name that is no field, and for a
        value of a wrong type."""
        return type(self)(**{**dict(self), **changes})

    def missing_package(self) -> str | None:
        """A sentence on the first of ``packages`` that is not installed, with the command that installs it, or None."""
        for name in self.packages:
            if not is_installed(name):
                return f"the package {name} is not installed: pip install 'turinglike[{self.extra}]'"
        return None


def stated(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """What the body of a class says of itself, by field: its ``declares``, and attributes with the name of a field.

    The second is how agents of version 0.2 declared (``tasks = (…)``, ``memory = 64 * MIB``, in the class or on the
    object). They run unchanged, as this reads them; write ``declares`` in new ones.
    """
    own = namespace.get("declares")
    fields = {} if own is None else {name: getattr(own, name) for name in own.model_fields_set}
    return fields | {name: namespace[name] for name in Declaration.model_fields if name in namespace}


def is_installed(module: str) -> bool:
    """Whether a module of this name could be imported. Nothing is imported but the packages that it is a part of."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is missing, too
        return False
