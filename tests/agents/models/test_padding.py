"""Masks that are made here, and beams that share their item's source, against those of transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    BlenderbotForConditionalGeneration,
    GenerationConfig,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OPTConfig,
    OPTForCausalLM,
)

from agents.models.padding import padded, ready_masks, shared_cache, shared_sources
from tests.helpers import tiny_language

CPU = torch.device("cpu")
PROMPTS = [[5, 6, 7, 8, 9, 10, 11], [12, 13], [14, 15, 16, 17]]
SIZES = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


def opt() -> Any:
    return OPTForCausalLM(OPTConfig(**SIZES, ffn_dim=32, word_embed_proj_dim=32))


def mistral(window: int | None) -> Any:
    return MistralForCausalLM(
        MistralConfig(**SIZES, intermediate_size=32, num_key_value_heads=2, sliding_window=window)
    )


MODELS = {
    "gpt2": lambda folder: GPT2LMHeadModel.from_pretrained(tiny_language.gpt2(folder)),
    "llama": lambda folder: LlamaForCausalLM.from_pretrained(tiny_language.llama(folder)),
    "blenderbot": lambda folder: BlenderbotForConditionalGeneration.from_pretrained(tiny_language.blenderbot(folder)),
    "opt": lambda folder: opt(),
    "mistral": lambda folder: mistral(None),
    "mistral, a window": lambda folder: mistral(4),  # shorter than the texts
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beams", [1, 2])
def test_nothing_else_comes_out(name: str, beams: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model: Any = MODELS[name](tmp_path).eval()
    side: Any = "right" if model.config.is_encoder_decoder else "left"
    for prompts in (PROMPTS, [PROMPTS[0]] * 3):
        ids, mask, is_padded = padded(prompts, 1, CPU, side=side)
        assert is_padded == bool((mask == 0).any())

        def say(ids: Any = ids, mask: Any = mask) -> Any:
            config = GenerationConfig(
                max_new_tokens=6,
                min_new_tokens=6,
                num_beams=beams,
                do_sample=False,
                pad_token_id=1,
                eos_token_id=2,
                decoder_start_token_id=1,
                output_logits=True,
                return_dict_in_generate=True,
            )
            return model.generate(input_ids=ids, attention_mask=mask, generation_config=config)

        with torch.inference_mode():
            expected = say()
            with ready_masks(model, padded=is_padded):
                found = say()
        assert torch.equal(found.sequences, expected.sequences)
        for one, other in zip(found.logits, expected.logits, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


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
            num_beams=4,
            num_return_sequences=4,
            max_new_tokens=12,
            pad_token_id=0,
            eos_token_id=2,
            decoder_start_token_id=1,
            do_sample=False,
        )
        said: list[list[int]] = model.generate(ids, attention_mask=mask, generation_config=config, **more).tolist()
        return said

    with torch.inference_mode():
        expected = say()
        with shared_sources(across, "key_value_states", 4):
            assert say(past_key_values=shared_cache(model.config)) == expected
        assert say() == expected  # nothing is left behind
    assert projected == [12, 3, 12]  # rows, at the first step alone
    assert len({tuple(one) for one in expected}) > 6
