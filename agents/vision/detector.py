"""The base of the object detectors: settings, batches, and the way from boxes to the three words of an answer.

The question asks for three objects. The answer is the labels of the three boxes of highest score; two boxes may have
the same label ("person, person, dog") unless ``distinct`` is set. An image in which fewer boxes score above the
threshold has fewer labels, down to none at all: that is an answer, not a failure, and ``raw`` says so in its ``note``.
People were asked for single words; ``label_words`` says what becomes of a label of two.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import ConfigDict, Field

from agents.answers import ObjectAnswer
from agents.contract import Agent, Draw, Reply
from agents.contract import Settings as BaseSettings
from agents.errors import AnswerError
from agents.loading import use_full_float32
from agents.pretrained import WeightsFileAgent, WeightsFileSettings
from agents.stimuli import ObjectStimulus, Stimulus, Task

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

STEP = 2.0**-20  # scores are compared in these steps: a batch's rounding should not decide between two labels
NAMELESS = frozenset({"__background__", "N/A"})  # COCO has 80 classes, numbered with gaps up to 90


class DetectionSettings(BaseSettings):
    """Which boxes count and which of them are named."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    threshold: float = Field(0.05, ge=0, lt=1)
    """A box counts if its score is above this; 0.05 is Detectron2's own default."""
    top: int = Field(3, ge=1, le=100)
    """How many labels are asked for."""
    distinct: bool = False
    """Whether each label is given once; otherwise two boxes may have the same."""
    label_words: Literal["all", "last"] = "all"
    """Of a label of several words: all, as in the published answers, or the last ("dining table": "table")."""
    short_edge: int | None = Field(None, ge=32, le=4096)
    """The resized image's shorter side in pixels; none: as published (800)."""
    long_edge: int | None = Field(None, ge=32, le=8192)
    """What the resized image's longer side may not exceed; none: as published (1333)."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Arithmetic of the model; auto is fp32 everywhere: bf16 has steps of 0.004 below 1, where the best scores are."""


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """One image as its model takes it, [3, height, width], and the (height, width) in pixels of the original."""

    pixels: torch.Tensor
    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Detections:
    """The boxes found in one image, in any order, on the CPU: class numbers [n], scores [n] and, in pixels of the
    original image, corners [n, 4] as left, top, right, bottom."""

    classes: torch.Tensor
    scores: torch.Tensor
    corners: torch.Tensor


D = TypeVar("D", bound=DetectionSettings)


class Detector(Agent[D]):
    """A detector that answers in batches. A subclass sets ``names``, the label of each class number, and in ``load``,
    through :meth:`_install`, the model, its device and the check of its heads.

    A batch is worked on in groups of images of one prepared size, so that no image is padded otherwise than alone.
    Nothing is drawn: the same image always has the same answer. In fp32 only the rounding inside the convolutions may
    depend on the batch: on CPU it moved no score at the published image size, and none by more than 2e-5 below it.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("object_detection",)
    extra = "vision"
    packages = ("torch", "torchvision", "transformers")
    names: Sequence[str]
    model: Any = None
    device: torch.device
    _finite: list[torch.Tensor]

    def _install(self, model: torch.nn.Module, device: str, heads: Iterable[torch.nn.Module]) -> None:
        """Keep ``model`` on ``device``, in evaluation mode. What its ``heads`` put out has to be finite."""
        import torch

        self.device = torch.device(device)
        use_full_float32(self.device.type)
        self.model = model.eval().to(self.device)
        if self.device.type == "cuda" and self._reduced() is not None:
            self.model.to(memory_format=torch.channels_last)  # as tensor cores take convolutions
        for head in heads:
            head.register_forward_hook(lambda head, given, output: self._finite.extend(_finite(output)))

    @abstractmethod
    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[torch.Tensor]:
        """What the model says of a group, which :meth:`boxes` is given on the CPU: of each image the classes, scores
        and corners of its boxes. ``pixels`` [n, 3, height, width] are on the model's device, ``sizes`` the (height,
        width) of the originals."""

    def boxes(self, said: Sequence[torch.Tensor], sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        """The boxes in each image of a group, on the CPU."""
        return [Detections(*said[start : start + 3]) for start in range(0, len(said), 3)]

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        return self._answer(batch) if batch else []

    def _answer(self, batch: Sequence[PreparedImage]) -> list[Reply | Exception]:
        """Replies to images; where a head said NaN or infinity, to each image of that group alone.

        Detectors drop such boxes in silence, and an image without any is a valid answer.
        """
        import torch

        from agents.transfer import downloaded, uploaded

        alike: dict[tuple[int, ...], list[int]] = {}
        for index, item in enumerate(batch):
            alike.setdefault(tuple(item.pixels.shape), []).append(index)
        images = uploaded([item.pixels for item in batch], self.device)
        said: list[Sequence[torch.Tensor]] = []
        with torch.inference_mode(), self._arithmetic():
            for indices in alike.values():
                self._finite = []
                pixels = torch.stack([images[index] for index in indices])
                found = self.detect(pixels, [batch[index].size for index in indices])
                said.append([torch.stack(self._finite).all(), *found])
        heard = iter(downloaded([one for group in said for one in group]))
        replies: dict[int, Reply | Exception] = {}
        for group, indices in zip(said, alike.values(), strict=True):
            finite, *output = (next(heard) for _ in group)
            sizes = [batch[index].size for index in indices]
            if finite:
                boxes = zip(indices, self.boxes(output, sizes), sizes, strict=True)
                replies |= {index: pick(one, self.names, size, self.settings) for index, one, size in boxes}
            elif len(indices) > 1:
                replies |= {index: self._answer([batch[index]])[0] for index in indices}
            else:
                replies[indices[0]] = AnswerError(
                    "bad_output", "the model's output for this image holds NaN or infinity"
                )
        return [replies[index] for index in range(len(batch))]

    def _arithmetic(self) -> AbstractContextManager[Any]:
        import torch

        kind = self._reduced()
        return nullcontext() if kind is None else torch.autocast(self.device.type, kind)

    def _reduced(self) -> torch.dtype | None:
        """What is computed in, if it is not fp32."""
        import torch

        return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.settings.precision)

    def close(self) -> None:
        self.model = None
        super().close()


class FileSettings(DetectionSettings, WeightsFileSettings):
    """Which boxes count, and one file of weights."""

    model_config = ConfigDict(use_attribute_docstrings=True)


F = TypeVar("F", bound=FileSettings)


class FileDetector(Detector[F], WeightsFileAgent[F]):
    """A detector whose checkpoint is one file of weights: the published one, in a cache, or a local one."""


def decode(stimulus: Stimulus, longest: int | None) -> NDArray[np.uint8]:
    """The image's pixels, uint8 [height, width, 3].

    Raises ImageError, and AnswerError for an image so narrow that nothing is left of its width once its other side is
    resized to ``longest`` pixels at most.
    """
    assert isinstance(stimulus, ObjectStimulus)
    pixels = stimulus.image.decode()
    height, width, _ = pixels.shape
    if longest is not None and longest * min(height, width) < 2 * max(height, width):
        raise AnswerError("image_too_narrow", f"{width} x {height} pixels are too narrow to be resized for this model")
    return pixels


def pick(found: Detections, names: Sequence[str], size: tuple[int, int], settings: DetectionSettings) -> Reply:
    """The answer: the labels of the boxes of highest score, their scores and their [x, y, width, height].

    ``size`` is the image's (height, width); what lies outside it is cut off. Scores are compared as multiples of 2^-20;
    where they are equal the lower class number goes first, then the box further left, then further up. Classes without
    a name are passed over. Scores are given to 4 decimals and boxes to a tenth of a pixel.
    """
    height, width = size
    all_scores = found.scores.float()
    counts = all_scores > settings.threshold
    scores, classes = all_scores[counts].tolist(), found.classes[counts].tolist()
    corners = found.corners.float()[counts].tolist()
    ranked = sorted(
        (-round(score / STEP), number, [round(edge) for edge in box], index)
        for index, (number, score, box) in enumerate(zip(classes, scores, corners, strict=True))
        if names[number] not in NAMELESS
    )
    chosen: list[int] = []
    labels: list[str] = []
    for _, number, _, index in ranked:
        label = names[number] if settings.label_words == "all" else names[number].split()[-1]
        if not (settings.distinct and label in labels):
            labels.append(label)
            chosen.append(index)
    chosen = chosen[: settings.top]
    answer = ObjectAnswer(
        labels=labels[: settings.top],
        scores=[round(scores[index], 4) for index in chosen],
        boxes=[_box(corners[index], height, width) for index in chosen],
    )
    raw: dict[str, Any] = {"detections": len(ranked)}
    if len(chosen) < settings.top:
        what = "distinct labels" if settings.distinct else "objects"
        raw["note"] = f"{len(chosen)} of {settings.top} {what} scored above {settings.threshold:g}"
    return Reply(answer, raw)


def _box(corners: Sequence[float], height: int, width: int) -> list[float]:
    left, right = (min(max(edge, 0.0), float(width)) for edge in corners[0::2])
    top, bottom = (min(max(edge, 0.0), float(height)) for edge in corners[1::2])
    return [round(left, 1), round(top, 1), round(right - left, 1), round(bottom - top, 1)]


def _finite(output: Any) -> Iterator[torch.Tensor]:
    """Whether each tensor that a head put out is finite, on its device."""
    if hasattr(output, "isfinite"):
        yield output.isfinite().all()
    elif isinstance(output, Mapping | Sequence):
        for part in output.values() if isinstance(output, Mapping) else output:
            yield from _finite(part)
