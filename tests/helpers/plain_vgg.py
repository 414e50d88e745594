"""The layers of VGG16 for one image in float64, for the reference programs; maps are [channels, rows, columns]."""

import numpy as np
import torch
from torch.nn import functional


def pooled(planes, up=False):
    """The maxima of 2 x 2 cells; at an odd side the last row or column is left out, or with ``up`` is a pool's own."""
    return functional.max_pool2d(torch.as_tensor(np.ascontiguousarray(planes)), 2, ceil_mode=up).numpy()


def block(planes, weights, indices):
    """Convolutions of VGG16 one after the other, each with its ReLU; ``indices`` are torchvision's numbers of them, and
    ``weights`` its arrays by name."""
    found = torch.as_tensor(np.ascontiguousarray(planes)).double()[None]
    for index in indices:
        kernel, bias = (torch.as_tensor(weights[f"features.{index}.{part}"]).double() for part in ("weight", "bias"))
        found = functional.conv2d(found, kernel, bias, padding=1).relu_()
    return found[0].numpy()
