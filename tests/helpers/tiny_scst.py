"""A small SCST with random weights: the three files of the published one, with their names and in their forms."""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tiny_captioners
import torch
from torch import Tensor
from torch.nn import functional

from agents.vision.scst_network import load

BLOCKS, FEATURES, INPUTS, WIDTH = (1, 1, 2, 1), 2048, 24, 16
WORDS = (*tiny_captioners.WORDS, "UNK")


def make(folder: Path, seed: int = 0, *, ends: float = 0.0, unknown: float = 0.0) -> Path:
    """Save all three. ``ends`` and ``unknown`` are added to the logits of the end and of the unknown word."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    decoder = _decoder(generator, ends, unknown)
    torch.save(decoder, folder / "model-best.pth")
    # The published weights are of 2017, in torch's older form and without the norms' counters.
    torch.save(_resnet(generator), folder / "resnet101.pth", _use_new_zipfile_serialization=False)
    # What random weights make of every picture alike is taken away, so that features tell pictures apart.
    colours = functional.interpolate(torch.rand(16, 3, 4, 4, generator=generator) * 255, 64, mode="bicubic")
    with torch.no_grad():
        alike = load(folder / "model-best.pth", folder / "resnet101.pth").features(colours).mean(dim=0)
    decoder["fc_embed.bias"] -= decoder["fc_embed.weight"] @ alike
    torch.save(decoder, folder / "model-best.pth")
    (folder / "infos_fc_rl-best.pkl").write_bytes(infos(WORDS))
    (folder / "RANDOM_WEIGHTS").touch()
    return folder


def infos(words: Sequence[str], **others: Any) -> bytes:
    """What tools/train.py leaves beside the weights: words by number, and the state of the training."""
    found = {
        "iter": 600000,
        "epoch": 50,
        "loader_state_dict": {"train": {"index_list": [3, 1, 2], "iter_counter": 2}},
        "vocab": {str(number): word for number, word in enumerate(words, start=1)},
        "opt": argparse.Namespace(id="fc_rl", caption_model="newfc", rnn_size=WIDTH, seq_length=16),
        "best_val_score": np.float64(1.045),
    }
    return pickle.dumps(found | others, protocol=2)


def _decoder(generator: torch.Generator, ends: float, unknown: float) -> dict[str, Tensor]:
    shapes: dict[str, tuple[int, ...]] = {
        "embed.weight": (len(WORDS) + 1, INPUTS),
        "fc_embed.weight": (INPUTS, FEATURES),
        "fc_embed.bias": (INPUTS,),
        "logit.weight": (len(WORDS) + 1, WIDTH),
        "logit.bias": (len(WORDS) + 1,),
        "_core.i2h.weight": (5 * WIDTH, INPUTS),
        "_core.i2h.bias": (5 * WIDTH,),
        "_core.h2h.weight": (5 * WIDTH, WIDTH),
        "_core.h2h.bias": (5 * WIDTH,),
    }
    found = {name: torch.randn(shape, generator=generator) * 0.5 for name, shape in shapes.items()}
    found["logit.weight"] *= 3
    found["logit.bias"][0] += ends
    found["logit.bias"][-1] += unknown
    return found


def _resnet(generator: torch.Generator) -> dict[str, Tensor]:
    """A ResNet's weights, the classifier's too, by torchvision's names; what it makes of pictures differs."""
    convolutions = {"conv1": (64, 3, 7, 7)}
    norms = {"bn1": 64}
    inputs = 64
    for stage, blocks in enumerate(BLOCKS):
        inner = 64 * 2**stage
        for block in range(blocks):
            name = f"layer{stage + 1}.{block}"
            convolutions[f"{name}.conv1"] = (inner, inputs, 1, 1)
            convolutions[f"{name}.conv2"] = (inner, inner, 3, 3)
            convolutions[f"{name}.conv3"] = (4 * inner, inner, 1, 1)
            norms |= {f"{name}.bn1": inner, f"{name}.bn2": inner, f"{name}.bn3": 4 * inner}
            if block == 0:
                convolutions[f"{name}.downsample.0"] = (4 * inner, inputs, 1, 1)
                norms[f"{name}.downsample.1"] = 4 * inner
            inputs = 4 * inner
    found = {}
    for name, shape in convolutions.items():
        deviation = (2 / (shape[1] * shape[2] * shape[3])) ** 0.5
        found[f"{name}.weight"] = torch.randn(shape, generator=generator) * deviation
    for name, size in norms.items():
        found[f"{name}.weight"] = 0.8 + 0.3 * torch.rand(size, generator=generator)
        found[f"{name}.bias"] = 0.1 * torch.randn(size, generator=generator)
        found[f"{name}.running_mean"] = 0.1 * torch.randn(size, generator=generator)
        found[f"{name}.running_var"] = 0.8 + 0.4 * torch.rand(size, generator=generator)
    return found | {"fc.weight": torch.zeros(10, FEATURES), "fc.bias": torch.zeros(10)}
