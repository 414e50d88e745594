"""The agents ``ivsn``, ``ivsn-notarget`` and ``ivsn-layer``: search for what resembles the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from agents.attention import scanpath
from agents.attention.models import similarity
from agents.attention.models.vgg import Preprocessing, VGGAgent, VGGSettings
from agents.contract import MIB, Draw, Reply
from agents.errors import AnswerError
from agents.stimuli import AttentionStimulus, Stimulus, Task
from agents.tasks import Mode

if TYPE_CHECKING:
    import torch

PIXELS_AT_ONCE = 2**23  # fixations are chosen on maps of about this many pixels together, or on one map
Prepared = tuple[similarity.Search, "torch.Tensor | None", scanpath.Plan]


class IVSNAgent(VGGAgent["IVSNAgent.Settings"]):
    """Invariant visual search (Zhang et al. 2018); how its maps are made stands in ``models.similarity``.

    The search image is taken before the pool up to which features are compared, and so is the target in ``whole``,
    where only pool5 is published. Of IVSN-Layer the paper does not say which early layer it has: the authors' program
    lists sizes for pool1 to pool4, and pool2 is our choice.

    It answers search alone. The weights are torchvision's in both variants, which is the authors' choice in ``whole``;
    ``tiled`` had those of Caffe's VGG16, trained on the same images: for a file of these set ``preprocessing`` too.
    """

    class Settings(VGGSettings):
        """How the map is made, and how it is turned into fixations."""

        model_config = ConfigDict(use_attribute_docstrings=True)

        variant: similarity.Variant = "tiled"
        """The search image in tiles of 224 pixels as in the paper, or whole as in the authors' later program."""
        preprocessing: Preprocessing = "imagenet"
        """What the weights were trained with: torchvision's are "imagenet", those of the original program "caffe"."""
        target_size: Annotated[int, Field(ge=16, le=64)] | None = None
        """Side in pixels to which the target is brought; none: 28 for tiled, 32 for whole, as the authors did."""
        target_layer: similarity.TargetLayer = "pool5"
        """The pool up to which features are compared: pool5 is IVSN; which one IVSN-Layer has is not published."""
        modulation: Literal["target", "none"] = "target"
        """What the features are weighted with: the target's, or nothing (IVSN-NoTarget: their sum over channels)."""
        bottom_up: similarity.BottomUp = "relu5_3"
        """Which features are summed without a target. The papers do not say; relu5_3 is what IVSN itself looks at."""
        search_size: Annotated[int, Field(ge=64, le=1024)] = 512
        """Side in pixels to which whole brings the search image; tiled takes it as it is."""

    tasks: ClassVar[tuple[Task, ...]] = ("attention_prediction",)
    modes: ClassVar[tuple[Mode, ...]] = ("search",)
    # Measured on CPU, in MiB: 1222 (one thread) and 1230 (two) with 8 images of 1280 x 1024; 1279 with one photograph
    # of 24 million pixels and target_layer pool2. On a GPU nothing was measured.
    memory = 1536 * MIB

    def __init__(self, settings: IVSNAgent.Settings, name: str) -> None:
        super().__init__(settings, name)
        self._ways = similarity.Ways(
            settings.variant,
            settings.target_layer,
            settings.target_size,
            settings.search_size,
            settings.bottom_up if settings.modulation == "none" else None,
            settings.preprocessing,
        )

    def prepare(self, stimulus: Stimulus) -> Prepared:
        assert isinstance(stimulus, AttentionStimulus)
        target = None
        if self._ways.bottom_up is None:
            if stimulus.target_image is None:
                raise AnswerError("no_target_image", f"{self.name} looks for a picture: give it as target_image")
            target = similarity.target_image(stimulus.target_image.decode(), self._ways)
        search = similarity.search_image(stimulus.image.decode(), self._ways)
        return search, target, scanpath.plan(stimulus, search.frame, self.settings)

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        import torch

        items: Sequence[Prepared] = batch
        alike: dict[tuple[int, int], list[int]] = {}
        for index, item in enumerate(items):
            alike.setdefault(item[0].frame, []).append(index)
        replies: dict[int, Reply | Exception] = {}
        with torch.inference_mode():
            search, targets = [item[0] for item in items], [item[1] for item in items]
            parts = similarity.responses(self.features, search, targets, self._ways) if items else []
            for (width, height), indices in alike.items():
                portion = max(1, PIXELS_AT_ONCE // (width * height))
                for start in range(0, len(indices), portion):
                    chosen = indices[start : start + portion]
                    maps = similarity.paste([parts[index] for index in chosen], (width, height), self._ways)
                    plans = [items[index][2] for index in chosen]
                    paths = scanpath.scanpaths(maps, plans, self.settings.inhibition)
                    replies.update(zip(chosen, map(self._reply, paths), strict=True))
        return [replies[index] for index in range(len(items))]

    def _reply(self, path: scanpath.Scanpath | AnswerError) -> Reply | Exception:
        if isinstance(path, AnswerError):
            return path
        return Reply(path.answer(f"maximum, {self.settings.inhibition} inhibition"))
