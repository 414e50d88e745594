"""Texts as vectors, by a sentence model: what classifiers learn from, and what energy distances of answers go by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agents.errors import UnavailableError
from agents.language.minilm import PACKAGE, SentenceModel, minilm_folder
from agents.language.words.vectors import embedded
from agents.models import checkpoints, model_folders

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pooling = Literal["mean", "cls"]
NEEDS = ("config.json", model_folders.WEIGHTS, model_folders.TOKENIZER)
TYPES = ("bert", "distilbert", "roberta", "mpnet", "gpt2")


def folder_of(checkpoint: str) -> Path:
    """The folder of the packaged sentence model, or of the hub's or a local model. Raises UnavailableError."""
    folder = minilm_folder() if checkpoint == PACKAGE else checkpoints.find(checkpoint, None)
    if (wrong := model_folders.problem(folder, NEEDS, TYPES)) is not None:
        raise UnavailableError(f"{checkpoint} {wrong}")
    return folder


class Embedder:
    """A model that turns texts into vectors, cached for the user. Raises UnavailableError."""

    def __init__(self, checkpoint: str, pooling: Pooling, device: str) -> None:
        folder = folder_of(checkpoint)
        self._model = SentenceModel(folder, device, pooling)
        self._about = {"texts": checkpoints.identity(str(folder))[1], "pooling": pooling, **self._model.facts}

    def vectors(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The embedding [dimensions] of each distinct text."""
        distinct = sorted(set(texts))
        if not distinct:
            return {}
        return dict(zip(distinct, embedded(distinct, self._about, self._model.embed), strict=True))
