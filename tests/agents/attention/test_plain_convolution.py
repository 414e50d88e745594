"""The plain convolution and pool that the references are made of, beside torch's."""

import numpy as np
import plain_convolution
import pytest
import torch
from torch.nn import functional


@pytest.mark.parametrize("shape", [(3, 7, 10), (5, 8, 6)])
@pytest.mark.parametrize(
    ("size", "stride", "padding"), [((3, 3), 1, 1), ((1, 1), 1, 0), ((3, 2), 2, 0), ((5, 4), 3, 2)]
)
@pytest.mark.parametrize("biased", [True, False])
def test_convolutions_are_torchs(shape, size, stride, padding, biased):
    rng = np.random.default_rng(0)
    planes, kernel = rng.standard_normal(shape), rng.standard_normal((4, shape[0], *size))
    bias = rng.standard_normal(4) if biased else None
    expected = functional.conv2d(
        torch.from_numpy(planes)[None],
        torch.from_numpy(kernel),
        None if bias is None else torch.from_numpy(bias),
        stride,
        padding,
    )[0].numpy()
    np.testing.assert_allclose(
        plain_convolution.convolved(planes, kernel, bias, stride, padding), expected, rtol=0, atol=1e-12
    )
    by_torch = plain_convolution.by_torch()(planes, kernel, bias, stride, padding)
    np.testing.assert_allclose(by_torch, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("shape", [(3, 8, 6), (3, 7, 6), (2, 8, 5), (2, 7, 7), (1, 1, 1)])
@pytest.mark.parametrize("up", [False, True])
def test_pools_are_torchs(shape, up):
    planes = np.random.default_rng(0).standard_normal(shape) - 5  # no zero around may be the largest
    if min(shape[1:]) == 1 and not up:
        assert plain_convolution.pooled(planes, up).size == 0
        return
    expected = functional.max_pool2d(torch.from_numpy(planes)[None], 2, 2, ceil_mode=up)[0].numpy()
    assert np.array_equal(plain_convolution.pooled(planes, up), expected)


def test_a_block_is_torchs(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = {5: (4, 3), 7: (6, 4)}
    weights = {f"features.{index}.weight": rng.standard_normal((*size, 3, 3)) for index, size in sizes.items()}
    weights |= {f"features.{index}.bias": rng.standard_normal(size[0]) for index, size in sizes.items()}
    planes = rng.standard_normal((3, 9, 8))
    network = torch.nn.Sequential(
        *(part for o, i in sizes.values() for part in (torch.nn.Conv2d(i, o, 3, padding=1), torch.nn.ReLU()))
    ).double()
    renamed = {"5": "0", "7": "2"}
    network.load_state_dict(
        {f"{renamed[name.split('.')[1]]}.{name.split('.')[2]}": torch.from_numpy(one) for name, one in weights.items()}
    )
    with torch.no_grad():
        expected = network(torch.from_numpy(planes)[None])[0].numpy()
    np.testing.assert_allclose(plain_convolution.block(planes, weights, (5, 7)), expected, rtol=0, atol=1e-11)
