"""Word association by vectors from files (word2vec, GloVe), from GPT-2's input embeddings, and from a server.

A server embeds the vocabulary when the agent is first loaded, 1,024 words a request. The vectors are kept
(:mod:`agents.language.words.embedding_cache`), as a server may want money for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from agents import checkpoints, hub
from agents.contract import GIB, MIB
from agents.errors import AnswerError, UnavailableError
from agents.language.embedding_agent import EmbeddingAgent, EmbeddingSettings
from agents.language.engines.openai import OpenAIEngine, ServerSettings
from agents.language.words import embedding_cache, vocabulary
from agents.language.words import vectors as word_vectors
from agents.language.words.vectors import Case, forms
from agents.loading import load_part, load_pretrained
from agents.pretrained import PretrainedAgent, PretrainedSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SOURCES = (
    "nlp.stanford.edu/projects/glove has GloVe's glove.6B.zip (unpack it), code.google.com/archive/p/word2vec has "
    "word2vec's GoogleNews-vectors-negative300.bin.gz"
)


class VectorFileAgent(EmbeddingAgent["VectorFileAgent.Settings"]):
    """The nearest word by the vectors of a file. A cue of several words has the mean of those that the file knows."""

    class Settings(EmbeddingSettings):
        """As for every embedding, and the file."""

        checkpoint: str = Field(min_length=1)
        """A local file: GloVe's or word2vec's text, word2vec's .bin (.gz too); or .safetensors and .json of words."""
        case: word_vectors.Case = "any"
        """any: a word that the file lacks in small letters is looked up as Word, then as WORD; lower: it is not [?]."""

    memory = 3 * GIB  # at most 300,000 vectors of 300 numbers and the vocabulary's in float64
    settings: Settings

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The file and its hash; for safetensors that of the words beside it too."""
        name, revision = checkpoints.identity(self.settings.checkpoint)
        words = word_vectors.words_file(Path(name).expanduser())
        if name.endswith(".safetensors") and words.is_file():
            revision = f"{revision} {words.name}@{checkpoints.identity(str(words))[1]}"
        return name, revision

    def missing(self) -> str | None:
        try:
            self._path()
        except UnavailableError as error:
            return str(error)
        return super().missing()

    def fetch(self) -> Sequence[checkpoints.Download]:
        return [hub.fetch(str(self._path()))]

    def _path(self) -> Path:
        """The file. Raises UnavailableError with where such files are."""
        path = Path(self.settings.checkpoint).expanduser()
        if not path.is_file():
            raise UnavailableError(
                f"{self.settings.checkpoint}: no such file; {SOURCES}; then --set {self.name}.checkpoint=PATH"
            )
        return path.absolute()

    def load_model(self, device: str) -> None:
        # A cue may be rarer than any candidate.
        self._file = word_vectors.read(self._path(), vocabulary.known(), self.settings.case)

    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        rows = {word: row for word in self._words if (row := self._file.row(word)) is not None}
        return list(rows), self._file.matrix[list(rows.values())]

    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        return [self._vector(cue) for cue in cues]

    def _vector(self, cue: str) -> NDArray[np.floating] | AnswerError:
        import numpy as np

        rows = [row for word in cue.split() if (row := self._file.row(word)) is not None]
        if not rows:
            return AnswerError("unknown_cue", f"the vectors have no word of the cue {cue!r}")
        mean: NDArray[np.float64] = self._file.matrix[rows].mean(axis=0, dtype=np.float64)
        return mean


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


class OpenAIEmbeddingAgent(EmbeddingAgent["OpenAIEmbeddingAgent.Settings"]):
    """The nearest word by the vectors that a server gives for single words."""

    class Settings(EmbeddingSettings, ServerSettings):
        """As for every embedding, and the server."""

        model: str = Field("text-embedding-3-small", min_length=1)
        """The model's name at the server."""

    memory = 768 * MIB
    settings: Settings

    def __init__(self, settings: Settings, name: str) -> None:
        super().__init__(settings, name)
        self._engine = OpenAIEngine(settings)

    def environment(self) -> tuple[str, ...]:
        return (self.settings.key_variable,)

    def checkpoint(self) -> tuple[str | None, str | None]:
        return self.settings.model, None

    def missing(self) -> str | None:
        return self._engine.missing() or super().missing()

    def provenance(self) -> dict[str, Any]:
        return {**super().provenance(), **self._engine.provenance()}

    def load_model(self, device: str) -> None:
        missing = self._engine.missing()
        if missing is not None:
            raise UnavailableError(missing)

    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        about = {"base_url": self.settings.base_url, "model": self.settings.model}
        try:
            return self._words, embedding_cache.embedded(self._words, about, self._embed, embedding_cache.SERVED)
        except AnswerError as error:
            raise UnavailableError(f"the vocabulary cannot be embedded: {error}") from None

    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        try:
            return list(self._embed(cues))
        except AnswerError as error:
            return [error] * len(cues)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors [texts, dimensions], by a loop of its own in a thread of its own: one may be running in this."""
        import numpy as np

        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(asyncio.run, self._asked(texts)).result()
        return np.array(found, np.float32)

    async def _asked(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            return await self._engine.embed(texts)
        finally:
            await self._engine.aclose()
