"""Checkpoints: where a model's files are, what they are, and how they are read.

A checkpoint is named as transformers names it: an id on the Hugging Face hub ("microsoft/git-base-coco"), or a local
folder or file. Nothing here uses the network; :mod:`agents.hub` downloads. Nothing here executes what a file holds:
weights are safetensors, or a torch file read with ``weights_only=True``.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.errors import UnavailableError

if TYPE_CHECKING:
    import torch

HUB_ID = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9]([\w.-]*\w)?(/[A-Za-z0-9]([\w.-]{0,94}\w)?)?", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
MARKER = "RANDOM_WEIGHTS"
# What a folder must have, each as alternatives in the order of transformers; an index stands for the shards it lists.
WEIGHTS = "model.safetensors|model.safetensors.index.json|pytorch_model.bin|pytorch_model.bin.index.json"
PROCESSOR = "preprocessor_config.json|processor_config.json"
TOKENIZER = "tokenizer.json|vocab.json|vocab.txt|tokenizer.model"
# Endings of a file of weights, which no id of the hub is taken to have.
FILES = (".safetensors", ".bin", ".pt", ".pth", ".pkl", ".ckpt")
# What is downloaded of a repository's top folder: the texts, and one form of the weights without their repetitions.
TEXTS = ["*.json", "*.txt", "*.model", "*.jinja"]
TORCH_INDEX = "pytorch_model.bin.index.json"
SPARE = [
    "*/*",
    TORCH_INDEX,
    "consolidated*",
    "adapter_model*",
    *(f"*.{form}[.-]*" for form in ("fp16", "bf16", "fp32", "int8")),
]

# The commits at which published checkpoints are taken, where no other revision is asked for; from others' published
# caches. What is missing here (DialoGPT, BlenderBot, OFA, CLIP, OpenFlamingo) comes from main as it was when fetched.
PINNED = {
    "Qwen/Qwen2.5-7B-Instruct": "a09a35458c702b33eeacc393d103063234e8bc28",
    "Salesforce/blip-image-captioning-base": "82a37760796d32b1411fe092ab5d4e227313294b",
    "Salesforce/blip-image-captioning-large": "2227ac38c9f16105cb0412e7cab4759978a8fd90",
    "Salesforce/blip2-opt-2.7b": "59a1ef6c1e5117b3f65523d1c6066825bcf315e3",
    "facebook/detr-resnet-50": "1d5f47bd3bdd2c4bbfa585418ffe6da5028b4c0b",
    "llava-hf/llava-v1.6-mistral-7b-hf": "52320fb52229c8d942b1dcb8b63b3dc8087bc83b",
    "meta-llama/Llama-3.1-8B-Instruct": "0e9e39f249a16976918f6564b8830bc894c89659",
    "meta-llama/Llama-3.3-70B-Instruct": "6f6073b423013f6a7d4d9f39144961bfbfbc386b",
    "microsoft/git-base-coco": "a13141da42abd4a8cbf283601a8104265f537cee",
    "microsoft/git-large-coco": "b644b0b41274649f87de8846fa15f9a22dad7583",
    "openai-community/gpt2": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
    "openai-community/gpt2-large": "32b71b12589c2f8d625668d2335a01cac3249519",
    "sentence-transformers/all-MiniLM-L6-v2": "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
}


class NotFetchedError(UnavailableError):
    """A model of the hub is not on this machine."""


@dataclass(frozen=True, slots=True)
class Download:
    """What ``turinglike fetch`` brought, or found here: ``size`` in bytes, ``path`` of the folder or file."""

    name: str
    path: Path
    size: int
    revision: str | None
    licence: str | None


# where they are, and what


def find(checkpoint: str, revision: str | None = None) -> Path:
    """The local folder or file of ``checkpoint``, without any network; at its pinned commit, if no ``revision`` is
    given and there is one.

    What has this name in the working directory goes before the hub's model, and has no revision. Raises
    UnavailableError, with one sentence, if it is not on this machine; NotFetchedError if it may be on the hub.
    """
    local = local_path(checkpoint)
    if local is not None:
        return local
    from huggingface_hub import errors, snapshot_download

    revision = revision or PINNED.get(checkpoint)
    with contextlib.suppress(OSError, ValueError, errors.LocalEntryNotFoundError):
        found = snapshot_download(
            checkpoint, revision=revision, local_files_only=True, allow_patterns=TEXTS, ignore_patterns=SPARE
        )
        if COMMIT.fullmatch(Path(found).name):
            return Path(found)
    at = f" at revision {revision}" if revision else ""
    raise NotFetchedError(f"{checkpoint}{at} is not on this machine")


def identity(checkpoint: str, revision: str | None = None) -> tuple[str, str | None]:
    """(name, resolved revision): the hub's commit, or for local files the hash of what they hold.

    That of a file is its SHA-256. That of a folder stands for the names and contents of all files that an agent may
    read, wherever the folder is. A checkpoint that is not here keeps the revision that was asked for. Raises
    UnavailableError if local files cannot be read.
    """
    try:
        path = local_path(checkpoint)
        if path is None:
            return checkpoint, find(checkpoint, revision).name
    except UnavailableError:
        return checkpoint, revision
    try:
        if path.is_file():
            return checkpoint, f"sha256:{_file_hash(path)}"
        whole = hashlib.sha256()
        for file in model_files(path):
            whole.update(f"{file.relative_to(path).as_posix()}\0{_file_hash(file)}\n".encode())
        return checkpoint, f"sha256:{whole.hexdigest()}"
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
        if absent := lacking(needs, files):
            return f"lacks {', '.join(absent)}"
        for names in needs:
            first = next(name for name in names.split("|") if name in files)
            if first.endswith(".index.json") and (wrong := _index_problem(path / first, files)):
                return wrong
        found = _json(path / "config.json").get("model_type") if model_types else None
    except ValueError as error:
        return f"has a damaged {error}"
    except OSError as error:
        return f"cannot be read: {short_text(error)}"
    if not model_types or found in model_types:
        return None
    return f"holds a model of type {found!r}, not {' or '.join(map(repr, model_types))}"


def random_weights(path: Path) -> bool:
    """Whether the checkpoint says of itself that its weights are random: a file RANDOM_WEIGHTS stands beside them."""
    return ((path if path.is_dir() else path.parent) / MARKER).exists()


def weights_file(path: Path) -> Path:
    """The file ``path``, or the only file of weights in the folder ``path``. Raises UnavailableError."""
    if not path.is_dir():
        return path
    files = sorted(file for file in path.iterdir() if file.suffix in FILES)
    if len(files) != 1:
        raise UnavailableError(f"{path} holds {len(files)} files of weights ({', '.join(FILES)}); name one")
    return files[0]


def count_weights(path: Path) -> int:
    """The number of weights in a file, or in a folder's files, found from their headers.

    Of a torch file only its size is known: two bytes a weight are assumed, so that the number is rather too large. In
    a folder torch files count only where there is no safetensors file. What cannot be read counts 0: to say what is
    wrong with it is the loader's part.
    """
    if path.is_dir():
        return sum(map(count_weights, sorted(path.glob("*.safetensors")) or sorted(path.glob("pytorch_model*.bin"))))
    try:
        if path.suffix != ".safetensors":
            return path.stat().st_size // 2
        from safetensors import safe_open

        with safe_open(path, "np") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except Exception:  # safetensors is not installed, or one of what it raises for a damaged file
        return 0


def largest_file(path: Path) -> int:
    """The size of a file, or of the largest of a folder's files of weights, in bytes."""
    files = [path] if path.is_file() else [one for one in path.glob("*") if one.suffix in FILES and one.is_file()]
    return max((one.stat().st_size for one in files), default=0)


def local_path(checkpoint: str) -> Path | None:
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
            for file in [path, *(sorted(path.iterdir()) if path.is_dir() else [])]:
                if file.exists() and not (file.is_file() or file.is_dir()):  # a FIFO waits, a device may do anything
                    raise UnavailableError(f"{checkpoint[:200]}: {file.name} is neither a file nor a folder")
            return path.absolute()
    except (OSError, RuntimeError) as error:  # too long, not allowed; ~ of nobody
        raise UnavailableError(f"{checkpoint[:200]} cannot be looked at: {short_text(error)}") from None
    if not HUB_ID.fullmatch(checkpoint) or checkpoint.endswith((*FILES, ".git")):
        raise UnavailableError(f"{checkpoint[:200]}: no such file or folder")
    return None


def model_files(path: Path) -> list[Path]:
    """The file, or the files of a folder that an agent may read, in order; of two forms of the weights one."""
    if path.is_file():
        return [path]

    def is_read(file: Path) -> bool:
        hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
        of_model = file.suffix in FILES or any(fnmatch.fnmatchcase(file.name, one) for one in TEXTS)
        about_it = file.name.startswith(("README", "LICENSE", "NOTICE"))
        return of_model and not about_it and not hidden and file.is_file()

    files = [file for file in sorted(path.rglob("*")) if is_read(file)]
    if any((path / name).exists() for name in ("model.safetensors", "model.safetensors.index.json")):
        files = [file for file in files if not fnmatch.fnmatchcase(file.name, "*pytorch_model*.bin")]
    return files


def _file_hash(path: Path) -> str:
    about = path.stat()
    return _hash_once(str(path), about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


@cache
def _hash_once(path: str, *state: int) -> str:
    """``state`` is there for the cache: a file that changed since is read again."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _index_problem(index: Path, files: Collection[str]) -> str | None:
    shards = _json(index).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        return f"has a damaged {index.name} (no weight_map)"
    gone = sorted({str(name) for name in shards.values()} - set(files))
    return f"lacks {_some(gone)}, which {index.name} lists" if gone else None


def _json(path: Path) -> dict[str, Any]:
    """The object in a file. Raises ValueError: the file's name and, in brackets, what is wrong with it."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} ({short_text(error)})") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} (not an object)")
    return found


def lacking(needs: Sequence[str], files: Collection[str]) -> list[str]:
    """Of ``needs`` those of which no alternative is among ``files``."""
    return [" or ".join(names.split("|")) for names in needs if not any(name in files for name in names.split("|"))]


# reading


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
        with path.open("rb") as file:
            newer = file.read(2) == b"PK"  # a zip archive, which can be mapped instead of read
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=newer)
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
    kinds = ((missing, "are missing"), (unexpected, "are none of the model's"), (reshaped, "are of another shape"))
    parts = [f"{len(names)} weights {what} ({_some(sorted(names))})" for names, what in kinds if names]
    if parts:
        raise UnavailableError(f"{path} is not a checkpoint of this architecture: {' and '.join(parts)}")


# messages


def short_text(error: BaseException) -> str:
    """What an error says, in one line of a message."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return text[:200] if " " in text else f"{kind} {text[:200]}".strip()  # a KeyError says no more than its key


def _some(names: Sequence[str]) -> str:
    """Up to three of them, for a message."""
    return f"{', '.join(names[:3])}{' …' * (len(names) > 3)}"
