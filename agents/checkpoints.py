"""Checkpoints: where a model's files are, what they are, and how they are read.

A checkpoint is named as transformers names it: an id on the Hugging Face hub ("microsoft/git-base-coco"), or a local
folder or file. Nothing here uses the network but :func:`fetch`, which a person calls by ``turinglike fetch``; nothing
here executes what a file holds: weights are safetensors, or a torch file read with ``weights_only=True``.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import hub
from agents.errors import UnavailableError
from agents.hub import TORCH, lacking, short_text, some
from agents.hub import Download as Download
from agents.hub import NoNetworkError as NoNetworkError
from agents.hub import NotFetchedError as NotFetchedError
from agents.hub import readable as readable
from agents.hub import wanted as wanted

if TYPE_CHECKING:
    import torch

HUB_ID = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9]([\w.-]*\w)?(/[A-Za-z0-9]([\w.-]{0,94}\w)?)?", re.ASCII)
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
MARKER = "RANDOM_WEIGHTS"
# What a folder must have, each as alternatives in the order of transformers; an index stands for the shards it lists.
WEIGHTS = "model.safetensors|model.safetensors.index.json|pytorch_model.bin|pytorch_model.bin.index.json"
PROCESSOR = "preprocessor_config.json|processor_config.json"
TOKENIZER = "tokenizer.json|vocab.json|vocab.txt|tokenizer.model"
# Endings of a file of weights, which no id of the hub is taken to have.
FILES = (".safetensors", ".bin", ".pt", ".pth", ".pkl", ".ckpt")
# What no agent reads in a folder, and what is therefore no part of its identity.
UNREAD = ("README*", "LICENSE*", "NOTICE*", "*.md", MARKER, "*.py", "*.h5", "*.msgpack", "*.onnx", "*.ot", "*.gguf")


def find(checkpoint: str, revision: str | None = None) -> Path:
    """The local folder or file of ``checkpoint``, without any network. What is there by this name in the working
    directory goes before the hub's model, and has no revision.

    Raises UnavailableError, with one sentence, if it is not on this machine; NotFetchedError if it may be on the hub.
    """
    local = _local(checkpoint)
    if local is not None:
        return local
    folder = hub.snapshot(checkpoint, revision)
    if folder is None:
        at = f" at revision {revision}" if revision else ""
        raise NotFetchedError(f"{checkpoint}{at} is not on this machine")
    return folder


def is_local(checkpoint: str) -> bool:
    """Whether the name is that of a file or folder of this machine rather than of a model of the hub."""
    try:
        return _local(checkpoint) is not None
    except UnavailableError:
        return False


def identity(checkpoint: str, revision: str | None = None) -> tuple[str, str | None]:
    """(name, resolved revision): the hub's commit, or for local files the hash of what they hold.

    That of a file is its SHA-256; that of a folder stands for the names and contents of all files that an agent may
    read, wherever the folder is. A checkpoint that is not here keeps the revision that was asked for. Raises
    UnavailableError if local files cannot be read.
    """
    try:
        path = find(checkpoint, revision)
    except UnavailableError:
        return checkpoint, revision
    if not is_local(checkpoint):
        return checkpoint, path.name
    try:
        return checkpoint, f"sha256:{_content_hash(path)}"
    except OSError as error:
        raise UnavailableError(f"{checkpoint} cannot be read: {short_text(error)}") from None


def problem(path: Path, needs: Sequence[str], model_types: Sequence[str] = ()) -> str | None:
    """What the folder ``path`` lacks or is wrong about, in a few words; None if it can be loaded.

    ``needs`` lists names, alternatives parted by "|", of which the first that is there is read; ``model_types`` is
    what its config.json may say.
    """
    try:
        if not path.is_dir():
            return "is not a folder"
        files = {one.name for one in path.iterdir() if one.is_file()}
        # The hub's cache keeps contents apart from names: a link without its content is a file that has gone.
        gone = sorted(one.name for one in path.iterdir() if one.is_symlink() and not one.exists() and _is_read(one))
        if gone:
            return f"is incomplete: what {some(gone)} links to has gone"
        if absent := lacking(needs, files):
            return f"lacks {', '.join(absent)}"
        for names in needs:
            first = next(name for name in names.split("|") if name in files)
            if first.endswith(".index.json") and (wrong := _index_problem(path / first, files)):
                return wrong
        if not model_types:
            return None
        found = _json(path / "config.json").get("model_type")
    except _BadJSON as error:
        return f"has a damaged {error}"
    except OSError as error:
        return f"cannot be read: {short_text(error)}"
    return (
        None if found in model_types else f"holds a model of type {found!r}, not {' or '.join(map(repr, model_types))}"
    )


def random_weights(path: Path) -> bool:
    """Whether the checkpoint says of itself that its weights are random: a file RANDOM_WEIGHTS stands beside them."""
    return ((path if path.is_dir() else path.parent) / MARKER).exists()


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """All tensors of one weights file by name, on the CPU; mapped from the file where its format allows it.

    Reads .safetensors, and torch files with ``weights_only=True``. Raises UnavailableError if the file is damaged,
    holds anything but tensors in plain containers, or would have to execute code to be read.
    """
    found = read_torch(path) if path.suffix != ".safetensors" else _read_safetensors(path)
    weights = {name: value for name, value in found.items() if hasattr(value, "detach")}
    if not weights:
        raise UnavailableError(f"{path} holds no weights by name")
    return weights


def read_torch(path: Path) -> dict[str, Any]:
    """The mapping in a torch file, read with ``weights_only=True``. Raises UnavailableError."""
    import pickle

    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=_is_zip(path))
    except pickle.UnpicklingError as error:
        raise not_executed(path, error) from None
    except Exception as error:  # a damaged file raises a dozen types, IndexError and struct.error among them
        raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    if not isinstance(found, Mapping):
        raise UnavailableError(f"{path} holds a {type(found).__name__}, not weights by name")
    return dict(found)


def not_executed(path: Path, error: Exception) -> UnavailableError:
    """The sentence for a torch file that ``weights_only=True`` refused, whose ``error`` advises to execute it."""
    named = re.search(r"GLOBAL ([\w.]+)", str(error))
    what = f" ({named.group(1)})" if named else ""
    return UnavailableError(
        f"{path} is damaged, or holds code or objects{what} beside weights; it was not executed. "
        "Save its tensors alone, as safetensors"
    )


def _read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:  # SafetensorError, and whatever torch says of the sizes in a damaged header
        raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None


def check_names(
    path: Path | str, missing: Sequence[str], unexpected: Sequence[str] = (), reshaped: Sequence[str] = ()
) -> None:
    """Raises UnavailableError if weights are missing from a checkpoint (or are none of the model's), naming some."""
    parts = [
        f"{len(names)} weights {what} ({some(sorted(names))})"
        for names, what in (
            (missing, "are missing"),
            (unexpected, "are none of the model's"),
            (reshaped, "are of another shape"),
        )
        if names
    ]
    if parts:
        raise UnavailableError(f"{path} is not a checkpoint of this architecture: {' and '.join(parts)}")


def fetch(
    checkpoint: str, revision: str | None = None, only: Sequence[str] = (), needs: Sequence[str] = ()
) -> Download:
    """Download a hub checkpoint into the hub's cache: safetensors if there are any, else the torch files.

    ``only`` names the files to bring instead; a repository that lacks what ``needs`` lists (see :func:`problem`) is
    refused before anything is downloaded. :func:`find` knows of the new files once all of them are here: a download
    that was ended leaves what was there before in use, and begins again with the files that are missing. How much is
    coming goes to the log "turinglike.fetch". A local path is only looked at.

    Raises UnavailableError, NoNetworkError if the hub cannot be reached.
    """
    local = _local(checkpoint)
    if local is not None:
        revision = identity(checkpoint)[1]
        return Download(checkpoint, local, sum(file.stat().st_size for file in _read_files(local)), revision, None)
    return hub.download(checkpoint, revision, only, needs)


def _local(checkpoint: str) -> Path | None:
    """The path that ``checkpoint`` names; None if it is the name of a hub's model. Raises UnavailableError if it can
    be neither."""
    if not checkpoint.strip():
        raise UnavailableError("no checkpoint is named")
    if ADDRESS.match(checkpoint):
        raise UnavailableError(
            f"{checkpoint}: web addresses are not fetched; name a model of the hub (owner/name) or a local folder"
        )
    try:
        path = Path(checkpoint).expanduser()
        if path.exists():
            return path.absolute()
    except (OSError, RuntimeError) as error:  # too long, not allowed; ~ of nobody
        raise UnavailableError(f"{checkpoint[:200]} cannot be looked at: {short_text(error)}") from None
    if not HUB_ID.fullmatch(checkpoint) or checkpoint.endswith((*FILES, ".git")):
        raise UnavailableError(f"{checkpoint[:200]}: no such file or folder")
    return None


def _is_read(path: Path) -> bool:
    return not path.name.startswith(".") and not any(fnmatch.fnmatchcase(path.name, one) for one in UNREAD)


def _read_files(path: Path) -> list[Path]:
    """The file, or the files of a folder that an agent may read, in order; of two forms of the weights one."""
    if path.is_file():
        return [path]
    files = [
        one
        for one in sorted(path.rglob("*"))
        if one.is_file() and _is_read(one) and not any(part.startswith(".") for part in one.relative_to(path).parts)
    ]
    names = {one.name for one in files if one.parent == path}
    if names & {"model.safetensors", "model.safetensors.index.json"}:
        files = [one for one in files if not TORCH.fullmatch(one.name)]
    return files


def _content_hash(path: Path) -> str:
    if path.is_file():
        return _file_hash(path)
    whole = hashlib.sha256()
    for file in _read_files(path):
        whole.update(f"{file.relative_to(path).as_posix()}\0{_file_hash(file)}\n".encode())
    return whole.hexdigest()


def _file_hash(path: Path) -> str:
    about = path.stat()
    return _hash_once(str(path), about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


@cache
def _hash_once(path: str, *state: int) -> str:
    """``state`` is there for the cache: a file that changed since is read again."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _index_problem(index: Path, files: set[str]) -> str | None:
    shards = _json(index).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        return f"has a damaged {index.name} (no weight_map)"
    gone = sorted({str(name) for name in shards.values()} - files)
    return f"lacks {some(gone)}, which {index.name} lists" if gone else None


class _BadJSON(Exception):
    """The message is the file's name and, in brackets, what is wrong with it."""


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _BadJSON(f"{path.name} ({short_text(error)})") from None
    if not isinstance(found, dict):
        raise _BadJSON(f"{path.name} (not an object)")
    return found


def _is_zip(path: Path) -> bool:
    """Whether the torch file is of the newer form, which can be mapped instead of read."""
    with path.open("rb") as file:
        return file.read(2) == b"PK"
