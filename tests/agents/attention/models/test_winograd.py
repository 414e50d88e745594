"""Winograd's convolution against torch's in float64, and what is left to torch's."""

import pytest
import torch
import torchvision
from torch import nn
from torch.nn import functional

from agents.attention.models import winograd

NEAR = 1e-5  # of the largest result; most seen was 4e-6, of float32 the direct way 2e-6


def convolution(inputs, outputs, seed=0):
    generator = torch.Generator().manual_seed(seed)
    made = nn.Conv2d(inputs, outputs, 3, padding=1).requires_grad_(False)
    made.weight.normal_(0, (2 / (9 * inputs)) ** 0.5, generator=generator)
    made.bias.normal_(generator=generator)
    return made


def maps(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).relu_()


def exact(part, given):
    return functional.conv2d(given.double(), part.weight.double(), part.bias.double(), padding=1)


def assert_near(found, expected):
    assert found.shape == expected.shape
    assert (found - expected).abs().max() < NEAR * expected.abs().max()


@pytest.mark.parametrize(
    ("batch", "inputs", "outputs", "height", "width"),
    [
        (1, 64, 64, 16, 16),
        (3, 128, 64, 13, 14),  # the last rows and columns of tiles reach beyond
        (1, 64, 96, 31, 29),
        (2, 64, 64, 1, 61),  # a single row
        (2, 64, 96, 66, 64),  # strips of different heights
        (1, 512, 64, 5, 801),  # a row has more tiles than are taken at once
        (0, 64, 64, 16, 16),
    ],
)
def test_convolutions_are_those_of_float64(batch, inputs, outputs, height, width):
    direct, given = convolution(inputs, outputs), maps(batch, inputs, height, width)
    part = winograd.Convolution(direct, winograd.Workspace())
    expected = exact(direct, given)
    for form in (torch.contiguous_format, torch.channels_last):
        found = part(given.contiguous(memory_format=form))
        assert part.kernels is not None
        assert found.is_contiguous(memory_format=torch.channels_last)
        if batch:
            assert_near(found, expected)
        else:
            assert found.shape == expected.shape


def test_a_block_of_vgg16_is_that_of_float64():
    torch.manual_seed(0)
    block = torchvision.models.vgg16(weights=None).features[16:23].eval().requires_grad_(False)
    found, given = winograd.quicker(block), maps(2, 256, 57, 56)
    assert [type(part) for part in found] == [nn.MaxPool2d, *[winograd.Convolution, nn.ReLU] * 3]
    assert all(part.weight is other.weight for part, other in zip(found[1::2], block[1::2], strict=True))
    near = found(given)
    assert all(part.kernels is not None for part in found[1::2])
    assert_near(near, block.double()(given.double()))


def test_an_image_gives_the_same_in_any_batch():
    part, given = winograd.Convolution(convolution(128, 128), winograd.Workspace()), maps(11, 128, 28, 27)
    alone = torch.cat([part(image[None]) for image in given])
    assert torch.equal(part(given), alone)
    assert torch.equal(part(given.flip(0)[:7]), alone.flip(0)[:7])


@pytest.mark.parametrize("why", ["small", "type", "gradient of the input", "gradient of the weights"])
def test_the_rest_is_torchs(why):
    direct, given = convolution(64, 64), maps(5, 64, *((12, 20) if why == "small" else (16, 16)))
    if why == "type":
        direct, given = direct.double(), given.double()
    given.requires_grad_(why == "gradient of the input")
    part = winograd.Convolution(direct, winograd.Workspace())
    direct.weight.requires_grad_(why == "gradient of the weights")
    found = part(given)
    assert part.kernels is None
    assert torch.equal(found, direct(given))
    assert found.requires_grad == why.startswith("gradient")
    if why.startswith("gradient"):
        with torch.no_grad():
            assert_near(part(given), exact(direct, given))
        assert part.kernels is not None


@pytest.mark.parametrize(
    "other",
    [
        nn.Conv2d(3, 64, 3, padding=1),
        nn.Conv2d(64, 64, 1),
        nn.Conv2d(64, 64, 3),
        nn.Conv2d(64, 64, 3, 2, padding=1),
        nn.Conv2d(64, 64, 3, padding=1, dilation=2),
        nn.Conv2d(64, 64, 3, padding=1, groups=2),
        nn.Conv2d(64, 64, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(64, 64, 3, padding=1, bias=False),
        nn.Conv2d(64, 64, 3, padding="same"),
        nn.ReLU(),
    ],
    ids=str,
)
def test_other_parts_stay(other):
    [part] = winograd.quicker(nn.Sequential(other))
    assert part is other
