"""GPT-2's input embeddings as vectors of words (Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from agents import checkpoints
from agents.contract import GIB
from agents.errors import AnswerError
from agents.language.embedding_agent import EmbeddingAgent, EmbeddingSettings
from agents.language.words.vectors import Case, forms
from agents.loading import load_part, load_pretrained
from agents.pretrained import PretrainedAgent, PretrainedSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class GPT2EmbeddingAgent(EmbeddingAgent["GPT2EmbeddingAgent.Settings"], PretrainedAgent["GPT2EmbeddingAgent.Settings"]):
    """The nearest word by the rows of GPT-2's embedding matrix: a token's, or the mean of a word's tokens."""

    class Settings(EmbeddingSettings, PretrainedSettings):
        """As for every embedding, and how a word becomes tokens."""

        checkpoint: str = "openai-community/gpt2"
        """An id on the Hugging Face hub, or a local folder."""
        leading_space: bool = True
        """Whether a word has a space before it, as inside a sentence; such words have tokens of their own [?]."""
        case: Case = "any"
        """any: of word, Word and WORD the one of fewest tokens, as names are tokens with a capital; lower: word [?]."""
        several_tokens: Literal["mean", "skip"] = "mean"
        """Words of several tokens: the mean of their rows, or no candidates (a cue is then an unknown_cue) [?]."""

    needs = ("config.json", checkpoints.WEIGHTS, checkpoints.TOKENIZER)
    model_types = ("gpt2",)
    working_memory = 2 * GIB
    settings: Settings

    def __init__(self, settings: Settings, name: str) -> None:
        super().__init__(settings, name)
        self.device_memory = 0  # one look-up and one product: nothing for a GPU

    def open(self) -> None:
        from transformers import AutoTokenizer

        super().open()
        self._tokenizer = load_part(AutoTokenizer, self.folder(), "tokenizer")

    def load_model(self, device: str) -> None:
        import torch
        from transformers import GPT2Model

        model = load_pretrained(GPT2Model, self.folder(), torch.device("cpu"), torch.float32)
        self._rows: NDArray[np.float32] = model.get_input_embeddings().weight.detach().numpy().copy()
        self.drop_folder()

    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        import numpy as np

        tokens = dict(zip(self._words, self._tokens(self._words), strict=True))
        if self.settings.several_tokens == "skip":
            tokens = {word: ids for word, ids in tokens.items() if len(ids) == 1}
        vectors = [self._mean(ids) for ids in tokens.values()]
        return list(tokens), np.stack(vectors) if vectors else self._rows[:0]

    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        return [
            AnswerError("unknown_cue", f"the cue {cue!r} is {len(ids)} tokens, and several_tokens is skip")
            if len(ids) != 1 and self.settings.several_tokens == "skip"
            else self._mean(ids)
            for cue, ids in zip(cues, self._tokens(cues), strict=True)
        ]

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, in the form of fewest tokens, the earlier of equal ones."""
        space = " " * self.settings.leading_space
        written = [[space + form for form in forms(text, self.settings.case)] for text in texts]
        encoded = iter(
            self._tokenizer([form for one in written for form in one], add_special_tokens=False)["input_ids"]
        )
        return [min([next(encoded) for _ in one], key=len) for one in written]

    def _mean(self, ids: Sequence[int]) -> NDArray[np.floating]:
        import numpy as np

        mean: NDArray[np.float64] = self._rows[list(ids)].mean(axis=0, dtype=np.float64)
        return mean
