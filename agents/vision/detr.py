"""The agent ``detr-resnet-50``: DETR, by transformers' classes."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from agents.contract import GIB
from agents.errors import UnavailableError
from agents.loading import load_part, load_pretrained
from agents.pretrained import PretrainedAgent, PretrainedSettings
from agents.stimuli import Stimulus
from agents.vision.detector import Detections, DetectionSettings, Detector, PreparedImage, decode

if TYPE_CHECKING:
    import torch


class DetrAgent(Detector["DetrAgent.Settings"], PretrainedAgent["DetrAgent.Settings"]):
    """Carion et al. 2020. A box's score is that of its best class, "no object" excluded. The image is resized by the
    checkpoint's processor in its Pillow form, as when it was published, and never padded."""

    class Settings(DetectionSettings, PretrainedSettings):
        """Which checkpoint, and which boxes count."""

        checkpoint: str = Field("facebook/detr-resnet-50", min_length=1)
        """An id on the Hugging Face hub, or a local folder."""

    model_types = ("detr",)
    # Measured on CPU at 800 x 1199, in MiB: 778 loaded, 1355 with one image, 1908 with 4; on a GPU, by estimate, less.
    memory = device_memory = working_memory = 3 * GIB
    batch_size = 4

    def open(self) -> None:
        import transformers

        if (lacking := self.missing()) is not None:
            raise UnavailableError(lacking)
        self._processor = load_part(transformers.AutoImageProcessor, self.folder(), "image processor", backend="pil")
        chosen = {"shortest_edge": self.settings.short_edge, "longest_edge": self.settings.long_edge}
        edges = {name: edge for name, edge in chosen.items() if edge is not None}
        self._size = {**dict(self._processor.size), **edges}

    def load(self, device: str) -> None:
        import torch
        import transformers

        where = torch.device(device)
        try:
            model = load_pretrained(transformers.DetrForObjectDetection, self.folder(), where, torch.float32)
        except ImportError:  # as the published checkpoint's main revision has
            backbone = "has a backbone of timm, which is not installed: `pip install timm`"
            raise UnavailableError(f"{self.settings.checkpoint} {backbone}") from None
        self.names = tuple(model.config.id2label.get(number, "N/A") for number in range(model.config.num_labels))
        self._install(model, device, [model.class_labels_classifier, model.bbox_predictor])
        self.drop_folder()

    def prepare(self, stimulus: Stimulus) -> PreparedImage:
        pixels = decode(stimulus, self._size.get("longest_edge"))
        inputs = self._processor(
            images=pixels, size=self._size, do_pad=False, input_data_format="channels_last", return_tensors="pt"
        )
        return PreparedImage(inputs["pixel_values"][0], (pixels.shape[0], pixels.shape[1]))

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[torch.Tensor]:
        output = self.model(pixel_values=pixels)
        return output.logits.float(), output.pred_boxes.float()

    def boxes(self, outputs: Sequence[torch.Tensor], sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        output = SimpleNamespace(logits=outputs[0], pred_boxes=outputs[1])
        images = self._processor.post_process_object_detection(output, self.settings.threshold, list(sizes))
        return [Detections(image["labels"], image["scores"], image["boxes"]) for image in images]

    def provenance(self) -> dict[str, Any]:
        import transformers

        about = {"processor": type(self._processor).__name__, "transformers": transformers.__version__}
        return {**PretrainedAgent.provenance(self), **about}
