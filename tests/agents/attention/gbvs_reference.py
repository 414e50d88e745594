"""Graph-based visual saliency in plain numpy, by power iteration: slow, direct, and sharing no code with the package.

Colours are formed before the pyramid, filters are applied in space, resizing goes through dense matrices, and the
equilibria are found by iterating the chain, as in Harel, Koch and Perona (2006).
"""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = (2, 3, 4)
KERNEL = np.array([1, 5, 10, 10, 5, 1]) / 32
TOLERANCE = 1e-4  # the authors' number, here of the sum of changes; their program takes it of the Euclidean norm,
# and so stops after some 12 steps where this takes some 32


def nearness(rows: int, columns: int, sigma: float) -> NDArray[Any]:
    y, x = np.mgrid[:rows, :columns].reshape(2, -1).astype(float)
    spread = sigma * (rows + columns) / 2
    return np.exp(-((y[:, None] - y) ** 2 + (x[:, None] - x) ** 2) / (2 * spread**2))


def chain_activation(values: NDArray[Any], near: NDArray[Any]) -> NDArray[Any]:
    """Transition matrix of the first walk, from column j to row i."""
    weights = np.abs(values[:, None] - values[None, :]) * near
    return weights / weights.sum(0)


def chain_concentration(values: NDArray[Any], near: NDArray[Any]) -> NDArray[Any]:
    weights = near * values[:, None]
    return weights / weights.sum(0)


def equilibrium(chain: NDArray[Any], tolerance: float = TOLERANCE, most: int = 100_000) -> NDArray[Any]:
    state = np.full(len(chain), 1 / len(chain))
    for _ in range(most):
        following = chain @ state
        if np.abs(following - state).sum() < tolerance:
            return following
        state = following
    raise AssertionError("the chain does not converge")


def activations(maps: NDArray[Any], tolerance: float = TOLERANCE) -> NDArray[Any]:
    """Equilibria of the first walk on maps [chains, rows, columns]."""
    _, rows, columns = maps.shape
    near = nearness(rows, columns, 0.15)
    return np.stack(
        [equilibrium(chain_activation(values.ravel(), near), tolerance).reshape(values.shape) for values in maps]
    )


def linear(code: NDArray[Any]) -> NDArray[Any]:
    code = code / 255
    return np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)


def opponent(rgb: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The three colour planes of linear RGB [height, width, 3], and the range of each over the corners of the cube."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    to_cones = np.array([[0.15514, 0.54312, -0.03286], [-0.15514, 0.45684, 0.03286], [0, 0, 0.00801]])

    def planes(light: NDArray[Any]) -> NDArray[Any]:
        cones = light @ (to_cones @ to_xyz).T
        grey = np.full(3, 0.5) @ (to_cones @ to_xyz).T
        luminance = cones[..., 0] + cones[..., 1]
        red_green = cones[..., 0] / grey[0] - cones[..., 1] / grey[1]
        blue_yellow = cones[..., 2] * (grey[0] + grey[1]) / grey[2] - luminance
        return np.stack([luminance, red_green, blue_yellow])

    corners = planes(np.array(list(product((0.0, 1.0), repeat=3))))
    return planes(rgb), corners.max(1) - corners.min(1)


def halve(plane: NDArray[Any]) -> NDArray[Any]:
    for _ in range(2):
        padded = np.pad(plane, ((2, 3), (0, 0)), mode="edge")
        plane = np.stack([KERNEL @ padded[2 * k : 2 * k + 6] for k in range(plane.shape[0] // 2)]).T
    return plane


def ramp(side: int, border: int) -> NDArray[Any]:
    border = min(border, side // 2)
    return np.array([min(1, (min(k, side - 1 - k) + 1) / (border + 1)) for k in range(side)])


def gabor(angle: float, phase: float) -> NDArray[Any]:
    kernel = np.empty((27, 27))
    for row in range(27):
        for column in range(27):
            y = row - 13
            x = column - 13
            u = x * math.cos(angle) + y * math.sin(angle)
            v = -x * math.sin(angle) + y * math.cos(angle)
            kernel[row, column] = math.exp(-u * u / 8 - v * v / 32) * math.cos(2 * u - phase)
    kernel -= kernel.mean()
    return kernel / np.linalg.norm(kernel)


def energy(plane: NDArray[Any], angle: float) -> tuple[NDArray[Any], float]:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(plane, 13, mode="edge"), (27, 27))
    total = np.zeros_like(plane)
    scale = 0.0
    for phase in (0, math.pi / 2):
        kernel = gabor(angle, phase)
        total += np.abs(np.einsum("ijkl,kl->ij", windows, kernel))
        scale += np.abs(kernel).sum() / 2
    return total * np.outer(ramp(plane.shape[0], 13), ramp(plane.shape[1], 13)), scale


def keys(t: float) -> float:
    t = abs(t)
    if t <= 1:
        return 1.5 * t**3 - 2.5 * t**2 + 1
    return -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2 if t < 2 else 0.0


def imresize_matrix(source: int, length: int) -> NDArray[Any]:
    """Matlab's imresize, bicubic: wider where values become fewer, mirrored beyond the edge."""
    matrix = np.zeros((length, source))
    ratio = length / source
    wide = max(1.0, 1 / ratio)
    for out in range(length):
        centre = (out + 0.5) / ratio - 0.5
        for k in range(math.floor(centre - 2 * wide), math.ceil(centre + 2 * wide) + 1):
            mirrored = k % (2 * source)
            matrix[out, min(mirrored, 2 * source - 1 - mirrored)] += keys((centre - k) / wide)
        matrix[out] /= matrix[out].sum()
    return matrix


def resize_matrix(source: int, length: int) -> NDArray[Any]:
    matrix = np.zeros((length, source))
    for out in range(length):
        if length < source:
            start = out * source / length
            end = (out + 1) * source / length
            for k in range(source):
                matrix[out, k] = max(0.0, min(k + 1, end) - max(k, start)) / (end - start)
        else:
            centre = (out + 0.5) * source / length - 0.5
            for k in range(math.floor(centre) - 1, math.floor(centre) + 3):
                matrix[out, min(max(k, 0), source - 1)] += keys(k - centre)
    return matrix


def resize(
    plane: NDArray[Any], rows: int, columns: int, weights: Callable[[int, int], NDArray[Any]] = resize_matrix
) -> NDArray[Any]:
    return weights(plane.shape[0], rows) @ plane @ weights(plane.shape[1], columns).T


def unit(plane: NDArray[Any]) -> NDArray[Any]:
    return (plane - plane.min()) / (plane.max() - plane.min())


def blur(plane: NDArray[Any], spread: float, reach: int) -> NDArray[Any]:
    kernel = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * spread**2))
    kernel /= kernel.sum()
    for _ in range(2):
        padded = np.pad(plane, ((reach, reach), (0, 0)), mode="edge")
        plane = np.stack([kernel @ padded[k : k + 2 * reach + 1] for k in range(plane.shape[0])]).T
    return plane


def features(
    image: NDArray[Any], weights: Callable[[int, int], NDArray[Any]] = resize_matrix, linear_first: bool = True
) -> list[tuple[NDArray[Any], float]]:
    """Feature maps on the grid, each with its full scale; image uint8 [height, width, 3]."""
    grid = [max(1, round(32 * side / max(image.shape[:2]))) for side in image.shape[:2]]
    colours, ranges = opponent(linear(image))
    pyramid = [*(colours if linear_first else image.transpose(2, 0, 1) / 255), image.max(2) / 255]
    found = []
    for level in range(1, LEVELS[-1] + 1):
        pyramid = [halve(plane) for plane in pyramid]
        if level not in LEVELS or min(pyramid[0].shape) < 3:
            continue
        shown = pyramid
        if not linear_first:
            shown = [*opponent(linear(255 * np.stack(pyramid[:3], 2)))[0], pyramid[3]]
        found += [
            (resize(plane, grid[0], grid[1], weights), scale)
            for plane, scale in zip(shown, [*ranges, 1.0], strict=True)
        ]
        for degrees in (0, 45, 90, 135):
            plane, scale = energy(pyramid[-1], math.radians(degrees))
            found.append((resize(plane, grid[0], grid[1], weights), scale))
    return found


def saliency(
    image: NDArray[Any], normalisation: str = "power", tolerance: float = TOLERANCE, program: str = "ours"
) -> NDArray[Any]:
    """The map of an image with at least one pyramid level, not uniform."""
    harel = program == "harel"
    weights = imresize_matrix if harel else resize_matrix
    found = features(image, weights, linear_first=not harel)
    rows, columns = found[0][0].shape
    total = np.zeros((rows, columns))
    for plane, scale in found:
        if np.ptp(plane) < 1e-6 * scale:
            continue
        active = activations(plane[None], tolerance)[0]
        if normalisation == "power":
            total += active**1.5
        else:
            chain = chain_concentration(active.ravel(), nearness(rows, columns, 0.06))
            total += equilibrium(chain, tolerance).reshape(rows, columns)
    total = unit(total * np.outer(ramp(rows, 4), ramp(columns, 4)))
    spread = 0.02 * max(rows, columns)
    blurred = unit(blur(total, spread, round(2 * spread) if harel else math.ceil(3 * spread)))
    return unit(resize(blurred, image.shape[0], image.shape[1], weights))
