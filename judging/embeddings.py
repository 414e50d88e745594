"""Embeddings of texts for judges that are classifiers: of whole texts, by a model of transformers.

They are kept in the user's cache (:mod:`agents.language.words.vectors`), so that a second judge, or a resumed
one, does not compute them again. Texts of as many tokens go through the model together, so that nothing is padded and a
vector does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from agents import checkpoints
from agents.language.minilm import PACKAGE, is_normalised, packaged_folder
from agents.language.words.vectors import embedded
from agents.loading import load_part, load_pretrained

if TYPE_CHECKING:
    from numpy.typing import NDArray

Pooling = Literal["mean", "cls"]
NEEDS = ("config.json", checkpoints.WEIGHTS, checkpoints.TOKENIZER)
TYPES = ("bert", "distilbert", "roberta", "mpnet", "gpt2")
TOGETHER = 64
LONGEST = 512  # tokens; what follows is not read, as BERT has no more positions


def folder_of(checkpoint: str) -> Path:
    """The folder of the packaged sentence model, or of a model of the hub or a local one. Raises UnavailableError."""
    return packaged_folder() if checkpoint == PACKAGE else checkpoints.find(checkpoint, None)


def problem(checkpoint: str) -> str | None:
    """What is wrong with the checkpoint for embeddings, or None. Raises UnavailableError where there is none."""
    return checkpoints.problem(folder_of(checkpoint), NEEDS, TYPES)


class Embedder:
    """A model that gives texts vectors. Raises UnavailableError if it cannot be loaded."""

    def __init__(self, checkpoint: str, pooling: Pooling, device: str) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        folder = folder_of(checkpoint)
        self._device = torch.device(device)
        self._tokenizer = load_part(AutoTokenizer, folder, "tokenizer")
        self._model = load_pretrained(AutoModel, folder, self._device, torch.float32)
        self._pooling = pooling
        self._normalised = (folder / "modules.json").is_file() and is_normalised(folder)
        self._about = {
            "texts": checkpoints.identity(str(folder))[1],
            "pooling": pooling,
            "normalised": self._normalised,
            "device": self._device.type,
            "torch": torch.__version__,
        }

    def vectors(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vector of each text, [dimensions]."""
        distinct = sorted(set(texts))
        if not distinct:
            return {}
        return dict(zip(distinct, embedded(distinct, self._about, self._embed), strict=True))

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import torch

        encoded = self._tokenizer(list(texts), truncation=True, max_length=min(LONGEST, self._positions()))["input_ids"]
        order = sorted(range(len(encoded)), key=lambda at: len(encoded[at]))
        vectors: NDArray[np.float32] = np.zeros((len(encoded), self._model.config.hidden_size), np.float32)
        begin = 0
        while begin < len(order):
            length = len(encoded[order[begin]])
            same = [at for at in order[begin : begin + TOGETHER] if len(encoded[at]) == length]
            begin += len(same)
            if length:
                with torch.inference_mode():
                    tokens = torch.tensor([encoded[at] for at in same], device=self._device)
                    states = self._model(input_ids=tokens).last_hidden_state
                    pooled = states[:, 0] if self._pooling == "cls" else states.mean(dim=1)
                    if self._normalised:
                        pooled = torch.nn.functional.normalize(pooled, dim=1)
                    vectors[same] = pooled.float().cpu().numpy()
        return vectors

    def _positions(self) -> int:
        return int(getattr(self._model.config, "max_position_embeddings", LONGEST))
