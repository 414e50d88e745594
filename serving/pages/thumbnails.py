"""Pictures made small for pages."""

import io

from agents.images import Image

SIDE = 640  # pixels: the longer side of a picture in a report


def thumbnail(image: Image, side: int = SIDE) -> bytes:
    """The image as the bytes of a JPEG whose longer side has at most ``side`` pixels. Raises ImageError."""
    from PIL import Image as PILImage

    pixels = image.pil()
    pixels.thumbnail((side, side), PILImage.Resampling.LANCZOS, reducing_gap=3.0)
    buffer = io.BytesIO()
    pixels.save(buffer, "JPEG", quality=80, optimize=True)
    return buffer.getvalue()
