"""Graph-based visual saliency: Harel, Koch and Perona, NIPS 2006, with the defaults of the authors' program.

1. Features: cone-opponent colour (Derrington, Krauskopf and Lennie), intensity max(R, G, B), and its Gabor energy at
   four orientations; pyramid levels 2, 3 and 4, on a grid whose longer side is 32.
2. Activation: the equilibrium of a walk from cell j to i by weights exp(-distance**2 / (2 sigma**2)) |A_i - A_j|, which
   is reversible: pi_i is proportional to the sum of its weights.
3. Normalisation: the activation to the power 1.5, or a second walk, with pi_i proportional to A_i sum_j F_ij A_j.
4. The sum over the maps, its border attenuated, blurred and resized to the image.

Our choices: sRGB light, cones of Smith and Pokorny (1975), edges repeated, resizing by area or Keys' cubic, the last
blur to 3 sd. ``program`` "harel" has the Matlab program's, but for its monitor's table, edge kernels and iteration.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import cv2
import torch
from torch import Tensor
from torch.nn import functional

from agents.attention.models.resizing import area_weights, cubic_weights, min_max
from agents.models.transfer import uploaded

Normalisation = Literal["power", "graph"]
SaliencyProgram = Literal["ours", "harel"]
ChannelWeights = tuple[float, float, float]

LEVELS = (2, 3, 4)
SMALLEST_SIDE = 3  # of a pyramid level
GRID_SIDE = 32
CHAINS_AT_ONCE = 24  # on a GPU: those of an image
FLAT = 1e-6  # a map whose range is below this share of full scale contributes nothing
ACTIVATION_SIGMA = 0.15  # of the mean of the grid's height and width
NORMALISATION_SIGMA = 0.06
POWER = 1.5
MAP_BORDER = 4
BLUR_SIGMA = 0.02  # of the grid's longer side
GABOR_RADIUS = 13  # ceil(sqrt(10) times the longer standard deviation, 4): also the border that is attenuated

# Linear sRGB to CIE XYZ (IEC 61966-2-1), and XYZ to the cones L, M and S, with L + M = Y.
_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
_CONES = ((0.15514, 0.54312, -0.03286), (-0.15514, 0.45684, 0.03286), (0.0, 0.0, 0.00801))


def saliency(
    images: Tensor,
    normalisation: Normalisation = "power",
    weights: ChannelWeights = (1.0, 1.0, 1.0),
    program: SaliencyProgram = "ours",
) -> Tensor:
    """Maps, float64 [batch, height, width] from 0 to 1 (uniform images: 0), of ``images`` uint8 [batch, height, width,
    3]. ``weights`` are for colour, intensity and orientation."""
    maps, channels = features(images, program)
    batch, count, rows, columns = maps.shape
    chains = maps.flatten(0, 1)
    alive = chains.amax((1, 2)) - chains.amin((1, 2)) >= FLAT
    # To leave the others out, the host would have to wait for a GPU, which walks on all of them sooner.
    walked = alive.nonzero()[:, 0] if maps.device.type == "cpu" else torch.arange(len(chains), device=maps.device)
    activated = activation(chains[walked])
    strengthened = activated**POWER if normalisation == "power" else concentration(activated)
    normalised = torch.zeros_like(chains).index_copy_(0, walked, strengthened)
    normalised = normalised.where(alive[:, None, None], 0.0).view(batch, count, rows, columns)
    total = torch.zeros((batch, rows, columns), dtype=maps.dtype, device=maps.device)
    for index, channel in enumerate(channels):
        total += weights[channel] * normalised[:, index]
    return _to_frame(total, images.shape[1], images.shape[2], program)


def features(images: Tensor, program: SaliencyProgram = "ours") -> tuple[Tensor, list[int]]:
    """Feature maps [batch, maps, rows, columns], in units of full scale, and each map's channel (0, 1 or 2)."""
    height, width = images.shape[1:3]
    rows = max(1, round(GRID_SIDE * height / max(height, width)))
    columns = max(1, round(GRID_SIDE * width / max(height, width)))
    opponent = _opponent(images.device)
    maps: list[Tensor] = []
    channels: list[int] = []
    for planes in _pyramid(images, program):
        light = planes[:, :-1]
        intensity = planes[:, -1:]
        if program == "harel":
            light = _linear(light)
        colour = (opponent @ light.flatten(2)).view_as(light)
        for channel, members in enumerate((colour, intensity, orientations(intensity[:, 0]))):
            maps.append(resize(members, rows, columns, program))
            channels += [channel] * members.shape[1]
    return torch.cat(maps, 1), channels


@lru_cache(maxsize=8)
def _opponent(device: torch.device) -> Tensor:
    """From linear RGB to L + M, L/L0 - M/M0 and S (L0 + M0)/S0 - (L + M), each divided by its range; L0: of mid
    grey."""
    cones = torch.tensor(_CONES, dtype=torch.float64) @ torch.tensor(_XYZ, dtype=torch.float64)
    long, middle, short = cones
    grey = 0.5 * cones.sum(1)
    luminance = long + middle
    rows = torch.stack(
        [luminance, long / grey[0] - middle / grey[1], short * (grey[0] + grey[1]) / grey[2] - luminance]
    )
    return uploaded([rows / rows.abs().sum(1, keepdim=True)], device)[0]


def _pyramid(images: Tensor, program: SaliencyProgram) -> list[Tensor]:
    """Linear light ("harel": stored values) and intensity at each level used, [batch, 4, ...] in 0..1."""
    height, width = images.shape[1:3]
    deepest = max(k for k in range(LEVELS[-1] + 1) if k == 0 or min(height, width) >> k >= SMALLEST_SIDE)
    if deepest == 0:
        return [torch.cat(list(_planes(images, program)), 1)]
    # One plane after the other: all of a photograph's at full size would take much memory.
    levels = {1: torch.cat([_halve(plane) for plane in _planes(images, program)], 1)}
    for level in range(2, deepest + 1):
        levels[level] = _halve(levels[level - 1])
    return [levels[k] for k in LEVELS if k in levels] or [levels[deepest]]


def _planes(images: Tensor, program: SaliencyProgram) -> Iterator[Tensor]:
    code = torch.arange(256, dtype=torch.float64, device=images.device) / 255
    values = code if program == "harel" else _linear(code)
    for channel in images.unbind(3):
        yield values.index_select(0, channel.reshape(-1).int()).view(channel.shape)[:, None]
    yield images.amax(3)[:, None].double() / 255


def _linear(stored: Tensor) -> Tensor:
    """Linear light of stored values (IEC 61966-2-1), both from 0 to 1."""
    return torch.where(stored <= 0.04045, stored / 12.92, ((stored + 0.055) / 1.055) ** 2.4)


def _halve(planes: Tensor) -> Tensor:
    """Half of each side, rounded down; kernel [1 5 10 10 5 1] / 32 along both."""
    rows = planes.shape[2] // 2
    columns = planes.shape[3] // 2
    padded = functional.pad(planes, (2, 3, 2, 3), mode="replicate")
    halved = _binomial(*(padded[:, :, k : k + 2 * rows - 1 : 2] for k in range(6)))
    return _binomial(*(halved[..., k : k + 2 * columns - 1 : 2] for k in range(6)))


def _binomial(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor) -> Tensor:
    return (a + f).add_(b + e, alpha=5).add_(c + d, alpha=10).div_(32)


def orientations(intensity: Tensor) -> Tensor:
    """Gabor energy [batch, 4, height, width] of intensity [batch, height, width], in units of the largest possible."""
    height, width = intensity.shape[1:]
    radius = GABOR_RADIUS
    kernels = _gabors(intensity.device)
    padded = functional.pad(intensity[:, None], (radius,) * 4, mode="replicate")[:, 0]
    size = tuple(cv2.getOptimalDFTSize(side) for side in padded.shape[1:])
    spectrum = torch.fft.rfft2(padded, s=size)
    ramp = _ramp(height, radius, intensity.device)[:, None] * _ramp(width, radius, intensity.device)
    energies = []
    for pair in kernels:
        # A circular convolution: only places that no wrapped value reaches are kept.
        response = torch.fft.irfft2(spectrum[:, None] * torch.fft.rfft2(pair, s=size), s=size)
        kept = response[:, :, 2 * radius : 2 * radius + height, 2 * radius : 2 * radius + width]
        full_scale = pair.abs().sum() / 2
        energies.append(kept.abs().sum(1) / full_scale * ramp)
    return torch.stack(energies, 1)


@lru_cache(maxsize=8)
def _gabors(device: torch.device) -> Tensor:
    """Kernels [4 orientations, 2 phases, 27, 27]: sd 2 across, 4 along, period pi pixels; zero mean, unit energy."""
    offset = torch.arange(-GABOR_RADIUS, GABOR_RADIUS + 1, dtype=torch.float64)
    y = offset[:, None]
    x = offset
    pairs = []
    for degrees in (0, 45, 90, 135):
        angle = math.radians(degrees)
        across = x * math.cos(angle) + y * math.sin(angle)
        along = y * math.cos(angle) - x * math.sin(angle)
        envelope = torch.exp(-(across**2) / (2 * 2.0**2) - along**2 / (2 * 4.0**2))
        for wave in (torch.cos(2 * across), torch.sin(2 * across)):
            kernel = wave * envelope
            kernel = kernel - kernel.mean()
            pairs.append(kernel / kernel.square().sum().sqrt())
    return uploaded([torch.stack(pairs).view(4, 2, *kernel.shape)], device)[0]


def activation(maps: Tensor) -> Tensor:
    """The first walk's equilibrium on each map [chains, rows, columns]; sums to 1 (all 0 for a flat map)."""
    nearness = _nearness(*maps.shape[1:], ACTIVATION_SIGMA, maps.device)
    total = maps.flatten(1).clone()
    pairs = maps.new_empty(min(_at_once(maps.device), len(maps)), *nearness.shape)
    for some in total.split(_at_once(maps.device)):
        weights = torch.sub(some[:, :, None], some[:, None], out=pairs[: len(some)])
        some.copy_(weights.abs_().mul_(nearness).sum(2))
    return _shares(total).view_as(maps)


def concentration(maps: Tensor) -> Tensor:
    """The second walk's equilibrium (graph normalisation) on maps [chains, rows, columns] of values from 0."""
    nearness = _nearness(*maps.shape[1:], NORMALISATION_SIGMA, maps.device)
    total = maps.flatten(1).clone()
    for some in total.split(_at_once(maps.device)):
        some.mul_((some[:, None] * nearness).sum(2))
    return _shares(total).view_as(maps)


def _at_once(device: torch.device) -> int:
    return 1 if device.type == "cpu" else CHAINS_AT_ONCE


def _shares(total: Tensor) -> Tensor:
    whole = total.sum(1, keepdim=True)
    return total / torch.where(whole > 0, whole, 1.0)


@lru_cache(maxsize=8)
def _nearness(rows: int, columns: int, sigma: float, device: torch.device) -> Tensor:
    """exp(-distance**2 / (2 sigma**2)), [nodes, nodes]; ``sigma`` is a share of the sides' mean."""
    spread = sigma * (rows + columns) / 2
    y = torch.arange(rows, dtype=torch.float64).repeat_interleave(columns)
    x = torch.arange(columns, dtype=torch.float64).repeat(rows)
    squared = (y[:, None] - y) ** 2 + (x[:, None] - x) ** 2
    return uploaded([torch.exp(-squared / (2 * spread**2))], device)[0]


def _to_frame(master: Tensor, height: int, width: int, program: SaliencyProgram) -> Tensor:
    rows, columns = master.shape[1:]
    ramp = _ramp(rows, MAP_BORDER, master.device)[:, None] * _ramp(columns, MAP_BORDER, master.device)
    spread = BLUR_SIGMA * max(rows, columns)
    reach = round(2 * spread) if program == "harel" else math.ceil(3 * spread)
    down = _blur_weights(rows, spread, reach, master.device)
    across = _blur_weights(columns, spread, reach, master.device)
    blurred = min_max(down @ min_max(master * ramp) @ across.T)
    return min_max(resize(blurred, height, width, program))


def resize(planes: Tensor, height: int, width: int, program: SaliencyProgram = "ours") -> Tensor:
    """Planes [..., rows, columns] at another size: by area or bicubically, or by Matlab's imresize."""
    rows, columns = planes.shape[-2:]
    down = _resizing_weights(rows, height, program, planes.device)
    across = _resizing_weights(columns, width, program, planes.device)
    if width < columns:
        return down @ (planes @ across.T)
    return (down @ planes) @ across.T


def _resizing_weights(source: int, length: int, program: SaliencyProgram, device: torch.device) -> Tensor:
    """Weights [length, source] that make ``length`` cells of a side of ``source`` cells."""
    if program == "harel":
        return cubic_weights(source, length, "mirrored", device)
    if length < source:
        return area_weights(source, length, device)
    return cubic_weights(source, length, device=device)


@lru_cache(maxsize=64)
def _ramp(side: int, border: int, device: torch.device) -> Tensor:
    """1, falling linearly to 1 / (border + 1) at both ends; the border is at most half the side."""
    border = min(border, side // 2)
    place = torch.arange(side, dtype=torch.float64)
    falling = ((torch.minimum(place, side - 1 - place) + 1) / (border + 1)).clamp(max=1.0)
    return uploaded([falling], device)[0]


@lru_cache(maxsize=64)
def _blur_weights(side: int, spread: float, reach: int, device: torch.device) -> Tensor:
    """Weights [side, side] of a Gaussian of standard deviation ``spread``, cut off after ``reach`` cells."""
    offset = torch.arange(-reach, reach + 1)
    weight = torch.exp(-(offset.double() ** 2) / (2 * spread**2))
    index = (torch.arange(side)[:, None] + offset).clamp(0, side - 1)
    weights = torch.zeros((side, side), dtype=torch.float64)
    return uploaded([weights.scatter_add_(1, index, (weight / weight.sum()).expand(side, -1))], device)[0]
