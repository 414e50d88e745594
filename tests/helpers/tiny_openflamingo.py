"""A tiny OpenFlamingo of the real architecture with random weights, its three parts in the forms of the published ones.

The authors' checkpoint.pt has what was trained by the names of their program and, as the filter of their training
program leaves them, the embeddings of input and output. Beside it stand CLIP's tower and a GPT-NeoX that has more rows
for tokens than its tokenizer knows.
"""

import json
from pathlib import Path

import torch
from torch import Tensor

from agents.vision.openflamingo_network import Trained
from tests.helpers.tiny_captioners import byte_tokenizer, draw

TEXT_END = "<|endoftext|>"
WIDTH = 32
SEEN = 24
LAYERS = 4
# as they are written into the authors' program
LATENTS = 64
DEPTH = 6
SPARE_ROWS = 9  # beyond the tokenizer's: three are OpenFlamingo's, the others nobody's
GATED = "lang_encoder.gpt_neox.layers.{}.gated_cross_attn_layer."


def make(folder: Path, *, seed: int = 0, end: float = 0.0) -> dict[str, str]:
    """Save all three; ``end`` makes the end of a caption likelier. Returns the agent's settings."""
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
    return {"checkpoint": str(path.parent), "clip": str(folder / "clip"), "language_model": str(folder / "gpt")}


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
    draw(model, generator)
    with torch.no_grad():
        model.gpt_neox.final_layer_norm.bias += towards
    config.save_pretrained(folder)
    weights = {name.replace("lm_head", "embed_out"): value.half() for name, value in model.state_dict().items()}
    torch.save(weights, folder / "pytorch_model.bin")


def tower(folder: Path, generator: torch.Generator) -> None:
    """As openai/clip-vit-large-patch14: the whole of CLIP."""
    from transformers import CLIPConfig, CLIPModel

    layers = {"intermediate_size": 48, "num_hidden_layers": 2, "projection_dim": 8, "num_attention_heads": 2}
    words = {"vocab_size": 50, "bos_token_id": 48, "eos_token_id": 49}
    config = CLIPConfig(
        text_config={**layers, "hidden_size": 16, **words},
        vision_config={**layers, "hidden_size": SEEN, "image_size": 48, "patch_size": 16},
        projection_dim=8,
    )
    model = CLIPModel(config)
    draw(model, generator)
    model.save_pretrained(folder)


def trained(known: int, generator: torch.Generator) -> dict[str, Tensor]:
    """The weights in checkpoint.pt for a tokenizer of so many tokens."""
    module = Trained(WIDTH, SEEN, range(1, LAYERS, 2), LATENTS, DEPTH)
    draw(module, generator)
    module.perceiver.latents.data *= 2.5
    weights = {}
    for name, value in module.state_dict().items():
        if name.startswith("gated_cross_attn_layers."):
            _, place, rest = name.split(".", 2)
            gates = {"attn_gate": torch.tensor([0.9]), "ff_gate": torch.tensor([-0.5])}
            weights[GATED.format(place) + rest] = gates.get(rest, value)
        else:
            weights[name] = value
    rows = known + 3  # with the end of a chunk, <image> and <PAD>
    weights["lang_encoder.gpt_neox.embed_in.weight"] = torch.randn((rows, WIDTH), generator=generator) * 0.9
    head = weights["lang_encoder.embed_out.weight"] = torch.randn((rows, WIDTH), generator=generator) * 0.35
    head[known + 1] = 0.0
    return weights
