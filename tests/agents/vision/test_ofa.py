"""OFA: the network beside a plain restatement, beam search beside fairseq's, the agent's answers, and bad files."""

from __future__ import annotations

import json
import math
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mixed_images
import numpy as np
import pytest
import tiny_ofa
import torch
from mixed_images import captions, prepared
from PIL import Image as PILImage
from plain_ofa import BOS, END, PAD, plain, plain_beams
from tiny_ofa import QUESTION, questions
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache

from agents.contract import Draw
from agents.errors import UnavailableError
from agents.vision import ofa_fairseq
from agents.vision.ofa_fairseq import load_tokenizer
from agents.vision.ofa_network import OFAModel

pytestmark = pytest.mark.usefixtures("one_thread")

SIDE = 64  # pixels: 4 x 4 patches
MOST = 16


@pytest.fixture(scope="module")
def model() -> OFAModel:
    return tiny_ofa.model(1)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, model: OFAModel) -> Path:
    return tiny_ofa.fairseq_file(tmp_path_factory.mktemp("ofa") / "caption_huge_best.pt", model)


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_ofa.dictionary(tmp_path_factory.mktemp("dictionary"))


# the network


def test_the_model_is_the_plain_model_with_and_without_a_cache(model: OFAModel) -> None:
    pixels = tiny_ofa.images(2, 64, 80)
    tokens = torch.tensor([[BOS, 270, 301, 5, 290, 270, 9], [BOS, 9, 9, 311, 266, 17, 300]])
    with torch.inference_mode():
        encoded = model.encoder(questions(2), pixels)
        logits = model(encoded, tokens).logits
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        steps = [
            model(encoded, tokens[:, start:stop], past_key_values=cache).logits
            for start, stop in ((0, 2), (2, 3), (3, 4), (4, 7))
        ]
    assert (torch.cat(steps, 1) - logits).abs().max() < 1e-4
    slow = plain(model)
    for row in range(2):
        source = slow.encode(QUESTION, pixels[row])
        expected = slow.decode(tokens[row].tolist(), source)
        assert expected[:, : tiny_ofa.WORDS].std() > 1, "degenerate weights would prove nothing"
        assert encoded.last_hidden_state is not None
        assert (encoded.last_hidden_state[row] - source[0]).abs().max() < 1e-4
        assert (logits[row] - expected).abs().max() < 1e-4


def next_logits(model: OFAModel, pixels: Tensor, question: Sequence[int]) -> Callable[[tuple[int, ...]], Tensor]:
    """The logits after a text about an image [3, height, width], by the network without a cache."""
    with torch.inference_mode():
        encoded = model.encoder(torch.tensor([question]), pixels[None])
    return lambda tokens: model(encoded, torch.tensor([tokens])).logits[0, -1].double()


# the agent


def make(checkpoint: Path, dictionary: Path, **settings: Any) -> Any:
    chosen = {"checkpoint": str(checkpoint), "dictionary": str(dictionary), "image_size": SIDE, **settings}
    return mixed_images.loaded("ofa-huge", **chosen)


def words(tokenizer: Any, tokens: Sequence[int]) -> str:
    text: str = tokenizer.decode([token for token in tokens if token not in tokenizer.all_special_ids])
    return " ".join(text.split())


def test_texts_are_tokens_of_the_dictionary_and_back(dictionary: Path) -> None:
    tokenizer = load_tokenizer(dictionary)
    first = len(json.loads((dictionary / "vocab.json").read_text()))
    assert len(tokenizer) == tiny_ofa.ROWS == first + 9192
    for text in (" what does the image describe?", " a man", "Größe: 5 µm 🙂"):
        ids = tokenizer(text)["input_ids"]
        assert (ids[0], ids[-1]) == (BOS, END)
        assert tokenizer.decode(ids[1:-1]) == text
        assert max(ids) < first
    named = tokenizer.convert_tokens_to_ids(["<code_0>", "<code_8191>", "<bin_0>", "<bin_999>"])
    assert named == [first, first + 8191, first + 8192, first + 9191]


def test_the_answer_is_the_plain_models(file: Path, dictionary: Path, model: OFAModel, images: list[Path]) -> None:
    """From the image file to the words, with nothing but Pillow, the dictionary and the plain model; greedy."""
    agent = make(file, dictionary, beams=1, no_repeat_ngram=0)
    [(answer, _)] = captions(agent, prepared(agent, images[:1]))
    tokenizer = load_tokenizer(dictionary)
    squeezed = PILImage.open(images[0]).resize((SIDE, SIDE), PILImage.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.asarray(squeezed) / 127.5 - 1).permute(2, 0, 1)
    slow = plain(model)
    source = slow.encode(tokenizer(" what does the image describe?")["input_ids"], pixels)
    tokens: list[int] = []
    while len(tokens) < MOST:
        logits = slow.decode([BOS, *tokens], source)[-1]
        logits[[PAD, END] if not tokens else [PAD]] = -math.inf
        token = int(logits.argmax())
        if token == END:
            break
        tokens.append(token)
    assert answer.tokens == len(tokens)
    assert answer.finish == ("length" if len(tokens) == MOST else "end")
    bare = words(tokenizer, tokens).translate(str.maketrans("", "", string.punctuation))
    assert answer.text == " ".join(bare.split())


@pytest.mark.parametrize(("seed", "temperature", "penalty"), [(1, 0.5, 1.5), (0, 1.0, 1.0)])
def test_beam_search_is_fairseqs(
    seed: int, temperature: float, penalty: float, tmp_path: Path, dictionary: Path
) -> None:
    """Against a search that knows of no batch, no cache and no transformers, in all ranks. With the second weights
    texts end early, at times more at one step than places are left."""
    model, beams = tiny_ofa.model(seed), 5
    file = tiny_ofa.fairseq_file(tmp_path / "caption_huge_best.pt", model)
    chosen = {"temperature": temperature, "length_penalty": penalty, "strip_punctuation": False}
    agent = make(file, dictionary, beams=beams, **chosen)
    for number, image in enumerate(tiny_ofa.images(6, seed=3 + (seed == 0))):
        pixels = ((image + 1) * 127.5).round().byte().permute(1, 2, 0).numpy()
        PILImage.fromarray(pixels).save(tmp_path / f"{number}.png")
    items = prepared(agent, sorted(tmp_path.glob("*.png")))
    draws = [Draw(seed=1, sample=rank) for _ in items for rank in range(beams)]
    answers = iter(captions(agent, [item for item in items for _ in range(beams)], draws))
    tokenizer, lengths = load_tokenizer(dictionary), set()
    question = tokenizer(" what does the image describe?")["input_ids"]
    for item in items:
        with torch.inference_mode():
            logits = next_logits(model, item["pixel_values"], question)
            ranks = plain_beams(logits, beams, MOST, 3, temperature, penalty)
        for score, tokens in ranks:
            answer, _ = next(answers)
            assert answer.score == pytest.approx(score, abs=2e-4)
            assert answer.text == words(tokenizer, tokens)
            lengths.add(len(tokens))
    assert next(answers, None) is None
    assert min(lengths) <= MOST


# what is missing, and what may not pass for a checkpoint


def test_another_dictionary_is_refused(tmp_path: Path, file: Path) -> None:
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    for vocabulary, match in (('{"<s>": 0', "damaged"), ('{"<s>": 0}', r"has \d+ tokens, .* ")):
        (tmp_path / "vocab.json").write_text(vocabulary)
        with pytest.raises(UnavailableError, match=match):
            make(file, tmp_path)


def test_weights_that_do_not_fit_are_named(file: Path, tmp_path: Path) -> None:
    weights = torch.load(file, weights_only=False)["model"]
    del weights["decoder.layers.1.encoder_attn.k_proj.weight"]
    torch.save({"model": weights}, tmp_path / "changed.pt")
    with pytest.raises(UnavailableError, match=r"decoder\.layers\.1\.cross_attn\.k_proj\.weight"):
        ofa_fairseq.load(tmp_path / "changed.pt")


def test_damaged_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.pt"
    path.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(UnavailableError, match="cannot be read"):
        ofa_fairseq.load(path)
    for content in ({"weights": {}}, {"model": [1]}, {"model": {"a": torch.ones(1)}}):
        torch.save(content, path)
        with pytest.raises(UnavailableError, match=r"no tensors by name|weights are missing"):
            ofa_fairseq.load(path)
