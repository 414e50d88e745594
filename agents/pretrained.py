"""Agents with a published checkpoint: where it is, what is missing, and how it is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ConfigDict, Field

from agents import checkpoints
from agents.contract import Agent
from agents.contract import Settings as BaseSettings
from agents.errors import UnavailableError


class PretrainedSettings(BaseSettings):
    """Which checkpoint. A subclass gives ``checkpoint`` its default, or the catalogue does."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    checkpoint: str = Field(min_length=1)
    """An id on the Hugging Face hub, or a local folder."""
    revision: str | None = None
    """A commit, branch or tag of the hub; none: the one that was fetched last."""


P = TypeVar("P", bound=PretrainedSettings)


class PretrainedAgent(Agent[P]):
    """Implements :meth:`checkpoint`, :meth:`missing` and :meth:`fetch` for one folder of transformers' form.

    ``needs`` are the files that the folder must have, alternatives parted by "|"; ``model_types`` what its
    config.json may name.
    """

    needs: ClassVar[tuple[str, ...]] = ("config.json", checkpoints.WEIGHTS, checkpoints.PROCESSOR)
    model_types: ClassVar[tuple[str, ...]] = ()

    def checkpoint(self) -> tuple[str | None, str | None]:
        return checkpoints.identity(self.settings.checkpoint, self.settings.revision)

    def missing(self) -> str | None:
        try:
            found = checkpoints.find(self.settings.checkpoint, self.settings.revision)
        except UnavailableError as error:
            return (
                f"{error}: run `understudy fetch {self.name}` where there is a network, or give a local copy with "
                f"--set {self.name}.checkpoint=PATH"
            )
        wrong = checkpoints.problem(found, self.needs, self.model_types)
        return None if wrong is None else f"{found} {wrong}"

    def fetch(self) -> Sequence[checkpoints.Download]:
        return [checkpoints.fetch(self.settings.checkpoint, self.settings.revision)]

    def folder(self) -> Path:
        """The checkpoint's folder (or file). Raises UnavailableError."""
        return checkpoints.find(self.settings.checkpoint, self.settings.revision)

    def provenance(self) -> dict[str, Any]:
        return {"random_weights": True} if checkpoints.random_weights(self.folder()) else {}
