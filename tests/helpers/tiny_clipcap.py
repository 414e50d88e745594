"""Tiny ClipCaps of the real architecture with random weights, under the names of the published files."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from agents.vision.clipcap_network import PerceptronMapper, TransformerMapper
from tests.helpers import tiny_language
from tests.helpers.plain_clip_resnet import ClipResNet
from tests.helpers.tiny_captioners import draw

WIDTH = 32
PREFIX = 3
CLIP_LENGTH = 4
LAYERS = 2
FEATURES = 24


def make(folder: Path, mapper: str, *, stop: float = 0.0, seed: int = 5) -> dict[str, str]:
    """Save all three; ``stop`` makes the full stop likelier. Returns the agent's settings."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    gpt = _gpt2(folder / "gpt2", generator, stop)
    module: Any = (
        TransformerMapper(FEATURES, WIDTH, PREFIX, CLIP_LENGTH, LAYERS, 2 * WIDTH)
        if mapper == "transformer"
        else PerceptronMapper(FEATURES, PREFIX * WIDTH // 2, WIDTH, PREFIX)
    )
    draw(module, generator)
    if mapper == "transformer":
        module.linear.weight.data *= 5  # for features of length 1
    weights = {f"clip_project.{name}": value for name, value in module.state_dict().items()}
    weights |= {f"gpt.{name}": value for name, value in gpt.items()}
    for layer in range(2):  # the causal mask, which transformers of 2021 saved with the weights
        weights[f"gpt.transformer.h.{layer}.attn.bias"] = torch.ones(1, 1, 128, 128, dtype=torch.bool).tril()
        weights[f"gpt.transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    path = folder / "authors" / "coco_weights.pt"
    path.parent.mkdir(exist_ok=True)
    torch.save(weights, path)
    (path.parent / "RANDOM_WEIGHTS").touch()
    clip = resnet(folder / "rn.pt", generator) if mapper == "transformer" else vit(folder / "vit", generator)
    paths = {"checkpoint": path, "clip": clip, "language_model": folder / "gpt2", "mapper": mapper}
    return {name: str(value) for name, value in paths.items()}


def resnet(path: Path, generator: torch.Generator) -> Path:
    """A CLIP with a ResNet tower for 64 x 64 pixels in OpenAI's names; of its text side a few weights stand for all."""
    tower = ClipResNet(width=8, blocks=(1, 2, 1, 1), grid=2, outputs=FEATURES).eval()
    draw(tower, generator, 1.5)
    # What random weights make of every image alike is taken away, so that features tell images apart.
    colours = functional.interpolate(torch.randn(16, 3, 4, 4, generator=generator), 64, mode="bicubic")
    with torch.no_grad():
        tower.attnpool.c_proj.bias.sub_(tower(colours).mean(dim=0))
    weights = {f"visual.{name}": value for name, value in tower.state_dict().items()}
    torch.save(weights | {"logit_scale": torch.tensor(4.6), "text_projection": torch.zeros(8, FEATURES)}, path)
    return path


def vit(folder: Path, generator: torch.Generator) -> Path:
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

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
    draw(model, generator)
    model.save_pretrained(folder)
    return folder


def _gpt2(folder: Path, generator: torch.Generator, stop: float) -> dict[str, Tensor]:
    from transformers import AutoTokenizer, GPT2LMHeadModel

    model: Any = GPT2LMHeadModel.from_pretrained(tiny_language.gpt2(folder, positions=128))
    draw(model, generator)
    with torch.no_grad():
        model.transformer.wte.weight.mul_(3)
        full_stop = model.transformer.wte.weight[AutoTokenizer.from_pretrained(folder).encode(".")[0]]
        model.transformer.ln_f.bias += stop * full_stop / full_stop.square().sum()
    model.save_pretrained(folder)
    return dict(model.state_dict())
