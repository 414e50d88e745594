"""A tiny OFA with random weights, with a dictionary that is trained here.

The weights are large enough that logits differ by several units, that texts are words and end now and then, and that
another image gives another text.
"""

import json
import math
from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor

from agents.vision.ofa_network import OFAConfig, OFAModel

TEXTS = (
    " what does the image describe? a man and a dog on the street, two cats sit next to a red plate of food",
    " a woman holding a large white book in front of a green table with water and people looking at the picture",
)
WORDS = 320  # tokens of the vocabulary, special ones included
END = 3.0  # how much likelier than other tokens the end is, on the scale of logits
ROWS = WORDS + 8192 + 1000
QUESTION = [0, 270, 281, 290, 300, 2]


def images(count: int, height: int = 64, width: int = 64, seed: int = 0) -> Tensor:
    """Coarse random squares: images that differ as wholes, [count, 3, height, width]; 64 pixels are 4 patches."""
    coarse = torch.rand(count, 3, 4, 4, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    return torch.nn.functional.interpolate(coarse, (height, width), mode="nearest")


def questions(count: int) -> Tensor:
    return torch.tensor([QUESTION] * count)


def dictionary(folder: Path) -> Path:
    """vocab.json and merges.txt of a byte-level BPE."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS - 1,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 4, trainer)
    tokenizer.model.save(str(folder))
    (folder / "vocab.json").write_text(json.dumps({**tokenizer.get_vocab(), "<mask>": WORDS - 1}))
    return folder


SIZES: dict[str, Any] = {
    "vocab_size": ROWS,
    "d_model": 32,
    "encoder_layers": 3,
    "encoder_ffn_dim": 48,
    "encoder_attention_heads": 4,
    "decoder_layers": 2,
    "decoder_ffn_dim": 40,
    "decoder_attention_heads": 2,
    "max_position_embeddings": 64,
    "resnet_type": "resnet50",
    "image_bucket_size": 6,
    "token_bucket_size": 16,
}


def model(seed: int = 0) -> OFAModel:
    """Random weights at a scale at which every part of the model changes what it says."""
    made = OFAModel(OFAConfig(**SIZES)).eval()
    dice = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, values in made.state_dict().items():
            if values.is_floating_point():
                values.copy_(_draw(name, values, dice))
        embedding = made.encoder.embed_tokens.weight
        embedding[WORDS:] *= 0.01  # codes and coordinates are never said
        embedding[4:260] *= 0.3  # nor are single bytes, often
        embedding[2] *= END
        # What all images have in common is projected away, so that the rest decides what is said.
        mean = made.encoder.embed_images(torch.randn(4, 3, 64, 64, generator=dice)).mean((0, 2, 3))
        weight = made.encoder.image_proj.weight
        weight -= torch.outer(weight @ mean, mean) / mean.dot(mean)
    return made


def _draw(name: str, values: Tensor, dice: torch.Generator) -> Tensor:
    noise = torch.randn(values.shape, generator=dice)
    if name.endswith("running_var"):
        return 0.5 + 0.5 * noise.abs()
    if values.dim() == 1:  # of norms, heads and residuals, or biases
        scales = name.endswith(("weight", "c_attn", "w_resid"))
        return 1 + 0.4 * noise if scales else 0.3 * noise
    if values.dim() == 4:
        return noise * math.sqrt(2 / values[0].numel())
    if "rel_pos_table" in name or "positions" in name or "type_embedding" in name:
        return noise
    if "embed_tokens" in name:
        return noise * 3 / math.sqrt(values.shape[1])
    return noise * 1.6 / math.sqrt(values.shape[1])


def published(made: OFAModel) -> dict[str, Tensor]:
    """The weights, with what the published file has beside them."""
    size = made.config
    side = made.config.image_bucket_size
    weights = {name: values.clone() for name, values in made.state_dict().items()}
    embedding = weights["encoder.embed_tokens.weight"]
    weights["decoder.embed_tokens.weight"] = weights["decoder.output_projection.weight"] = embedding
    unused = ["embed_image_positions", "image_pos_ln", "code_layernorm_embedding"]
    unused += [f"image_rel_pos_table_list.{layer}" for layer in range(size.decoder_layers)]
    weights |= {f"decoder.{name}.weight": torch.ones(side**2 + 1, size.d_model) for name in unused}
    weights["decoder.image_position_idx"] = torch.zeros(1025, dtype=torch.int64)
    for half in ("encoder", "decoder"):
        weights[f"{half}.token_rp_bucket"] = weights[f"{half}.image_rp_bucket"] = torch.zeros(64, 64)
        weights[f"{half}.version"] = torch.tensor([3.0])
    return weights


def fairseq_name(name: str) -> str:
    """The name of a weight in fairseq's form, word by word."""
    half, *parts = name.split(".")
    norms = {"self_attn_mid_layer_norm": "attn_ln", "ffn_layer_norm": "ffn_layernorm"}
    if half == "decoder":
        norms |= {
            "self_attn_mid_layer_norm": "self_attn_ln",
            "cross_attn_mid_layer_norm": "cross_attn_ln",
            "cross_attn_layer_norm": "encoder_attn_layer_norm",
            "cross_attn": "encoder_attn",
        }
    return ".".join([half, *(norms.get(part, part) for part in parts)])


def fairseq_file(path: Path, made: OFAModel | None = None, **beside: Any) -> Path:
    """As caption_huge_best.pt: tensors under "model", and what the training program left beside them."""
    made = made or model()
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = {fairseq_name(name): values for name, values in published(made).items()}
    meters: defaultdict[str, dict[str, float]] = defaultdict(dict)
    meters["default"]["loss"] = 1.5
    left = {"args": Namespace(arch="ofa_huge", data=["a", 1]), "cfg": {"model": Namespace(dropout=0.1)}}
    torch.save({**left, "extra_state": {"meters": meters}, "model": weights, **beside}, path)
    return path
