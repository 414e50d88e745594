"""ClipCap's network (Mokady et al. 2021, arXiv 2111.09734), by the authors' names of weights, and their beam
search."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, LogitsProcessor, StoppingCriteria

from agents.errors import UnavailableError
from agents.models import random_weights, weight_files
from agents.models.loading import load_pretrained
from agents.vision.beams import BeamSums
from agents.vision.clip_towers import CPU, load_tower, output_size
from agents.vision.multi_head import attention
from agents.vision.weights import assign, layers_of

HEADS = 8
"""Heads of the transformer mapper, as no weight's shape tells them."""
MAPPER = "clip_project."
"""What stands before the mapper's weights in the authors' file."""
GPT = "gpt."
"""What stands before GPT-2's weights there."""
MapperName = Literal["transformer", "mlp"]
"""The two mappers."""
SIZED: dict[MapperName, tuple[str, ...]] = {
    "transformer": ("linear.weight", "prefix_const", "transformer.layers.0.mlp.fc1.weight"),
    "mlp": ("model.0.weight", "model.2.weight"),
}
"""The weights whose shapes are the sizes of a mapper."""


class MapperAttention(nn.Module):
    """The mapper's attention to itself; keys and values are one projection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.to_queries = nn.Linear(width, width, bias=False)
        self.to_keys_values = nn.Linear(width, 2 * width, bias=False)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """States [batch, n, width] to states of the same shape."""
        keys, values = self.to_keys_values(x).chunk(2, dim=-1)
        return self.project(attention(self.to_queries(x), keys, values, HEADS))  # type: ignore[no-any-return]


class Layer(nn.Module):
    """A layer of the transformer mapper, with norms before its two parts."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = MapperAttention(width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, hidden), "fc2": nn.Linear(hidden, width)})

    def forward(self, x: Tensor) -> Tensor:
        """States [batch, n, width] to states of the same shape."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp["fc2"](functional.relu(self.mlp["fc1"](self.norm2(x))))  # type: ignore[no-any-return]


class TransformerMapper(nn.Module):
    """The transformer mapper (section 3.2): features and learned constants go through a transformer, and what the
    constants became is the prefix.

    Sizes: ``features`` of an image, ``width`` of an embedding, ``prefix`` embeddings, ``clip_length`` states that the
    features become, ``hidden`` units between the linear layers.
    """

    def __init__(self, features: int, width: int, prefix: int, clip_length: int, layers: int, hidden: int) -> None:
        super().__init__()
        self.features = features
        self.clip_length = clip_length
        self.prefix_length = prefix
        self.linear = nn.Linear(features, clip_length * width)
        self.prefix_const = nn.Parameter(torch.empty(prefix, width))
        self.transformer = nn.ModuleDict({"layers": nn.ModuleList(Layer(width, hidden) for _ in range(layers))})

    def forward(self, features: Tensor) -> Tensor:
        """Features [batch, features], divided by their length, to a prefix [batch, prefix, width]."""
        features = features / features.norm(dim=-1, keepdim=True)
        image = self.linear(features).unflatten(-1, (self.clip_length, -1))
        x = torch.cat((image, self.prefix_const.expand(len(image), -1, -1)), dim=1)
        for layer in self.transformer["layers"]:  # type: ignore[attr-defined]
            x = layer(x)
        return x[:, self.clip_length :]


class PerceptronMapper(nn.Module):
    """The mapper that is a perceptron with one hidden layer (section 3.2)."""

    def __init__(self, features: int, hidden: int, width: int, prefix: int) -> None:
        super().__init__()
        self.features = features
        self.prefix_length = prefix
        self.model = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, prefix * width))

    def forward(self, features: Tensor) -> Tensor:
        """Features [batch, features] to a prefix [batch, prefix, width]."""
        return self.model(features).unflatten(-1, (self.prefix_length, -1))  # type: ignore[no-any-return]


Mapper = TransformerMapper | PerceptronMapper
"""Either mapper."""


class ClipCapModel(nn.Module):
    """Tower, mapper and GPT-2 together."""

    def __init__(self, tower: nn.Module, mapper: Mapper, gpt: Any) -> None:
        super().__init__()
        self.tower = tower
        self.clip_project = mapper
        self.gpt = gpt
        # generate() fills from here what a caller leaves out, and GPT-2's usual end of text does not end a caption.
        gpt.generation_config = GenerationConfig()

    def prefix(self, pixel_values: Tensor) -> Tensor:
        """Prepared images [batch, 3, size, size] to the embeddings that GPT-2 continues [batch, prefix, width]."""
        output = self.tower(pixel_values)
        features: Tensor = output if isinstance(output, Tensor) else output.image_embeds
        return self.clip_project(features)  # type: ignore[no-any-return]


def load_clipcap(
    path: Path, clip: Path, gpt: Path, kind: MapperName, device: torch.device = CPU, dtype: torch.dtype = torch.float32
) -> Any:
    """A :class:`ClipCapModel` on ``device`` in ``dtype``: of the authors' file at ``path``, a tower and a GPT-2.
    Folders of :func:`random_weights.make_folder` give random weights. Raises UnavailableError if parts do not fit."""
    tower: Any
    if random_weights.is_made(path):
        language = load_pretrained(GPT2LMHeadModel, gpt, device, dtype)
        tower = load_tower(clip, device, dtype)
        mapper = _draw_mapper(path, output_size(tower), language.config.n_embd, kind, device, dtype)
        return ClipCapModel(tower, mapper, language).eval()
    path = weight_files.weights_file(path)
    weights = weight_files.read_weights(path)
    language = _load_gpt(weights, gpt, path)
    mapper = _load_mapper(weights, language.config.n_embd, kind, path)
    tower = load_tower(clip)
    features = output_size(tower)
    if features != mapper.features:
        raise UnavailableError(f"{path} maps {mapper.features} features of an image, the tower {clip} has {features}")
    return ClipCapModel(tower, mapper, language).eval().to(device, dtype)


def _draw_mapper(
    folder: Path, features: int, width: int, kind: MapperName, device: torch.device, dtype: torch.dtype
) -> Mapper:
    sizes = json.loads((folder / "config.json").read_bytes())["mapper_config"]
    made = TransformerMapper if kind == "transformer" else PerceptronMapper
    mapper: Mapper = random_weights.draw(lambda: made(features=features, width=width, **sizes), device, dtype)
    return mapper


def _load_mapper(weights: Mapping[str, Tensor], width: int, kind: MapperName, path: Path) -> Mapper:
    weights = {name.removeprefix(MAPPER): value for name, value in weights.items() if name.startswith(MAPPER)}
    weight_files.check_names(path, [MAPPER + name for name in SIZED[kind] if name not in weights])
    shapes = [weights[name].shape for name in SIZED[kind]]
    mapper: Mapper
    with torch.device("meta"):
        if kind == "transformer":
            (long, features), (prefix, _), (hidden, _) = shapes
            layers = layers_of(weights, "transformer.layers.")
            mapper = TransformerMapper(features, width, prefix, long // width, layers, hidden)
        else:
            (hidden, features), (long, _) = shapes
            mapper = PerceptronMapper(features, hidden, width, long // width)
    assign(mapper, weights, path, MAPPER)
    return mapper


def _load_gpt(weights: Mapping[str, Tensor], folder: Path, path: Path) -> Any:
    weights = {
        name.removeprefix(GPT): value
        for name, value in weights.items()
        # The causal mask, which transformers once saved with the weights.
        if name.startswith(GPT) and not name.endswith((".attn.bias", ".attn.masked_bias"))
    }
    if not weights:
        return load_pretrained(GPT2LMHeadModel, folder, CPU, torch.float32)
    config = GPT2Config.from_pretrained(folder, local_files_only=True, attn_implementation=None)
    with torch.device("meta"):
        model = GPT2LMHeadModel(config)
    assign(model, weights, path, GPT)
    model.tie_weights()
    return model


class AveragedBeams(LogitsProcessor):
    """Ranks beams as ClipCap's authors do: finished and unfinished ones together, by the mean log-probability per
    token.

    Why so: transformers adds up scores and keeps finished beams apart. So this rule gives it differences of means,
    which add up to the mean, and lets a finished beam go on with token 0 at no cost. ``stop`` must therefore not end a
    beam for transformers; :class:`AllStopped` ends the search.
    """

    def __init__(self, stop: int, beams: int) -> None:
        self._stop = stop
        self._sums = BeamSums(beams)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """``input_ids`` [rows * beams, step], log-probabilities [rows * beams, vocabulary]."""
        sums = self._sums.before(input_ids)
        if sums is None:
            sums = torch.zeros(len(input_ids), device=input_ids.device)
        stops = input_ids == self._stop
        before = stops.cumsum(dim=1) - stops.long()  # stops before each token; token 0 follows the first of them
        means = sums / (before == 0).sum(dim=1).clamp(min=1)
        same = torch.full_like(scores, float("-inf"))
        same[:, 0] = 0.0
        has_ended = stops.any(dim=1, keepdim=True)
        self._sums.keep(input_ids, sums, torch.where(has_ended, same, scores))
        after = (sums[:, None] + scores) / (input_ids.shape[1] + 1) - means[:, None]
        return torch.where(has_ended, same, after)


class AllStopped(StoppingCriteria):
    """Ends a search when each of its ``beams`` holds ``stop``."""

    def __init__(self, stop: int, beams: int) -> None:
        self._stop = stop
        self._beams = beams

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        """Whether the search ends, bool [rows]: all True or all False, by every picture's best beams."""
        holds = (input_ids == self._stop).any(dim=1).unflatten(0, (-1, 2 * self._beams))
        all_hold: Tensor = holds[:, : self._beams].all()
        return all_hold.expand(len(input_ids))
