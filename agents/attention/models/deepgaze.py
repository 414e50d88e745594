"""DeepGaze III from its authors' package ``deepgaze_pytorch``, with torchvision's DenseNet."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from agents.errors import UnavailableError

COMPONENTS = 10
LAYERS = (
    "1.features.denseblock4.denselayer32.norm1",
    "1.features.denseblock4.denselayer32.conv1",
    "1.features.denseblock4.denselayer31.conv2",
)
CHANNELS = 2048
HISTORY = 4  # fixations that the model takes into account


def build() -> nn.Module:
    """The model without its weights. Raises ImportError without the authors' package."""
    from deepgaze_pytorch import deepgaze3, modules
    from deepgaze_pytorch.features.normalizer import Normalizer
    from torchvision.models import densenet201

    model: nn.Module = modules.DeepGazeIIIMixture(
        features=modules.FeatureExtractor(nn.Sequential(Normalizer(), densenet201(weights=None)), LAYERS),
        saliency_networks=[deepgaze3.build_saliency_network(CHANNELS) for _ in range(COMPONENTS)],
        scanpath_networks=[deepgaze3.build_scanpath_network() for _ in range(COMPONENTS)],
        fixation_selection_networks=[deepgaze3.build_fixation_selection_network() for _ in range(COMPONENTS)],
        finalizers=[modules.Finalizer(sigma=8.0, learn_sigma=True, saliency_map_factor=4) for _ in range(COMPONENTS)],
        downsample=2,
        readout_factor=4,
        saliency_map_factor=4,
        included_fixations=[-1 - back for back in range(HISTORY)],
    )
    return model


class OnePass:
    """Densities for a batch of pictures, whose features are computed once."""

    def __init__(self, loaded: Any) -> None:
        self.model = loaded
        # Nobody reads the features again, of which the saliency networks have kept what they need: a tiny map is given
        # in their place, so that nothing large is resized.
        self.features = _Kept(loaded.features, lambda kept, _: [kept[0].new_zeros(1, 1, 1, 1)])
        self.saliency = [_Kept(network, lambda kept, items: kept[items]) for network in loaded.saliency_networks]
        loaded.features = self.features
        loaded.saliency_networks = nn.ModuleList(self.saliency)

    def begin(self, pictures: Tensor, bias: Tensor) -> None:
        """``pictures`` [all, 3, height, width] are RGB in 0..255, ``bias`` [height, width] is a log density."""
        self.pictures = pictures
        self.bias = bias
        for part in (self.features, *self.saliency):
            part.kept = None

    def density(self, items: Tensor, history: Tensor) -> Tensor:
        """Log density of the next fixation, [n, height, width], for pictures ``items`` [n]; the first call has all, in
        order. ``history`` [n, 2, 4] is x and y in pixels, newest first, or NaN."""
        for part in (self.features, *self.saliency):
            part.items = items
        bias = self.bias.expand(len(items), -1, -1)
        return self.model(self.pictures[items], bias, history[:, 0], history[:, 1])[:, 0]  # type: ignore[no-any-return]


class _Kept(nn.Module):
    """A module that computes once, and later returns a ``part`` of that."""

    def __init__(self, inner: nn.Module, part: Callable[[Any, Tensor | None], Any]) -> None:
        super().__init__()
        self.inner = inner
        self.part = part
        self.kept: Any = None
        self.items: Tensor | None = None

    def forward(self, inputs: Tensor) -> Any:
        if self.kept is None:
            self.kept = self.inner(inputs)
            return self.kept
        return self.part(self.kept, self.items)


def read_bias(path: Path) -> NDArray[np.float64]:
    """A log density [rows, columns] from a .npy file without pickles. Raises UnavailableError."""
    try:
        bias = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UnavailableError(f"{path} cannot be read: {error}") from None
    if bias.ndim != 2 or bias.dtype.kind != "f" or not np.isfinite(bias.max(initial=-np.inf)):
        raise UnavailableError(f"{path} is no log density: an array [rows, columns] of floats without NaN or infinity")
    return bias.astype(np.float64)  # type: ignore[no-any-return]


def bias_at(bias: NDArray[np.float64] | None, shape: tuple[int, int]) -> Tensor:
    """The centre bias as a log density of ``shape``: nearest cell, normalised again."""
    density = torch.zeros(shape, dtype=torch.float64)
    if bias is not None:
        rows = _nearest(bias.shape[0], shape[0])
        columns = _nearest(bias.shape[1], shape[1])
        density = torch.from_numpy(bias)[rows[:, None], columns]
    return (density - density.flatten().logsumexp(0)).float()


def _nearest(source: int, length: int) -> Tensor:
    """For each of ``length`` cells the nearest of ``source`` cells over the same side."""
    return ((torch.arange(length) + 0.5) * source / length).long()


def history(fixated: Sequence[Tensor], frames: Tensor, shape: tuple[int, int]) -> Tensor:
    """The latest fixations for :meth:`OnePass.density`: ``fixated`` are x and y [n, 2] in pixels of ``frames`` (width,
    height), ``shape`` (rows, columns) is the resized picture's."""
    latest = torch.stack([*fixated[: -1 - HISTORY : -1]], 2)
    rows, columns = shape
    sides = ((0, columns), (1, rows))
    places = [(latest[:, axis].double() + 0.5) * side / frames[:, axis, None] - 0.5 for axis, side in sides]
    fixations = torch.stack(places, 1).float()
    return functional.pad(fixations, (0, HISTORY - fixations.shape[2]), value=float("nan"))
