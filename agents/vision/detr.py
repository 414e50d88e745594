"""The agent ``detr-resnet-50``: DETR, detection by a transformer without anchors, through transformers."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from agents.contract import GIB
from agents.errors import UnavailableError
from agents.loading import load_part, load_pretrained
from agents.pretrained import PretrainedAgent, PretrainedSettings
from agents.stimuli import Stimulus
from agents.vision.detector import Detections, DetectionSettings, Detector, PreparedImage, decode

if TYPE_CHECKING:
    import torch


class DetrAgent(Detector["DetrAgent.Settings"], PretrainedAgent["DetrAgent.Settings"]):
    """Carion et al. 2020. The class "no object" is never an answer; a box's score is that of its best other class.

    The image is resized and normalised by the checkpoint's own processor in its Pillow form, as when the checkpoint was
    published; it is never padded.
    """

    class Settings(DetectionSettings, PretrainedSettings):
        """Which checkpoint, and which boxes count."""

        model_config = ConfigDict(use_attribute_docstrings=True)

        checkpoint: str = Field("facebook/detr-resnet-50", min_length=1)
        """An id on the Hugging Face hub, or a local folder."""

    model_types = ("detr",)
    # Measured on CPU at 800 x 1199, in MiB: 778 loaded, 1355 with one image, 1908 with 4; on a GPU, by estimate, less.
    memory = device_memory = working_memory = 3 * GIB
    batch_size = 4

    def missing(self) -> str | None:
        lacking = super().missing()
        if lacking is None and not self.random and self._needs_timm() and importlib.util.find_spec("timm") is None:
            return f"{self.settings.checkpoint} has a backbone of timm, which is not installed: `pip install timm`"
        return lacking

    def open(self) -> None:
        import transformers

        if (lacking := self.missing()) is not None:
            raise UnavailableError(lacking)
        self._processor = load_part(transformers.AutoImageProcessor, self.folder(), "image processor", backend="pil")
        size = dict(self._processor.size)
        if self.settings.short_edge is not None:
            size["shortest_edge"] = self.settings.short_edge
        if self.settings.long_edge is not None:
            size["longest_edge"] = self.settings.long_edge
        self._size = size

    def load(self, device: str) -> None:
        import torch
        import transformers

        where = torch.device(device)
        model = load_pretrained(transformers.DetrForObjectDetection, self.folder(), where, torch.float32)
        self.names = tuple(model.config.id2label.get(number, "N/A") for number in range(model.config.num_labels))
        self._install(model, device, [model.class_labels_classifier, model.bbox_predictor])
        self.drop_folder()

    def prepare(self, stimulus: Stimulus) -> PreparedImage:
        pixels = decode(stimulus, self._size.get("longest_edge"))
        given = self._processor(
            images=pixels, size=self._size, do_pad=False, input_data_format="channels_last", return_tensors="pt"
        )
        return PreparedImage(given["pixel_values"][0], (pixels.shape[0], pixels.shape[1]))

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[torch.Tensor]:
        output = self.model(pixel_values=pixels)
        return output.logits.float(), output.pred_boxes.float()

    def boxes(self, said: Sequence[torch.Tensor], sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        output = SimpleNamespace(logits=said[0], pred_boxes=said[1])
        found = self._processor.post_process_object_detection(output, self.settings.threshold, list(sizes))
        return [Detections(one["labels"], one["scores"], one["boxes"]) for one in found]

    def provenance(self) -> dict[str, Any]:
        import transformers

        about = {"processor": type(self._processor).__name__, "transformers": transformers.__version__}
        return {**PretrainedAgent.provenance(self), **about}

    def _needs_timm(self) -> bool:
        """Whether the config names a backbone of timm's, in the older form of the published file or in the newer."""
        config = json.loads((self.folder() / "config.json").read_bytes())
        backbone = config.get("backbone_config")
        if backbone is None:
            return bool(config.get("use_timm_backbone", True))
        return bool(backbone.get("model_type") == "timm_backbone")
