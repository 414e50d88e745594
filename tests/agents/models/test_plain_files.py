"""What is judged without transformers, beside what transformers makes of it."""

import copy
import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.utils.chat_template_utils import render_jinja_template

from agents.models import plain_files, random_weights
from agents.models.batch_memory import item_bytes
from tests.helpers import chat_templates, tiny_captioners, tiny_embeddings, tiny_language

TINY: dict[str, Callable[[Path], Path]] = {
    "bert": tiny_embeddings.sentence_bert,
    "blenderbot": tiny_language.blenderbot,
    "blip": tiny_captioners.blip,
    "blip-2": tiny_captioners.blip2,
    "git": tiny_captioners.git,
    "gpt2": tiny_language.gpt2,
    "llama": tiny_language.llama,
    "llava_next": tiny_captioners.llava_next,
}
# Files of published models, as older versions of transformers have written them.
OLD: dict[str, dict[str, Any]] = {
    "bert": {"gradient_checkpointing": False, "position_embedding_type": "absolute", "torch_dtype": "float32"},
    "blenderbot": {"classif_dropout": 0.0, "do_blenderbot_90_layernorm": True, "layernorm_variant": "prelayernorm"},
    "gpt2": {"n_ctx": 1024, "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}},
    "llama": {
        "rope_parameters": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        "eos_token_id": [1, 2],
    },
    "git": {"pruned_heads": {}, "suppress_tokens": None, "top_k": 50, "num_image_with_embedding": None},
}
VALUES: list[Any] = [None, -1, 0, 1, 1.5, "gelu", True, [], ["a"], {}, {"1": "a"}]
QWEN = {
    "model_type": "qwen2",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "vocab_size": 300,
    "rope_theta": 1000000.0,
    "sliding_window": 512,
    "use_sliding_window": False,
    "max_window_layers": 2,
}


def _config(kind: str, folder: Path) -> dict[str, Any]:
    if kind == "qwen2":
        return copy.deepcopy(QWEN)
    config: dict[str, Any] = json.loads((TINY[kind](folder) / "config.json").read_text())
    return config


def _parts(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield config
    for name in plain_files.PARTS & config.keys():
        yield config[name]


def _is_read(config: dict[str, Any]) -> bool:
    try:
        CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
    except Exception:  # as many types as there are faults
        return False
    return True


@pytest.mark.parametrize("kind", [*TINY, "qwen2"])
def test_usual_configurations_are_plain(kind: str, tmp_path: Path) -> None:
    config = _config(kind, tmp_path)
    assert plain_files.is_plain(config)
    config |= OLD.get(kind, {})
    assert plain_files.is_plain(config)
    assert _is_read(config)


@pytest.mark.parametrize("kind", [*TINY, "qwen2"])
def test_what_is_plain_is_read_by_transformers(kind: str, tmp_path: Path) -> None:
    config = _config(kind, tmp_path) | OLD.get(kind, {})
    refused = 0
    for part in _parts(config):
        fields = {field.name for field in dataclasses.fields(CONFIG_MAPPING[part["model_type"]])}
        for name in {*part, *fields, "head_dim", "rope_scaling", "rope_theta", "torch_dtype"}:
            before = dict(part)
            for value in VALUES:
                part[name] = copy.deepcopy(value)
                if plain_files.is_plain(config):
                    assert _is_read(config), (part["model_type"], name, value)
                else:
                    refused += 1
            part.clear()
            part.update(before)
    assert refused > 100


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("gpt_neox", {"model_type": "gpt_neox"}),
        ("llama", {"num_attention_heads": 3}),
        ("llama", {"quantization_config": {"quant_method": "gptq"}}),
        ("llama", {"auto_map": {"AutoConfig": "code.Config"}}),
        ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}),
        ("llama", {"vocab_size": 300.0}),
    ],
)
def test_the_rest_is_left_to_transformers(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    assert not plain_files.is_plain(tiny_config := _config("llama", tmp_path) | changes), (kind, tiny_config)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen2"])
def test_memory_is_reckoned_as_from_transformers_configuration(kind: str, tmp_path: Path) -> None:
    config = _config(kind, tmp_path)
    text: Any = plain_files.text_model(config)
    known = AutoConfig.for_model(**copy.deepcopy(config))
    assert text.max_position_embeddings == known.max_position_embeddings
    for sizes in ((100, 20, 1, 4), (7, 300, 5, 2)):
        assert item_bytes(text, *sizes) == item_bytes(known, *sizes)


def test_memory_of_published_architectures() -> None:
    compared = 0
    for name, made in random_weights.architectures().items():
        stored = {"torch_dtype": "float16", **made.files["config.json"]}
        text: Any = plain_files.text_model(stored)
        if text is not None:
            known = AutoConfig.for_model(**copy.deepcopy(stored))
            assert item_bytes(text, 256, 128, 1, 4) == item_bytes(known, 256, 128, 1, 4), name
            compared += 1
    assert compared >= 2


@pytest.mark.parametrize("name", [name for name in vars(chat_templates) if name.isupper() and name[0] != "_"])
def test_a_template_that_renders_also_renders_in_transformers(name: str) -> None:
    template = getattr(chat_templates, name)
    if not isinstance(template, str):
        pytest.skip("no template")
    chat = [{"role": "user", "content": "Hi"}]
    given = {"bos_token": "<s>", "date_string": "26 Jul 2024", "enable_thinking": False}
    try:
        render_jinja_template([chat], chat_template=template, add_generation_prompt=True, **given)
    except Exception:  # whatever the program in a template raises
        assert not plain_files.renders(template, chat, given)
    else:
        assert plain_files.renders(template, chat, given)


def test_a_tag_of_transformers_is_left_to_it() -> None:
    template = "{% generation %}{{ messages[0]['content'] }}{% endgeneration %}"
    assert not plain_files.renders(template, [{"role": "user", "content": "Hi"}], {})
