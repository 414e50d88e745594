"""Tiny ClipCaps of the real architecture with random weights, under the names of the published files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from tiny_captioners import byte_tokenizer
from torch import Tensor
from torch.nn import functional

from agents.vision.clip_towers import load_tower

Kind = Literal["transformer", "mlp"]
END = "<|endoftext|>"
WIDTH, PREFIX, CLIP_LENGTH, LAYERS, FEATURES = 32, 3, 4, 2, 24
STEM, BLOCKS, GRID = 4, (1, 2, 1, 1), 2  # the tower takes 64 x 64 pixels


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the three checkpoints of one agent are."""

    checkpoint: Path
    clip: Path
    language_model: Path
    mapper: Kind

    def settings(self, **others: Any) -> dict[str, Any]:
        paths = {"checkpoint": self.checkpoint, "clip": self.clip, "language_model": self.language_model}
        return {name: str(path) for name, path in paths.items()} | {"mapper": self.mapper, **others}


def make(folder: Path, mapper: Kind, *, with_gpt: bool = True, stop: float = 0.0, seed: int = 0) -> Parts:
    """Save all three. ``with_gpt``: whether the authors' file holds GPT-2's weights beside the mapper's; ``stop``
    makes the full stop likelier."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    gpt, weights = _gpt2(folder / "gpt2", generator, stop)
    found = transformer_mapper(generator) if mapper == "transformer" else perceptron_mapper(generator)
    if with_gpt:
        found |= {f"gpt.{name}": value for name, value in weights.items()}
        for layer in range(2):  # the causal mask, which transformers of 2021 saved with the weights
            found[f"gpt.transformer.h.{layer}.attn.bias"] = torch.ones(1, 1, 128, 128, dtype=torch.bool).tril()
            found[f"gpt.transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    path = folder / "authors" / "coco_weights.pt"
    path.parent.mkdir(exist_ok=True)
    torch.save(found, path)
    (path.parent / "RANDOM_WEIGHTS").touch()
    clip = resnet(folder / "rn.pt", generator) if mapper == "transformer" else vit(folder / "vit", seed)
    return Parts(path, clip, gpt, mapper)


def transformer_mapper(generator: torch.Generator) -> dict[str, Tensor]:
    shapes: dict[str, tuple[int, ...]] = {
        "prefix_const": (PREFIX, WIDTH),
        "linear.weight": (CLIP_LENGTH * WIDTH, FEATURES),
        "linear.bias": (CLIP_LENGTH * WIDTH,),
    }
    for layer in range(LAYERS):
        for name, shape in {
            "norm1.weight": (WIDTH,),
            "norm1.bias": (WIDTH,),
            "attn.to_queries.weight": (WIDTH, WIDTH),
            "attn.to_keys_values.weight": (2 * WIDTH, WIDTH),
            "attn.project.weight": (WIDTH, WIDTH),
            "attn.project.bias": (WIDTH,),
            "norm2.weight": (WIDTH,),
            "norm2.bias": (WIDTH,),
            "mlp.fc1.weight": (2 * WIDTH, WIDTH),
            "mlp.fc1.bias": (2 * WIDTH,),
            "mlp.fc2.weight": (WIDTH, 2 * WIDTH),
            "mlp.fc2.bias": (WIDTH,),
        }.items():
            shapes[f"transformer.layers.{layer}.{name}"] = shape
    found = {f"clip_project.{name}": _random(shape, generator, 0.4) for name, shape in shapes.items()}
    found["clip_project.linear.weight"] *= 5  # for features of length 1
    return found


def perceptron_mapper(generator: torch.Generator) -> dict[str, Tensor]:
    hidden = PREFIX * WIDTH // 2
    shapes = {
        "model.0.weight": (hidden, FEATURES),
        "model.0.bias": (hidden,),
        "model.2.weight": (PREFIX * WIDTH, hidden),
        "model.2.bias": (PREFIX * WIDTH,),
    }
    return {f"clip_project.{name}": _random(shape, generator, 0.4) for name, shape in shapes.items()}


def resnet(path: Path, generator: torch.Generator) -> Path:
    """A CLIP with a ResNet tower in OpenAI's names, of whose text side a few weights stand for the rest."""
    width = STEM * 32
    shapes: dict[str, tuple[int, ...]] = {
        "conv1.weight": (STEM // 2, 3, 3, 3),
        "conv2.weight": (STEM // 2, STEM // 2, 3, 3),
        "conv3.weight": (STEM, STEM // 2, 3, 3),
        "attnpool.positional_embedding": (GRID**2 + 1, width),
        "attnpool.c_proj.weight": (FEATURES, width),
        "attnpool.c_proj.bias": (FEATURES,),
    }
    for name in "qkv":
        shapes |= {f"attnpool.{name}_proj.weight": (width, width), f"attnpool.{name}_proj.bias": (width,)}
    norms = {"bn1": STEM // 2, "bn2": STEM // 2, "bn3": STEM}
    inputs = STEM
    for stage, blocks in enumerate(BLOCKS):
        inner = STEM * 2**stage
        for block in range(blocks):
            name = f"layer{stage + 1}.{block}"
            shapes[f"{name}.conv1.weight"] = (inner, inputs, 1, 1)
            shapes[f"{name}.conv2.weight"] = (inner, inner, 3, 3)
            shapes[f"{name}.conv3.weight"] = (4 * inner, inner, 1, 1)
            norms |= {f"{name}.bn1": inner, f"{name}.bn2": inner, f"{name}.bn3": 4 * inner}
            if block == 0:
                shapes[f"{name}.downsample.0.weight"] = (4 * inner, inputs, 1, 1)
                norms[f"{name}.downsample.1"] = 4 * inner
            inputs = 4 * inner
    found = {
        f"visual.{name}": _random(shape, generator, 0.05 if len(shape) == 1 else 1.5 / math.prod(shape[1:]) ** 0.5)
        for name, shape in shapes.items()
    }
    for name, size in norms.items():
        found[f"visual.{name}.weight"] = 1 + _random((size,), generator, 0.3)
        found[f"visual.{name}.bias"] = _random((size,), generator, 0.3)
        found[f"visual.{name}.running_mean"] = _random((size,), generator, 0.3)
        found[f"visual.{name}.running_var"] = 0.5 + torch.rand(size, generator=generator)
        found[f"visual.{name}.num_batches_tracked"] = torch.tensor(7)
    # What random weights make of every image alike is taken away, so that features tell images apart.
    colours = functional.interpolate(torch.randn(16, 3, 4, 4, generator=generator), GRID * 32, mode="bicubic")
    torch.save(found, path)
    with torch.no_grad():
        found["visual.attnpool.c_proj.bias"] -= load_tower(path)(colours).mean(dim=0)
    found |= {"logit_scale": torch.tensor(4.6), "text_projection": _random((8, FEATURES), generator, 0.1)}
    torch.save(found, path)
    return path


def vit(folder: Path, seed: int) -> Path:
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    torch.manual_seed(seed)
    config = CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        projection_dim=FEATURES,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=48,
        patch_size=16,
    )
    model = CLIPVisionModelWithProjection(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 4 if weight.ndim > 1 else 1
    model.save_pretrained(folder)
    return folder


def _gpt2(folder: Path, generator: torch.Generator, stop: float) -> tuple[Path, dict[str, Tensor]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    vocabulary = byte_tokenizer(folder, END, bos=END, eos=END, pad=END)
    config = GPT2Config(
        vocab_size=len(vocabulary),
        n_embd=WIDTH,
        n_layer=2,
        n_head=4,
        n_positions=128,
        bos_token_id=vocabulary[END],
        eos_token_id=vocabulary[END],
    )
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                weight.copy_(_random(tuple(weight.shape), generator, 1.0 if "wte" in name else 0.3))
        full_stop = model.transformer.wte.weight[vocabulary["."]]
        model.transformer.ln_f.bias += stop * full_stop / full_stop.square().sum()
    model.save_pretrained(folder)
    return folder, model.state_dict()


def _random(shape: tuple[int, ...], generator: torch.Generator, deviation: float) -> Tensor:
    return torch.randn(shape, generator=generator) * deviation
