"""A tiny OpenFlamingo of the real architecture with random weights, its three parts in the forms of the published ones.

The authors' checkpoint.pt has what was trained by the names of their program and, as the filter of their training
program leaves them, the embeddings of input and output. Beside it stand CLIP's tower and a GPT-NeoX that has more rows
for tokens than its tokenizer knows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tiny_captioners import byte_tokenizer
from torch import Tensor

TEXT_END, CHUNK_END, IMAGE = "<|endoftext|>", "<|endofchunk|>", "<image>"
WIDTH, SEEN, LAYERS = 32, 24, 4
LATENTS, DEPTH, INNER = 64, 6, 512  # as they are written into the authors' program
WORDS = {"vocab_size": 50, "bos_token_id": 48, "eos_token_id": 49}
SPARE_ROWS = 9  # beyond the tokenizer's: three are OpenFlamingo's, the others nobody's
GATED = "lang_encoder.gpt_neox.layers.{}.gated_cross_attn_layer."


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the three checkpoints of one agent are."""

    checkpoint: Path
    clip: Path
    language_model: Path

    def settings(self, **others: Any) -> dict[str, Any]:
        paths = {"checkpoint": self.checkpoint, "clip": self.clip, "language_model": self.language_model}
        return {name: str(path) for name, path in paths.items()} | others


def make(folder: Path, *, seed: int = 0, end: float = 0.0) -> Parts:
    """Save all three. ``end`` makes the end of a caption likelier; <image> is never said."""
    generator = torch.Generator().manual_seed(seed)
    known = tokenizer(folder / "gpt")
    weights = trained(known, generator)
    row = weights["lang_encoder.embed_out.weight"][known]
    gpt(folder / "gpt", known + SPARE_ROWS, end * row / row.square().sum(), generator)
    tower(folder / "clip", generator)
    path = folder / "authors" / "checkpoint.pt"
    path.parent.mkdir()
    torch.save(weights, path)
    (path.parent / "RANDOM_WEIGHTS").touch()
    return Parts(path.parent, folder / "clip", folder / "gpt")


def tokenizer(folder: Path) -> int:
    """GPT-NeoX's as RedPajama has it: no token for padding, runs of spaces as added tokens. Returns its size."""
    vocabulary = byte_tokenizer(folder, TEXT_END, "<|padding|>", bos=TEXT_END, eos=TEXT_END, pad=TEXT_END)
    about = json.loads((folder / "tokenizer.json").read_bytes())
    flags = {"special": False, "single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    runs = [{"id": len(vocabulary) + n, "content": " " * (3 - n), **flags} for n in range(2)]
    about |= {"normalizer": {"type": "NFC"}, "added_tokens": [*about["added_tokens"], *runs]}
    (folder / "tokenizer.json").write_text(json.dumps(about))
    named = dict.fromkeys(("bos_token", "eos_token", "unk_token"), TEXT_END)
    settings = {"tokenizer_class": "GPTNeoXTokenizer", "add_prefix_space": False, "clean_up_tokenization_spaces": True}
    (folder / "tokenizer_config.json").write_text(json.dumps({**named, **settings}))
    (folder / "special_tokens_map.json").write_text(json.dumps(named))
    return len(vocabulary) + len(runs)


def gpt(folder: Path, rows: int, towards: Tensor, generator: torch.Generator) -> None:
    """As togethercomputer/RedPajama-INCITE-Instruct-3B-v1: a torch file in half precision, with the head's old name.
    What it says is drawn ``towards`` a token's row of the head."""
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(
        vocab_size=rows,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        max_position_embeddings=256,
        rotary_pct=1.0,
        use_parallel_residual=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPTNeoXForCausalLM(config)
    _randomise(model, generator)
    with torch.no_grad():
        model.gpt_neox.final_layer_norm.bias += towards
    config.save_pretrained(folder)
    weights = {name.replace("lm_head", "embed_out"): value.half() for name, value in model.state_dict().items()}
    torch.save(weights, folder / "pytorch_model.bin")


def tower(folder: Path, generator: torch.Generator) -> None:
    """As openai/clip-vit-large-patch14: the whole of CLIP."""
    from transformers import CLIPConfig, CLIPModel

    layers = {"intermediate_size": 48, "num_hidden_layers": 2, "projection_dim": 8}
    config = CLIPConfig(
        text_config={**layers, "hidden_size": 16, "num_attention_heads": 2, **WORDS},
        vision_config={**layers, "hidden_size": SEEN, "num_attention_heads": 2, "image_size": 48, "patch_size": 16},
        projection_dim=8,
    )
    model = CLIPModel(config)
    _randomise(model, generator)
    model.save_pretrained(folder)


def trained(known: int, generator: torch.Generator) -> dict[str, Tensor]:
    """The weights in checkpoint.pt for a tokenizer of so many tokens."""

    def matrix(*shape: int, deviation: float = 2.0) -> Tensor:
        return torch.randn(shape, generator=generator) * deviation / shape[-1] ** 0.5

    def norm(name: str, width: int) -> dict[str, Tensor]:
        both = torch.randn((2, width), generator=generator) * 0.3
        return {f"{name}.weight": 1 + both[0], f"{name}.bias": both[1]}

    def attention(name: str, width: int) -> dict[str, Tensor]:
        return {
            f"{name}to_q.weight": matrix(INNER, width),
            f"{name}to_kv.weight": matrix(2 * INNER, SEEN),
            f"{name}to_out.weight": matrix(width, INNER),
        }

    def feed_forward(name: str, width: int) -> dict[str, Tensor]:
        up, down = matrix(4 * width, width), matrix(width, 4 * width)
        return {**norm(f"{name}0", width), f"{name}1.weight": up, f"{name}3.weight": down}

    found = {"perceiver.latents": matrix(LATENTS, SEEN, deviation=5.0), **norm("perceiver.norm", SEEN)}
    for number in range(DEPTH):
        name = f"perceiver.layers.{number}."
        found |= norm(f"{name}0.norm_media", SEEN) | norm(f"{name}0.norm_latents", SEEN)
        found |= attention(f"{name}0.", SEEN) | feed_forward(f"{name}1.", SEEN)
    for place in range(1, LAYERS, 2):
        name = GATED.format(place)
        found |= norm(f"{name}attn.norm", WIDTH) | attention(f"{name}attn.", WIDTH) | feed_forward(f"{name}ff.", WIDTH)
        found |= {f"{name}attn_gate": torch.tensor([0.9]), f"{name}ff_gate": torch.tensor([-0.5])}
    rows = known + 3  # with the end of a chunk, <image> and <PAD>
    found["lang_encoder.gpt_neox.embed_in.weight"] = matrix(rows, WIDTH, deviation=5.0)
    head = found["lang_encoder.embed_out.weight"] = matrix(rows, WIDTH)
    head[known + 1] = 0.0
    return found


def _randomise(model: Any, generator: torch.Generator) -> None:
    """Weights large enough for answers to differ between images."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 2 / weight[0].numel() ** 0.5)
            elif "norm" in name and name.endswith("weight"):
                weight.copy_(1 + torch.randn(weight.shape, generator=generator) * 0.3)
            else:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.3)
