"""DeepGaze III, assembled from its authors' package ``deepgaze_pytorch``, and made to look at each picture once.

The package has no licence that would allow its code to be passed on, so it is imported where it is installed. Its own
constructor would fetch and execute the DenseNet of another repository; the parts are put together here instead, around
torchvision's DenseNet-201, whose weights have the same names.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

COMPONENTS = 10
LAYERS = (
    "1.features.denseblock4.denselayer32.norm1",
    "1.features.denseblock4.denselayer32.conv1",
    "1.features.denseblock4.denselayer31.conv2",
)
CHANNELS = 2048
HISTORY = 4  # fixations that the model takes into account


def build() -> nn.Module:
    """The model without its weights. Raises ImportError if the package is not there."""
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


class Looking:
    """The model on ``pictures`` [all, 3, height, width], RGB in 0..255, whose features are computed only once.

    Between two fixations nothing but the history changes: what DenseNet and the saliency networks say of a picture is
    kept for the paths that go on. ``bias`` [height, width] is the log density of the centre bias. A context: the model
    is given back as it was.
    """

    def __init__(self, model: Any, pictures: Tensor, bias: Tensor) -> None:
        self.model, self.pictures, self.bias = model, pictures, bias
        self.features, self.saliency = model.features, model.saliency_networks
        self.kept = [_Kept(network) for network in self.saliency]

    def __enter__(self) -> Looking:
        self.model.features = _Kept(self.features, read_once=True)
        self.model.saliency_networks = nn.ModuleList(self.kept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.model.features, self.model.saliency_networks = self.features, self.saliency

    def density(self, items: Tensor, history: Tensor) -> Tensor:
        """Log density of the next fixation, [n, height, width], for the pictures numbered ``items`` [n].

        ``history`` [n, 2, 4] are x and y of the latest fixations, newest first, in pixels of these pictures, NaN where
        there was none. The first call must be for all pictures, in order.
        """
        for part in self.kept:
            part.items = items
        pictures = self.pictures[items]
        bias = self.bias.expand(len(pictures), -1, -1)
        density: Tensor = self.model(pictures, bias, history[:, 0], history[:, 1])[:, 0]
        return density


class _Kept(nn.Module):
    """A module that computes on its first call only, and later gives the rows ``items`` of what it said then.

    With ``read_once`` nobody reads it again (the features, of which the saliency networks have kept what they need): it
    gives next to nothing, so that nothing large is resized for nobody.
    """

    def __init__(self, inner: nn.Module, *, read_once: bool = False) -> None:
        super().__init__()
        self.inner, self.read_once = inner, read_once
        self.said: Any = None
        self.items: Tensor | None = None

    def forward(self, given: Tensor) -> Any:
        if self.said is None:
            found = self.inner(given)
            self.said = [given.new_zeros(1, 1, 1, 1)] if self.read_once else found
            return found
        return self.said if self.read_once else self.said[self.items]
