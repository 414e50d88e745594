"""A model's folder with files that other tools have spoilt: each is a sentence, or the model is loaded all the same."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.errors import InputError, UnavailableError
from tests.helpers import tiny_language

DEEP = b'{"model_type": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
GONE = object()
NO_OBJECTS = [b"", b"{", b"null", b"[]", b'"x"', b"1", b"\xff\xfe", DEEP]
IN_CONFIG: list[tuple[str, Any, str]] = [
    ("hidden_size", "many", "hidden_size"),
    ("hidden_size", None, "hidden_size"),
    ("hidden_size", [64], "hidden_size"),
    ("num_hidden_layers", {"a": 1}, "num_hidden_layers"),
    ("max_position_embeddings", 2048.0, "write 2048 instead of 2048.0"),
    ("vocab_size", 1.5, "vocab_size"),
    ("rms_norm_eps", "small", "rms_norm_eps"),
    ("model_type", None, "without a model_type"),
    ("model_type", ["llama"], "model_type"),
    ("model_type", GONE, "without a model_type"),
    ("num_attention_heads", 0, ""),
    ("num_attention_heads", -1, ""),
    ("quantization_config", "4 bits", "config.json"),
    ("quantization_config", {"quant_method": 7}, ""),
    ("rope_parameters", [[[]]], ""),
    ("eos_token_id", "x", ""),
]
IN_OTHERS: list[tuple[str, str, Any]] = [
    ("generation_config.json", "eos_token_id", {"a": 1}),
    ("generation_config.json", "temperature", "warm"),
    ("generation_config.json", "max_length", 2.0**70),
    ("tokenizer_config.json", "eos_token", 5),
    ("tokenizer_config.json", "model_max_length", "long"),
    ("tokenizer_config.json", "chat_template", [1, 2]),
    ("tokenizer_config.json", "chat_template", {"a": None}),
    ("tokenizer_config.json", "tokenizer_class", ["x"]),
    ("tokenizer.json", "model", None),
    ("tokenizer.json", "added_tokens", [[1]]),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_language.llama(tmp_path_factory.mktemp("whole") / "model")


def _opened(folder: Path) -> str:
    """What is said of the folder as it is looked at and loaded, "" where it loads."""
    try:
        agent = catalogue.get(f"hf:{folder}").make()
        if (missing := agent.missing()) is not None:
            return missing
        agent.device_bytes(1)
        agent.open()
        agent.load("cpu")
        agent.close()
    except (InputError, UnavailableError) as error:
        return str(error)
    return ""


def _spoilt(whole: Path, folder: Path, name: str, key: str, value: Any) -> Path:
    shutil.copytree(whole, folder)
    content = json.loads((folder / name).read_text())
    content[key] = value
    if value is GONE:
        del content[key]
    (folder / name).write_text(json.dumps(content))
    return folder


def test_the_whole_folder_loads(whole: Path) -> None:
    assert _opened(whole) == ""


@pytest.mark.parametrize(("key", "value", "why"), IN_CONFIG)
def test_a_value_that_no_configuration_has(key: str, value: Any, why: str, whole: Path, tmp_path: Path) -> None:
    said = _opened(_spoilt(whole, tmp_path / "model", "config.json", key, value))
    assert why in said
    assert "\n" not in said
    assert not why or said


@pytest.mark.parametrize(("name", "key", "value"), IN_OTHERS)
def test_a_value_in_another_file(name: str, key: str, value: Any, whole: Path, tmp_path: Path) -> None:
    assert "\n" not in _opened(_spoilt(whole, tmp_path / "model", name, key, value))


@pytest.mark.parametrize("content", NO_OBJECTS, ids=lambda content: repr(content[:12]))
@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json"])
def test_a_file_that_is_no_object(name: str, content: bytes, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(whole, folder)
    (folder / name).write_bytes(content)
    said = _opened(folder)
    assert "\n" not in said
    if name == "config.json":
        assert "config.json" in said
