"""An image is bytes that can be read and decoded, wherever they came from.
- JPEG, PNG, WEBP, GIF, BMP, TIFF, recognised by content; the first frame of a file;
- at most :data:`MAX_PIXELS` and :data:`MAX_BYTES`, checked before decoding;
- EXIF orientation applied (in a PNG of an eXIf chunk before the pixels), XMP's not;
- 8-bit RGB: transparency on white, 16 bits and floats scaled, palettes and CMYK converted; taken as sRGB.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import stat
import struct
import threading
import warnings
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from agents.errors import ImageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image as PILImage
    from PIL import ImageFile as PILImageFile

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
MAX_PIXELS = 1024**3 // 4 // 3  # 89 million, as Pillow's limit for decompression bombs
MAX_BYTES = 512 * 1024 * 1024
MAX_TEXT = 64 * 1024 * 1024  # bytes of a PNG's profile or text, unpacked
LARGE = 10_000_000  # pixels; images of more are decoded after each other, for the memory that they take
ORIENTATION = 0x0112  # the tag of EXIF
PHOTOMETRIC = 262  # a tag of TIFF: what 0 means
WHITE_IS_ZERO = 0
SAMPLE_FORMAT = 339  # a tag of TIFF
UNSIGNED = 1

_BEGINS = {
    b"\x89PNG\r\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF8": "GIF",
    b"RIFF": "WEBP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}

_large = threading.Lock()
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Header:
    """What the beginning of an image file says."""

    format: str
    """One of :data:`FORMATS`."""
    width: int
    """Pixels after EXIF orientation."""
    height: int
    """Pixels after EXIF orientation."""
    one_channel: bool
    """Whether it is grey."""
    channels: int
    """Channels of the file; of grey with transparency two, of a palette one."""


class Image:
    """The bytes are ``data``, or of the file ``root / name``; ``name`` alone is written to JSON. A pydantic field
    accepts a string; the context may have ``root`` and ``files`` (name -> bytes). With ``files`` alone no path is
    opened."""

    __slots__ = ("_data", "_sha256", "name", "path")

    def __init__(self, name: str, *, root: Path | str | None = None, data: bytes | None = None) -> None:
        self.name = name
        self._data = data
        self.path = None if data is not None else Path(root or ".") / name
        self._sha256: str | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and self.name == other.name and self._data == other._data

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def sha256(self) -> str:
        """Hex; reads the bytes if need be."""
        return self._sha256 or hashlib.sha256(self.read()).hexdigest()

    def read(self) -> bytes:
        """The bytes as they are in the file, not decoded. Raises ImageError (``missing_image``, ``bad_image``,
        ``image_too_large``)."""
        with self._open_source() as source:
            try:
                data = source.read()
            except OSError as error:  # a disk or a network that fails
                raise ImageError("missing_image", f"{self.name}: cannot be read: {_reason(error)}") from None
        self._check_bytes(len(data))
        self._sha256 = hashlib.sha256(data).hexdigest()
        return data

    def header(self) -> Header:
        """Without decoding. Raises ImageError."""
        with self._open_source() as source:
            image = _open(source, self.name)
            width, height = image.size
            if _orientation(image) >= 5:
                width, height = height, width
            # A JPEG with a preview behind it is called MPO by Pillow; its first picture is the JPEG.
            form = "JPEG" if image.format == "MPO" else str(image.format)
            is_grey = image.mode.partition(";")[0] in ("1", "L", "LA", "I", "F")
            return Header(form, width, height, is_grey, len(image.getbands()))

    def _open_source(self) -> BinaryIO:
        """Regular files only: a FIFO would block, a device may act."""
        if self._data is not None:
            return io.BytesIO(self._data)
        if self.path is None:
            raise ImageError("missing_image", f"{self.name}: not among the images that came with the stimulus")
        try:
            state = os.stat(self.path)
            if not stat.S_ISREG(state.st_mode):
                raise ImageError("bad_image", f"{self.name}: not a regular file")
            self._check_bytes(state.st_size)
            return self.path.open("rb")
        except FileNotFoundError:
            hint = " (web addresses are not fetched)" if "://" in self.name else ""
            raise ImageError("missing_image", f"{self.name}: no such file{hint}") from None
        except (OSError, ValueError) as error:
            raise ImageError("missing_image", f"{self.name}: cannot be opened: {_reason(error)}") from None

    def _check_bytes(self, size: int) -> None:
        if size > MAX_BYTES:
            raise ImageError("image_too_large", f"{self.name}: larger than {MAX_BYTES >> 20} MiB")

    def decode(self) -> NDArray[np.uint8]:
        """uint8 [height, width, 3], sRGB, writable. Raises ImageError, and MemoryError."""
        import numpy as np

        image = _open(io.BytesIO(self.read()), self.name)
        is_large = image.width * image.height > LARGE
        turn: contextlib.AbstractContextManager[Any] = _large if is_large else contextlib.nullcontext()
        try:
            with turn:
                orientation = _orientation(image)  # before the pixels: a PNG may have another behind them
                image.load()
                return np.array(_turned(_to_rgb(image), orientation), dtype=np.uint8)
        except MemoryError:
            raise
        except Exception as error:  # Pillow's decoders raise a dozen types, struct.error and SyntaxError among them
            raise ImageError("bad_image", f"{self.name}: cannot be decoded: {_reason(error)}") from error

    def pil(self) -> PILImage.Image:
        """A Pillow image of mode RGB, with the pixels of :meth:`decode`. Raises ImageError, and MemoryError."""
        from PIL import Image as PILImage

        return PILImage.fromarray(self.decode())

    def sendable(self, formats: Container[str]) -> tuple[bytes, str, tuple[int, int]]:
        """(bytes, "original" or "png", (width, height)); the original if a plain decoder reads it alike. Raises
        ImageError."""
        from PIL import Image as PILImage

        pixels = self.decode()
        height, width, _ = pixels.shape
        data = self.read()
        form = self.header().format
        if form in formats and _is_plain(data, form, pixels):
            return data, "original", (width, height)
        buffer = io.BytesIO()
        PILImage.fromarray(pixels).save(buffer, "PNG")
        return buffer.getvalue(), "png", (width, height)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def build(value: str, info: ValidationInfo) -> Image:
            context = info.context or {}
            root = context.get("root")
            files = context.get("files")
            if files is not None and value in files:
                return cls(value, data=files[value])
            if _CONTROL.search(value):
                raise PydanticCustomError("image_path", "must not contain control characters")
            image = cls(value, root=root)
            if files is not None and root is None:
                image.path = None
            return image

        text = core_schema.str_schema(min_length=1, max_length=4096)
        from_text = core_schema.with_info_after_validator_function(build, text)
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.no_info_wrap_validator_function(
                lambda value, handler: value if isinstance(value, cls) else handler(value), from_text
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda image: image.name, return_schema=core_schema.str_schema()
            ),
        )


def _is_plain(data: bytes, form: str, pixels: NDArray[np.uint8]) -> bool:
    import numpy as np
    from PIL import Image as PILImage

    try:
        plain = PILImage.open(io.BytesIO(data), formats=[form])
        is_animated = form != "JPEG" and getattr(plain, "n_frames", 1) > 1
        return not is_animated and np.array_equal(np.asarray(plain.convert("RGB")), pixels)
    except Exception:  # a dozen types, as in decode: a server may stumble as well
        return False


def _open(source: BinaryIO, name: str) -> PILImageFile.ImageFile:
    """Pillow's image, without its pixels yet. Raises ImageError for no image of :data:`FORMATS`, or too large."""
    from PIL import Image as PILImage
    from PIL import PngImagePlugin, UnidentifiedImageError

    # Without warnings of odd metadata; warnings.catch_warnings may not be used in threads.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY = MAX_TEXT
    try:
        image = PILImage.open(source, formats=FORMATS)
    except UnidentifiedImageError:
        source.seek(0)
        start = source.read(8)
        damaged = next((form for begin, form in _BEGINS.items() if start.startswith(begin)), None)
        what = f"a damaged {damaged}" if damaged else f"not an image in a known format ({', '.join(FORMATS)})"
        raise ImageError("bad_image", f"{name}: {what}") from None
    except PILImage.DecompressionBombError:
        raise ImageError("image_too_large", f"{name}: more than {MAX_PIXELS:,} pixels") from None
    except Exception as error:  # a dozen types, as in decode
        raise ImageError("bad_image", f"{name}: cannot be opened: {_reason(error)}") from error
    image.info.pop("xmp", None)  # Pillow would take a TIFF's orientation from it
    if image.width * image.height > MAX_PIXELS:
        size = f"{image.width} x {image.height}"
        raise ImageError("image_too_large", f"{name}: {size} is more than {MAX_PIXELS:,} pixels")
    return image


def _orientation(image: PILImage.Image) -> int:
    """The EXIF orientation still to be applied, 1 to 8. ``getexif`` would decode a PNG, and read XMP."""
    from PIL import Image as PILImage

    exif = PILImage.Exif()
    try:
        exif.load(image.info.get("exif", b"") if image.format != "TIFF" else b"")
        value = exif.get(ORIENTATION)
    except Exception:  # broken EXIF is no reason to refuse the pixels: it means no orientation
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _turned(image: PILImage.Image, orientation: int) -> PILImage.Image:
    from PIL import ImageOps

    if orientation == 1:
        return image
    image.info.clear()
    image.getexif()[ORIENTATION] = orientation
    return ImageOps.exif_transpose(image)


def _to_rgb(image: PILImage.Image) -> PILImage.Image:
    from PIL import Image as PILImage

    transparent = image.info.get("transparency")
    if image.mode.startswith(("I", "F")):
        image = _scaled_to_8_bits(image, transparent)
    elif isinstance(transparent, tuple) and max(transparent) > 255:  # of a 16-bit PNG, of which Pillow keeps 8 bits
        image.info["transparency"] = tuple(value >> 8 for value in transparent)
    if image.format == "BMP" and image.mode == "RGBA" and image.getchannel("A").getextrema() == (0, 0):
        return image.convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = PILImage.new("RGBA", rgba.size, (255, 255, 255, 255))
        return PILImage.alpha_composite(white, rgba).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _scaled_to_8_bits(image: PILImage.Image, transparent: object) -> PILImage.Image:
    """16 bits by 1/257; floats within 0 to 1 by 255, within 0 to 255 as they are, others by their range."""
    import numpy as np
    from PIL import Image as PILImage

    raw = np.asarray(image)
    if _tiff_tag(image, SAMPLE_FORMAT) in (None, UNSIGNED) and raw.dtype == np.int32 and image.format == "TIFF":
        raw = raw.view(np.uint32)  # which Pillow reads as signed, so that the largest number would be black
    values = np.nan_to_num(raw.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low = float(values.min())
    high = float(values.max())
    if image.mode.startswith("I") and low >= 0 and high <= 65535:
        values /= 257.0
    elif image.mode == "F" and low >= 0.0 and high <= 1.0:
        values *= 255.0
    elif low < 0 or high > 255:
        values = (values - low) * (255.0 / (high - low)) if high > low else np.zeros_like(values)
    if _tiff_tag(image, PHOTOMETRIC) == WHITE_IS_ZERO:  # which Pillow obeys in 8 bits and fewer alone
        values = 255.0 - values
    grey = PILImage.fromarray(np.rint(values).astype(np.uint8))
    if transparent is None:
        return grey
    alpha = np.where(raw == transparent, 0, 255).astype(np.uint8)
    return PILImage.merge("LA", (grey, PILImage.fromarray(alpha)))


def _tiff_tag(image: PILImage.Image, tag: int) -> int | None:
    """The number, or the first of the numbers, of a TIFF's tag; None where it lacks, and in other formats."""
    tags = getattr(image, "tag_v2", None)
    value = None if tags is None else tags.get(tag)
    if isinstance(value, tuple):
        value = value[0] if value else None
    return value if isinstance(value, int) else None


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, SyntaxError | struct.error | LookupError | EOFError):  # texts for programmers
        return "the file is damaged or cut off"
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
