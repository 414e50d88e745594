"""The agent ``torchvision-maskrcnn``: torchvision's Mask R-CNN with a ResNet-50-FPN, trained on COCO."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agents import checkpoints
from agents.contract import GIB
from agents.errors import UnavailableError
from agents.pretrained import download_torchvision, torch_hub_path
from agents.stimuli import Stimulus
from agents.vision.detector import FileDetector, FileSettings, PreparedImage, decode

if TYPE_CHECKING:
    import torch
    from torchvision.models.detection import FasterRCNN

# torchvision's COCO_V1 weights of maskrcnn_resnet50_fpn and maskrcnn_resnet50_fpn_v2, named without importing it
FILES = {"v1": "maskrcnn_resnet50_fpn_coco-bf2d0c1e.pth", "v2": "maskrcnn_resnet50_fpn_v2_coco-73cbd019.pth"}
SHORT, LONG = 800, 1333
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
MASKS = ("roi_heads.mask_head.", "roi_heads.mask_predictor.")


class TorchvisionMaskRCNNAgent(FileDetector["TorchvisionMaskRCNNAgent.Settings"]):
    """He et al. 2017 ("v1"), or with the training of Li et al. 2021 ("v2"), without the masks, which change no box."""

    class Settings(FileSettings):
        """Which of the two published models, with which weights, and which boxes count."""

        variant: Literal["v1", "v2"] = "v1"
        """torchvision's maskrcnn_resnet50_fpn or maskrcnn_resnet50_fpn_v2."""

    licence = "BSD-3-Clause"
    # Measured on CPU at 800 x 1199, in MiB: 1007 loaded, 1445 with one image, 3012 with 4. On a GPU, by estimate, the
    # same activations, cuDNN's workspaces and the CUDA context.
    memory = 4 * GIB
    device_memory = 6 * GIB
    batch_size = 4

    def published(self) -> Path:
        return torch_hub_path(FILES[self.settings.variant])

    def download(self, path: Path) -> None:
        download_torchvision(path)

    def open(self) -> None:
        from torchvision.models.detection import MaskRCNN_ResNet50_FPN_Weights
        from torchvision.models.detection.transform import GeneralizedRCNNTransform

        self.names = tuple(MaskRCNN_ResNet50_FPN_Weights.COCO_V1.meta["categories"])
        short, long = self.settings.short_edge or SHORT, self.settings.long_edge or LONG
        self._transform = GeneralizedRCNNTransform(short, long, MEAN, DEVIATION).eval()

    def load(self, device: str) -> None:
        if (lacking := self.missing()) is not None:
            raise UnavailableError(lacking)
        model = _build(self.settings.variant, len(self.names), self.settings.threshold)
        self.give_weights(model, checkpoints.read_weights, MASKS)
        self._install(model, device, [model.rpn.head, model.roi_heads.box_predictor])

    def prepare(self, stimulus: Stimulus) -> PreparedImage:
        import torch

        pixels = decode(stimulus, self._transform.max_size)
        image = torch.from_numpy(pixels).permute(2, 0, 1).to(torch.float32).div(255)
        resized, _ = self._transform.resize(self._transform.normalize(image))
        return PreparedImage(resized, (pixels.shape[0], pixels.shape[1]))

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[torch.Tensor]:
        from torchvision.models.detection.image_list import ImageList

        shapes = [(image.shape[1], image.shape[2]) for image in pixels]
        padded = self._transform.batch_images(list(pixels))
        features = self.model.backbone(padded)
        proposals, _ = self.model.rpn(ImageList(padded, shapes), features)
        boxes, _ = self.model.roi_heads(features, proposals, shapes)
        boxes = self._transform.postprocess(boxes, shapes, list(sizes))
        return [image[part] for image in boxes for part in ("labels", "scores", "boxes")]

    def provenance(self) -> dict[str, Any]:
        import torch
        import torchvision

        return {**super().provenance(), "torchvision": torchvision.__version__, "torch": torch.__version__}


def _build(variant: str, classes: int, threshold: float) -> FasterRCNN:
    """Without weights and masks. torchvision freezes the normalisation of the first, and takes ``eps`` from it, only
    where it loads the published weights by itself: they were trained so."""
    from torchvision.models.detection import FasterRCNN, fasterrcnn_resnet50_fpn_v2
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    from torchvision.ops import FrozenBatchNorm2d

    if variant == "v2":
        return fasterrcnn_resnet50_fpn_v2(
            weights=None, weights_backbone=None, num_classes=classes, box_score_thresh=threshold
        )
    backbone = resnet_fpn_backbone(backbone_name="resnet50", weights=None)
    model = FasterRCNN(backbone, num_classes=classes, box_score_thresh=threshold)
    for module in model.modules():
        if isinstance(module, FrozenBatchNorm2d):
            module.eps = 0.0
    return model
