"""The agent ``eccnet``: search with less detail away from the fixation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from agents.attention import scanpath
from agents.attention.models.eccentric_pooling import EccentricPooling
from agents.attention.models.fixations import Plan
from agents.attention.models.vgg import Preprocessing
from agents.attention.vgg import VGGAgent
from agents.contract import MIB, Declaration, Draw, Reply
from agents.models.pretrained import WeightsFileSettings
from agents.stimuli import AttentionStimulus, Stimulus

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    # Image and target, resized, uint8 [1, 3, height, width], and what the frame asks for.
    EccnetInput = tuple[torch.Tensor, torch.Tensor, Plan]

RingSlope = Annotated[float, Field(ge=0, le=10)]
Scale = Annotated[float, Field(gt=0, le=1000)]
Degrees = Annotated[float, Field(gt=0, le=100)]


class EccNetAgent(VGGAgent["EccNetAgent.Settings"]):
    """Gupta et al. 2021; see :mod:`agents.attention.models.eccnet`. The image's longer side becomes ``long_side``, the
    shorter rounds up to a multiple of 32 (authors' program)."""

    class Settings(scanpath.ScanSettings, WeightsFileSettings):
        preprocessing: Preprocessing = "imagenet"
        """What the weights were trained with: torchvision's are "imagenet", those of the authors' program "caffe"."""
        resampling: Literal["nearest", "box"] = "nearest"
        """How image and target are resized: each pixel from one other (the authors' way), or the mean of an area."""
        long_side: Annotated[int, Field(ge=32, le=4096)] = 896
        """Pixels of the longer side of the image as it is shown to the network."""
        radius: Annotated[int, Field(ge=16, le=4096)] = 736
        """How far from the fixation, along either side, the next can be: pixels of the resized image; see margin."""
        margin: Annotated[int, Field(ge=0, le=1024)] = 64
        """Pixels seen beyond the radius, never chosen; 2 (radius + margin) is a multiple of 16 and at least 48."""
        window_resized: Annotated[int, Field(ge=1, le=4096)] | None = None
        """Side of the only window then, in pixels of the resized image: the authors' is 64, from x - 32 to x + 31."""
        target_side: Annotated[int, Field(ge=32, le=512, multiple_of=32)] = 32
        """Pixels of the sides of the target as it is shown to the network."""
        slopes: tuple[RingSlope, RingSlope, RingSlope, RingSlope, RingSlope] = (0.0, 0.0, 0.07, 0.16, 0.32)
        """How fast the windows of the five pools grow with eccentricity."""
        deg2px: tuple[Scale, Scale, Scale, Scale, Scale] = (30.0, 15.0, 8.0, 4.0, 2.0)
        """Cells in a degree of visual angle in the inputs of the five pools."""
        fovea: Degrees = 4.0
        """Diameter of the fovea, where windows do not grow, in degrees."""
        rf_quant: Degrees = 1.0
        """Width of the rings in which windows have one size: degrees of diameter."""
        rf_min: Annotated[int, Field(ge=2, le=64)] = 2
        """Side of the smallest window in cells."""

        @model_validator(mode="after")
        def _is_possible(self) -> EccNetAgent.Settings:
            if self.view % 16 or self.view < 48:
                raise ValueError("2 (radius + margin) must be a multiple of 16 and at least 48")
            self.pooling()  # raises ValueError
            return self

        @property
        def view(self) -> int:
            """Side of the view in pixels."""
            return 2 * (self.radius + self.margin)

        def pooling(self) -> list[EccentricPooling]:
            """One layer for each slope, in the order of the network. Raises ValueError for a ring without width."""
            pairs = zip(self.slopes, self.deg2px, strict=True)
            return [EccentricPooling(slope, scale, self.fovea, self.rf_quant, self.rf_min) for slope, scale in pairs]

    declares = Declaration(
        modes=("search",),
        # Measured on CPU, in MiB: 1662 on a frame of 1280 x 1024, and 220 while a photograph is prepared beside it.
        memory=2048 * MIB,
        device_memory=4096 * MIB,
        batch_size=1,  # a view is work enough for a device, and paths differ in length
    )

    def load(self, device: str) -> None:
        """Load VGG16, and build the network with pooling by eccentricity over it."""
        from agents.attention.models.eccnet import EccNet

        super().load(device)
        settings = self.settings
        self.net = EccNet(self.features, settings.pooling(), settings.view, settings.preprocessing)

    def prepare(self, stimulus: Stimulus) -> EccnetInput:
        """The image and the target, resized to [1, 3, rows, columns] in 0..255, and the plan of the path. Raises
        ImageError, and AnswerError without a picture of the target."""
        assert isinstance(stimulus, AttentionStimulus)
        target = scanpath.target_pixels(stimulus, self.name)
        pixels = stimulus.image.decode()
        height, width, _ = pixels.shape
        plan = scanpath.plan_scanpath(stimulus, (width, height), self.settings)
        rows = self._resized_side(height, max(width, height))
        columns = self._resized_side(width, max(width, height))
        side = self.settings.target_side
        return self._resized(pixels, columns, rows), self._resized(target, side, side), plan

    def respond(self, batch: Sequence[EccnetInput], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """Each item walks alone, as its view moves; paths are read from the device together."""
        import torch

        from agents.attention.models.eccnet import search
        from agents.attention.models.inhibition import hear
        from agents.models.transfer import uploaded

        settings = self.settings
        shown = iter(uploaded([picture for image, target, _ in batch for picture in (image, target)], self.device))
        with torch.inference_mode():
            gazes = [
                search(
                    self.net, next(shown), next(shown), plan.drawn(draw.seed), settings.radius, settings.window_resized
                )
                for (_, _, plan), draw in zip(batch, draws, strict=True)
            ]
            hear(gazes)
        return [scanpath.reply(path) for gaze in gazes for path in gaze.results()]

    def _resized_side(self, side: int, longest: int) -> int:
        """The length of a side once the ``longest`` is the settings' ``long_side``: a multiple of 32, rounded up."""
        long_side = self.settings.long_side
        if side == longest:
            return long_side
        return -(-side * long_side // (32 * longest)) * 32

    def _resized(self, pixels: NDArray[np.uint8], columns: int, rows: int) -> torch.Tensor:
        import numpy as np
        import torch
        from PIL import Image as PILImage

        way = PILImage.Resampling[self.settings.resampling.upper()]
        resized = np.array(PILImage.fromarray(pixels).resize((columns, rows), way))
        return torch.from_numpy(resized).permute(2, 0, 1)[None]

    def close(self) -> None:
        """Let the network and VGG16 go."""
        super().close()
        self.__dict__.pop("net", None)
