"""The agents ``ivsn``, ``ivsn-notarget`` and ``ivsn-layer``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from agents.attention import scanpath
from agents.attention.models.fixations import Plan
from agents.attention.models.vgg import Preprocessing
from agents.attention.vgg import VGGAgent
from agents.contract import MIB, Declaration, Draw, Reply
from agents.models.pretrained import WeightsFileSettings
from agents.stimuli import AttentionStimulus, Stimulus

if TYPE_CHECKING:
    import torch

    from agents.attention.models.inhibition import DevicePaths
    from agents.attention.models.similarity import Search

PIXELS_AT_ONCE = 2**23  # on a GPU fixations are chosen on maps of about this many pixels together, or on a single map
IvsnInput = tuple["Search", "torch.Tensor | None", Plan]


class IVSNAgent(VGGAgent["IVSNAgent.Settings"]):
    """Invariant visual search (Zhang et al. 2018); see ``models.similarity``. The layer of IVSN-Layer, pool2, is our
    choice. Caffe's weights, which ``tiled`` had, need ``preprocessing``."""

    class Settings(scanpath.ScanSettings, WeightsFileSettings):
        variant: Literal["tiled", "whole"] = "tiled"
        """The search image in tiles of 224 pixels as in the paper, or whole as in the authors' later program."""
        preprocessing: Preprocessing = "imagenet"
        """What the weights were trained with: torchvision's are "imagenet", those of the original program "caffe"."""
        target_size: Annotated[int, Field(ge=16, le=64)] | None = None
        """Side in pixels to which the target is brought; none: 28 for tiled, 32 for whole, as the authors did."""
        target_layer: Literal["pool1", "pool2", "pool3", "pool4", "pool5"] = "pool5"
        """The pool up to which features are compared: pool5 is IVSN; which one IVSN-Layer has is not published."""
        modulation: Literal["target", "none"] = "target"
        """What the features are weighted with: the target's, or nothing (IVSN-NoTarget: their sum over channels)."""
        bottom_up: Literal["relu4_3", "relu5_3"] = "relu5_3"
        """Which features are summed without a target. The papers do not say; relu5_3 is what IVSN itself looks at."""
        search_size: Annotated[int, Field(ge=64, le=1024)] = 512
        """Side in pixels to which whole brings the search image; tiled takes it as it is."""

    declares = Declaration(
        modes=("search",),
        # Measured on CPU, in MiB: 1330 with 8 images of 1280 x 1024, 1380 with one of 24 million pixels and pool2.
        memory=1536 * MIB,
    )

    def open(self) -> None:
        """Choose how the map of similarity is made."""
        from agents.attention.models.similarity import Method

        settings = self.settings
        self.method = Method(
            settings.variant,
            settings.target_layer,
            settings.target_size,
            settings.search_size,
            settings.bottom_up if settings.modulation == "none" else None,
            settings.preprocessing,
        )

    def prepare(self, stimulus: Stimulus) -> IvsnInput:
        """The image and the target as the network takes them, and the plan of the path. Raises ImageError, and
        AnswerError without a picture of the target."""
        from agents.attention.models import similarity

        assert isinstance(stimulus, AttentionStimulus)
        target = None
        if self.method.bottom_up is None:
            target = similarity.target_image(scanpath.target_pixels(stimulus, self.name), self.method)
        search = similarity.search_image(stimulus.image.decode(), self.method)
        return search, target, scanpath.plan_scanpath(stimulus, search.frame, self.settings)

    def respond(self, batch: Sequence[IvsnInput], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """A path for each item over its map of similarity to the target; items of equal size walk together."""
        import torch

        from agents.attention.models import similarity
        from agents.attention.models.inhibition import walks

        if not batch:
            return []
        search, targets, plans = zip(*batch, strict=True)
        with torch.inference_mode():
            parts = similarity.responses(self.features, search, targets, self.method)

            def walk(indices: list[int]) -> list[DevicePaths]:
                maps = similarity.paste([parts[index] for index in indices], search[indices[0]].frame, self.method)
                return walks(maps, [plans[index].drawn(draws[index].seed) for index in indices])

            at_once = 1 if self.device.type == "cpu" else PIXELS_AT_ONCE
            paths = scanpath.paths_by_size([item.frame for item in search], walk, at_once)
        return [scanpath.reply(path) for path in paths]
