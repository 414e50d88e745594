"""VGG16, whose features are what several attention agents look at (Simonyan and Zisserman 2015, arXiv 1409.1556).

torchvision numbers the parts of ``vgg16().features`` from 0 to 30; the papers speak of blocks:

=======================  ==========================================================  ========================
name                     index of the last part that is applied                      channels, stride
=======================  ==========================================================  ========================
relu1_2, pool1           3, 4                                                        64, 1 and 2
relu2_2, pool2           8, 9                                                        128, 2 and 4
relu3_3, pool3           15, 16                                                      256, 4 and 8
relu4_3, pool4           22, 23                                                      512, 8 and 16
relu5_3, pool5           29, 30                                                      512, 16 and 32
=======================  ==========================================================  ========================
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

LAYERS = {
    "relu1_2": 3,
    "pool1": 4,
    "relu2_2": 8,
    "pool2": 9,
    "relu3_3": 15,
    "pool3": 16,
    "relu4_3": 22,
    "pool4": 23,
    "relu5_3": 29,
    "pool5": 30,
}
CAFFE_MEAN = (103.939, 116.779, 123.68)  # of blue, green, red, in 0..255
IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of red, green, blue, in 0..1

Preprocessing = Literal["imagenet", "caffe"]


def memory_format(device: torch.device) -> torch.memory_format:
    """How images, features and weights lie in memory: on the CPU convolutions are 1.1 to 1.4 times as fast with
    channels last; on a GPU those of fp32 are made for the other way, without the tensor cores' 19 bits."""
    import torch

    return torch.channels_last if device.type == "cpu" else torch.contiguous_format


def normalise(pixels: torch.Tensor, way: Preprocessing) -> torch.Tensor:
    """RGB images [batch, 3, height, width] in 0..255 as VGG16 takes them, float32, in :func:`memory_format`.

    ``caffe``: blue, green, red minus their means, not scaled (the original model). ``imagenet``: divided by 255, minus
    mean and divided by deviation (torchvision's weights).
    """
    pixels, (mean, deviation) = pixels.float(), _statistics(way, pixels.device)
    pixels = pixels.flip(1) - mean if way == "caffe" else (pixels / 255 - mean) / deviation
    return pixels.contiguous(memory_format=memory_format(pixels.device))


@lru_cache(maxsize=8)
def _statistics(way: Preprocessing, device: torch.device) -> torch.Tensor:
    """Means and deviations of the channels, [2, 3, 1, 1]."""
    import torch

    from agents.transfer import uploaded

    values = (CAFFE_MEAN, (1.0, 1.0, 1.0)) if way == "caffe" else (IMAGENET_MEAN, IMAGENET_DEVIATION)
    return uploaded([torch.tensor(values)[:, :, None, None]], device)[0]
