"""Agents with a published checkpoint: where it is, what is missing, and how it is fetched.

:class:`PretrainedAgent` has a folder of transformers' form, :class:`WeightsFileAgent` one file of weights.
"""

from __future__ import annotations

import json
import os
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import ConfigDict, Field

from agents import checkpoints, hub, random_weights
from agents.contract import GIB, Agent
from agents.contract import Settings as BaseSettings
from agents.errors import UnavailableError
from agents.loading import load_weights
from agents.model_memory import Generation, item_bytes

if TYPE_CHECKING:
    import torch

TORCHVISION = "https://download.pytorch.org/models/"
# Below so many weights, handing an operation to threads costs more than they save: models of 0.1 million weights were
# up to 1.5 times as fast on one thread of two, one of 18 million was not.
WORTH_SHARING = 5_000_000
LIBRARIES = GIB // 2  # on a GPU: work spaces of cuBLAS and cuDNN, and what torch's allocator cannot use between blocks
BESIDE_GPU = 3 * GIB  # on the host: torch with CUDA's libraries, and pictures being prepared


class PretrainedSettings(BaseSettings):
    """Which checkpoint. A subclass gives ``checkpoint`` its default, or the catalogue does."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    checkpoint: str = Field(min_length=1)
    """An id on the Hugging Face hub, a local folder, or "random": the architecture without its weights."""
    revision: str | None = None
    """A commit, branch or tag of the hub; none: the pinned commit, or else main as it was when it was fetched last."""


P = TypeVar("P", bound=PretrainedSettings)


class PretrainedAgent(Agent[P]):
    """An agent with one folder of transformers' form, which must have the files ``needs`` (alternatives parted by "|")
    and a config.json that names one of ``model_types``.

    ``memory`` and ``device_memory`` are what the class says (for its largest published checkpoint) until the
    checkpoint is on this machine; then they are found from its number of weights, ``working_memory`` beside them. For
    a GPU weights pass through the host's memory file by file, as they are stored; random ones are made on the GPU.

    With ``random`` weights (see :mod:`agents.random_weights`) the folder is a temporary one, which a subclass's
    ``load`` ends by :meth:`drop_folder`: a worker that is killed later leaves nothing behind.
    """

    working_memory: ClassVar[int] = 2 * GIB  # libraries, pictures, activations, caches of a batch
    weights = 0  # bytes on a device, where it is known
    prompt_tokens = 256  # of the longest prompt for which there is room in memory
    needs: ClassVar[tuple[str, ...]] = ("config.json", checkpoints.WEIGHTS, checkpoints.PROCESSOR)
    model_types: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: P, name: str) -> None:
        super().__init__(settings, name)
        self.random = random_weights.is_random(settings.checkpoint)
        self._made: tempfile.TemporaryDirectory[str] | None = None
        try:
            if self.random:
                count, largest = self.architecture().parameters, 0
            else:
                count = sum(map(checkpoints.count_weights, self.weight_paths()))
                largest = max(map(checkpoints.largest_file, self.weight_paths()), default=0)
        except UnavailableError:
            return
        if count:
            self.parallel = count >= WORTH_SHARING
            self.memory = self.working_memory + 4 * count  # fp32 on the CPU
            self.memory_beside_gpu = BESIDE_GPU + largest
            self.weights = self.bytes_per_weight() * count
            self.device_memory = self.working_memory + self.weights

    def device_bytes(self, batch_size: int) -> int:
        item = None if self.continuous() or not self.weights else self.item_memory()
        return (
            self.device_memory
            if item is None
            else max(self.device_memory, self.weights + LIBRARIES + batch_size * item)
        )

    def weight_paths(self) -> Sequence[Path]:
        """The files or folders that hold the weights. Raises UnavailableError."""
        return [self.folder()]

    def bytes_per_weight(self) -> int:
        """On a device."""
        return 4

    def item_memory(self) -> int | None:
        """Bytes on a device for each stimulus of a batch, from the architecture; None where it is not known. Imports
        transformers."""
        asked: dict[str, Any] = self.settings.model_dump(include={"max_tokens", "beams", "decoding"})
        config = self._whole_config()
        if config is None or "max_tokens" not in asked:
            return None
        beams = 1 if asked.get("decoding") == "sample" else asked.get("beams", 1)
        positions = config.get("max_position_embeddings") or config.get("n_positions") or self.prompt_tokens
        prompt = getattr(self.settings, "prompt", None)
        longest = self.prompt_tokens if prompt is None else 8 + len(prompt) // 3
        generation = Generation(min(longest, positions), asked["max_tokens"], beams)
        return item_bytes(config, generation, self.bytes_per_weight())

    def _whole_config(self) -> Mapping[str, Any] | None:
        """transformers' configuration with all its defaults; None for what transformers does not know."""
        from transformers import AutoConfig

        try:
            files = self.architecture().files if self.random else None
            read = json.loads((self.folder() / "config.json").read_text()) if files is None else files["config.json"]
            whole: dict[str, Any] = AutoConfig.for_model(**read).to_dict()
        except (UnavailableError, OSError, ValueError, TypeError, KeyError):
            return None
        return whole

    def architecture(self) -> random_weights.Architecture:
        """What is made for random weights. Raises UnavailableError."""
        return random_weights.architecture(self.settings.checkpoint, self.model_types)

    def checkpoint(self) -> tuple[str | None, str | None]:
        """With random weights the published checkpoint of the architecture stands for the revision."""
        if self.random:
            return random_weights.RANDOM, random_weights.published_name(self.settings.checkpoint) or None
        return checkpoints.identity(self.settings.checkpoint, self.settings.revision)

    def missing(self) -> str | None:
        if (lacking := self.missing_packages()) is not None:
            return lacking
        if self.random:
            return self.unknown_architecture()
        fetch = f"run `turinglike fetch {self.name}` where there is a network"
        try:
            is_local = checkpoints.local_path(self.settings.checkpoint) is not None
            found = checkpoints.find(self.settings.checkpoint, self.settings.revision)
        except checkpoints.NotFetchedError as error:
            return f"{error}: {fetch}, or give a local copy with --set {self.name}.checkpoint=PATH"
        except UnavailableError as error:
            return str(error)
        wrong = checkpoints.problem(found, self.needs, self.model_types)
        if wrong is None:
            return None
        is_whole = is_local or checkpoints.problem(found, self.needs) is None
        return f"{found} {wrong}" if is_whole else f"{found} {wrong}: {fetch}"

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
        found = hub.fetch(self.settings.checkpoint, self.settings.revision, needs=self.needs)
        wrong = checkpoints.problem(found.path, self.needs, self.model_types) if found.path.is_dir() else None
        if wrong is not None:
            raise UnavailableError(f"{found.path} {wrong}")
        return [found]

    def folder(self) -> Path:
        """The checkpoint's folder (or file). Raises UnavailableError."""
        if not self.random:
            return checkpoints.find(self.settings.checkpoint, self.settings.revision)
        if self._made is None:
            self._made = random_weights.make_folder(self.architecture())
        return Path(self._made.name)

    def provenance(self) -> dict[str, Any]:
        found = self.random or checkpoints.random_weights(self.folder())
        return {"random_weights": True} if found else {}

    def drop_folder(self) -> None:
        """Remove what was made for random weights, if there is anything: of use until the model is loaded."""
        if self._made is not None:
            self._made.cleanup()
            self._made = None

    def close(self) -> None:
        super().close()
        self.drop_folder()


class WeightsFileSettings(BaseSettings):
    """Which file of weights."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    checkpoint: str = Field("published", min_length=1)
    """The weights that were published for the model ("published"), a local .safetensors or .pth file, or "random"."""


F = TypeVar("F", bound=WeightsFileSettings)


class WeightsFileAgent(Agent[F]):
    """An agent with one file of weights: published and in a cache, or local; with ``random`` weights none."""

    licence: ClassVar[str]  # of the published weights

    def __init__(self, settings: F, name: str) -> None:
        super().__init__(settings, name)
        self.random = settings.checkpoint == random_weights.RANDOM

    @abstractmethod
    def published(self) -> Path:
        """Where the published weights are, or would be if they were fetched."""

    @abstractmethod
    def download(self, path: Path) -> None:
        """Bring the published weights to ``path``, whole or not at all. Raises UnavailableError."""

    def weights_path(self) -> Path:
        """The file that the settings name, there or not."""
        given = self.settings.checkpoint
        return self.published() if given == "published" else Path(given).expanduser().absolute()

    def checkpoint(self) -> tuple[str | None, str | None]:
        if self.random:
            return random_weights.RANDOM, None
        path, given = self.weights_path(), self.settings.checkpoint
        revision = checkpoints.identity(str(path))[1] if path.is_file() else None
        return (path.name if given == "published" else given), revision

    def missing(self) -> str | None:
        if (lacking := self.missing_packages()) is not None or self.random:
            return lacking
        path = self.weights_path()
        if path.is_file():
            return None
        if self.settings.checkpoint == "published":
            return f"the published weights {path.name} are not on this machine: run `turinglike fetch {self.name}`"
        return f"{self.settings.checkpoint}: no such file"

    def fetch(self) -> Sequence[checkpoints.Download]:
        if self.random:
            return ()
        path, published = self.weights_path(), self.settings.checkpoint == "published"
        if published and not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            self.download(path)
        elif not path.is_file():
            raise UnavailableError(f"{self.settings.checkpoint}: no such file")
        name, revision = self.checkpoint()
        licence = self.licence if published else None
        return [checkpoints.Download(str(name), path, path.stat().st_size, revision, licence)]

    def give_weights(
        self,
        model: torch.nn.Module,
        read: Callable[[Path], Mapping[str, torch.Tensor]],
        unused: Sequence[str] = (),
    ) -> None:
        """Give ``model``, which is on the CPU, its weights: what ``read`` says of the file, or random ones.

        ``unused`` are beginnings of names that the file may have beyond. Raises UnavailableError.
        """
        if self.random:
            random_weights.fill(model)
        else:
            path = self.weights_path()
            load_weights(model, read(path), path, unused)

    def provenance(self) -> dict[str, Any]:
        found = self.random or checkpoints.random_weights(self.weights_path())
        return {"random_weights": True} if found else {}


# downloading files that are on no hub


def torch_hub_path(name: str) -> Path:
    """Where torch.hub keeps the file ``name`` of weights, there or not."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("TORCH_HOME") or os.path.join(cache, "torch")
    return Path(home).expanduser() / "hub" / "checkpoints" / name


def download_torchvision(path: Path) -> None:
    """Bring a file of torchvision's to ``path``, checked against the hash in its name. Raises UnavailableError."""
    download(TORCHVISION + path.name, path, path.stem.rpartition("-")[2])


def download(url: str, path: Path, sha256: str | None = None) -> None:
    """Bring a file to ``path``, whole or not at all; ``sha256`` is how its hash begins. Raises UnavailableError."""
    import torch

    try:
        torch.hub.download_url_to_file(url, str(path), hash_prefix=sha256)
    except (OSError, RuntimeError) as error:
        raise UnavailableError(f"{url} could not be downloaded: {error}") from None
