"""Attention with several heads, for networks whose projections the authors' files keep apart."""

from torch import Tensor, nn


def attention(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    """[batch, n, width] to keys and values [batch, m, width]: [batch, n, width]."""
    parts = [part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value)]
    return nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
