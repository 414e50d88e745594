"""Checkpoints: where a model's files are, what they are, and how they are read.

A checkpoint is named as transformers names it: an id on the Hugging Face hub ("microsoft/git-base-coco"), or a local
folder or file. Nothing here uses the network but :func:`fetch`, which a person calls by ``understudy fetch``; nothing
here executes what a file holds: weights are safetensors, or a torch file read with ``weights_only=True``.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.errors import UnavailableError

if TYPE_CHECKING:
    import torch

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
TEXTS = ("*.json", "*.txt", "*.model", "*.jinja")
MARKER = "RANDOM_WEIGHTS"
# What a folder must have, each as alternatives; an index stands for the shards that it lists.
WEIGHTS = "model.safetensors|model.safetensors.index.json|pytorch_model.bin|pytorch_model.bin.index.json"
PROCESSOR = "preprocessor_config.json|processor_config.json"
TOKENIZER = "tokenizer.json|vocab.json|vocab.txt|tokenizer.model"


@dataclass(frozen=True, slots=True)
class Download:
    """What ``understudy fetch`` brought, or found here: ``size`` in bytes, ``path`` of the folder or file."""

    name: str
    path: Path
    size: int
    revision: str | None
    licence: str | None


def find(checkpoint: str, revision: str | None = None) -> Path:
    """The local folder or file of ``checkpoint``, without any network.

    Raises UnavailableError, with one sentence, if it is not on this machine.
    """
    path = Path(checkpoint).expanduser()
    if path.exists():
        return path.absolute()
    if _looks_like_path(checkpoint):
        raise UnavailableError(f"{checkpoint}: no such file or folder")
    folder = _snapshot(checkpoint, revision)
    if folder is None:
        at = f" at revision {revision}" if revision else ""
        raise UnavailableError(f"{checkpoint}{at} is not on this machine")
    return folder


def identity(checkpoint: str, revision: str | None = None) -> tuple[str, str | None]:
    """(name, resolved revision): the hub's commit, or for local files the hash of what they hold.

    A hub checkpoint that is not here keeps the revision that was asked for.
    """
    try:
        path = find(checkpoint, revision)
    except UnavailableError:
        return checkpoint, revision
    if Path(checkpoint).expanduser().exists():
        return checkpoint, f"sha256:{_content_hash(path)}"
    return checkpoint, path.name


def problem(path: Path, needs: Sequence[str], model_types: Sequence[str] = ()) -> str | None:
    """What the folder ``path`` lacks or is wrong about, in a few words; None if it can be loaded.

    ``needs`` lists names, alternatives parted by "|"; ``model_types`` is what its config.json may say.
    """
    if not path.is_dir():
        return "is not a folder"
    lacking = [
        " or ".join(names.split("|")) for names in needs if not any((path / n).is_file() for n in names.split("|"))
    ]
    if lacking:
        return f"lacks {', '.join(lacking)}"
    for index in path.glob("*.index.json"):
        shards = _json(index).get("weight_map", {})
        gone = sorted({str(name) for name in shards.values() if not (path / str(name)).is_file()})
        if gone:
            return f"lacks {', '.join(gone[:3])}{' …' * (len(gone) > 3)}, which {index.name} lists"
    if model_types:
        try:
            found = _json(path / "config.json").get("model_type")
        except UnavailableError as error:
            return f"has a damaged config.json ({error})"
        if found not in model_types:
            return f"holds a model of type {found!r}, not {' or '.join(map(repr, model_types))}"
    return None


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
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f" ({named.group(1)})" if named else ""
        raise UnavailableError(
            f"{path} is damaged, or holds code or objects{what} beside weights; it was not executed. "
            "Save its tensors alone, as safetensors"
        ) from None
    except (RuntimeError, OSError, EOFError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UnavailableError(f"{path} cannot be read: {_short(error)}") from None
    if not isinstance(found, Mapping):
        raise UnavailableError(f"{path} holds a {type(found).__name__}, not weights by name")
    return dict(found)


def _read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise UnavailableError(f"{path} cannot be read: {_short(error)}") from None


def check_names(path: Path | str, missing: Sequence[str], unexpected: Sequence[str] = ()) -> None:
    """Raises UnavailableError if weights are missing from a checkpoint (or are none of the model's), naming some."""
    parts = [
        f"{len(names)} weights {what} ({', '.join(sorted(names)[:3])}{' …' * (len(names) > 3)})"
        for names, what in ((missing, "are missing"), (unexpected, "are none of the model's"))
        if names
    ]
    if parts:
        raise UnavailableError(f"{path} is not a checkpoint of this architecture: {' and '.join(parts)}")


def fetch(checkpoint: str, revision: str | None = None, also: Sequence[str] = ()) -> Download:
    """Download a hub checkpoint into the hub's cache: safetensors if there are any, else the torch files.

    ``also`` adds patterns of further files. A local path is only looked at. Raises UnavailableError.
    """
    path = Path(checkpoint).expanduser()
    if path.exists() or _looks_like_path(checkpoint):
        found = find(checkpoint)
        return Download(checkpoint, found, _size(found), identity(checkpoint)[1], None)
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        about = HfApi().model_info(checkpoint, revision=revision)
        names = [file.rfilename for file in about.siblings or ()]
        snapshot = snapshot_download(checkpoint, revision=revision, allow_patterns=wanted(names, also))
    except GatedRepoError:
        raise UnavailableError(
            f"{checkpoint}: its authors ask for consent; give it on its hub page and set HF_TOKEN"
        ) from None
    except RepositoryNotFoundError:
        raise UnavailableError(f"{checkpoint}: the hub has no such model, or HF_TOKEN may not see it") from None
    except RevisionNotFoundError:
        raise UnavailableError(f"{checkpoint}: the hub has no revision {revision!r}") from None
    except (HfHubHTTPError, httpx.HTTPError, OSError) as error:
        raise UnavailableError(f"{checkpoint} could not be downloaded: {_short(error)}") from None
    licence = getattr(about.card_data, "license", None) if about.card_data else None
    folder = Path(snapshot)
    return Download(checkpoint, folder, _size(folder), folder.name, licence)


def wanted(names: Sequence[str], also: Sequence[str] = ()) -> list[str]:
    """Of a hub repository's files those that an agent reads: of the top folder alone, one form of the weights."""
    top = [name for name in names if "/" not in name]
    texts = [name for name in top if any(fnmatch.fnmatch(name, pattern) for pattern in (*TEXTS, *also))]
    safe = [name for name in top if name.endswith(".safetensors")]
    torch_files = [name for name in top if re.fullmatch(r"pytorch_model.*\.bin", name)]
    return list(dict.fromkeys(texts + (safe or torch_files)))


def _looks_like_path(checkpoint: str) -> bool:
    return not HUB_ID.fullmatch(checkpoint)


def _snapshot(checkpoint: str, revision: str | None) -> Path | None:
    """The folder in the hub's cache, whose layout is documented: refs name commits, snapshots are folders of them."""
    from huggingface_hub.constants import HF_HUB_CACHE

    root = Path(HF_HUB_CACHE) / f"models--{checkpoint.replace('/', '--')}"
    reference = root / "refs" / (revision or "main")
    commit = reference.read_text().strip() if reference.is_file() else revision
    folder = root / "snapshots" / commit if commit else None
    return folder if folder is not None and folder.is_dir() else None


def _content_hash(path: Path) -> str:
    """SHA-256 over the names and contents of a file, or of the files of a folder."""
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    whole = hashlib.sha256()
    for file in files:
        name = file.name if path.is_file() else file.relative_to(path).as_posix()
        if not name.startswith("."):
            about = file.stat()
            whole.update(f"{name}\0{_file_hash(str(file), about.st_size, about.st_mtime_ns)}\n".encode())
    return whole.hexdigest()


@cache
def _file_hash(path: str, size: int, mtime_ns: int) -> str:
    """``size`` and ``mtime_ns`` are there for the cache: a changed file is read again."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{path} cannot be read: {_short(error)}") from None
    return found if isinstance(found, dict) else {}


def _is_zip(path: Path) -> bool:
    """Whether the torch file is of the newer form, which can be mapped instead of read."""
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
