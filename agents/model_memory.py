"""How much memory a stimulus takes beside a model's weights, as arithmetic from the model's configuration.

A model that generates keeps keys and values of every token of every layer, for each beam, and of what it reads beside
the text for each stimulus. With them stand for a moment what one layer computes of all tokens of a prompt, the scores
of all tokens of the vocabulary, and what the image encoder computes of one image. The numbers are meant for the largest
stimulus that an agent can be given, so that a batch of so many fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCORES = 12  # copies of the vocabulary's scores in float32 while a token is chosen, sorted ones among them
TILES = 5  # of a picture, where one is read in tiles and as a whole
TILED = ("llava_next",)
MATERIAL = ("git", "blip", "opt")  # whose attention writes down the weight of each token for each other
CROSSING = ("blip",)  # read the image beside the text; others read it before the text, as tokens
QUERIES = {"blip-2": 32}  # tokens that stand for an image, where they are not its patches


@dataclass(frozen=True, slots=True)
class Generation:
    """What is asked of a model for one stimulus: at most so many tokens of a ``prompt``, ``new`` ones, ``beams``."""

    prompt: int
    new: int
    beams: int = 1


def item_bytes(config: Mapping[str, Any], asked: Generation, number: int) -> int:
    """Bytes for one stimulus, where numbers take ``number`` bytes. ``config`` is that of transformers, whole."""
    kind = config["model_type"]
    text = {**config, **(config.get("text_config") or {})}
    vision = config.get("vision_config")
    patches = _patches(vision) if vision else 0
    image = QUERIES.get(kind, patches * (TILES if kind in TILED else 1))
    layers = _first(text, "decoder_layers", "num_hidden_layers", "n_layer")
    hidden = _first(text, "d_model", "hidden_size", "n_embd")
    heads = _first(text, "decoder_attention_heads", "num_attention_heads", "n_head")
    inner = _first(text, "decoder_ffn_dim", "ffn_dim", "intermediate_size", "n_inner", default=4 * hidden)
    key_values = (text.get("num_key_value_heads") or heads) * (text.get("head_dim") or hidden // heads)
    crossed = image if kind in CROSSING else asked.prompt if config.get("is_encoder_decoder") else 0
    own = asked.new + (0 if config.get("is_encoder_decoder") else asked.prompt + (0 if kind in CROSSING else image))
    rows = asked.beams
    kept = 2 * key_values * (own * rows + crossed) * number  # beams share what they read beside the text
    first = max(own - asked.new, 1)  # what is read at once
    layer = rows * first * (6 * hidden + 3 * inner) * number
    if kind in MATERIAL or text.get("model_type") in MATERIAL:
        layer += rows * heads * first * (first + crossed) * (4 + 2 * number)
    elif config.get("is_encoder_decoder"):
        layer = crossed * (6 * hidden + 3 * inner) * number
    cache = kept * (layers + 2)  # a layer's are copied when a token is added, and when beams change places
    scores = SCORES * 4 * rows * text["vocab_size"]
    return int(cache + layer + scores + (_encoder_bytes(vision, kind, number) if vision else 0))


def _patches(vision: Mapping[str, Any]) -> int:
    return int(vision["image_size"] // vision["patch_size"]) ** 2 + 1


def _encoder_bytes(vision: Mapping[str, Any], kind: str, number: int) -> int:
    """Of one image: its pixels as they came and as they are computed with, and what a layer makes of its patches."""
    tiles = TILES if kind in TILED else 1
    hidden, inner, patches = vision["hidden_size"], vision["intermediate_size"], _patches(vision)
    pixels = 3 * vision["image_size"] ** 2 * (4 + number)
    material = vision["num_attention_heads"] * patches**2 * (4 + number) if kind in MATERIAL else 0
    return int(tiles * (pixels + patches * (6 * hidden + 3 * inner) * number + material))


def _first(config: Mapping[str, Any], *names: str, default: int | None = None) -> int:
    """The first of these that the configuration has."""
    found = next((config[name] for name in names if config.get(name)), default)
    if found is None:
        raise KeyError(names[0])
    return int(found)
