"""An image is a value: bytes that can be read and decoded, wherever they came from.

One set of rules for every agent and for what a person is shown:

- formats: JPEG, PNG, WEBP, GIF, BMP, TIFF, recognised by content and never by name; the first frame of an animation;
- at most :data:`MAX_PIXELS` pixels, checked on the header, before anything is decoded;
- orientation: the EXIF orientation is applied;
- mode: 8-bit RGB; transparency composited on white, 16-bit and float data scaled, palettes and CMYK converted. An
  embedded colour profile is not applied: values are taken as sRGB, as the published agents took them.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from agents.errors import ImageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as PILImage

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
MAX_PIXELS = 1024**3 // 4 // 3  # 89 million: where Pillow, too, begins to speak of decompression bombs
MAX_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Header:
    """What an image's header says: ``format``, and ``width`` and ``height`` in pixels after EXIF orientation."""

    format: str
    width: int
    height: int


class Image:
    """The image of a stimulus.

    ``name`` is what the stimulus calls it (a path relative to the set's file) and is all that is written to JSON;
    the bytes come from ``data``, or from the file ``root / name``. A relative name never leaves ``root`` through
    ``..``: the set's author is trusted with absolute paths, a request is not given either (see ``context``).

    In a pydantic model the field type ``Image`` accepts a string; the validation context may give ``root`` (a folder)
    and ``files`` (name -> bytes, which then take precedence: that is how images travel to another machine).
    """

    __slots__ = ("_data", "_path", "_sha256", "name")

    def __init__(self, name: str, *, root: Path | str | None = None, data: bytes | None = None) -> None:
        self.name = name
        self._data = data
        self._path = None if data is not None else Path(root or ".") / name
        self._sha256: str | None = None

    def __repr__(self) -> str:
        return f"Image({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and self.name == other.name and self._data == other._data

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def path(self) -> Path | None:
        """The file, or None where the bytes were given."""
        return self._path

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes, in hex; reads them if they were not read yet."""
        if self._sha256 is None:
            self.read()
        assert self._sha256 is not None
        return self._sha256

    def read(self) -> bytes:
        """The bytes. Raises ImageError (``missing_image``, ``bad_image``) if there is no such regular file."""
        data = self._data
        if data is None:
            assert self._path is not None
            with _open_regular(self._path, self.name) as file:
                data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ImageError("image_too_large", f"{self.name}: larger than {MAX_BYTES >> 20} MiB")
        self._sha256 = hashlib.sha256(data).hexdigest()
        return data

    def header(self) -> Header:
        """Format and size, from the header alone. Raises ImageError as :meth:`decode` would for those."""
        if self._data is not None:
            source: io.IOBase = io.BytesIO(self._data)
        else:
            assert self._path is not None
            source = _open_regular(self._path, self.name)
        with source:
            image = _open(source, self.name)
            width, height = image.size
            if _orientation(image) >= 5 and image.format != "TIFF":  # Pillow turns TIFF by itself
                width, height = height, width
            return Header(str(image.format), width, height)

    def decode(self) -> NDArray[np.uint8]:
        """Pixels as uint8 [height, width, 3], sRGB. Raises ImageError if they cannot be had."""
        import numpy as np

        data = self.read()
        image = _open(io.BytesIO(data), self.name)
        try:
            image.load()
            return np.ascontiguousarray(np.asarray(_to_rgb(image), dtype=np.uint8))
        except ImageError:
            raise
        except Exception as error:  # Pillow's decoders raise a dozen types, struct.error and SyntaxError among them
            raise ImageError("bad_image", f"{self.name}: cannot be decoded: {_reason(error)}") from error

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def build(value: str, info: ValidationInfo) -> Image:
            context = info.context or {}
            files = context.get("files") or {}
            if value in files:
                return cls(value, data=files[value])
            return cls(value, root=context.get("root"))

        text = core_schema.str_schema(min_length=1, max_length=4096)
        from_text = core_schema.with_info_after_validator_function(build, text)
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), from_text]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda image: image.name, return_schema=core_schema.str_schema()
            ),
        )


def _open_regular(path: Path, name: str) -> io.BufferedReader:
    """Open a regular file without ever blocking on a FIFO or touching a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise ImageError("missing_image", f"{name}: no such file") from None
    except (OSError, ValueError) as error:
        raise ImageError("missing_image", f"{name}: cannot be opened: {_reason(error)}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ImageError("bad_image", f"{name}: not a regular file")
    return os.fdopen(descriptor, "rb")


def _open(source: Any, name: str) -> PILImage.Image:
    from PIL import Image as PILImage
    from PIL import UnidentifiedImageError

    try:
        image = PILImage.open(source, formats=FORMATS)
    except UnidentifiedImageError:
        raise ImageError("bad_image", f"{name}: not an image in a known format ({', '.join(FORMATS)})") from None
    except (PILImage.DecompressionBombError, PILImage.DecompressionBombWarning):
        raise ImageError("image_too_large", f"{name}: more than {MAX_PIXELS:,} pixels") from None
    except Exception as error:
        raise ImageError("bad_image", f"{name}: cannot be opened: {_reason(error)}") from error
    if image.width * image.height > MAX_PIXELS:
        size = f"{image.width} x {image.height}"
        raise ImageError("image_too_large", f"{name}: {size} is more than {MAX_PIXELS:,} pixels")
    return image


def _orientation(image: PILImage.Image) -> int:
    try:
        value = image.getexif().get(0x0112, 1)
    except Exception:  # broken EXIF is no reason to refuse the pixels: it means no orientation
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _to_rgb(image: PILImage.Image) -> PILImage.Image:
    from PIL import Image as PILImage

    turn = PILImage.Transpose
    turns = {
        2: turn.FLIP_LEFT_RIGHT,
        3: turn.ROTATE_180,
        4: turn.FLIP_TOP_BOTTOM,
        5: turn.TRANSPOSE,
        6: turn.ROTATE_270,
        7: turn.TRANSVERSE,
        8: turn.ROTATE_90,
    }
    method = turns.get(_orientation(image))
    if image.mode.startswith(("I", "F")):
        image = _scaled_to_8_bits(image)
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = PILImage.new("RGBA", rgba.size, (255, 255, 255, 255))
        image = PILImage.alpha_composite(white, rgba).convert("RGB")
    elif image.mode != "RGB":
        image = image.convert("RGB")
    return image if method is None else image.transpose(method)


def _scaled_to_8_bits(image: PILImage.Image) -> PILImage.Image:
    """16-bit (modes I;16*, and I as PNG gives it) by 1/257; other integer and float data by its own range."""
    import numpy as np
    from PIL import Image as PILImage

    values = np.asarray(image).astype(np.float64)
    if not np.isfinite(values).all():
        values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if image.mode.startswith("I;16") or (image.mode == "I" and low >= 0 and high <= 65535):
        scaled = values / 257.0
    elif image.mode == "F" and low >= 0.0 and high <= 1.0:
        scaled = values * 255.0
    elif low >= 0 and high <= 255:
        scaled = values
    else:
        scaled = (values - low) * (255.0 / (high - low)) if high > low else np.zeros_like(values)
    return PILImage.fromarray(np.rint(scaled).astype(np.uint8))


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
