"""Object detectors: batches, boxes, torchvision's Mask R-CNN, and DETR."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from pydantic import Field

from agents.answers import ObjectAnswer
from agents.contract import GIB, Agent, Declaration, Draw, Reply
from agents.contract import Settings as BaseSettings
from agents.errors import AnswerError
from agents.models import weight_files
from agents.models.loading import load_part, load_pretrained, use_full_float32
from agents.models.pretrained import (
    PretrainedAgent,
    PretrainedSettings,
    WeightsFileAgent,
    WeightsFileSettings,
    download_torchvision,
    torch_hub_path,
)
from agents.stimuli import ObjectStimulus, Stimulus

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

STEP = 2.0**-20
"""Scores are compared in steps of this size, so that a batch's rounding does not decide between two labels."""
NO_NAMES = frozenset({"__background__", "N/A"})
"""Classes that are none: COCO has 80 classes, numbered with gaps up to 90."""


class DetectionSettings(BaseSettings):
    """Which boxes become labels, and at what size images are seen."""

    threshold: float = Field(0.05, ge=0, lt=1)
    """A box counts if its score is above this; 0.05 is Detectron2's default."""
    top: int = Field(3, ge=1, le=100)
    """How many labels an answer has at most."""
    distinct: bool = False
    """Whether each label stands once only; otherwise two boxes may have the same label."""
    label_words: Literal["all"] = "all"
    """A label of several words stands in the answer whole, as in the published answers."""
    short_edge: int | None = Field(None, ge=32, le=4096)
    """The shorter side of the resized image, in pixels; none: as published (800)."""
    long_edge: int | None = Field(None, ge=32, le=8192)
    """The most pixels that the resized image's longer side may have; none: as published (1333)."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Arithmetic of the model; auto is fp32 everywhere: bf16 has steps of 0.004 below 1, where the best scores are."""


class PreparedImage(NamedTuple):
    """An image as the model takes it."""

    pixels: torch.Tensor
    """The resized image [3, height, width]."""
    size: tuple[int, int]
    """(height, width) of the original, in pixels."""


class Detections(NamedTuple):
    """The boxes of an image, in the order in which the model gives them."""

    classes: torch.Tensor
    """Class numbers [n]."""
    scores: torch.Tensor
    """Scores [n], from 0 to 1."""
    corners: torch.Tensor
    """Corners [n, 4]: left, top, right, bottom, in pixels of the original."""


D = TypeVar("D", bound=DetectionSettings)


class Detector(Agent[D]):
    """Base of the detectors. A subclass sets ``names`` by class number, and calls ``_install`` in ``load``.

    In fp32 only rounding depends on the batch.
    """

    declares = Declaration(
        tasks=("object_detection",),
        extra="vision",
        packages=("torch", "torchvision", "transformers"),
        # Measured of Mask R-CNN on CPU at 800 x 1199, in MiB: 1007 loaded, 1445 with one image, 3012 with 4.
        # On a GPU it is an estimate.
        memory=4 * GIB,
        device_memory=6 * GIB,
        batch_size=4,
    )
    names: Sequence[str]
    """The classes' names, by number."""
    model: Any = None
    """The model, once it is loaded."""
    device: torch.device
    """Where the model is."""
    _finite: list[torch.Tensor]

    def _install(self, model: torch.nn.Module, device: str, heads: Iterable[torch.nn.Module]) -> None:
        """Keep ``model`` in evaluation mode on ``device``, and watch whether outputs of ``heads`` are finite.

        Why so: the models drop boxes with scores that are no numbers, so that a broken answer would look like an empty
        image. What breaks: a hook sees what a head gives as it is, a tensor, a mapping or a sequence; ``_finite`` must
        be emptied before each call, as the flags stay on the GPU until the whole batch is fetched.
        """
        import torch

        self.device = torch.device(device)
        use_full_float32(self.device.type)
        self.model = model.eval().to(self.device)
        self._reduced = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.settings.precision)
        if self.device.type == "cuda" and self._reduced is not None:
            self.model.to(memory_format=torch.channels_last)  # as tensor cores take convolutions
        for head in heads:
            head.register_forward_hook(lambda head, args, output: self._note(output))

    def _note(self, output: Any) -> None:
        """Remember whether every number of a head's output is finite."""
        if hasattr(output, "isfinite"):
            self._finite.append(output.isfinite().all())
            return
        if isinstance(output, Mapping):
            output = output.values()
        for part in output:
            self._note(part)

    @abstractmethod
    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        """The boxes in resized images [n, 3, height, width]; ``sizes`` are the originals' (height, width)."""

    def respond(self, batch: Sequence[PreparedImage], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """The labels of each image. Images of one shape are detected together; where a head's output is not finite,
        each image of its group runs alone."""
        import torch

        from agents.models.transfer import downloaded, uploaded

        groups: dict[tuple[int, ...], list[int]] = {}
        for index, item in enumerate(batch):
            groups.setdefault(tuple(item.pixels.shape), []).append(index)
        images = uploaded([item.pixels for item in batch], self.device)
        outputs: list[torch.Tensor] = []
        with (
            torch.inference_mode(),
            nullcontext() if not self._reduced else torch.autocast(self.device.type, self._reduced),
        ):
            for indices in groups.values():
                self._finite = []
                pixels = torch.stack([images[index] for index in indices])
                detected = self.detect(pixels, [batch[index].size for index in indices])
                outputs += [torch.stack(self._finite).all(), *(part for boxes in detected for part in boxes)]
        arrived = iter(downloaded(outputs))
        replies: dict[int, Reply | Exception] = {}
        for indices in groups.values():
            is_finite = bool(next(arrived))
            boxes = {index: Detections(next(arrived), next(arrived), next(arrived)) for index in indices}
            for index in indices:
                if is_finite:
                    replies[index] = pick(boxes[index], self.names, batch[index].size, self.settings)
                elif len(indices) > 1:
                    [replies[index]] = self.respond([batch[index]], draws[:1])
                else:
                    text = "the model's output for this image holds NaN or infinity"
                    replies[index] = AnswerError("bad_output", text)
        return [replies[index] for index in range(len(batch))]

    def close(self) -> None:
        """Release the model."""
        self.model = None
        super().close()


def decode(stimulus: Stimulus, longest: int | None) -> NDArray[np.uint8]:
    """The image's pixels, uint8 [height, width, 3].

    Raises ImageError. Raises AnswerError for an image that would have less than two pixels across with ``longest``
    along.
    """
    assert isinstance(stimulus, ObjectStimulus)
    pixels = stimulus.image.decode()
    height, width, _ = pixels.shape
    if longest is not None and longest * min(height, width) < 2 * max(height, width):
        raise AnswerError("image_too_narrow", f"{width} x {height} pixels are too narrow to be resized for this model")
    return pixels


def pick(detections: Detections, names: Sequence[str], size: tuple[int, int], settings: DetectionSettings) -> Reply:
    """The answer of an image with the given ``size`` (height, width): labels, scores, and boxes [x, y, width, height]
    that are cut at its edges.

    The best scores come first; equal ones go by class, left edge and top edge.
    """
    all_scores = detections.scores.float()
    counts = all_scores > settings.threshold
    scores = all_scores[counts].tolist()
    classes = detections.classes[counts].tolist()
    corners = detections.corners.float()[counts].tolist()
    ranked = sorted(
        (-round(score / STEP), number, [round(edge) for edge in box], index)
        for index, (number, score, box) in enumerate(zip(classes, scores, corners, strict=True))
        if names[number] not in NO_NAMES
    )
    kept: list[int] = []
    labels: list[str] = []
    for _, number, _, index in ranked:
        if not (settings.distinct and names[number] in labels) and len(labels) < settings.top:
            labels.append(names[number])
            kept.append(index)
    boxes = [_box(corners[index], *size) for index in kept]
    answer = ObjectAnswer(labels=labels, scores=[round(scores[index], 4) for index in kept], boxes=boxes)
    raw: dict[str, Any] = {"detections": len(ranked)}
    if len(kept) < settings.top:
        what = "distinct labels" if settings.distinct else "objects"
        raw["note"] = f"{len(kept)} of {settings.top} {what} scored above {settings.threshold:g}"
    return Reply(answer, raw)


def _box(corners: Sequence[float], height: int, width: int) -> list[float]:
    """[x, y, width, height] of the ``corners`` left, top, right, bottom, cut at the picture's edges."""
    within = []
    for corner, most in zip(corners, (width, height, width, height), strict=True):
        within.append(min(max(corner, 0.0), float(most)))
    left, top, right, bottom = within
    return [round(value, 1) for value in (left, top, right - left, bottom - top)]


class TorchvisionMaskRCNNAgent(
    Detector["TorchvisionMaskRCNNAgent.Settings"], WeightsFileAgent["TorchvisionMaskRCNNAgent.Settings"]
):
    """Mask R-CNN (He et al. 2017, arXiv 1703.06870) with a ResNet-50-FPN, trained on COCO; its branch of masks is left
    out."""

    class Settings(DetectionSettings, WeightsFileSettings):
        """Which weights, and which boxes count."""

        variant: Literal["v1"] = "v1"
        """torchvision's maskrcnn_resnet50_fpn."""

    licence = "BSD-3-Clause"
    declares = Declaration(reports=("torchvision", "torch"))

    def published(self) -> Path:
        """Where torchvision's COCO_V1 lies, or would lie, in torch's cache."""
        return torch_hub_path("maskrcnn_resnet50_fpn_coco-bf2d0c1e.pth")  # torchvision's COCO_V1

    def download(self, path: Path) -> None:
        """Download torchvision's file to ``path``."""
        download_torchvision(path)

    def open(self) -> None:
        """Make ready the names and torchvision's own resizing."""
        from torchvision.models.detection import MaskRCNN_ResNet50_FPN_Weights
        from torchvision.models.detection.transform import GeneralizedRCNNTransform

        self.names = tuple(MaskRCNN_ResNet50_FPN_Weights.COCO_V1.meta["categories"])
        short = self.settings.short_edge or 800
        long = self.settings.long_edge or 1333
        self._transform = GeneralizedRCNNTransform(short, long, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]).eval()

    def load(self, device: str) -> None:
        """Build the network and give it the file's weights. Raises UnavailableError."""
        from torchvision.models.detection import FasterRCNN
        from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
        from torchvision.ops import FrozenBatchNorm2d

        backbone = resnet_fpn_backbone(backbone_name="resnet50", weights=None)
        model = FasterRCNN(backbone, num_classes=len(self.names), box_score_thresh=self.settings.threshold)
        for module in model.modules():  # as torchvision does where it loads the published weights by itself
            if isinstance(module, FrozenBatchNorm2d):
                module.eps = 0.0
        self.give_weights(model, weight_files.read_weights, ("roi_heads.mask_head.", "roi_heads.mask_predictor."))
        self._install(model, device, [model.rpn.head, model.roi_heads.box_predictor])

    def prepare(self, stimulus: Stimulus) -> PreparedImage:
        """The image, normalised and resized as torchvision does. Raises ImageError, AnswerError."""
        import torch

        pixels = decode(stimulus, self._transform.max_size)
        image = torch.from_numpy(pixels).permute(2, 0, 1).to(torch.float32).div(255)
        resized, _ = self._transform.resize(self._transform.normalize(image))
        return PreparedImage(resized, (pixels.shape[0], pixels.shape[1]))

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        """As in the base class; the batch is padded as torchvision does."""
        from torchvision.models.detection.image_list import ImageList

        shapes = [(image.shape[1], image.shape[2]) for image in pixels]
        padded = self._transform.batch_images(list(pixels))
        features = self.model.backbone(padded)
        proposals, _ = self.model.rpn(ImageList(padded, shapes), features)
        boxes, _ = self.model.roi_heads(features, proposals, shapes)
        boxes = self._transform.postprocess(boxes, shapes, list(sizes))
        return [Detections(image["labels"], image["scores"], image["boxes"]) for image in boxes]


class DetrAgent(Detector["DetrAgent.Settings"], PretrainedAgent["DetrAgent.Settings"]):
    """DETR (Carion et al. 2020, arXiv 2005.12872). A score is the best class's, "no object" left out; images are never
    padded."""

    class Settings(DetectionSettings, PretrainedSettings):
        """Which checkpoint, and which boxes count."""

        checkpoint: str = Field("facebook/detr-resnet-50", min_length=1)
        """An id on the Hugging Face hub, or a local folder."""

    model_types = ("detr",)
    declares = Declaration(
        reports=("transformers",),
        # Measured on CPU at 800 x 1199, in MiB: 778 loaded, 1355 with one image, 1908 with 4.
        # On a GPU it is less, by estimate.
        memory=3 * GIB,
        device_memory=3 * GIB,
    )
    working_memory = 3 * GIB

    def open(self) -> None:
        """Open the image processor. Raises UnavailableError."""
        import transformers

        self._processor = load_part(transformers.AutoImageProcessor, self.folder(), "image processor", backend="pil")
        self._size = dict(self._processor.size)
        if self.settings.short_edge is not None:
            self._size["shortest_edge"] = self.settings.short_edge
        if self.settings.long_edge is not None:
            self._size["longest_edge"] = self.settings.long_edge

    def load(self, device: str) -> None:
        """Load the model, whose configuration names the classes. Raises UnavailableError."""
        import torch
        import transformers

        where = torch.device(device)
        model = load_pretrained(transformers.DetrForObjectDetection, self.folder(), where, torch.float32)
        self.names = tuple(model.config.id2label.get(number, "N/A") for number in range(model.config.num_labels))
        self._install(model, device, [model.class_labels_classifier, model.bbox_predictor])
        self.drop_folder()

    def prepare(self, stimulus: Stimulus) -> PreparedImage:
        """The image as the processor resizes it. Raises ImageError, AnswerError."""
        pixels = decode(stimulus, self._size.get("longest_edge"))
        inputs = self._processor(
            images=pixels, size=self._size, do_pad=False, input_data_format="channels_last", return_tensors="pt"
        )
        return PreparedImage(inputs["pixel_values"][0], (pixels.shape[0], pixels.shape[1]))

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        """As in the base class."""
        import torch
        from torchvision.ops import box_convert

        from agents.models.transfer import uploaded

        output = self.model(pixel_values=pixels)
        scores, classes = output.logits.float().softmax(-1)[..., :-1].max(-1)
        [scales] = uploaded([torch.tensor([(wide, high, wide, high) for high, wide in sizes])], self.device)
        corners = box_convert(output.pred_boxes.float(), "cxcywh", "xyxy") * scales[:, None]
        return [Detections(*boxes) for boxes in zip(classes, scores, corners, strict=True)]

    def provenance(self) -> dict[str, Any]:
        """What the base class says; also the processor's class."""
        return {**super().provenance(), "processor": type(self._processor).__name__}
