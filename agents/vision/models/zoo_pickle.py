"""Converts the pickled weights of Detectron2's model zoo to safetensors, without executing what a pickle may ask for.

A pickle is a program: it names functions and calls them. Weights need six names, most of them to rebuild numpy arrays,
and here even those are not numpy's own: each stands for a small object of this module that checks its arguments. Any
other name, any other argument, and anything that is not in the end a mapping from names to numeric arrays is refused.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from agents.errors import UnavailableError

KINDS = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"})


class _Refused(Exception):
    """The pickle asks for something that a file of arrays does not need."""


class _Named:
    """What the pickle gets for an allowed name: it can be called, and that is all."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise _Refused("changes what it was given")


class _Kind:
    """An array's element type while the pickle is read: numpy's code, such as "f4", and the order of its bytes."""

    __slots__ = ("code", "order")

    def __init__(self, code: Any, align: Any = False, copy: Any = True) -> None:
        if code not in KINDS:
            raise _Refused(f"holds an array of type {code!r}")
        self.code: str = code
        self.order = "<"

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]
        if self.order not in ("<", ">", "|") or any(part is not None for part in state[2:5]):
            raise _Refused("holds an array of a compound type")


class _Array:
    """An array while the pickle is read: ``value`` is there once its state was."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, data = state
        if isinstance(data, str):  # bytes of Python 2
            data = data.encode("latin-1")
        if not (isinstance(kind, _Kind) and isinstance(data, bytes) and isinstance(shape, tuple)):
            raise _Refused("holds an array of objects")
        if not all(type(side) is int and side >= 0 for side in shape):
            raise _Refused("holds an array of no shape")
        found = np.dtype(kind.order + kind.code)
        if math.prod(shape) * found.itemsize != len(data):
            raise _Refused("holds an array whose size is not its shape's")
        flat = np.frombuffer(data, found).astype(found.newbyteorder("="))
        self.value = flat.reshape(shape, order="F" if by_columns else "C")


def _begin(kind: Any, shape: Any, code: Any) -> _Array:
    if kind is not _NDARRAY:
        raise _Refused("builds something else than a numpy array")
    return _Array()


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """How protocol 2 writes bytes. Only this one encoding: others are looked up by name and may do other things."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _Refused(f"encodes as {encoding!r}")
    return text.encode("latin-1")


def _refuse(*arguments: Any) -> None:
    raise _Refused("builds an array in a way of its own")


_NDARRAY = _Named(_refuse)
ALLOWED: Mapping[tuple[str, str], _Named] = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _Named(_Kind),
    ("numpy.core.multiarray", "_reconstruct"): _Named(_begin),
    ("numpy._core.multiarray", "_reconstruct"): _Named(_begin),
    ("_codecs", "encode"): _Named(_encode),
    ("collections", "OrderedDict"): _Named(dict),
}


class _Reader(pickle._Unpickler):
    """The reader that is written in Python: it numbers what it has read in a dict, where the one in C makes room for as
    many entries as the file says."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise _Refused(f"asks for {module}.{name}") from None


def read(file: IO[bytes], name: str) -> dict[str, NDArray[Any]]:
    """The arrays under ``model`` in a pickle of the model zoo, by name.

    Nothing is imported or called on the pickle's behalf. Raises UnavailableError, with one sentence that begins with
    ``name``, if it asks for that, is damaged, or holds anything else.
    """
    try:
        whole = _Reader(file, encoding="latin1").load()
    except _Refused as error:
        raise UnavailableError(f"{name} {error}, which weights have no need of; nothing in it was executed") from None
    except Exception as error:  # a damaged pickle raises a dozen types, IndexError and struct.error among them
        raise UnavailableError(f"{name} is damaged: {type(error).__name__}: {str(error)[:200]}") from None
    model = whole.get("model") if isinstance(whole, dict) else None
    if not isinstance(model, dict) or not model:
        raise UnavailableError(f"{name} is not a file of Detectron2's model zoo: it has no weights under 'model'")
    arrays = {key: value.value for key, value in model.items() if isinstance(value, _Array) and isinstance(key, str)}
    if len(arrays) < len(model) or any(value is None for value in arrays.values()):
        raise UnavailableError(f"{name} holds something else than arrays by name under 'model'")
    return {key: value for key, value in arrays.items() if value is not None}


def convert(source: Path, target: Path, origin: str) -> None:
    """Write the arrays of the pickle ``source`` to ``target`` as safetensors, whole or not at all.

    ``origin`` (an address, say) and the pickle's SHA-256 go into the file's metadata. Raises UnavailableError.
    """
    from safetensors.numpy import save_file

    with source.open("rb") as file:
        arrays = read(file, str(source))
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".safetensors")
    os.close(handle)
    try:
        arrays = {name: np.ascontiguousarray(value).reshape(value.shape) for name, value in arrays.items()}
        save_file(arrays, temporary, metadata={"format": "pt", "origin": origin, "origin_sha256": digest})
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)
