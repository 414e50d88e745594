"""The sizes of an OFA model, as the config.json of the published checkpoints names them.

Wang et al. 2022, "OFA: Unifying Architectures, Tasks, and Modalities Through a Simple Sequence-to-Sequence Learning
Framework", table 1 and section 3.1.
"""

from __future__ import annotations

from typing import ClassVar

from transformers import PreTrainedConfig

# Blocks in the three stages of the image embedding; the fourth stage of the usual networks is left out.
RESNET_BLOCKS: dict[str, tuple[int, int, int]] = {
    "resnet50": (3, 4, 6),
    "resnet101": (3, 4, 23),
    "resnet152": (3, 8, 36),
}
IMAGE_CHANNELS = 1024  # what the third stage of any of them gives
PATCH = 16  # pixels of the image, in each direction, that become one position


class OFAConfig(PreTrainedConfig):
    """Defaults are those of the published config.json files; keys of training (dropout) are kept and not used.

    ``scale_heads`` and ``scale_resids`` are not in the published files: learned scales of the heads (which every
    published checkpoint has) and of the residual (which none has, though its code knows of them).
    """

    model_type: ClassVar[str] = "ofa"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["past_key_values"]
    attribute_map: ClassVar[dict[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }

    vocab_size: int = 59457
    d_model: int = 512
    encoder_layers: int = 4
    encoder_ffn_dim: int = 2048
    encoder_attention_heads: int = 8
    decoder_layers: int = 4
    decoder_ffn_dim: int = 2048
    decoder_attention_heads: int = 8
    max_position_embeddings: int = 1024
    resnet_type: str = "resnet101"
    token_bucket_size: int = 256
    image_bucket_size: int = 42
    attn_scale_factor: float = 2.0
    activation_function: str = "gelu"
    normformer: bool = True
    scale_heads: bool = True
    scale_resids: bool = False
    entangle_position_embedding: bool = False
    init_std: float = 0.02
    use_cache: bool = True
    pad_token_id: int = 1
    bos_token_id: int = 0
    eos_token_id: int = 2
    decoder_start_token_id: int = 0
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = False  # one matrix stands in the model once: there is nothing to tie
