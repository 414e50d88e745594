"""OFA (Wang et al. 2022, arXiv 2202.03052). Defaults are those of the authors' run_scripts/caption/evaluate_caption.sh
and utils/eval_utils.py."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from agents.answers import CaptionAnswer
from agents.contract import GIB, Declaration, Reply
from agents.errors import UnavailableError
from agents.vision.captioner import CaptionAgent, CaptionRow
from agents.vision.captions import CaptionSettings
from agents.vision.parts_captioner import PartsCaptioner
from agents.vision.pixels import ClipPixels, ProcessorInput

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import GenerationConfig

    from agents.vision.ofa_network import OFAEncoderOutput

PUNCTUATION = str.maketrans("", "", string.punctuation)
"""A table that takes out punctuation."""


class OFAAgent(PartsCaptioner["OFAAgent.Settings"]):
    """Captions by OFA, of the authors' fairseq file."""

    class Settings(CaptionSettings):
        """The authors' beam search. ``max_tokens`` does not count the end token."""

        prompt: str = Field(" what does the image describe?", max_length=1000)
        """The question; the space before it is part of it."""
        beams: int = Field(5, ge=1, le=64)
        """Width of the beam search."""
        early_stopping: bool = True
        """Whether beam search ends as soon as there are as many finished beams as its width, as fairseq's does."""
        temperature: float = Field(1.0, ge=0, le=10)
        """Divides the logits, in beam search too, as in fairseq; 0 (drawn captions only) takes the likeliest token."""
        no_repeat_ngram: int = Field(3, ge=0, le=20)
        """A sequence of this many tokens stands once at most; 0: no such rule."""
        min_tokens: int = Field(1, ge=0, le=4096)
        """The least number of tokens before the text may end."""
        max_tokens: int = Field(16, ge=1, le=1023)
        """The largest number of tokens; a text that reaches it is ended, and its score counts that."""
        image_size: int = Field(480, ge=16, le=672)
        """Side of the square, in pixels, that images are squeezed to."""
        dictionary: str | None = None
        """Hub id or local folder of vocab.json and merges.txt, the same for all sizes of OFA."""
        strip_punctuation: bool = True
        """Whether punctuation is taken out of the caption, as the authors' evaluation does."""

    declares = Declaration(
        memory=12 * GIB,  # huge is 3.7 GB in fp32, read while the model is built
        device_memory=10 * GIB,
    )
    model_types = ("ofa",)
    parts = ("checkpoint", "dictionary")
    source = "fairseq's files are on no hub; github.com/OFA-Sys/OFA lists them in checkpoints.md"
    last_needs = ("vocab.json", "merges.txt")

    def checkpoint(self) -> tuple[str | None, str | None]:
        """As for every checkpoint, without the dictionary, which is the same for all sizes."""
        return CaptionAgent.checkpoint(self)  # without the dictionary, which is the same for all

    def weight_paths(self) -> Sequence[Path]:
        """The authors' file or its folder."""
        return [self.folder()]

    def open(self) -> None:
        """Open the preparation of images and the dictionary. Raises UnavailableError."""
        from agents.vision.ofa_fairseq import load_tokenizer

        half = (0.5, 0.5, 0.5)  # as in data/mm_data/caption_dataset.py
        self._pixels = ClipPixels(self.settings.image_size, half, half, squeezed=True)
        self._tokenizer = load_tokenizer(self.part_path("dictionary"))

    def load(self, device: str) -> None:
        """As the base class does; also mark the codes of images and the coordinates as no words. Raises
        UnavailableError."""
        from agents.vision.ofa_fairseq import OWN_TOKENS

        super().load(device)
        size = len(self._tokenizer)
        self._special |= frozenset(range(size - OWN_TOKENS, size))  # codes and coordinates are no words

    def _named(self, part: str) -> tuple[str, str | None]:
        name, revision = super()._named(part)
        return name or self.settings.checkpoint, revision

    def _load_model(self, folder: Path) -> Any:
        from agents.vision.ofa_fairseq import load_ofa

        model: Any = load_ofa(folder, self._device, self._dtype)
        config = model.config
        size = len(self._tokenizer)
        if size != config.vocab_size:
            raise UnavailableError(f"the dictionary has {size} tokens, {folder} {config.vocab_size}")
        self._use_tokens(model, start=config.bos_token_id, end=config.eos_token_id, pad=config.pad_token_id)
        self._positions = config.max_position_embeddings + len(self._ids(self.settings.prompt)), 2
        heat = self.settings.temperature
        # fairseq divides the logits in a beam search, too; transformers has no option for it. Drawn texts have a warp.
        if not self._drawn and heat not in (0, 1):
            model.register_forward_hook(lambda _, args, output: replace(output, logits=output.logits / heat))
        return model

    def _encode(self, images: Sequence[ProcessorInput]) -> OFAEncoderOutput:
        question = self._tokenizer(self.settings.prompt)["input_ids"]
        [tokens] = self._moved([question] * len(images))
        return self._model.encoder(tokens, self._stack(images))  # type: ignore[no-any-return]

    def _generate(
        self, features: OFAEncoderOutput, rows: Sequence[CaptionRow], options: dict[str, Any]
    ) -> tuple[Any, int]:
        [images] = self._moved([row.image for row in rows])
        return self._model.generate(encoder_outputs=features.rows(images), **options), 1

    def _config(self, returned: int) -> GenerationConfig:
        config = super()._config(returned)
        if not self.settings.count_prompt:
            config.min_new_tokens = None  # see FairseqEnd
            end = 0 if self.random else 1
            config.max_new_tokens = self.settings.max_tokens + end
        return config

    def _rules(self) -> list[Any]:
        from agents.vision.ofa_fairseq import FairseqEnd

        if self.random:  # its texts have no end that could be forced
            return []
        settings = self.settings
        least = 0 if settings.count_prompt else settings.min_tokens
        most = None if settings.count_prompt else settings.max_tokens
        beams = 1 if self._drawn or not settings.early_stopping else settings.beams
        return [FairseqEnd(least, most, min(self._ends), self._pad, beams)]

    def _reply(self, tokens: list[int], score: float | None, row: CaptionRow) -> Reply:
        reply = super()._reply(tokens, score, row)
        assert isinstance(reply.answer, CaptionAnswer)
        if reply.answer.tokens == self.settings.max_tokens:
            reply.answer.finish = "length"  # the end came of the limit
        return reply

    def _clean(self, text: str) -> str:
        return " ".join(text.translate(PUNCTUATION).split()) if self.settings.strip_punctuation else text
