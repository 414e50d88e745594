"""The layers of VGG16 for one image in float64, for the reference programs; maps are [channels, rows, columns]."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

BLOCKS = ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28))  # torchvision's numbers of the convolutions


def taken(image: NDArray[Any], preprocessing: str = "torch") -> NDArray[Any]:
    """Pixels [height, width, 3] in 0..255 as the network takes them, [3, height, width]."""
    image = np.asarray(image, np.float64)
    if preprocessing == "caffe":
        values = image[..., ::-1] - np.array([103.939, 116.779, 123.68])
    else:
        values = (image / 255 - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    return values.transpose(2, 0, 1)


def pooled(planes: NDArray[Any], up: bool = False) -> NDArray[Any]:
    """The maxima of 2 x 2 cells; at an odd side the last row or column is left out, or with ``up`` is a pool's own."""
    return functional.max_pool2d(torch.as_tensor(np.ascontiguousarray(planes)), 2, ceil_mode=up).numpy()


def block(planes: NDArray[Any], weights: Any, number: int) -> NDArray[Any]:
    """The convolutions of block 1 to 5, each with its ReLU; ``weights`` are torchvision's arrays by name."""
    found = torch.as_tensor(np.ascontiguousarray(planes)).double()[None]
    for index in BLOCKS[number - 1]:
        kernel, bias = (torch.as_tensor(weights[f"features.{index}.{part}"]).double() for part in ("weight", "bias"))
        found = functional.conv2d(found, kernel, bias, padding=1).relu_()
    return found[0].numpy()
