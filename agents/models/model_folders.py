"""Folders of models: the files that they must have, what their configurations say, and what is wrong with them."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.errors import short_text
from agents.models import plain_files
from agents.models.weight_files import WEIGHT_SUFFIXES, some

# What a folder must have, each as alternatives in the order of transformers; an index stands for the shards it lists.
WEIGHTS = "model.safetensors|model.safetensors.index.json|pytorch_model.bin|pytorch_model.bin.index.json"

PROCESSOR = "preprocessor_config.json|processor_config.json"

TOKENIZER = "tokenizer.json|vocab.json|vocab.txt|tokenizer.model"

# transformers makes a tokenizer of such a file, but of some models a wrong one, without a word (Gemma 3 in 5.17).
GGUF = ".gguf"

NO_GGUF = (
    "is not read, nor what transformers makes of it: take the model's safetensors, or let llama.cpp's server read it"
)

# What is downloaded of a repository's top folder: the texts, and the weights without repetitions.
TEXT_PATTERNS = ["*.json", "*.txt", "*.model", "*.jinja"]

TORCH_INDEX = "pytorch_model.bin.index.json"

SPARE = [
    "*/*",
    TORCH_INDEX,
    "consolidated*",
    "adapter_model*",
    *(f"*.{form}[.-]*" for form in ("fp16", "bf16", "fp32", "int8")),
]

POINTER = b"version https://git-lfs"  # how a file begins that Git LFS has not brought


def problem(path: Path, needs: Sequence[str], model_types: Sequence[str] | None = ()) -> str | None:
    """What is wrong with a model's folder, as the end of a sentence that begins with its path, or None.

    ``needs`` are names of files, of which "a|b" asks for either. ``model_types`` are those that ``config.json`` may
    name: () allows any and no such file, None any that transformers has a class for. Nothing of the folder is executed.
    """
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
                    return f"lacks {some(absent)}, which {first} lists"
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
    if plain_files.is_plain(config):
        return None
    from transformers import __version__
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    if kind in CONFIG_MAPPING_NAMES:
        return _config_problem(config)
    if model_types:
        return None
    if "auto_map" in config:
        return f"needs code of its repository for a model of type {kind!r}, and such code is never executed"
    return f"holds a model of type {kind!r}, which transformers {__version__} does not know; a newer release may"


def lacking(needs: Sequence[str], files: Collection[str]) -> list[str]:
    """Which of ``needs`` no file meets, as "a or b" for a need "a|b"."""
    return [" or ".join(names.split("|")) for names in needs if not any(name in files for name in names.split("|"))]


def _unread(files: Collection[str]) -> str:
    """What to do about files of weights of another form."""
    if converted := sorted(name for name in files if name.lower().endswith(GGUF)):
        return f"; {some(converted)} {NO_GGUF} (docs/servers.md)"
    others = sorted(name for name in files if name.endswith(WEIGHT_SUFFIXES))
    return f"; {some(others)} is not read: save the model as safetensors, by save_pretrained" if others else ""


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


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; {} where there is none or it is damaged, which :func:`problem` reports."""
    try:
        return _json(path)
    except (OSError, ValueError):
        return {}


def _json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises ValueError where it holds none, and OSError."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} ({short_text(error)})") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} (not an object)")
    return content


def has_image_processor(folder: Path) -> bool:
    """Whether a configuration in the folder prepares pictures, so that the model sees."""
    images = read_object(folder / "preprocessor_config.json")
    return not images.keys().isdisjoint(("image_processor_type", "image_mean")) or bool(
        read_object(folder / "processor_config.json").get("image_processor")
    )


def licence(path: Path) -> str | None:
    """The licence that the model card in a folder names, or None."""
    from huggingface_hub import metadata_load

    try:
        return licence_of(metadata_load(path / "README.md") or {})
    except (OSError, ValueError):  # no card, or it is damaged
        return None


def licence_of(card: Mapping[str, Any]) -> str | None:
    """The licence in the metadata of a model card; its own name where the card says "other"."""
    name = card.get("license")
    if name == "other":
        name = card.get("license_name") or name
    return ", ".join(map(str, name)) if isinstance(name, list) else name


def model_files(path: Path) -> list[Path]:
    """The files of a model that an agent may read, sorted: weights in one form and texts, without hidden files and
    without those about the model. Their hashes are the identity of a local checkpoint, so a change here makes every run
    with a local model another's."""
    if path.is_file():
        return [path]

    def is_read(file: Path) -> bool:
        is_hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
        is_model = file.suffix in WEIGHT_SUFFIXES or any(
            fnmatch.fnmatchcase(file.name, pattern) for pattern in TEXT_PATTERNS
        )
        is_about = file.name.startswith(("README", "LICENSE", "NOTICE"))
        return is_model and not is_about and not is_hidden and file.is_file()

    files = [file for file in sorted(path.rglob("*")) if is_read(file)]
    if any((path / name).exists() for name in ("model.safetensors", "model.safetensors.index.json")):
        files = [file for file in files if not fnmatch.fnmatchcase(file.name, "*pytorch_model*.bin")]
    return files


def size(path: Path) -> int:
    """Bytes of :func:`model_files`. Raises OSError."""
    return sum(file.stat().st_size for file in model_files(path))
