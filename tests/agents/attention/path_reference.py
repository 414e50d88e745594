"""A scanpath on one map, in plain Python and numpy, sharing no code with the package."""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.attention.models.fixations import Plan


def naive(saliency: NDArray[Any], plan: Plan) -> tuple[list[tuple[int, int]], str]:
    """One fixation after another on a float map, a cell at a time where that is plainest."""
    (width, height) = plan.frame
    (rows, columns) = saliency.shape
    saliency = saliency.astype(np.float64)
    extent = saliency.max() - saliency.min()
    score = np.rint((saliency - saliency.min()) / extent * 2**20) / 2**20 if extent > 0 else np.zeros_like(saliency)
    places = [
        [(int((c + 0.5) * width / columns), int((r + 0.5) * height / rows)) for c in range(columns)]
        for r in range(rows)
    ]
    target = set()
    if isinstance(plan.target, tuple):
        x, y, w, h = plan.target
        xs = range(max(0, math.floor(x)), min(width, math.ceil(x + w)))
        ys = range(max(0, math.floor(y)), min(height, math.ceil(y + h)))
        target = set(itertools.product(xs, ys))
    elif plan.target is not None:
        target = {(x, y) for y, x in np.argwhere(plan.target).tolist()}
    path = [(width // 2, height // 2)]
    while True:
        x, y = path[-1]
        side = range(-(plan.window // 2), plan.window // 2 + 1)
        if any((x + dx, y + dy) in target for dx in side for dy in side):
            return path, "target"
        if len(path) == plan.maximum:
            return path, "maximum"
        for r, c in itertools.product(range(rows), range(columns)):
            px, py = places[r][c]
            if px - x in side and py - y in side:
                score[r, c] = -np.inf
        best = int(score.argmax())
        if score.flat[best] == -np.inf:
            return path, "exhausted"
        path.append(places[best // columns][best % columns])
