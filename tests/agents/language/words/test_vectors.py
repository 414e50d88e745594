"""Vectors in every form of file, what is refused of them, their cache, and the search against a plain one."""

import gzip
import pickle
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial.distance import cdist

from agents.errors import UnavailableError
from agents.language.words.vectors import MOST, NearestWords, WordVectors, embedded, read

Vectors = Mapping[str, Sequence[float]]

VECTORS: Vectors = {
    "the": [0.25, -1.5, 3.0],
    "dog": [1.0, 2.0, -0.125],
    "Paris": [0.5, 0.0, 0.0],
    "USSR": [-2.0, 8.0, 1.0],
    "unwanted": [9.0, 9.0, 9.0],
}
WANTED = ("the", "dog", "paris", "ussr", "cat")


def text(path: Path, *, header: bool = False) -> Path:
    lines = [f"{len(VECTORS)} 3"] if header else []
    lines += [" ".join([word, *map(str, numbers)]) for word, numbers in VECTORS.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def binary(path: Path, *, ends: bytes = b"\n") -> Path:
    """word2vec's own program ends each vector with a line's end; other programs do not."""
    entries = [word.encode() + b" " + struct.pack("<3f", *numbers) + ends for word, numbers in VECTORS.items()]
    path.write_bytes(f"{len(VECTORS)} 3\n".encode() + b"".join(entries))
    return path


def zipped(path: Path) -> Path:
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return packed


WRITERS: dict[str, Callable[[Path], Path]] = {
    "glove": lambda folder: text(folder / "v.txt"),
    "word2vec text": lambda folder: text(folder / "v.vec", header=True),
    "text.gz": lambda folder: zipped(text(folder / "v.txt", header=True)),
    "binary": lambda folder: binary(folder / "v.bin"),
    "binary, no line ends": lambda folder: binary(folder / "v.bin", ends=b""),
    "binary.gz": lambda folder: zipped(binary(folder / "v.bin")),
}


def vector(vectors: WordVectors, word: str) -> list[float] | None:
    row = vectors.row(word)
    return None if row is None else vectors.matrix[row].tolist()


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_form_is_read_alike(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    vectors = read(write(tmp_path), WANTED, "any")
    assert vectors.matrix.dtype == np.float32
    assert vectors.matrix.shape == (4, 3)  # the wanted words alone
    wanted = [VECTORS["the"], VECTORS["dog"], VECTORS["Paris"], VECTORS["USSR"], None]
    assert [vector(vectors, word) for word in WANTED] == wanted
    assert vector(vectors, "unwanted") is None


def test_the_first_of_a_word_and_the_smallest_form_count(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("Dog 1\ndog 2\ndog 3\nDOG 4\n")
    assert vector(read(path, ["dog"], "any"), "dog") == [2.0]
    assert set(read(path, ["dog"], "lower").rows) == {"dog"}


def test_words_with_spaces_as_glove_has_them(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("dog 1 2 3\n. . . 4 5 6\nat name@domain.com 7 8 9\n\u00a0 1 1 1\ncat 0 0 1 \n", encoding="utf-8")
    assert vector(read(path, ["dog", "cat"], "any"), "cat") == [0, 0, 1]


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("it was unpickled",))


@pytest.mark.parametrize("name", ["v.kv", "v.pt", "v.npy", "v.txt", "v.bin", "v.bin.gz"])
def test_pickles_are_never_unpickled(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = pickle.dumps({"dog": Trap()})
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(UnavailableError, match=f"^{path} "):
        read(path, ["dog"], "any")


BINARY = f"{len(VECTORS)} 3\n".encode() + b"".join(
    word.encode() + b" " + struct.pack("<3f", *numbers) for word, numbers in VECTORS.items()
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", b"the 1 2 3\ndog 1 2\n", "line 2 is not a word and 3 numbers"),
        ("v.txt", b"the 1 2 3\ndog 1 x 3\n", "could not convert"),
        ("v.txt", b"2 3\nthe 1 2 3\ndog 1 1e39 3\n", "line 3: (dog) has a number that is not finite"),
        ("v.txt", b"3 3\nthe 1 2 3\ndog 1 2 3\n", "its first line says 3 words, but 2 follow"),
        ("v.txt", b"xyz 1 2 3\n", "has none of the English words"),
        ("v.bin", BINARY[:-3], "cut off at word 5; its first line says 5 words"),
        ("v.bin", BINARY + b"more", "but more follows"),
        ("v.bin", b"\n" + BINARY, "does not begin with"),
    ],
)
def test_a_damaged_file_is_not_read(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnavailableError) as caught:
        read(path, WANTED, "any")
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


# The cache.

WORDS = [f"word{number}" for number in range(100)]


def test_words_are_embedded_once_and_again_where_the_cache_is_damaged(own_cache: Path) -> None:
    calls: list[int] = []

    def model(words: Sequence[str]) -> np.ndarray:
        calls.append(len(words))
        return np.array([[len(word), int(word[4:]), 1.0] for word in words], np.float32)

    first = embedded(WORDS, {"model": "a"}, model)
    [path] = own_cache.iterdir()
    content = path.read_bytes()
    assert np.array_equal(embedded(WORDS, {"model": "a"}, model), first)
    embedded(WORDS[1:], {"model": "a"}, model)
    embedded(WORDS, {"model": "b"}, model)
    assert calls == [100, 99, 100]
    path.write_bytes(content[:-5])
    assert np.array_equal(embedded(WORDS, {"model": "a"}, model), first)
    assert calls == [100, 99, 100, 100]
    assert path.read_bytes() == content


# The search.


def names(count: int) -> list[str]:
    return [f"w{place}" for place in range(count)]


def plain(vectors: np.ndarray, queries: np.ndarray, metric: str) -> np.ndarray:
    """Scipy's distances; a vector without a length is at right angles to all."""
    return np.nan_to_num(cdist(queries, vectors, metric), nan=1.0)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_nearest_words_come_in_the_order_of_a_plain_search(metric: Any) -> None:
    random = np.random.default_rng(1)
    vectors = random.normal(size=(MOST + 7, 12)).astype(np.float32)
    queries = random.normal(size=(5, 12)).astype(np.float32)
    nearest = NearestWords(names(len(vectors)), vectors, metric, "cpu")
    for distances, walk in zip(plain(vectors, queries, metric), nearest.nearest(queries), strict=True):
        ordered = list(walk)
        places = [int(word[1:]) for word, _ in ordered]
        assert len(set(places)) == MOST
        assert [distance for _, distance in ordered] == pytest.approx(distances[places], abs=1e-7)
        assert (np.diff(distances[places]) > -2e-5).all()  # two steps at most
        assert places[:3] == np.argsort(distances)[:3].tolist()


def test_among_equal_distances_the_more_frequent_word_is_nearer() -> None:
    vectors = np.array([[place % 3, 0] for place in range(600)], np.float32)
    [walk] = NearestWords(names(600), vectors, "euclidean", "cpu").nearest(np.zeros((1, 2), np.float32))
    expected = sorted(range(600), key=lambda place: (place % 3, place))
    assert [word for word, _ in walk] == [f"w{place}" for place in expected]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@given(data=st.data())
def test_the_batch_has_no_part_in_the_order(data: st.DataObject, metric: Any) -> None:
    # Whole numbers are full of ties, tenths of products that rounding disturbs.
    numbers = st.integers(-3, 3) | st.sampled_from([0.1, 0.2, 0.3, -0.7])
    vectors = data.draw(arrays.arrays(np.float32, (40, 3), elements=numbers))
    queries = data.draw(arrays.arrays(np.float32, (6, 3), elements=numbers))
    nearest = NearestWords(names(40), vectors, metric, "cpu")
    together = [[word for word, _ in walk] for walk in nearest.nearest(queries)]
    for row in range(6):
        [alone] = nearest.nearest(queries[row : row + 1])
        assert [word for word, _ in alone] == together[row]
        distances = plain(vectors, queries[row : row + 1], metric)[0]
        ordered = [distances[int(word[1:])] for word in together[row]]
        assert all(later > before - 1e-4 for before, later in pairwise(ordered))
