"""The agents ``gbvs`` and ``gbvs-harel``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from agents.attention import scanpath
from agents.attention.models.fixations import Plan
from agents.contract import MIB, Agent, Declaration, Draw, Reply
from agents.stimuli import AttentionStimulus, Stimulus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agents.attention.models.inhibition import DevicePaths

PIXELS_AT_ONCE = 2**22  # a batch is worked on in portions of about this many pixels, or of an image
Weight = Annotated[float, Field(ge=0, le=1000)]
GbvsInput = tuple["NDArray[np.uint8]", Plan, bool]  # pixels, plan, without the colour channel


class GraphSaliencyAgent(Agent["GraphSaliencyAgent.Settings"]):
    """Harel, Koch and Perona 2006; see ``models.graph_saliency``. Search ignores the target."""

    class Settings(scanpath.ScanSettings):
        normalisation: Literal["power", "graph"] = "power"
        """How activation is concentrated: by the power 1.5, or by the second walk on a graph."""
        weights: tuple[Weight, Weight, Weight] = (1.0, 1.0, 1.0)
        """Weights of the colour, the intensity and the orientation channel in the sum."""
        program: Literal["ours", "harel"] = "ours"
        """How maps are resized, linearised and blurred, which the paper leaves open: ours, or the authors' program."""
        grey: Literal["all", "no_colour"] = "all"
        """The channels of a picture whose file has one: all, or none of colour, as in the authors' program."""

    declares = Declaration(
        tasks=("attention_prediction",),
        extra="attention",
        packages=("torch",),
        reports=("torch",),
        # Measured on CPU, in MiB: 888 with 16 images of 1280 x 1024, 1949 with 8 photographs of 24 million pixels.
        memory=2048 * MIB,
        device_memory=1536 * MIB,
        batch_size=8,
        parallel=False,  # maps of 32 cells a side: threads would wait for each other longer than they work
    )

    def load(self, device: str) -> None:
        """Keep the device; there are no weights."""
        import torch

        self._device = torch.device(device)

    def prepare(self, stimulus: Stimulus) -> GbvsInput:
        """The pixels, uint8 [height, width, 3], the plan of the path, and whether colour is left out. Raises
        ImageError."""
        assert isinstance(stimulus, AttentionStimulus)
        pixels = stimulus.image.decode()
        without = self.settings.grey == "no_colour" and stimulus.image.header().one_channel
        return pixels, scanpath.plan_scanpath(stimulus, (pixels.shape[1], pixels.shape[0]), self.settings), without

    def respond(self, batch: Sequence[GbvsInput], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """A path for each item over its map of saliency; items of equal size walk together."""
        import torch

        from agents.attention.models import graph_saliency
        from agents.attention.models.inhibition import walks
        from agents.models.transfer import uploaded

        settings = self.settings
        images = uploaded([torch.from_numpy(pixels) for pixels, _, _ in batch], self._device)

        def walk(indices: list[int]) -> list[DevicePaths]:
            weights = (0.0, *settings.weights[1:]) if batch[indices[0]][2] else settings.weights
            pictures = torch.stack([images[index] for index in indices])
            maps = graph_saliency.saliency(pictures, settings.normalisation, weights, settings.program)
            return walks(maps, [batch[index][1].drawn(draws[index].seed) for index in indices])

        alike = [(*pixels.shape, int(without)) for pixels, _, without in batch]
        with torch.inference_mode():
            return [scanpath.reply(path) for path in scanpath.paths_by_size(alike, walk, PIXELS_AT_ONCE)]
