"""The Hugging Face hub: what is downloaded from it, and where it lies on this machine.

The layout of the cache is documented: in a model's folder ``refs`` names commits, ``snapshots`` are folders of them.
"""

from __future__ import annotations

import contextlib
import fnmatch
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agents.errors import UnavailableError

COMMIT = re.compile(r"[0-9a-f]{40}")
TEXTS = ("*.json", "*.txt", "*.model", "*.jinja")
# Of a repository's files of weights those that repeat others.
SPARE = re.compile(r"(consolidated|adapter_model).*|.+\.(fp16|bf16|fp32|int8)[.-].+")
TORCH = re.compile(r"(.+_)?pytorch_model(-\d+-of-\d+)?\.bin")
TIMEOUT = 10.0  # seconds in which the hub must begin to answer

log = logging.getLogger("turinglike.fetch")


class NoNetworkError(UnavailableError):
    """The hub cannot be reached from this machine."""


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


def download(checkpoint: str, revision: str | None, only: Sequence[str] = (), needs: Sequence[str] = ()) -> Download:
    """See :func:`agents.checkpoints.fetch`. Raises UnavailableError."""
    with _sentences(checkpoint, revision):
        return _download(checkpoint, revision, only, needs)


def _download(checkpoint: str, revision: str | None, only: Sequence[str], needs: Sequence[str]) -> Download:
    from huggingface_hub import HfApi, hf_hub_download

    about = HfApi().model_info(checkpoint, revision=revision, files_metadata=True, timeout=TIMEOUT)
    files = {file.rfilename: file for file in about.siblings or ()}
    names = wanted(list(files), only)
    if absent := lacking(needs, names):
        raise UnavailableError(f"{checkpoint}: the hub's model lacks {', '.join(absent)}")
    commit = str(about.sha)
    root = cache_folder(checkpoint)
    folder = root / "snapshots" / commit
    coming = 0
    for name in names:
        lfs = files[name].lfs
        content = files[name].blob_id if lfs is None else lfs.sha256
        if not (folder / name).exists() and not (content and (root / "blobs" / content).exists()):
            coming += files[name].size or 0
    whole = sum(files[name].size or 0 for name in names)
    log.info("%s: %s, of which %s are to be downloaded to %s", checkpoint, readable(whole), readable(coming), root)
    _check_room(checkpoint, coming, root)
    # One after another, here in the main thread: Ctrl-C then ends a download at once, and leaves nothing half-written.
    # The configuration goes last, so that a folder that has it has everything.
    for name in sorted(names, key="config.json".__eq__):
        hf_hub_download(checkpoint, name, revision=commit, etag_timeout=TIMEOUT)
    if revision != commit:
        _write_reference(root / "refs" / (revision or "main"), commit)
    size = sum((folder / name).stat().st_size for name in names)
    return Download(checkpoint, folder, size, commit, _licence(vars(about.card_data) if about.card_data else {}))


def _licence(card: Mapping[str, Any]) -> str | None:
    """What the model's card says; a licence that the hub has no word for goes by its name."""
    said = card.get("license")
    if said == "other":
        said = card.get("license_name") or said
    return ", ".join(map(str, said)) if isinstance(said, list) else said


@contextlib.contextmanager
def _sentences(checkpoint: str, revision: str | None) -> Iterator[None]:
    """Within the block whatever the hub's client raises becomes an UnavailableError of one sentence."""
    import httpx
    from huggingface_hub import constants, errors

    try:
        yield
    except UnavailableError:
        raise
    except errors.GatedRepoError:
        raise UnavailableError(
            f"{checkpoint}: its authors ask for consent; give it on its hub page and set HF_TOKEN"
        ) from None
    except errors.RepositoryNotFoundError:
        raise UnavailableError(f"{checkpoint}: the hub has no such model, or HF_TOKEN may not see it") from None
    except errors.RevisionNotFoundError:
        raise UnavailableError(f"{checkpoint}: the hub has no revision {revision!r}") from None
    except Exception as error:  # what the client, httpx and hf_xet raise has no base in common
        cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ else error
        host, short = urlsplit(constants.ENDPOINT).netloc, short_text(cause)
        if isinstance(cause, errors.OfflineModeIsEnabled):
            raise NoNetworkError(f"{checkpoint}: nothing is fetched while HF_HUB_OFFLINE is set") from None
        if isinstance(cause, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)):
            raise NoNetworkError(f"{checkpoint}: there is no network to {host} ({short})") from None
        if isinstance(cause, httpx.TransportError):
            raise UnavailableError(
                f"{checkpoint}: the connection to {host} broke off ({short}); what is complete is kept, fetch it again"
            ) from None
        raise UnavailableError(f"{checkpoint} could not be downloaded: {short}") from None


OPEN_CLIP = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")


def wanted(names: Sequence[str], only: Sequence[str] = ()) -> list[str]:
    """Of a hub repository's files those that an agent reads: of the top folder alone, one form of the weights, those of
    open_clip's form where there are any. ``only`` names the files to take instead."""
    if only:
        return [name for name in names if name in only]
    top = [name for name in names if "/" not in name]
    open_clip = [name for name in OPEN_CLIP if name in top][:1]
    safe = [name for name in top if name.endswith(".safetensors")]
    weights = [name for name in safe if not SPARE.fullmatch(name)] or safe
    weights = open_clip or weights or [name for name in top if TORCH.fullmatch(name)]
    index = "model.safetensors.index.json" if safe else "pytorch_model.bin.index.json"
    texts = [
        name
        for name in top
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in TEXTS) and (name == index or ".index." not in name)
    ]
    return list(dict.fromkeys(weights + texts))


def readable(size: int) -> str:
    """A size in bytes as a person reads it: "1.6 GB", in powers of ten, as the hub's pages have it."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= one:
            return f"{size / one:.1f} {unit}"
    return f"{size} bytes"


def cache_folder(checkpoint: str) -> Path:
    """Where the hub's client keeps all that it has of one model."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"models--{checkpoint.replace('/', '--')}"


def snapshot(checkpoint: str, revision: str | None) -> Path | None:
    """The folder of a model's files at a revision (none: the main branch); None if it is not here."""
    root = cache_folder(checkpoint)
    if revision and COMMIT.fullmatch(revision):
        commit = revision
    else:
        name = Path(revision or "main")
        if name.is_absolute() or ".." in name.parts:
            return None
        try:
            commit = (root / "refs" / name).read_text("utf-8").strip()
        except (OSError, ValueError):
            return None
        if not COMMIT.fullmatch(commit):
            return None
    folder = root / "snapshots" / commit
    return folder if folder.is_dir() else None


def _write_reference(path: Path, commit: str) -> None:
    """Say that the revision ``path`` is ``commit``: whole or not at all, and not at all if it says so already."""
    if path.is_file() and path.read_text("utf-8", "replace").strip() == commit:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(commit)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _check_room(checkpoint: str, coming: int, folder: Path) -> None:
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(there).free
    if coming > free:
        raise UnavailableError(
            f"{checkpoint}: {readable(coming)} are to be downloaded to {folder}, where {readable(free)} are free; "
            "HF_HOME names another place"
        )


def lacking(needs: Sequence[str], files: Collection[str]) -> list[str]:
    """Of ``needs`` those of which no alternative is among ``files``."""
    return [" or ".join(names.split("|")) for names in needs if not any(name in files for name in names.split("|"))]


def short_text(error: BaseException) -> str:
    """What an error says, in one line of a message."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return text[:200] if " " in text else f"{kind} {text[:200]}".strip()  # a KeyError says no more than its key


def some(names: Sequence[str]) -> str:
    """Up to three of them, for a message."""
    return f"{', '.join(names[:3])}{' …' * (len(names) > 3)}"
