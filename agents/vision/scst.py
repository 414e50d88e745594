"""SCST (Rennie et al. 2017, arXiv 1612.00563). Defaults are those of tools/eval.py in
ruotianluo/self-critical.pytorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from agents.contract import GIB, Declaration
from agents.errors import AnswerError, UnavailableError
from agents.models.loading import load_pretrained
from agents.vision.captioner import CaptionRow
from agents.vision.captions import CaptionSettings
from agents.vision.parts_captioner import PartsCaptioner
from agents.vision.pixels import ProcessorInput

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import GenerationConfig

FILES = ("model-best.pth", "infos_fc_rl-best.pkl", "resnet101.pth")
"""The published files: of weights, of words, and of the ResNet's weights."""
SHORTEST = 3
"""The shortest side, in pixels, that the first layers need."""
MOST_PIXELS = 1 << 24
"""The most pixels of a picture, for which memory is reckoned."""


class SCSTAgent(PartsCaptioner["SCSTAgent.Settings"]):
    """Captions by the FC model of SCST, which sees pictures whole and at their own size."""

    class Settings(CaptionSettings):
        """The published beam search. ``max_tokens`` counts the end."""

        checkpoint: str
        """A folder with the published model-best.pth, infos_fc_rl-best.pkl and resnet101.pth."""
        prompt: Literal[""] = ""
        """Has no effect: the model continues no text."""
        length_penalty: float = Field(0.0, ge=-10, le=10)
        """Beam scores are divided by the length, the end included, to this power."""
        max_tokens: int = Field(20, ge=1, le=4096)
        """The largest number of tokens, the end included."""
        revision: None = None
        """Has no effect: the files are on no hub."""

    working_memory = 6 * GIB  # a picture of MOST_PIXELS takes four of them
    declares = Declaration(
        memory=7 * GIB,
        device_memory=7 * GIB,
    )
    model_types = ("scst",)
    parts = ("checkpoint",)
    last_needs = FILES
    source = (
        "github.com/ruotianluo/self-critical.pytorch links model-best.pth and infos_fc_rl-best.pkl in MODEL_ZOO.md "
        "(FC+self_critical) and resnet101.pth in data/README.md; put the three into a folder"
    )

    def weight_paths(self) -> Sequence[Path]:
        """The files of the decoder's weights and of the ResNet's, by whose sizes memory is reckoned."""
        weights, _, resnet = FILES
        return [self.folder() / weights, self.folder() / resnet]

    def open(self) -> None:
        """Read the words. Raises UnavailableError."""
        from agents.vision.scst_network import SCSTConfig, frequent_words, make_word_tokenizer, read_words

        self._pixels = _whole_picture
        if self.random:
            words = frequent_words(SCSTConfig.from_pretrained(self.folder()).vocab_size)
        else:
            words = read_words(self.folder() / FILES[1])
        self._tokenizer = make_word_tokenizer(words)

    def _load_model(self, folder: Path) -> Any:
        from agents.vision.scst_network import END, SCSTModel, load_scst

        if self.random:
            model = load_pretrained(SCSTModel, folder, self._device, self._dtype)
        else:
            model = load_scst(*self.weight_paths()).to(self._device, self._dtype)
        words = len(self._tokenizer) - 1
        rows = model.config.vocab_size - 1
        if words != rows:
            raise UnavailableError(f"{folder / FILES[1]} has {words} words, {folder / FILES[0]} {rows}")
        self._use_tokens(model, start=END, end=END, pad=END)
        return model

    def _group_key(self, prepared: ProcessorInput) -> tuple[int, ...]:
        return ()  # pictures of any size: the ResNet's features are of a single size

    def _encode(self, images: Sequence[ProcessorInput]) -> Tensor:
        import torch

        pictures = self._moved(*(image["pixel_values"] for image in images))
        return torch.cat([self._model.features(picture[None]) for picture in pictures])

    def _config(self, returned: int) -> GenerationConfig:
        from agents.vision.scst_network import UNKNOWN_WORD

        config = super()._config(returned)
        if self.width > 1:  # the published search goes on to the last token, and takes no unknown word
            config.early_stopping = self.settings.early_stopping or "never"
            last = len(self._tokenizer) - 1
            is_barred = self._tokenizer.convert_ids_to_tokens(last) == UNKNOWN_WORD and not self.random
            config.suppress_tokens = [last] if is_barred else None  # random weights have a rule of this kind already
        return config

    def _generate(self, features: Tensor, rows: Sequence[CaptionRow], options: dict[str, Any]) -> tuple[Any, int]:
        import torch

        [images] = self._moved([row.image for row in rows])
        starts = torch.zeros((len(rows), 1), dtype=torch.long, device=self._device)
        generated = self._model.generate(
            input_ids=starts,
            attention_mask=torch.ones_like(starts),
            past_key_values=self._model.decoder.begin(features[images.repeat_interleave(self.width)]),
            **options,
        )
        return generated, 1


def _whole_picture(pixels: NDArray[np.uint8]) -> ProcessorInput:
    import torch

    height, width, _ = pixels.shape
    if min(height, width) < SHORTEST:
        raise AnswerError("image_too_narrow", f"{width} x {height} has a side of less than {SHORTEST} pixels")
    if height * width > MOST_PIXELS:
        raise AnswerError("image_too_large", f"{width} x {height} is more than {MOST_PIXELS} pixels, seen whole")
    return {"pixel_values": torch.from_numpy(pixels).permute(2, 0, 1).contiguous()}
