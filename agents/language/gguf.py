"""Reads files in GGUF, llama.cpp's format (version 3): what is known of a model, and its weights as float32."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.errors import UnavailableError

Floats = NDArray[np.float32]

MAGIC = b"GGUF"
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, LIST = 8, 9
ALIGNMENT = 32  # bytes, where the file names no other
IN_BLOCK = 32  # weights that share a scale
Q4_1 = np.dtype([("scale", "<f2"), ("least", "<f2"), ("pairs", "u1", IN_BLOCK // 2)])
Q8_0 = np.dtype([("scale", "<f2"), ("values", "i1", IN_BLOCK)])


def _from_q4_1(blocks: NDArray[Any]) -> Floats:
    values: Floats = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1).astype(np.float32)
    values *= blocks["scale"][:, None].astype(np.float32)
    values += blocks["least"][:, None].astype(np.float32)
    return values


def _from_q8_0(blocks: NDArray[Any]) -> Floats:
    values: Floats = blocks["values"].astype(np.float32)
    values *= blocks["scale"][:, None].astype(np.float32)
    return values


# By the number of a type: how a block is stored, its weights, and how they are read.
TYPES: dict[int, tuple[np.dtype[Any], int, Callable[[NDArray[Any]], Floats]]] = {
    0: (np.dtype("<f4"), 1, lambda stored: stored.astype(np.float32)),
    1: (np.dtype("<f2"), 1, lambda stored: stored.astype(np.float32)),
    3: (Q4_1, IN_BLOCK, _from_q4_1),
    8: (Q8_0, IN_BLOCK, _from_q8_0),
}


class GGUF:
    """``about``: the file's values by their names. Raises UnavailableError."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0
        try:
            with path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            magic, version, tensors, values = self._unpack("4sIQQ")
            if magic != MAGIC or version != 3:
                raise ValueError("it does not begin as version 3 of the format does")
            self.about = {self._text(): self._value(*self._unpack("I")) for _ in range(values)}
            self._tensors = dict(self._tensor() for _ in range(tensors))
        except (OSError, ValueError, LookupError, struct.error) as error:
            raise UnavailableError(f"{path} cannot be read as GGUF: {error}") from None
        alignment = int(self.about.get("general.alignment", ALIGNMENT))
        self._start = math.ceil(self._place / alignment) * alignment

    def tensors(self) -> Iterator[tuple[str, Floats]]:
        """Each tensor's name and weights, the first axis the slowest. Raises UnavailableError."""
        for name, (shape, kind, offset) in self._tensors.items():
            if kind not in TYPES:
                raise UnavailableError(f"{self._path}: {name} has type {kind}; {sorted(TYPES)} are known")
            stored, in_block, read = TYPES[kind]
            start, blocks = self._start + offset, math.prod(shape) // in_block
            if start + blocks * stored.itemsize > len(self._bytes):
                raise UnavailableError(f"{self._path} is cut off at {name}")
            yield name, read(np.frombuffer(self._bytes, stored, blocks, start)).reshape(shape)

    def _unpack(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self._bytes, self._place)
        self._place += struct.calcsize(f"<{form}")
        return values

    def _text(self) -> str:
        (size,) = self._unpack("Q")
        self._place += size
        return self._bytes[self._place - size : self._place].decode()

    def _value(self, kind: int) -> Any:
        if kind == TEXT:
            return self._text()
        if kind == LIST:
            kind, count = self._unpack("IQ")
            return [self._value(kind) for _ in range(count)]
        return self._unpack(NUMBERS[kind])[0]

    def _tensor(self) -> tuple[str, tuple[tuple[int, ...], int, int]]:
        name, (axes,) = self._text(), self._unpack("I")
        shape = self._unpack(f"{axes}Q")[::-1]
        kind, offset = self._unpack("IQ")
        return name, (shape, kind, offset)
