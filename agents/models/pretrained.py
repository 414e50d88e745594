"""Agents with a published checkpoint: a folder of transformers' form, or a file of weights."""

from __future__ import annotations

import json
import os
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import Field, field_validator

from agents.capabilities import Traced
from agents.contract import GIB, Agent, Declaration, Download
from agents.contract import Settings as BaseSettings
from agents.errors import UnavailableError
from agents.models import checkpoints, hub, model_folders, plain_files, random_weights, weight_files
from agents.models.batch_memory import item_bytes
from agents.models.loading import load_weights

if TYPE_CHECKING:
    import torch

TORCHVISION = "https://download.pytorch.org/models/"
"""Where torchvision's weights are."""
# Below so many weights threads cost more than they save: models of 0.1 million weights were up to 1.5 times as fast on
# a single thread as on two, a model of 18 million was not.
WORTH_SHARING = 5_000_000
LIBRARIES = GIB // 2  # on a GPU: work spaces of cuBLAS and cuDNN, and what torch's allocator cannot use between blocks
ON_HOST = 3 * GIB // 2  # torch and transformers; a run of a tiny model took 0.9 GiB
BESIDE_GPU = 3 * GIB  # on the host: torch with CUDA's libraries, and pictures being prepared


class PretrainedSettings(BaseSettings):
    """Which weights. ``checkpoint`` has its default in a subclass or in the catalogue."""

    checkpoint: str = Field(min_length=1)
    """An id on the Hugging Face hub, a local folder, or "random": the architecture without its weights."""
    revision: str | None = None
    """A commit, branch or tag of the hub; none: the pinned commit, or else main as it was when it was fetched last."""

    @field_validator("checkpoint")
    @classmethod
    def _resolved(cls, checkpoint: str) -> str:
        """A folder is the same by whatever path."""
        try:
            path = None if is_random(checkpoint) else checkpoints.local_path(checkpoint)
        except UnavailableError:  # which ``missing`` reports
            path = None
        return checkpoint if path is None else str(path.resolve())


def is_random(checkpoint: str) -> bool:
    """Whether a setting asks for random weights: "random", or "random:" with the name of a published model."""
    return checkpoint.partition(":")[0] == random_weights.RANDOM


S = TypeVar("S", bound=BaseSettings)


class CheckpointAgent(Agent[S], Traced):
    """Base of the agents that read weights from files."""

    random: bool
    """Whether the weights are drawn, to try or measure a machine."""

    @abstractmethod
    def weight_paths(self) -> Sequence[Path]:
        """The files or folders with the weights. Raises UnavailableError if they are not here."""

    def size(self) -> int | None:
        """Bytes of the model's files; None with random weights. Raises UnavailableError."""
        return None if self.random else sum(map(model_folders.size, self.weight_paths()))

    def provenance(self) -> dict[str, Any]:
        """With ``random_weights`` where they are, also of a local file that says so."""
        provenance = super().provenance()
        if self.random or any(map(weight_files.random_weights, self.weight_paths())):
            return {**provenance, "random_weights": True}
        return provenance


P = TypeVar("P", bound=PretrainedSettings)


class PretrainedAgent(CheckpointAgent[P]):
    """Base of the agents whose model is a folder of transformers' form. Their memory follows from the weights that are
    here and from ``working_memory``, else it is as the class declares."""

    working_memory: ClassVar[int] = 2 * GIB
    """Bytes beside the weights: libraries, pictures, activations, the caches of a batch."""
    weights = 0
    """Bytes of the weights on a device; 0: they are not known."""
    prompt_tokens = 256
    """Tokens of the longest prompt for which there is room in memory."""
    needs: ClassVar[tuple[str, ...]] = ("config.json", model_folders.WEIGHTS, model_folders.PROCESSOR)
    """The files that the folder must have; "a|b" asks for either."""
    model_types: ClassVar[tuple[str, ...]] = ()
    """The types of models that its ``config.json`` may name; (): any that transformers knows."""
    _count = 0  # of weights, where they are here
    _largest = 0  # bytes of the largest file of weights

    def __init__(self, settings: P, name: str) -> None:
        super().__init__(settings, name)
        self.random = is_random(settings.checkpoint)
        self._made: tempfile.TemporaryDirectory[str] | None = None
        try:
            if self.random:
                count = self.architecture().parameters
                largest = 0
            else:
                count = sum(map(weight_files.count_weights, self.weight_paths()))
                largest = max(map(weight_files.largest_file, self.weight_paths()), default=0)
        except UnavailableError:
            return
        self._count = count
        self._largest = largest
        self.weights = self.bytes_per_weight() * count

    def declaration(self) -> Declaration:
        """With the memory that follows from the weights, where they are here."""
        declared = super().declaration()
        if not self._count:
            return declared
        return declared.replace(
            parameters=self._count,
            parallel=self._count >= WORTH_SHARING,
            memory=self.working_memory + 4 * self._count,  # fp32 on the CPU
            memory_beside_gpu=BESIDE_GPU + self._largest,  # weights pass through the host file by file
            device_memory=self.working_memory + self.weights,
        )

    def takes_random_weights(self) -> bool:
        """Whether the architecture that the checkpoint names is known."""
        return self._unknown_architecture() is None

    def device_bytes(self, batch_size: int) -> int:
        """As declared, or more where the configuration says what a stimulus takes."""
        declared = self.declaration()
        item = None if declared.batches_by_itself or not self.weights else self.item_memory()
        if item is None:
            return declared.device_memory
        return max(declared.device_memory, self.weights + LIBRARIES + batch_size * item)

    def weight_paths(self) -> Sequence[Path]:
        """The model's folder. Raises UnavailableError."""
        return [self.folder()]

    def bytes_per_weight(self) -> int:
        """Bytes of a weight on a GPU, 4 or 2."""
        return 4

    def item_memory(self, number: int = 0) -> int | None:
        """Bytes on a device that a stimulus of a batch takes beside the weights, at ``number`` bytes a value, else at
        :meth:`bytes_per_weight`; None where the configuration does not say."""
        settings: dict[str, Any] = self.settings.model_dump(include={"max_tokens", "beams", "decoding"})
        if "max_tokens" not in settings:
            return None
        try:
            if self.random:
                stored = self.architecture().files["config.json"]
            else:
                stored = json.loads((self.folder() / "config.json").read_text())
            config = plain_files.text_model(stored)
            if config is None:
                from transformers import AutoConfig

                config = AutoConfig.for_model(**stored)
        except Exception:  # transformers does not know it, or :func:`model_folders.problem` says what is wrong with it
            return None
        beams = 1 if settings.get("decoding") == "sample" else settings.get("beams", 1)
        prompt = getattr(self.settings, "prompt", None)
        longest = self.prompt_tokens if prompt is None else 8 + len(prompt) // 3
        positions = getattr(config, "max_position_embeddings", longest)
        try:
            return item_bytes(
                config, min(longest, positions), settings["max_tokens"], beams, number or self.bytes_per_weight()
            )
        except (AttributeError, TypeError, ArithmeticError):  # without attention, or it sees in another way
            return None

    def architecture(self) -> random_weights.Architecture:
        """What is drawn with random weights. Raises UnavailableError for one that is not known."""
        return random_weights.architecture(self.settings.checkpoint, self.model_types)

    def checkpoint(self) -> tuple[str | None, str | None]:
        """Name and commit, or hash; with random weights "random" and the published model of their architecture."""
        if self.random:
            return random_weights.RANDOM, random_weights.published_name(self.settings.checkpoint) or None
        return checkpoints.identity(self.settings.checkpoint, self.settings.revision)

    def missing(self) -> str | None:
        """A package, the folder, or what the folder lacks."""
        if (package := super().missing()) is not None:
            return package
        if self.random:
            return self._unknown_architecture()
        try:
            path = checkpoints.find(self.settings.checkpoint, self.settings.revision)
        except checkpoints.NotFetchedError as error:
            fetch = f"run `turinglike fetch {self.typed or self.name}` where there is a network"
            return f"{error}: {fetch}, or give a local copy by the setting {self.name}.checkpoint=PATH (--set)"
        except UnavailableError as error:
            return str(error)
        wrong = self.folder_problem(path)
        return None if wrong is None else f"{path} {wrong}"

    def folder_problem(self, path: Path) -> str | None:
        """What is wrong with the folder, as the end of a sentence that begins with its path, or None."""
        return model_folders.problem(path, self.needs, self.model_types or None)

    def _unknown_architecture(self) -> str | None:
        try:
            self.architecture()
        except UnavailableError as error:
            return str(error)
        return None

    def fetch(self) -> Sequence[Download]:
        """The model of the hub, or the local folder as it is. Raises UnavailableError, also for a folder that lacks
        something."""
        if self.random:
            return ()
        brought = hub.fetch(self.settings.checkpoint, self.settings.revision, needs=self.needs)
        wrong = self.folder_problem(brought.path) if brought.path.is_dir() else None
        if wrong is not None:
            raise UnavailableError(f"{brought.path} {wrong}")
        return [brought]

    def folder(self) -> Path:
        """The folder or file of the model; with random weights a temporary folder, drawn at the first call. Raises
        UnavailableError."""
        if not self.random:
            return checkpoints.find(self.settings.checkpoint, self.settings.revision)
        if self._made is None:
            self._made = random_weights.make_folder(self.architecture())
        return Path(self._made.name)

    def drop_folder(self) -> None:
        """Remove the temporary folder of random weights, once they are loaded."""
        if self._made is not None:
            self._made.cleanup()
            self._made = None

    def close(self) -> None:
        """Remove what random weights left."""
        super().close()
        self.drop_folder()


class WeightsFileSettings(BaseSettings):
    """Which file of weights."""

    checkpoint: str = Field("published", min_length=1)
    """The weights that were published for the model ("published"), a local .safetensors or .pth file, or "random"."""


F = TypeVar("F", bound=WeightsFileSettings)


class WeightsFileAgent(CheckpointAgent[F]):
    """Base of the agents whose weights are one file: published, local, or random."""

    licence: ClassVar[str]
    """The licence of the published weights."""

    def __init__(self, settings: F, name: str) -> None:
        super().__init__(settings, name)
        self.random = settings.checkpoint == random_weights.RANDOM

    def takes_random_weights(self) -> bool:
        """Always: the architecture is the class's own."""
        return True

    @abstractmethod
    def published(self) -> Path:
        """Where the published file is kept on this machine, there or not."""

    @abstractmethod
    def download(self, path: Path) -> None:
        """Bring the published file to ``path``, complete or not at all. Raises UnavailableError."""

    def weights_path(self) -> Path:
        """The file that the settings name, there or not."""
        checkpoint = self.settings.checkpoint
        return self.published() if checkpoint == "published" else Path(checkpoint).expanduser().absolute()

    def weight_paths(self) -> Sequence[Path]:
        """The file, there or not."""
        return [self.weights_path()]

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The file's name, and the hash of its content where it is here."""
        if self.random:
            return random_weights.RANDOM, None
        path = self.weights_path()
        checkpoint = self.settings.checkpoint
        revision = checkpoints.identity(str(path))[1] if path.is_file() else None
        return (path.name if checkpoint == "published" else checkpoint), revision

    def missing(self) -> str | None:
        """A package, or the file."""
        if (package := super().missing()) is not None or self.random:
            return package
        path = self.weights_path()
        if path.is_file():
            return None
        if self.settings.checkpoint == "published":
            return f"the published weights {path.name} are not on this machine: run `turinglike fetch {self.name}`"
        return f"{self.settings.checkpoint}: no such file"

    def fetch(self) -> Sequence[Download]:
        """The published file, if it is not here, or the local one as it is. Raises UnavailableError."""
        if self.random:
            return ()
        path = self.weights_path()
        is_published = self.settings.checkpoint == "published"
        if not path.is_file():
            if not is_published:
                raise UnavailableError(f"{self.settings.checkpoint}: no such file")
            path.parent.mkdir(parents=True, exist_ok=True)
            self.download(path)
        name, revision = self.checkpoint()
        licence = self.licence if is_published else None
        return [Download(str(name), path, path.stat().st_size, revision, licence)]

    def give_weights(
        self, model: torch.nn.Module, read: Callable[[Path], Mapping[str, torch.Tensor]], unused: Sequence[str] = ()
    ) -> None:
        """Give ``model`` the weights of the file, which ``read`` reads, on the CPU, or drawn ones. The file may hold
        more names that begin with one of ``unused``. Raises UnavailableError."""
        if self.random:
            random_weights.fill(model)
        else:
            path = self.weights_path()
            load_weights(model, read(path), path, unused)


# files that are on no hub


def torch_hub_path(name: str) -> Path:
    """Where torch.hub keeps a file of this name, there or not: below ``TORCH_HOME``, else below the cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("TORCH_HOME") or os.path.join(cache, "torch")
    return Path(home).expanduser() / "hub" / "checkpoints" / name


def download_torchvision(path: Path) -> None:
    """Bring weights of torchvision to ``path`` and check them against the hash in their name. Raises
    UnavailableError."""
    download(TORCHVISION + path.name, path, path.stem.rpartition("-")[2])


def download(url: str, path: Path, sha256: str | None = None) -> None:
    """Bring a file from ``url`` to ``path``, complete or not at all, if its SHA-256 begins with ``sha256``. Raises
    UnavailableError."""
    import torch

    try:
        torch.hub.download_url_to_file(url, str(path), hash_prefix=sha256)
    except (OSError, RuntimeError) as error:
        raise UnavailableError(f"{url} could not be downloaded: {error}") from None
