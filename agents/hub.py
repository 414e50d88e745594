"""The Hugging Face hub: what is downloaded from it, into the cache of its own library."""

from __future__ import annotations

import contextlib
import fnmatch
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.checkpoints import (
    COMMIT,
    PINNED,
    SPARE,
    TEXTS,
    TORCH_INDEX,
    Download,
    identity,
    lacking,
    local_path,
    model_files,
    short_text,
)
from agents.errors import UnavailableError

OPEN_CLIP = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
TORCH, OPEN_FLAMINGO = "pytorch_model*.bin", "checkpoint.pt"
TIMEOUT = 10.0  # seconds in which the hub must begin to answer

log = logging.getLogger("turinglike.fetch")


class NoNetworkError(UnavailableError):
    """The hub cannot be reached from this machine."""


def fetch(checkpoint: str, revision: str | None = None, needs: Sequence[str] = ()) -> Download:
    """Download a hub checkpoint into the hub's cache: safetensors if there are any, else the torch files. Without a
    ``revision`` it is the pinned commit, if there is one.

    A repository that lacks what ``needs`` lists (see :func:`agents.checkpoints.problem`) is refused before anything is
    downloaded. The new files are found once all of them are here. How much is coming goes to the log
    "turinglike.fetch". A local path is only looked at. Raises UnavailableError; NoNetworkError if the hub cannot be
    reached.
    """
    local = local_path(checkpoint)
    if local is not None:
        size = sum(file.stat().st_size for file in model_files(local))
        return Download(checkpoint, local, size, identity(checkpoint)[1], None)
    revision = revision or PINNED.get(checkpoint)
    with _sentences(checkpoint, revision):
        from huggingface_hub import HfApi, constants, hf_hub_download

        about = HfApi().model_info(checkpoint, revision=revision, timeout=TIMEOUT)
        commit = str(about.sha)
        if COMMIT.fullmatch(revision or "") and commit != revision:
            raise UnavailableError(f"{checkpoint}: asked for commit {revision}, the hub gave {commit}")
        there = [file.rfilename for file in about.siblings or () if "/" not in file.rfilename]
        if absent := lacking(needs, there):
            raise UnavailableError(f"{checkpoint}: the hub's model lacks {', '.join(absent)}")
        names = _chosen(there)
        if not names:
            raise UnavailableError(f"{checkpoint}: the hub's model has no file that an agent reads")
        found = [hf_hub_download(checkpoint, name, revision=commit, dry_run=True) for name in names]
        whole = sum(file.file_size or 0 for file in found)
        coming = readable(sum(file.file_size or 0 for file in found if file.will_download))
        room = f"{readable(whole)}, of which {coming} are to be downloaded to {constants.HF_HUB_CACHE}"
        log.info("%s: %s", checkpoint, room)
        # One after another, here in the main thread: Ctrl-C then ends a download at once. The configuration goes last,
        # so that a folder that has it has everything, and by its revision, which is then said to be this commit.
        *others, last = sorted(names, key="config.json".__eq__)
        for name in others:
            hf_hub_download(checkpoint, name, revision=commit, etag_timeout=TIMEOUT)
        folder = Path(hf_hub_download(checkpoint, last, revision=revision, etag_timeout=TIMEOUT)).parent
    return Download(checkpoint, folder, whole, folder.name, _licence(vars(about.card_data) if about.card_data else {}))


def _chosen(names: Sequence[str]) -> list[str]:
    """Which of a repository's files to take: the texts, and one form of the weights."""
    weights, spare = [name for name in OPEN_CLIP if name in names][:1], SPARE
    if not weights and any(name.endswith(".safetensors") for name in names):
        weights = ["*.safetensors"]
    elif not weights:
        form = TORCH if fnmatch.filter(names, TORCH) else OPEN_FLAMINGO
        weights, spare = [form], [one for one in SPARE if one != TORCH_INDEX]

    def fits(name: str, patterns: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    return [name for name in names if fits(name, TEXTS + weights) and not fits(name, spare)]


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
        text = f"{checkpoint}: its authors ask for consent; give it on its hub page and set HF_TOKEN"
        raise UnavailableError(text) from None
    except errors.RepositoryNotFoundError:
        raise UnavailableError(f"{checkpoint}: the hub has no such model, or HF_TOKEN may not see it") from None
    except errors.RevisionNotFoundError:
        raise UnavailableError(f"{checkpoint}: the hub has no revision {revision!r}") from None
    except Exception as error:  # what the client, httpx and hf_xet raise has no base in common
        cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ else error
        offline = (errors.OfflineModeIsEnabled, httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
        if isinstance(cause, offline):
            raise NoNetworkError(f"{checkpoint}: {constants.ENDPOINT} cannot be reached: {short_text(cause)}") from None
        text = f"{checkpoint} could not be downloaded: {short_text(cause)}; what is complete is kept, fetch it again"
        raise UnavailableError(text) from None


def readable(size: int) -> str:
    """A size in bytes as a person reads it: "1.6 GB", in powers of ten, as the hub's pages have it."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= one:
            return f"{size / one:.1f} {unit}"
    return f"{size} bytes"
