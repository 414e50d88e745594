"""GIT: a generative image-to-text transformer (Wang et al. 2022, arXiv 2205.14100), by transformers' classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agents.contract import GIB
from agents.vision.captioner import CaptionAgent, Prepared
from agents.vision.captions import CaptionSettings, LengthNorm, Texts

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor


class GitAgent(CaptionAgent["GitAgent.Settings"]):
    """The image's patches stand before the text and are cached once for each image.

    How text is read after them stands here: transformers (5.17) counts cached patches as positions of the text, which
    changes the caption, and makes a mask for each token, at which the host waits for the device.
    """

    class Settings(CaptionSettings):
        """As for every captioner, and how the length counts."""

        length_norm: Literal["original", "transformers"] = "original"
        """A beam of n tokens is divided by ((5 + n) / 6)^penalty, as in the authors' program, or by n^penalty."""

    memory = 4 * GIB  # git-large is 1.6 GB in fp32, read while the model is built
    device_memory = 6 * GIB
    model_class = "GitForCausalLM"
    model_types = ("git",)

    def open(self) -> None:
        super().open()
        self._images.center_crop = partial(_center_crop, self._images.center_crop)

    def _load_model(self, folder: Path) -> Any:
        model = super()._load_model(folder)
        config = model.config
        self._use_tokens(model, start=config.bos_token_id, end=config.eos_token_id, pad=config.pad_token_id)
        self._patches = 0
        model.git.forward = self._read_text
        return model

    def _length_penalty(self) -> float:
        penalty = super()._length_penalty()
        if self.settings.length_norm == "transformers":
            return penalty
        return LengthNorm(penalty, more=5, unit=6)  # Wu et al. 2016, arXiv 1609.08144, equation 14

    def _room(self) -> tuple[int, int]:
        return int(self._model.config.max_position_embeddings), 1

    def _encode(self, images: Sequence[Prepared]) -> Tensor:
        features: Tensor = self._model.git.image_encoder(self._stack(images)).last_hidden_state
        return features

    def _generate(self, features: Tensor, texts: Texts) -> tuple[Any, int]:
        from transformers import DynamicCache

        git = self._model.git
        cache = DynamicCache(config=self._model.config)
        git.encoder(git.visual_projection(features), attention_mask=None, past_key_values=cache, use_cache=True)
        start = [self._model.generation_config.bos_token_id]
        prompts, images = self._prompts(texts, start)
        cache.batch_select_indices(images.repeat_interleave(texts.beams))
        self._patches = features.shape[1]
        generated = self._model.generate(
            input_ids=prompts,
            attention_mask=prompts.new_ones(len(texts.rows), self._patches + prompts.shape[1]),
            past_key_values=cache,
            **texts.options,
        )
        return generated, prompts.shape[1]

    def _read_text(self, input_ids: Tensor, past_key_values: Any, **_: Any) -> Any:
        """The model's forward: tokens [rows, n] that follow on what the cache holds, the patches first."""
        import torch
        from transformers.modeling_outputs import BaseModelOutputWithPast

        from agents.padding import additive_mask

        git, past, count = self._model.git, past_key_values.get_seq_length(), input_ids.shape[1]
        first = past - self._patches
        positions = torch.arange(first, first + count, device=self._device)[None]
        embedded = git.embeddings(input_ids=input_ids, position_ids=positions)
        mask = additive_mask(count, past + count, embedded.dtype, self._device) if count > 1 else None
        states = git.encoder(embedded, attention_mask=mask, past_key_values=past_key_values, use_cache=True)
        return BaseModelOutputWithPast(states.last_hidden_state, past_key_values)


def _center_crop(crop: Callable[..., Any], image: Any, size: Any, **others: Any) -> Any:
    """The image processor's ``crop`` with the corner of torchvision's CenterCrop, the authors': half a pixel is rounded
    to the even number, here down."""
    top, left = (
        int(side > wanted and (side - wanted) % 4 == 3)
        for side, wanted in zip(image.shape[-2:], (size.height, size.width), strict=True)
    )
    return crop(image=image[..., top:, left:], size=size, **others)
