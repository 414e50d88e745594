"""ClipCap (Mokady et al. 2021, arXiv 2111.09734): CLIP's features become a prefix that GPT-2 continues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from agents.contract import GIB, Declaration
from agents.models import random_weights
from agents.vision.captioner import CaptionRow
from agents.vision.captions import CaptionSettings
from agents.vision.parts_captioner import PartsCaptioner
from agents.vision.pixels import ProcessorInput

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import GenerationConfig


class ClipCapAgent(PartsCaptioner["ClipCapAgent.Settings"]):
    """Captions by ClipCap. Beams are ranked by the mean log-probability per token, as by the authors;
    ``length_penalty`` has no effect."""

    class Settings(CaptionSettings):
        """The three parts, and the authors' beam search."""

        checkpoint: str
        """The authors' file (``coco_weights.pt``), or a folder with that file alone."""
        mapper: Literal["transformer", "mlp"]
        """Which of the two mappers the file holds."""
        clip: str
        """CLIP's image tower: an id or a folder in transformers' or open_clip's form."""
        language_model: str = "openai-community/gpt2"
        """An id or a folder with GPT-2's tokenizer and configuration, and its weights if the file has none."""
        normalise: None = None
        """Features are divided by their length where the authors do it: before the transformer mapper alone."""
        search: Literal["averaged"] = "averaged"
        """How beams are ranked: the authors' way."""
        beams: int = Field(5, ge=1, le=64)
        """Width of the beam search."""
        max_tokens: int = Field(67, ge=1, le=900)
        """The largest number of tokens, the full stop included."""
        revision: None = None
        """Has no effect: the file is on no hub, and the other two parts are what was fetched last."""

    declares = Declaration(
        packages=("timm", "torch", "torchvision", "transformers"),
        memory=4 * GIB,
        device_memory=4 * GIB,
    )
    keeps_end = True
    source = "download the authors' file, which github.com/rmokady/CLIP_prefix_caption links"
    last_types = ("gpt2",)

    def architecture(self) -> random_weights.Architecture:
        """What is drawn with random weights, of the mapper that the settings name. Raises UnavailableError for one that
        is not known."""
        return random_weights.architecture(self.settings.checkpoint, [f"clipcap_{self.settings.mapper}"])

    def open(self) -> None:
        """As the base class does; also find the full stop, which ends a caption. Raises UnavailableError."""
        super().open()
        self._stop = self._ids(".")[0]
        self._pad = self._stop
        self._ends = frozenset([self._stop])

    def _load_model(self, folder: Path) -> Any:
        from agents.vision.clipcap_network import load_clipcap

        model = load_clipcap(folder, self._clip, self._gpt, self.settings.mapper, self._device, self._dtype)
        self._positions = model.gpt.config.n_positions, model.clip_project.prefix_length
        return model

    def _encode(self, images: Sequence[ProcessorInput]) -> Tensor:
        return self._model.prefix(self._stack(images))  # type: ignore[no-any-return]

    def _config(self, returned: int) -> GenerationConfig:
        config = super()._config(returned)
        config.pad_token_id = self._stop
        if self.width > 1:  # the scores are averages already, and transformers does not know of the end
            config.length_penalty = 0.0
            config.early_stopping = True
        else:
            config.eos_token_id = self._stop
        return config

    def _rules(self) -> list[Any]:
        from transformers import MinNewTokensLengthLogitsProcessor

        from agents.vision.clipcap_network import AveragedBeams

        if self.width == 1:
            return []
        settings = self.settings
        least = settings.min_tokens
        if settings.count_prompt:
            prompt_length = self._model.clip_project.prefix_length + len(self._ids(settings.prompt))
            least = max(settings.min_tokens - prompt_length, 0)
        rule = MinNewTokensLengthLogitsProcessor(0, least, self._stop, device=str(self._device))
        return [rule, AveragedBeams(self._stop, settings.beams)]

    def _generate(self, features: Tensor, rows: Sequence[CaptionRow], options: dict[str, Any]) -> tuple[Any, int]:
        import torch

        from agents.models.padding import ready_masks
        from agents.vision.clipcap_network import AllStopped

        gpt = self._model.gpt
        prompts, images = self._prompts(rows, [])
        embedded = torch.cat((features[images], gpt.get_input_embeddings()(prompts)), dim=1)
        with ready_masks(gpt, padded=False):
            generated = gpt.generate(
                inputs_embeds=embedded,
                attention_mask=torch.ones(embedded.shape[:2], dtype=torch.long, device=self._device),
                stopping_criteria=[AllStopped(self._stop, self.width)] if self.width > 1 else [],
                **options,
            )
        return generated, 0
