"""Detectron2's Mask R-CNN. Its weights are published as a pickle, which is read without executing anything."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agents.contract import Declaration
from agents.errors import UnavailableError
from agents.models import checkpoints
from agents.models.pretrained import WeightsFileAgent, WeightsFileSettings, download
from agents.stimuli import Stimulus
from agents.vision.detector import Detections, DetectionSettings, Detector, PreparedImage, decode

if TYPE_CHECKING:
    import torch

COMMIT = "02b5c4e295e990042a714712c21dc79b731e8833"
"""Detectron2's commit of 6 June 2026, which this module was written for."""
CONFIG: Final = "COCO-InstanceSegmentation/mask_rcnn_R_50_FPN_3x.yaml"
"""The model in Detectron2's zoo."""
INSTALL = (
    "detectron2 is not installed; it is built from its repository, after torch: `pip install 'setuptools<81' ninja`, "
    f"then `pip install --no-build-isolation 'git+https://github.com/facebookresearch/detectron2@{COMMIT}'`"
)
"""How Detectron2 is installed."""
UNUSED = (
    "roi_heads.mask_",
    "roi_heads.keypoint_",
    "proposal_generator.anchor_generator.cell_anchors",
    "anchor_generator.cell_anchors",
    "pixel_mean",
    "pixel_std",
)
"""What a published file holds beyond this model: the branches that are left out, and constants of older versions."""
ALLOWED = (
    "numpy.ndarray",
    "numpy.dtype",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "_codecs.encode",  # how protocol 2 writes bytes
    "collections.OrderedDict",
)
"""The names that its pickle may import; ``_codecs.encode`` is how protocol 2 writes bytes."""


class Detectron2Agent(Detector["Detectron2Agent.Settings"], WeightsFileAgent["Detectron2Agent.Settings"]):
    """Mask R-CNN (He et al. 2017, arXiv 1703.06870), as Detectron2's ``DefaultPredictor`` runs it; its branch of masks
    is left out."""

    class Settings(DetectionSettings, WeightsFileSettings):
        """Which weights, and which boxes count."""

        threshold: float = Field(0.5, ge=0, lt=1)
        """A box counts if its score is above this; 0.5 as in the papers' notebook, 0.05 is Detectron2's default."""
        distinct: bool = True
        """Whether each label stands once only, as in all published answers; otherwise two boxes may share one."""
        config: Literal["COCO-InstanceSegmentation/mask_rcnn_R_50_FPN_3x.yaml"] = CONFIG
        """The configuration in Detectron2's model zoo."""

    licence = "CC-BY-SA-3.0"
    declares = Declaration(reports=("detectron2", "torch"))

    def published(self) -> Path:
        """Where the downloaded weights lie, or would lie, in the cache."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return (cache / "turinglike" / "detectron2" / self.settings.config).with_suffix(".safetensors")

    def missing(self) -> str | None:
        """What the base class says; also that Detectron2 is not installed."""
        return INSTALL if importlib.util.find_spec("detectron2") is None else super().missing()

    def download(self, path: Path) -> None:
        """Download the zoo's pickle and keep its arrays in ``path``. Raises UnavailableError."""
        from safetensors.numpy import save_file

        if importlib.util.find_spec("detectron2") is None:
            raise UnavailableError(INSTALL)
        try:
            from detectron2.model_zoo import get_checkpoint_url
        except ImportError as error:
            raise UnavailableError(f"Detectron2's list of weights needs 'setuptools<81' ({error})") from None
        url = str(get_checkpoint_url(self.settings.config))
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder:
            pickled = Path(folder) / "weights.pkl"
            made = Path(folder) / path.name
            download(url, pickled)
            save_file(read_arrays(pickled), made, metadata={"format": "pt", "origin": url})
            os.replace(made, path)

    def open(self) -> None:
        """Make ready Detectron2's configuration, resizing and names."""
        import detectron2
        from detectron2.config import get_cfg
        from detectron2.data import MetadataCatalog, transforms

        config = get_cfg()
        config.merge_from_file(str(Path(detectron2.__file__).parent / "model_zoo" / "configs" / self.settings.config))
        config.MODEL.WEIGHTS = ""
        config.MODEL.DEVICE = "cpu"
        config.MODEL.MASK_ON = False
        config.MODEL.ROI_HEADS.SCORE_THRESH_TEST = self.settings.threshold
        short = self.settings.short_edge or config.INPUT.MIN_SIZE_TEST
        long = self.settings.long_edge or config.INPUT.MAX_SIZE_TEST
        self._resize = transforms.ResizeShortestEdge([short, short], long)
        self._config = config
        self.names = tuple(MetadataCatalog.get(config.DATASETS.TEST[0]).thing_classes)

    def load(self, device: str) -> None:
        """Build the network and give it the file's weights. Raises UnavailableError."""
        from detectron2.modeling import build_model

        model = build_model(self._config)
        self.give_weights(model, checkpoints.read_weights, UNUSED)
        self._install(model, device, [model.proposal_generator.rpn_head, model.roi_heads.box_predictor])

    def prepare(self, stimulus: Stimulus) -> PreparedImage:
        """The image as Detectron2 resizes it, blue first. Raises ImageError, AnswerError."""
        import torch

        pixels = decode(stimulus, self._resize.max_size)
        height, width, _ = pixels.shape
        pixels = pixels[..., ::-1]  # the model takes blue first
        resized = self._resize.get_transform(pixels).apply_image(pixels)
        return PreparedImage(torch.from_numpy(np.ascontiguousarray(resized.transpose(2, 0, 1))), (height, width))

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        """As in the base class."""
        images = [
            {"image": image, "height": height, "width": width}
            for image, (height, width) in zip(pixels, sizes, strict=True)
        ]
        instances = [output["instances"] for output in self.model(images)]
        return [Detections(image.pred_classes, image.scores, image.pred_boxes.tensor) for image in instances]


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays under ``model`` in a pickle of the model zoo, by name. Raises UnavailableError."""
    from agents.vision.weights import read_pickle

    content = read_pickle(path, ALLOWED)
    model = content.get("model") if isinstance(content, dict) else None
    arrays = model if isinstance(model, dict) else {}
    numbers = (isinstance(value, np.ndarray) and value.dtype.kind in "biuf" for value in arrays.values())
    if not (arrays and all(numbers) and all(isinstance(key, str) for key in arrays)):
        raise UnavailableError(f"{path} is not a file of Detectron2's model zoo: no arrays by name under 'model'")
    return {key: value.astype(value.dtype.newbyteorder("="), order="C") for key, value in arrays.items()}
