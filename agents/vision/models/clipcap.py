"""ClipCap: an image as a prefix of GPT-2's text.

Mokady, Hertz, Bermano 2021, "ClipCap: CLIP Prefix for Image Captioning" (arXiv 2111.09734). CLIP's features of the
image go through a mapper, whose output stands where the embeddings of a text's first tokens would stand; GPT-2 goes
on from there. Two mappers: a transformer before an unchanged GPT-2, or a perceptron before a tuned one. Names of
weights are those of the authors' files (``clip_project.…``, ``gpt.…``); sizes are read off the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    CLIPVisionConfig,
    CLIPVisionModelWithProjection,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LogitsProcessor,
    StoppingCriteria,
)

from agents import checkpoints, random_weights
from agents.errors import UnavailableError
from agents.loading import load_pretrained
from agents.vision.models.beams import continued
from agents.vision.models.clip_resnet import ClipResNet, load_resnet, resnet_size
from agents.vision.models.weights import assign, layers_of

HEADS = 8  # of the transformer mapper; no weight's shape tells
MAPPER, GPT = "clip_project.", "gpt."
OPEN_CLIP = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
CPU = torch.device("cpu")
MapperName = Literal["transformer", "mlp"]


class Attention(nn.Module):
    """Multi-head self-attention; queries, keys and values have no bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.to_queries = nn.Linear(width, width, bias=False)
        self.to_keys_values = nn.Linear(width, 2 * width, bias=False)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        keys, values = self.to_keys_values(x).chunk(2, dim=-1)
        heads = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (self.to_queries(x), keys, values)]
        mixed = functional.scaled_dot_product_attention(*heads)
        return self.project(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(functional.relu(self.fc1(x)))  # type: ignore[no-any-return]


class Layer(nn.Module):
    """A transformer layer, normalised before each part."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width), Attention(width)
        self.norm2, self.mlp = nn.LayerNorm(width), FeedForward(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class TransformerMapper(nn.Module):
    """Section 3.2: the features become ``clip_length`` vectors, learned constants stand behind them, and what a
    transformer makes of the constants is the prefix. [batch, features] to [batch, prefix length, width]."""

    def __init__(self, features: int, width: int, prefix: int, clip_length: int, layers: int, hidden: int) -> None:
        super().__init__()
        self.features, self.clip_length = features, clip_length
        self.linear = nn.Linear(features, clip_length * width)
        self.prefix_const = nn.Parameter(torch.empty(prefix, width))
        self.transformer = nn.ModuleDict({"layers": nn.ModuleList(Layer(width, hidden) for _ in range(layers))})

    def forward(self, features: Tensor) -> Tensor:
        image = self.linear(features).unflatten(-1, (self.clip_length, -1))
        x = torch.cat((image, self.prefix_const.expand(len(image), -1, -1)), dim=1)
        for layer in self.transformer["layers"]:  # type: ignore[attr-defined]
            x = layer(x)
        return x[:, self.clip_length :]


class PerceptronMapper(nn.Module):
    """Section 3.2: one hidden layer with tanh. [batch, features] to [batch, prefix length, width]."""

    def __init__(self, features: int, hidden: int, width: int, prefix: int) -> None:
        super().__init__()
        self.features, self.width = features, width
        self.model = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, prefix * width))

    def forward(self, features: Tensor) -> Tensor:
        return self.model(features).unflatten(-1, (-1, self.width))  # type: ignore[no-any-return]


Mapper = TransformerMapper | PerceptronMapper


def make_mapper(weights: Mapping[str, Tensor], width: int, kind: MapperName, path: Path) -> Mapper:
    """The mapper of ``kind`` among the authors' ``weights``, for a GPT-2 of ``width``. Raises UnavailableError."""
    found = {name.removeprefix(MAPPER): value for name, value in weights.items() if name.startswith(MAPPER)}
    if not found:
        raise UnavailableError(f"{path} holds no mapper of ClipCap: no weight's name begins with {MAPPER}")
    sized = {
        "transformer": ("linear.weight", "prefix_const", "transformer.layers.0.mlp.fc1.weight"),
        "mlp": ("model.0.weight", "model.2.weight"),
    }
    if lacking := [MAPPER + name for name in sized[kind] if name not in found]:
        raise UnavailableError(f"{path} holds no mapper of the kind {kind!r}: {', '.join(lacking)} missing")
    with torch.device("meta"):
        shapes = [found[name].shape for name in sized[kind]]
        mapper: Mapper
        if kind == "transformer":
            (long, features), (prefix, _), (hidden, _) = shapes
            layers = layers_of(found, "transformer.layers.")
            mapper = TransformerMapper(features, width, prefix, long // width, layers, hidden)
        else:
            (hidden, features), (long, _) = shapes
            mapper = PerceptronMapper(features, hidden, width, long // width)
    assign(mapper, found, path, MAPPER)
    return mapper


def load_gpt(weights: Mapping[str, Tensor], folder: Path, path: Path) -> Any:
    """GPT-2 as the file ``path`` holds it among ``weights``, or as ``folder`` does if ``path`` holds the mapper alone.

    ``folder`` gives the configuration in either case. Raises UnavailableError.
    """
    found = {
        name.removeprefix(GPT): value
        for name, value in weights.items()
        # The causal mask, which transformers once saved with the weights.
        if name.startswith(GPT) and not name.endswith((".attn.bias", ".attn.masked_bias"))
    }
    if not found:
        return load_pretrained(GPT2LMHeadModel, folder, CPU, torch.float32)
    if "transformer.wte.weight" in found:  # the same tensor, which some formats keep once
        found.setdefault("lm_head.weight", found["transformer.wte.weight"])
    config = GPT2Config.from_pretrained(folder, local_files_only=True, attn_implementation=None)
    with torch.device("meta"):
        model = GPT2LMHeadModel(config)
    assign(model, found, path, GPT)
    model.tie_weights()
    return model


def load_tower(path: Path) -> nn.Module:
    """CLIP's image tower: of a folder in transformers' form, or a ResNet from a file or a folder of open_clip's.

    Raises UnavailableError.
    """
    if file := _resnet_file(path):
        return load_resnet(checkpoints.read_weights(file), file)
    return load_pretrained(CLIPVisionModelWithProjection, path, CPU, torch.float32)  # type: ignore[no-any-return]


def input_size(path: Path) -> int:
    """Height and width of the images that the tower at ``path`` takes, without loading it. Raises UnavailableError."""
    if file := _resnet_file(path):
        return resnet_size(checkpoints.read_weights(file), file)
    if wrong := checkpoints.problem(path, ("config.json", checkpoints.WEIGHTS), ("clip", "clip_vision_model")):
        raise UnavailableError(f"{path} {wrong}")
    return int(CLIPVisionConfig.from_pretrained(path, local_files_only=True).image_size)  # type: ignore[arg-type]


def _resnet_file(path: Path) -> Path | None:
    files = [path] if path.is_file() else [path / name for name in OPEN_CLIP if (path / name).is_file()]
    return files[0] if files else None


def load(path: Path, clip: Path, gpt: Path, kind: MapperName, *, normalise: bool) -> Any:
    """A :class:`ClipCapModel` on the CPU, in float32.

    ``path`` is the authors' file, or a folder with that file alone; ``clip`` the image tower's and ``gpt`` GPT-2's
    folder. Raises UnavailableError if they do not fit each other.
    """
    path = checkpoints.weights_file(path)
    weights = checkpoints.read_weights(path)
    language = load_gpt(weights, gpt, path)
    mapper = make_mapper(weights, language.config.n_embd, kind, path)
    tower: Any = load_tower(clip)
    given = tower.outputs if isinstance(tower, ClipResNet) else int(tower.config.projection_dim)
    if given != mapper.features:
        raise UnavailableError(f"{path} maps {mapper.features} features of an image, the tower {clip} gives {given}")
    return ClipCapModel(tower, mapper, language, normalise=normalise).eval()


def draw(gpt: Path, kind: MapperName, device: torch.device, dtype: torch.dtype, *, normalise: bool) -> Any:
    """The model that was published with the mapper ``kind``, with random weights; ``gpt`` is a folder with GPT-2's
    configuration."""
    config = GPT2Config.from_pretrained(gpt, local_files_only=True)
    width = config.n_embd

    def make() -> ClipCapModel:
        tower: nn.Module
        mapper: Mapper
        if kind == "transformer":
            tower = ClipResNet(width=80, blocks=(4, 6, 10, 6), grid=9, outputs=640)  # RN50x4
            mapper = TransformerMapper(640, width, prefix=40, clip_length=40, layers=8, hidden=2 * width)
        else:
            tower = CLIPVisionModelWithProjection(CLIPVisionConfig())  # ViT-B/32
            mapper = PerceptronMapper(512, 5 * width, width, prefix=10)
        language = GPT2LMHeadModel(config)
        language.tie_weights()
        return ClipCapModel(tower, mapper, language, normalise=normalise)

    return random_weights.build(make, device, dtype)


class ClipCapModel(nn.Module):
    """Tower, mapper and GPT-2. ``normalise`` divides the features by their length before they are mapped."""

    def __init__(self, tower: nn.Module, mapper: Mapper, gpt: Any, *, normalise: bool) -> None:
        super().__init__()
        self.tower, self.clip_project, self.gpt = tower, mapper, gpt
        self.normalise = normalise
        # generate() fills from here what a caller leaves out, and GPT-2's own end of text does not end a caption.
        gpt.generation_config = GenerationConfig()

    @property
    def prefix_length(self) -> int:
        """How many of GPT-2's positions an image takes."""
        mapper: Any = self.clip_project
        if isinstance(mapper, TransformerMapper):
            return len(mapper.prefix_const)
        return int(mapper.model[2].out_features // mapper.width)

    def prefix(self, pixel_values: Tensor) -> Tensor:
        """Prepared images [batch, 3, size, size] to embeddings [batch, prefix length, GPT-2's width]."""
        found = self.tower(pixel_values)
        features: Tensor = found if isinstance(found, Tensor) else found.image_embeds
        if self.normalise:
            features = features / features.norm(dim=-1, keepdim=True)
        return self.clip_project(features)  # type: ignore[no-any-return]


class AveragedBeams(LogitsProcessor):
    """Makes transformers' beam search that of ClipCap's authors.

    transformers ranks beams by the sum of their log-probabilities and takes finished ones aside, so that as many go
    on as before. The authors rank finished and unfinished ones together, by the mean per token. A finished caption
    takes the place of one that goes on, until all are finished; it may still be displaced.

    No option of transformers says so, but scores can. Each step's scores are the differences of the means, so that a
    beam's sum is its mean, and a finished beam has one continuation (token 0) that changes nothing. ``stop`` must not
    be a token that ends a beam for transformers.
    """

    def __init__(self, stop: int, beams: int) -> None:
        self._stop, self._beams = stop, beams
        self._tokens: Tensor | None = None  # of the last step's beams, their sums and their continuations' scores
        self._sums: Tensor
        self._scores: Tensor

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """``input_ids`` [rows * beams, step], ``scores`` log-probabilities [rows * beams, vocabulary]."""
        step = input_ids.shape[1]
        stops = input_ids == self._stop
        finished = stops.any(dim=1)
        sums = self._sums_of(input_ids)
        before = stops.cumsum(dim=1) - stops.long()  # stops before each token; token 0 follows the first of them
        lengths = (before == 0).sum(dim=1).clamp(min=1)
        means = sums / lengths
        self._tokens, self._sums, self._scores = input_ids, sums, scores
        after = (sums[:, None] + scores) / (step + 1) - means[:, None]
        same = torch.full_like(scores, float("-inf"))
        same[:, 0] = 0.0
        return torch.where(finished[:, None], same, after)

    def _sums_of(self, input_ids: Tensor) -> Tensor:
        """The summed log-probabilities of each beam, up to its stop token."""
        if self._tokens is None or input_ids.shape[1] == 0:
            return torch.zeros(len(input_ids), device=input_ids.device)
        parent = continued(self._tokens, input_ids, self._beams)
        finished = (self._tokens == self._stop).any(dim=1)
        gained = self._scores[parent, input_ids[:, -1]]
        return self._sums[parent] + torch.where(finished[parent], 0.0, gained)


class AllStopped(StoppingCriteria):
    """Ends a beam search in which every beam of every row holds ``stop``.

    transformers asks about two candidates per beam, best first; only the better half would go on.
    """

    def __init__(self, stop: int, beams: int) -> None:
        self._stop, self._beams = stop, beams

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        holds = (input_ids == self._stop).any(dim=1).unflatten(0, (-1, 2 * self._beams))
        all_hold: Tensor = holds[:, : self._beams].all()
        return all_hold.expand(len(input_ids))
