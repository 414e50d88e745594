"""Word vectors in a local file: the forms that GloVe and word2vec are published in, and safetensors.

- text (``.txt``, ``.vec``): a line is a word and its numbers; word2vec's begins with a line "words dimensions"
- word2vec's binary form (``.bin``): that line, then for each word the word, a space and its float32 numbers
- either compressed by gzip (``.gz`` after it)
- ``.safetensors`` with one tensor [words, dimensions], and beside it, with the ending ``.json``, the list of the words

Nothing is executed: pickles (gensim's ``.model`` and ``.kv``, ``.pkl``, ``.pt``) are refused by their names and by
their first bytes. Of a large file only the vectors of the words that are asked for are kept; of the others' lines the
numbers are counted, not read.
"""

from __future__ import annotations

import gzip
import json
import math
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from agents import checkpoints
from agents.errors import UnavailableError
from agents.hub import short_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Case = Literal["lower", "any"]

PICKLES = (".pkl", ".pickle", ".model", ".kv", ".pt", ".pth", ".ckpt", ".npy", ".npz", ".joblib")
# How files begin that hold or may hold pickled objects: pickle's protocol mark, a zip archive, numpy's.
_MARKS = (b"\x80", b"PK", b"\x93NUMPY")
SHOWN = 20  # problems that are named
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


def refused(path: Path) -> str | None:
    """Why the file is not read, in one sentence, if its name or its beginning says that it holds pickled objects.
    Raises OSError."""
    named = path.suffix.lower() in PICKLES
    if not named and path.suffix.lower() != ".safetensors":  # which begins with a number, that may be any
        with _opened(path) as file:
            named = file.read(8).startswith(_MARKS)
    if not named:
        return None
    return (
        f"{path} holds pickled objects, or may: they could execute code and are not read. Save the vectors as "
        "word2vec's text (gensim: KeyedVectors.save_word2vec_format) or as safetensors with a list of words"
    )


def read(path: Path, wanted: Collection[str], case: Case) -> WordVectors:
    """The vectors of the ``wanted`` words (small letters), in whichever :func:`forms` the file has them; of a word that
    stands there twice the first.

    Raises UnavailableError, naming up to 20 bad lines, if the file is damaged, is of no known form or would have to be
    unpickled.
    """
    import numpy as np

    found = _Found(path, frozenset(wanted), case)
    try:
        if why := refused(path):
            raise UnavailableError(why)
        if path.suffix.lower() == ".safetensors":
            _read_safetensors(found)
        else:
            binary = ".bin" in [suffix.lower() for suffix in path.suffixes[-2:]]
            with _opened(path) as file:
                (_read_binary if binary else _read_text)(file, found)
    except (OSError, EOFError) as error:  # BadGzipFile is an OSError
        raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    except ValueError as error:
        raise UnavailableError(f"{path} is no file of word vectors: {error}") from None
    found.check()
    return WordVectors(found.rows, np.asarray(found.numbers, np.float32).reshape(len(found.rows), -1), case)


@dataclass(slots=True)
class _Found:
    """What was read so far: ``numbers`` of the words in ``rows``, one after another; ``problems`` of the first bad
    lines, of ``bad`` in all."""

    path: Path
    wanted: frozenset[str]
    case: Case
    rows: dict[str, int] = field(default_factory=dict)
    numbers: array[float] = field(default_factory=lambda: array("f"))
    problems: list[str] = field(default_factory=list)
    bad: int = 0

    def wants(self, word: str) -> bool:
        small = word.casefold()
        return small in self.wanted and word not in self.rows and word in forms(small, self.case)

    def add(self, word: str, numbers: Sequence[float]) -> None:
        self.rows[word] = len(self.rows)
        self.numbers.extend(numbers)

    def problem(self, place: str, what: str) -> None:
        self.bad += 1
        if len(self.problems) < SHOWN:
            self.problems.append(f"{place}: {what}")

    def check(self) -> None:
        if self.bad:
            more = f"; and {self.bad - SHOWN:,} more" if self.bad > SHOWN else ""
            raise UnavailableError(f"{self.path} has bad vectors: {'; '.join(self.problems)}{more}")
        if not self.rows:
            raise UnavailableError(f"{self.path} has none of the English words that are looked for")


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise ValueError(f"it has a line of more than {LONGEST:,} bytes")
        yield line.rstrip(b" \t\r\n")


def _header(line: bytes) -> tuple[int, int] | None:
    """(words, dimensions) if the line is word2vec's first."""
    parts = line.split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return None
    words, dimensions = int(parts[0]), int(parts[1])
    if not 0 < dimensions <= 100_000:
        raise ValueError(f"its first line says {dimensions:,} dimensions")
    return words, dimensions


def _read_text(file: BinaryIO, found: _Found) -> None:
    said: tuple[int, int] | None = None
    dimensions, count = 0, 0
    for number, line in enumerate(_lines(file), start=1):
        if number == 1 and (said := _header(line)):
            dimensions = said[1]
            continue
        if not line:
            found.problem(f"line {number:,}", "is empty")
            continue
        count += 1
        dimensions = dimensions or line.count(b" ")
        if not dimensions:
            raise ValueError(f"line {number:,} has no numbers")
        _take_line(line, number, dimensions, found)
    if said and count != said[0]:
        found.problem("line 1", f"says {said[0]:,} words, but {count:,} follow")


def _take_line(line: bytes, number: int, dimensions: int, found: _Found) -> None:
    word, *numbers = line.rsplit(b" ", dimensions)
    place = f"line {number:,}"
    if len(numbers) != dimensions:
        found.problem(place, f"has {len(numbers):,} numbers, not {dimensions:,}")
    elif b" " in word and _is_number(word.rpartition(b" ")[2]):  # a few of GloVe's words hold spaces, but no numbers
        found.problem(place, f"has more than {dimensions:,} numbers")
    else:
        text = word.decode("utf-8", "replace")
        if found.wants(text):
            try:
                values = [float(one) for one in numbers]
            except ValueError as error:
                found.problem(place, f"({text}) {short_text(error)}")
                return
            _take(text, values, place, found)


def _take(word: str, values: Sequence[float], place: str, found: _Found) -> None:
    if all(-3e38 < value < 3e38 for value in values):  # what float32 can hold
        found.add(word, values)
    else:
        found.problem(place, f"({word}) has a number that is not finite")


def _is_number(text: bytes) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _read_binary(file: BinaryIO, found: _Found) -> None:
    said = _header(file.readline(LONGEST))
    if said is None:
        raise ValueError('it does not begin with a line "words dimensions", as word2vec\'s binary form does')
    words, dimensions = said
    for number in range(1, words + 1):
        word = _word(file)
        data = file.read(4 * dimensions)
        if word is None or len(data) < 4 * dimensions:
            found.problem(f"word {number:,}", f"is cut off; the first line says {words:,} words")
            return
        text = word.decode("utf-8", "replace")
        if found.wants(text):
            _take(text, _float32(data), f"word {number:,}", found)
    if file.read(2).strip():
        found.problem(f"word {words:,}", "is the last by the first line, but more follows")


def _word(file: BinaryIO) -> bytes | None:
    """Up to the next space, which is not part of it; a line's end before it belongs to the vector before."""
    word = bytearray()
    while (letter := file.read(1)) != b" ":
        if not letter or len(word) > LONGEST:
            return None
        word += letter
    return bytes(word).lstrip(b"\n")


def _float32(data: bytes) -> Sequence[float]:
    import numpy as np

    values: list[float] = np.frombuffer(data, "<f4").tolist()
    return values


def _read_safetensors(found: _Found) -> None:
    listed = words_file(found.path)
    try:
        words = json.loads(listed.read_bytes())
    except FileNotFoundError:
        raise UnavailableError(f"{found.path} needs the list of its words beside it: {listed}") from None
    except (ValueError, RecursionError) as error:
        raise UnavailableError(f"{listed} is no JSON: {short_text(error)}") from None
    tensors = checkpoints.read_weights(found.path)
    shapes = [list(tensor.shape) for tensor in tensors.values()]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UnavailableError(f"{listed} must be a list of words")
    if len(shapes) != 1 or len(shapes[0]) != 2 or shapes[0][0] != len(words) or not shapes[0][1]:
        raise UnavailableError(f"{found.path} must hold one tensor of {len(words):,} vectors, has {shapes}")
    [matrix] = tensors.values()
    for number, word in enumerate(words, start=1):
        if found.wants(word):
            _take(word, matrix[number - 1].float().tolist(), f"word {number:,}", found)
