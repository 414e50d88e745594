"""Eight images of every sort that captioners meet: sizes, orientation, grey, palette, transparency."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def make(folder: Path) -> list[Path]:
    """Write the images; each shows something else, so that answers can differ."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)

    def picture(width: int, height: int) -> Image.Image:
        coarse = random.integers(0, 256, (4, 5, 3), dtype=np.uint8)
        return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)

    turned = Image.Exif()
    turned[0x0112] = 6
    made = {
        "wide.png": (picture(200, 60), {}),
        "tall.jpg": (picture(61, 190), {"quality": 95}),
        "turned.jpg": (picture(120, 80), {"exif": turned}),
        "grey.png": (picture(90, 90).convert("L"), {}),
        "alpha.png": (picture(64, 48), {}),
        "palette.gif": (picture(100, 75).convert("P"), {}),
        "small.png": (picture(9, 7), {}),
        "large.webp": (picture(640, 480), {"lossless": True}),
    }
    veil = Image.fromarray(random.integers(0, 256, (48, 64), dtype=np.uint8))
    made["alpha.png"][0].putalpha(veil)
    for name, (image, options) in made.items():
        image.save(folder / name, **options)
    return [folder / name for name in made]
