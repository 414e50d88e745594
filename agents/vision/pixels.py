"""Pixels as captioners take them: which shapes can be enlarged, and CLIP's own preparation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agents.errors import AnswerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

THINNEST = 64
"""The most times that the long side may hold the short one. A thinner image would need gigabytes when its short side is
enlarged."""
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
"""CLIP's means of red, green and blue, from 0 to 1."""
CLIP_DEVIATION = (0.26862954, 0.26130258, 0.27577711)
"""CLIP's standard deviations of the three."""
ProcessorInput = dict[str, Any]
"""Tensors of an image by name, without the batch's dimension."""


def check_shape(pixels: NDArray[np.uint8]) -> None:
    """Refuse pixels, uint8 [height, width, 3], that are too thin to be enlarged. Raises AnswerError."""
    height, width, _ = pixels.shape
    if max(height, width) > THINNEST * min(height, width):
        raise AnswerError("image_too_narrow", f"{width} x {height} is thinner than 1 to {THINNEST}")


class ClipPixels:
    """Prepares pixels as OpenAI's ``clip.load`` does: the image is resized until its short side has ``size`` pixels,
    and the middle square is taken. ``squeezed``: the whole image becomes the square."""

    def __init__(
        self,
        size: int,
        mean: Sequence[float] = CLIP_MEAN,
        deviation: Sequence[float] = CLIP_DEVIATION,
        *,
        squeezed: bool = False,
    ) -> None:
        from torchvision import transforms

        self.squeezed = squeezed
        resize = transforms.Resize((size, size) if squeezed else size, transforms.InterpolationMode.BICUBIC)
        normalise = transforms.Normalize(mean, deviation)
        self._transform = transforms.Compose([resize, transforms.CenterCrop(size), transforms.ToTensor(), normalise])

    def __call__(self, pixels: NDArray[np.uint8]) -> ProcessorInput:
        """``pixel_values``, fp32 [3, size, size], of pixels [height, width, 3]. Raises AnswerError if too thin."""
        if not self.squeezed:
            check_shape(pixels)
        from PIL import Image

        return {"pixel_values": self._transform(Image.fromarray(pixels))}
