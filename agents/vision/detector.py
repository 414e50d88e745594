"""The base of the object detectors: settings, batches, and the way from boxes to the labels of an answer."""

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
    """A box counts if its score is above this; 0.05 is Detectron2's default."""
    top: int = Field(3, ge=1, le=100)
    """How many labels an answer has at most."""
    distinct: bool = False
    """Whether each label stands once; otherwise two boxes may have the same."""
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
    """Pixels [3, height, width] as the model takes them, and the (height, width) of the original."""

    pixels: torch.Tensor
    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Detections:
    """An image's boxes on the CPU: classes [n], scores [n], corners [n, 4] as left, top, right, bottom in its
    pixels."""

    classes: torch.Tensor
    scores: torch.Tensor
    corners: torch.Tensor


D = TypeVar("D", bound=DetectionSettings)


class Detector(Agent[D]):
    """A subclass sets ``names``, the label of each class number, and its model in ``load`` by :meth:`_install`.

    Images of equal prepared size go together, so that none is padded otherwise than alone. In fp32 only rounding inside
    the convolutions may depend on the batch (on CPU by no more than 2e-5 of a score).
    """

    tasks: ClassVar[tuple[Task, ...]] = ("object_detection",)
    extra = "vision"
    packages = ("torch", "torchvision", "transformers")
    names: Sequence[str]
    model: Any = None
    device: torch.device
    _finite: list[torch.Tensor]

    def _install(self, model: torch.nn.Module, device: str, heads: Iterable[torch.nn.Module]) -> None:
        """Keep ``model`` on ``device``, in evaluation mode. The outputs of its ``heads`` have to be finite."""
        import torch

        self.device = torch.device(device)
        use_full_float32(self.device.type)
        self.model = model.eval().to(self.device)
        if self.device.type == "cuda" and self._reduced() is not None:
            self.model.to(memory_format=torch.channels_last)  # as tensor cores take convolutions
        for head in heads:
            head.register_forward_hook(lambda head, args, output: self._finite.extend(_finite(output)))

    @abstractmethod
    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[torch.Tensor]:
        """The outputs for images [n, 3, height, width] on the device, from which :meth:`boxes` makes boxes on the CPU:
        of each the classes, scores and corners. ``sizes`` are the (height, width) of the originals."""

    def boxes(self, outputs: Sequence[torch.Tensor], sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        return [Detections(*outputs[start : start + 3]) for start in range(0, len(outputs), 3)]

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        return self._answer(batch) if batch else []

    def _answer(self, batch: Sequence[PreparedImage]) -> list[Reply | Exception]:
        """Where a head's output is not finite, each image of the group runs alone: detectors drop such boxes in
        silence."""
        import torch

        from agents.transfer import downloaded, uploaded

        groups: dict[tuple[int, ...], list[int]] = {}
        for index, item in enumerate(batch):
            groups.setdefault(tuple(item.pixels.shape), []).append(index)
        images = uploaded([item.pixels for item in batch], self.device)
        outputs: list[Sequence[torch.Tensor]] = []
        with torch.inference_mode(), self._arithmetic():
            for indices in groups.values():
                self._finite = []
                pixels = torch.stack([images[index] for index in indices])
                detected = self.detect(pixels, [batch[index].size for index in indices])
                outputs.append([torch.stack(self._finite).all(), *detected])
        arrived = iter(downloaded([part for group in outputs for part in group]))
        replies: dict[int, Reply | Exception] = {}
        for group, indices in zip(outputs, groups.values(), strict=True):
            finite, *output = (next(arrived) for _ in group)
            sizes = [batch[index].size for index in indices]
            if finite:
                for index, boxes, size in zip(indices, self.boxes(output, sizes), sizes, strict=True):
                    replies[index] = pick(boxes, self.names, size, self.settings)
            elif len(indices) > 1:
                replies |= {index: self._answer([batch[index]])[0] for index in indices}
            else:
                text = "the model's output for this image holds NaN or infinity"
                replies[indices[0]] = AnswerError("bad_output", text)
        return [replies[index] for index in range(len(batch))]

    def _arithmetic(self) -> AbstractContextManager[Any]:
        import torch

        kind = self._reduced()
        return nullcontext() if kind is None else torch.autocast(self.device.type, kind)

    def _reduced(self) -> torch.dtype | None:
        import torch

        return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.settings.precision)

    def close(self) -> None:
        self.model = None
        super().close()


class FileSettings(DetectionSettings, WeightsFileSettings):
    """Which boxes count, and a file of weights."""


F = TypeVar("F", bound=FileSettings)


class FileDetector(Detector[F], WeightsFileAgent[F]):
    """A detector whose checkpoint is a file of weights."""


def decode(stimulus: Stimulus, longest: int | None) -> NDArray[np.uint8]:
    """The pixels, uint8 [height, width, 3]. Raises ImageError, and AnswerError for an image of whose width nothing is
    left once its other side is resized to ``longest``."""
    assert isinstance(stimulus, ObjectStimulus)
    pixels = stimulus.image.decode()
    height, width, _ = pixels.shape
    if longest is not None and longest * min(height, width) < 2 * max(height, width):
        raise AnswerError("image_too_narrow", f"{width} x {height} pixels are too narrow to be resized for this model")
    return pixels


def pick(detections: Detections, names: Sequence[str], size: tuple[int, int], settings: DetectionSettings) -> Reply:
    """The labels of the boxes of highest score, with scores and [x, y, width, height], cut at the image of ``size``
    (height, width). Scores are compared as multiples of 2^-20; equals go by class number, then left, then top."""
    height, width = size
    all_scores = detections.scores.float()
    counts = all_scores > settings.threshold
    scores, classes = all_scores[counts].tolist(), detections.classes[counts].tolist()
    corners = detections.corners.float()[counts].tolist()
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
    if hasattr(output, "isfinite"):
        yield output.isfinite().all()
    elif isinstance(output, Mapping | Sequence):
        for part in output.values() if isinstance(output, Mapping) else output:
            yield from _finite(part)
