"""Agents whose checkpoint is one file of weights: the published one, in a cache, or a local one."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import ConfigDict, Field

from agents import checkpoints
from agents.contract import Agent
from agents.contract import Settings as BaseSettings
from agents.errors import UnavailableError
from agents.random_weights import RANDOM, fill

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

TORCHVISION = "https://download.pytorch.org/models/"


class WeightsFileSettings(BaseSettings):
    """Which file of weights."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    checkpoint: str = Field("published", min_length=1)
    """The weights that were published for the model ("published"), a local .safetensors or .pth file, or "random"."""


F = TypeVar("F", bound=WeightsFileSettings)


class WeightsFileAgent(Agent[F]):
    """Implements :meth:`checkpoint`, :meth:`missing`, :meth:`fetch` and :meth:`provenance` for one file of weights.

    With ``random`` weights (see :mod:`agents.random_weights`) there is no file.
    """

    licence: ClassVar[str]  # of the published weights

    def __init__(self, settings: F, name: str) -> None:
        super().__init__(settings, name)
        self.random = settings.checkpoint == RANDOM

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
            return RANDOM, None
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
        if not path.is_file():
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
            fill(model)
        else:
            path = self.weights_path()
            load_weights(model, read(path), path, unused)

    def provenance(self) -> dict[str, Any]:
        found = self.random or checkpoints.random_weights(self.weights_path())
        return {"random_weights": True} if found else {}


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


def load_weights(
    model: torch.nn.Module, weights: Mapping[str, torch.Tensor], path: Path, unused: Sequence[str] = ()
) -> None:
    """Give ``model`` its weights, every one of them. ``unused`` are beginnings of names that the file may have beyond.

    Raises UnavailableError, naming some, if weights are missing, superfluous, or of another shape.
    """
    kept = {name: value for name, value in weights.items() if not name.startswith(tuple(unused))}
    try:
        wrong = model.load_state_dict(kept, strict=False)
    except RuntimeError as error:  # shapes
        text = " ".join(str(error).split())
        raise UnavailableError(f"{path} is not a checkpoint of this architecture: {text[:200]}") from None
    checkpoints.check_names(path, wrong.missing_keys, wrong.unexpected_keys)
