"""The parts of OFA (Wang et al. 2022, section 3.1): sizes, image embedding, relative positions, attention, layers.

A layer is a pre-norm transformer layer with NormFormer's additions (Shleifer et al. 2021): a norm after each
attention, one inside the feed-forward part, and a learned factor per head. Positions enter the attention alone, as a
bias that does not depend on the batch: the product of projected position embeddings, and a learned number per layer,
head and bucket of relative position.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.models.resnet import Bottleneck, ResNet
from transformers import Cache, PreTrainedConfig

# Blocks in the three stages of the image embedding; the fourth stage of the usual networks is left out.
RESNET_BLOCKS: dict[str, tuple[int, int, int]] = {
    "resnet50": (3, 4, 6),
    "resnet101": (3, 4, 23),
    "resnet152": (3, 8, 36),
}
IMAGE_CHANNELS = 1024  # what the third stage of any of them gives
SCALE_FACTOR = 2  # attention has two addends, content and position; "attn_scale_factor" of the published files
LOG_REACH = 1024  # the distance at which the last token bucket ends, whatever the number of positions


class OFAConfig(PreTrainedConfig):
    """The sizes of an OFA model, as the published config.json files name them (table 1 of the paper)."""

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
    use_cache: bool = True
    pad_token_id: int = 1
    bos_token_id: int = 0
    eos_token_id: int = 2
    decoder_start_token_id: int = 0
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = False  # one matrix stands in the model once: there is nothing to tie


class ImageEmbedding(ResNet):  # type: ignore[misc]
    """The first three stages of torchvision's ResNet: [B, 3, H, W] -> [B, 1024, H / 16, W / 16], rounded up."""

    def __init__(self, kind: str) -> None:
        super().__init__(Bottleneck, [*RESNET_BLOCKS[kind], 1])
        del self.layer4, self.avgpool, self.fc

    def forward(self, images: Tensor) -> Tensor:
        stem = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        embedded: Tensor = self.layer3(self.layer2(self.layer1(stem)))
        return embedded


def token_buckets(queries: Tensor, keys: Tensor, size: int) -> Tensor:
    """Bucket of each relative position, [q, k], from 0 to 2 x ``size`` - 2.

    One bucket per distance up to half of ``size``, then by the logarithm of the distance.
    """
    relative = queries[:, None] - keys[None, :]
    middle = size // 2
    distance = torch.where(relative.abs() < middle, middle - 1, relative.abs())
    steps = torch.log(distance / middle) / math.log((LOG_REACH - 1) / middle) * (middle - 1)
    far = (torch.ceil(steps).to(torch.int64) + middle) * torch.sign(relative)
    return torch.where(distance <= middle, relative, far) + size - 1


def image_positions(height: int, width: int, size: int, device: torch.device | None = None) -> Tensor:
    """Position of each patch of a ``height`` x ``width`` grid, row by row, in the grid of ``size`` x ``size`` that the
    model has embeddings for; 0 is not an image position."""
    rows, columns = (torch.arange(side, device=device) for side in (height, width))
    return (rows[:, None] * size + columns[None, :]).flatten() + 1


def image_buckets(positions: Tensor, size: int) -> Tensor:
    """Bucket of each pair of image positions, [n, n]: one per offset in rows and in columns."""
    rows, columns = (positions - 1) // size, (positions - 1) % size
    down = rows[:, None] - rows[None, :] + size - 1
    right = columns[:, None] - columns[None, :] + size - 1
    return down * (2 * size - 1) + right


def bucket_bias(table: nn.Module, buckets: Tensor) -> Tensor:
    """[q, k] buckets, of each of which ``table`` has one number per head -> [1, heads, q, k]."""
    bias: Tensor = table(buckets)
    return bias.permute(2, 0, 1)[None]


def split_heads(states: Tensor, heads: int) -> Tensor:
    """[B, n, D] -> [B, heads, n, D / heads]."""
    return states.view(*states.shape[:2], heads, -1).transpose(1, 2)


def position_bias(queries: Tensor, keys: Tensor, heads: int) -> Tensor:
    """Products of projected position embeddings [1, q, D] and [1, k, D], as attention adds them: [1, heads, q, k]."""
    scale = float(queries.shape[2] / heads * SCALE_FACTOR) ** -0.5
    return torch.matmul(split_heads(queries, heads) * scale, split_heads(keys, heads).transpose(2, 3))


class Source:
    """What the decoder attends to, each image once: all its beams and samples share these keys and values.

    ``states`` [B, S, D]; ``positions`` [1, S, D], the same for all images. What the decoder's layers project of them is
    kept in ``keys`` (by layer) and ``position_keys``.
    """

    def __init__(self, states: Tensor, positions: Tensor) -> None:
        self.states = states
        self.positions = positions
        self.keys: dict[int, tuple[Tensor, Tensor]] = {}
        self.position_keys: Tensor | None = None


class Attention(nn.Module):
    """Attention with an additive bias and a learned factor per head. ``layer`` is its place in the decoder's cache."""

    def __init__(self, width: int, heads: int, layer: int = 0) -> None:
        super().__init__()
        self.heads = heads
        self.layer = layer
        self.scale = float(width // heads * SCALE_FACTOR) ** -0.5
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)
        self.c_attn = nn.Parameter(torch.ones(heads))

    def forward(self, states: Tensor, bias: Tensor, cache: Cache | None = None) -> Tensor:
        """To itself, and to what the cache holds: [B, q, D] -> [B, q, D]; ``bias`` [1, heads, q, k]."""
        key, value = self._keys(states)
        if cache is not None:
            key, value = cache.update(key, value, self.layer)
        return self._out(self._mix(split_heads(self.q_proj(states), self.heads), key, value, bias))

    def attend(self, states: Tensor, bias: Tensor, source: Source) -> Tensor:
        """To the source: [B x n, q, D] -> [B x n, q, D]; ``bias`` [1, heads, 1 or n x q, S].

        The n rows of one image stand together. They are so many more queries to the same keys.
        """
        if self.layer not in source.keys:
            source.keys[self.layer] = self._keys(source.states)
        key, value = source.keys[self.layer]
        query = split_heads(self.q_proj(states), self.heads).unflatten(0, (len(key), -1))
        mixed = self._mix(query.transpose(1, 2).flatten(2, 3), key, value, bias)
        return self._out(mixed.unflatten(2, (-1, states.shape[1])).transpose(1, 2).flatten(0, 1))

    def _keys(self, states: Tensor) -> tuple[Tensor, Tensor]:
        return split_heads(self.k_proj(states), self.heads), split_heads(self.v_proj(states), self.heads)

    def _mix(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=self.scale)
        return mixed * self.c_attn[None, :, None, None]

    def _out(self, mixed: Tensor) -> Tensor:
        out: Tensor = self.out_proj(mixed.transpose(1, 2).flatten(2))
        return out


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each normed before and inside or after, around which the input is added."""

    def __init__(self, width: int, heads: int, inner: int, layer: int = 0) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)
        self.ffn_layer_norm = nn.LayerNorm(inner)
        self.final_layer_norm = nn.LayerNorm(width)
        self.self_attn = Attention(width, heads, layer)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.self_attn_mid_layer_norm = nn.LayerNorm(width)

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        return self.feed_forward(self.attend_itself(states, bias))

    def attend_itself(self, states: Tensor, bias: Tensor, cache: Cache | None = None) -> Tensor:
        attended = self.self_attn(self.self_attn_layer_norm(states), bias, cache)
        return states + self.self_attn_mid_layer_norm(attended)  # type: ignore[no-any-return]

    def feed_forward(self, states: Tensor) -> Tensor:
        inner = F.gelu(self.fc1(self.final_layer_norm(states)))
        return states + self.fc2(self.ffn_layer_norm(inner))  # type: ignore[no-any-return]


class DecoderLayer(EncoderLayer):
    """An encoder's layer, with attention to the encoder's states before the feed-forward part."""

    def __init__(self, width: int, heads: int, inner: int, layer: int) -> None:
        super().__init__(width, heads, inner, layer)
        self.cross_attn = Attention(width, heads, layer)
        self.cross_attn_layer_norm = nn.LayerNorm(width)
        self.cross_attn_mid_layer_norm = nn.LayerNorm(width)

    def decode(self, states: Tensor, bias: Tensor, source: Source, source_bias: Tensor, cache: Cache | None) -> Tensor:
        states = self.attend_itself(states, bias, cache)
        attended = self.cross_attn.attend(self.cross_attn_layer_norm(states), source_bias, source)
        return self.feed_forward(states + self.cross_attn_mid_layer_norm(attended))
