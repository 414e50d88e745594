"""Tiny captioners of the real architectures with random weights, saved as their published checkpoints are."""

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.helpers import tiny_language

TEXT = """
a the man woman dog cat cats two three sits stands on in of with and red blue green street table plate food
water picture photo image there is are looking at holding people large small white black next to
"""
WORDS = TEXT.split()
LAYERS = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
PATCHES = {"image_size": 48, "patch_size": 16}
LETTERS = [*string.ascii_lowercase, *string.digits, *(f"##{letter}" for letter in string.ascii_lowercase)]


def git(folder: Path, seed: int = 0) -> Path:
    """Like microsoft/git-base-coco: BERT's tokenizer, CLIP's image processor, patches before the text."""
    from transformers import CLIPImageProcessor, GitConfig, GitForCausalLM

    torch.manual_seed(seed)
    vocabulary = _bert_tokenizer(folder)
    config = GitConfig(
        vision_config={**LAYERS, **PATCHES},
        vocab_size=len(vocabulary),
        **LAYERS,
        max_position_embeddings=128,
        pad_token_id=vocabulary["[PAD]"],
        bos_token_id=vocabulary["[CLS]"],
        eos_token_id=vocabulary["[SEP]"],
    )
    CLIPImageProcessor(size={"shortest_edge": 48}, crop_size={"height": 48, "width": 48}).save_pretrained(folder)
    return _save(GitForCausalLM(config), folder)


def blip(folder: Path, seed: int = 0) -> Path:
    """Like Salesforce/blip-image-captioning-base: BERT's tokenizer with two more tokens, a cross-attending decoder."""
    from transformers import BlipConfig, BlipForConditionalGeneration, BlipImageProcessor

    torch.manual_seed(seed)
    vocabulary = _bert_tokenizer(folder, "[DEC]", "[ENC]")
    config = BlipConfig(
        text_config={
            **LAYERS,
            "vocab_size": len(vocabulary),
            "encoder_hidden_size": 32,
            "projection_dim": 16,
            "max_position_embeddings": 64,
            "bos_token_id": vocabulary["[DEC]"],
            "eos_token_id": 2,
            "sep_token_id": vocabulary["[SEP]"],
            "pad_token_id": vocabulary["[PAD]"],
        },
        vision_config={**LAYERS, **PATCHES},
        projection_dim=16,
        image_text_hidden_size=16,
    )
    BlipImageProcessor(size={"height": 48, "width": 48}).save_pretrained(folder)
    return _save(BlipForConditionalGeneration(config), folder)


def blip2(folder: Path, seed: int = 0) -> Path:
    """Like Salesforce/blip2-opt-2.7b: a querying transformer before OPT, which has a byte-level tokenizer."""
    from transformers import (
        Blip2Config,
        Blip2ForConditionalGeneration,
        Blip2QFormerConfig,
        Blip2VisionConfig,
        BlipImageProcessor,
        OPTConfig,
    )

    torch.manual_seed(seed)
    vocabulary = byte_tokenizer(folder, "<s>", "<pad>", "</s>", "<unk>", "<image>", bos="<s>", eos="</s>", pad="<pad>")
    text = OPTConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        word_embed_proj_dim=32,
        ffn_dim=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=128,
        bos_token_id=vocabulary["</s>"],
        eos_token_id=vocabulary["</s>"],
        pad_token_id=vocabulary["<pad>"],
    )
    config = Blip2Config(
        vision_config=Blip2VisionConfig(**LAYERS, **PATCHES).to_dict(),
        qformer_config=Blip2QFormerConfig(
            **LAYERS, encoder_hidden_size=32, vocab_size=50, cross_attention_frequency=1
        ).to_dict(),
        text_config=text.to_dict(),
        num_query_tokens=4,
        image_token_index=vocabulary["<image>"],
    )
    BlipImageProcessor(size={"height": 48, "width": 48}).save_pretrained(folder)
    model = Blip2ForConditionalGeneration(config)
    model.generation_config.eos_token_id = vocabulary["Ċ"]  # a new line, as in the published checkpoint
    return _save(model, folder)


def llava_next(folder: Path, seed: int = 0) -> Path:
    """Like llava-hf/llava-v1.6-mistral-7b-hf: CLIP's tower, up to four tiles beside the whole, Mistral."""
    from transformers import (
        CLIPVisionConfig,
        LlavaNextConfig,
        LlavaNextForConditionalGeneration,
        LlavaNextImageProcessor,
        LlavaNextProcessor,
        MistralConfig,
        PreTrainedTokenizerFast,
    )

    torch.manual_seed(seed)
    vocabulary = byte_tokenizer(folder, "<s>", "</s>", "<unk>", "<pad>", "<image>", bos="<s>", eos="</s>", pad="<pad>")
    pinpoints = [[24, 48], [48, 24], [48, 48], [72, 24], [24, 72]]
    config = LlavaNextConfig(
        vision_config=CLIPVisionConfig(
            **{**LAYERS, "num_hidden_layers": 3}, image_size=24, patch_size=8, projection_dim=16
        ).to_dict(),
        text_config=MistralConfig(
            **LAYERS,
            vocab_size=len(vocabulary),
            num_key_value_heads=2,
            max_position_embeddings=4096,
            bos_token_id=vocabulary["<s>"],
            eos_token_id=vocabulary["</s>"],
            pad_token_id=vocabulary["<pad>"],
        ).to_dict(),
        image_grid_pinpoints=pinpoints,
        image_token_index=vocabulary["<image>"],
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
    )
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    images = LlavaNextImageProcessor(
        size={"shortest_edge": 24}, crop_size={"height": 24, "width": 24}, image_grid_pinpoints=pinpoints
    )
    LlavaNextProcessor(
        images,
        tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=(
            "{% for message in messages %}[INST] {% for part in message['content'] %}"
            "{% if part['type'] == 'image' %}<image>\n{% else %}{{ part['text'] }}{% endif %}{% endfor %} [/INST]"
            "{% endfor %}"
        ),
    ).save_pretrained(folder)
    return _save(LlavaNextForConditionalGeneration(config), folder)


def draw(module: Any, generator: torch.Generator, gain: float = 2.0) -> None:
    """Weights large enough for answers to differ between images, and norms that change something."""
    for name, value in module.state_dict().items():
        if value.is_floating_point():
            noise = torch.randn(value.shape, generator=generator)
            if name.endswith("running_var"):
                noise = 0.5 + 0.5 * noise.abs()
            elif value.ndim > 1:
                noise *= gain / value[0].numel() ** 0.5
            else:
                noise = 0.3 * noise + name.endswith("weight")
            value.copy_(noise)


def byte_tokenizer(folder: Path, *special: str, bos: str, eos: str, pad: str) -> dict[str, int]:
    """A byte-level tokenizer that was trained on some words; returns its vocabulary."""
    tokenizer = tiny_language.byte_tokenizer(folder, *special, bos=bos, eos=eos, pad=pad, texts=[TEXT])
    if "<image>" in special:
        tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
        tokenizer.save_pretrained(folder)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return vocabulary


def _bert_tokenizer(folder: Path, *more: str) -> dict[str, int]:
    from transformers import BertTokenizer

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *more, *LETTERS, *(w for w in WORDS if len(w) > 1)]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    BertTokenizer(vocab=vocabulary, do_lower_case=True).save_pretrained(folder)
    return vocabulary


def _save(model: Any, folder: Path) -> Path:
    """Save a model whose weights are large enough for its answers to differ between images, and to end at times."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1 and "position" not in name:
                weight.normal_(0, (0.5 if "embed" in name else 2.5) / weight[0].numel() ** 0.5)
    model.eval().save_pretrained(folder)
    (folder / "RANDOM_WEIGHTS").touch()
    return folder


MAKERS: dict[str, Callable[[Path], Path]] = {"git": git, "blip": blip, "blip2": blip2, "llava_next": llava_next}
