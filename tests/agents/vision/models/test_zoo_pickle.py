"""The restricted unpickler: what the model zoo's files hold is read, and nothing that a pickle may ask for is done."""

from __future__ import annotations

import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file

from agents.errors import UnavailableError
from agents.vision.models import zoo_pickle

ARRAYS: dict[str, NDArray[Any]] = {
    "backbone.weight": np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4),
    "half": np.array([[1.5, -2.25]], dtype=np.float16),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big-endian": np.arange(3, dtype=">i4"),
    "count": np.array(7, dtype=np.int64),
    "flags": np.array([True, False]),
}


def read(content: Any, protocol: int = 3) -> dict[str, NDArray[Any]]:
    data = content if isinstance(content, bytes) else pickle.dumps(content, protocol)
    return zoo_pickle.read(io.BytesIO(data), "weights.pkl")


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("container", [dict, OrderedDict])
def test_arrays_come_out_as_they_went_in(protocol: int, container: type[dict[str, Any]]) -> None:
    found = read({"model": container(ARRAYS), "__author__": "Detectron2 Model Zoo"}, protocol)
    assert list(found) == list(ARRAYS)
    for name, value in ARRAYS.items():
        assert found[name].dtype == value.dtype.newbyteorder("=")
        assert found[name].shape == value.shape
        np.testing.assert_array_equal(found[name], value)


def test_a_file_of_python_2_and_an_old_numpy_is_read() -> None:
    """Written by hand: text where there are bytes now, and numpy.core where there is numpy._core now."""
    values = np.array([1.0, -128.5], dtype="<f4")
    parts = [
        b"\x80\x02}U\x05model}U\x01w",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR",
        b"(K\x01K\x02\x85cnumpy\ndtype\n(U\x02f4K\x00K\x01tR(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb",
        b"\x89U\x08" + values.tobytes() + b"tbss.",
    ]
    np.testing.assert_array_equal(read(b"".join(parts))["w"], values)


class Call:
    """Pickles as a call of ``function``."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.made = (function, arguments)

    def __reduce__(self) -> Any:
        return self.made


@pytest.mark.parametrize("function", [os.mkdir, eval, np.load, getattr], ids=lambda function: function.__name__)
@pytest.mark.parametrize("place", ["model", "beside", "key"])
def test_code_is_refused_and_not_executed(function: Any, place: str, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    call = Call(function, str(mark))
    content: dict[Any, Any] = {"model": dict(ARRAYS)}
    if place == "model":
        content["model"]["w"] = call
    elif place == "beside":
        content["optimizer"] = call
    else:
        content["model"][(call,)] = ARRAYS["half"]
    with pytest.raises(UnavailableError, match=r"^weights.pkl asks for [\w.]+, .*nothing in it was executed$"):
        read(content)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ({"blobs": {}}, "no weights under 'model'"),
        ({"model": {}}, "no weights under 'model'"),
        ([1, 2], "no weights under 'model'"),
        ({"model": {"w": [1.0, 2.0]}}, "something else than arrays"),
        ({"model": {3: ARRAYS["half"]}}, "something else than arrays"),
        ({"model": {"w": np.array([{}, None])}}, "something else than arrays"),
        (b"", "damaged"),
        (b"\x80\x03}", "damaged"),
        (b"not a pickle at all", "damaged"),
        (b"\x80\x03NN\x86s.", "damaged"),
        (pickle.dumps({"model": ARRAYS}, 3)[:150], "damaged"),
    ],
)
def test_other_files_are_refused_in_one_sentence(content: Any, match: str) -> None:
    with pytest.raises(UnavailableError, match=match) as caught:
        read(content)
    assert "\n" not in str(caught.value)


def test_conversion_keeps_every_array_and_says_where_it_came_from(tmp_path: Path) -> None:
    source, target = tmp_path / "a.pkl", tmp_path / "new" / "a.safetensors"
    source.write_bytes(pickle.dumps({"model": ARRAYS, "__author__": "x"}, 2))
    zoo_pickle.convert(source, target, "https://example.org/a.pkl")
    found = load_file(target)
    assert sorted(found) == sorted(ARRAYS)
    for name, value in ARRAYS.items():
        assert found[name].shape == value.shape
        np.testing.assert_array_equal(found[name], value)
    with safe_open(target, "np") as file:
        about = file.metadata()
    assert about["origin"] == "https://example.org/a.pkl"
    assert len(about["origin_sha256"]) == 64
    assert [one.name for one in target.parent.iterdir()] == ["a.safetensors"]


def test_a_refused_file_leaves_nothing_behind_and_replaces_nothing(tmp_path: Path) -> None:
    source, target = tmp_path / "a.pkl", tmp_path / "a.safetensors"
    target.write_bytes(b"what was there")
    source.write_bytes(pickle.dumps({"model": {"w": Call(os.system, "true")}}))
    with pytest.raises(UnavailableError, match=r"asks for (posix|nt)\.system"):
        zoo_pickle.convert(source, target, "here")
    assert target.read_bytes() == b"what was there"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.pkl", "a.safetensors"]
