"""The return-fixation model: Zhang, Armendariz et al., "Look twice: a generalist computational model predicts return
fixations across tasks and species", PLoS Computational Biology 18(11), 2022.

On a grid of 64 x 64 cells over the frame, the next fixation is the cell with the highest

    map + 0.2346 x saccade prior - 0.93 x memory

- The map, from 0 to 1, is saliency in free viewing and similarity to the target in search.
- The prior, centred on the current fixation, is how often people's eyes go so far.
- Memory is the maximum over past fixations of m exp(-d**2 / (2 s**2)). Here m = max(0.92**age, 0.5), with age 0 for the
  current fixation, and d is on axes from 0 at the first cell to 1 at the last.

The first fixation is cell 2016. Scores are rounded to 2**-20 (authors: 8 bits); ties go to the lowest index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image as PILImage
from torch import Tensor, nn

from agents.answers import ScanpathAnswer
from agents.attention.models import similarity, vgg
from agents.attention.models.fixations import Pixel, Plan, cell_centre
from agents.attention.models.inhibition import NOT_FINITE, STEPS, DevicePaths
from agents.attention.models.resizing import cubic_weights, min_max
from agents.errors import AnswerError
from agents.models.transfer import uploaded

GRID = 64
START = 2016
AMPLITUDES = Path(__file__).with_name("saccade_amplitudes.txt")
VIEWINGS = ("free", "natural", "waldo")  # its columns: free viewing, search in natural images, for Waldo
FRAME = (1280, 1024)  # on which saliency maps are made: the original's


@dataclass(frozen=True, slots=True)
class Memory:
    """How a fixation inhibits its return."""

    spread: float
    """s of the module's text: the deviation, on axes from 0 to 1."""
    floor: float
    """The least value of m: the share of its inhibition that a fixation keeps."""


MEMORIES = {"natural": Memory(0.02, 0.5), "waldo": Memory(0.017, 0.47), "array": Memory(0.08, 0.5)}


@dataclass(frozen=True, slots=True)
class TermWeights:
    """The weights of the score's three terms, and how inhibition fades."""

    map: float = 1.0
    """The weight of the map of saliency or similarity."""
    prior: float = 0.2346
    """The weight of the saccade prior."""
    memory: float = 0.93
    """The weight of inhibition, which is subtracted."""
    decay: float = 0.92
    """What remains of m from one fixation to the next."""


def saccade_prior(viewing: str) -> NDArray[np.float64]:
    """How often people's eyes go so far, by VIEWINGS: [128, 128] from 0 to 1, no saccade at (64, 64). AMPLITUDES has
    the grey levels of the authors' pictures, a line for two pixels; a cell has 16."""
    levels = np.loadtxt(AMPLITUDES)[:, VIEWINGS.index(viewing)]
    place = 16 * np.arange(-GRID, GRID) - 7
    distance: NDArray[np.float64] = np.hypot(place[:, None], place)
    return np.asarray(np.interp(distance, 2 * np.arange(len(levels)), levels / 255))


def returning_scanpaths(
    maps: Tensor, plans: Sequence[Plan], memories: Sequence[Memory], priors: Tensor, weights: TermWeights
) -> list[ScanpathAnswer | AnswerError]:
    """A scanpath or AnswerError ``bad_map`` for each of the ``maps`` [batch, 64, 64]; ``priors`` [batch, 128, 128]."""
    paths = _ReturningPaths(maps, plans, memories, priors, weights)
    while paths.going():
        paths.choose()
    return paths.results()


class _ReturningPaths(DevicePaths):
    """Memory is the larger of floor x max g_i and max decay**age_i g_i, g_i the Gaussian around fixation i."""

    def __init__(
        self, maps: Tensor, plans: Sequence[Plan], memories: Sequence[Memory], priors: Tensor, weights: TermWeights
    ) -> None:
        super().__init__(plans, "maximum, fading inhibition", maps.device)
        self.fixations = [[_pixel(START, plan.frame)] for plan in plans]
        self.weights = weights
        # How near 0, 1, 2 … cells are, the floor, and the pixels of columns and rows. The CPU makes what it can: so it
        # is the same everywhere.
        spread = torch.tensor([[memory.spread] for memory in memories], dtype=torch.float64)
        near = torch.exp(-((torch.arange(GRID) / (GRID - 1) / spread) ** 2) / 2)
        floor = torch.tensor([memory.floor for memory in memories], dtype=torch.float64)[:, None, None]
        pixels = torch.tensor([[_pixel(cell, plan.frame) for cell in range(0, GRID**2, GRID + 1)] for plan in plans])
        self.near, self.floor, self.pixels, self.priors = uploaded(
            [near, floor, pixels, priors.double() * weights.prior], maps.device
        )
        self.paths = torch.arange(len(maps), device=maps.device)[:, None, None]
        self.lines = torch.arange(GRID, device=maps.device)
        self.finite = maps.isfinite().flatten(1).all(1)
        self.maps = (maps.double() * STEPS).round_() / STEPS * weights.map
        self.cell = torch.full((len(maps), 1), START, device=maps.device)
        self.ever = torch.zeros_like(self.maps)
        self.recent = torch.zeros_like(self.maps)

    def choose(self) -> None:
        down = self.lines - self.cell // GRID
        across = self.lines - self.cell % GRID
        near_y = self.near.gather(1, down.abs())
        near_x = self.near.gather(1, across.abs())
        near = near_y[:, :, None] * near_x[:, None, :]
        self.ever = torch.maximum(self.ever, near)
        self.recent = torch.maximum(self.recent * self.weights.decay, near)
        memory = torch.maximum(self.ever * self.floor, self.recent)
        shifted = self.priors[self.paths, GRID + down[:, :, None], GRID + across[:, None, :]]
        score = self.maps + shifted - memory * self.weights.memory
        self.cell = (score * STEPS).round_().flatten(1).argmax(1, keepdim=True)  # the first maximum
        row = self.cell // GRID
        column = self.cell % GRID
        x = self.pixels[..., 0].gather(1, column)
        y = self.pixels[..., 1].gather(1, row)
        self.add(torch.cat([x, y], 1).where(self.finite[:, None], NOT_FINITE))

    def answer(self, index: int) -> ScanpathAnswer:
        answer = super().answer(index)
        return answer if self.plans[index].target is not None else answer.model_copy(update={"window": None})


def _pixel(cell: int, frame: Pixel) -> Pixel:
    row, column = divmod(cell, GRID)
    return cell_centre(column, GRID, frame[0]), cell_centre(row, GRID, frame[1])


@dataclass(frozen=True, slots=True, eq=False)
class SeenStimulus:
    """What the network sees of a stimulus."""

    pictures: Sequence[Tensor] = ()
    """In free viewing the frame as squares (:func:`squares`)."""
    search: similarity.Search | None = None
    """In search the image."""
    target: Tensor | None = None
    """In search the target, float32 [3, side, side] in 0..255."""


def maps(features: nn.Sequential, seen: Sequence[SeenStimulus], method: similarity.Method, border: int) -> Tensor:
    """The map of each stimulus, float64 [stimuli, 64, 64] from 0 to 1, on the device of VGG16's ``features``."""
    device = next(features.parameters()).device
    result = torch.empty((len(seen), GRID, GRID), dtype=torch.float64, device=device)
    searches = {index: item.search for index, item in enumerate(seen) if item.search is not None}
    if searches:
        targets = [seen[index].target for index in searches]
        responses = similarity.responses(features, list(searches.values()), targets, method)
        for (index, search), response in zip(searches.items(), responses, strict=True):
            result[index] = at_cells(similarity.paste([response], search.frame, method)[0])
    pictures = iter(uploaded([picture for item in seen for picture in item.pictures], device))
    for index, item in enumerate(seen):
        if item.search is None:
            result[index] = bottom_up_map(features, [next(pictures) for _ in item.pictures], border)
    return result


def bottom_up_map(features: nn.Sequential, images: Sequence[Tensor], border: int) -> Tensor:
    """The bottom-up map of a picture, float64 [64, 64] from 0 to 1, from its ``images`` uint8 [side, side, 3]. The mean
    of relu4_3's sums over channels, at 1280 x 1024, is 0 less than ``border`` pixels from the edge."""
    layers = features[: vgg.LAYERS["relu4_3"] + 1]
    width, height = FRAME
    total = torch.zeros((height, width), dtype=torch.float64, device=images[0].device)
    for image in images:
        response = layers(vgg.normalise(image.permute(2, 0, 1)[None], "imagenet"))
        plane = min_max(response[0].sum(0, dtype=torch.float64))
        down = cubic_weights(len(plane), height, device=plane.device)
        across = cubic_weights(len(plane), width, device=plane.device)
        total += down @ plane @ across.T
    framed = torch.zeros_like(total)
    inside = slice(border, height - border), slice(border, width - border)
    framed[inside] = min_max(total)[inside]
    return at_cells(min_max(framed))


def squares(pixels: NDArray[np.uint8], sizes: Sequence[int]) -> list[Tensor]:
    """A picture [height, width, 3] as :func:`bottom_up_map` takes it."""

    def resized(picture: PILImage.Image, side: int) -> PILImage.Image:
        return picture.resize((side, side), PILImage.Resampling.BILINEAR)

    largest = resized(PILImage.fromarray(pixels), max(sizes))
    return [torch.from_numpy(np.array(resized(largest, side))) for side in sizes]


def at_cells(saliency: Tensor) -> Tensor:
    """A map [height, width] at its cells' pixels, [64, 64]."""
    height, width = saliency.shape
    rows = _pixels_of_cells(height, saliency.device)
    columns = _pixels_of_cells(width, saliency.device)
    return saliency[rows[:, None], columns]


@lru_cache(maxsize=64)
def _pixels_of_cells(side: int, device: torch.device) -> Tensor:
    return uploaded([torch.tensor([cell_centre(cell, GRID, side) for cell in range(GRID)])], device)[0]
