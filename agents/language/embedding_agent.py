"""Word association by embeddings: the word of a vocabulary whose vector is nearest to the cue's.

A family says what the vector of a word is (:mod:`agents.language.word_embeddings`,
:mod:`agents.language.minilm`); the vocabulary, the search and the rules for answers are here. The papers leave the
vocabulary, capitals, spaces and words of several tokens unstated [?]: they are settings.

Nothing is drawn. Sample k of a stimulus is the acceptable word of rank k, as a beam search has beams; the version
(free or prompted) and its examples make no difference.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from agents.answers import Skipped, WordAnswer
from agents.contract import GIB, Agent, Draw, Reply
from agents.errors import AnswerError, UnavailableError
from agents.language.words import vocabulary, wordnet
from agents.language.words.rules import CUE, RuleSettings, judge, letters
from agents.stimuli import Stimulus, Task, WordStimulus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

Metric = Literal["euclidean", "cosine"]

STEPS = 2**20
FIRST = 256  # so many are sorted for every vector; a search that goes farther sorts all


class NearestWords:
    """Words in the order of their frequency, with their vectors [words, dimensions] (finite, of any float type)."""

    def __init__(self, words: Sequence[str], vectors: NDArray[np.floating], metric: Metric, device: str) -> None:
        import torch

        self.words = tuple(words)
        self._device = torch.device(device)
        self._metric = metric
        self._vectors = self._scaled(torch.from_numpy(vectors).to(self._device, torch.float64))
        self._squares = (self._vectors**2).sum(dim=1)
        self._longest = self._squares.max().sqrt()

    def around(self, vectors: NDArray[np.floating]) -> list[Iterator[tuple[str, float]]]:
        """For each of ``vectors`` [batch, dimensions] (finite) all words with their distances, the nearest first.

        A cosine distance is 1 minus the cosine; a vector of zeros is 1 away from all.
        """
        import torch

        from agents.transfer import downloaded, uploaded

        [queries] = uploaded([torch.from_numpy(vectors)], self._device)
        queries = self._scaled(queries.double())
        products = queries @ self._vectors.T
        if self._metric == "cosine":
            distances, largest = 1 - products, torch.full_like(products[:, :1], 2)
        else:
            squares = (queries**2).sum(dim=1, keepdim=True)
            distances = (squares + self._squares - 2 * products).clamp(min=0).sqrt()
            largest = squares.sqrt() + self._longest
        steps = (distances / largest.clamp(min=1e-300) * STEPS).round().long()
        # One whole number says both, the rounded distance and the rank, so that no two words are equal.
        keys = steps * len(self.words) + torch.arange(len(self.words), device=self._device)
        first = torch.topk(keys, min(FIRST, len(self.words)), dim=1, largest=False).indices
        indices, near = (one.tolist() for one in downloaded([first, distances.gather(1, first)]))
        return [self._walk(*row) for row in zip(indices, near, keys, distances, strict=True)]

    def _walk(
        self, first: list[int], near: list[float], keys: Tensor, distances: Tensor
    ) -> Iterator[tuple[str, float]]:
        from agents.transfer import downloaded

        for index, distance in zip(first, near, strict=True):
            yield self.words[index], distance
        order = keys.argsort()[len(first) :]
        for index, distance in zip(*(one.tolist() for one in downloaded([order, distances[order]])), strict=True):
            yield self.words[index], distance

    def _scaled(self, vectors: Tensor) -> Tensor:
        if self._metric == "euclidean":
            return vectors
        scaled: Tensor = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-300)
        return scaled


class EmbeddingSettings(RuleSettings):
    """Which words may be answers, and how the nearest is found."""

    vocabulary: int = Field(12_000, ge=1, le=300_000)
    """So many of wordfreq's most frequent words are candidates [?]; the papers' rarest (no cue) has rank 11,309."""
    metric: Metric = "euclidean"
    """How far apart two vectors are: by Euclidean distance, as in the papers, or by 1 minus their cosine."""
    candidates: int = Field(10, ge=1, le=100)
    """So many acceptable words stand in the record, and so many samples there are: sample k is the word of rank k."""


E = TypeVar("E", bound=EmbeddingSettings)


class EmbeddingAgent(Agent[E]):
    """Base of the agents that answer with the nearest word. A family gives the vectors."""

    tasks: ClassVar[tuple[Task, ...]] = ("word_association",)
    extra = "language"
    packages = ("torch", "transformers", vocabulary.PACKAGE)
    memory = 2 * GIB
    batch_size = 64

    def __init__(self, settings: E, name: str) -> None:
        super().__init__(settings, name)
        self.max_samples = settings.candidates

    def open(self) -> None:
        self._words = vocabulary.most_frequent(self.settings.vocabulary)

    def load(self, device: str) -> None:
        self.load_model(device)
        words, vectors = self.vocabulary_vectors()
        if not words:
            raise UnavailableError(f"agent {self.name}: none of the {len(self._words):,} words has a vector")
        self._nearest = NearestWords(words, vectors, self.settings.metric, device)

    def prepare(self, stimulus: Stimulus) -> str:
        assert isinstance(stimulus, WordStimulus)
        return stimulus.cue

    def respond(self, batch: Sequence[str], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        import numpy as np
        import torch

        vectors: dict[str, NDArray[np.floating]] = {}
        found: dict[str, RankedWords | AnswerError] = {}
        cues = list(dict.fromkeys(batch))
        for cue, vector in zip(cues, self.cue_vectors(cues), strict=True):
            if isinstance(vector, AnswerError):
                found[cue] = vector
            elif np.isfinite(vector).all():
                vectors[cue] = vector
            else:
                found[cue] = AnswerError("bad_vector", "the cue's vector has numbers that are not finite")
        if vectors:
            with torch.inference_mode():
                around = self._nearest.around(np.stack(list(vectors.values())))
            found |= {cue: self._ranked(cue, words) for cue, words in zip(vectors, around, strict=True)}
        return [_reply(found[cue], draw.sample) for cue, draw in zip(batch, draws, strict=True)]

    def provenance(self) -> dict[str, Any]:
        return {
            **super().provenance(),
            "vocabulary": vocabulary.describe(self._words),
            "words_with_vectors": len(self._nearest.words),
            "lemmas": f"WordNet {wordnet.VERSION}",
        }

    def close(self) -> None:
        del self._nearest
        super().close()

    # what a family gives

    @abstractmethod
    def load_model(self, device: str) -> None:
        """Load what vectors are made of."""

    @abstractmethod
    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        """Those of ``self._words`` that have vectors, in their order, and the vectors [words, dimensions]."""

    @abstractmethod
    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        """The vector of each cue, which may be several words; the same whatever else is in ``cues``."""

    def _ranked(self, cue: str, words: Iterator[tuple[str, float]]) -> RankedWords:
        """Go outwards from the cue until there are enough acceptable words."""
        found = RankedWords()
        same = letters(cue)
        for word, distance in words:
            judged = judge(word, cue, self.settings)
            rule = CUE if word == same else judged.rule
            if rule is not None:
                found.skipped.append((len(found.words), Skipped(word=word, rule=rule)))
            elif judged.word not in found.words:  # "dogs" may come before "dog"
                found.words[judged.word] = {"word": word, "distance": round(distance, 6)}
            if len(found.words) == self.settings.candidates:
                break
        return found


@dataclass(slots=True)
class RankedWords:
    """``words``: by each acceptable word which word of the vocabulary it comes from and how far away that is.
    ``skipped``: the words that broke a rule, each with the number of acceptable ones before it."""

    words: dict[str, dict[str, Any]] = field(default_factory=dict)
    skipped: list[tuple[int, Skipped]] = field(default_factory=list)


def _reply(found: RankedWords | AnswerError, rank: int) -> Reply | AnswerError:
    if isinstance(found, AnswerError):
        return found
    words = list(found.words)
    if rank >= len(words):
        return AnswerError("no_word", f"sample {rank} is the word of rank {rank}, but {len(words)} words were found")
    skipped = [word for before, word in found.skipped if before <= rank]
    return Reply(WordAnswer(word=words[rank], candidates=words, skipped=skipped), raw=found.words[words[rank]])
