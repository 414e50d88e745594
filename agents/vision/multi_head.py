"""Attention with several heads, for networks whose files keep the projections apart."""

from torch import Tensor, nn


def attention(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    """Scaled dot-product attention of ``query`` [batch, n, width] over ``key`` and ``value`` [batch, m, width], in
    ``heads`` equal parts of the width: [batch, n, width]."""
    parts = [part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value)]
    return nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
