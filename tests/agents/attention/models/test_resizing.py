"""Weights for other lengths, beside other libraries' resizing."""

import cv2
import numpy as np
import pytest
import torch
from PIL import Image as PILImage
from torch.nn import functional

from agents.attention.models.resizing import area_weights, cubic_weights


@pytest.mark.parametrize(("rows", "columns"), [(24, 32), (32, 20), (7, 40)])
def test_shrinking_is_by_area(rows, columns):
    plane = np.random.default_rng(0).random((41, 77))
    found = area_weights(41, rows) @ torch.from_numpy(plane) @ area_weights(77, columns).T
    assert np.abs(found.numpy() - cv2.resize(plane, (columns, rows), interpolation=cv2.INTER_AREA)).max() < 1e-6


def test_growing_is_bicubic_and_repeats_the_edge():
    plane = np.random.default_rng(0).random((24, 32)).astype(np.float32)
    found = cubic_weights(24, 480) @ torch.from_numpy(plane).double() @ cubic_weights(32, 640).T
    padded = np.pad(plane, 4, mode="edge")
    pillow = np.asarray(PILImage.fromarray(padded).resize((800, 640), PILImage.Resampling.BICUBIC))
    assert np.abs(found.numpy() - pillow[80:-80, 80:-80]).max() < 1e-5


@pytest.mark.parametrize(("length", "cells"), [(224, 16), (160, 16), (224, 57), (10, 16), (3, 16)])
def test_mirrored_cubic_is_that_of_torch(length, cells):
    line = torch.randn(cells, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    mirrored = torch.cat([line.flip(0), line, line.flip(0)])
    shape = (1, 3 * length)
    expected = functional.interpolate(mirrored[None, None, None], shape, mode="bicubic", antialias=True)[0, 0, 0]
    weights = cubic_weights(cells, length, "mirrored")
    assert torch.allclose(weights @ line, expected[length : 2 * length], atol=1e-12)
    assert torch.allclose(weights.sum(1), torch.ones(length, dtype=torch.float64))
