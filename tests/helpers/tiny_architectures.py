"""Tiny checkpoints of the architectures of transformers, with random weights, real processors and a plain template."""

import inspect
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES
from transformers.models.auto.video_processing_auto import VIDEO_PROCESSOR_MAPPING_NAMES

from tests.helpers import tiny_language

SPECIAL = ("<pad>", "<s>", "<|start|>", "<|end|>", "<|eot|>")
TEMPLATE = (
    "<s>{% for message in messages %}<|start|>{{ message['role'] }}<|end|>{% if message['content'] is string %}"
    "{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{{ 'IMAGE' if part['type'] == 'image' else part['text'] }}{% endfor %}{% endif %}<|eot|>"
    "{% endfor %}<|start|>assistant<|end|>"
)
# The marks of pictures by the names at which processors look for them, and others that they take for granted.
MARKS = {
    "image_token": "<image>",
    "boi_token": "<boi>",
    "eoi_token": "<eoi>",
    "video_token": "<video>",
    "start_image_token": "<img>",
    "end_image_token": "</img>",
    "context_image_token": "<image>",
    "image_boundary_token": "<fake>",
    "image_break_token": "<line>",
    "image_start_token": "<is>",
    "image_end_token": "<ie>",
    "img_line_break_token": "<line>",
}
OTHERS = (
    "<fake_token_around_image>",
    "<end_of_utterance>",
    "<global-img>",
    "<|image|>",
    "<|image_start|>",
    "<|image_end|>",
    "<|patch|>",
    "<|tile_x_separator|>",
    "<|tile_y_separator|>",
    "[IMG]",
    "[IMG_BREAK]",
    "[IMG_END]",
    "<|python_tag|>",
    "<|START_OF_IMG|>",
    "<|END_OF_IMG|>",
    "<|IMG_PATCH|>",
    "<|IMG_LINE_BREAK|>",
    "TILE",
    "TILE_GLOBAL",
)
PATCHES = {
    "llama4": "<|patch|>",
    "mistral3": "[IMG]",
    "aya_vision": "<|IMG_PATCH|>",
    "ovis2": "<IMG_ATOM>",
}  # marks of another name
# What makes a configuration small, in whichever part it is.
SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "embed_dim": 32,
    "intermediate_size": 64,
    "moe_intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "head_dim": 8,
    "depth": 2,
    "num_heads": 4,
    "attention_heads": 4,
    "out_hidden_size": 32,
    "image_size": 28,
    "patch_size": 14,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_chunk_size": 16}
TEXT: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {},
    "qwen2": {},
    "qwen3": {},
    "gemma2": {},
    "gemma3_text": {},
    "qwen3_moe": {},
    "llama4_text": {"attention_chunk_size": 16, "num_hidden_layers": 4},
    "gpt_oss": {"sliding_window": 16},
    "smollm3": {"num_hidden_layers": 4},
    "granite": {},
    "glm4": {},
    "olmo2": {},
    "phi3": {},
    "mixtral": {},
    "cohere2": {"sliding_window": 16, "num_hidden_layers": 4},
    "falcon_h1": {**MAMBA, "mamba_d_ssm": 64},
    "bamba": {**MAMBA, "attn_layer_indices": [1]},
    "mamba2": {"num_heads": 8, "state_size": 8, "n_groups": 1, "chunk_size": 16},
    "lfm2": {"block_multiple_of": 8, "layer_types": ["conv", "full_attention"]},
    "qwen3_next": {
        "num_hidden_layers": 4,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "shared_expert_intermediate_size": 32,
    },
    "deepseek_v3": {
        "num_key_value_heads": 4,
        "n_routed_experts": 4,
        "n_group": 2,
        "topk_group": 1,
        "kv_lora_rank": 8,
        "q_lora_rank": 8,
        "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 4,
        "v_head_dim": 8,
        "head_dim": 4,
        "first_k_dense_replace": 1,
    },
    "granitemoehybrid": {**MAMBA, "shared_intermediate_size": 32, "layer_types": ["mamba", "attention"]},
    "recurrent_gemma": {"lru_width": 32, "num_hidden_layers": 3, "attention_window_size": 16},
    "mamba": {"state_size": 4},
    "falcon_mamba": {"state_size": 4},
    "jamba": {"mamba_d_state": 4, "attn_layer_period": 2, "attn_layer_offset": 1},
    "exaone4": {"sliding_window": 16, "num_hidden_layers": 4},
    "seed_oss": {},
}
# What all texts begin with is read once where layers are of attention alone.
STATES = (
    "falcon_h1",
    "bamba",
    "mamba2",
    "lfm2",
    "qwen3_next",
    "granitemoehybrid",
    "recurrent_gemma",
    "mamba",
    "falcon_mamba",
    "jamba",
)
SQUARE = {"size": {"height": 28, "width": 28}}
CROPPED = {"size": {"shortest_edge": 28}, "crop_size": {"height": 28, "width": 28}}
CLIP = {"patch_size": 14, "num_additional_image_tokens": 1, "vision_feature_select_strategy": "default"}
EDGES = {"size": {"longest_edge": 56}, "max_image_size": {"longest_edge": 28}}
MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}}
# As real checkpoints say it: vLLM looks here, transformers knows it by the type.
INTERLEAVED = {"rope_parameters": {**MROPE["rope_parameters"], "mrope_interleaved": True}}
TILES = {"image_grid_pinpoints": [[28, 56], [56, 28]]}
CROPS = {**SQUARE, "crop_to_patches": True, "max_patches": 3}
QWEN = {"min_pixels": 196, "max_pixels": 1568, "patch_size": 7}
GRID = {"patch_size": 7, "num_position_embeddings": 16}
LINEAR = {
    "num_hidden_layers": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
# The changes of a configuration, the arguments of its processor and of its image processor.
PICTURES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "qwen2_vl": ({"text_config": MROPE, "vision_config": {"patch_size": 7}}, {}, QWEN),
    "qwen2_5_vl": (
        {"text_config": MROPE, "vision_config": {"patch_size": 7, "window_size": 28, "fullatt_block_indexes": [1]}},
        {},
        QWEN,
    ),
    "qwen3_vl": ({"text_config": INTERLEAVED, "vision_config": {**GRID, "deepstack_visual_indexes": [0]}}, {}, QWEN),
    "qwen3_5": ({"text_config": {**INTERLEAVED, **LINEAR}, "vision_config": GRID}, {}, QWEN),
    "gemma3": ({"mm_tokens_per_image": 4, "boi_token_index": 6, "eoi_token_index": 7}, {"image_seq_length": 4}, SQUARE),
    "llava": ({}, CLIP, CROPPED),
    "vipllava": ({"vision_feature_layers": [-1, -2]}, CLIP, CROPPED),
    "llava_next": (TILES, CLIP, {**CROPPED, **TILES}),
    "llava_onevision": (TILES, {"num_image_tokens": 4, "vision_feature_select_strategy": "full"}, {**SQUARE, **TILES}),
    "internvl": (
        {"vision_config": {"image_size": [28, 28], "patch_size": [7, 7]}, "image_seq_length": 4},
        {"image_seq_length": 4},
        CROPS,
    ),
    "idefics2": (
        {
            "perceiver_config": {
                "resampler_n_latents": 4,
                "resampler_depth": 1,
                "resampler_n_heads": 2,
                "resampler_head_dim": 8,
            }
        },
        {"image_seq_len": 4},
        {"size": {"shortest_edge": 28, "longest_edge": 56}},
    ),
    "idefics3": ({}, {"image_seq_len": 1}, EDGES),
    "mistral3": ({}, {"patch_size": 14, "spatial_merge_size": 2}, {"size": {"longest_edge": 56}, "patch_size": 14}),
    "lighton_ocr": ({}, {"patch_size": 14, "spatial_merge_size": 2}, {"size": {"longest_edge": 56}, "patch_size": 14}),
    "mllama": (
        {
            "text_config": {"cross_attention_layers": [1]},
            "vision_config": {"num_global_layers": 1, "intermediate_layers_indices": [1], "vision_output_dim": 64},
        },
        {},
        {**SQUARE, "max_image_tiles": 4},
    ),
    "paligemma": (
        {"projection_dim": 32, "vision_config": {"projection_dim": 32}},
        {},
        {**SQUARE, "image_seq_length": 4},
    ),
    "aya_vision": ({"downsample_factor": 2}, {"patch_size": 14, "img_size": 28, "downsample_factor": 2}, CROPS),
    "cohere2_vision": (
        {"text_config": {"sliding_window": 16}, "alignment_intermediate_size": 64},
        {},
        {**CROPS, "patch_size": 1, "downsample_factor": 2},
    ),
    "ovis2": (
        {
            "hidden_size": 32,
            "visual_indicator_token_ids": [6, 7, 8, 9, 10],
            "vision_config": {"vocab_size": 32, "hidden_stride": 1},
        },
        {"image_seq_length": 4},
        {**CROPS, "use_covering_area_grid": True},
    ),
    "glm4v": (
        {"text_config": MROPE, "vision_config": {"patch_size": 7}},
        {},
        {"size": {"shortest_edge": 196, "longest_edge": 3136}, "patch_size": 7},
    ),
    "llama4": (
        {
            "vision_config": {
                "intermediate_size": 128,
                "projector_input_dim": 32,
                "projector_output_dim": 32,
                "vision_output_dim": 32,
            }
        },
        {"patch_size": 14},
        SQUARE,
    ),
    "janus": (
        {
            "vision_config": {"projection_dim": 32},
            "vq_config": {
                "embed_dim": 8,
                "num_embeddings": 16,
                "latent_channels": 32,
                "base_channels": 32,
                "channel_multiplier": [1, 1],
                "num_res_blocks": 1,
                "num_patches": 2,
                "projection_dim": 32,
                "image_token_embed_dim": 32,
            },
        },
        {"num_image_tokens": 4},
        SQUARE,
    ),
    "granite4_vision": (
        {
            **TILES,
            "text_config": {"model_type": "granite4_vision_text"},
            "downsample_rate": "1/2",
            "deepstack_layer_map": [[-1, 0]],
            "spatial_target_layers": [1, 1, 1, 1],
            "vision_config": {"patch_size": 7},
            "vision_feature_select_strategy": "full",
            "qformer_config": {"encoder_hidden_size": 32},
        },
        {"patch_size": 7, "downsample_rate": "1/2", "vision_feature_select_strategy": "full"},
        {**SQUARE, **CROPPED, **TILES},
    ),
    "lfm2_vl": (
        {
            "vision_config": {"patch_size": 16, "num_patches": 16},
            "projector_hidden_size": 32,
            "text_config": {"layer_types": ["conv", "full_attention"], "block_multiple_of": 8},
        },
        {},
        {"do_image_splitting": False, "min_image_tokens": 2, "max_image_tokens": 16, "max_num_patches": 64},
    ),
}


def text(kind: str, folder: Path) -> Path:
    """A model of the type ``kind`` that reads text."""
    tokenizer = tiny_language.byte_tokenizer(folder, *SPECIAL, bos="<s>", eos="<|eot|>", pad="<pad>", template=TEMPLATE)
    config = transformers.AutoConfig.for_model(kind)
    config = type(config)(**_small(config, len(tokenizer), deepcopy(TEXT[kind])))
    return _save(transformers.AutoModelForCausalLM, config, folder)


def pictured(kind: str, folder: Path) -> Path:
    """The same for pictures with text."""
    changes, options, images = deepcopy(PICTURES[kind])  # configurations write into what they get
    special = dict.fromkeys((*SPECIAL, *MARKS.values(), *OTHERS, PATCHES.get(kind, "<image>")))
    plain = tiny_language.byte_tokenizer(folder, *special, bos="<s>", eos="<|eot|>", pad="<pad>")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain.backend_tokenizer,
        bos_token="<s>",
        eos_token="<|eot|>",
        pad_token="<pad>",
        extra_special_tokens=MARKS,
    )
    cls = getattr(transformers, PROCESSOR_MAPPING_NAMES[kind])
    parts = {"image_processor": getattr(transformers, IMAGE_PROCESSOR_MAPPING_NAMES[kind]["torchvision"])(**images)}
    if "video_processor" in inspect.signature(cls.__init__).parameters:
        parts["video_processor"] = getattr(transformers, VIDEO_PROCESSOR_MAPPING_NAMES[kind])()
    processor = cls(tokenizer=tokenizer, **parts, **options)
    processor.chat_template = TEMPLATE.replace("IMAGE", getattr(processor, "image_token", "<image>"))
    processor.save_pretrained(folder)
    config = transformers.AutoConfig.for_model(kind)
    name = "image_token_id" if "image_token_id" in config.to_dict() else "image_token_index"
    changes = {name: tokenizer.convert_tokens_to_ids(PATCHES.get(kind, "<image>")), **changes}
    config = type(config)(**_small(config, len(processor.tokenizer), changes))
    return _save(transformers.AutoModelForImageTextToText, config, folder)


def _small(config: Any, vocabulary: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Arguments of such a configuration, with those of its parts."""
    values = config.to_dict()
    chosen = {name: value for name, value in SMALL.items() if name in values}
    chosen |= {"vocab_size": vocabulary} if "vocab_size" in values else {}
    chosen |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 4}
    for name in config.sub_configs:
        if (part := getattr(config, name)) is not None:
            chosen[name] = {"model_type": part.model_type, **_small(part, vocabulary, changes.get(name, {}))}
    return {**chosen, **{name: value for name, value in changes.items() if name not in config.sub_configs}}


def _save(cls: Any, config: Any, folder: Path) -> Path:
    """With weights large enough for texts to differ."""
    torch.manual_seed(0)
    model = cls.from_config(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1 and "conv" not in name:
                weight.normal_(0, 1.2 / weight.shape[-1] ** 0.5)
    model.eval().save_pretrained(folder)
    return folder
