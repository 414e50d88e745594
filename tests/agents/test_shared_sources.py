"""Beams that share their item's source, against transformers' beams that have a copy each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tiny_language
import torch
from transformers import BlenderbotForConditionalGeneration, GenerationConfig

from agents.padding import shared_cache, shared_sources


def test_beams_say_the_same_and_their_source_is_looked_at_once(tmp_path: Path) -> None:
    model: Any = BlenderbotForConditionalGeneration.from_pretrained(tiny_language.blenderbot(tmp_path)).eval()
    model.generation_config = GenerationConfig()
    across = [layer.encoder_attn for layer in model.get_decoder().layers]
    projected: list[int] = []
    across[0].k_proj.register_forward_hook(lambda module, given, out: projected.append(len(out)))
    ids = torch.randint(5, 100, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 6:] = mask[2, 2:] = 0

    def say(**more: Any) -> list[list[int]]:
        config = GenerationConfig(
            num_beams=4, num_return_sequences=4, max_new_tokens=12, pad_token_id=0, eos_token_id=2,
            decoder_start_token_id=1, do_sample=False,
        )  # fmt: skip
        said: list[list[int]] = model.generate(ids, attention_mask=mask, generation_config=config, **more).tolist()
        return said

    with torch.inference_mode():
        expected = say()
        with shared_sources(across, "key_value_states", 4):
            assert say(past_key_values=shared_cache(model.config)) == expected
        assert say() == expected  # nothing is left behind
    assert projected == [12, 3, 12]  # rows, at the first step alone
    assert len({tuple(one) for one in expected}) > 6
