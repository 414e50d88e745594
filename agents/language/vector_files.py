"""word2vec and GloVe: vectors of whole words, from a local file (Mikolov et al. 2013; Pennington et al. 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from agents import checkpoints, hub
from agents.contract import GIB
from agents.errors import AnswerError, UnavailableError
from agents.language.embedding_agent import EmbeddingAgent, EmbeddingSettings
from agents.language.words import vectors as word_vectors
from agents.language.words import vocabulary

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
