"""The published models that use words, without their weights: see :mod:`agents.random_weights`.

Numbers are those of each checkpoint's config.json, where they differ from the defaults of transformers' classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.made_tokenizer import Tokens
from agents.random_weights import Architecture

GPT2_TOKENS = Tokens(50257, {50256: "<|endoftext|>"}, bos="<|endoftext|>", eos="<|endoftext|>")
BLENDERBOT_TOKENS = Tokens(
    8008,
    {0: "<pad>", 1: "<s>", 2: "</s>", 3: "<unk>"},
    bos="<s>",
    eos="</s>",
    pad="<pad>",
    unk="<unk>",
    prefix_space=True,
)
LLAMA_TOKENS = Tokens(
    128_256,
    {
        128_000: "<|begin_of_text|>",
        128_001: "<|end_of_text|>",
        128_006: "<|start_header_id|>",
        128_007: "<|end_header_id|>",
        128_008: "<|eom_id|>",
        128_009: "<|eot_id|>",
    },
    bos="<|begin_of_text|>",
    eos="<|eot_id|>",
    begins=True,
    template=(
        "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
        "{{ message['content'] }}<|eot_id|>{% endfor %}"
        "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
    ),
    reserved=(128_000, 128_256),
)
QWEN_TOKENS = Tokens(
    151_665,
    {151_643: "<|endoftext|>", 151_644: "<|im_start|>", 151_645: "<|im_end|>"},
    eos="<|im_end|>",
    pad="<|endoftext|>",
    template=(
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    reserved=(151_643, 151_665),
)

GPT2_LARGE = Architecture(
    "gpt2", 774_030_080, {"n_embd": 1280, "n_layer": 36, "n_head": 20}, model="GPT2LMHeadModel", tokens=GPT2_TOKENS
)


def _llama(parameters: int, **sizes: Any) -> Architecture:
    fields = {
        "vocab_size": 128_256,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131_072,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 500_000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        "bos_token_id": 128_000,
        "eos_token_id": [128_001, 128_008, 128_009],
        **sizes,
    }
    return Architecture("llama", parameters, fields, model="LlamaForCausalLM", tokens=LLAMA_TOKENS)


ARCHITECTURES: Mapping[str, Architecture] = {
    "openai-community/gpt2": Architecture("gpt2", 124_439_808, model="GPT2LMHeadModel", tokens=GPT2_TOKENS),
    "openai-community/gpt2-large": GPT2_LARGE,
    "microsoft/DialoGPT-large": GPT2_LARGE,
    "facebook/blenderbot-400M-distill": Architecture(
        "blenderbot",
        364_802_560,
        {
            "d_model": 1280,
            "encoder_ffn_dim": 5120,
            "decoder_ffn_dim": 5120,
            "decoder_layers": 12,
            "scale_embedding": True,
        },
        model="BlenderbotForConditionalGeneration",
        tokens=BLENDERBOT_TOKENS,
    ),
    "facebook/blenderbot-3B": Architecture(
        "blenderbot",
        2_696_268_800,
        {"scale_embedding": True},
        model="BlenderbotForConditionalGeneration",
        tokens=BLENDERBOT_TOKENS,
    ),
    "meta-llama/Llama-3.1-8B-Instruct": _llama(8_030_261_248, intermediate_size=14336),
    "meta-llama/Llama-3.3-70B-Instruct": _llama(
        70_553_706_496, hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64
    ),
    "Qwen/Qwen2.5-7B-Instruct": Architecture(
        "qwen2",
        7_615_616_512,
        {
            "vocab_size": 152_064,
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
            "bos_token_id": 151_643,
            "eos_token_id": [151_645, 151_643],
        },
        model="Qwen2ForCausalLM",
        tokens=QWEN_TOKENS,
    ),
}
