"""Vectors of words: read from local files, cached, and searched for the nearest.

- text (``.txt``, ``.vec``) of GloVe or word2vec: a word and its numbers a line, after word2vec's "words dimensions"
- word2vec's binary form (``.bin``): that line, then each word, a space and float32 numbers
- either with gzip (``.gz``)
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from agents.errors import UnavailableError
from agents.models.checkpoints import cache_folder, short_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    Entries = Iterator[tuple[str, str, NDArray[np.float32]]]  # where in the file, the word, its vector

Case = Literal["lower", "any"]
"""How a word is looked up: in small letters alone, or else also as Word and WORD."""
Metric = Literal["euclidean", "cosine"]
"""How far apart two vectors are."""

LONGEST = 1 << 20
"""The longest word of a binary file, in bytes: where a file is no such file, reading ends here."""
STEPS = 2**20
"""To how many steps of the largest possible distance a distance is rounded.

Rounding makes the order of words the same on every processor, and in every batch: sums differ in their last bits, steps
do not. Words at the same step go by their frequency.
"""
MOST = 2000
"""How many nearest words a search gives."""

log = logging.getLogger("turinglike.embeddings")


@dataclass(slots=True)
class WordVectors:
    """Vectors of a file's words."""

    rows: dict[str, int]
    """The matrix's row of each word, spelt as in the file."""
    matrix: NDArray[np.float32]
    """The vectors, float32 [words, dimensions]."""
    case: Case
    """How :meth:`row` looks a word up."""

    def row(self, word: str) -> int | None:
        """The row of a word that is given in small letters, or None."""
        return next((self.rows[form] for form in forms(word, self.case) if form in self.rows), None)


def forms(word: str, case: Case) -> tuple[str, ...]:
    """The spellings of a word that are looked up, the best first: for "any" (word, Word, WORD)."""
    small = word.casefold()
    return (small,) if case == "lower" else (small, small.title(), small.upper())


def read(path: Path, wanted: Collection[str], case: Case) -> WordVectors:
    """The vectors of those ``wanted`` words (in small letters) that the file at ``path`` has. Raises UnavailableError
    that names the first bad line."""
    import numpy as np

    small = frozenset(wanted)

    def is_wanted(word: str) -> bool:
        plain = word.casefold()
        return plain in small and word in forms(plain, case)

    rows: dict[str, int] = {}
    vectors: list[NDArray[np.float32]] = []
    read_form = _binary_entries if ".bin" in [suffix.lower() for suffix in path.suffixes[-2:]] else _text_entries
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            for place, word, vector in read_form(cast(BinaryIO, file), is_wanted):
                if not np.isfinite(vector).all():
                    raise ValueError(f"{place}: ({word}) has a number that is not finite")
                if word not in rows:
                    rows[word] = len(rows)
                    vectors.append(vector)
    except (OSError, EOFError, zlib.error) as error:
        raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    except ValueError as error:
        raise UnavailableError(
            f"{path} is no file of word vectors: {error}. It may be GloVe's or word2vec's text, or word2vec's .bin "
            "(gensim: KeyedVectors.save_word2vec_format)"
        ) from None
    if not rows:
        raise UnavailableError(f"{path} has none of the English words that are looked for")
    return WordVectors(rows, np.stack(vectors), case)


def _header(line: bytes) -> tuple[int, int] | None:
    match = re.fullmatch(rb"(\d{1,9}) (\d{1,5})", line.strip())
    return (int(match[1]), int(match[2])) if match else None


def _text_entries(file: BinaryIO, is_wanted: Callable[[str], bool]) -> Entries:
    import numpy as np

    header: tuple[int, int] | None = None
    dimensions = 0
    number = 0
    for number, line in enumerate(file, 1):
        line = line.rstrip()
        if number == 1 and (header := _header(line)):
            dimensions = header[1]
            continue
        dimensions = dimensions or line.count(b" ")
        # A few of GloVe's words hold spaces.
        word, *numbers = line.rsplit(b" ", dimensions)
        if not numbers or len(numbers) != dimensions:
            raise ValueError(f"line {number:,} is not a word and {dimensions or 'its'} numbers")
        text = word.decode("utf-8", "replace")
        if is_wanted(text):
            with np.errstate(over="ignore"):
                yield f"line {number:,}", text, np.array(numbers, np.float64).astype(np.float32)
    if header and number - 1 != header[0]:
        raise ValueError(f"its first line says {header[0]:,} words, but {number - 1:,} follow")


def _binary_entries(file: BinaryIO, is_wanted: Callable[[str], bool]) -> Entries:
    import numpy as np

    header = _header(file.readline(LONGEST))
    if header is None:
        raise ValueError('it does not begin with a line "words dimensions", as word2vec\'s binary form does')
    words, dimensions = header
    for number in range(1, words + 1):
        word = bytearray()
        while (letter := file.read(1)) not in (b" ", b"") and len(word) < LONGEST:
            word += letter
        data = file.read(4 * dimensions)
        if len(data) < 4 * dimensions:
            raise ValueError(f"it is cut off at word {number:,}; its first line says {words:,} words")
        text = bytes(word).lstrip(b"\n").decode("utf-8", "replace")  # the vector before may end with a line's end
        if is_wanted(text):
            yield f"word {number:,}", text, np.frombuffer(data, "<f4").astype(np.float32)
    if file.read(2).strip():
        raise ValueError(f"its first line says {words:,} words, but more follows")


def embedded(
    words: Sequence[str], source: Mapping[str, Any], embed: Callable[[Sequence[str]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """The vectors of ``words``, float32 [words, dimensions], from the cache or else by ``embed``, which fills the
    cache.

    ``source`` (JSON) tells what makes the vectors, and must differ where they would: it is the cache's key together
    with the words. A cache that cannot be read or written is only warned of.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file, save

    key = hashlib.sha256(json.dumps([1, source, list(words)], sort_keys=True).encode()).hexdigest()
    folder = cache_folder() / "embeddings"
    path = folder / f"{key}.safetensors"
    try:
        return load_file(path)["vectors"]
    except FileNotFoundError:
        pass
    except (OSError, SafetensorError, ValueError, TypeError, KeyError) as error:
        log.warning("%s cannot be read and is made anew: %s", path, error)
    vectors = embed(words)
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(save({"vectors": vectors}))
        unfinished.replace(path)
    except OSError as error:
        log.warning("%s cannot be written: %s", path, error)
    return vectors


class NearestWords:
    """Searches words for the nearest to a vector. ``words`` are in the order of their frequency; ``vectors`` are their
    finite vectors [words, dimensions]."""

    def __init__(self, words: Sequence[str], vectors: NDArray[np.floating], metric: Metric, device: str) -> None:
        import torch

        self.words = tuple(words)
        self._device = torch.device(device)
        self._metric = metric
        self._vectors = self._scaled(torch.from_numpy(vectors).to(self._device, torch.float64))
        self._squares = (self._vectors**2).sum(dim=1)
        self._longest = self._squares.max().sqrt()

    def nearest(self, vectors: NDArray[np.floating]) -> list[Iterator[tuple[str, float]]]:
        """For each of the finite ``vectors`` [batch, dimensions] the nearest :data:`MOST` words with their distances,
        nearest first."""
        import torch

        from agents.models.transfer import downloaded, uploaded

        [queries] = uploaded([torch.from_numpy(vectors)], self._device)
        queries = self._scaled(queries.double())
        products = queries @ self._vectors.T
        if self._metric == "cosine":
            distances = 1 - products
            largest = torch.full_like(products[:, :1], 2)
        else:
            squares = (queries**2).sum(dim=1, keepdim=True)
            distances = (squares + self._squares - 2 * products).clamp(min=0).sqrt()
            largest = squares.sqrt() + self._longest
        steps = (distances / largest.clamp(min=1e-300) * STEPS).round().long()
        # One whole number says both, the rounded distance and the rank, so that no two words are equal.
        keys = steps * len(self.words) + torch.arange(len(self.words), device=self._device)
        order = torch.topk(keys, min(MOST, len(self.words)), dim=1, largest=False).indices
        rows = zip(*(part.numpy() for part in downloaded([order, distances.gather(1, order)])), strict=True)
        return [zip(map(self.words.__getitem__, order), map(float, near), strict=True) for order, near in rows]

    def _scaled(self, vectors: Tensor) -> Tensor:
        if self._metric == "euclidean":
            return vectors
        scaled: Tensor = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-300)
        return scaled
