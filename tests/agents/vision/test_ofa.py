"""OFA: the network beside a plain restatement, beam search beside fairseq's, the agent's answers, and bad files."""

import json
import math
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as PILImage
from torch import Tensor
from torch.nn import functional
from transformers import DynamicCache, EncoderDecoderCache

from agents.contract import Draw
from agents.errors import UnavailableError
from agents.vision.ofa_fairseq import load_ofa, load_tokenizer
from agents.vision.ofa_network import OFAModel
from tests.helpers import mixed_images, tiny_ofa
from tests.helpers.mixed_images import captions, prepared
from tests.helpers.plain_captioners import resnet
from tests.helpers.tiny_ofa import QUESTION, questions

SIDE = 64  # pixels: 4 x 4 patches
MOST = 16
BOS = 0
PAD = 1
END = 2


# OFA restated plainly, from the names of its weights: float64, a row at a time, no cache, no masks


class Plain:
    """OFA from the weights of a transformers-style file, in float64, one row at a time."""

    def __init__(self, weights: dict[str, Tensor], heads: tuple[int, int], side: int, buckets: int) -> None:
        self.w = {name: values.double() for name, values in weights.items() if values.is_floating_point()}
        self.heads = dict(zip(("encoder", "decoder"), heads, strict=True))
        self.side = side
        self.buckets = buckets

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, name: str, x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True)
        x = x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        return x * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(len(x), heads, -1)

    def attend(self, name: str, x: Tensor, seen: Tensor, bias: Tensor) -> Tensor:
        """One row: [q, D] and [k, D] -> [q, D]; ``bias`` [heads, q, k]."""
        heads = len(bias)
        q, k, v = (
            self.split(self.linear(f"{name}.{part}_proj", y), heads)
            for part, y in zip("qkv", (x, seen, seen), strict=True)
        )
        scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(2 * q.shape[2]) + bias
        mixed = torch.einsum("hqk,khd,h->qhd", scores.softmax(2), v, self.w[f"{name}.c_attn"])
        return self.linear(f"{name}.out_proj", mixed.flatten(1))

    def feed(self, name: str, x: Tensor) -> Tensor:
        y = functional.gelu(self.linear(f"{name}.fc1", self.norm(f"{name}.final_layer_norm", x)))
        return x + self.linear(f"{name}.fc2", self.norm(f"{name}.ffn_layer_norm", y))

    def products(self, half: str, kind: str, x: Tensor, y: Tensor) -> Tensor:
        heads = self.heads[half]
        q = self.split(self.linear(f"{half}.{kind}q_linear", x), heads)
        k = self.split(self.linear(f"{half}.{kind}k_linear", y), heads)
        return torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(2 * q.shape[2])

    def token_bias(self, half: str, layer: int, length: int) -> Tensor:
        table = self.w[f"{half}.token_rel_pos_table_list.{layer}.weight"]
        return torch.stack(
            [torch.stack([table[token_bucket(i - j, self.buckets)] for j in range(length)]) for i in range(length)]
        ).permute(2, 0, 1)

    def encode(self, ids: Sequence[int], pixels: Tensor) -> tuple[Tensor, Tensor]:
        patches = resnet(self.w, pixels[None].double(), (3, 4, 6), "encoder.embed_images.", caffe=False)[0]
        height, width = patches.shape[1:]
        places = [(row, column) for row in range(height) for column in range(width)]
        x = torch.stack([patches[:, row, column] for row, column in places])
        kinds = self.w["encoder.type_embedding.weight"]
        x = self.norm("encoder.patch_layernorm_embedding", self.linear("encoder.image_proj", x) + kinds[1])
        text = self.w["encoder.embed_tokens.weight"][list(ids)] + kinds[0]
        x = torch.cat([x, self.norm("encoder.layernorm_embedding", text)])
        at = self.w["encoder.embed_image_positions.weight"][[row * self.side + column + 1 for row, column in places]]
        positions = torch.cat(
            [
                self.norm("encoder.image_pos_ln", at),
                self.norm("encoder.pos_ln", self.w["encoder.embed_positions.weight"][: len(ids)]),
            ]
        )
        everywhere = self.products("encoder", "pos_", positions, positions)
        n = len(places)
        span = 2 * self.side - 1
        for layer in range(3):
            table = self.w[f"encoder.image_rel_pos_table_list.{layer}.weight"]
            bias = everywhere.clone()
            for i, (row, column) in enumerate(places):
                for j, (other_row, other_column) in enumerate(places):
                    down = row - other_row + self.side - 1
                    right = column - other_column + self.side - 1
                    bias[:, i, j] += table[down * span + right]
            bias[:, n:, n:] += self.token_bias("encoder", layer, len(ids))
            name = f"encoder.layers.{layer}"
            normed = self.norm(f"{name}.self_attn_layer_norm", x)
            attended = self.attend(f"{name}.self_attn", normed, normed, bias)
            x = self.feed(name, x + self.norm(f"{name}.self_attn_mid_layer_norm", attended))
        return self.norm("encoder.layer_norm", x), positions

    def decode(self, tokens: Sequence[int], source: tuple[Tensor, Tensor]) -> Tensor:
        states, positions = source
        embedding = self.w["encoder.embed_tokens.weight"]
        x = self.norm("decoder.layernorm_embedding", embedding[list(tokens)])
        at = self.norm("decoder.pos_ln", self.w["decoder.embed_positions.weight"][: len(tokens)])
        everywhere = self.products("decoder", "self_pos_", at, at)
        across = self.products("decoder", "cross_pos_", at, positions)
        future = torch.full((len(tokens), len(tokens)), -torch.inf, dtype=torch.float64).triu(1)
        for layer in range(2):
            name = f"decoder.layers.{layer}"
            bias = everywhere + self.token_bias("decoder", layer, len(tokens)) + future
            normed = self.norm(f"{name}.self_attn_layer_norm", x)
            attended = self.attend(f"{name}.self_attn", normed, normed, bias)
            x = x + self.norm(f"{name}.self_attn_mid_layer_norm", attended)
            normed = self.norm(f"{name}.cross_attn_layer_norm", x)
            attended = self.attend(f"{name}.cross_attn", normed, states, across)
            x = self.feed(name, x + self.norm(f"{name}.cross_attn_mid_layer_norm", attended))
        return self.norm("decoder.layer_norm", x) @ embedding.T


def token_bucket(distance: int, size: int) -> int:
    """Own buckets up to half of ``size``, then logarithmic ones up to a distance of 1023, on either side of the
    middle."""
    half = size // 2
    if abs(distance) > half:
        steps = math.ceil(math.log(abs(distance) / half) / math.log(1023 / half) * (half - 1))
        distance = int(math.copysign(half + steps, distance))
    return distance + size - 1


def plain(model: OFAModel) -> Plain:
    size = model.config
    heads = size.encoder_attention_heads, size.decoder_attention_heads
    return Plain(tiny_ofa.published(model), heads, size.image_bucket_size, size.token_bucket_size)


def plain_beams(
    next_logits: Callable[[tuple[int, ...]], Tensor],
    beams: int,
    most: int,
    ngram: int,
    temperature: float = 1.0,
    penalty: float = 1.0,
) -> list[tuple[float, tuple[int, ...]]]:
    """Beam search as fairseq does it: ends count among the best ``beams`` candidates, logits are divided by the
    temperature and a score by its length to the power ``penalty``, a sentence of ``most`` tokens can only end, and the
    search ends with ``beams`` sentences, the likeliest first where more end at once."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    done: list[tuple[float, tuple[int, ...]]] = []
    for step in range(most + 1):
        found = []
        for score, said in live:
            logits = (next_logits((BOS, *said)) / temperature).log_softmax(0)
            logits[PAD] = -math.inf
            if step == 0:
                logits[END] = -math.inf
            whole = (BOS, *said)
            for start in range(len(whole) - ngram + 1):
                if len(whole) >= ngram and whole[start : start + ngram - 1] == whole[len(whole) - ngram + 1 :]:
                    logits[whole[start + ngram - 1]] = -math.inf
            if step == most:
                kept = logits[END].item()
                logits[:] = -math.inf
                logits[END] = kept
            values, tokens = logits.topk(2 * beams)
            found += [
                (score + value, (*said, token))
                for value, token in zip(values.tolist(), tokens.tolist(), strict=True)
                if value > -math.inf
            ]
        best = sorted(found, reverse=True)[: 2 * beams]
        ended = [(score / len(said) ** penalty, said) for score, said in best[:beams] if said[-1] == END]
        done += ended[: beams - len(done)]
        live = [one for one in best if one[1][-1] != END][:beams]
        if len(done) >= beams:
            break
    return sorted(done, reverse=True)


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


@pytest.mark.parametrize(("seed", "temperature", "penalty"), [(1, 0.5, 1.5), (0, 1.0, 1.0)])
def test_beam_search_is_fairseqs(
    seed: int, temperature: float, penalty: float, tmp_path: Path, dictionary: Path
) -> None:
    """From the image file to the words of all ranks, by Pillow and a search that knows of no batch, no cache and no
    transformers. With the second weights texts end early, at times more at one step than places are left."""
    model = tiny_ofa.model(seed)
    beams = 5
    strip = seed == 0
    file = tiny_ofa.fairseq_file(tmp_path / "caption_huge_best.pt", model)
    chosen = {"temperature": temperature, "length_penalty": penalty, "strip_punctuation": strip}
    agent = make(file, dictionary, beams=beams, **chosen)
    paths = [tmp_path / f"{number}.png" for number in range(6 if strip else 3)]
    for path, image in zip(paths, tiny_ofa.images(len(paths), 72, 80, seed=3 + strip), strict=True):
        PILImage.fromarray(((image + 1) * 127.5).round().byte().permute(1, 2, 0).numpy()).save(path)
    draws = [Draw(seed=1, sample=rank) for _ in paths for rank in range(beams)]
    answers = iter(captions(agent, [item for item in prepared(agent, paths) for _ in range(beams)], draws))
    tokenizer = load_tokenizer(dictionary)
    lengths = set()
    question = tokenizer(" what does the image describe?")["input_ids"]
    for path in paths:
        squeezed = PILImage.open(path).resize((SIDE, SIDE), PILImage.Resampling.BICUBIC)
        pixels = torch.from_numpy(np.asarray(squeezed) / 127.5 - 1).permute(2, 0, 1).float()
        with torch.inference_mode():
            ranks = plain_beams(next_logits(model, pixels, question), beams, MOST, 3, temperature, penalty)
        for score, tokens in ranks:
            answer, _ = next(answers)
            assert answer.score == pytest.approx(score, abs=2e-4)
            text = words(tokenizer, tokens)
            bare = " ".join(text.translate(str.maketrans("", "", string.punctuation)).split())
            assert answer.text == (bare if strip else text)
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


def test_damaged_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.pt"
    path.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(UnavailableError, match="cannot be read"):
        load_ofa(path)
    contents: list[Any] = [{"weights": {}}, {"model": [1]}, {"model": {"a": torch.ones(1)}}]
    for content in contents:
        torch.save(content, path)
        with pytest.raises(UnavailableError, match=r"no tensors by name|weights are missing"):
            load_ofa(path)
