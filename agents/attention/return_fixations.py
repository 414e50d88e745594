"""The agent ``return-fixations``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from agents.attention import scanpath
from agents.attention.models.fixations import Plan
from agents.attention.vgg import VGGAgent
from agents.contract import Draw, Reply
from agents.models.pretrained import WeightsFileSettings
from agents.stimuli import AttentionStimulus, Stimulus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agents.attention.models.return_fixations import Memory, SeenStimulus

Weight = Annotated[float, Field(ge=0, le=1000)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(ge=0.001, le=100)]
Side = Annotated[int, Field(ge=16, le=4096)]
ReturnInput = tuple["SeenStimulus", Plan, "Memory", "NDArray[np.float64]"]


class ReturnFixations(VGGAgent["ReturnFixations.Settings"]):
    """Zhang et al. 2022; see ``models.return_fixations`` and ``models.similarity``. The original makes 14 fixations
    after the first in free viewing, 55 in search, 12 on arrays."""

    class Settings(scanpath.PathSettings, WeightsFileSettings):
        parameters: Literal["auto", "natural", "waldo", "array"] = "auto"
        """Which spread and floor, and prior of search; auto: by the data set in search, natural in free viewing."""
        spread: Positive | None = None
        """Standard deviation of inhibition on axes from 0 to 1 along the frame's sides, instead of the set's."""
        floor: Share | None = None
        """The share of its inhibition that a fixation keeps for ever, instead of the set's."""
        decay: Share = 0.92
        """What remains of inhibition from one fixation to the next, down to floor."""
        map_weight: Weight = 1.0
        """Weight of the map of saliency or similarity."""
        saccade_weight: Weight = 0.2346
        """Weight of the saccade prior."""
        memory_weight: Weight = 0.93
        """Weight of inhibition, which is subtracted."""
        saccades: Literal["amplitudes"] = "amplitudes"
        """The saccade prior: the authors' of free viewing and of each search, by size."""
        smoothing: Annotated[float, Field(ge=2, le=2)] = 2.0
        """Has no effect; it belonged to another saccade prior."""
        sizes: Annotated[tuple[Side, ...], Field(min_length=1, max_length=8)] = (1024, 512, 256)
        """Sides of the squares to which the frame is brought for the saliency map of free viewing."""
        border: Annotated[int, Field(ge=0, le=500)] = 25
        """Width of the saliency map's edge that is set to 0, in pixels of a frame of 1280 x 1024."""
        variant: Literal["tiled", "whole"] = "tiled"
        """How the similarity map of search is made, as in ivsn: the image in tiles of 224 pixels, or whole."""

    def open(self) -> None:
        """Read the saccade priors, one for each kind of viewing."""
        from agents.attention.models import return_fixations
        from agents.attention.models.similarity import Method

        self._priors = {viewing: return_fixations.saccade_prior(viewing) for viewing in return_fixations.VIEWINGS}
        self.method = Method(self.settings.variant)

    def prepare(self, stimulus: Stimulus) -> ReturnInput:
        """What the network sees, the plan of the path, how inhibition fades, and the saccade prior. Raises ImageError,
        and AnswerError for a search without a picture of the target."""
        from agents.attention.models import similarity
        from agents.attention.models.return_fixations import SeenStimulus, squares

        assert isinstance(stimulus, AttentionStimulus)
        pixels = stimulus.image.decode()
        plan = scanpath.plan_scanpath(stimulus, (pixels.shape[1], pixels.shape[0]), self.settings)
        kind = self._kind(stimulus)
        memory = self._memory(kind)
        if stimulus.mode == "free":
            return SeenStimulus(squares(pixels, self.settings.sizes)), plan, memory, self._priors["free"]
        prior = self._priors["waldo" if kind == "waldo" else "natural"]
        target = similarity.target_image(scanpath.target_pixels(stimulus, self.name), self.method)
        return SeenStimulus(search=similarity.search_image(pixels, self.method), target=target), plan, memory, prior

    def _kind(self, stimulus: AttentionStimulus) -> str:
        """Which of the authors' data sets a stimulus is like."""
        if self.settings.parameters != "auto":
            return self.settings.parameters
        name = (stimulus.dataset or stimulus.source or "").lower() if stimulus.mode == "search" else ""
        if "waldo" in name:
            return "waldo"
        return "array" if "array" in name else "natural"

    def _memory(self, kind: str) -> Memory:
        from agents.attention.models.return_fixations import MEMORIES, Memory

        published = MEMORIES[kind]
        spread = self.settings.spread
        floor = self.settings.floor
        return Memory(published.spread if spread is None else spread, published.floor if floor is None else floor)

    def respond(self, batch: Sequence[ReturnInput], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """A path for each item, by its map, its saccade prior and its fading inhibition."""
        import torch

        from agents.attention.models import return_fixations

        settings = self.settings
        weights = return_fixations.TermWeights(
            settings.map_weight, settings.saccade_weight, settings.memory_weight, settings.decay
        )
        if not batch:
            return []
        seen, plans, memories, priors = zip(*batch, strict=True)
        with torch.inference_mode():
            maps = return_fixations.maps(self.features, seen, self.method, settings.border)
            stacked = torch.stack([torch.from_numpy(prior) for prior in priors])
            drawn = [plan.drawn(draw.seed) for plan, draw in zip(plans, draws, strict=True)]
            paths = return_fixations.returning_scanpaths(maps, drawn, memories, stacked, weights)
        return [scanpath.reply(path) for path in paths]
