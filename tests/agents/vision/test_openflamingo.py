"""OpenFlamingo: captions against a plain restatement of its authors' program, batches against singles, bad parts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoTokenizer, CLIPVisionModel, GPTNeoXForCausalLM

from agents.answers import CaptionAnswer
from agents.errors import UnavailableError
from agents.vision.captioner import CaptionRow
from tests.helpers import mixed_images, tiny_openflamingo
from tests.helpers.mixed_images import captions, prepared
from tests.helpers.plain_captioners import best_by_length

PROMPT = "a picture of"  # shorter than the papers': the plain program below is slow
Weights = dict[str, Tensor]
Parts = dict[str, str]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """Not to be changed by a test."""
    return tiny_openflamingo.make(tmp_path_factory.mktemp("flamingo"), seed=10, end=5.0)


def loaded(parts: Parts, **settings: Any) -> Any:
    return mixed_images.loaded("openflamingo-4b", **parts, **settings)


def weights_of(parts: Parts) -> Weights:
    weights: Weights = torch.load(Path(parts["checkpoint"], "checkpoint.pt"), weights_only=True)
    return weights


# against a plain program: no cache, no batch, one beam and one token at a time


class Plain:
    """The network as its authors' program has it (open_flamingo 2.0.1, src/helpers.py and src/flamingo_lm.py), of the
    published files; CLIP's and GPT-NeoX's layers are transformers'."""

    def __init__(self, parts: Parts, tower: str) -> None:
        self.weights = weights_of(parts)
        self.tower = tower
        self.clip: Any = CLIPVisionModel.from_pretrained(parts["clip"]).eval()
        self.gpt: Any = GPTNeoXForCausalLM.from_pretrained(parts["language_model"], dtype=torch.float32).eval()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(parts["language_model"])
        self.end = len(self.tokenizer)

    def norm(self, x: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def attention(self, x: Tensor, seen: Tensor, name: str) -> Tensor:
        query = x @ self.weights[f"{name}to_q.weight"].T
        keys, values = (seen @ self.weights[f"{name}to_kv.weight"].T).split(512, dim=1)
        heads = []
        for head in range(8):
            part = slice(64 * head, 64 * head + 64)
            heads.append((query[:, part] @ keys[:, part].T / 8).softmax(dim=1) @ values[:, part])
        return torch.cat(heads, dim=1) @ self.weights[f"{name}to_out.weight"].T

    def feed_forward(self, x: Tensor, name: str) -> Tensor:
        inner = functional.gelu(self.norm(x, f"{name}0") @ self.weights[f"{name}1.weight"].T)
        return inner @ self.weights[f"{name}3.weight"].T

    def latents(self, pixels: Tensor) -> Tensor:
        x = self.clip.pre_layrnorm(self.clip.embeddings(pixels[None]))
        for layer in self.clip.encoder.layers:
            x = x + layer.self_attn(layer.layer_norm1(x))[0]
            inner = layer.mlp.fc1(layer.layer_norm2(x))
            active = inner * torch.sigmoid(1.702 * inner) if self.tower == "trained" else functional.gelu(inner)
            x = x + layer.mlp.fc2(active)
        patches = (x if self.tower == "trained" else self.clip.post_layernorm(x))[0, 1:]
        latents = self.weights["perceiver.latents"]
        for number in range(tiny_openflamingo.DEPTH):
            name = f"perceiver.layers.{number}."
            asking = self.norm(latents, f"{name}0.norm_latents")
            seen = self.norm(patches, f"{name}0.norm_media")
            latents = latents + self.attention(asking, torch.cat([seen, asking]), f"{name}0.")
            latents = latents + self.feed_forward(latents, f"{name}1.")
        return self.norm(latents, "perceiver.norm")

    def next_logits(self, latents: Tensor, tokens: list[int]) -> Tensor:
        x = self.weights["lang_encoder.gpt_neox.embed_in.weight"][tokens]
        neox = self.gpt.gpt_neox
        places = torch.arange(len(tokens))[None]
        later = torch.full((len(tokens), len(tokens)), float("-inf")).triu(1)[None, None]
        turns = neox.rotary_emb(x[None], position_ids=places)
        for number, layer in enumerate(neox.layers):
            if number % 2:
                name = tiny_openflamingo.GATED.format(number)
                looked = self.attention(self.norm(x, f"{name}attn.norm"), latents, f"{name}attn.")
                x = x + looked * self.weights[f"{name}attn_gate"].tanh()
                x = x + self.feed_forward(x, f"{name}ff.") * self.weights[f"{name}ff_gate"].tanh()
            x = layer(x[None], attention_mask=later, position_embeddings=turns)[0]
        return neox.final_layer_norm(x[-1]) @ self.weights["lang_encoder.embed_out.weight"].T

    def start(self, prompt: str) -> list[int]:
        return [self.end + 1, *self.tokenizer(prompt)["input_ids"]]

    def caption(self, pixels: Tensor, prompt: str, beams: int, most: int) -> str | None:
        """The text of the best beam that ended; None if none did."""
        start = self.start(prompt)
        with torch.inference_mode():
            latents = self.latents(pixels)
            tokens = best_by_length(
                lambda text: self.next_logits(latents, text),
                start,
                beams,
                len(start) + most,
                self.end,
                float,
                any_may_end=False,
            )
        return None if tokens is None else str(self.tokenizer.decode(tokens))


@pytest.mark.parametrize("tower", ["papers", "trained"])
def test_captions_are_those_of_a_plain_program(parts: Parts, images: list[Path], tower: str) -> None:
    """Beams are divided by their tokens with the prompt's, without the end, as in the papers' transformers."""
    agent = loaded(parts, tower=tower, prompt=PROMPT, max_tokens=16)
    plain = Plain(parts, tower)
    items = prepared(agent, images)
    ours = captions(agent, items)
    same = 0
    for item, (answer, raw) in zip(items, ours, strict=True):
        wanted = plain.caption(item["pixel_values"], PROMPT, beams=3, most=16)
        if answer.finish == "end":
            assert raw == wanted
            same += 1
    assert same > 3
    assert len({raw for _, raw in ours}) > 3  # the model does look at the image


# the answer


@pytest.mark.parametrize(
    ("text", "caption", "flagged"),
    [
        (" A cat . Question: Is it  big ? Answer: two dogs , at a table .", "two dogs, at a table.", False),
        (" A cat.<|endoftext|>Two", "A cat.Two", True),
    ],
)
def test_the_answer_is_what_follows_the_last_answer_mark(parts: Parts, text: str, caption: str, flagged: bool) -> None:
    """As in the papers' program, on transformers that takes out spaces before punctuation; without special tokens."""
    agent = loaded(parts)
    tokens = agent._tokenizer(text + "<|endofchunk|>")["input_ids"]
    answer = agent._reply(tokens, None, CaptionRow(0, "")).answer
    assert isinstance(answer, CaptionAnswer)
    assert answer.text == caption
    assert answer.finish == "end"
    assert ("special_tokens" in answer.flags) == flagged


# forms of the checkpoint


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        (tiny_openflamingo.GATED.format(1) + "attn_gate", None, "1 weights are missing"),
        ("perceiver.latents", None, "is no OpenFlamingo for"),
        ("lang_encoder.gpt_neox.embed_in.weight", lambda rows: rows[:-1], r"is \[\d+, 32\], not \[\d+, 32\]"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_named(
    parts: Parts, tmp_path: Path, name: str, change: Callable[[Tensor], Tensor] | None, match: str
) -> None:
    weights = weights_of(parts)
    value = weights.pop(name)
    torch.save(weights | ({name: change(value)} if change else {}), tmp_path / "checkpoint.pt")
    with pytest.raises(UnavailableError, match=match):
        loaded(parts | {"checkpoint": str(tmp_path)})
