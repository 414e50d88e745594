"""BLIP (Li et al. 2022, arXiv 2201.12086) and BLIP-2 (Li et al. 2023, arXiv 2301.12597), by transformers' classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from agents.contract import GIB
from agents.errors import UnavailableError
from agents.vision.captioner import CaptionAgent, Prepared
from agents.vision.captions import CaptionSettings, LengthNorm, Texts

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor


class BlipAgent(CaptionAgent["BlipAgent.Settings"]):
    """A text decoder that attends to the image's patches; the caption continues the prompt, which is cut off."""

    class Settings(CaptionSettings):
        """As for every captioner, and how the length counts."""

        length_norm: Literal["original", "transformers"] = "original"
        """What is divided by: tokens with the prompt's, as in the authors' transformers 4.15, or as in today's."""

    memory = 5 * GIB  # blip-large is 1.9 GB in fp32, read while the model is built
    device_memory = 6 * GIB
    model_class = "BlipForConditionalGeneration"
    model_types = ("blip",)

    def _load_model(self, folder: Path) -> Any:
        model = super()._load_model(folder)
        text = model.config.text_config
        # The decoder ends with the separator; its configuration's "end" token is another.
        decoder = model.text_decoder
        self._use_tokens(decoder, start=text.bos_token_id, end=text.sep_token_id, pad=text.pad_token_id)
        decoder.register_forward_pre_hook(_add_mask, with_kwargs=True)
        return model

    def _length_penalty(self) -> float:
        penalty = super()._length_penalty()
        if self.settings.length_norm == "transformers":
            return penalty
        return LengthNorm(penalty, more=len(self._ids(self.settings.prompt)))  # and the start, but not the end

    def _room(self) -> tuple[int, int]:
        return int(self._model.config.text_config.max_position_embeddings), 1

    def _encode(self, images: Sequence[Prepared]) -> Tensor:
        features: Tensor = self._model.vision_model(pixel_values=self._stack(images))[0]
        return features

    def _generate(self, features: Tensor, texts: Texts) -> tuple[Any, int]:
        from agents.padding import shared_cache, shared_sources

        decoder = self._model.text_decoder
        start = [decoder.generation_config.bos_token_id]
        prompts, images = self._prompts(texts, start)
        across = [layer.crossattention.self for layer in decoder.bert.encoder.layer]
        with shared_sources(across, "encoder_hidden_states", texts.beams):
            generated = decoder.generate(
                input_ids=prompts,
                encoder_hidden_states=features[images],
                past_key_values=shared_cache(decoder.config),
                **texts.options,
            )
        return generated, prompts.shape[1]


def _add_mask(text: Any, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The mask of the decoder's scores, to make which it would wait for the device."""
    from agents.padding import additive_mask

    mask = additive_mask(named["input_ids"].shape[1], named["attention_mask"].shape[1], text.dtype, text.device)
    return args, {**named, "attention_mask": mask}


class Blip2Agent(CaptionAgent["Blip2Agent.Settings"]):
    """A frozen language model reads the image as 32 embeddings before the prompt; variants with OPT."""

    class Settings(CaptionSettings):
        """As for every captioner."""

    memory = 18 * GIB  # blip2-opt-2.7b is 15 GB in fp32
    device_memory = 20 * GIB  # 8 GB in bf16, twice that in fp32, and the cache of the beams
    model_class = "Blip2ForConditionalGeneration"
    model_types = ("blip-2",)

    def _load_model(self, folder: Path) -> Any:
        model = super()._load_model(folder)
        text = model.config.text_config
        if text.is_encoder_decoder or model.config.image_token_index is None:
            raise UnavailableError(f"{folder}: only variants with OPT and an image token can be used")
        # OPT ends its captions with a new line; which token that is stands in the checkpoint's generation settings.
        end = model.generation_config.eos_token_id
        end = text.eos_token_id if end is None else end
        self._use_tokens(model.language_model, start=text.bos_token_id, end=end, pad=text.pad_token_id)
        return model

    def _room(self) -> tuple[int, int]:
        config = self._model.config
        return int(config.text_config.max_position_embeddings), config.num_query_tokens + 1

    def _encode(self, images: Sequence[Prepared]) -> Tensor:
        model = self._model
        patches = model.vision_model(self._stack(images)).last_hidden_state
        queries = model.query_tokens.expand(len(images), -1, -1)
        answers = model.qformer(query_embeds=queries, encoder_hidden_states=patches).last_hidden_state
        features: Tensor = model.language_projection(answers.to(self._dtype))
        return features

    def _generate(self, features: Tensor, texts: Texts) -> tuple[Any, int]:
        import torch

        from agents.padding import ready_masks

        model = self._model
        queries = model.config.num_query_tokens
        start = [model.config.image_token_index] * queries + [model.config.text_config.bos_token_id]
        prompts, images = self._prompts(texts, start)
        embedded = model.get_input_embeddings()(prompts)
        embedded[:, :queries] = features[images].to(embedded.dtype)
        # The prompt's tokens too, as transformers does: rules such as that on repeated n-grams look at them.
        with ready_masks(model.language_model, padded=False):
            generated = model.language_model.generate(
                input_ids=prompts,
                inputs_embeds=embedded,
                attention_mask=torch.ones_like(prompts),
                **texts.options,
            )
        return generated, prompts.shape[1]
