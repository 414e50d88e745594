"""Images as their module promises them: pixels against independent references, and nothing but ImageError."""

import io
import os
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image as PILImage

from agents import images
from agents.errors import ImageError, printable
from agents.images import Image
from agents.stimuli import parse_row
from tests.helpers import bad_images as corpus
from tests.helpers.bad_images import BadImages, encoded

Pixels = NDArray[Any]
PICTURE = corpus.picture()
GREY = corpus.grey()
ALPHA = corpus.alpha()
GREY16 = corpus.grey16()


def as_rgb(grey: Pixels) -> Pixels:
    return np.repeat(grey[..., None], 3, axis=2)


def over_white(color: Pixels, alpha: Pixels) -> Pixels:
    """Porter-Duff "over" on a white ground, in float."""
    share = alpha[..., None] / 255.0
    return color * share + 255.0 * (1.0 - share)


def turned(pixels: Pixels, orientation: int) -> Pixels:
    """EXIF 2.3, table of the Orientation tag: which row and column of the scene the first stored ones are."""
    turns: dict[int, Callable[[Pixels], Pixels]] = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
        8: lambda a: np.rot90(a, 1),
    }
    return turns[orientation](pixels)


def palette_of(path: Path) -> tuple[Pixels, Pixels]:
    with PILImage.open(path) as image:
        return np.array(image.getpalette(), dtype=np.uint8).reshape(-1, 3), np.array(image)


def colors_of(path: Path) -> Pixels:
    colors, indices = palette_of(path)
    return np.asarray(colors[indices])


def transparent_palette(path: Path) -> Pixels:
    colors, indices = palette_of(path)
    return over_white(colors[indices], indices * 16)


def transparent_gif(path: Path) -> Pixels:
    colors, indices = palette_of(path)
    return np.where((indices == 3)[..., None], 255, colors[indices])


def by_opencv(path: Path) -> Pixels:
    picture = cv2.imread(str(path))
    assert picture is not None
    return picture[..., ::-1]


def cmyk(path: Path) -> Pixels:
    inks = corpus.cmyk().astype(float)
    return np.asarray((255 - inks[..., :3]) * (255 - inks[..., 3:]) / 255)


def stretched(path: Path) -> Pixels:
    grey = GREY.astype(float)
    return as_rgb((grey - grey.min()) / (grey.max() - grey.min()) * 255)


def constant(pixels: Pixels) -> Callable[[Path], Pixels]:
    return lambda path: pixels


KEYED = np.where((PICTURE[5, 7] == PICTURE).all(axis=2)[..., None], 255, PICTURE)
SCALED = np.rint(as_rgb(GREY16) / 257.0)
KEYED_16 = as_rgb(np.where(GREY16[0, 30] == GREY16, 255, np.rint(GREY16 / 257.0)))
LOSSLESS = [
    "plain.png",
    "plain.bmp",
    "plain.tif",
    "deflated.tif",
    "plain.webp",
    "animated.webp",
    "link.png",
    "large_text.png",
]
JPEG = ["plain.jpg", "jpeg_called.png", "UPPER.JPG", "two_pictures.jpg", "broken_exif.jpg"]
# The reference for each file, and by how much a pixel and the mean may differ.
REFERENCES: dict[str, tuple[Callable[[Path], Pixels], float, float]] = {
    **dict.fromkeys(LOSSLESS, (constant(PICTURE), 0, 0)),
    **dict.fromkeys(JPEG, (by_opencv, 4, 0.5)),
    **{
        f"turned_{number}.{suffix}": (constant(turned(PICTURE, number)), 0, 0)
        for number in range(1, 9)
        for suffix in ("png", "webp", "tif", "deflated.tif")
    },
    **{f"turned_{number}.jpg": (by_opencv, 4, 0.5) for number in range(1, 9)},
    **dict.fromkeys(("turned_9.jpg", "turned_in_xmp.jpg", "turned_in_xmp.tif"), (constant(PICTURE), 40, 4)),
    "animated.gif": (colors_of, 0, 0),
    "palette.png": (colors_of, 0, 0),
    "rgba.png": (constant(over_white(PICTURE, ALPHA)), 1, 0.6),
    "rgba.webp": (constant(over_white(PICTURE, ALPHA)), 1, 0.6),
    "grey_alpha.png": (constant(over_white(as_rgb(GREY), ALPHA)), 1, 0.6),
    "palette_transparent.png": (transparent_palette, 1, 0.6),
    "transparent.gif": (transparent_gif, 0, 0),
    "grey_key.png": (constant(as_rgb(np.where(GREY[0, 30] == GREY, 255, GREY))), 0, 0),
    "rgb_key.png": (constant(KEYED), 0, 0),
    "rgb16_key.png": (constant(KEYED), 0, 0),
    "grey16_key.png": (constant(KEYED_16), 0, 0),
    "grey16.png": (constant(SCALED), 0, 0),
    "grey16.tif": (constant(SCALED), 0, 0),
    "rgb16.png": (constant(corpus.rgb16() / 257.0), 1, 0.6),
    "float.tif": (constant(as_rgb(GREY)), 0, 0),
    "int32.tif": (stretched, 1, 0.5),
    "cmyk.tif": (cmyk, 1, 0.6),
    "cmyk.jpg": (cmyk, 6, 1.5),
    "one_bit.png": (constant(as_rgb(np.where(GREY > 100, 255, 0))), 0, 0),
}


def assert_near(pixels: Pixels, reference: Pixels, most: float, mean: float) -> None:
    assert pixels.shape == reference.shape
    difference = np.abs(pixels.astype(float) - reference)
    assert difference.max() <= most
    assert difference.mean() <= mean


@pytest.mark.parametrize("name", REFERENCES)
def test_pixels_are_those_of_an_independent_reference(bad_images: BadImages, name: str) -> None:
    reference, most, mean = REFERENCES[name]
    path = bad_images.folder / name
    assert_near(Image(name, root=bad_images.folder).decode(), reference(path), most, mean)


def test_files_and_bytes_have_the_shape_of_their_header(bad_images: BadImages) -> None:
    for name in bad_images.decodable:
        from_file = Image(name, root=bad_images.folder)
        from_bytes = Image(name, data=(bad_images.folder / name).read_bytes())
        header = from_file.header()
        pixels = from_file.decode()
        assert from_bytes.header() == header
        assert np.array_equal(from_bytes.decode(), pixels)
        assert from_bytes.sha256 == from_file.sha256
        assert (header.width, header.height) == bad_images.expected[name].size, name
        assert (pixels.shape, pixels.dtype) == ((header.height, header.width, 3), np.uint8), name
        assert pixels.flags.c_contiguous
        assert pixels.flags.writeable
        assert header.format in images.FORMATS


def test_every_other_file_is_an_image_error_with_its_name(bad_images: BadImages) -> None:
    for name in bad_images.broken:
        expected = bad_images.expected[name]
        image = Image(name, root=bad_images.folder)
        for read, code in ((image.decode, expected.error), (image.header, expected.header)):
            if code is None:
                read()
                continue
            with pytest.raises(ImageError) as failure:
                read()
            assert failure.value.code == code, name
            assert str(failure.value).startswith(f"{printable(name)}: ")
            assert "\n" not in str(failure.value)


def bmp32(pixels: NDArray[np.uint8]) -> bytes:
    """A BMP of version 4, with masks for red, green, blue and alpha, of ``pixels`` [height, width, 4]."""
    height, width, _ = pixels.shape
    masks = struct.pack("<4I", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 108, width, -height, 1, 32, 3, pixels.size, 0, 0, 0, 0) + masks + bytes(52)
    size = 14 + len(header) + pixels.size
    return b"BM" + struct.pack("<IHHI", size, 0, 0, 14 + len(header)) + header + pixels[..., [2, 1, 0, 3]].tobytes()


def test_an_alpha_that_is_0_everywhere_is_none_in_a_bmp_alone() -> None:
    """As browsers and Windows have it: most programs that write BMP leave the fourth byte at 0."""
    empty, half = (np.dstack([PICTURE, np.full(PICTURE.shape[:2], alpha, np.uint8)]) for alpha in (0, 128))
    assert np.array_equal(Image("x.bmp", data=bmp32(empty)).decode(), PICTURE)
    assert_near(Image("x.bmp", data=bmp32(half)).decode(), over_white(PICTURE, half[..., 3]), 1, 0.6)
    assert Image("x.png", data=encoded(PILImage.fromarray(empty))).decode().min() == 255


@pytest.mark.parametrize("values", [[[np.nan, 1.0]], [[np.inf, -np.inf]], [[0.0, 0.0]], [[1e30, -1e30]]])
def test_float_images_with_any_values(tmp_path: Path, values: list[list[float]]) -> None:
    PILImage.fromarray(np.array(values, dtype=np.float32)).save(tmp_path / "f.tif")
    assert Image("f.tif", root=tmp_path).decode().shape == (1, 2, 3)


def test_fifos_and_devices_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.png")
    for name in ("x.png", "/dev/zero"):
        with pytest.raises(ImageError, match="not a regular file"):
            Image(name, root=tmp_path).read()


def test_a_file_over_the_cap_of_bytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse.png").open("wb") as file:
        file.truncate(images.MAX_BYTES + 1)
    image = Image("sparse.png", root=tmp_path)
    for read in (image.header, image.read):
        with pytest.raises(ImageError, match="larger than 512 MiB") as failure:
            read()
        assert failure.value.code == "image_too_large"


def row(image: str) -> bytes:
    return b'{"id":"a","task":"color_estimation","image":"%b"}' % image.encode()


def test_a_name_is_relative_to_the_root_or_one_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "set" / "a").mkdir(parents=True)
    path = tmp_path / "x.png"
    path.write_bytes(corpus.png(1, 1, b"\0abc"))
    for name in ("../x.png", "a/../../x.png", str(path)):
        [image] = parse_row(row(name), root=tmp_path / "set").images()
        assert image.header().width == 1
    for files, message in (
        ({}, "not among the images that came"),
        ({str(path): b"nothing"}, "not an image in a known format"),
        ({str(path): b"\x89PNG\r\n\x1a\n, and no more"}, "a damaged PNG"),
    ):
        [image] = parse_row(row(str(path)), files=files).images()
        with pytest.raises(ImageError, match=message):
            image.decode()
    with pytest.raises(ValueError, match="control characters"):
        parse_row(row(r"a\u001b[2Jb.png"), root=tmp_path)
    with pytest.raises(ImageError, match="web addresses are not fetched"):
        Image("https://example.org/x.png", root=tmp_path).read()


def test_threads_decode_as_a_single_thread_does(bad_images: BadImages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "LARGE", corpus.WIDTH * corpus.HEIGHT - 1)  # so that they wait for each other

    def decode(name: str) -> bytes:
        return Image(name, root=bad_images.folder).decode().tobytes()

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(decode, bad_images.decodable))
    assert together == list(map(decode, bad_images.decodable))


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_raise_nothing_but_image_errors(bad_images: BadImages, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(bad_images.decodable))
    content = bytearray((bad_images.folder / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(content) - 1, data.draw(st.sampled_from([40, 200, 100_000])))))
        content[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(len(content) // 2, len(content)))
    image = Image(name, data=bytes(content[:cut]))
    with suppress(ImageError):
        header = image.header()
        assert header.width * header.height <= images.MAX_PIXELS
        if header.width * header.height < 4_000_000:
            assert image.decode().shape == (header.height, header.width, 3)


# what is sent to a server


SCENE = PILImage.fromarray(PICTURE)
TURN = PILImage.Exif()
TURN[0x0112] = 6


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (encoded(SCENE), "original"),
        (encoded(SCENE, "JPEG"), "original"),
        (encoded(SCENE, "JPEG", exif=TURN.tobytes()), "png"),
        (encoded(PILImage.fromarray(np.dstack([PICTURE, ALPHA]))), "png"),
        (encoded(PILImage.fromarray(GREY16)), "png"),
        (encoded(SCENE, "BMP"), "png"),
        (encoded(SCENE.quantize(16), "GIF", save_all=True, append_images=[PILImage.new("P", SCENE.size)]), "png"),
    ],
)
def test_any_plain_decoder_sees_in_the_sent_bytes_what_everything_here_sees(data: bytes, expected: str) -> None:
    image = Image("x", data=data)
    sent, kind, frame = image.sendable(("PNG", "JPEG", "WEBP", "GIF"))
    assert kind == expected
    assert (sent == data) == (kind == "original")
    seen = np.asarray(PILImage.open(io.BytesIO(sent)).convert("RGB"))
    assert np.array_equal(seen, image.decode())
    assert frame == (seen.shape[1], seen.shape[0])


def tiff(values: NDArray[Any], photometric: int) -> bytes:
    """A grey TIFF written by hand, little-endian, without compression; ``photometric`` 0: zero is white."""
    height, width = values.shape
    data = values.astype(values.dtype.newbyteorder("<")).tobytes()
    sample_format = {"u": 1, "i": 2, "f": 3}[values.dtype.kind]
    tags = [
        (256, 3, width),
        (257, 3, height),
        (258, 3, 8 * values.dtype.itemsize),
        (259, 3, 1),
        (262, 3, photometric),
        (273, 4, 8),
        (277, 3, 1),
        (278, 3, height),
        (279, 4, len(data)),
        (339, 3, sample_format),
    ]
    directory = struct.pack("<H", len(tags))
    for tag, kind, value in tags:
        directory += struct.pack("<HHII", tag, kind, 1, value)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory + b"\0\0\0\0"


def decoded(values: NDArray[Any], photometric: int) -> Pixels:
    return Image("x.tif", data=tiff(values, photometric)).decode().astype(int)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_a_tiff_whose_zero_is_white_is_no_negative(kind: type) -> None:
    """In every depth the picture is the negative of the one whose zero is black, as Pillow has it in 8 bits."""
    steps = np.linspace(0, 1, 12).reshape(3, 4)
    largest = 1 if kind is np.float32 else np.iinfo(kind).max
    values: NDArray[Any] = (steps * largest).astype(kind)
    assert np.array_equal(decoded(values, 0), 255 - decoded(values, 1))
    assert np.abs(decoded(values, 1)[..., 0] - 255 * steps).max() <= 1


@pytest.mark.parametrize("kind", [np.uint32, np.int32])
def test_the_largest_number_of_32_bits_is_white(kind: type) -> None:
    """Pillow reads unsigned numbers as signed ones, so that the upper half of them would be dark."""
    steps = np.linspace(0, 1, 12).reshape(3, 4)
    values: NDArray[Any] = (steps * np.iinfo(kind).max).astype(kind)
    assert np.abs(decoded(values, 1)[..., 0] - 255 * steps).max() <= 1
    with pytest.raises(ImageError, match="a damaged TIFF"):  # Pillow knows no such file, and so it is refused
        decoded(values, 0)
