"""OpenFlamingo (Awadalla et al. 2023, arXiv 2308.01390), as in kreimanlab/TuringTest,
MiscellaneousCode/Flamingo_Caption.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from agents.contract import GIB, Declaration
from agents.models import model_folders
from agents.vision.captioner import CaptionRow, LengthNorm
from agents.vision.captions import CaptionSettings
from agents.vision.parts_captioner import PartsCaptioner
from agents.vision.pixels import ProcessorInput

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

ADDED = ("<|endofchunk|>", "<image>", "<PAD>")
"""What OpenFlamingo adds to the language model's tokens, in this order."""
ANSWER = "Answer:"
"""Behind this word stands the caption."""


class OpenFlamingoAgent(PartsCaptioner["OpenFlamingoAgent.Settings"]):
    """Captions by OpenFlamingo: GPT-NeoX, which looks at the image before some of its layers."""

    class Settings(CaptionSettings):
        """The three parts, and how beams are ranked."""

        clip: str = "openai/clip-vit-large-patch14"
        """CLIP's image tower: an id or a folder in transformers' form."""
        language_model: str = "togethercomputer/RedPajama-INCITE-Instruct-3B-v1"
        """An id or a folder with the GPT-NeoX that the checkpoint was trained for, and its tokenizer."""
        tower: Literal["papers", "trained"] = "papers"
        """papers: GELU, patches after the last norm, as in open_clip since 2.29. trained: as OpenFlamingo learned."""
        prompt: str = (
            "Question: What are things in this picture? Describe the scene with one complete sentence. Answer:"
        )
        """Text that the caption continues; it comes after the image."""
        beams: int = Field(3, ge=1, le=64)
        """Width of the beam search."""
        length_norm: Literal["original", "transformers"] = "original"
        """What scores are divided by: tokens with the prompt's, as in transformers 4.32 (the papers'), or as today."""

    declares = Declaration(
        memory=20 * GIB,  # 4 thousand million weights in fp32
        device_memory=12 * GIB,
    )
    model_types = ("openflamingo",)
    last_needs = ("config.json", model_folders.WEIGHTS, model_folders.TOKENIZER)
    last_types = ("gpt_neox",)

    def open(self) -> None:
        """As the base class does; also add OpenFlamingo's tokens to the tokenizer. Raises UnavailableError."""
        super().open()
        self._tokenizer.clean_up_tokenization_spaces = False
        self._tokenizer.add_special_tokens({"extra_special_tokens": list(ADDED)})
        self._end, self._image, self._padding = self._tokenizer.convert_tokens_to_ids(list(ADDED))

    def _load_model(self, folder: Path) -> Any:
        from agents.vision.openflamingo_network import load_openflamingo

        settings = self.settings
        model = load_openflamingo(
            folder,
            self._clip,
            self._gpt,
            len(self._tokenizer),
            self._device,
            self._dtype,
            as_in_papers=settings.tower == "papers",
        )
        # GPT-NeoX's usual end of a text does not end a caption.
        self._use_tokens(model.language, start=self._image, end=self._end, pad=self._padding)
        self._positions = model.language.config.max_position_embeddings, 1
        if settings.length_norm == "original":  # the prompt counts, and the image, but not the end
            prompt = len(self._ids(settings.prompt))
            self._length_penalty = LengthNorm(settings.length_penalty, more=prompt, cut=settings.max_tokens)
        return model

    def _encode(self, images: Sequence[ProcessorInput]) -> Tensor:
        return self._model.see(self._stack(images))  # type: ignore[no-any-return]

    def _generate(self, features: Tensor, rows: Sequence[CaptionRow], options: dict[str, Any]) -> tuple[Any, int]:
        import torch

        from agents.models.padding import ready_masks

        prompts, images = self._prompts(rows, [self._image])
        texts = {"input_ids": prompts, "attention_mask": torch.ones_like(prompts)}
        with ready_masks(self._model.language, padded=False):
            generated = self._model.generate(features[images], beams=self.width, **texts, **options)
        return generated, prompts.shape[1]

    def _clean(self, text: str) -> str:
        """The text after the last "Answer:", cleaned as by transformers then."""
        return self._tokenizer.clean_up_tokenization(text.rpartition(ANSWER)[2].strip())  # type: ignore[no-any-return]
