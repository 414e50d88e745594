"""Agents with a published checkpoint."""

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
from agents.models import checkpoints, hub, random_weights
from agents.models.loading import load_weights

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig

TORCHVISION = "https://download.pytorch.org/models/"
# Below so many weights threads cost more than they save: models of 0.1 million weights were up to 1.5 times as fast on
# a single thread as on two, a model of 18 million was not.
WORTH_SHARING = 5_000_000
LIBRARIES = GIB // 2  # on a GPU: work spaces of cuBLAS and cuDNN, and what torch's allocator cannot use between blocks
ON_HOST = 3 * GIB // 2  # torch and transformers; a run of a tiny model took 0.9 GiB
BESIDE_GPU = 3 * GIB  # on the host: torch with CUDA's libraries, and pictures being prepared


class PretrainedSettings(BaseSettings):
    """``checkpoint`` has its default in a subclass or the catalogue."""

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
    return checkpoint.partition(":")[0] == random_weights.RANDOM


S = TypeVar("S", bound=BaseSettings)


class CheckpointAgent(Agent[S], Traced):
    random: bool

    @abstractmethod
    def weight_paths(self) -> Sequence[Path]:
        """Raises UnavailableError."""

    def size(self) -> int | None:
        return None if self.random else sum(map(checkpoints.size, self.weight_paths()))

    def provenance(self) -> dict[str, Any]:
        is_random = self.random or any(map(checkpoints.random_weights, self.weight_paths()))
        return super().provenance() | ({"random_weights": True} if is_random else {})


P = TypeVar("P", bound=PretrainedSettings)


class PretrainedAgent(CheckpointAgent[P]):
    """A folder with the files ``needs`` (alternatives parted by "|") and a type of ``model_types`` (none: any). Memory
    follows from the weights that are here and ``working_memory``, else from the class."""

    working_memory: ClassVar[int] = 2 * GIB  # libraries, pictures, activations, caches of a batch
    weights = 0  # bytes on a device, where it is known
    _count = 0  # of weights, where they are here
    _largest = 0  # bytes of the largest file of weights
    prompt_tokens = 256  # of the longest prompt for which there is room in memory
    needs: ClassVar[tuple[str, ...]] = ("config.json", checkpoints.WEIGHTS, checkpoints.PROCESSOR)
    model_types: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: P, name: str) -> None:
        super().__init__(settings, name)
        self.random = is_random(settings.checkpoint)
        self._made: tempfile.TemporaryDirectory[str] | None = None
        try:
            if self.random:
                count = self.architecture().parameters
                largest = 0
            else:
                count = sum(map(checkpoints.count_weights, self.weight_paths()))
                largest = max(map(checkpoints.largest_file, self.weight_paths()), default=0)
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
        return self._unknown_architecture() is None

    def device_bytes(self, batch_size: int) -> int:
        declared = self.declaration()
        item = None if declared.batches_by_itself or not self.weights else self.item_memory()
        if item is None:
            return declared.device_memory
        return max(declared.device_memory, self.weights + LIBRARIES + batch_size * item)

    def weight_paths(self) -> Sequence[Path]:
        return [self.folder()]

    def bytes_per_weight(self) -> int:
        return 4

    def item_memory(self, number: int = 0) -> int | None:
        """Bytes on a device per stimulus, at ``number`` bytes a value or the settings'; None if unknown."""
        from transformers import AutoConfig

        chosen: dict[str, Any] = self.settings.model_dump(include={"max_tokens", "beams", "decoding"})
        if "max_tokens" not in chosen:
            return None
        try:
            if self.random:
                stored = self.architecture().files["config.json"]
            else:
                stored = json.loads((self.folder() / "config.json").read_text())
            config = AutoConfig.for_model(**stored)
        except Exception:  # transformers does not know it, or :func:`checkpoints.problem` says what is wrong with it
            return None
        beams = 1 if chosen.get("decoding") == "sample" else chosen.get("beams", 1)
        prompt = getattr(self.settings, "prompt", None)
        longest = self.prompt_tokens if prompt is None else 8 + len(prompt) // 3
        positions = getattr(config, "max_position_embeddings", longest)
        try:
            return item_bytes(
                config, min(longest, positions), chosen["max_tokens"], beams, number or self.bytes_per_weight()
            )
        except (AttributeError, TypeError, ArithmeticError):  # without attention, or it sees in another way
            return None

    def architecture(self) -> random_weights.Architecture:
        """For random weights. Raises UnavailableError."""
        return random_weights.architecture(self.settings.checkpoint, self.model_types)

    def checkpoint(self) -> tuple[str | None, str | None]:
        """With random weights the revision is the published checkpoint."""
        if self.random:
            return random_weights.RANDOM, random_weights.published_name(self.settings.checkpoint) or None
        return checkpoints.identity(self.settings.checkpoint, self.settings.revision)

    def missing(self) -> str | None:
        if (package := super().missing()) is not None:
            return package
        if self.random:
            return self._unknown_architecture()
        try:
            path = checkpoints.find(self.settings.checkpoint, self.settings.revision)
        except checkpoints.NotFetchedError as error:
            fetch = f"run `turinglike fetch {self.typed or self.name}` where there is a network"
            return f"{error}: {fetch}, or give a local copy with --set {self.name}.checkpoint=PATH"
        except UnavailableError as error:
            return str(error)
        wrong = self.folder_problem(path)
        return None if wrong is None else f"{path} {wrong}"

    def folder_problem(self, path: Path) -> str | None:
        """What is wrong with the folder, or None."""
        return checkpoints.problem(path, self.needs, self.model_types or None)

    def _unknown_architecture(self) -> str | None:
        try:
            self.architecture()
        except UnavailableError as error:
            return str(error)
        return None

    def fetch(self) -> Sequence[Download]:
        if self.random:
            return ()
        brought = hub.fetch(self.settings.checkpoint, self.settings.revision, needs=self.needs)
        wrong = self.folder_problem(brought.path) if brought.path.is_dir() else None
        if wrong is not None:
            raise UnavailableError(f"{brought.path} {wrong}")
        return [brought]

    def folder(self) -> Path:
        """The folder or file. Raises UnavailableError."""
        if not self.random:
            return checkpoints.find(self.settings.checkpoint, self.settings.revision)
        if self._made is None:
            self._made = random_weights.make_folder(self.architecture())
        return Path(self._made.name)

    def drop_folder(self) -> None:
        """Remove the temporary folder of random weights."""
        if self._made is not None:
            self._made.cleanup()
            self._made = None

    def close(self) -> None:
        super().close()
        self.drop_folder()


class WeightsFileSettings(BaseSettings):
    checkpoint: str = Field("published", min_length=1)
    """The weights that were published for the model ("published"), a local .safetensors or .pth file, or "random"."""


F = TypeVar("F", bound=WeightsFileSettings)


class WeightsFileAgent(CheckpointAgent[F]):
    """A file of weights: published, local, or ``random``."""

    licence: ClassVar[str]  # of the published weights

    def __init__(self, settings: F, name: str) -> None:
        super().__init__(settings, name)
        self.random = settings.checkpoint == random_weights.RANDOM

    def takes_random_weights(self) -> bool:
        return True

    @abstractmethod
    def published(self) -> Path:
        """The cached file's path, there or not."""

    @abstractmethod
    def download(self, path: Path) -> None:
        """Complete or not at all. Raises UnavailableError."""

    def weights_path(self) -> Path:
        """There or not."""
        checkpoint = self.settings.checkpoint
        return self.published() if checkpoint == "published" else Path(checkpoint).expanduser().absolute()

    def weight_paths(self) -> Sequence[Path]:
        return [self.weights_path()]

    def checkpoint(self) -> tuple[str | None, str | None]:
        if self.random:
            return random_weights.RANDOM, None
        path = self.weights_path()
        checkpoint = self.settings.checkpoint
        revision = checkpoints.identity(str(path))[1] if path.is_file() else None
        return (path.name if checkpoint == "published" else checkpoint), revision

    def missing(self) -> str | None:
        if (package := super().missing()) is not None or self.random:
            return package
        path = self.weights_path()
        if path.is_file():
            return None
        if self.settings.checkpoint == "published":
            return f"the published weights {path.name} are not on this machine: run `turinglike fetch {self.name}`"
        return f"{self.settings.checkpoint}: no such file"

    def fetch(self) -> Sequence[Download]:
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
        """Onto the CPU; names in ``unused`` may be left over. Raises UnavailableError."""
        if self.random:
            random_weights.fill(model)
        else:
            path = self.weights_path()
            load_weights(model, read(path), path, unused)


# files that are on no hub


def torch_hub_path(name: str) -> Path:
    """Where torch.hub keeps the file ``name``, there or not."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("TORCH_HOME") or os.path.join(cache, "torch")
    return Path(home).expanduser() / "hub" / "checkpoints" / name


def download_torchvision(path: Path) -> None:
    """Checked against the hash in its name. Raises UnavailableError."""
    download(TORCHVISION + path.name, path, path.stem.rpartition("-")[2])


def download(url: str, path: Path, sha256: str | None = None) -> None:
    """Complete or not at all; the hash begins with ``sha256``. Raises UnavailableError."""
    import torch

    try:
        torch.hub.download_url_to_file(url, str(path), hash_prefix=sha256)
    except (OSError, RuntimeError) as error:
        raise UnavailableError(f"{url} could not be downloaded: {error}") from None


# Memory beside the weights, from a model's configuration. A model keeps keys and values of every token of every layer,
# for each beam. With them stand for a moment a layer's results for a prompt, the scores of all tokens of the
# vocabulary, and the image encoder's for an image.

SCORES = 12  # copies of the vocabulary's scores in float32 while a token is chosen, sorted ones among them
TILES = {"llava_next": 5}  # models that read so many parts of a picture
MATERIAL = frozenset({"git", "blip", "opt"})  # whose attention writes down the weight of each token for each other
CROSSING = ("blip",)  # read the image beside the text; others read it before the text, as tokens


def item_bytes(config: PreTrainedConfig, prompt: int, new: int, beams: int, number: int) -> int:
    """Bytes for at most ``prompt`` and ``new`` tokens of ``beams``, at ``number`` bytes a value."""
    text: Any = config.get_text_config(decoder=True)
    vision = getattr(config, "vision_config", None)
    is_pair = config.is_encoder_decoder
    is_crossing = config.model_type in CROSSING
    is_material = not MATERIAL.isdisjoint((config.model_type, text.model_type))
    image = encoder = 0
    if vision is not None:
        patches = (vision.image_size // vision.patch_size) ** 2 + 1
        tiles = TILES.get(config.model_type, 1)
        image = getattr(config, "num_query_tokens", patches * tiles)
        weights = vision.num_attention_heads * patches**2 * (4 + number) if config.model_type in MATERIAL else 0
        results = patches * (6 * vision.hidden_size + 3 * vision.intermediate_size) * number
        encoder = tiles * (3 * vision.image_size**2 * (4 + number) + results + weights)  # pixels as they came, too
    hidden = text.hidden_size
    heads = text.num_attention_heads
    width = 6 * hidden + 3 * getattr(text, "intermediate_size", 4 * hidden)
    head_size = getattr(text, "head_dim", None) or hidden // heads
    key_values = (getattr(text, "num_key_value_heads", None) or heads) * head_size
    crossed = image if is_crossing else prompt if is_pair else 0
    first = 1 if is_pair else prompt + (0 if is_crossing else image)  # what is read at once
    kept = 2 * key_values * ((first + new) * beams + crossed) * number  # beams share what they read beside the text
    layer = beams * first * width * number
    if is_material:
        layer += beams * heads * first * (first + crossed) * (4 + 2 * number)
    elif is_pair:
        layer = crossed * width * number
    cache = kept * (text.num_hidden_layers + 2)  # a layer's are copied when a token is added, and when beams move
    return int(cache + layer + SCORES * 4 * beams * text.vocab_size + encoder)
