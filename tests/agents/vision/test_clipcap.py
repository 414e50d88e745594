"""ClipCap: its parts against plain restatements, its generation against transformers' and the authors' search."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoTokenizer, CLIPVisionConfig, CLIPVisionModelWithProjection, GPT2LMHeadModel

from agents.contract import Draw
from agents.errors import UnavailableError
from agents.vision import clip_towers, clipcap_network
from tests.helpers import mixed_images, tiny_clipcap
from tests.helpers.mixed_images import captions, prepared
from tests.helpers.plain_clip_resnet import ClipResNet
from tests.helpers.tiny_captioners import draw

KINDS = ("transformer", "mlp")
Parts = dict[str, Any]


@pytest.fixture(scope="module", params=KINDS)
def parts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return tiny_clipcap.make(tmp_path_factory.mktemp("clipcap"), request.param, stop=17.0, seed=2)


def loaded(parts: Parts, **settings: Any) -> Any:
    return mixed_images.loaded("clipcap-mlp", **{"max_tokens": 14, **parts, **settings})


def prefix_of(parts: Parts, pixels: Tensor) -> Tensor:
    checkpoint, clip, language_model = (Path(parts[name]) for name in ("checkpoint", "clip", "language_model"))
    model = clipcap_network.load_clipcap(checkpoint, clip, language_model, parts["mapper"])
    with torch.no_grad():
        return model.prefix(pixels)


def stacked(items: Sequence[Any]) -> Tensor:
    return torch.stack([item["pixel_values"] for item in items])


# the parts


@pytest.mark.parametrize("blocks", [(1, 2, 1, 1), (2, 1, 3, 1)])
def test_a_resnet_is_the_plain_program(blocks: tuple[int, ...], tmp_path: Path) -> None:
    plain = ClipResNet(width=16, blocks=blocks, grid=3, outputs=10).eval()
    path = tmp_path / "clip.pt"
    generator = torch.Generator().manual_seed(0)
    draw(plain, generator)
    torch.save({f"visual.{name}": value for name, value in plain.state_dict().items()}, path)
    tower = clip_towers.load_tower(path)
    assert (clip_towers.input_size(path), clip_towers.output_size(tower)) == (96, 10)
    # In float64, so that the order in which threads add up shows no trace; and of pictures that no other test changes.
    pixels = torch.randn(2, 3, 96, 96, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(tower.double()(pixels), plain.double()(pixels), rtol=1e-9, atol=1e-9)


def perceptron(weights: dict[str, Tensor], features: Tensor) -> Tensor:
    name = "clip_project.model."
    hidden = torch.tanh(features @ weights[f"{name}0.weight"].T + weights[f"{name}0.bias"])
    return (hidden @ weights[f"{name}2.weight"].T + weights[f"{name}2.bias"]).reshape(-1, 3, tiny_clipcap.WIDTH)


def transformer(weights: dict[str, Tensor], features: Tensor) -> Tensor:
    """An image at a time, a head at a time."""
    size = tiny_clipcap.WIDTH
    out = []

    def weight(name: str) -> Tensor:
        return weights[f"clip_project.{name}"]

    for each in features:
        image = weight("linear.weight") @ (each / each.square().sum().sqrt()) + weight("linear.bias")
        x = torch.cat([image.reshape(tiny_clipcap.CLIP_LENGTH, size), weight("prefix_const")])
        for layer in range(tiny_clipcap.LAYERS):
            at = f"transformer.layers.{layer}."
            y = functional.layer_norm(x, (size,), weight(f"{at}norm1.weight"), weight(f"{at}norm1.bias"))
            query = y @ weight(f"{at}attn.to_queries.weight").T
            both = y @ weight(f"{at}attn.to_keys_values.weight").T
            heads = []
            for start in range(0, size, size // 8):
                part = slice(start, start + size // 8)
                scores = query[:, part] @ both[:, :size][:, part].T / (size // 8) ** 0.5
                heads.append(scores.softmax(dim=-1) @ both[:, size:][:, part])
            x = x + torch.cat(heads, dim=1) @ weight(f"{at}attn.project.weight").T + weight(f"{at}attn.project.bias")
            y = functional.layer_norm(x, (size,), weight(f"{at}norm2.weight"), weight(f"{at}norm2.bias"))
            y = (y @ weight(f"{at}mlp.fc1.weight").T + weight(f"{at}mlp.fc1.bias")).clamp(min=0)
            x = x + y @ weight(f"{at}mlp.fc2.weight").T + weight(f"{at}mlp.fc2.bias")
        out.append(x[tiny_clipcap.CLIP_LENGTH :])
    return torch.stack(out)


def test_prefix_is_the_mapped_features(parts: Parts, images: list[Path]) -> None:
    agent = loaded(parts)
    pixels = stacked(prepared(agent, images))
    weights = torch.load(parts["checkpoint"], weights_only=True)
    with torch.no_grad():
        if parts["mapper"] == "mlp":
            wanted = perceptron(
                weights, CLIPVisionModelWithProjection.from_pretrained(parts["clip"])(pixels).image_embeds
            )
        else:
            wanted = transformer(weights, clip_towers.load_tower(Path(parts["clip"]))(pixels))
    torch.testing.assert_close(prefix_of(parts, pixels), wanted, rtol=1e-3, atol=1e-3)


# generation


def language(parts: Parts) -> tuple[GPT2LMHeadModel, Any, int]:
    tokenizer = AutoTokenizer.from_pretrained(parts["language_model"])
    [stop] = tokenizer.encode(".")
    return GPT2LMHeadModel.from_pretrained(parts["language_model"]).eval(), tokenizer, stop


def test_greedy_captions_are_those_of_transformers(parts: Parts, images: list[Path]) -> None:
    prompt = "a picture of"
    agent = loaded(parts, beams=1, prompt=prompt)
    items = prepared(agent, images)
    gpt, tokenizer, stop = language(parts)
    prefix = prefix_of(parts, stacked(items))
    with torch.no_grad():
        text = gpt.transformer.wte(torch.tensor([tokenizer.encode(prompt)], dtype=torch.long))
        wanted = gpt.generate(
            inputs_embeds=torch.cat([prefix, text.expand(len(prefix), -1, -1)], dim=1),
            attention_mask=torch.ones(len(prefix), prefix.shape[1] + text.shape[1], dtype=torch.long),
            max_new_tokens=14,
            do_sample=False,
            eos_token_id=stop,
            pad_token_id=gpt.config.eos_token_id,
        )
    texts = [tokens[: tokens.index(stop) + 1] if stop in tokens else tokens for tokens in wanted.tolist()]
    assert [raw for _, raw in captions(agent, items)] == [tokenizer.decode(tokens) for tokens in texts]


def averaged_search(gpt: GPT2LMHeadModel, prefix: Tensor, stop: int, beams: int, limit: int) -> list[list[int]]:
    """The authors' search, restated for an image: the best texts by mean log-probability, finished or not, go on
    until all are finished."""
    kept: list[tuple[list[int], float]] = [([], 0.0)]
    for _ in range(limit):
        candidates = [(total / len(tokens), tokens, total) for tokens, total in kept if stop in tokens]
        going = [(tokens, total) for tokens, total in kept if stop not in tokens]
        text = gpt.transformer.wte(torch.tensor([tokens for tokens, _ in going], dtype=torch.long))
        logits = gpt(inputs_embeds=torch.cat([prefix.expand(len(going), -1, -1), text], dim=1)).logits[:, -1]
        for (tokens, total), scores in zip(going, logits.log_softmax(-1).tolist(), strict=True):
            for token, gained in enumerate(scores):
                candidates.append(((total + gained) / (len(tokens) + 1), [*tokens, token], total + gained))
        kept = [(tokens, total) for _, tokens, total in sorted(candidates, key=lambda text: -text[0])[:beams]]
        if all(stop in tokens for tokens, _ in kept):
            break
    return [tokens for tokens, _ in kept]


def test_averaged_beams_are_those_of_a_plain_search(tmp_path: Path, images: list[Path]) -> None:
    """Every rank of every image, all images in a batch: they finish at different steps, or not at all."""
    parts = tiny_clipcap.make(tmp_path, "mlp", stop=17.0, seed=2)
    agent = loaded(parts, beams=4, max_tokens=12)
    items = prepared(agent, images)
    gpt, tokenizer, stop = language(parts)
    draws = [Draw(seed=1, sample=rank) for _ in items for rank in range(4)]
    answers = captions(agent, [item for item in items for _ in range(4)], draws)
    with torch.no_grad():
        prefixes = prefix_of(parts, stacked(items))
        wanted = [tokens for prefix in prefixes for tokens in averaged_search(gpt, prefix, stop, beams=4, limit=12)]
    assert [raw for _, raw in answers] == [tokenizer.decode(tokens) for tokens in wanted]
    assert [answer.tokens for answer, _ in answers] == [len(tokens) for tokens in wanted]
    assert [answer.finish for answer, _ in answers] == ["end" if stop in tokens else "length" for tokens in wanted]
    assert len({len(tokens) for tokens in wanted}) > 1


# what cannot be loaded


def test_the_other_mapper_and_another_tower_are_refused(tmp_path: Path) -> None:
    made = tiny_clipcap.make(tmp_path, "mlp")
    with pytest.raises(UnavailableError, match=r"3 weights are missing \(clip_project\.linear\.weight"):
        loaded(made, mapper="transformer")
    config = CLIPVisionConfig.from_pretrained(made["clip"])
    config.projection_dim = 16
    CLIPVisionModelWithProjection(config).save_pretrained(tmp_path / "other")
    with pytest.raises(UnavailableError, match=r"24 features of an image, the tower .* has 16"):
        loaded(made, clip=str(tmp_path / "other"))
