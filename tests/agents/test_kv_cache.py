"""The cache for texts holds what transformers' own would, and ``generate`` says the same with either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny_language
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, DynamicCache, LlamaConfig, MistralConfig
from transformers.cache_utils import DynamicLayer

from agents.kv_cache import ROOM, SeenLayer, TextLayer, text_cache, text_cache_beside_encoder

TEXTS, BEAMS, HEADS, SIZE = 3, 4, 2, 5


def states(generator: torch.Generator, rows: int, length: int) -> torch.Tensor:
    return torch.randn(rows, HEADS, length, SIZE, generator=generator)


@pytest.mark.parametrize("prompt", [1, 7])
@pytest.mark.parametrize("step", [1, 3])
def test_a_layer_holds_what_transformers_does_while_beams_change_places(prompt: int, step: int) -> None:
    draws = torch.Generator().manual_seed(prompt)
    ours, theirs = TextLayer(), DynamicLayer()
    assert ours.get_seq_length() == 0
    for at in range(2 * ROOM // step + 2):  # room is made twice
        rows = TEXTS * BEAMS
        if at == 0:  # the beams of a text begin with one prompt
            given = [states(draws, TEXTS, prompt).repeat_interleave(BEAMS, 0) for _ in range(2)]
        else:
            given = [states(draws, rows, step) for _ in range(2)]
        found, expected = ours.update(*given), theirs.update(*given)
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one, other)
        assert ours.get_seq_length() == theirs.get_seq_length()
        assert ours.get_mask_sizes(3) == theirs.get_mask_sizes(3)
        chosen = torch.randint(BEAMS, (TEXTS, BEAMS), generator=draws) + BEAMS * torch.arange(TEXTS)[:, None]
        ours.reorder_cache(chosen.flatten())
        theirs.reorder_cache(chosen.flatten())
    assert torch.equal(ours.update(*given)[0], theirs.update(*given)[0])
    ours.reset()
    assert ours.get_seq_length() == 0
    assert torch.equal(ours.update(*given)[0], given[0])


def test_what_an_encoder_saw_stays_where_it_is() -> None:
    layer, seen = SeenLayer(), states(torch.Generator().manual_seed(0), 4, 3)
    layer.update(seen, seen)
    layer.reorder_cache(torch.tensor([1, 0, 3, 3]))
    assert layer.keys is not None
    assert torch.equal(layer.keys, seen)


def test_layers_that_forget_are_transformers_own() -> None:
    config = MistralConfig(num_hidden_layers=2, sliding_window=8)
    assert [type(one) for one in text_cache(config).layers] == [type(one) for one in DynamicCache(config=config).layers]
    assert TextLayer not in [type(one) for one in text_cache(config).layers]
    assert {type(one) for one in text_cache(LlamaConfig(num_hidden_layers=2)).layers} == {TextLayer}


@pytest.mark.parametrize("name", ["gpt2", "llama", "blenderbot"])
@pytest.mark.parametrize("options", [{"num_beams": 3, "num_return_sequences": 2}, {"do_sample": True, "top_k": 0}])
def test_generate_says_the_same(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    folder = getattr(tiny_language, name)(tmp_path)
    encodes = name == "blenderbot"
    model: Any = (AutoModelForSeq2SeqLM if encodes else AutoModelForCausalLM).from_pretrained(folder).eval()
    tokens = torch.randint(6, model.config.vocab_size, (3, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(tokens)
    mask[0, 6:] = 0  # a shorter prompt, padded
    if not encodes:
        mask = mask.flip(1)
    more = {"max_new_tokens": ROOM + 10, "min_new_tokens": ROOM + 10, "max_length": None, "min_length": None}
    said = []
    for cache in (None, (text_cache_beside_encoder if encodes else text_cache)(model.config)):
        torch.manual_seed(7)
        given = {} if cache is None else {"past_key_values": cache}
        said.append(model.generate(tokens, attention_mask=mask, **given, **more, **options))
    assert torch.equal(*said)
