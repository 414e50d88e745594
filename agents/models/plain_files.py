"""What of a model's folder can be judged without transformers, whose import takes ten seconds of a processor.

A list of agents asks of every model that is here whether transformers reads its ``config.json``, whether its chat
template makes a prompt, and how much memory a stimulus takes. For the kinds of models in our catalogue, with values as
published models have them, the answers follow from the files. Nothing here ever says no: where a kind, a name or a
value is another, the caller asks transformers, which alone knows.

What is added here must be what transformers does: tests/agents/models/test_plain_files.py compares both.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

_NAMES = {
    heading: frozenset(names)
    for heading, names in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
"""Names in configurations, by what may stand there; the file says what the headings mean."""
WORDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("hidden_act", "activation_function", "projector_hidden_act"),
        frozenset(("gelu", "gelu_new", "quick_gelu", "relu", "silu")),
    ),
    **dict.fromkeys(("dtype", "torch_dtype"), frozenset(("float32", "float16", "bfloat16"))),
    "summary_type": frozenset(("cls_index",)),
    "vision_feature_select_strategy": frozenset(("default", "full")),
}
"""Texts of which only some mean something."""
PARTS = frozenset(("text_config", "vision_config", "qformer_config"))
"""Configurations within."""
HEADS = (("hidden_size", "num_attention_heads"), ("n_embd", "n_head"), ("d_model", "encoder_attention_heads"))
"""Sizes that are shared out among heads, so that the one is a multiple of the other."""
LLAMA3 = frozenset(("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"))
"""What Llama 3.1 and later say of rotary positions."""


def is_plain(config: Mapping[str, Any]) -> bool:
    """Whether transformers reads the content of a ``config.json`` for certain, by the kind and by every name and value
    in it. False: only transformers can tell."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in _NAMES["kinds"]:
        return False
    if kind == "blenderbot" and config.get("decoder_start_token_id", 0) is None:
        return False  # alone of these kinds it needs one
    for size, heads in HEADS:
        if (size in config) != (heads in config):  # the other has the default of its class
            return False
    return all(_fits(name, value) for name, value in config.items()) and all(
        config[size] % config[heads] == 0 for size, heads in HEADS if size in config
    )


def _fits(name: str, value: Any) -> bool:
    if value is None:
        return name in _NAMES["perhaps"] or name in _NAMES["unread"]
    if name == "eos_token_id" and isinstance(value, list):
        return all(type(number) is int for number in value)
    if name in _NAMES["counts"] or name in _NAMES["numbers"]:
        return type(value) is int and (value >= 1 or name in _NAMES["numbers"])
    if name in _NAMES["reals"]:
        return type(value) is float and 0 <= value <= 1
    if name in _NAMES["shares"]:
        return type(value) in (int, float)
    if name in _NAMES["switches"]:
        return type(value) is bool
    if name in WORDS:
        return isinstance(value, str) and value in WORDS[name]
    if name in _NAMES["unread"]:
        return isinstance(value, str | int | float)
    if name in PARTS:
        return isinstance(value, dict) and is_plain(value)
    return _fits_by_itself(name, value)


def _fits_by_itself(name: str, value: Any) -> bool:
    """What only one name may have."""
    match name:
        case "architectures":
            return isinstance(value, list) and all(isinstance(architecture, str) for architecture in value)
        case "output_attentions":
            return value is False
        case "logit_scale_init_value":
            return type(value) is float
        case "position_embedding_type":
            return isinstance(value, str) and value == "absolute"
        case "prefix" | "transformers_version":
            return isinstance(value, str)
        case "pruned_heads":
            return isinstance(value, dict) and not value
        case "task_specific_params":
            return isinstance(value, dict)
        case "image_grid_pinpoints":
            return isinstance(value, list) and all(
                isinstance(pair, list) and [type(side) for side in pair] == [int, int] for pair in value
            )
        case "id2label":
            return isinstance(value, dict) and all(
                number.isdecimal() and isinstance(label, str) for number, label in value.items()
            )
        case "label2id":
            return isinstance(value, dict) and all(type(number) is int for number in value.values())
        case "rope_scaling" | "rope_parameters":
            return isinstance(value, dict) and _fits_positions(value)
    return False


def _fits_positions(rope: Mapping[str, Any]) -> bool:
    """What is said of rotary positions, as by default or in Llama's way."""
    numbers = {name: number for name, number in rope.items() if name != "rope_type"}
    if any(type(number) not in (int, float) or number <= 0 for number in numbers.values()):
        return False
    if rope.get("rope_type") == "default":
        return numbers.keys() == {"rope_theta"}
    return (
        rope.get("rope_type") == "llama3"
        and numbers.keys() - {"rope_theta"} == LLAMA3
        and type(rope["original_max_position_embeddings"]) is int
        and rope["low_freq_factor"] < rope["high_freq_factor"]
    )


def text_model(config: Mapping[str, Any]) -> SimpleNamespace | None:
    """What :func:`agents.models.batch_memory.item_bytes` reads of a model of texts alone, with transformers' names,
    from the content of its ``config.json``. None where that does not say all of it: transformers knows the defaults."""
    if not is_plain(config):
        return None
    values: dict[str, Any]
    try:
        match config["model_type"]:
            case "llama" | "mistral" | "qwen2":
                names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
                more = ("num_key_value_heads", "max_position_embeddings", "vocab_size")
                values = {name: config[name] for name in (*names, *more)}
                values["head_dim"] = config.get("head_dim")
            case "gpt2":
                values = {
                    "hidden_size": config["n_embd"],
                    "num_hidden_layers": config["n_layer"],
                    "num_attention_heads": config["n_head"],
                    "max_position_embeddings": config["n_positions"],
                    "vocab_size": config["vocab_size"],
                }
            case _:
                return None
    except KeyError:
        return None
    if config.get("is_encoder_decoder"):
        return None
    text = SimpleNamespace(model_type=config["model_type"], is_encoder_decoder=False, **values)
    text.get_text_config = lambda decoder: text
    return text


def renders(template: str, chat: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> bool:
    """Whether a chat's template, in Jinja, makes a prompt of ``chat`` with these variables, in an environment like that
    of transformers. False: only transformers can tell, which knows more tags."""
    import jinja2
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, **{"ensure_ascii": False, **options})
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = datetime.now().strftime
    try:
        environment.from_string(template).render(
            messages=chat, tools=None, documents=None, add_generation_prompt=True, **values
        )
    except Exception:  # whatever the program in a template raises
        return False
    return True
