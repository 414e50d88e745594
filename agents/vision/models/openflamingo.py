"""OpenFlamingo: a language model that looks at an image between its layers.

Awadalla et al. 2023, "OpenFlamingo" (arXiv 2308.01390), after Alayrac et al. 2022, "Flamingo" (arXiv 2204.14198,
section 3.1). A resampler makes 64 vectors of the patches that CLIP's image tower sees; before every second layer of
GPT-NeoX, the text attends to them, through gates that were closed when training began. Tower and language model are
those that were published; what was trained is in the authors' checkpoint.pt, whose names are kept here
(``perceiver.…``, ``….attn.to_kv.weight``). Sizes are read off the weights.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import CLIPVisionConfig, CLIPVisionModel, GPTNeoXConfig, GPTNeoXForCausalLM

from agents import checkpoints, random_weights
from agents.errors import UnavailableError
from agents.loading import load_pretrained
from agents.vision.models.weights import assign, layers_of

HEADS, HEAD_WIDTH = 8, 64  # of all attention that was trained; no weight's shape tells them apart
INNER = HEADS * HEAD_WIDTH
LATENTS, DEPTH, EVERY = "perceiver.latents", "perceiver.layers.", "gated_cross_attn_layers."
EMBEDDING, HEAD = "lang_encoder.gpt_neox.embed_in.weight", "lang_encoder.embed_out.weight"
# A layer's weights go by two names in the authors' program, and its checkpoint may have either.
GATED = re.compile(
    r"lang_encoder\.(?:gated_cross_attn_layers\.(\d+)|gpt_neox\.layers\.(\d+)\.gated_cross_attn_layer)\.(.+)"
)


class Attention(nn.Module):
    """Multi-head attention without biases, from vectors of ``width`` to keys and values made of others."""

    def __init__(self, width: int, width_seen: int) -> None:
        super().__init__()
        self.to_q = nn.Linear(width, INNER, bias=False)
        self.to_kv = nn.Linear(width_seen, 2 * INNER, bias=False)
        self.to_out = nn.Linear(INNER, width, bias=False)

    def attend(self, x: Tensor, keys_values: Tensor) -> Tensor:
        """[batch, n, width] and [batch, seen, 2 * INNER] to [batch, n, width]."""
        parts = (self.to_q(x), *keys_values.chunk(2, dim=-1))
        heads = [part.unflatten(-1, (HEADS, HEAD_WIDTH)).transpose(1, 2) for part in parts]
        mixed = functional.scaled_dot_product_attention(*heads)
        return self.to_out(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


def feed_forward(width: int) -> nn.Sequential:
    hidden = 4 * width
    up, down = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)
    return nn.Sequential(nn.LayerNorm(width), up, nn.GELU(), down)


class PerceiverAttention(Attention):
    """The latents attend to patches and to themselves."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width)
        self.norm_media, self.norm_latents = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, patches: Tensor, latents: Tensor) -> Tensor:
        patches, latents = self.norm_media(patches), self.norm_latents(latents)
        return self.attend(latents, self.to_kv(torch.cat((patches, latents), dim=1)))


class PerceiverResampler(nn.Module):
    """Patches [batch, patches, width] to [batch, latents, width]."""

    def __init__(self, width: int, latents: int, depth: int) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.empty(latents, width))
        self.layers = nn.ModuleList(
            nn.ModuleList((PerceiverAttention(width), feed_forward(width))) for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, patches: Tensor) -> Tensor:
        latents = self.latents.expand(len(patches), -1, -1)
        layer: Any
        for layer in self.layers:
            latents = latents + layer[0](patches, latents)
            latents = latents + layer[1](latents)
        return self.norm(latents)  # type: ignore[no-any-return]


class CrossAttention(Attention):
    def __init__(self, width: int, width_seen: int) -> None:
        super().__init__(width, width_seen)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, keys_values: Tensor) -> Tensor:
        return self.attend(self.norm(x), keys_values)


class GatedCrossAttention(nn.Module):
    """The text looks at the image, then a feed-forward layer; each is added through a gate."""

    def __init__(self, width: int, width_seen: int) -> None:
        super().__init__()
        self.attn, self.ff = CrossAttention(width, width_seen), feed_forward(width)
        self.attn_gate, self.ff_gate = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, keys_values: Tensor) -> Tensor:
        x = x + self.attn(x, keys_values) * self.attn_gate.tanh()
        return x + self.ff(x) * self.ff_gate.tanh()  # type: ignore[no-any-return]


class LookingLayer(nn.Module):
    """A layer of the language model, and before it the look at ``keys_values``, which is set from outside."""

    keys_values: Tensor | None = None

    def __init__(self, decoder_layer: nn.Module, gated: GatedCrossAttention) -> None:
        super().__init__()
        self.decoder_layer, self.gated_cross_attn_layer = decoder_layer, gated

    def forward(self, hidden_states: Tensor, **options: Any) -> Any:
        assert self.keys_values is not None
        return self.decoder_layer(self.gated_cross_attn_layer(hidden_states, self.keys_values), **options)


class Trained(nn.Module):
    """What the authors trained: the resampler, and a cross-attention before each of the ``places`` among the language
    model's layers."""

    def __init__(self, width: int, width_seen: int, places: Iterable[int], latents: int, depth: int) -> None:
        super().__init__()
        self.perceiver = PerceiverResampler(width_seen, latents, depth)
        self.gated_cross_attn_layers = nn.ModuleDict(
            {str(place): GatedCrossAttention(width, width_seen) for place in places}
        )


class OpenFlamingo(nn.Module):
    """Tower, language model and what was ``trained`` between them.

    ``as_in_papers`` makes the tower what open_clip makes of it since version 2.29: its activation is GELU, and patches
    go through its last norm. OpenFlamingo was trained with the tower as it is: QuickGELU, and patches as they are.
    """

    def __init__(self, tower: Any, language: Any, trained: Trained, *, as_in_papers: bool) -> None:
        super().__init__()
        self.tower, self.language, self.trained = tower, language, trained
        self.as_in_papers = as_in_papers
        if as_in_papers:
            for layer in tower.encoder.layers:
                layer.mlp.activation_fn = nn.GELU()
        layers = language.gpt_neox.layers
        for place, gated in trained.gated_cross_attn_layers.items():
            layers[int(place)] = LookingLayer(layers[int(place)], gated)  # type: ignore[arg-type]

    def see(self, pixel_values: Tensor) -> Tensor:
        """Prepared images [batch, 3, size, size] to what the text attends to, keys and values for each of its looks:
        [batch, looks, latents, 2 * INNER]."""
        seen = self.tower(pixel_values).last_hidden_state
        if self.as_in_papers:
            seen = self.tower.post_layernorm(seen)
        latents = self.trained.perceiver(seen[:, 1:])  # without the class token
        return torch.stack([layer.gated_cross_attn_layer.attn.to_kv(latents) for layer in self._looking()], dim=1)

    def generate(self, seen: Tensor, *, beams: int, **options: Any) -> Any:
        """transformers' ``generate`` for texts whose images are ``seen``, one row each; all of a text comes after its
        image. The authors' program, in a beam that itself says <image>, blinds the others: that is not done here.
        """
        seen = seen.repeat_interleave(beams, dim=0)
        try:
            for number, layer in enumerate(self._looking()):
                layer.keys_values = seen[:, number]
            return self.language.generate(**options)
        finally:
            for layer in self._looking():
                layer.keys_values = None

    def _looking(self) -> list[Any]:
        return [layer for layer in self.language.gpt_neox.layers if isinstance(layer, LookingLayer)]


def rename(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The trained weights of a checkpoint by the names of :class:`Trained`, and its rows for the tokens.

    What else it may hold is of the tower and the language model, which were not trained: nothing of it is taken.
    """
    found = {}
    for name, value in weights.items():
        if match := GATED.fullmatch(name):
            found[f"{EVERY}{match[1] or match[2]}.{match[3]}"] = value
        elif not name.startswith(("lang_encoder.", "vision_encoder.")) or name in (EMBEDDING, HEAD):
            found[name] = value
    return found


def give_tokens(language: Any, weights: dict[str, Tensor], tokens: int, path: Path) -> None:
    """Take the rows of the ``tokens`` out of ``weights`` and make them the language model's, in its type.

    There are more of them than the language model knows, and fewer than it has rows for: where the checkpoint has none
    for the output, the first of the model's own are it. Raises UnavailableError.
    """
    checkpoints.check_names(path, [EMBEDDING] * (EMBEDDING not in weights))
    own = language.lm_head.weight
    rows, head = weights.pop(EMBEDDING), weights.pop(HEAD, own[:tokens])
    for name, found in ((EMBEDDING, rows), (HEAD, head)):
        if found.shape != (tokens, own.shape[1]):
            raise UnavailableError(f"{path}: {name} is {list(found.shape)}, not {[tokens, own.shape[1]]}")
    language.gpt_neox.embed_in = nn.Embedding.from_pretrained(rows.to(own.device, own.dtype, copy=True))
    language.lm_head = nn.Linear(own.shape[1], tokens, bias=False, device="meta")
    language.lm_head.weight = nn.Parameter(head.to(own.device, own.dtype, copy=True), requires_grad=False)
    language.config.vocab_size = tokens


def load(
    path: Path, clip: Path, gpt: Path, tokens: int, device: torch.device, dtype: torch.dtype, *, as_in_papers: bool
) -> OpenFlamingo:
    """An :class:`OpenFlamingo` for inference.

    ``path`` is the authors' file, or a folder with that file alone; ``clip`` the image tower's and ``gpt`` GPT-NeoX's
    folder; ``tokens`` how many the tokenizer knows with those that were added for OpenFlamingo. Raises UnavailableError
    if they do not fit each other.
    """
    path = checkpoints.weights_file(path)
    weights = rename(checkpoints.read_weights(path))
    tower = load_pretrained(CLIPVisionModel, clip, device, dtype)
    language = load_pretrained(GPTNeoXForCausalLM, gpt, device, dtype)
    give_tokens(language, weights, tokens, path)
    places = sorted({int(name.split(".")[1]) for name in weights if name.startswith(EVERY)})
    if not places or places[-1] >= language.config.num_hidden_layers or LATENTS not in weights:
        raise UnavailableError(
            f"{path} is no OpenFlamingo for {gpt}: the text looks before the layers {places} of "
            f"{language.config.num_hidden_layers}"
        )
    with torch.device("meta"):
        trained = Trained(
            language.config.hidden_size,
            tower.config.hidden_size,
            places,
            latents=len(weights[LATENTS]),
            depth=layers_of(weights, DEPTH),
        )
    assign(trained, weights, path)
    return OpenFlamingo(tower, language, trained.to(device, dtype), as_in_papers=as_in_papers).eval()


def draw(folder: Path, device: torch.device, dtype: torch.dtype, *, as_in_papers: bool) -> OpenFlamingo:
    """The model with random weights. The config.json in ``folder`` is GPT-NeoX's, with the tower's as vision_config."""
    config = GPTNeoXConfig.from_pretrained(folder, local_files_only=True)
    seen = CLIPVisionConfig(**json.loads((folder / "config.json").read_bytes())["vision_config"])

    def make() -> OpenFlamingo:
        places = range(1, config.num_hidden_layers, 2)
        trained = Trained(config.hidden_size, seen.hidden_size, places, latents=64, depth=6)
        return OpenFlamingo(CLIPVisionModel(seen), GPTNeoXForCausalLM(config), trained, as_in_papers=as_in_papers)

    return random_weights.build(make, device, dtype)  # type: ignore[no-any-return]
