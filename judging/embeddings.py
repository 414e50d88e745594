"""Embeddings of texts (transformers) and of pictures (ResNet18), for judges that are classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from agents import checkpoints
from agents.images import Image
from agents.language.minilm import PACKAGE, SentenceModel, packaged_folder
from agents.language.words.vectors import embedded
from agents.loading import load_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

Pooling = Literal["mean", "cls"]
Layer = Literal["deep", "early"]
NEEDS = ("config.json", checkpoints.WEIGHTS, checkpoints.TOKENIZER)
TYPES = ("bert", "distilbert", "roberta", "mpnet", "gpt2")
PICTURES_TOGETHER = 32
RESNET = "resnet18-f37072fd.pth"  # torchvision's IMAGENET1K_V1


def folder_of(checkpoint: str) -> Path:
    """The folder of the packaged sentence model, or of the hub's or a local model. Raises UnavailableError."""
    return packaged_folder() if checkpoint == PACKAGE else checkpoints.find(checkpoint, None)


def problem(checkpoint: str) -> str | None:
    """Why the checkpoint cannot embed texts. Raises UnavailableError."""
    return checkpoints.problem(folder_of(checkpoint), NEEDS, TYPES)


class Embedder:
    """A model that turns texts into vectors, cached for the user. Raises UnavailableError."""

    def __init__(self, checkpoint: str, pooling: Pooling, device: str) -> None:
        folder = folder_of(checkpoint)
        self._model = SentenceModel(folder, device, pooling)
        self._about = {"texts": checkpoints.identity(str(folder))[1], "pooling": pooling, **self._model.about}

    def vectors(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        distinct = sorted(set(texts))
        if not distinct:
            return {}
        return dict(zip(distinct, embedded(distinct, self._about, self._model.embed), strict=True))


class PictureFeatures:
    """ResNet18 (He et al. 2016): its last pooling ("deep", 512), or the mean of its first block ("early", 64)."""

    def __init__(self, weights: Path, layer: Layer, root: Path, device: str) -> None:
        import torch
        from torchvision.models import ResNet18_Weights, resnet18

        model = resnet18(weights=None)
        load_weights(model, checkpoints.read_weights(weights), weights)
        stages = list(model.children())[: 5 if layer == "early" else 8]
        self._net = torch.nn.Sequential(*stages, torch.nn.AdaptiveAvgPool2d(1)).eval().requires_grad_(False).to(device)
        self._pixels = ResNet18_Weights.IMAGENET1K_V1.transforms()
        self._root, self._device = root, torch.device(device)

    def vectors(self, names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The features of each picture. Raises ImageError."""
        import torch
        from PIL import Image as PILImage

        distinct = list(dict.fromkeys(names))
        by_name: dict[str, NDArray[np.float32]] = {}
        for begin in range(0, len(distinct), PICTURES_TOGETHER):
            part = distinct[begin : begin + PICTURES_TOGETHER]
            pictures = [PILImage.fromarray(Image(name, root=self._root).decode()) for name in part]
            batch = torch.stack(list(map(self._pixels, pictures))).to(self._device)
            with torch.inference_mode():
                by_name |= dict(zip(part, self._net(batch).flatten(1).cpu().numpy(), strict=True))
        return by_name
