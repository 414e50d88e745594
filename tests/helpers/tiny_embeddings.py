"""A tiny BERT of the real architecture with random weights, saved as its published checkpoint is."""

import json
from pathlib import Path

import torch

from tests.helpers import tiny_captioners

WIDTH = 16


def sentence_bert(folder: Path, *, normalised: bool = True, pooling: str = "mean_tokens") -> Path:
    """Like sentence-transformers/all-MiniLM-L6-v2: BERT, and how its tokens' states become one vector."""
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(3)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *tiny_captioners.LETTERS, "man", "woman", "dog", "the", "and"]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    BertTokenizer(vocab=vocabulary, do_lower_case=True).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=256,
    )
    model = BertModel(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.mul_(10)  # as they are drawn, all texts would be nearly one vector
    model.save_pretrained(folder)
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalised else [])]
    modules = [
        {
            "idx": place,
            "name": str(place),
            "path": f"{place}_{kind}" if place else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for place, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"cls_token": False, "mean_tokens": False, "max_tokens": False} | {pooling: True}
    about = {"word_embedding_dimension": WIDTH, **{f"pooling_mode_{mode}": on for mode, on in modes.items()}}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(about))
    return folder
