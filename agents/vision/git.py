"""GIT: a generative image-to-text transformer (Wang et al. 2022, arXiv 2205.14100), through transformers' classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from agents import checkpoints
from agents.contract import GIB
from agents.vision.captioner import CaptionAgent, CaptionSettings, Generated, Prepared, Row

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import Cache, GenerationConfig, LogitsProcessorList


class GitAgent(CaptionAgent["GitAgent.Settings"]):
    """The image's patches stand before the text; the beams and samples of an image share one pass of its encoder.

    transformers (seen in 5.17) numbers the text's positions wrongly once it generates with its cache: with 197 patches
    the positions 1, 2, 3 become 199, 201, 203, which no training has shown the model, and the caption is another than
    that of ``generate(use_cache=False)``. Here the cache is kept and the positions are those of training.
    """

    class Settings(CaptionSettings):
        """As for every captioner, and how positions are counted."""

        positions: Literal["text", "transformers"] = "text"
        """Text positions 0, 1, 2, … as in training, or those of transformers' own cached generation, to repeat it."""

    memory = 4 * GIB  # git-large is 1.6 GB in fp32, read while the model is built
    device_memory = 6 * GIB
    model_class = "GitForCausalLM"
    model_types = ("git",)
    needs = ("config.json", checkpoints.WEIGHTS, checkpoints.PROCESSOR, checkpoints.TOKENIZER)

    settings: Settings

    def _load_model(self, folder: Path) -> Any:
        model = super()._load_model(folder)
        config = model.config
        self._use_tokens(model, start=config.bos_token_id, end=config.eos_token_id, pad=config.pad_token_id)
        self._encoder = model.git.image_encoder
        model.git.image_encoder = self._encoded = _encoded()
        if self.settings.positions == "text":
            model.git.embeddings.register_forward_pre_hook(self._set_positions, with_kwargs=True)
        return model

    def _room(self) -> tuple[int, int]:
        return int(self._model.config.max_position_embeddings), 1

    def _encode(self, images: Sequence[Prepared]) -> Tensor:
        features: Tensor = self._encoder(self._stack(images)).last_hidden_state
        return features

    def _generate(
        self, features: Tensor, rows: Sequence[Row], config: GenerationConfig, processors: LogitsProcessorList
    ) -> Generated:
        import torch

        from agents.kv_cache import text_cache

        self._encoded.features = features
        start = [self._model.generation_config.bos_token_id]
        prompts = torch.tensor([start + self._ids(row.prompt) for row in rows], device=self._device)
        images = torch.tensor([row.image for row in rows], device=self._device)
        cache = text_cache(self._model.config)
        if self.settings.positions == "text":
            length = self._see(features, images.repeat_interleave(config.num_beams or 1), cache)
            seen: dict[str, Any] = {"attention_mask": prompts.new_ones(len(rows), length + prompts.shape[1])}
        else:
            seen = {"pixel_values": images[:, None, None, None]}
        try:
            done = self._model.generate(
                input_ids=prompts,
                past_key_values=cache,
                generation_config=config,
                logits_processor=processors,
                **seen,
            )
        finally:
            self._encoded.features = None
        return Generated(done.sequences[:, prompts.shape[1] :], done.get("sequences_scores"))

    def _see(self, features: Tensor, images: Tensor, cache: Cache) -> int:
        """Put the patches of ``images`` into the cache, one image for each beam; returns how many each has. No patch
        looks at the text, so that the decoder sees every image once, however many beams and samples it has."""
        from transformers import DynamicCache

        inner = self._model.git
        once = DynamicCache(config=self._model.config)
        inner.encoder(inner.visual_projection(features), attention_mask=None, past_key_values=once, use_cache=True)
        layers: list[Any] = once.layers
        for at, layer in enumerate(layers):
            cache.update(layer.keys[images], layer.values[images], at)
        return features.shape[1]

    def _set_positions(self, embeddings: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The position of a token that follows cached ones: how many of them are text."""
        import torch

        cached = kwargs.get("past_key_values_length", 0)
        if cached and self._encoded.features is not None:
            first = cached - self._encoded.features.shape[1]
            length = kwargs["input_ids"].shape[1]
            kwargs["position_ids"] = torch.arange(first, first + length, device=self._device)[None]
        return args, kwargs


def _encoded() -> Any:
    """A stand-in for the image encoder that hands out what was encoded before: its input is the images' places, so
    that ``generate`` can repeat it for beams at no cost."""
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    class Encoded(torch.nn.Module):
        features: Any = None

        def forward(self, pixel_values: Tensor, **_: Any) -> BaseModelOutput:
            assert self.features is not None
            return BaseModelOutput(last_hidden_state=self.features[pixel_values.flatten()])

    return Encoded()
