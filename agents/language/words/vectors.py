"""Word vectors in a local file: the forms that GloVe and word2vec are published in, and safetensors.

- text (``.txt``, ``.vec``): a line is a word and its numbers; word2vec's begins with a line "words dimensions"
- word2vec's binary form (``.bin``): that line, then for each word the word, a space and its float32 numbers
- either compressed by gzip (``.gz`` after it)
- ``.safetensors`` with one tensor [words, dimensions], and beside it, with the ending ``.json``, the list of the words

No form executes anything. Only the vectors of the words that are asked for are kept; of the others' lines the numbers
are counted, not read.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from agents import checkpoints
from agents.checkpoints import short_text
from agents.errors import UnavailableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Case = Literal["lower", "any"]

LONGEST = 1 << 20  # bytes of a line or a word; no such file has longer ones


@dataclass(slots=True)
class WordVectors:
    """``matrix`` float32 [words, dimensions]; ``rows`` has the row of each word as it stands in the file."""

    rows: dict[str, int]
    matrix: NDArray[np.float32]
    case: Case

    def row(self, word: str) -> int | None:
        """The row of a word in small letters; with case "any", where the file lacks it, that of Word or WORD."""
        return next((self.rows[form] for form in forms(word, self.case) if form in self.rows), None)


def forms(word: str, case: Case) -> tuple[str, ...]:
    """How a word may be written, best first: small, and for "any" as a name and all in capitals."""
    small = word.casefold()
    return (small,) if case == "lower" else (small, small.title(), small.upper())


def words_file(path: Path) -> Path:
    """Where the list of words of a safetensors file is."""
    return path.with_suffix(".json")


def read(path: Path, wanted: Collection[str], case: Case) -> WordVectors:
    """The vectors of the ``wanted`` words (small letters), in whichever :func:`forms` the file has them; of a word that
    stands there twice the first.

    Raises UnavailableError, naming the first bad line, if the file is damaged or of no known form.
    """
    import numpy as np

    small = frozenset(wanted)

    def is_wanted(word: str) -> bool:
        plain = word.casefold()
        return plain in small and word in forms(plain, case)

    rows: dict[str, int] = {}
    vectors: list[NDArray[np.float32]] = []
    try:
        for where, word, vector in _vectors(path, is_wanted):
            if not np.isfinite(vector).all():
                raise ValueError(f"{where}: ({word}) has a number that is not finite")
            if word not in rows:
                rows[word] = len(rows)
                vectors.append(vector)
    except (OSError, EOFError, zlib.error) as error:
        raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    except ValueError as error:
        raise UnavailableError(
            f"{path} is no file of word vectors: {error}. It may be text as GloVe or word2vec has it, word2vec's .bin "
            "(gensim: KeyedVectors.save_word2vec_format), or .safetensors with a list of words"
        ) from None
    if not rows:
        raise UnavailableError(f"{path} has none of the English words that are looked for")
    return WordVectors(rows, np.stack(vectors), case)


Found = Iterator[tuple[str, str, "NDArray[np.float32]"]]  # where in the file, the word, its vector
IsWanted = Callable[[str], bool]


def _vectors(path: Path, is_wanted: IsWanted) -> Found:
    """The wanted vectors of a file. Raises ValueError."""
    if path.suffix.lower() == ".safetensors":
        yield from _safetensors_vectors(path, is_wanted)
        return
    read_form = _binary_vectors if ".bin" in [suffix.lower() for suffix in path.suffixes[-2:]] else _text_vectors
    with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
        yield from read_form(cast(BinaryIO, file), is_wanted)


def _header(line: bytes) -> tuple[int, int] | None:
    """(words, dimensions) if the line is word2vec's first."""
    parts = line.split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return None
    words, dimensions = int(parts[0]), int(parts[1])
    if not 0 < dimensions <= 100_000:
        raise ValueError(f"its first line says {dimensions:,} dimensions")
    return words, dimensions


def _text_vectors(file: BinaryIO, is_wanted: IsWanted) -> Found:
    import numpy as np

    header: tuple[int, int] | None = None
    dimensions = number = 0
    while line := file.readline(LONGEST):
        number += 1
        if len(line) == LONGEST:
            raise ValueError(f"line {number:,} has more than {LONGEST:,} bytes")
        line = line.rstrip()
        if number == 1 and (header := _header(line)):
            dimensions = header[1]
            continue
        dimensions = dimensions or line.count(b" ")
        word, *numbers = line.rsplit(b" ", dimensions)
        # A few of GloVe's words hold spaces, but no numbers.
        has_more = b" " in word and _is_number(word.rpartition(b" ")[2])
        if not numbers or len(numbers) != dimensions or has_more:
            raise ValueError(f"line {number:,} is not a word and {dimensions or 'its'} numbers")
        text = word.decode("utf-8", "replace")
        if is_wanted(text):
            with np.errstate(over="ignore"):
                yield f"line {number:,}", text, np.array(numbers, np.float64).astype(np.float32)
    if header and number - 1 != header[0]:
        raise ValueError(f"its first line says {header[0]:,} words, but {number - 1:,} follow")


def _is_number(text: bytes) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _binary_vectors(file: BinaryIO, is_wanted: IsWanted) -> Found:
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


def _safetensors_vectors(path: Path, is_wanted: IsWanted) -> Found:
    listed = words_file(path)
    try:
        words = json.loads(listed.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UnavailableError(f"{path} needs the list of its words beside it: {short_text(error)}") from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UnavailableError(f"{listed} must be a list of words")
    tensors = checkpoints.read_weights(path)
    shapes = [list(tensor.shape) for tensor in tensors.values()]
    if len(shapes) != 1 or len(shapes[0]) != 2 or shapes[0][0] != len(words) or not shapes[0][1]:
        raise UnavailableError(f"{path} must hold one tensor of {len(words):,} vectors, has {shapes}")
    [matrix] = tensors.values()
    for number, word in enumerate(words):
        if is_wanted(word):
            yield f"word {number + 1:,}", word, matrix[number].float().numpy()
