"""The agent ``deepgaze3``."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from agents.attention import scanpath
from agents.attention.models.fixations import Plan
from agents.contract import GIB, Declaration, Download, Draw, Reply
from agents.errors import AnswerError
from agents.models import checkpoints, weight_files
from agents.models.loading import use_full_float32
from agents.models.pretrained import WeightsFileAgent, WeightsFileSettings, download, torch_hub_path
from agents.stimuli import AttentionStimulus, Stimulus

if TYPE_CHECKING:
    import torch

    from agents.attention.models.inhibition import DevicePaths

RELEASES = "https://github.com/matthias-k/DeepGaze/releases/download/"
RELEASED_WEIGHTS = "v1.1.0/deepgaze3.pth"
BIAS = "v1.0.0/centerbias_mit1003.npy"
# The commit before the package began to need a further one (CLIP) for models that are not used here.
INSTALL = (
    "deepgaze_pytorch is not installed: `pip install --no-build-isolation "
    "'git+https://github.com/matthias-k/DeepGaze@874f12e1ee519860f49860638cf7f6375956d45a'`"
)
TRAINED = 35.0  # pixels per degree of visual angle
# DenseNet halves a picture five times, after it was halved once
SMALLEST = 64
LARGEST = 4096
DeepGazeInput = tuple["torch.Tensor", Plan, dict[str, Any]]


class DeepGazeAgent(WeightsFileAgent["DeepGazeAgent.Settings"]):
    """Kümmerer, Bethge and Wallis 2022 (Journal of Vision 22(5):7), by its authors' package; targets play no part.
    Pictures come to 35 pixels per degree or, without ``pixels_per_degree``, to a longer side of 1024."""

    class Settings(scanpath.ScanSettings, WeightsFileSettings):
        choice: Literal["argmax", "sample"] = "argmax"
        """The density's maximum with inhibition of return, or a draw from the density, where nothing is inhibited."""
        center_bias: str = Field("mit1003", min_length=1)
        """The authors' centre bias ("mit1003"), none ("uniform"), or a .npy file: a log density [rows, columns]."""
        longer_side: Annotated[int, Field(ge=64, le=4096)] = 1024
        """Pixels of the longer side where the stimulus does not say its pixels per degree."""

    declares = Declaration(
        tasks=("attention_prediction",),
        extra="attention",
        packages=("torch", "cv2"),
        reports=("torchvision", "torch"),
        memory=4 * GIB,
        device_memory=6 * GIB,
        batch_size=4,
    )
    licence = "no licence given"

    def published(self) -> Path:
        """Where torch.hub keeps the authors' weights."""
        return torch_hub_path(Path(RELEASED_WEIGHTS).name)

    def download(self, path: Path) -> None:
        """Bring the authors' weights from their release. Raises UnavailableError."""
        download(RELEASES + RELEASED_WEIGHTS, path)

    def bias_path(self) -> Path | None:
        """The file of the centre bias, whether or not it exists; None with random weights."""
        bias = self.settings.center_bias
        if bias == "uniform" or self.random:
            return None
        return torch_hub_path(Path(BIAS).name) if bias == "mit1003" else Path(bias).expanduser().absolute()

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The weights, with the hash of the centre bias behind their own."""
        name, revision = super().checkpoint()
        bias = self.bias_path()
        if revision is not None and bias is not None and bias.is_file():
            revision = f"{revision}+{checkpoints.identity(str(bias))[1]}"
        return name, revision

    def missing(self) -> str | None:
        """The authors' package, the weights, or the centre bias."""
        if importlib.util.find_spec("deepgaze_pytorch") is None:
            return INSTALL
        bias = self.bias_path()
        if (lacking := super().missing()) is not None or bias is None or bias.is_file():
            return lacking
        if self.settings.center_bias == "mit1003":
            return (
                f"the authors' centre bias {bias.name} is not on this machine: run `turinglike fetch {self.name}`, or "
                f"go without it by the setting {self.name}.center_bias=uniform (--set)"
            )
        return f"{self.settings.center_bias}: no such file"

    def fetch(self) -> Sequence[Download]:
        """The weights, and the authors' centre bias if the settings name it. Raises UnavailableError."""
        bias = self.bias_path()
        if bias is not None and self.settings.center_bias == "mit1003" and not bias.is_file():
            bias.parent.mkdir(parents=True, exist_ok=True)
            download(RELEASES + BIAS, bias)
        return super().fetch()

    def open(self) -> None:
        """Read the centre bias, log density over its own grid."""
        from agents.attention.models import deepgaze

        bias = self.bias_path()
        self._bias = None if bias is None or not bias.is_file() else deepgaze.read_bias(bias)

    def load(self, device: str) -> None:
        """Build the network in fp32 and give it the weights."""
        import torch

        from agents.attention.models import deepgaze

        model = deepgaze.build()
        self.give_weights(model, weight_files.read_weights)
        self._device = torch.device(device)
        use_full_float32(self._device.type)
        self.model = deepgaze.OnePass(model.eval().requires_grad_(False).to(self._device))

    def prepare(self, stimulus: Stimulus) -> DeepGazeInput:
        """The picture, [3, height, width] in 0..255. Raises AnswerError ``image_too_narrow``."""
        import cv2
        import torch

        assert isinstance(stimulus, AttentionStimulus)
        pixels = stimulus.image.decode()
        height, width, _ = pixels.shape
        plan = scanpath.plan_scanpath(stimulus, (width, height), self.settings)
        stated = stimulus.pixels_per_degree
        scale = self.settings.longer_side / max(width, height) if stated is None else TRAINED / stated
        size = max(1, round(width * scale)), max(1, round(height * scale))
        if not SMALLEST <= min(size) <= max(size) <= LARGEST:
            seen = f"{size[0]} x {size[1]} at {TRAINED:g} pixels per degree"
            raise AnswerError(
                "image_too_narrow", f"{width} x {height} pixels would be {seen}: sides of 64 to 4096 are looked at"
            )
        way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        resized = torch.from_numpy(cv2.resize(pixels, size, interpolation=way)).permute(2, 0, 1).float()
        assumed = {
            "pixels_per_degree": round(TRAINED / scale, 3) if stated is None else stated,
            "assumed": stated is None,
        }
        return resized, plan, assumed

    def respond(self, batch: Sequence[DeepGazeInput], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """A path for each item; items of equal size walk together. A map that is not finite fails its item with
        ``bad_map``."""
        import torch

        sizes = [tuple(picture.shape[1:]) for picture, _, _ in batch]
        with torch.inference_mode():
            paths = scanpath.paths_by_size(
                sizes,
                lambda indices: [self._walk([batch[index] for index in indices], [draws[i].seed for i in indices])],
            )
        return [scanpath.reply(path, assumed) for path, (_, _, assumed) in zip(paths, batch, strict=True)]

    def _walk(self, items: list[DeepGazeInput], seeds: list[int]) -> DevicePaths:
        import torch

        from agents.attention.models import deepgaze
        from agents.attention.models.inhibition import InhibitedPaths
        from agents.models.sampling import gumbel
        from agents.models.transfer import uploaded

        _, rows, columns = items[0][0].shape
        shape = rows, columns
        drawn = self.settings.choice == "sample"
        plans = [plan.drawn(seed) for (_, plan, _), seed in zip(items, seeds, strict=True)]
        paths = InhibitedPaths(plans, shape, self._device, drawn=drawn, changing=True)
        tensors = [
            torch.tensor(seeds)[:, None, None],
            deepgaze.bias_at(self._bias, shape),
            *(item[0] for item in items),
        ]
        noise, bias, *resized = uploaded(tensors, self._device)
        pictures = torch.stack(resized)
        cells = torch.arange(rows * columns, device=self._device).view(1, rows, columns)
        self.model.begin(pictures, bias)
        shown = list(range(len(items)))
        numbers = torch.arange(len(items), device=self._device)
        while going := paths.going():
            if going != shown and len(paths.fixated) > 1:  # the model must first see all
                shown = going
                [numbers] = uploaded([torch.tensor(going)], self._device)
            history = deepgaze.history(paths.fixated, paths.frames, shape)
            maps = self.model.density(numbers, history[numbers])
            if drawn:  # the maximum of log density plus Gumbel noise is an exact draw
                maps = maps + gumbel(noise[numbers], len(paths.fixated), cells)
            paths.show(maps, None if len(shown) == len(items) else numbers)
            paths.choose()
        self.model.begin(pictures[:0], bias)
        return paths

    def provenance(self) -> dict[str, Any]:
        """With the version of the authors' package, which has no ``__version__``."""
        from importlib import metadata

        return {**super().provenance(), "deepgaze_pytorch": metadata.version("deepgaze_pytorch")}

    def close(self) -> None:
        """Let the network go."""
        self.__dict__.pop("model", None)
