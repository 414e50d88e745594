"""The captioners GIT, BLIP and BLIP-2, by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from agents.contract import GIB, Declaration
from agents.errors import UnavailableError
from agents.vision.captioner import CaptionAgent, CaptionRow, LengthNorm
from agents.vision.captions import CaptionSettings
from agents.vision.pixels import ClipPixels, ProcessorInput

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor


class GitAgent(CaptionAgent["GitAgent.Settings"]):
    """GIT (Wang et al. 2022, arXiv 2205.14100): a decoder reads an image's patches before the text."""

    class Settings(CaptionSettings):
        """How beams are ranked."""

        length_norm: Literal["original", "transformers"] = "original"
        """A beam of n tokens is divided by ((5 + n) / 6)^penalty, as in the authors' program, or by n^penalty."""

    declares = Declaration(
        memory=4 * GIB,  # git-large is 1.6 GB in fp32, read while the model is built
        device_memory=6 * GIB,
    )
    model_class = "GitForCausalLM"
    model_types = ("git",)

    def open(self) -> None:
        """As the base class does; also prepare images as GIT's authors do, by CLIP's way."""
        super().open()
        processor = self._images
        self._pixels = ClipPixels(processor.crop_size.height, processor.image_mean, processor.image_std)

    def _load_model(self, folder: Path) -> Any:
        model = super()._load_model(folder)
        config = model.config
        self._use_tokens(model, start=config.bos_token_id, end=config.eos_token_id, pad=config.pad_token_id)
        self._positions = config.max_position_embeddings, 1
        if self.settings.length_norm == "original":  # Wu et al. 2016, arXiv 1609.08144, equation 14
            self._length_penalty = LengthNorm(self.settings.length_penalty, more=5, unit=6)
        self._patches = 0
        model.git.forward = self._read_text
        return model

    def _encode(self, images: Sequence[ProcessorInput]) -> Tensor:
        return self._model.git.image_encoder(self._stack(images)).last_hidden_state  # type: ignore[no-any-return]

    def _generate(self, features: Tensor, rows: Sequence[CaptionRow], options: dict[str, Any]) -> tuple[Any, int]:
        from transformers import DynamicCache

        git = self._model.git
        cache = DynamicCache(config=self._model.config)
        git.encoder(git.visual_projection(features), attention_mask=None, past_key_values=cache, use_cache=True)
        prompts, images = self._prompts(rows, [self._model.generation_config.bos_token_id])
        cache.batch_select_indices(images.repeat_interleave(self.width))
        self._patches = features.shape[1]
        generated = self._model.generate(
            input_ids=prompts,
            attention_mask=prompts.new_ones(len(rows), self._patches + prompts.shape[1]),
            past_key_values=cache,
            **options,
        )
        return generated, prompts.shape[1]

    def _read_text(self, input_ids: Tensor, past_key_values: Any, **_: Any) -> Any:
        """The model's forward for tokens [rows, n], in place of transformers' own.

        Why so: transformers (5.17) counts the image's patches in the cache as positions of the text, which then begins
        far behind its first position. What breaks: ``generate`` must go on to call this with ``input_ids`` and
        ``past_key_values`` alone; a version of transformers that mends its count makes this needless. A test compares
        the texts with those of the model's own ``generate``.
        """
        import torch
        from transformers.modeling_outputs import BaseModelOutputWithPast

        from agents.models.padding import additive_mask

        git = self._model.git
        past = past_key_values.get_seq_length()
        count = input_ids.shape[1]
        first = past - self._patches
        positions = torch.arange(first, first + count, device=self._device)[None]
        embedded = git.embeddings(input_ids=input_ids, position_ids=positions)
        mask = additive_mask(count, past + count, embedded.dtype, self._device) if count > 1 else None
        states = git.encoder(embedded, attention_mask=mask, past_key_values=past_key_values, use_cache=True)
        return BaseModelOutputWithPast(states.last_hidden_state, past_key_values)


class BlipAgent(CaptionAgent["BlipAgent.Settings"]):
    """BLIP (Li et al. 2022, arXiv 2201.12086): a decoder attends to an image's patches."""

    class Settings(CaptionSettings):
        """How beams are ranked."""

        length_norm: Literal["original", "transformers"] = "original"
        """What scores are divided by: tokens with the prompt's, as in the authors' transformers 4.15, or as today."""

    declares = Declaration(
        memory=5 * GIB,  # blip-large is 1.9 GB in fp32, read while the model is built
        device_memory=6 * GIB,
    )
    model_class = "BlipForConditionalGeneration"
    model_types = ("blip",)

    def _load_model(self, folder: Path) -> Any:
        model = super()._load_model(folder)
        text = model.config.text_config
        decoder = model.text_decoder
        # The decoder ends with the separator; its configuration's "end" token is another.
        self._use_tokens(decoder, start=text.bos_token_id, end=text.sep_token_id, pad=text.pad_token_id)
        self._positions = text.max_position_embeddings, 1
        if self.settings.length_norm == "original":  # the start counts, but not the end
            prompt = len(self._ids(self.settings.prompt))
            self._length_penalty = LengthNorm(self.settings.length_penalty, more=prompt)
        decoder.register_forward_pre_hook(_add_mask, with_kwargs=True)
        return model

    def _encode(self, images: Sequence[ProcessorInput]) -> Tensor:
        return self._model.vision_model(pixel_values=self._stack(images))[0]  # type: ignore[no-any-return]

    def _generate(self, features: Tensor, rows: Sequence[CaptionRow], options: dict[str, Any]) -> tuple[Any, int]:
        from agents.models.padding import shared_cache, shared_sources

        decoder = self._model.text_decoder
        prompts, images = self._prompts(rows, [decoder.generation_config.bos_token_id])
        across = [layer.crossattention.self for layer in decoder.bert.encoder.layer]
        with shared_sources(across, "encoder_hidden_states", self.width):
            generated = decoder.generate(
                input_ids=prompts,
                encoder_hidden_states=features[images],
                past_key_values=shared_cache(decoder.config),
                **options,
            )
        return generated, prompts.shape[1]


def _add_mask(text: Any, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Give BLIP's decoder a mask of additions, [1, 1, n, keys], in place of ones and zeros.

    Why so: transformers looks into ones and zeros at every step, for which a GPU must wait. No row is padded, so that
    the mask is causal and nothing else.
    """
    from agents.models.padding import additive_mask

    mask = additive_mask(named["input_ids"].shape[1], named["attention_mask"].shape[1], text.dtype, text.device)
    return args, {**named, "attention_mask": mask}


class Blip2Agent(CaptionAgent["Blip2Agent.Settings"]):
    """BLIP-2 (Li et al. 2023, arXiv 2301.12597): OPT reads 32 embeddings of the image."""

    class Settings(CaptionSettings):
        """As for every captioner."""

    declares = Declaration(
        memory=18 * GIB,  # blip2-opt-2.7b is 15 GB in fp32
        device_memory=20 * GIB,  # 8 GB in bf16, twice that in fp32, and the cache of the beams
    )
    model_class = "Blip2ForConditionalGeneration"
    model_types = ("blip-2",)

    def _load_model(self, folder: Path) -> Any:
        model = super()._load_model(folder)
        config = model.config
        text = model.config.text_config
        if text.is_encoder_decoder or config.image_token_index is None:
            raise UnavailableError(f"{folder}: only variants with OPT and an image token can be used")
        # OPT ends its captions with a new line; which token that is stands in the checkpoint's generation settings.
        end = model.generation_config.eos_token_id
        end = text.eos_token_id if end is None else end
        self._use_tokens(model.language_model, start=text.bos_token_id, end=end, pad=text.pad_token_id)
        self._positions = text.max_position_embeddings, config.num_query_tokens + 1
        return model

    def _encode(self, images: Sequence[ProcessorInput]) -> Tensor:
        model = self._model
        patches = model.vision_model(self._stack(images)).last_hidden_state
        queries = model.query_tokens.expand(len(images), -1, -1)
        answers = model.qformer(query_embeds=queries, encoder_hidden_states=patches).last_hidden_state
        return model.language_projection(answers.to(self._dtype))  # type: ignore[no-any-return]

    def _generate(self, features: Tensor, rows: Sequence[CaptionRow], options: dict[str, Any]) -> tuple[Any, int]:
        import torch

        from agents.models.padding import ready_masks

        model = self._model
        queries = model.config.num_query_tokens
        start = [model.config.image_token_index] * queries + [model.config.text_config.bos_token_id]
        prompts, images = self._prompts(rows, start)
        embedded = model.get_input_embeddings()(prompts)
        embedded[:, :queries] = features[images].to(embedded.dtype)
        # The prompt's tokens too, as transformers does: rules such as that on repeated n-grams look at them.
        with ready_masks(model.language_model, padded=False):
            generated = model.language_model.generate(
                input_ids=prompts, inputs_embeds=embedded, attention_mask=torch.ones_like(prompts), **options
            )
        return generated, prompts.shape[1]
