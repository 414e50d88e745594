"""BLIP: bootstrapping language-image pre-training (Li et al. 2022, arXiv 2201.12086), through transformers' classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from agents import checkpoints
from agents.contract import GIB, Condition
from agents.vision.captioner import SEARCHED, CaptionAgent, CaptionRow, CaptionSettings, Generated, LengthNorm, Prepared

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

        counts: ClassVar[Mapping[str, Condition]] = {**CaptionSettings.counts, "length_norm": SEARCHED}

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
        import torch

        decoder = self._model.text_decoder
        start = [decoder.generation_config.bos_token_id]
        prompts = torch.tensor([start + self._ids(row.prompt) for row in rows], device=self._device)
        patches = features[[row.image for row in rows]]
        generated = decoder.generate(
            input_ids=prompts,
            encoder_hidden_states=patches,
            encoder_attention_mask=torch.ones(patches.shape[:-1], dtype=torch.long, device=self._device),
            generation_config=config,
            logits_processor=processors,
        )
        return Generated(generated.sequences[:, prompts.shape[1] :], generated.get("sequences_scores"))
