"""The layers of a convolutional network for one image, plain and slow, in numpy's float64: a loop over a kernel's taps.

Maps are [channels, rows, columns]. What these functions stand beside is torch's; ``by_torch`` gives a convolution of
torch's in the same form, so that one reference can have either.
"""

import numpy as np


def convolved(planes, kernel, bias=None, stride=1, padding=0):
    """The products of a kernel [outputs, channels, n, m] with the maps at every ``stride``-th place, zeros around."""
    padded = np.pad(planes, ((0, 0), (padding, padding), (padding, padding)))
    kernel = kernel.astype(np.float64)
    rows, columns = ((side - size) // stride + 1 for side, size in zip(padded.shape[1:], kernel.shape[2:], strict=True))
    total = np.zeros((len(kernel), rows, columns))
    for down in range(kernel.shape[2]):
        for across in range(kernel.shape[3]):
            seen = padded[:, down : down + stride * rows : stride, across : across + stride * columns : stride]
            total += np.tensordot(kernel[:, :, down, across], seen, 1)
    return total if bias is None else total + bias[:, None, None]


def rectified(planes):
    return np.maximum(planes, 0)


def pooled(planes, up=False):
    """The maxima of 2 x 2 cells; at an odd side the last row or column is left out, or with ``up`` is a pool's own."""
    _, rows, columns = planes.shape
    if up:
        planes = np.pad(planes, ((0, 0), (0, rows % 2), (0, columns % 2)), constant_values=-np.inf)
    else:
        planes = planes[:, : rows // 2 * 2, : columns // 2 * 2]
    above = np.maximum(planes[:, ::2, ::2], planes[:, ::2, 1::2])
    below = np.maximum(planes[:, 1::2, ::2], planes[:, 1::2, 1::2])
    return np.maximum(above, below)


def block(planes, weights, indices, convolve=convolved):
    """Convolutions of VGG16 one after the other, each with its ReLU; ``indices`` are torchvision's numbers of them, and
    ``weights`` its arrays by name."""
    for index in indices:
        kernel, bias = (weights[f"features.{index}.{part}"] for part in ("weight", "bias"))
        planes = rectified(convolve(planes, kernel, bias, padding=1))
    return planes


def by_torch(device="cpu"):
    """A function like ``convolved`` that is torch's, in float32 on a device."""
    import torch

    def convolve(planes, kernel, bias=None, stride=1, padding=0):
        taken, weight = (torch.from_numpy(np.asarray(one, np.float32)).to(device) for one in (planes, kernel))
        added = None if bias is None else torch.from_numpy(np.asarray(bias, np.float32)).to(device)
        return torch.nn.functional.conv2d(taken[None], weight, added, stride, padding)[0].cpu().numpy()

    return convolve
