"""Embeddings of a whole vocabulary, kept in the user's cache so that they are computed once on a machine.

A file is ``$XDG_CACHE_HOME/turinglike/embeddings/KEY.safetensors`` (``~/.cache`` where the variable is not set), KEY a
hash of all that the embeddings depend on. What cannot be read or written is computed. Nothing is trusted: shape,
numbers and a few of the vectors, computed anew, must fit.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Embed = Callable[[Sequence[str]], NDArray[np.float32]]

CHECKED = 16  # words whose vectors are computed anew
CLOSE = 1e-3  # how far apart two vectors of one word may be, in shares of their length: rounding in fp32
SERVED = 0.03  # the same where a server makes them, in bf16 and in batches of any size

log = logging.getLogger("turinglike.embeddings")


def embedded(words: Sequence[str], about: Mapping[str, Any], embed: Embed, close: float = CLOSE) -> NDArray[np.float32]:
    """``embed(words)``, float32 [words, dimensions], from the cache if it is there. ``about`` says what else the
    vectors depend on; it must be JSON. ``close`` is how much a vector that is computed anew may differ."""
    key = hashlib.sha256(json.dumps([1, about, list(words)], sort_keys=True).encode()).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    path = cache / "turinglike" / "embeddings" / f"{key}.safetensors"
    found = _read(path)
    if found is not None and _fits(found, words, embed, close):
        return found
    vectors = embed(words)
    _write(path, vectors)
    return vectors


def _read(path: Path) -> NDArray[np.float32] | None:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path).get("vectors")
    except FileNotFoundError:
        return None
    except (OSError, SafetensorError, ValueError, TypeError, KeyError) as error:
        log.warning("%s cannot be read and is made anew: %s", path, error)
        return None


def _fits(found: NDArray[Any], words: Sequence[str], embed: Embed, close: float) -> bool:
    checked = np.unique(np.linspace(0, len(words) - 1, CHECKED).astype(int))
    again = embed([words[index] for index in checked])
    if (
        found.dtype == np.float32
        and found.shape == (len(words), again.shape[1])
        and np.isfinite(found).all()
        and (np.linalg.norm(found[checked] - again, axis=1) <= close * np.linalg.norm(again, axis=1)).all()
    ):
        return True
    log.warning("cached embeddings do not fit and are made anew")
    return False


def _write(path: Path, vectors: NDArray[np.float32]) -> None:
    """Whole or not at all; a disk that takes nothing is no reason to fail."""
    from safetensors.numpy import save

    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(save({"vectors": vectors}))
        unfinished.replace(path)
    except OSError as error:
        log.warning("%s cannot be written: %s", path, error)
