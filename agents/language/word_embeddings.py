"""Word association by the nearest vector of a vocabulary. Sample k is the acceptable word of rank k.

The papers do not state the vocabulary, nor what they do with capitals, spaces and words of several tokens. Docstrings
mark what is a guess by [?].
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from agents.answers import Skipped, WordAnswer
from agents.capabilities import Traced
from agents.contract import GIB, MIB, Agent, Declaration, Download, Draw, Reply
from agents.errors import AnswerError, UnavailableError
from agents.language.engines.clients import ServerModel
from agents.language.engines.openai import OpenAIEngine, ServerSettings
from agents.language.words import vectors as word_vectors
from agents.language.words import vocabulary
from agents.language.words.rules import CUE, RuleSettings, apply_rules, letters
from agents.language.words.vectors import Case, Metric, NearestWords, forms
from agents.models import checkpoints, hub, model_folders
from agents.models.loading import load_part, load_pretrained
from agents.models.pretrained import PretrainedAgent, PretrainedSettings
from agents.replies import Finding
from agents.stimuli import Stimulus, WordStimulus

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOURCES = (
    "nlp.stanford.edu/projects/glove has GloVe's glove.6B.zip (unpack it), code.google.com/archive/p/word2vec has "
    "word2vec's GoogleNews-vectors-negative300.bin.gz"
)
"""Where the published files are to be had."""


class EmbeddingSettings(RuleSettings):
    """Which words may be answers, and how they are searched."""

    vocabulary: int = Field(12_000, ge=1, le=300_000)
    """How many of wordfreq's most frequent words are candidates [?]; the papers' rarest answer has rank 11,309."""
    metric: Metric = "euclidean"
    """How far apart two vectors are: by Euclidean distance, as in the papers, or by 1 minus their cosine."""
    candidates: int = Field(10, ge=1, le=100)
    """How many acceptable words the record has, and how many samples there are: sample k has rank k."""


E = TypeVar("E", bound=EmbeddingSettings)
RankedWords = tuple[dict[str, dict[str, Any]], list[tuple[int, Skipped]]]
"""The acceptable words in order, each with the vocabulary's word and its distance; and the skipped words, each with the
number of acceptable words before it."""


class EmbeddingAgent(Agent[E], Traced):
    """Base of the agents that answer with the nearest word. A subclass gives the vectors."""

    declares = Declaration(
        tasks=("word_association",),
        extra="language",
        packages=("torch", "transformers", vocabulary.PACKAGE),
        memory=2 * GIB,
        batch_size=64,
    )

    def declaration(self) -> Declaration:
        """With a sample for each candidate."""
        return super().declaration().replace(max_samples=self.settings.candidates)

    def load_model(self, device: str) -> None:
        """Load what vectors are made of onto ``device``. Raises UnavailableError."""

    @abstractmethod
    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        """(words, vectors): those of ``self._words`` that have a vector, and their vectors [words, dimensions]."""

    @abstractmethod
    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        """The vector [dimensions] of each cue, which may be several words; an AnswerError for a cue without one."""

    def open(self) -> None:
        """Read the vocabulary. Raises UnavailableError."""
        self._words = vocabulary.most_frequent(self.settings.vocabulary)

    def load(self, device: str) -> None:
        """Load the vectors and make ready the search. Raises UnavailableError if no word has a vector."""
        self.load_model(device)
        words, vectors = self.vocabulary_vectors()
        if not words:
            raise UnavailableError(f"agent {self.name}: none of the {len(self._words):,} words has a vector")
        self._nearest = NearestWords(words, vectors, self.settings.metric, device)

    def prepare(self, stimulus: Stimulus) -> str:
        """The cue, which is all that the search needs of a stimulus."""
        assert isinstance(stimulus, WordStimulus)
        return stimulus.cue

    def respond(self, batch: Sequence[str], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """For each cue the word of the draw's rank. Equal cues are searched once."""
        import torch

        rankings: dict[str, RankedWords | AnswerError] = {}
        vectors: dict[str, NDArray[np.floating]] = {}
        cues = list(dict.fromkeys(batch))
        for cue, vector in zip(cues, self.cue_vectors(cues), strict=True):
            if isinstance(vector, AnswerError):
                rankings[cue] = vector
            elif np.isfinite(vector).all():
                vectors[cue] = vector
            else:
                rankings[cue] = AnswerError("bad_vector", "the cue's vector has numbers that are not finite")
        if vectors:
            with torch.inference_mode():
                nearest = self._nearest.nearest(np.stack(list(vectors.values())))
            rankings |= {cue: self._ranking(cue, words) for cue, words in zip(vectors, nearest, strict=True)}
        return [_reply(rankings[cue], draw.sample) for cue, draw in zip(batch, draws, strict=True)]

    def provenance(self) -> dict[str, Any]:
        """What the base class says; also the vocabulary with its hash, how many of its words have vectors, and
        WordNet's version."""
        return {
            **super().provenance(),
            "vocabulary": vocabulary.describe(self._words),
            "words_with_vectors": len(self._nearest.words),
            "lemmas": f"WordNet {vocabulary.WORDNET_VERSION}",
        }

    def close(self) -> None:
        """Release the vectors."""
        del self._nearest
        super().close()

    def _ranking(self, cue: str, words: Iterator[tuple[str, float]]) -> RankedWords:
        ranked: dict[str, dict[str, Any]] = {}
        skipped: list[tuple[int, Skipped]] = []
        same = letters(cue)
        for word, distance in words:
            judged = apply_rules(word, cue, self.settings)
            rule = CUE if word == same else judged.rule
            if rule is not None:
                skipped.append((len(ranked), Skipped(word=word, rule=rule)))
            elif judged.word not in ranked:  # "dogs" may come before "dog"
                ranked[judged.word] = {"word": word, "distance": round(distance, 6)}
            if len(ranked) == self.settings.candidates:
                break
        return ranked, skipped


def note_unknown_cue(stimulus: Stimulus, reply: Reply) -> Finding | None:
    """A note where none of the cue's words is an English word that wordfreq knows.

    For an embedding of pieces of words any letters have a vector, and some word is the nearest to it. The answer stays.
    """
    assert isinstance(stimulus, WordStimulus)
    if any(vocabulary.frequency_rank(letters(word)) is not None for word in stimulus.cue.split()):
        return None
    return Finding("unknown_cue", rejected=False, found=stimulus.cue)


def _reply(ranking: RankedWords | AnswerError, rank: int) -> Reply | AnswerError:
    if isinstance(ranking, AnswerError):
        return ranking
    ranked, skipped = ranking
    words = list(ranked)
    if rank >= len(words):
        return AnswerError("no_word", f"sample {rank} is the word of rank {rank}, but there are {len(words)} words")
    before = [word for position, word in skipped if position <= rank]
    return Reply(WordAnswer(word=words[rank], candidates=words, skipped=before), raw=ranked[words[rank]])


class VectorFileAgent(EmbeddingAgent["VectorFileAgent.Settings"]):
    """Answers by the vectors of a local file; the vector of several words is their mean."""

    class Settings(EmbeddingSettings):
        """The file, and how words are looked up in it."""

        checkpoint: str = Field(min_length=1)
        """A local file: GloVe's or word2vec's text, or word2vec's .bin (.gz too)."""
        case: Case = "any"
        """any: a word that the file lacks in small letters is looked up as Word, then WORD; lower: it is not [?]."""

    declares = Declaration(
        memory=3 * GIB,  # at most 300,000 vectors of 300 numbers and the vocabulary's in float64
    )
    settings: Settings
    """The file and the search for words; fixed once the agent is made."""

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The file's path and its hash."""
        return checkpoints.identity(self.settings.checkpoint)

    def missing(self) -> str | None:
        """What the base class says; also that there is no such file, and where to get one."""
        try:
            self._path()
        except UnavailableError as error:
            return str(error)
        return super().missing()

    def fetch(self) -> Sequence[Download]:
        """Nothing is downloaded; the file is told. Raises UnavailableError."""
        return [hub.fetch(str(self._path()))]

    def _path(self) -> Path:
        path = Path(self.settings.checkpoint).expanduser()
        if not path.is_file():
            raise UnavailableError(
                f"{self.settings.checkpoint}: no such file; {SOURCES}; then name the file by the setting "
                f"{self.name}.checkpoint=PATH (--set)"
            )
        return path.absolute()

    def load_model(self, device: str) -> None:
        """Read the vectors of all English words, as a cue may be rarer than any candidate. Raises UnavailableError."""
        # A cue may be rarer than any candidate.
        self._file = word_vectors.read(self._path(), vocabulary.all_words(), self.settings.case)

    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        """The vocabulary's words that stand in the file, and their vectors."""
        rows = {word: row for word in self._words if (row := self._file.row(word)) is not None}
        return list(rows), self._file.matrix[list(rows.values())]

    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        """The mean over those of the cue's words that stand in the file; the error ``unknown_cue`` if none does."""
        return [self._vector(cue) for cue in cues]

    def _vector(self, cue: str) -> NDArray[np.floating] | AnswerError:
        rows = [row for word in cue.split() if (row := self._file.row(word)) is not None]
        if not rows:
            return AnswerError("unknown_cue", f"the vectors have no word of the cue {cue!r}")
        mean: NDArray[np.float64] = self._file.matrix[rows].mean(axis=0, dtype=np.float64)
        return mean


class GPT2EmbeddingAgent(EmbeddingAgent["GPT2EmbeddingAgent.Settings"], PretrainedAgent["GPT2EmbeddingAgent.Settings"]):
    """Answers by GPT-2's matrix of token embeddings; the vector of a word of several tokens is their mean."""

    class Settings(EmbeddingSettings, PretrainedSettings):
        """The checkpoint, and how words become tokens."""

        checkpoint: str = "openai-community/gpt2"
        """An id on the Hugging Face hub, or a local folder."""
        leading_space: bool = True
        """Whether a word has a space before it, as inside a sentence; such words have tokens of their own [?]."""
        case: Case = "any"
        """any: of word, Word, WORD the one with fewest tokens, as names are tokens with a capital; lower: word [?]."""
        several_tokens: Literal["mean", "skip"] = "mean"
        """Words of several tokens have their rows' mean, or are no candidates (such a cue is an unknown_cue) [?]."""

    needs = ("config.json", model_folders.WEIGHTS, model_folders.TOKENIZER)
    model_types = ("gpt2",)
    working_memory = 2 * GIB
    settings: Settings
    """The checkpoint, its tokens and the search for words; fixed once the agent is made."""

    def declaration(self) -> Declaration:
        """Without a GPU, as there is one look-up and one product to make."""
        return super().declaration().replace(device_memory=0)

    def open(self) -> None:
        """As the base class does; also open the tokenizer. Raises UnavailableError."""
        from transformers import AutoTokenizer

        super().open()
        self._tokenizer = load_part(AutoTokenizer, self.folder(), "tokenizer")

    def load_model(self, device: str) -> None:
        """Copy the embedding matrix, float32, and let the model go. It stays on the CPU: a look-up and a product are
        nothing for a GPU."""
        import torch
        from transformers import GPT2Model

        model = load_pretrained(GPT2Model, self.folder(), torch.device("cpu"), torch.float32)
        self._rows: NDArray[np.float32] = model.get_input_embeddings().weight.detach().numpy().copy()
        self.drop_folder()

    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        """The vocabulary's words, without those of several tokens if the settings skip them, and their vectors."""
        tokens = dict(zip(self._words, self._tokens(self._words), strict=True))
        if self.settings.several_tokens == "skip":
            tokens = {word: ids for word, ids in tokens.items() if len(ids) == 1}
        vectors = [self._mean(ids) for ids in tokens.values()]
        return list(tokens), np.stack(vectors) if vectors else self._rows[:0]

    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        """The mean over a cue's tokens, or the error ``unknown_cue`` where the settings skip it."""
        return [
            AnswerError("unknown_cue", f"the cue {cue!r} is {len(ids)} tokens, and several_tokens is skip")
            if len(ids) != 1 and self.settings.several_tokens == "skip"
            else self._mean(ids)
            for cue, ids in zip(cues, self._tokens(cues), strict=True)
        ]

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        space = " " if self.settings.leading_space else ""
        spellings = [[space + form for form in forms(text, self.settings.case)] for text in texts]
        flat = [form for spelling in spellings for form in spelling]
        encoded = iter(self._tokenizer(flat, add_special_tokens=False)["input_ids"])
        return [min([next(encoded) for _ in spelling], key=len) for spelling in spellings]

    def _mean(self, ids: Sequence[int]) -> NDArray[np.floating]:
        mean: NDArray[np.float64] = self._rows[list(ids)].mean(axis=0, dtype=np.float64)
        return mean


class OpenAIEmbeddingAgent(
    ServerModel["OpenAIEmbeddingAgent.Settings"], EmbeddingAgent["OpenAIEmbeddingAgent.Settings"]
):
    """Answers by the vectors that a server with OpenAI's interface gives of single words."""

    class Settings(EmbeddingSettings, ServerSettings):
        """The server and its model."""

        model: str = Field("text-embedding-3-small", min_length=1)
        """The model's name at the server."""

    engine = OpenAIEngine
    declares = Declaration(memory=768 * MIB)
    settings: Settings
    """The server, its model and the search for words; fixed once the agent is made."""
    _engine: OpenAIEngine

    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        """The vectors of all words, from the cache if it has them. Raises UnavailableError if the server gives
        none."""
        source = {"base_url": self.settings.base_url, "model": self.settings.model}
        try:
            return self._words, word_vectors.embedded(self._words, source, self._embed)
        except AnswerError as error:
            raise UnavailableError(f"the vocabulary cannot be embedded: {error}") from None

    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        """The server's vectors. An error of the server is every cue's."""
        try:
            return list(self._embed(cues))
        except AnswerError as error:
            return [error] * len(cues)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """In another thread, as a loop may run in this."""
        with ThreadPoolExecutor(1) as thread:
            vectors = thread.submit(asyncio.run, self._request(texts)).result()
        return np.array(vectors, np.float32)

    async def _request(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            return await self._engine.embed(texts)
        finally:
            await self._engine.aclose()
