"""The published models that look at images, without their weights: see :mod:`agents.random_weights`.

Numbers are those of each checkpoint's config.json, where they differ from the defaults of transformers' classes, most
of which are the smallest published model's. The two files of ClipCap and OFA's fine-tuned one are on no hub: theirs are
the sizes of the papers and of the authors' programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.language.architectures import GPT2_TOKENS
from agents.made_tokenizer import Tokens
from agents.random_weights import Architecture

BERT = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
BERT_TOKENS = Tokens(30522, BERT, pad="[PAD]", unk="[UNK]")
BLIP_TOKENS = Tokens(30524, {**BERT, 30522: "[DEC]", 30523: "[ENC]"}, bos="[DEC]", pad="[PAD]", unk="[UNK]")
# Its end of a caption is the token of a new line.
OPT_TOKENS = Tokens(
    50266,
    {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>", 50265: "<image>"},
    bos="</s>",
    eos="</s>",
    pad="<pad>",
    pieces={50118: "Ċ"},
)
MISTRAL_TOKENS = Tokens(
    32002,
    {0: "<unk>", 1: "<s>", 2: "</s>", 32000: "<image>", 32001: "<pad>"},
    bos="<s>",
    eos="</s>",
    pad="<pad>",
    unk="<unk>",
    begins=True,
)
# BART's; OFA's own tokens are put behind them where the dictionary is read.
OFA_TOKENS = Tokens(50265, {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>", 50264: "<mask>"})

VIT_LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}


def _ofa(parameters: int, width: int, heads: int, layers: tuple[int, int], resnet: str) -> Architecture:
    fields = {
        "d_model": width,
        "encoder_layers": layers[0],
        "decoder_layers": layers[1],
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": 4 * width,
        "decoder_ffn_dim": 4 * width,
        "resnet_type": resnet,
    }
    config = "agents.vision.models.ofa_layers:OFAConfig"
    return Architecture("ofa", parameters, fields, config, tokens=OFA_TOKENS, bare_tokens=True)


def _blip(parameters: int, vision: Mapping[str, Any], width: int) -> Architecture:
    text = {"encoder_hidden_size": width, "num_attention_heads": 12}
    fields = {"vision_config": vision, "text_config": text}
    return Architecture("blip", parameters, fields, tokens=BLIP_TOKENS, images=("BlipImageProcessor", {}))


OFA_HUGE = _ofa(925_899_264, 1280, 16, (24, 12), "resnet152")

ARCHITECTURES: Mapping[str, Architecture] = {
    "microsoft/git-base-coco": Architecture("git", 176_619_066, tokens=BERT_TOKENS, images=("CLIPImageProcessor", {})),
    "microsoft/git-large-coco": Architecture(
        "git",
        394_196_026,
        {"vision_config": {**VIT_LARGE, "patch_size": 14}},
        tokens=BERT_TOKENS,
        images=("CLIPImageProcessor", {}),
    ),
    "Salesforce/blip-image-captioning-base": _blip(223_971_644, {}, 768),
    "Salesforce/blip-image-captioning-large": _blip(446_290_492, VIT_LARGE, 1024),
    "Salesforce/blip2-opt-2.7b": Architecture(
        "blip-2",
        3_744_761_856,
        {
            "text_config": {
                "model_type": "opt",
                "vocab_size": 50304,
                "hidden_size": 2560,
                "word_embed_proj_dim": 2560,
                "ffn_dim": 10240,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
            },
            "image_token_index": 50265,
        },
        tokens=OPT_TOKENS,
        images=("BlipImageProcessor", {"size": {"height": 224, "width": 224}}),
        generation={"bos_token_id": 2, "eos_token_id": 50118, "pad_token_id": 1},
    ),
    "llava-hf/llava-v1.6-mistral-7b-hf": Architecture(
        "llava_next",
        7_566_747_648,
        {
            "vision_config": {
                "model_type": "clip_vision_model",
                **VIT_LARGE,
                "image_size": 336,
                "patch_size": 14,
                "projection_dim": 768,
            },
            "text_config": {
                "model_type": "mistral",
                "vocab_size": 32064,
                "max_position_embeddings": 32768,
                "rms_norm_eps": 1e-5,
                "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
                "sliding_window": None,
            },
        },
        tokens=MISTRAL_TOKENS,
        images=(
            "LlavaNextImageProcessor",
            {"size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336}},
        ),
        files={
            "processor_config.json": {
                "processor_class": "LlavaNextProcessor",
                "patch_size": 14,
                "vision_feature_select_strategy": "default",
                "num_additional_image_tokens": 1,
                "image_token": "<image>",
            }
        },
    ),
    "OFA-Sys/ofa-tiny": _ofa(32_925_200, 256, 4, (4, 4), "resnet50"),
    "OFA-Sys/ofa-medium": _ofa(91_765_728, 512, 8, (4, 4), "resnet101"),
    "OFA-Sys/ofa-base": _ofa(180_383_720, 768, 12, (6, 6), "resnet101"),
    "OFA-Sys/ofa-large": _ofa(469_842_432, 1024, 16, (12, 12), "resnet152"),
    "OFA-Sys/ofa-huge": OFA_HUGE,
    "caption_huge_best.pt": OFA_HUGE,
    # Of ClipCap these are GPT-2's configuration and tokenizer; tower and mapper are agents.vision.models.clipcap's.
    "transformer_weights.pt": Architecture(
        "clipcap", 269_097_016, config="transformers:GPT2Config", tokens=GPT2_TOKENS
    ),
    "coco_weights.pt": Architecture("clipcap", 243_757_824, config="transformers:GPT2Config", tokens=GPT2_TOKENS),
    "facebook/detr-resnet-50": Architecture(
        "detr",
        41_524_768,
        {"num_labels": 91, "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]}},
        images=("DetrImageProcessor", {}),
    ),
}
