"""The judges' clip of a scanpath. Images are uint8 [height, width(, 3)], fixations (x, y) in pixels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as PILImage

    Pixels = NDArray[np.uint8]
    Points = Sequence[Sequence[float]]

SHOWN = 15
RING_RADIUS = 35  # pixels of a frame 1280 wide
# in the palette of a frame, where no pixel of the picture has it
YELLOW = (255, 255, 0)
YELLOW_INDEX = 255
TARGET_MS = 1000
FIXATION_MS = 300
GAP_MS = 1000


def judges_clip(
    image: Pixels, fixations: Points, *, target: Pixels | None = None, max_side: int | None = None
) -> bytes:
    """An endless GIF, its longer side at most ``max_side``. Raises ValueError without fixations. The papers give the
    times, not the ring's size or the gap's content, here the image."""
    from PIL import Image as PILImage
    from PIL import ImageDraw

    picture, points = _scaled(image, fixations[:SHOWN], max_side)
    if not points:
        raise ValueError("a clip needs at least one fixation")
    plain = _with_yellow(picture)
    radius = max(2.0, RING_RADIUS * picture.width / 1280)
    frames = [] if target is None else [_with_yellow(_centred(PILImage.fromarray(target), picture.size))]
    times = [TARGET_MS] * len(frames) + [FIXATION_MS] * len(points) + [GAP_MS]
    for x, y in points:
        frame = plain.copy()
        box = (x - radius, y - radius, x + radius, y + radius)
        ImageDraw.Draw(frame).ellipse(box, outline=YELLOW_INDEX, width=max(2, round(radius / 5)))
        frames.append(frame)
    stream = io.BytesIO()
    rest = [*frames[1:], plain]
    frames[0].save(stream, "GIF", save_all=True, append_images=rest, duration=times, loop=0, optimize=False)
    return stream.getvalue()


def _scaled(image: Pixels, fixations: Points, max_side: int | None) -> tuple[PILImage.Image, list[tuple[float, float]]]:
    from PIL import Image as PILImage

    picture = PILImage.fromarray(image)
    scale = 1.0 if max_side is None else min(1.0, max_side / max(picture.size))
    if scale < 1.0:
        size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        picture = picture.resize(size, PILImage.Resampling.LANCZOS)
    across = picture.width / image.shape[1]
    down = picture.height / image.shape[0]
    return picture, [((point[0] + 0.5) * across - 0.5, (point[1] + 0.5) * down - 0.5) for point in fixations]


def _centred(picture: PILImage.Image, size: tuple[int, int]) -> PILImage.Image:
    """In the middle of a grey frame, made smaller if it does not fit, never larger."""
    from PIL import Image as PILImage

    picture = picture.convert("RGB")
    picture.thumbnail(size, PILImage.Resampling.LANCZOS)
    frame = PILImage.new("RGB", size, (128, 128, 128))
    frame.paste(picture, ((size[0] - picture.width) // 2, (size[1] - picture.height) // 2))
    return frame


def _with_yellow(picture: PILImage.Image) -> PILImage.Image:
    """With a palette whose last entry is pure yellow."""
    from PIL import Image as PILImage

    reduced = picture.convert("RGB").quantize(YELLOW_INDEX, PILImage.Quantize.MEDIANCUT)
    colours = (reduced.getpalette() or [])[: 3 * YELLOW_INDEX]
    reduced.putpalette([*colours, *[0] * (3 * YELLOW_INDEX - len(colours)), *YELLOW])
    return reduced
