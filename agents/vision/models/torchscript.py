"""Reads the tensors of a TorchScript archive, such as OpenAI's files of CLIP, executing nothing of it.

An archive is a zip file: ``data.pkl`` holds the tree of modules as a pickle that names each module's class, ``code/``
what those classes do, ``data/0``, ``data/1``, … the tensors' bytes. The classes are not looked for: every one is an
empty :class:`_Module`. A pickle that names anything but them and :data:`ALLOWED` is refused before that is imported.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agents.checkpoints import short_text
from agents.errors import UnavailableError

TYPES = {
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "BoolStorage": torch.bool,
}


class _Refused(Exception):
    """The pickle asks for something that a tree of modules with tensors does not need."""


class _Module:
    """Stands for a module of any class; ``parts`` are its attributes."""

    parts: Any = None

    def __setstate__(self, state: Any) -> None:
        self.parts = state


def _tensor(storage: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Tensor:
    """In place of ``torch._utils._rebuild_tensor_v2``; as_strided raises where ``storage`` is too short."""
    return storage.as_strided(size, stride, offset)


def _list(values: list[Any]) -> list[Any]:
    return values


ALLOWED: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("collections", "OrderedDict"): OrderedDict,
    **{("torch.jit._pickle", f"build_{kind}list"): _list for kind in ("int", "bool", "double", "tensor")},
    **{("torch", name): kind for name, kind in TYPES.items()},
}


class _TreeUnpickler(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(io.BytesIO(archive.read(f"{folder}data.pkl")))
        self._archive, self._folder = archive, folder

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "__torch__":
            return _Module
        if (module, name) not in ALLOWED:
            raise _Refused(f"{module}.{name}")
        return ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Tensor:
        """A storage: ("storage", its type, its name, a device, its number of elements)."""
        _, kind, name, _, count = pid
        held = self._archive.read(f"{self._folder}data/{name}")
        if not count:
            return torch.empty(0, dtype=kind)
        return torch.frombuffer(bytearray(held), dtype=kind, count=count)


def is_archive(path: Path) -> bool:
    """Whether ``path`` is a TorchScript archive, which has constants of its code where other torch files have none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/constants.pkl") for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of the archive ``path`` by name ("visual.conv1.weight"), on the CPU, as they are stored.

    Raises UnavailableError if it is damaged, or asks for anything but modules and tensors.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            folder = next(name for name in archive.namelist() if name.endswith("/constants.pkl")).removesuffix(
                "constants.pkl"
            )
            for (
                one
            ) in archive.infolist():  # torch compresses its code alone, which is not read: no small file grows here
                if one.compress_type != zipfile.ZIP_STORED and one.filename.startswith(f"{folder}data"):
                    raise UnavailableError(f"{path} cannot be read: {one.filename} is compressed")
            found: dict[str, Tensor] = {}
            _collect(_TreeUnpickler(archive, folder).load(), "", found)
    except _Refused as error:
        raise UnavailableError(f"{path} holds code or objects ({error}) beside weights; it was not executed") from None
    except UnavailableError:
        raise
    except Exception as error:  # a damaged pickle raises a dozen types, IndexError and struct.error among them
        raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    if not found:
        raise UnavailableError(f"{path} holds no weights by name")
    return found


def _collect(module: Any, prefix: str, found: dict[str, Tensor]) -> None:
    parts = module.parts if isinstance(module, _Module) else None
    for name, value in parts.items() if isinstance(parts, dict) else ():
        if isinstance(value, Tensor):
            found[prefix + str(name)] = value
        else:
            _collect(value, f"{prefix}{name}.", found)
