"""Attention and layers of OFA, and where tokens and image patches stand to each other.

A layer is a pre-norm transformer layer with NormFormer's additions (Shleifer et al. 2021): a norm after each attention
(``scale_attn``), one inside the feed-forward part (``scale_fc``), and a learned factor per head (``scale_heads``).
Positions enter the attention alone, as a bias that does not depend on the batch: the product of projected position
embeddings, and a learned number per layer, head and bucket of relative position (OFA, section 3.1).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import Cache
from transformers.activations import ACT2FN

from agents.vision.models.ofa_config import OFAConfig

LOG_REACH = 1024  # the distance at which the last token bucket ends, whatever the number of positions


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


def image_positions(height: int, width: int, size: int) -> Tensor:
    """Position of each patch of a ``height`` x ``width`` grid, row by row, in the grid of ``size`` x ``size`` that the
    model has embeddings for; 0 is not an image position."""
    rows = torch.arange(height)[:, None]
    return (rows * size + torch.arange(width)[None, :]).flatten() + 1


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


def position_bias(queries: Tensor, keys: Tensor, heads: int, factor: float) -> Tensor:
    """Products of projected position embeddings [1, q, D] and [1, k, D], as attention adds them: [1, heads, q, k]."""
    scale = float(queries.shape[2] / heads * factor) ** -0.5
    return torch.matmul(split_heads(queries, heads) * scale, split_heads(keys, heads).transpose(2, 3))


class Source:
    """What the decoder attends to, each image once, whatever number of beams or samples there is of it.

    ``states`` [B, S, D]; ``positions`` [1, S, D], the same for all rows; ``padding`` [B, S], True at padding, or None.
    What the decoder's layers project of them is kept in ``keys`` (by layer) and ``position_keys``.
    """

    def __init__(self, states: Tensor, positions: Tensor, padding: Tensor | None) -> None:
        self.states = states
        self.positions = positions
        self.padding = padding
        self.keys: dict[int, tuple[Tensor, Tensor]] = {}
        self.position_keys: Tensor | None = None

    def repeats(self, rows: int) -> int:
        """How many of the decoder's ``rows`` attend to each row here: they stand together, as generate puts them."""
        if rows % len(self.states):
            raise ValueError(f"{rows} rows to decode from {len(self.states)} that were encoded")
        return rows // len(self.states)


class Attention(nn.Module):
    """Attention with an additive bias and a learned factor per head.

    ``layer`` is its place in a cache: the encoder's have none. The scale is 1 / sqrt(head size x attn_scale_factor),
    the factor standing for the number of addends (content, and position).
    """

    def __init__(self, config: OFAConfig, heads: int, layer: int = 0) -> None:
        super().__init__()
        self.heads = heads
        self.layer = layer
        self.scale = float(config.d_model // heads * config.attn_scale_factor) ** -0.5
        self.k_proj = nn.Linear(config.d_model, config.d_model)
        self.v_proj = nn.Linear(config.d_model, config.d_model)
        self.q_proj = nn.Linear(config.d_model, config.d_model)
        self.out_proj = nn.Linear(config.d_model, config.d_model)
        self.c_attn = nn.Parameter(torch.ones(heads)) if config.scale_heads else None

    def forward(self, states: Tensor, bias: Tensor, cache: Cache | None = None) -> Tensor:
        """To itself, and to what the cache holds: [B, q, D] -> [B, q, D]; ``bias`` [1 or B, heads, q, k]."""
        key, value = self._keys(states)
        if cache is not None:
            key, value = cache.update(key, value, self.layer)
        return self._out(self._mix(split_heads(self.q_proj(states), self.heads), key, value, bias))

    def attend(self, states: Tensor, bias: Tensor, source: Source) -> Tensor:
        """To the source: [B x n, q, D] -> [B x n, q, D]; ``bias`` [1 or B, heads, 1 or n x q, S].

        The n rows of one image are so many more queries to the same keys, which are never repeated.
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
        return mixed if self.c_attn is None else mixed * self.c_attn[None, :, None, None]

    def _out(self, mixed: Tensor) -> Tensor:
        out: Tensor = self.out_proj(mixed.transpose(1, 2).flatten(2))
        return out


class FeedForward(nn.Module):
    """What encoder and decoder layers share: the feed-forward part. The layers inherit from it, because the published
    names of its weights stand directly in the layer."""

    def __init__(self, config: OFAConfig, inner: int) -> None:
        super().__init__()
        self.activation = ACT2FN[config.activation_function]
        self.fc1 = nn.Linear(config.d_model, inner)
        self.fc2 = nn.Linear(inner, config.d_model)
        self.ffn_layer_norm = nn.LayerNorm(inner) if config.normformer else nn.Identity()
        self.final_layer_norm = nn.LayerNorm(config.d_model)
        self.w_resid = nn.Parameter(torch.ones(config.d_model)) if config.scale_resids else None

    def feed_forward(self, states: Tensor) -> Tensor:
        inner = self.activation(self.fc1(self.final_layer_norm(states)))
        out: Tensor = self.fc2(self.ffn_layer_norm(inner))
        return (states if self.w_resid is None else states * self.w_resid) + out


class EncoderLayer(FeedForward):
    """Self-attention and feed-forward, each normed before and after, around which the input is added."""

    def __init__(self, config: OFAConfig) -> None:
        super().__init__(config, config.encoder_ffn_dim)
        self.self_attn = Attention(config, config.encoder_attention_heads)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.self_attn_mid_layer_norm = nn.LayerNorm(config.d_model) if config.normformer else nn.Identity()

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        attended = self.self_attn(self.self_attn_layer_norm(states), bias)
        return self.feed_forward(states + self.self_attn_mid_layer_norm(attended))


class DecoderLayer(FeedForward):
    """Self-attention, attention to the encoder's states, and feed-forward."""

    def __init__(self, config: OFAConfig, layer: int) -> None:
        super().__init__(config, config.decoder_ffn_dim)
        self.self_attn = Attention(config, config.decoder_attention_heads, layer)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.self_attn_mid_layer_norm = nn.LayerNorm(config.d_model) if config.normformer else nn.Identity()
        self.cross_attn = Attention(config, config.decoder_attention_heads, layer)
        self.cross_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.cross_attn_mid_layer_norm = nn.LayerNorm(config.d_model) if config.normformer else nn.Identity()

    def forward(self, states: Tensor, bias: Tensor, source: Source, source_bias: Tensor, cache: Cache | None) -> Tensor:
        attended = self.self_attn(self.self_attn_layer_norm(states), bias, cache=cache)
        states = states + self.self_attn_mid_layer_norm(attended)
        attended = self.cross_attn.attend(self.cross_attn_layer_norm(states), source_bias, source)
        return self.feed_forward(states + self.cross_attn_mid_layer_norm(attended))
