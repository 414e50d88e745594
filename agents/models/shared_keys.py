"""Attention whose heads share keys and values in groups (Ainslie et al. 2023, "GQA"), without copies of these on a CPU.

transformers copies keys and values for each head of a group wherever there is a mask: some kernels of CUDA want it so.
torch's kernel for CPUs reads them in place, with the same results to the last bit. Of the time that SmolLM2-135M took
for words, a quarter went into the copies.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """The same as transformers' function of this signature: [rows, queries, heads, size] of ``query`` [rows, heads,
    queries, size], ``key`` and ``value`` [rows, groups, keys, size]. What has no mask, has further biases or
    is not on a CPU is left to the library."""
    has_groups = getattr(module, "num_key_value_groups", 1) > 1 and key.shape[-1] == value.shape[-1]
    is_plain = options.get("position_bias") is None and not options.get("output_attentions", False)
    if query.device.type != "cpu" or attention_mask is None or not (has_groups and is_plain):
        left: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, **options
        )
        return left
    mixed = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=attention_mask, dropout_p=dropout, scale=scaling, enable_gqa=True
    )
    return mixed.transpose(1, 2).contiguous(), None


def share_keys() -> None:
    """Take :func:`attention` for transformers' "sdpa", in all models of this process."""
    AttentionInterface.register("sdpa", attention)
