"""A small SCST with random weights: the three files of the published model, with their names and in their forms."""

import argparse
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from agents.vision.scst_network import SCSTConfig, SCSTModel
from tests.helpers import tiny_captioners

BLOCKS = (1, 1, 2, 1)
WIDTH = 16
WORDS = (*tiny_captioners.WORDS, "UNK")


def make(folder: Path, seed: int = 0, *, ends: float = 0.0) -> Path:
    """Save all three. ``ends`` is added to the logits of the end."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    model = SCSTModel(SCSTConfig(vocab_size=len(WORDS) + 1, embedding_size=24, hidden_size=WIDTH, blocks=BLOCKS)).eval()
    tiny_captioners.draw(model, generator, 1.4)
    decoder = model.decoder
    # What random weights make of every picture alike is taken away, so that features tell pictures apart.
    colours = functional.interpolate(torch.rand(16, 3, 4, 4, generator=generator) * 255, 64, mode="bicubic")
    with torch.no_grad():
        for weight in decoder.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.5)
        decoder.logit.weight *= 3
        decoder.logit.bias[0] += ends
        features = model.features(colours)
        decoder.fc_embed.weight /= 5 * features.std()
        decoder.fc_embed.bias -= decoder.fc_embed.weight @ features.mean(dim=0)
    torch.save(decoder.state_dict(), folder / "model-best.pth")
    # The published weights are of 2017, in torch's older form, without the norms' counters, with the classifier.
    resnet = {name: value for name, value in model.resnet.state_dict().items() if "num_batches" not in name}
    resnet |= {"fc.weight": torch.zeros(10, 2048), "fc.bias": torch.zeros(10)}
    torch.save(resnet, folder / "resnet101.pth", _use_new_zipfile_serialization=False)
    (folder / "infos_fc_rl-best.pkl").write_bytes(infos(WORDS))
    (folder / "RANDOM_WEIGHTS").touch()
    return folder


def infos(words: Sequence[str], **others: Any) -> bytes:
    """What tools/train.py leaves beside the weights: words by number, and the state of the training."""
    content = {
        "iter": 600000,
        "loader_state_dict": {"train": {"index_list": [3, 1, 2], "iter_counter": 2}},
        "vocab": {str(number): word for number, word in enumerate(words, start=1)},
        "opt": argparse.Namespace(id="fc_rl", caption_model="newfc", rnn_size=WIDTH, seq_length=16),
        "best_val_score": np.float64(1.045),
    }
    return pickle.dumps(content | others, protocol=2)
