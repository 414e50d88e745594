"""Vectors in every form of file, what is refused of them, and the search against a plain one."""

from __future__ import annotations

import gzip
import json
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
from safetensors.numpy import save_file

from agents.errors import UnavailableError
from agents.language.embedding_agent import FIRST, NearestWords
from agents.language.words import vectors as word_vectors
from agents.language.words.vectors import WordVectors, read

Vectors = Mapping[str, Sequence[float]]

VECTORS: Vectors = {
    "the": [0.25, -1.5, 3.0],
    "dog": [1.0, 2.0, -0.125],
    "Paris": [0.5, 0.0, 0.0],
    "USSR": [-2.0, 8.0, 1.0],
    "unwanted": [9.0, 9.0, 9.0],
}
WANTED = ("the", "dog", "paris", "ussr", "cat")


def text(path: Path, vectors: Vectors, *, header: bool = False) -> Path:
    lines = [f"{len(vectors)} {len(next(iter(vectors.values())))}"] if header else []
    lines += [" ".join([word, *map(str, numbers)]) for word, numbers in vectors.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def binary(path: Path, vectors: Vectors, *, ends: bytes = b"\n") -> Path:
    """word2vec's own program ends each vector with a line's end; other programs do not."""
    data = f"{len(vectors)} {len(next(iter(vectors.values())))}\n".encode()
    for word, numbers in vectors.items():
        data += word.encode() + b" " + struct.pack(f"<{len(numbers)}f", *numbers) + ends
    path.write_bytes(data)
    return path


def safetensors(path: Path, vectors: Vectors) -> Path:
    save_file({"vectors": np.array(list(vectors.values()), np.float32)}, path)
    path.with_suffix(".json").write_text(json.dumps(list(vectors)))
    return path


def zipped(path: Path) -> Path:
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return packed


WRITERS: dict[str, Callable[[Path], Path]] = {
    "glove": lambda folder: text(folder / "v.txt", VECTORS),
    "word2vec text": lambda folder: text(folder / "v.vec", VECTORS, header=True),
    "text.gz": lambda folder: zipped(text(folder / "v.txt", VECTORS, header=True)),
    "binary": lambda folder: binary(folder / "v.bin", VECTORS),
    "binary, no line ends": lambda folder: binary(folder / "v.bin", VECTORS, ends=b""),
    "binary.gz": lambda folder: zipped(binary(folder / "v.bin", VECTORS)),
    "safetensors": lambda folder: safetensors(folder / "v.safetensors", VECTORS),
}


def vector(found: WordVectors, word: str) -> list[float] | None:
    row = found.row(word)
    return None if row is None else found.matrix[row].tolist()


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_form_is_read_alike(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    found = read(write(tmp_path), WANTED, "any")
    assert found.matrix.dtype == np.float32
    assert found.matrix.shape == (4, 3)  # only what was asked for
    assert vector(found, "the") == VECTORS["the"]
    assert vector(found, "dog") == VECTORS["dog"]
    assert vector(found, "paris") == VECTORS["Paris"]
    assert vector(found, "ussr") == VECTORS["USSR"]
    assert vector(found, "cat") is None
    assert vector(found, "unwanted") is None


def test_the_first_of_a_word_and_the_smallest_form_count(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("Dog 1\ndog 2\ndog 3\nDOG 4\n")
    found = read(path, ["dog"], "any")
    assert vector(found, "dog") == [2.0]
    assert found.matrix.shape == (3, 1)
    assert set(read(path, ["dog"], "lower").rows) == {"dog"}


def test_words_with_spaces_as_glove_has_them(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("dog 1 2 3\n. . . 4 5 6\nat name@domain.com 7 8 9\n\u00a0 1 1 1\ncat 0 0 1 \n", encoding="utf-8")
    found = read(path, ["dog", "cat"], "any")
    assert vector(found, "cat") == [0, 0, 1]


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("it was unpickled",))


@pytest.mark.parametrize("name", ["v.kv", "v.pt", "v.npy", "v.txt", "v.bin", "v.bin.gz", "v.safetensors"])
def test_pickles_are_never_unpickled(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = pickle.dumps({"dog": Trap()})
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (tmp_path / "v.json").write_text('["dog"]')
    with pytest.raises(UnavailableError, match=f"^{path} "):
        read(path, ["dog"], "any")


BAD = {
    "line 2 is not a word and 3 numbers": "the 1 2 3\ndog 1 2\n",
    "could not convert": "the 1 2 3\ndog 1 x 3\n",
    "line 3: (dog) has a number that is not finite": "2 3\nthe 1 2 3\ndog 1 1e39 3\n",
    "its first line says 3 words, but 2 follow": "3 3\nthe 1 2 3\ndog 1 2 3\n",
    "has none of the English words": "xyz 1 2 3\n",
    "line 1 is not a word and its numbers": "the\n",
    "its first line says 0 dimensions": "3 0\nthe\n",
}


@pytest.mark.parametrize(("message", "content"), BAD.items(), ids=BAD)
def test_bad_text_is_named_by_line(tmp_path: Path, message: str, content: str) -> None:
    path = tmp_path / "v.txt"
    path.write_text(content)
    with pytest.raises(UnavailableError) as caught:
        read(path, WANTED, "any")
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_cut_off_binary_is_not_read(tmp_path: Path) -> None:
    path = binary(tmp_path / "v.bin", VECTORS)
    whole = path.read_bytes()
    for cut in (len(whole) - 3, len(whole) - 15, 40):
        path.write_bytes(whole[:cut])
        with pytest.raises(UnavailableError, match=r"cut off at word \d; its first line says 5 words"):
            read(path, WANTED, "any")
    path.write_bytes(whole + b"more")
    with pytest.raises(UnavailableError, match="but more follows"):
        read(path, WANTED, "any")
    path.write_bytes(b"\n" + whole)
    with pytest.raises(UnavailableError, match="does not begin with"):
        read(path, WANTED, "any")
    packed = zipped(binary(tmp_path / "w.bin", VECTORS))
    whole = packed.read_bytes()
    for damaged in (whole[:-20], whole[:10] + b"\x07" + whole[11:]):
        packed.write_bytes(damaged)
        with pytest.raises(UnavailableError, match="cannot be read"):
            read(packed, WANTED, "any")


@pytest.mark.parametrize(
    ("words", "shape", "message"),
    [
        (["dog"], (2, 3), "must hold one tensor of 1 vectors"),
        (["dog", "cat"], (2,), "must hold one tensor of 2 vectors"),
        ({"dog": 0}, (1, 3), "must be a list of words"),
        (None, (1, 3), "needs the list of its words beside it"),
    ],
)
def test_safetensors_need_their_words(tmp_path: Path, words: Any, shape: tuple[int, ...], message: str) -> None:
    path = tmp_path / "v.safetensors"
    save_file({"vectors": np.zeros(shape, np.float32)}, path)
    if words is not None:
        path.with_suffix(".json").write_text(json.dumps(words))
    with pytest.raises(UnavailableError, match=message):
        read(path, WANTED, "any")


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vectors, "LONGEST", 100)
    path = tmp_path / "v.txt"
    path.write_text("dog " + "1 " * 200)
    with pytest.raises(UnavailableError, match="line 1 has more than 100 bytes"):
        read(path, WANTED, "any")


# The search.


def names(count: int) -> list[str]:
    return [f"w{place}" for place in range(count)]


def plain(vectors: np.ndarray, asked: np.ndarray, metric: str) -> np.ndarray:
    """Distances one by one, without any matrix product."""
    found = np.empty((len(asked), len(vectors)))
    for row, one in enumerate(asked.astype(np.float64)):
        for column, other in enumerate(vectors.astype(np.float64)):
            if metric == "euclidean":
                found[row, column] = np.sqrt(((one - other) ** 2).sum())
            else:
                lengths = np.sqrt((one**2).sum()) * np.sqrt((other**2).sum())
                found[row, column] = 1 - (one * other).sum() / lengths if lengths else 1.0
    return found


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_all_words_come_in_the_order_of_a_plain_search(metric: Any) -> None:
    random = np.random.default_rng(1)
    vectors = random.normal(size=(2 * FIRST + 7, 12)).astype(np.float32)
    asked = random.normal(size=(5, 12)).astype(np.float32)
    nearest = NearestWords(names(len(vectors)), vectors, metric, "cpu")
    for distances, walk in zip(plain(vectors, asked, metric), nearest.around(asked), strict=True):
        found = list(walk)
        places = [int(word[1:]) for word, _ in found]
        assert sorted(places) == list(range(len(vectors)))
        assert [distance for _, distance in found] == pytest.approx(distances[places], abs=1e-7)
        assert (np.diff(distances[places]) > -2e-5).all()  # two steps at most
        assert places[:3] == np.argsort(distances)[:3].tolist()


def test_among_equal_distances_the_more_frequent_word_is_nearer() -> None:
    vectors = np.zeros((3 * FIRST, 2), np.float32)
    vectors[:, 0] = [place % 3 for place in range(len(vectors))]
    [walk] = NearestWords(names(len(vectors)), vectors, "euclidean", "cpu").around(np.zeros((1, 2), np.float32))
    expected = sorted(range(len(vectors)), key=lambda place: (place % 3, place))
    assert [word for word, _ in walk] == [f"w{place}" for place in expected]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@given(data=st.data())
def test_the_batch_has_no_part_in_the_order(data: st.DataObject, metric: Any) -> None:
    # Whole numbers are full of ties, tenths of products that rounding disturbs.
    numbers = st.integers(-3, 3) | st.sampled_from([0.1, 0.2, 0.3, -0.7])
    vectors = data.draw(arrays.arrays(np.float32, (40, 3), elements=numbers))
    asked = data.draw(arrays.arrays(np.float32, (6, 3), elements=numbers))
    nearest = NearestWords(names(40), vectors, metric, "cpu")
    together = [[word for word, _ in walk] for walk in nearest.around(asked)]
    for row in range(6):
        [alone] = nearest.around(asked[row : row + 1])
        assert [word for word, _ in alone] == together[row]
        distances = plain(vectors, asked[row : row + 1], metric)[0]
        ordered = [distances[int(word[1:])] for word in together[row]]
        assert all(later > before - 1e-4 for before, later in pairwise(ordered))
