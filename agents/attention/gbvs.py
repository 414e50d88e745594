"""The agent ``gbvs``: graph-based visual saliency, and the map's maximum with inhibition of return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from agents.attention import scanpath
from agents.contract import MIB, Agent, Draw, Reply
from agents.errors import AnswerError
from agents.stimuli import AttentionStimulus, Stimulus, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PIXELS_AT_ONCE = 2**22  # a batch is worked on in portions of about this many pixels, or of one image
Weight = Annotated[float, Field(ge=0, le=1000)]
Prepared = tuple["NDArray[np.uint8]", scanpath.Plan]


class GraphSaliencyAgent(Agent["GraphSaliencyAgent.Settings"]):
    """Harel, Koch and Perona 2006, with the settings of their program; see ``models.graph_saliency``.

    The map knows nothing of a target: in search it is the same as in free viewing, and only the path ends when the
    target is found. Grey images are answered at less cost, with the same map.
    """

    class Settings(scanpath.ScanSettings):
        """How the map is made, and how it is turned into fixations."""

        normalisation: Literal["power", "graph"] = "power"
        """How activation is concentrated: by the power 1.5, or by the second walk on a graph."""
        weights: tuple[Weight, Weight, Weight] = (1.0, 1.0, 1.0)
        """Weights of the colour, the intensity and the orientation channel in the sum."""

    tasks: ClassVar[tuple[Task, ...]] = ("attention_prediction",)
    extra = "attention"
    packages = ("torch",)
    # Measured on CPU, in MiB: 751 with 16 images of 1280 x 1024, 1053 with one photograph of 24 million pixels, 1272
    # with two of them (a batch of 8 such photographs takes 1640, more than is declared).
    memory = 1280 * MIB
    device_memory = 1536 * MIB
    batch_size = 8
    parallel = False  # maps of 32 cells a side: threads would wait for each other longer than they work

    def load(self, device: str) -> None:
        import torch

        from agents.attention.models import graph_saliency

        self._device = torch.device(device)
        self._saliency = graph_saliency.saliency

    def prepare(self, stimulus: Stimulus) -> Prepared:
        assert isinstance(stimulus, AttentionStimulus)
        pixels = stimulus.image.decode()
        height, width, _ = pixels.shape
        task = scanpath.plan(stimulus, (width, height), self.settings)
        grey = bool((pixels[..., :1] == pixels[..., 1:]).all())
        return (pixels[..., 0].copy() if grey else pixels), task

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        alike: dict[tuple[int, ...], list[int]] = {}
        for index, (pixels, _) in enumerate(batch):
            alike.setdefault(pixels.shape, []).append(index)
        replies: dict[int, Reply | Exception] = {}
        for shape, indices in alike.items():
            portion = max(1, PIXELS_AT_ONCE // (shape[0] * shape[1]))
            for start in range(0, len(indices), portion):
                chosen = indices[start : start + portion]
                replies.update(zip(chosen, self._answer([batch[index] for index in chosen]), strict=True))
        return [replies[index] for index in range(len(batch))]

    def _answer(self, items: list[Prepared]) -> list[Reply | Exception]:
        """Replies to items of one shape."""
        import torch

        images = torch.stack([torch.from_numpy(pixels) for pixels, _ in items]).to(self._device)
        maps = self._saliency(images, self.settings.normalisation, self.settings.weights)
        paths = scanpath.scanpaths(maps, [task for _, task in items], self.settings.inhibition)
        selection = f"maximum, {self.settings.inhibition} inhibition"
        return [path if isinstance(path, AnswerError) else Reply(path.answer(selection)) for path in paths]

    def provenance(self) -> dict[str, Any]:
        import torch

        return {"torch": torch.__version__}
