"""Memory that a batch takes beside the weights, reckoned from a model's configuration.

A model keeps keys and values of every token of every layer, for each beam. With them stand for a moment a layer's
results for a prompt, the scores of all tokens of the vocabulary, and the image encoder's results for an image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# The factors here and below count tensors that stand at once. tests/agents/models/test_model_memory.py compares the sum
# with what tensors of tiny models of all these kinds really take: it must be 0.9 to 4 times that. A change of a factor
# changes how many stimuli make a batch on a GPU, and no answer. scripts/check_gpu.py shows both figures on a real GPU.
SCORES = 12  # copies of the vocabulary's scores in float32 while a token is chosen, sorted ones among them
TILES = {"llava_next": 5}  # models that read so many parts of a picture
MATERIAL = frozenset({"git", "blip", "opt"})  # whose attention writes down the weight of each token for each other
CROSSING = ("blip",)  # read the image beside the text; others read it before the text, as tokens


def item_bytes(config: PreTrainedConfig, prompt: int, new: int, beams: int, number: int) -> int:
    """Bytes that one stimulus takes beside the weights, reckoned from a configuration of transformers: at most
    ``prompt`` tokens are read and ``new`` ones written in each of ``beams``, at ``number`` bytes a value. Raises
    AttributeError, TypeError or ArithmeticError for a model of another build."""
    text: Any = config.get_text_config(decoder=True)
    vision = getattr(config, "vision_config", None)
    is_pair = config.is_encoder_decoder
    is_crossing = config.model_type in CROSSING
    is_material = not MATERIAL.isdisjoint((config.model_type, text.model_type))
    image = 0
    encoder = 0
    if vision is not None:
        patches = (vision.image_size // vision.patch_size) ** 2 + 1
        tiles = TILES.get(config.model_type, 1)
        image = getattr(config, "num_query_tokens", patches * tiles)
        weights = vision.num_attention_heads * patches**2 * (4 + number) if config.model_type in MATERIAL else 0
        results = patches * (6 * vision.hidden_size + 3 * vision.intermediate_size) * number
        encoder = tiles * (3 * vision.image_size**2 * (4 + number) + results + weights)  # pixels as they came, too
    hidden = text.hidden_size
    heads = text.num_attention_heads
    width = 6 * hidden + 3 * getattr(text, "intermediate_size", 4 * hidden)
    head_size = getattr(text, "head_dim", None) or hidden // heads
    key_values = (getattr(text, "num_key_value_heads", None) or heads) * head_size
    # Tokens that are read at once, and those of a source that each of them attends to beside them.
    first = prompt + image
    crossed = 0
    if is_crossing:
        first = prompt
        crossed = image
    elif is_pair:
        crossed = prompt
    if is_pair:
        first = 1
    kept = 2 * key_values * ((first + new) * beams + crossed) * number  # beams share what they read beside the text
    layer = beams * first * width * number
    if is_material:
        layer += beams * heads * first * (first + crossed) * (4 + 2 * number)
    elif is_pair:
        layer = crossed * width * number
    cache = kept * (text.num_hidden_layers + 2)  # a layer's are copied when a token is added, and when beams move
    return int(cache + layer + SCORES * 4 * beams * text.vocab_size + encoder)
