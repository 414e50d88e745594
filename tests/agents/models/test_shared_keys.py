"""Attention without copies of keys, against that of transformers, which copies them."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from agents.models.shared_keys import attention


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["none", "bool", "numbers"])
@pytest.mark.parametrize(("queries", "keys"), [(1, 70), (13, 70), (70, 70)])
@pytest.mark.parametrize("groups", [1, 3])
def test_the_same_comes_out(groups: int, queries: int, keys: int, kind: str, dtype: torch.dtype) -> None:
    chance = torch.Generator().manual_seed(1)
    query = torch.randn(4, 6, queries, 16, generator=chance).to(dtype)
    key, value = (torch.randn(4, 6 // groups, keys, 16, generator=chance).to(dtype) for _ in range(2))
    seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries).repeat(4, 1, 1, 1)
    seen[1, :, :, 1:9] = False
    masks: dict[str, Any] = {
        "none": None,
        "bool": seen,
        "numbers": torch.zeros_like(seen, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min),
    }
    module: Any = SimpleNamespace(num_key_value_groups=groups, is_causal=True)
    given = (module, query, key, value, masks[kind])
    mixed, nothing = attention(*given, scaling=0.3)
    expected, _ = sdpa_attention_forward(*given, scaling=0.3)
    assert nothing is None
    assert mixed.shape == (4, queries, 6, 16)
    torch.testing.assert_close(mixed, expected)
