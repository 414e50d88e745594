"""ClipCap: CLIP's features of an image as the prefix of a text of GPT-2 (Mokady et al. 2021, arXiv 2111.09734)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from agents import checkpoints
from agents.contract import GIB
from agents.errors import UnavailableError
from agents.loading import load_part
from agents.random_weights import RANDOM, Architecture, architecture, spelled
from agents.stimuli import CaptionStimulus, Stimulus
from agents.vision.captioner import CaptionAgent, CaptionRow, CaptionSettings, Generated, Prepared, check_shape

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import GenerationConfig, LogitsProcessorList

PUBLISHED = {"transformer": "transformer_weights.pt", "mlp": "coco_weights.pt"}  # the authors' files by mapper
SOURCE = "download the authors' file, which github.com/rmokady/CLIP_prefix_caption links"


class ClipCapAgent(CaptionAgent["ClipCapAgent.Settings"]):
    """The authors' file beside CLIP's image tower and GPT-2; see :mod:`agents.vision.models.clipcap`."""

    class Settings(CaptionSettings):
        """As for every captioner, and what the file is to be used with."""

        checkpoint: str
        """The authors' file (``coco_weights.pt``), or a folder with that file alone."""
        mapper: Literal["transformer", "mlp"]
        """Which of the two mappers the file holds."""
        clip: str
        """CLIP's image tower: an id or folder in transformers' or open_clip's form, or a file with OpenAI's names."""
        language_model: str = "openai-community/gpt2"
        """An id or folder with GPT-2's tokenizer and configuration; and its weights if the file has none."""
        normalise: bool | None = None
        """Whether features are divided by their length; none: as the authors do, with the transformer alone."""
        search: Literal["averaged", "transformers"] = "averaged"
        """How beams are ranked: the authors' way, by the mean per token (length_penalty unused), or transformers'."""
        beams: int = Field(5, ge=1, le=64)
        """Width of the beam search."""
        max_tokens: int = Field(67, ge=1, le=900)
        """The largest number of tokens, the full stop included."""
        revision: None = None
        """Of no use here: the file is on no hub, and the other two are what was fetched last."""
        image_processor: Literal["pil"] = "pil"
        """What resizes: Pillow, as in CLIP."""

    memory = 4 * GIB
    device_memory = 4 * GIB
    parts = ("checkpoint", "clip", "language_model")

    settings: Settings

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The file's name; its revision and those of the two other checkpoints."""
        if self.random:
            return RANDOM, PUBLISHED[self.settings.mapper]
        (name, revision), *others = (checkpoints.identity(getattr(self.settings, part)) for part in self.parts)
        return name, " ".join([str(revision), *(f"{other}@{at}" for other, at in others)])

    def weight_paths(self) -> Sequence[Path]:
        """GPT-2's folder is counted too, though the authors' files hold its weights themselves."""
        return [checkpoints.find(getattr(self.settings, part)) for part in self.parts]

    def architecture(self) -> Architecture:
        """That which was published with the mapper; ``clip`` and ``language_model`` have no part in it."""
        return architecture(spelled(PUBLISHED[self.settings.mapper]))

    def missing(self) -> str | None:
        if (lacking := self.missing_packages()) is not None:
            return lacking
        if self.random:
            return self.unknown_architecture()
        for part in self.parts:
            try:
                found = checkpoints.find(getattr(self.settings, part))
            except UnavailableError as error:
                how = SOURCE if part == "checkpoint" else f"run `turinglike fetch {self.name}` where there is a network"
                return f"{error}: {how}, or give a local copy with --set {self.name}.{part}=PATH"
        wrong = checkpoints.problem(found, ("config.json", checkpoints.TOKENIZER), ("gpt2",))
        return None if wrong is None else f"{found} {wrong}"

    def fetch(self) -> Sequence[checkpoints.Download]:
        if self.random:
            return ()
        try:  # what no hub has, before anything is downloaded
            file = checkpoints.fetch(self.settings.checkpoint)
        except UnavailableError as error:
            raise UnavailableError(f"{error}: {SOURCE}; then --set {self.name}.checkpoint=PATH") from None
        return [file, *(checkpoints.fetch(getattr(self.settings, part)) for part in self.parts[1:])]

    def provenance(self) -> dict[str, Any]:
        found = self.random or any(map(checkpoints.random_weights, self.weight_paths()))
        return {**super().provenance(), **({"random_weights": True} if found else {})}

    def open(self) -> None:
        from transformers import AutoTokenizer

        from agents.vision.models.clip_resnet import ClipPixels
        from agents.vision.models.clipcap import END, PAD, SIZES, input_size

        chosen = self.settings
        self._images = ClipPixels(SIZES[chosen.mapper] if self.random else input_size(checkpoints.find(chosen.clip)))
        self._gpt = self.folder() if self.random else checkpoints.find(chosen.language_model)
        self._tokenizer = load_part(AutoTokenizer, self._gpt, "tokenizer")
        self._ends, self._pad = frozenset([END]), PAD

    def prepare(self, stimulus: Stimulus) -> Prepared:
        assert isinstance(stimulus, CaptionStimulus)
        pixels = stimulus.image.decode()
        check_shape(pixels)
        return {"pixel_values": self._images(pixels)}

    def _load_model(self, folder: Path) -> Any:
        from agents.vision.models.clipcap import draw, load
        from agents.vision.models.clipcap_checkpoint import weights_file

        chosen = self.settings
        choices: dict[str, Any] = {
            "normalise": chosen.mapper == "transformer" if chosen.normalise is None else chosen.normalise,
            "stop": self._ids(".")[0],
            "averaged": chosen.search == "averaged",
        }
        if self.random:
            return draw(self._gpt, chosen.mapper, self._device, self._dtype, **choices)
        model = load(weights_file(folder), checkpoints.find(chosen.clip), self._gpt, chosen.mapper, **choices)
        return model.to(self._device, self._dtype)

    def _unsaid(self) -> frozenset[int]:
        return self._special | {self._ids(".")[0]}

    def _room(self) -> tuple[int, int]:
        return self._model.gpt.config.n_positions, self._model.prefix_length

    def _encode(self, images: Sequence[Prepared]) -> Tensor:
        prefix: Tensor = self._model.prefix(self._stack(images))
        return prefix

    def _generate(
        self, features: Tensor, rows: Sequence[CaptionRow], config: GenerationConfig, processors: LogitsProcessorList
    ) -> Generated:
        prefix = features[[row.image for row in rows]]
        return Generated(*self._model.generate(prefix, config, processors, prompt=self._ids(rows[0].prompt)))
