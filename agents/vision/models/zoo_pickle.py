"""Converts the pickled weights of Detectron2's model zoo to safetensors, executing nothing that a pickle may ask for.

A pickle is a program: it names functions and calls them. Arrays need the few names of :data:`ALLOWED`; a file that
names anything else is refused before that is even imported.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from agents.errors import UnavailableError

ALLOWED = frozenset(
    {
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("_codecs", "encode"),  # how protocol 2 writes bytes
        ("collections", "OrderedDict"),
    }
)


class _Refused(Exception):
    """The pickle asks for something that a file of arrays does not need."""


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise _Refused(f"asks for {module}.{name}")
        return super().find_class(module, name)


def read(file: IO[bytes], name: str) -> dict[str, NDArray[Any]]:
    """The arrays under ``model`` in a pickle of the model zoo, by name.

    Raises UnavailableError, with one sentence that begins with ``name``, if it is damaged or holds anything else.
    """
    try:
        whole = _ArrayUnpickler(file, encoding="latin1").load()
    except _Refused as error:
        raise UnavailableError(f"{name} {error}, which weights have no need of; nothing in it was executed") from None
    except Exception as error:  # a damaged pickle raises a dozen types, IndexError and struct.error among them
        raise UnavailableError(f"{name} is damaged: {type(error).__name__}: {str(error)[:200]}") from None
    model = whole.get("model") if isinstance(whole, dict) else None
    if not isinstance(model, dict) or not model:
        raise UnavailableError(f"{name} is not a file of Detectron2's model zoo: it has no weights under 'model'")
    for key, value in model.items():
        if not (isinstance(key, str) and isinstance(value, np.ndarray) and value.dtype.kind in "biuf"):
            raise UnavailableError(f"{name} holds something else than arrays of numbers by name under 'model'")
    return {key: value.astype(value.dtype.newbyteorder("="), order="C") for key, value in model.items()}


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
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:
        made = Path(folder) / target.name
        save_file(arrays, made, metadata={"format": "pt", "origin": origin, "origin_sha256": digest})
        os.replace(made, target)
