"""Makes a folder of odd and bad images, with what is to be expected of each."""

import io
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, TiffImagePlugin

WIDTH = 60
HEIGHT = 40


@dataclass(frozen=True)
class Expected:
    """``size`` (width, height) of a decodable image as it is shown; otherwise the error code of ``decode``.

    ``header`` is the error code of ``header``, which may be None although the pixels are bad.
    """

    size: tuple[int, int] | None
    error: str | None = None
    header: str | None = None


FINE = Expected((WIDTH, HEIGHT))
BAD = Expected(None, "bad_image", "bad_image")
BAD_PIXELS = Expected(None, "bad_image")
TOO_LARGE = Expected(None, "image_too_large", "image_too_large")
MISSING = Expected(None, "missing_image", "missing_image")


@dataclass(frozen=True)
class BadImages:
    """``expected`` by file name; every name but those that do not exist is in ``folder``."""

    folder: Path
    expected: dict[str, Expected]

    @property
    def decodable(self) -> list[str]:
        return sorted(name for name, expected in self.expected.items() if expected.size)

    @property
    def broken(self) -> list[str]:
        """Those that decode refuses, many of them with a good header."""
        return sorted(name for name, expected in self.expected.items() if expected.error)


def picture(width: int = WIDTH, height: int = HEIGHT) -> NDArray[np.uint8]:
    """A smooth RGB picture [height, width, 3] in which no symmetry hides a turn."""
    y, x = np.mgrid[0:height, 0:width]
    red = 255 * x / max(width - 1, 1)
    green = 255 * y / max(height - 1, 1)
    blue = 127 + 120 * np.sin(x / 9 + y / 13)
    return np.stack([red, green, blue], axis=2).astype(np.uint8)


def grey() -> NDArray[np.uint8]:
    return picture()[..., 0]


def alpha() -> NDArray[np.uint8]:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    return ((x * 7 + y * 11) % 256).astype(np.uint8)


def grey16() -> NDArray[np.uint16]:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    return (x * 1100 + y * 13).astype(np.uint16)


def rgb16() -> NDArray[np.uint16]:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    return np.stack([x * 1100, y * 1600, x * y * 25], axis=2).astype(np.uint16)


def cmyk() -> NDArray[np.uint8]:
    return np.dstack([picture(), alpha() // 2])


def oriented(image: Image.Image, path: Path, orientation: int, **options: Any) -> None:
    """Save ``image`` as it is, with an EXIF orientation that says how it is to be turned."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(path, exif=exif, **options)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, rows: bytes, *extra: bytes, depth: int = 8, color: int = 2) -> bytes:
    """A PNG by hand; ``extra`` chunks stand before the pixels."""
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    body = png_chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(extra) + body + png_chunk(b"IEND", b"")


def png_rows(pixels: NDArray[Any]) -> bytes:
    data = pixels.astype(pixels.dtype.newbyteorder(">"))
    return b"".join(b"\0" + row.tobytes() for row in data)


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    """The bytes of a picture's file."""
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def jpeg_bytes() -> bytes:
    done, data = cv2.imencode(".jpg", picture()[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 95])
    assert done
    return data.tobytes()


def make(folder: Path) -> BadImages:
    """Make them all in ``folder``, which must be there."""
    expected: dict[str, Expected] = {}
    makers: list[tuple[Callable[[Path], dict[str, Expected]], Expected]] = [
        (_formats, FINE),
        (_modes, FINE),
        (_orientations, FINE),
        (_broken, BAD),
        (_too_large, TOO_LARGE),
        (_refused, BAD),
        (_not_files, MISSING),
    ]
    for maker, usual in makers:
        others = maker(folder)
        made = {path.name for path in folder.iterdir()} - expected.keys()
        expected |= dict.fromkeys(made, usual) | others
    return BadImages(folder, expected)


# Each of these makes files, and returns those that are unusual for their kind.


def _formats(folder: Path) -> dict[str, Expected]:
    image = Image.fromarray(picture())
    image.save(folder / "plain.png")
    text = png_chunk(b"zTXt", b"c\0\0" + zlib.compress(bytes(2 * 1024 * 1024), 9))
    (folder / "large_text.png").write_bytes(png(WIDTH, HEIGHT, png_rows(picture()), text))
    image.save(folder / "plain.bmp")
    image.save(folder / "plain.tif")
    image.save(folder / "deflated.tif", compression="tiff_adobe_deflate")
    image.save(folder / "plain.webp", lossless=True)
    (folder / "plain.jpg").write_bytes(jpeg_bytes())
    (folder / "jpeg_called.png").write_bytes(jpeg_bytes())
    image.save(folder / "UPPER.JPG", quality=95)
    image.save(folder / "two_pictures.jpg", format="MPO", save_all=True, append_images=[image.rotate(180)])
    frames = [image.quantize(64), image.rotate(180).quantize(64)]
    frames[0].save(folder / "animated.gif", save_all=True, append_images=frames[1:], duration=50)
    image.save(folder / "animated.webp", save_all=True, append_images=[image.rotate(180)], lossless=True, duration=50)
    Image.new("RGB", (1, 1), (10, 200, 30)).save(folder / "one_pixel.png")
    Image.new("RGB", (WIDTH, HEIGHT), (255, 255, 255)).save(folder / "white.png")
    return {"one_pixel.png": Expected((1, 1))}


def _modes(folder: Path) -> dict[str, Expected]:
    image = Image.fromarray(picture())
    Image.fromarray(np.dstack([picture(), alpha()])).save(folder / "rgba.png")
    Image.fromarray(np.dstack([picture(), alpha()])).save(folder / "rgba.webp", lossless=True, exact=True)
    Image.fromarray(np.dstack([grey(), alpha()])).save(folder / "grey_alpha.png")
    palette = image.quantize(16)
    palette.save(folder / "palette.png")
    palette.save(folder / "palette_transparent.png", transparency=bytes(range(0, 256, 16)))
    palette.save(folder / "transparent.gif", transparency=3)
    Image.fromarray(grey()).save(folder / "grey.png")
    Image.fromarray(grey()).save(folder / "grey_key.png", transparency=int(grey()[0, 30]))
    image.save(folder / "rgb_key.png", transparency=tuple(int(value) for value in picture()[5, 7]))
    Image.fromarray(grey() > 100).save(folder / "one_bit.png")
    inks = Image.merge("CMYK", [Image.fromarray(cmyk()[..., ink]) for ink in range(4)])
    inks.save(folder / "cmyk.jpg", quality=100, subsampling=0)
    inks.save(folder / "cmyk.tif")
    Image.fromarray(grey16()).save(folder / "grey16.png")
    Image.fromarray(grey16()).save(folder / "grey16.tif")
    key = png_chunk(b"tRNS", struct.pack(">H", int(grey16()[0, 30])))
    (folder / "grey16_key.png").write_bytes(png(WIDTH, HEIGHT, png_rows(grey16()), key, depth=16, color=0))
    assert cv2.imwrite(str(folder / "rgb16.png"), rgb16()[..., ::-1])
    key = png_chunk(b"tRNS", struct.pack(">HHH", *(int(value) * 257 for value in picture()[5, 7])))
    rows = png_rows(picture().astype(np.uint16) * 257)
    (folder / "rgb16_key.png").write_bytes(png(WIDTH, HEIGHT, rows, key, depth=16))
    Image.fromarray((grey() / 255.0).astype(np.float32)).save(folder / "float.tif")
    Image.fromarray(grey().astype(np.int32) * 1000 - 5000).save(folder / "int32.tif")
    return {}


def _orientations(folder: Path) -> dict[str, Expected]:
    image = Image.fromarray(picture())
    for orientation in range(1, 9):
        oriented(image, folder / f"turned_{orientation}.jpg", orientation, quality=95)
        oriented(image, folder / f"turned_{orientation}.png", orientation)
        oriented(image, folder / f"turned_{orientation}.webp", orientation, lossless=True)
        tags = TiffImagePlugin.ImageFileDirectory_v2()
        tags[0x0112] = orientation
        image.save(folder / f"turned_{orientation}.tif", tiffinfo=tags)
        image.save(folder / f"turned_{orientation}.deflated.tif", tiffinfo=tags, compression="tiff_adobe_deflate")
    oriented(image, folder / "turned_9.jpg", 9, quality=95)
    image.save(folder / "broken_exif.jpg", exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff\x12\x01", quality=95)
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><d tiff:Orientation="6"/></x:xmpmeta>'
    image.save(folder / "turned_in_xmp.jpg", xmp=xmp, quality=95)
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[700] = xmp
    image.save(folder / "turned_in_xmp.tif", tiffinfo=tags)
    return {path.name: Expected((HEIGHT, WIDTH)) for path in folder.glob("turned_[5-8].*")}


def _broken(folder: Path) -> dict[str, Expected]:
    whole = (folder / "plain.png").read_bytes()
    (folder / "truncated.png").write_bytes(whole[: len(whole) // 2])
    (folder / "truncated.jpg").write_bytes(jpeg_bytes()[: len(jpeg_bytes()) // 2])
    (folder / "truncated.tif").write_bytes((folder / "plain.tif").read_bytes()[:2000])
    (folder / "bad_checksum.png").write_bytes(whole[:45] + bytes([whole[45] ^ 0xFF]) + whole[46:])
    (folder / "corrupt.jpg").write_bytes(b"\xff\xd8\xff" + bytes(range(256)) * 8)
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "text.jpg").write_text("This is no picture.\n")
    (folder / "only_signature.png").write_bytes(whole[:8])
    (folder / "no_size.gif").write_bytes(b"GIF89a" + bytes(7))
    return dict.fromkeys(["truncated.png", "truncated.jpg", "truncated.tif", "bad_checksum.png"], BAD_PIXELS)


def _too_large(folder: Path) -> dict[str, Expected]:
    (folder / "huge.png").write_bytes(png(30_000, 30_000, b""))
    (folder / "just_too_large.png").write_bytes(png(10_000, 9_000, b""))
    return {}


def _refused(folder: Path) -> dict[str, Expected]:
    image = Image.fromarray(picture())
    image.save(folder / "eps.jpg", format="EPS")
    (folder / "vector.png").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    return {}


def _not_files(folder: Path) -> dict[str, Expected]:
    os.mkfifo(folder / "fifo.png")
    (folder / "folder.png").mkdir()
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "dangling.png").symlink_to("nowhere.png")
    (folder / "link.png").symlink_to("plain.png")
    absent = dict.fromkeys(["missing.png", "nul\0.png", "x" * 300 + ".png"], MISSING)
    return {"link.png": FINE, "fifo.png": BAD, "folder.png": BAD, **absent}
