"""The model of OFA beside a plain restatement of it, and its generation beside a plain beam search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import tiny_ofa
import torch
from plain_ofa import BOS, END, PAD, plain, plain_beams, token_bucket
from tiny_ofa import QUESTION, images, questions
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache, GenerationConfig, LogitsProcessorList

from agents.vision.ofa_network import OFAModel
from agents.vision.ofa_network import image_buckets, image_positions, token_buckets

MOST = 16


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads cost more than they bring for models this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model() -> OFAModel:
    return tiny_ofa.model(1)


def test_token_buckets_are_those_of_the_rule() -> None:
    steps = torch.arange(300)
    for size in (16, 256):
        found = token_buckets(steps, steps, size)
        for i in range(0, 300, 7):
            assert found[i].tolist() == [token_bucket(i - j, size) for j in range(300)]
        assert found.min() >= 0
        assert found.max() < 2 * size - 1
    assert torch.equal(token_buckets(steps[5:6], steps[:9], 16), token_buckets(steps[:9], steps[:9], 16)[5:6])


def test_image_buckets_tell_offsets_apart() -> None:
    size, height, width = 6, 3, 5
    positions = image_positions(height, width, size)
    places = [(row, column) for row in range(height) for column in range(width)]
    assert positions.tolist() == [row * size + column + 1 for row, column in places]
    buckets = image_buckets(positions, size)
    offsets: dict[int, set[tuple[int, int]]] = {}
    for i, (row, column) in enumerate(places):
        for j, (other_row, other_column) in enumerate(places):
            offsets.setdefault(int(buckets[i, j]), set()).add((row - other_row, column - other_column))
    assert all(len(same) == 1 for same in offsets.values())
    assert len(offsets) == (2 * height - 1) * (2 * width - 1)
    assert max(offsets) < (2 * size - 1) ** 2


# the model


def test_the_model_is_the_plain_one(model: OFAModel) -> None:
    pixels = images(2, 64, 80)
    tokens = torch.tensor([[BOS, 270, 301, 5, 290, 270, 9], [BOS, 9, 9, 311, 266, 17, 300]])
    with torch.inference_mode():
        encoded = model.encode(questions(2), pixels)
        assert encoded.last_hidden_state is not None
        logits = model(encoder_outputs=encoded, decoder_input_ids=tokens).logits
    slow = plain(model)
    for row in range(2):
        source = slow.encode(QUESTION, pixels[row])
        expected = slow.decode(tokens[row].tolist(), source)
        assert expected[:, : tiny_ofa.WORDS].std() > 1, "degenerate weights would prove nothing"
        assert (encoded.last_hidden_state[row] - source[0]).abs().max() < 1e-4
        assert (logits[row] - expected).abs().max() < 1e-4


def test_too_large_an_image_is_refused(model: OFAModel) -> None:
    with pytest.raises(ValueError, match="7 x 4 patches"):
        model.encode(questions(1), images(1, 112, 64))


def test_cached_steps_are_those_of_the_whole(model: OFAModel) -> None:
    tokens = torch.tensor([[BOS, 270, 301, 5, 290, 270, 9]] * 3)
    with torch.inference_mode():
        encoded = model.encode(questions(3), images(3))
        whole = model(encoder_outputs=encoded, decoder_input_ids=tokens).logits
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        steps = [
            model(
                encoder_outputs=encoded, decoder_input_ids=tokens[:, start:stop], past_key_values=cache, use_cache=True
            ).logits
            for start, stop in ((0, 2), (2, 3), (3, 4), (4, 7))
        ]
    assert (torch.cat(steps, 1) - whole).abs().max() < 1e-4


def beam_config(beams: int, returned: int) -> GenerationConfig:
    return GenerationConfig(
        do_sample=False,
        num_beams=beams,
        num_return_sequences=returned,
        max_new_tokens=MOST + 1,
        no_repeat_ngram_size=3,
        early_stopping=True,
        length_penalty=1.0,
        return_dict_in_generate=True,
        output_scores=True,
    )


def test_beam_search_is_fairseqs() -> None:
    """Against a search that knows of no batch, no cache and no transformers, in all ranks. With the second weights
    texts end early, on half the images more at one step than places are left."""
    count, beams = 8, 5
    lengths = set()
    for weights, seed in ((1, 3), (0, 4)):
        model, pixels = tiny_ofa.model(weights), images(count, seed=seed)
        with torch.inference_mode():
            done = model.generate(
                encoder_outputs=model.encode(questions(count), pixels),
                generation_config=beam_config(beams, beams),
                logits_processor=LogitsProcessorList([FairseqEnd(1, MOST, END, PAD, beams)]),
            )
            ranks = zip(done.sequences[:, 1:].tolist(), done.sequences_scores.tolist(), strict=True)
            for row in range(count):
                encoded = model.encode(questions(1), pixels[row : row + 1])

                def next_logits(tokens: tuple[int, ...], model: OFAModel = model, encoded: Any = encoded) -> Tensor:
                    found = model(encoder_outputs=encoded, decoder_input_ids=torch.tensor([tokens]))
                    return found.logits[0, -1].double()

                for score, said in plain_beams(next_logits, beams, MOST, 3):
                    tokens, own_score = next(ranks)
                    assert [token for token in tokens if token != PAD] == list(said)
                    assert own_score == pytest.approx(score, abs=1e-4)
                    lengths.add(len(said))
    assert MOST + 1 in lengths, "some sentence must run into the limit"
    assert len(lengths) > 1, "and some must end before"


def test_encoding_once_serves_beams_and_repeated_rows(model: OFAModel) -> None:
    pixels = images(2)
    with torch.inference_mode():
        encoded = model.encode(questions(2), pixels)
        direct = model.generate(questions(2), pixel_values=pixels, generation_config=beam_config(3, 1))
        chosen = model.generate(encoder_outputs=encoded.rows([1, 0, 1]), generation_config=beam_config(3, 1))
        again = model.generate(encoder_outputs=encoded.rows([0]), generation_config=beam_config(3, 1))
    said = [[token for token in row if token != PAD] for row in direct.sequences.tolist()]
    assert said[0] != said[1]
    assert [[token for token in row if token != PAD] for row in chosen.sequences.tolist()] == [
        said[1],
        said[0],
        said[1],
    ]
    assert again.sequences[0].tolist() == said[0]
