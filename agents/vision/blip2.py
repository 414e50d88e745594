"""BLIP-2: a frozen language model behind a querying transformer (Li et al. 2023, arXiv 2301.12597), through
transformers' classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agents import checkpoints
from agents.contract import GIB
from agents.vision.caption_settings import CaptionSettings
from agents.vision.captioner import CaptionAgent, CaptionRow, Generated, Prepared

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import GenerationConfig, LogitsProcessorList


class Blip2Agent(CaptionAgent["Blip2Agent.Settings"]):
    """The language model reads the image as 32 embeddings before the prompt; variants with OPT."""

    class Settings(CaptionSettings):
        """As for every captioner."""

    memory = 18 * GIB  # blip2-opt-2.7b is 15 GB in fp32
    device_memory = 20 * GIB  # 8 GB in bf16, twice that in fp32, and the cache of the beams
    model_class = "Blip2ForConditionalGeneration"
    model_types = ("blip-2",)
    needs = ("config.json", checkpoints.WEIGHTS, checkpoints.PROCESSOR, checkpoints.TOKENIZER)

    def _load_model(self, folder: Path) -> Any:
        from agents.errors import UnavailableError

        model = super()._load_model(folder)
        text = model.config.text_config
        if text.is_encoder_decoder or model.config.image_token_index is None:
            raise UnavailableError(f"{folder}: only variants with OPT and an image token can be used")
        # OPT ends its captions with a new line; which token that is stands in the checkpoint's generation settings.
        end = model.generation_config.eos_token_id
        self._use_tokens(
            model.language_model,
            start=text.bos_token_id,
            end=text.eos_token_id if end is None else end,
            pad=text.pad_token_id,
        )
        return model

    def _room(self) -> tuple[int, int]:
        config = self._model.config
        return int(config.text_config.max_position_embeddings), config.num_query_tokens + 1

    def _encode(self, images: Sequence[Prepared]) -> Tensor:
        model = self._model
        patches = model.vision_model(self._stack(images)).last_hidden_state
        queries = model.query_tokens.expand(len(images), -1, -1)
        seen = model.qformer(query_embeds=queries, encoder_hidden_states=patches).last_hidden_state
        features: Tensor = model.language_projection(seen.to(self._dtype))
        return features

    def _generate(
        self, features: Tensor, rows: Sequence[CaptionRow], config: GenerationConfig, processors: LogitsProcessorList
    ) -> Generated:
        import torch

        from agents.padding import ready_masks

        model = self._model
        image = model.config.image_token_index
        queries = model.config.num_query_tokens
        start = [image] * queries + [model.config.text_config.bos_token_id]
        prompts, images = self._moved([start + self._ids(row.prompt) for row in rows], [row.image for row in rows])
        embedded = model.get_input_embeddings()(prompts)
        embedded[:, :queries] = features[images].to(embedded.dtype)
        # The prompt's tokens too, as transformers does: rules such as that on repeated n-grams look at them.
        with ready_masks(model.language_model, padded=False):
            generated = model.language_model.generate(
                input_ids=prompts,
                inputs_embeds=embedded,
                attention_mask=torch.ones_like(prompts),
                generation_config=config,
                logits_processor=processors,
            )
        return Generated(generated.sequences[:, prompts.shape[1] :], generated.get("sequences_scores"))
