"""ClipCap: its parts against plain restatements, its generation against transformers', batches against singles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mixed_images
import pytest
import tiny_clipcap
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoTokenizer, CLIPVisionConfig, CLIPVisionModelWithProjection, GPT2LMHeadModel

from agents.contract import Draw, Reply
from agents.errors import UnavailableError
from agents.images import Image
from agents.stimuli import CaptionStimulus
from agents.vision import clipcap_network as clipcap_model
from agents.vision.clip_towers import AttentionPool, Bottleneck
from agents.vision.clipcap import ClipCapAgent

KINDS: tuple[tiny_clipcap.Kind, ...] = ("transformer", "mlp")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return mixed_images.make(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module", params=KINDS)
def parts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tiny_clipcap.Parts:
    return tiny_clipcap.make(tmp_path_factory.mktemp("clipcap"), request.param, stop=9.0, seed=1)


def loaded(parts: tiny_clipcap.Parts, **settings: Any) -> ClipCapAgent:
    chosen = {"precision": "fp32", "max_tokens": 14, **parts.settings(**settings)}
    agent = ClipCapAgent(ClipCapAgent.Settings.model_validate(chosen), "clipcap")
    agent.open()
    agent.load("cpu")
    return agent


def prepared(agent: ClipCapAgent, images: Sequence[Path]) -> list[Any]:
    return [
        agent.prepare(CaptionStimulus(id=str(n), task="image_captioning", image=Image(path.name, root=path.parent)))
        for n, path in enumerate(images)
    ]


def answered(agent: ClipCapAgent, items: Sequence[Any], draws: Sequence[Draw] | None = None) -> list[dict[str, Any]]:
    replies = agent.respond(items, draws or [Draw(seed=n + 1) for n in range(len(items))])
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return [reply.answer.model_dump() | {"raw": reply.raw} for reply in replies if isinstance(reply, Reply)]


def pixels_of(parts: tiny_clipcap.Parts, images: Sequence[Path]) -> Tensor:
    agent = ClipCapAgent(ClipCapAgent.Settings.model_validate(parts.settings()), "clipcap")
    agent.open()
    return torch.stack([item["pixel_values"] for item in prepared(agent, images)])


def model_of(parts: tiny_clipcap.Parts, normalise: bool | None = None) -> Any:
    chosen = parts.mapper == "transformer" if normalise is None else normalise
    return clipcap_model.load(parts.checkpoint, parts.clip, parts.language_model, parts.mapper, normalise=chosen)


# the parts


def test_attention_pool_is_attention_of_the_mean_over_mean_and_cells() -> None:
    torch.manual_seed(0)
    pool = AttentionPool(grid=2, width=128, outputs=5)
    torch.nn.init.normal_(pool.positional_embedding)
    x = torch.randn(3, 128, 2, 2)
    with torch.no_grad():
        for image, got in zip(x, pool(x), strict=True):
            cells = [image[:, row, column] for row in range(2) for column in range(2)]
            tokens = torch.stack([sum(cells) / 4, *cells]) + pool.positional_embedding
            query, keys, values = pool.q_proj(tokens[0]), pool.k_proj(tokens), pool.v_proj(tokens)
            heads = []
            for head in (slice(0, 64), slice(64, 128)):
                scores = torch.stack([(query[head] * key[head]).sum() / 8 for key in keys])
                shares = scores.exp() / scores.exp().sum()
                heads.append(sum(share * value[head] for share, value in zip(shares, values, strict=True)))
            torch.testing.assert_close(got, pool.c_proj(torch.cat(heads)))


@pytest.mark.parametrize("stride", [1, 2])
def test_bottleneck_pools_where_it_strides(stride: int) -> None:
    torch.manual_seed(0)
    block = Bottleneck(inputs=6, width=4, stride=stride).eval()
    for module in block.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for weight in (module.weight.data, module.bias.data, module.running_mean, module.running_var):
                weight.copy_(torch.rand(weight.shape) + 0.5)

    def normal(x: Tensor, norm: Any) -> Tensor:
        scale = norm.weight / (norm.running_var + 1e-5).sqrt()
        return (x - norm.running_mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]

    def pool(x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        return x.reshape(n, c, h // stride, stride, w // stride, stride).mean(dim=(3, 5))

    def pointwise(x: Tensor, weight: Tensor) -> Tensor:
        return torch.einsum("oi,nihw->nohw", weight[:, :, 0, 0], x)

    x = torch.randn(2, 6, 8, 8)
    with torch.no_grad():
        inner = normal(pointwise(x, block.conv1.weight), block.bn1).clamp(min=0)
        inner = normal(functional.conv2d(inner, block.conv2.weight, padding=1), block.bn2).clamp(min=0)
        inner = normal(pointwise(pool(inner), block.conv3.weight), block.bn3)
        assert block.downsample is not None
        shortcut = normal(pointwise(pool(x), block.downsample[1].weight), block.downsample[2])
        torch.testing.assert_close(block(x), (inner + shortcut).clamp(min=0), rtol=1e-5, atol=1e-5)


def perceptron(weights: dict[str, Tensor], features: Tensor) -> Tensor:
    name = "clip_project.model."
    hidden = torch.tanh(features @ weights[f"{name}0.weight"].T + weights[f"{name}0.bias"])
    return (hidden @ weights[f"{name}2.weight"].T + weights[f"{name}2.bias"]).reshape(-1, 3, tiny_clipcap.WIDTH)


def transformer(weights: dict[str, Tensor], features: Tensor) -> Tensor:
    """One image at a time, one head at a time."""
    size, out = tiny_clipcap.WIDTH, []

    def weight(name: str) -> Tensor:
        return weights[f"clip_project.{name}"]

    for one in features:
        image = (weight("linear.weight") @ one + weight("linear.bias")).reshape(tiny_clipcap.CLIP_LENGTH, size)
        x = torch.cat([image, weight("prefix_const")])
        for layer in range(tiny_clipcap.LAYERS):
            at = f"transformer.layers.{layer}."
            y = functional.layer_norm(x, (size,), weight(f"{at}norm1.weight"), weight(f"{at}norm1.bias"))
            query = y @ weight(f"{at}attn.to_queries.weight").T
            both = y @ weight(f"{at}attn.to_keys_values.weight").T
            key, value = both[:, :size], both[:, size:]
            heads = []
            for start in range(0, size, size // 8):
                part = slice(start, start + size // 8)
                scores = query[:, part] @ key[:, part].T / (size // 8) ** 0.5
                heads.append(scores.softmax(dim=-1) @ value[:, part])
            x = x + torch.cat(heads, dim=1) @ weight(f"{at}attn.project.weight").T + weight(f"{at}attn.project.bias")
            y = functional.layer_norm(x, (size,), weight(f"{at}norm2.weight"), weight(f"{at}norm2.bias"))
            y = (y @ weight(f"{at}mlp.fc1.weight").T + weight(f"{at}mlp.fc1.bias")).clamp(min=0)
            x = x + y @ weight(f"{at}mlp.fc2.weight").T + weight(f"{at}mlp.fc2.bias")
        out.append(x[tiny_clipcap.CLIP_LENGTH :])
    return torch.stack(out)


@pytest.mark.parametrize("normalise", [True, False])
def test_prefix_is_the_mapped_features(parts: tiny_clipcap.Parts, images: list[Path], normalise: bool) -> None:
    pixels = pixels_of(parts, images)
    weights = torch.load(parts.checkpoint, weights_only=True)
    with torch.no_grad():
        if parts.mapper == "mlp":
            features = CLIPVisionModelWithProjection.from_pretrained(parts.clip).eval()(pixels).image_embeds
        else:
            features = clipcap_model.load_tower(parts.clip)(pixels)
        if normalise:
            features = features / features.square().sum(dim=1, keepdim=True).sqrt()
        want = (perceptron if parts.mapper == "mlp" else transformer)(weights, features)
        torch.testing.assert_close(model_of(parts, normalise).prefix(pixels), want, rtol=1e-4, atol=1e-4)


# generation


def own_gpt(parts: tiny_clipcap.Parts) -> tuple[GPT2LMHeadModel, Any]:
    tokenizer = AutoTokenizer.from_pretrained(parts.language_model)
    model = GPT2LMHeadModel.from_pretrained(parts.language_model).eval()
    return model, tokenizer


@pytest.mark.parametrize(("beams", "prompt"), [(1, ""), (4, ""), (4, "a picture of")])
def test_captions_are_transformers_own(parts: tiny_clipcap.Parts, images: list[Path], beams: int, prompt: str) -> None:
    agent = loaded(parts, search="transformers", beams=beams, prompt=prompt)
    items = prepared(agent, images)
    gpt, tokenizer = own_gpt(parts)
    [stop] = tokenizer.encode(".")
    with torch.no_grad():
        prefix = model_of(parts).prefix(pixels_of(parts, images))
        text = gpt.transformer.wte(torch.tensor([tokenizer.encode(prompt)], dtype=torch.long))
        want = gpt.generate(
            inputs_embeds=torch.cat([prefix, text.expand(len(prefix), -1, -1)], dim=1),
            attention_mask=torch.ones(len(prefix), prefix.shape[1] + text.shape[1], dtype=torch.long),
            max_new_tokens=14,
            num_beams=beams,
            do_sample=False,
            eos_token_id=stop,
            pad_token_id=gpt.config.eos_token_id,
        )
    raws = [tokenizer.decode(tokens[: until(tokens.tolist(), stop)]) for tokens in want]
    answers = answered(agent, items)
    assert [answer["raw"] for answer in answers] == raws
    if not prompt:  # after this prompt, the transformer's random weights always say "."
        assert len({answer["raw"] for answer in answers}) > 1
        assert {answer["finish"] for answer in answers} == {"end", "length"}


def until(tokens: list[int], stop: int) -> int:
    return tokens.index(stop) + 1 if stop in tokens else len(tokens)


def averaged_search(gpt: GPT2LMHeadModel, prefix: Tensor, stop: int, beams: int, limit: int) -> list[list[int]]:
    """The authors' search, restated for one image: the best texts by mean log-probability, finished or not, go on
    until all are finished."""
    kept: list[tuple[list[int], float]] = [([], 0.0)]
    for _ in range(limit):
        found = [(total / len(tokens), tokens, total) for tokens, total in kept if stop in tokens]
        going = [(tokens, total) for tokens, total in kept if stop not in tokens]
        text = gpt.transformer.wte(torch.tensor([tokens for tokens, _ in going], dtype=torch.long))
        logits = gpt(inputs_embeds=torch.cat([prefix.expand(len(going), -1, -1), text], dim=1)).logits[:, -1]
        for (tokens, total), scores in zip(going, logits.log_softmax(-1).tolist(), strict=True):
            for token, gained in enumerate(scores):
                found.append(((total + gained) / (len(tokens) + 1), [*tokens, token], total + gained))
        kept = [(tokens, total) for _, tokens, total in sorted(found, key=lambda one: -one[0])[:beams]]
        if all(stop in tokens for tokens, _ in kept):
            break
    return [tokens for tokens, _ in kept]


@pytest.mark.parametrize("likelihood", [9.0, 14.0])
def test_averaged_beams_are_those_of_a_plain_search(tmp_path: Path, images: list[Path], likelihood: float) -> None:
    """Every rank of every image, all images in one batch: they finish at different steps, or not at all."""
    parts = tiny_clipcap.make(tmp_path, "mlp", stop=likelihood, seed=1)
    agent = loaded(parts, beams=4, max_tokens=12)
    items = prepared(agent, images)
    gpt, tokenizer = own_gpt(parts)
    [stop] = tokenizer.encode(".")
    draws = [Draw(seed=1, sample=rank) for _ in items for rank in range(4)]
    answers = answered(agent, [item for item in items for _ in range(4)], draws)
    with torch.no_grad():
        prefix = model_of(parts).prefix(pixels_of(parts, images))
        want = [tokens for one in prefix for tokens in averaged_search(gpt, one, stop, beams=4, limit=12)]
    assert [answer["raw"] for answer in answers] == [tokenizer.decode(tokens) for tokens in want]
    assert [answer["tokens"] for answer in answers] == [len(tokens) for tokens in want]
    assert [answer["finish"] for answer in answers] == ["end" if stop in tokens else "length" for tokens in want]


@pytest.mark.parametrize("search", ["averaged", "transformers"])
def test_least_length_is_kept(tmp_path: Path, images: list[Path], search: str) -> None:
    parts = tiny_clipcap.make(tmp_path, "mlp", stop=19.0, seed=1)
    agent = loaded(parts, beams=3, search=search, min_tokens=6)
    lengths = [answer["tokens"] for answer in answered(agent, prepared(agent, images))]
    assert min(lengths) > 6  # transformers' least length counts what stands before the end
    agent = loaded(parts, beams=3, search=search)
    assert min(answer["tokens"] for answer in answered(agent, prepared(agent, images))) < 6


# what cannot be loaded


def spoilt(parts: tiny_clipcap.Parts, folder: Path, change: Any) -> ClipCapAgent:
    """The agent, opened, with an authors' file that ``change`` has been done to."""
    weights = torch.load(parts.checkpoint, weights_only=True)
    change(weights)
    path = folder / "spoilt.pt"
    torch.save(weights, path)
    settings = parts.settings() | {"checkpoint": str(path)}
    agent = ClipCapAgent(ClipCapAgent.Settings.model_validate(settings), "clipcap")
    agent.open()
    return agent


@pytest.mark.parametrize("mapper", KINDS)
def test_weights_that_are_missing_or_misshapen_are_named_at_once(tmp_path: Path, mapper: tiny_clipcap.Kind) -> None:
    made = tiny_clipcap.make(tmp_path, mapper)
    name = "clip_project." + ("model.2.bias" if mapper == "mlp" else "transformer.layers.1.attn.project.bias")

    def lose_gpt(weights: dict[str, Tensor]) -> None:
        del weights["gpt.transformer.h.1.mlp.c_fc.weight"]
        weights["gpt.transformer.wpe.weight"] = torch.zeros(5, 7)

    def lose_mapper(weights: dict[str, Tensor]) -> None:
        for key in [key for key in weights if key.startswith("clip_project.")]:
            del weights[key]

    for change, match in (
        (lose_gpt, r"gpt\.transformer\.h\.1\.mlp\.c_fc\.weight.*gpt\.transformer\.wpe\.weight \[5, 7\]"),
        (lose_mapper, "holds no mapper of ClipCap"),
        (lambda weights: weights.pop(name), rf"1 weights are missing \({name}"),
        (lambda weights: weights.update({name: torch.zeros(3)}), rf"{name} \[3\] for"),
    ):
        with pytest.raises(UnavailableError, match=match):
            spoilt(made, tmp_path, change).load("cpu")


def test_the_other_mapper_and_another_tower_are_refused(tmp_path: Path) -> None:
    made = tiny_clipcap.make(tmp_path, "mlp")
    with pytest.raises(UnavailableError, match=r"of the kind 'transformer': clip_project\.linear\.weight"):
        loaded(made, mapper="transformer")
    config = CLIPVisionConfig.from_pretrained(made.clip)
    config.projection_dim = 16
    CLIPVisionModelWithProjection(config).save_pretrained(tmp_path / "other")
    with pytest.raises(UnavailableError, match=r"24 features of an image, the tower .* has 16"):
        loaded(made, clip=str(tmp_path / "other"))
    torch.save({"visual.proj": torch.zeros(3, 3)}, tmp_path / "vit.pt")
    with pytest.raises(UnavailableError, match=r"is not a ResNet tower of CLIP .* visual\.conv1\.weight"):
        loaded(made, clip=str(tmp_path / "vit.pt"))


def test_what_is_not_here_is_one_sentence(tmp_path: Path) -> None:
    made = tiny_clipcap.make(tmp_path, "mlp")
    for part in ("checkpoint", "clip", "language_model"):
        settings = ClipCapAgent.Settings.model_validate(made.settings() | {part: "./nowhere"})
        said = ClipCapAgent(settings, "clipcap-mlp").missing()
        assert said is not None
        assert said.startswith("./nowhere: no such file or folder")
        assert f"--set clipcap-mlp.{part}=PATH" in said
        assert "\n" not in said
    (made.language_model / "config.json").write_text('{"model_type": "bert"}')
    agent = ClipCapAgent(ClipCapAgent.Settings.model_validate(made.settings()), "clipcap-mlp")
    assert "holds a model of type 'bert'" in str(agent.missing())
