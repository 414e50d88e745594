"""Agents with a published checkpoint: where it is, what is missing, and how it is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ConfigDict, Field

from agents import checkpoints, footprint, random_weights
from agents.contract import GIB, Agent
from agents.contract import Settings as BaseSettings
from agents.errors import UnavailableError


class PretrainedSettings(BaseSettings):
    """Which checkpoint. A subclass gives ``checkpoint`` its default, or the catalogue does."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    checkpoint: str = Field(min_length=1)
    """An id on the Hugging Face hub, a local folder, or "random": the architecture without its weights."""
    revision: str | None = None
    """A commit, branch or tag of the hub; none: its main branch as it was when it was fetched last."""


# Below so many weights, handing an operation to threads costs more than they save. The bound is a choice: models of 0.1
# million weights were up to 1.5 times as fast on one thread of two, one of 18 million was not.
WORTH_SHARING = 5_000_000

P = TypeVar("P", bound=PretrainedSettings)


class PretrainedAgent(Agent[P]):
    """Implements :meth:`checkpoint`, :meth:`missing` and :meth:`fetch` for one folder of transformers' form.

    ``needs`` are the files that the folder must have, alternatives parted by "|"; ``model_types`` what its
    config.json may name.

    ``memory`` and ``device_memory`` are what the class says (for its largest published checkpoint) until the
    checkpoint is on this machine; then they are found from its number of weights, ``working_memory`` beside them.

    With ``random`` weights (see :mod:`agents.random_weights`) the folder is a temporary one, which a subclass's
    ``load`` ends by :meth:`drop_folder`: a worker that is killed later leaves nothing behind.
    """

    working_memory: ClassVar[int] = 2 * GIB  # libraries, pictures, activations, caches of a batch
    needs: ClassVar[tuple[str, ...]] = ("config.json", checkpoints.WEIGHTS, checkpoints.PROCESSOR)
    model_types: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: P, name: str) -> None:
        super().__init__(settings, name)
        self.random = random_weights.asked(settings.checkpoint)
        self._made: random_weights.MadeFolder | None = None
        try:
            count = self.architecture().parameters if self.random else footprint.parameters(self.weight_paths())
        except UnavailableError:
            return
        if count:
            self.parallel = count >= WORTH_SHARING
            self.memory = self.working_memory + 4 * count  # fp32 on the CPU
            self.device_memory = self.working_memory + self.bytes_per_weight() * count

    def weight_paths(self) -> Sequence[Path]:
        """The files or folders that hold the weights. Raises UnavailableError."""
        return [self.folder()]

    def bytes_per_weight(self) -> int:
        """On a device."""
        return 4

    def architecture(self) -> random_weights.Architecture:
        """What is made for random weights. Raises UnavailableError."""
        return random_weights.architecture(self.settings.checkpoint, self.model_types)

    def checkpoint(self) -> tuple[str | None, str | None]:
        """With random weights the published checkpoint of the architecture stands for the revision."""
        if self.random:
            return random_weights.RANDOM, random_weights.published(self.settings.checkpoint) or None
        return checkpoints.identity(self.settings.checkpoint, self.settings.revision)

    def missing(self) -> str | None:
        if (lacking := self.missing_packages()) is not None:
            return lacking
        if self.random:
            return self.unknown_architecture()
        try:
            found = checkpoints.find(self.settings.checkpoint, self.settings.revision)
        except checkpoints.NotFetchedError as error:
            return (
                f"{error}: run `turinglike fetch {self.name}` where there is a network, or give a local copy with "
                f"--set {self.name}.checkpoint=PATH"
            )
        except UnavailableError as error:
            return str(error)
        wrong = checkpoints.problem(found, self.needs, self.model_types)
        if wrong is None:
            return None
        completes = not checkpoints.is_local(self.settings.checkpoint) and checkpoints.problem(found, self.needs)
        return f"{found} {wrong}" + f": run `turinglike fetch {self.name}` where there is a network" * bool(completes)

    def unknown_architecture(self) -> str | None:
        """What keeps the agent from random weights, as a sentence, or None."""
        try:
            self.architecture()
        except UnavailableError as error:
            return str(error)
        return None

    def fetch(self) -> Sequence[checkpoints.Download]:
        if self.random:
            return ()
        found = checkpoints.fetch(self.settings.checkpoint, self.settings.revision, needs=self.needs)
        wrong = checkpoints.problem(found.path, self.needs, self.model_types) if found.path.is_dir() else None
        if wrong is not None:
            raise UnavailableError(f"{found.path} {wrong}")
        return [found]

    def folder(self) -> Path:
        """The checkpoint's folder (or file). Raises UnavailableError."""
        if self.random:
            if self._made is None:
                self._made = random_weights.MadeFolder(self.architecture())
            return self._made.path
        return checkpoints.find(self.settings.checkpoint, self.settings.revision)

    def provenance(self) -> dict[str, Any]:
        found = self.random or checkpoints.random_weights(self.folder())
        return {"random_weights": True} if found else {}

    def drop_folder(self) -> None:
        """Remove what was made for random weights, if there is anything: of use until the model is loaded."""
        if self._made is not None:
            self._made.remove()
            self._made = None

    def close(self) -> None:
        super().close()
        self.drop_folder()
