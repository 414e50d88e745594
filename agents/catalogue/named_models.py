"""Models as agents by their name: ``hf:ORG/NAME@REVISION``, ``hf:./folder``, ``vllm:…``, ``openai:MODEL``,
``ollama:…``, ``anthropic:…``, ``gemini:…``."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.contract import Entry
from agents.errors import InputError, UnavailableError
from agents.models import checkpoints, model_folders
from agents.stimuli import TASKS, Task

TEXT_MODEL = "agents.language.chat:LocalChatAgent"
PICTURE_MODEL = "agents.universal.universal:LocalUniversalAgent"
SERVER_MODEL = "agents.universal.universal:ServerUniversalAgent"
ANTHROPIC_MODEL = "agents.universal.universal:AnthropicUniversalAgent"
# Their names in the digests of runs, which stay as they are wherever the classes move (:class:`agents.contract.Entry`).
TEXT_MODEL_IDENTITY = "agents.language.chat:LocalChatAgent"
PICTURE_MODEL_IDENTITY = "agents.universal.universal:LocalUniversalAgent"
SERVER_MODEL_IDENTITY = "agents.universal.universal:ServerUniversalAgent"
ANTHROPIC_MODEL_IDENTITY = "agents.universal.universal:AnthropicUniversalAgent"
TALK: tuple[Task, ...] = ("conversation", "word_association")
HERE: Mapping[str, str] = {"hf": "transformers", "vllm": "vLLM"}
SERVERS: Mapping[str, Mapping[str, Any]] = {
    "openai": {"length_field": "max_completion_tokens"},  # max_tokens is refused by newer models
    "ollama": {"base_url": "http://127.0.0.1:11434/v1", "key_variable": ""},
    "anthropic": {},
    "gemini": {
        "base_url": "https://generativelanguage.googleapis.com/v1beta/openai",
        "key_variable": "GEMINI_API_KEY",
        "seed_bits": 0,  # which Google's server refuses, as the others
        "frequency_penalty": 0.0,
        "presence_penalty": 0.0,
    },
}


def is_model_name(name: str) -> bool:
    """Whether the name begins with an engine."""
    return ":" in name


def plain_name(typed: str) -> str:
    """The engine and the last part of the model's name, in small letters. Raises InputError."""
    engine, model, _ = _parts(typed)
    last = Path(model).expanduser().absolute().name if engine in HERE else model.rpartition("/")[2]
    return f"{engine}-{re.sub(r'[^a-z0-9._-]+', '-', last.lower()).strip('-')}"


def model_entry(typed: str) -> Entry:
    """By what is known of the model without the network. Raises InputError."""
    engine, model, revision = _parts(typed)
    named: dict[str, Any] = {"name": plain_name(typed), "typed": typed, "ran": False}
    if engine in SERVERS:
        return Entry(
            agent=ANTHROPIC_MODEL if engine == "anthropic" else SERVER_MODEL,
            identity=ANTHROPIC_MODEL_IDENTITY if engine == "anthropic" else SERVER_MODEL_IDENTITY,
            tasks=TASKS,
            summary=f"{model} on the server of {engine}, which knows whether it reads pictures",
            source="its provider",
            licence="see its provider",
            settings={"model": model, **SERVERS[engine]},
            **named,
        )
    try:
        folder = checkpoints.find(model, revision)
    except checkpoints.NotFetchedError:
        folder = None
    except UnavailableError as error:
        raise InputError(str(error)) from None
    reads_pictures = folder is None or model_folders.has_image_processor(folder)
    what = "a model of texts and pictures" if reads_pictures else "a model of texts"
    settings: dict[str, Any] = {"checkpoint": model}
    if revision:
        settings["revision"] = revision
    if engine == "vllm":
        settings["engine"] = "vllm"
    return Entry(
        agent=PICTURE_MODEL if reads_pictures else TEXT_MODEL,
        identity=PICTURE_MODEL_IDENTITY if reads_pictures else TEXT_MODEL_IDENTITY,
        tasks=TASKS if reads_pictures else TALK,
        summary=f"{what}, in {HERE[engine]}" if folder else "not fetched; until it is here, all tasks are presumed",
        source="its model card",
        licence=(folder and model_folders.licence(folder)) or "see its model card",
        settings=settings,
        **named,
    )


def _parts(typed: str) -> tuple[str, str, str | None]:
    """Engine, model and revision."""
    engine, _, model = typed.partition(":")
    if engine not in HERE and engine not in SERVERS:
        engines = ", ".join(f"{name}:" for name in [*HERE, *SERVERS])
        raise InputError(f"there is no engine {engine!r}; models are named by {engines}")
    if not model:
        raise InputError(f"{typed!r} names no model")
    checkpoint, at, revision = model.rpartition("@")
    if engine not in HERE or not at or _is_path(model):
        return engine, model, None
    if _is_path(checkpoint):
        raise InputError(f"{typed}: a folder has no revisions; leave out @{revision}")
    return engine, checkpoint, revision


def _is_path(text: str) -> bool:
    try:
        return checkpoints.local_path(text) is not None
    except UnavailableError:
        return False
