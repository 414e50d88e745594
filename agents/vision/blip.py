"""BLIP: bootstrapping language-image pre-training (Li et al. 2022, arXiv 2201.12086), through transformers' classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from agents import checkpoints
from agents.contract import GIB
from agents.vision.caption_settings import CaptionSettings
from agents.vision.captioner import CaptionAgent, CaptionRow, Generated, LengthNorm, Prepared

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import GenerationConfig, LogitsProcessorList


class BlipAgent(CaptionAgent["BlipAgent.Settings"]):
    """A text decoder that attends to the image's patches; the caption continues the prompt, which is cut off.

    All rows of a batch have the same prompt, so that nothing is padded.
    """

    class Settings(CaptionSettings):
        """As for every captioner, and how the length counts."""

        length_norm: Literal["original", "transformers"] = "original"
        """What is divided by: tokens with the prompt's, as in the authors' transformers 4.15, or as in today's."""

    memory = 5 * GIB  # blip-large is 1.9 GB in fp32, read while the model is built
    device_memory = 6 * GIB
    model_class = "BlipForConditionalGeneration"
    model_types = ("blip",)
    needs = ("config.json", checkpoints.WEIGHTS, checkpoints.PROCESSOR, checkpoints.TOKENIZER)

    settings: Settings

    def _load_model(self, folder: Path) -> Any:
        model = super()._load_model(folder)
        text = model.config.text_config
        # The decoder ends with the separator; its configuration's "end" token is another.
        decoder = model.text_decoder
        self._use_tokens(decoder, start=text.bos_token_id, end=text.sep_token_id, pad=text.pad_token_id)
        decoder.register_forward_pre_hook(_give_mask, with_kwargs=True)
        return model

    def _length_penalty(self) -> float:
        penalty = super()._length_penalty()
        if self.settings.length_norm == "transformers":
            return penalty
        norm = LengthNorm(penalty)
        norm.more = len(self._ids(self.settings.prompt))  # and the start, but not the end
        return norm

    def _room(self) -> tuple[int, int]:
        return int(self._model.config.text_config.max_position_embeddings), 1

    def _encode(self, images: Sequence[Prepared]) -> Tensor:
        features: Tensor = self._model.vision_model(pixel_values=self._stack(images))[0]
        return features

    def _generate(
        self, features: Tensor, rows: Sequence[CaptionRow], config: GenerationConfig, processors: LogitsProcessorList
    ) -> Generated:
        from agents.padding import shared_cache, shared_sources

        decoder = self._model.text_decoder
        start = [decoder.generation_config.bos_token_id]
        prompts, images = self._moved([start + self._ids(row.prompt) for row in rows], [row.image for row in rows])
        patches = features[images]
        across = [layer.crossattention.self for layer in decoder.bert.encoder.layer]
        with shared_sources(across, "encoder_hidden_states", config.num_beams or 1):
            generated = decoder.generate(
                input_ids=prompts,
                encoder_hidden_states=patches,
                past_key_values=shared_cache(decoder.config),
                generation_config=config,
                logits_processor=processors,
            )
        return Generated(generated.sequences[:, prompts.shape[1] :], generated.get("sequences_scores"))


def _give_mask(text: Any, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Before the decoder's forward: the mask that it adds to its scores, which it would wait for to make itself."""
    from agents.padding import additive_mask

    mask = additive_mask(named["input_ids"].shape[1], named["attention_mask"].shape[1], text.dtype, text.device)
    return args, {**named, "attention_mask": mask}
