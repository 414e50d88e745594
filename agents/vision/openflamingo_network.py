"""OpenFlamingo's network (Awadalla et al. 2023, arXiv 2308.01390), after Flamingo (Alayrac et al. 2022, arXiv
2204.14198, section 3.1)."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import CLIPVisionModel, GPTNeoXForCausalLM

from agents.errors import UnavailableError
from agents.models import random_weights, weight_files
from agents.models.loading import load_pretrained
from agents.vision.multi_head import attention
from agents.vision.weights import assign, layers_of

HEADS = 8
"""Heads of all attention that was trained, as no weight's shape tells them."""
INNER = HEADS * 64
"""The width of all heads together."""
LATENTS = "perceiver.latents"
"""The name of the resampler's latents."""
DEPTH = "perceiver.layers."
"""What stands before the resampler's layers."""
EVERY = "gated_cross_attn_layers."
"""What stands before the gated layers, one for each place."""
EMBEDDING = "lang_encoder.gpt_neox.embed_in.weight"
"""The name of the language model's embedding in the file."""
HEAD = "lang_encoder.embed_out.weight"
"""The name of its output layer."""
GATED = ("lang_encoder.gpt_neox.layers.", ".gated_cross_attn_layer.")
"""What stands around a layer's place where a file names the gated layers among the language model's."""


class MediaAttention(nn.Module):
    """Attention of states to something seen, of ``width_seen``."""

    def __init__(self, width: int, width_seen: int) -> None:
        super().__init__()
        self.to_q = nn.Linear(width, INNER, bias=False)
        self.to_kv = nn.Linear(width_seen, 2 * INNER, bias=False)
        self.to_out = nn.Linear(INNER, width, bias=False)

    def attend(self, x: Tensor, keys_values: Tensor) -> Tensor:
        """States [batch, n, width] over ``keys_values`` [batch, seen, 2 * INNER]: [batch, n, width]."""
        keys, values = keys_values.chunk(2, dim=-1)
        return self.to_out(attention(self.to_q(x), keys, values, HEADS))  # type: ignore[no-any-return]


def feed_forward(width: int) -> nn.Sequential:
    """A norm and two linear maps with GELU between them; it takes and gives states of ``width``."""
    up = nn.Linear(width, 4 * width, bias=False)
    down = nn.Linear(4 * width, width, bias=False)
    return nn.Sequential(nn.LayerNorm(width), up, nn.GELU(), down)


class PerceiverAttention(MediaAttention):
    """The resampler's attention: latents attend to patches and to themselves."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width)
        self.norm_media = nn.LayerNorm(width)
        self.norm_latents = nn.LayerNorm(width)

    def forward(self, patches: Tensor, latents: Tensor) -> Tensor:
        """Patches [batch, patches, width] and latents [batch, latents, width] to what is added to the latents."""
        latents = self.norm_latents(latents)
        return self.attend(latents, self.to_kv(torch.cat((self.norm_media(patches), latents), dim=1)))


class PerceiverResampler(nn.Module):
    """Turns the patches of an image into a fixed number of latents."""

    def __init__(self, width: int, latents: int, depth: int) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.empty(latents, width))
        layers = (nn.ModuleList((PerceiverAttention(width), feed_forward(width))) for _ in range(depth))
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(width)

    def forward(self, patches: Tensor) -> Tensor:
        """Patches [batch, patches, width] to latents [batch, latents, width]."""
        latents = self.latents.expand(len(patches), -1, -1)
        layer: Any
        for layer in self.layers:
            latents = latents + layer[0](patches, latents)
            latents = latents + layer[1](latents)
        return self.norm(latents)  # type: ignore[no-any-return]


class CrossAttention(MediaAttention):
    """Attention of a text's states to the latents, after a norm."""

    def __init__(self, width: int, width_seen: int) -> None:
        super().__init__(width, width_seen)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, keys_values: Tensor) -> Tensor:
        """States [batch, n, width] and ``keys_values`` [batch, latents, 2 * INNER] to what is added to the states."""
        return self.attend(self.norm(x), keys_values)


class GatedCrossAttention(nn.Module):
    """What a text's states see of the image; gates that are 0 at the beginning of training let it in."""

    def __init__(self, width: int, width_seen: int) -> None:
        super().__init__()
        self.attn = CrossAttention(width, width_seen)
        self.ff = feed_forward(width)
        self.attn_gate = nn.Parameter(torch.zeros(1))
        self.ff_gate = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, keys_values: Tensor) -> Tensor:
        """States [batch, n, width] and ``keys_values`` [batch, latents, 2 * INNER] to states of the same shape."""
        x = x + self.attn(x, keys_values) * self.attn_gate.tanh()
        return x + self.ff(x) * self.ff_gate.tanh()  # type: ignore[no-any-return]


class LookingLayer(nn.Module):
    """A layer of the language model, behind attention to an image."""

    keys_values: Tensor | None = None
    """What the layer sees, [rows, latents, 2 * INNER]. It is set from outside before a text is generated, as the
    language model has no argument for it."""

    def __init__(self, decoder_layer: nn.Module, gated: GatedCrossAttention) -> None:
        super().__init__()
        self.decoder_layer = decoder_layer
        self.gated_cross_attn_layer = gated

    def forward(self, hidden_states: Tensor, **options: Any) -> Any:
        """States to whatever the language model's layer gives."""
        assert self.keys_values is not None
        return self.decoder_layer(self.gated_cross_attn_layer(hidden_states, self.keys_values), **options)


class Trained(nn.Module):
    """What OpenFlamingo's training made, by the file's names; ``places`` are the numbers of the layers that look."""

    def __init__(self, width: int, width_seen: int, places: Iterable[int], latents: int, depth: int) -> None:
        super().__init__()
        self.perceiver = PerceiverResampler(width_seen, latents, depth)
        gated = {str(place): GatedCrossAttention(width, width_seen) for place in places}
        self.gated_cross_attn_layers = nn.ModuleDict(gated)


class OpenFlamingo(nn.Module):
    """Tower, language model and what was trained between them.

    ``as_in_papers``: the tower has GELU and a last norm of patches, as in open_clip since 2.29. In training it had
    neither.
    """

    def __init__(self, tower: Any, language: Any, trained: Trained, *, as_in_papers: bool) -> None:
        super().__init__()
        self.tower = tower
        self.language = language
        self.trained = trained
        self.as_in_papers = as_in_papers
        if as_in_papers:
            for layer in tower.encoder.layers:
                layer.mlp.activation_fn = nn.GELU()
        layers = language.gpt_neox.layers
        for place, gated in trained.gated_cross_attn_layers.items():
            layers[int(place)] = LookingLayer(layers[int(place)], gated)  # type: ignore[arg-type]

    def see(self, pixel_values: Tensor) -> Tensor:
        """Images [batch, 3, size, size] to keys and values for each layer that looks: [batch, looks, latents, 2 *
        INNER]."""
        patches = self.tower(pixel_values).last_hidden_state
        if self.as_in_papers:
            patches = self.tower.post_layernorm(patches)
        latents = self.trained.perceiver(patches[:, 1:])  # without the class token
        return torch.stack([layer.gated_cross_attn_layer.attn.to_kv(latents) for layer in self._looking()], dim=1)

    def generate(self, keys_values: Tensor, *, beams: int, **options: Any) -> Any:
        """transformers' ``generate`` with ``options``; ``keys_values`` hold a row for each text."""
        keys_values = keys_values.repeat_interleave(beams, dim=0)
        try:
            for number, layer in enumerate(self._looking()):
                layer.keys_values = keys_values[:, number]
            return self.language.generate(**options)
        finally:
            for layer in self._looking():
                layer.keys_values = None

    def _looking(self) -> list[Any]:
        return [layer for layer in self.language.gpt_neox.layers if isinstance(layer, LookingLayer)]


def load_openflamingo(
    path: Path, clip: Path, gpt: Path, tokens: int, device: torch.device, dtype: torch.dtype, *, as_in_papers: bool
) -> OpenFlamingo:
    """The model on ``device`` in ``dtype``. ``tokens`` is the number of tokens with OpenFlamingo's own. Folders of
    :func:`random_weights.make_folder` give random weights. Raises UnavailableError if the parts do not fit."""
    if random_weights.is_made(path):
        tower = load_pretrained(CLIPVisionModel, clip, device, dtype)
        language = load_pretrained(GPTNeoXForCausalLM, gpt, device, dtype)
        trained = _draw_trained(path, language.config, tower.config.hidden_size, device, dtype)
        return OpenFlamingo(tower, language, trained, as_in_papers=as_in_papers).eval()
    path = weight_files.weights_file(path)
    weights = _trained(weight_files.read_weights(path))
    tower = load_pretrained(CLIPVisionModel, clip, device, dtype)
    language = load_pretrained(GPTNeoXForCausalLM, gpt, device, dtype)
    _set_tokens(language, weights, tokens, path)
    places = sorted({int(name.split(".")[1]) for name in weights if name.startswith(EVERY)})
    layers = language.config.num_hidden_layers
    if not places or places[-1] >= layers or LATENTS not in weights:
        raise UnavailableError(
            f"{path} is no OpenFlamingo for {gpt}: the text looks before the layers {places} of {layers}"
        )
    latents = len(weights[LATENTS])
    depth = layers_of(weights, DEPTH)
    with torch.device("meta"):
        trained = Trained(language.config.hidden_size, tower.config.hidden_size, places, latents, depth)
    assign(trained, weights, path)
    return OpenFlamingo(tower, language, trained.to(device, dtype), as_in_papers=as_in_papers).eval()


def _draw_trained(folder: Path, text: Any, seen: int, device: torch.device, dtype: torch.dtype) -> Trained:
    """What training makes, for a language model of the configuration ``text`` and a tower of width ``seen``. Gates keep
    the 0 of the beginning of training: the image is computed with, and does not change the text."""
    sizes = json.loads((folder / "config.json").read_bytes())
    every = sizes["cross_attn_every_n_layers"]
    places = range(every - 1, text.num_hidden_layers, every)
    latents = sizes["latents"]
    depth = sizes["depth"]
    trained: Trained = random_weights.draw(
        lambda: Trained(text.hidden_size, seen, places, latents, depth), device, dtype
    )
    return trained


def _trained(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    before, after = GATED
    trained = {}
    for name, value in weights.items():
        if name.startswith(before) and after in name:
            trained[name.replace(before, EVERY).replace(after, ".")] = value
        elif not name.startswith(("lang_encoder.", "vision_encoder.")) or name in (EMBEDDING, HEAD):
            trained[name] = value
    return trained


def _set_tokens(language: Any, weights: dict[str, Tensor], tokens: int, path: Path) -> None:
    weight_files.check_names(path, [name for name in (EMBEDDING, HEAD) if name not in weights])
    like = language.lm_head.weight
    for name in (EMBEDDING, HEAD):
        if weights[name].shape != (tokens, like.shape[1]):
            raise UnavailableError(f"{path}: {name} is {list(weights[name].shape)}, not {[tokens, like.shape[1]]}")
    rows = weights.pop(EMBEDDING).to(like.device, like.dtype, copy=True)
    head = weights.pop(HEAD).to(like.device, like.dtype, copy=True)
    language.gpt_neox.embed_in = nn.Embedding.from_pretrained(rows)
    language.lm_head = nn.Linear(like.shape[1], tokens, bias=False, device="meta")
    language.lm_head.weight = nn.Parameter(head, requires_grad=False)
    language.config.vocab_size = tokens
