"""The agent ``detectron2-maskrcnn``: Detectron2's Mask R-CNN, or any other detector of its model zoo, in batches."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from agents import checkpoints
from agents.contract import GIB
from agents.errors import UnavailableError
from agents.stimuli import Stimulus
from agents.vision.detector import FileDetector, FileSettings, PreparedImage, decode

if TYPE_CHECKING:
    import torch

COMMIT = "02b5c4e295e990042a714712c21dc79b731e8833"  # of 6 June 2026
INSTALL = (
    "detectron2 is not installed; it is built from its repository, after torch: `pip install 'setuptools<81' ninja`, "
    f"then `pip install --no-build-isolation 'git+https://github.com/facebookresearch/detectron2@{COMMIT}'`"
)
# What a published file holds beyond this model: the branches that are left out, and constants of older versions.
UNUSED = (
    "roi_heads.mask_",
    "roi_heads.keypoint_",
    "proposal_generator.anchor_generator.cell_anchors",
    "anchor_generator.cell_anchors",
    "pixel_mean",
    "pixel_std",
)


class Detectron2Agent(FileDetector["Detectron2Agent.Settings"]):
    """He, Gkioxari, Dollár and Girshick 2017, as Detectron2's model zoo has it: the labels, scores and boxes of
    ``DefaultPredictor``, without the masks.

    The image is resized as ``DefaultPredictor`` does, by Pillow, and its channels are put into the order of the config
    (BGR). Any config of the zoo in YAML that finds objects by itself will do: Mask, Faster and Cascade R-CNN,
    RetinaNet. The zoo's weights are pickles; :meth:`download` converts them, and no pickle is opened otherwise.
    """

    class Settings(FileSettings):
        """Which model of the zoo, with which weights, and which boxes count."""

        model_config = ConfigDict(use_attribute_docstrings=True)

        threshold: float = Field(0.5, ge=0, lt=1)
        """A box counts if its score is above this; 0.5 as in the papers' notebook, 0.05 is Detectron2's own default."""
        distinct: bool = True
        """Whether each label is given once, as in all published answers; otherwise two boxes may have the same."""
        config: str = Field(
            "COCO-InstanceSegmentation/mask_rcnn_R_50_FPN_3x.yaml", pattern=r"^\w[\w-]*/([\w-]+/)*\w[\w.-]*\.yaml$"
        )
        """A config of Detectron2's model zoo, as its list names them."""

    licence = "CC-BY-SA-3.0"
    # Measured on CPU at 800 x 1199, in MiB: 1039 loaded, 1429 with one image, 2785 with 4. On a GPU, by estimate, the
    # same activations, cuDNN's workspaces and the CUDA context.
    memory = 4 * GIB
    device_memory = 6 * GIB
    batch_size = 4

    def published(self) -> Path:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return (cache / "turinglike" / "detectron2" / self.settings.config).with_suffix(".safetensors")

    def weights_path(self) -> Path:
        path = super().weights_path()  # of a pickle, what fetch writes beside it
        return path.with_suffix(".safetensors") if path.suffix == ".pkl" else path

    def missing(self) -> str | None:
        if importlib.util.find_spec("detectron2") is None:
            return INSTALL
        if self.settings.checkpoint.endswith(".pkl") and not self.weights_path().is_file():
            return (
                f"{self.settings.checkpoint} is a pickle, which no agent opens: `turinglike fetch {self.name}` with "
                f"the same setting writes {self.weights_path().name} beside it"
            )
        return super().missing()

    def fetch(self) -> Sequence[checkpoints.Download]:
        """Bring the zoo's weights for the config into the cache, or convert a local pickle, as safetensors."""
        from agents.vision.models import zoo_pickle

        source = Path(self.settings.checkpoint).expanduser()
        if source.suffix == ".pkl" and source.is_file():
            zoo_pickle.convert(source, self.weights_path(), source.name)
        return super().fetch()

    def download(self, path: Path) -> None:
        import torch

        from agents.vision.models import zoo_pickle

        url = self._zoo_url()
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder:
            pickled = Path(folder) / "weights.pkl"
            try:
                torch.hub.download_url_to_file(url, str(pickled))
            except (OSError, RuntimeError) as error:
                raise UnavailableError(f"{url} could not be downloaded: {error}") from None
            zoo_pickle.convert(pickled, path, url)

    def open(self) -> None:
        """Read the config and import what the threads use."""
        try:
            import detectron2
            from detectron2.config import get_cfg
            from detectron2.data import MetadataCatalog, transforms
        except ImportError as error:
            raise UnavailableError(f"{INSTALL} (importing it: {error})") from None
        file = Path(detectron2.__file__).parent / "model_zoo" / "configs" / self.settings.config
        if not file.is_file():
            raise UnavailableError(f"{self.settings.config}: Detectron2's model zoo has no such config")
        config = get_cfg()
        config.merge_from_file(str(file))
        kind = config.MODEL.META_ARCHITECTURE
        if kind not in ("GeneralizedRCNN", "RetinaNet") or config.MODEL.LOAD_PROPOSALS:
            raise UnavailableError(f"{self.settings.config}: this {kind} does not find objects by itself")
        config.MODEL.WEIGHTS = ""
        config.MODEL.MASK_ON = config.MODEL.KEYPOINT_ON = False
        config.MODEL.ROI_HEADS.SCORE_THRESH_TEST = self.settings.threshold
        config.MODEL.RETINANET.SCORE_THRESH_TEST = self.settings.threshold
        short = self.settings.short_edge or config.INPUT.MIN_SIZE_TEST
        long = self.settings.long_edge or config.INPUT.MAX_SIZE_TEST
        self._resize = transforms.ResizeShortestEdge([short, short], long)
        self._config = config
        self.names = tuple(MetadataCatalog.get(config.DATASETS.TEST[0]).thing_classes)

    def load(self, device: str) -> None:
        if (lacking := self.missing()) is not None:
            raise UnavailableError(lacking)
        from detectron2.modeling import build_model
        from detectron2.modeling.meta_arch.retinanet import RetinaNetHead
        from detectron2.modeling.proposal_generator.rpn import StandardRPNHead
        from detectron2.modeling.roi_heads import FastRCNNOutputLayers

        self._config.MODEL.DEVICE = "cpu"
        model = build_model(self._config)
        self.give_weights(model, _weights, UNUSED)
        heads = (StandardRPNHead, FastRCNNOutputLayers, RetinaNetHead)
        self._install(model, device, [module for module in model.modules() if isinstance(module, heads)])

    def prepare(self, stimulus: Stimulus) -> PreparedImage:
        import numpy as np
        import torch

        pixels = decode(stimulus, self._resize.max_size)
        height, width, _ = pixels.shape
        if self._config.INPUT.FORMAT == "BGR":
            pixels = pixels[..., ::-1]
        resized = self._resize.get_transform(pixels).apply_image(pixels)
        return PreparedImage(torch.from_numpy(np.ascontiguousarray(resized.transpose(2, 0, 1))), (height, width))

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[torch.Tensor]:
        images = [
            {"image": image, "height": height, "width": width}
            for image, (height, width) in zip(pixels, sizes, strict=True)
        ]
        found = [output["instances"] for output in self.model(images)]
        return [part for one in found for part in (one.pred_classes, one.scores, one.pred_boxes.tensor)]

    def provenance(self) -> dict[str, Any]:
        import detectron2
        import torch

        return {**super().provenance(), "detectron2": detectron2.__version__, "torch": torch.__version__}

    def _zoo_url(self) -> str:
        if importlib.util.find_spec("detectron2") is None:
            raise UnavailableError(INSTALL)
        try:
            from detectron2.model_zoo import get_checkpoint_url

            return str(get_checkpoint_url(self.settings.config))
        except ImportError as error:
            raise UnavailableError(f"Detectron2's list of weights needs 'setuptools<81' ({error})") from None
        except RuntimeError:
            raise UnavailableError(f"{self.settings.config}: Detectron2's model zoo has no weights for it") from None


def _weights(path: Path) -> Mapping[str, torch.Tensor]:
    """The weights in ``path``; those under ``model`` where a training run of Detectron2's wrote the file."""
    if path.suffix == ".safetensors":
        return checkpoints.read_weights(path)
    found = checkpoints.read_torch(path)
    inner = found.get("model", found)
    weights = {name: value for name, value in inner.items() if hasattr(value, "detach")} if inner else {}
    if not weights:
        raise UnavailableError(f"{path} holds no weights by name")
    return weights
