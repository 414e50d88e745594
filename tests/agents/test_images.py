"""Images as their module promises them: pixels against independent references, and nothing but ImageError."""

from __future__ import annotations

import io
import os
import struct
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import bad_images as corpus
import cv2
import numpy as np
import pytest
from bad_images import BadImages
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageOps

from agents import image_limits, images
from agents.errors import ImageError, printable
from agents.images import Image
from agents.stimuli import parse_row


def over_white(color: NDArray[Any], alpha: NDArray[Any]) -> NDArray[Any]:
    """Porter-Duff "over" on a white ground, in float."""
    share = alpha[..., None] / 255.0
    return color * share + 255.0 * (1.0 - share)


def as_rgb(grey: NDArray[Any]) -> NDArray[Any]:
    return np.repeat(grey[..., None], 3, axis=2)


def turned(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """EXIF 2.3, table of the Orientation tag: which row and column of the scene the first ones stored are."""
    return {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
        8: lambda a: np.rot90(a, 1),
    }[orientation](pixels)


def palette_of(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    with PILImage.open(path) as image:
        assert image.mode == "P"
        colors = np.array(image.getpalette(), dtype=np.uint8).reshape(-1, 3)
        return colors, np.array(image)


def assert_near(pixels: NDArray[Any], reference: NDArray[Any], most: float, mean: float) -> None:
    assert pixels.shape == reference.shape
    difference = np.abs(pixels.astype(float) - reference)
    assert difference.max() <= most
    assert difference.mean() <= mean


def test_everything_decodable_has_the_shape_its_header_says(bad_images: BadImages) -> None:
    for name in bad_images.decodable:
        image = Image(name, root=bad_images.folder)
        header = image.header()
        pixels = image.decode()
        assert (header.width, header.height) == bad_images.expected[name].size, name
        assert pixels.shape == (header.height, header.width, 3), name
        assert pixels.dtype == np.uint8
        assert pixels.flags.c_contiguous
        assert pixels.flags.writeable
        assert header.format in images.FORMATS


def test_everything_else_is_an_image_error_with_its_name(bad_images: BadImages) -> None:
    for name in bad_images.broken:
        expected = bad_images.expected[name]
        image = Image(name, root=bad_images.folder)
        with pytest.raises(ImageError) as caught:
            image.decode()
        assert caught.value.code == expected.error, name
        assert str(caught.value).startswith(f"{printable(name)}: ")
        assert "\n" not in str(caught.value)
        if expected.header is None:
            image.header()
            continue
        with pytest.raises(ImageError) as caught:
            image.header()
        assert caught.value.code == expected.header, name


def test_bytes_behave_as_the_file_does(bad_images: BadImages) -> None:
    for name in bad_images.decodable:
        path = bad_images.folder / name
        given_bytes = Image(name, data=path.read_bytes())
        from_file = Image(name, root=bad_images.folder)
        assert given_bytes.header() == from_file.header()
        np.testing.assert_array_equal(given_bytes.decode(), from_file.decode())
        assert given_bytes.sha256 == from_file.sha256
        assert given_bytes.path is None
        assert from_file.path == path


LOSSLESS = "plain.png plain.bmp plain.tif deflated.tif plain.webp animated.webp link.png"
PASSED_OVER = "bomb_profile.png bomb_text.png bomb_itxt.png ends_in_text.png"  # texts and profiles of any length


@pytest.mark.parametrize("name", f"{LOSSLESS} {PASSED_OVER}".split())
def test_lossless_formats_give_the_very_pixels(bad_images: BadImages, name: str) -> None:
    np.testing.assert_array_equal(Image(name, root=bad_images.folder).decode(), corpus.picture())


@pytest.mark.parametrize("name", ["plain.jpg", "jpeg_called.png", "UPPER.JPG", "two_pictures.jpg", "broken_exif.jpg"])
def test_jpeg_is_what_opencv_reads(bad_images: BadImages, name: str) -> None:
    reference = cv2.imread(str(bad_images.folder / name))[..., ::-1]
    assert_near(Image(name, root=bad_images.folder).decode(), reference, 4, 0.5)


def test_the_first_frame_of_an_animation(bad_images: BadImages) -> None:
    colors, indices = palette_of(bad_images.folder / "animated.gif")
    np.testing.assert_array_equal(Image("animated.gif", root=bad_images.folder).decode(), colors[indices])


def test_transparency_is_composited_on_white(bad_images: BadImages) -> None:
    def decoded(name: str) -> NDArray[np.uint8]:
        return Image(name, root=bad_images.folder).decode()

    over = over_white(corpus.picture(), corpus.alpha())
    assert_near(decoded("rgba.png"), over, 1, 0.6)
    assert_near(decoded("rgba.webp"), over, 1, 0.6)
    assert_near(decoded("grey_alpha.png"), over_white(as_rgb(corpus.grey()), corpus.alpha()), 1, 0.6)
    colors, indices = palette_of(bad_images.folder / "palette_transparent.png")
    assert_near(decoded("palette_transparent.png"), over_white(colors[indices], indices * 16), 1, 0.6)
    colors, indices = palette_of(bad_images.folder / "transparent.gif")
    white = np.where((indices == 3)[..., None], 255, colors[indices])
    np.testing.assert_array_equal(decoded("transparent.gif"), white)


def bmp32(pixels: NDArray[np.uint8]) -> bytes:
    """A BMP of version 4, with masks for red, green, blue and alpha, of ``pixels`` [height, width, 4]."""
    height, width, _ = pixels.shape
    masks = struct.pack("<4I", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 108, width, -height, 1, 32, 3, pixels.size, 0, 0, 0, 0) + masks + bytes(52)
    size = 14 + len(header) + pixels.size
    return b"BM" + struct.pack("<IHHI", size, 0, 0, 14 + len(header)) + header + pixels[..., [2, 1, 0, 3]].tobytes()


def test_an_alpha_that_is_0_everywhere_is_none_in_a_bmp_alone() -> None:
    """As browsers and Windows have it: most programs that write BMP leave the fourth byte at 0."""
    rgb = corpus.picture()
    empty, half = (np.dstack([rgb, np.full(rgb.shape[:2], alpha, np.uint8)]) for alpha in (0, 128))
    np.testing.assert_array_equal(Image("x.bmp", data=bmp32(empty)).decode(), rgb)
    assert_near(Image("x.bmp", data=bmp32(half)).decode(), over_white(rgb, half[..., 3]), 1, 0.6)
    file = io.BytesIO()
    PILImage.fromarray(empty).save(file, "PNG")
    assert Image("x.png", data=file.getvalue()).decode().min() == 255


def test_a_large_profile_hinders_no_format() -> None:
    profile = bytes(range(256)) * 8192  # 2 MiB, in a JPEG in many segments
    for form, most in (("PNG", 0), ("TIFF", 0), ("JPEG", 40), ("WEBP", 90)):
        file = io.BytesIO()
        PILImage.fromarray(corpus.picture()).save(file, form, icc_profile=profile)
        assert_near(Image("x", data=file.getvalue()).decode(), corpus.picture().astype(float), most, 8)


@pytest.mark.parametrize(
    "data",
    [b"BM" + bytes(12), b"II*\0\1", b"\xff\xd8\xff\xe0" + bytes(9), b"RIFF\x20\0\0\0WEBP" + bytes(30), b"GIF89a\1"],
)
def test_a_damaged_picture_is_called_so(data: bytes) -> None:
    with pytest.raises(ImageError, match=r"^x: a damaged (BMP|TIFF|JPEG|WEBP|GIF)$"):
        Image("x", data=data).header()


def test_a_wrong_checksum_is_an_error() -> None:
    text = corpus.png_chunk(b"tEXt", b"a\0b")
    data = corpus.png(3, 2, corpus.png_rows(corpus.picture(3, 2)), text)
    for damaged in (data.replace(text, text[:-1] + b"\0"), data[: data.index(b"tEXt") + 5], data[:8]):
        image = Image("x.png", data=damaged)
        for read in (image.header, image.decode):
            with pytest.raises(ImageError, match=r"^x\.png: "):
                read()


def test_a_transparent_key_colour_becomes_white(bad_images: BadImages) -> None:
    grey, picture, grey16 = corpus.grey(), corpus.picture(), corpus.grey16()
    here = as_rgb(np.where(grey == grey[0, 30], 255, grey))
    np.testing.assert_array_equal(Image("grey_key.png", root=bad_images.folder).decode(), here)
    key = (picture == picture[5, 7]).all(axis=2)[..., None]
    for name in ("rgb_key.png", "rgb16_key.png"):
        np.testing.assert_array_equal(Image(name, root=bad_images.folder).decode(), np.where(key, 255, picture))
    here = as_rgb(np.where(grey16 == grey16[0, 30], 255, np.rint(grey16 / 257.0)))
    np.testing.assert_array_equal(Image("grey16_key.png", root=bad_images.folder).decode(), here)


def test_sixteen_bits_and_floats_are_scaled(bad_images: BadImages) -> None:
    scaled = np.rint(as_rgb(corpus.grey16()) / 257.0)
    for name in ("grey16.png", "grey16.tif"):
        np.testing.assert_array_equal(Image(name, root=bad_images.folder).decode(), scaled)
    assert_near(Image("rgb16.png", root=bad_images.folder).decode(), corpus.rgb16() / 257.0, 1, 0.6)
    np.testing.assert_array_equal(Image("float.tif", root=bad_images.folder).decode(), as_rgb(corpus.grey()))
    grey = corpus.grey().astype(float)
    stretched = (grey - grey.min()) / (grey.max() - grey.min()) * 255
    assert_near(Image("int32.tif", root=bad_images.folder).decode(), as_rgb(stretched), 1, 0.5)


@pytest.mark.parametrize("values", [[[np.nan, 1.0]], [[np.inf, -np.inf]], [[0.0, 0.0]], [[-3.0, 5.0]], [[1e30, -1e30]]])
def test_float_images_with_any_values(tmp_path: Path, values: list[list[float]]) -> None:
    PILImage.fromarray(np.array(values, dtype=np.float32)).save(tmp_path / "f.tif")
    assert Image("f.tif", root=tmp_path).decode().shape == (1, 2, 3)


def test_cmyk_palette_and_one_bit(bad_images: BadImages) -> None:
    inks = corpus.cmyk().astype(float)
    reference = (255 - inks[..., :3]) * (255 - inks[..., 3:]) / 255
    assert_near(Image("cmyk.tif", root=bad_images.folder).decode(), reference, 1, 0.6)
    assert_near(Image("cmyk.jpg", root=bad_images.folder).decode(), reference, 6, 1.5)
    colors, indices = palette_of(bad_images.folder / "palette.png")
    np.testing.assert_array_equal(Image("palette.png", root=bad_images.folder).decode(), colors[indices])
    np.testing.assert_array_equal(
        Image("one_bit.png", root=bad_images.folder).decode(), as_rgb(np.where(corpus.grey() > 100, 255, 0))
    )


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(bad_images: BadImages, orientation: int) -> None:
    reference = turned(corpus.picture(), orientation)
    for suffix in ("png", "webp", "tif", "deflated.tif"):
        name = f"turned_{orientation}.{suffix}"
        np.testing.assert_array_equal(Image(name, root=bad_images.folder).decode(), reference, err_msg=name)
    pixels = Image(f"turned_{orientation}.jpg", root=bad_images.folder).decode()
    path = bad_images.folder / f"turned_{orientation}.jpg"
    assert_near(pixels, cv2.imread(str(path))[..., ::-1], 4, 0.5)
    with PILImage.open(path) as image:
        np.testing.assert_array_equal(pixels, np.array(ImageOps.exif_transpose(image)))


@pytest.mark.parametrize("name", ["turned_9.jpg", "broken_exif.jpg", "turned_in_xmp.jpg", "turned_in_xmp.tif"])
def test_what_is_no_exif_orientation_turns_nothing(bad_images: BadImages, name: str) -> None:
    assert_near(Image(name, root=bad_images.folder).decode(), corpus.picture().astype(float), 40, 4)


def test_exif_behind_the_pixels_of_a_png_counts_neither_for_header_nor_for_pixels() -> None:
    exif = PILImage.Exif()
    exif[0x0112] = 6
    data = corpus.png(3, 2, corpus.png_rows(corpus.picture(3, 2)))
    late = data[:-12] + corpus.png_chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0")) + data[-12:]
    image = Image("x", data=late)
    assert (image.header().width, image.header().height) == (3, 2)
    assert image.decode().shape == (2, 3, 3)


def test_a_header_decodes_nothing(bad_images: BadImages, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import ImageFile

    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("pixels were decoded"))
    for name in bad_images.decodable:
        Image(name, root=bad_images.folder).header()


def test_fifos_and_devices_are_neither_waited_for_nor_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.png")
    with pytest.raises(ImageError, match="not a regular file"):
        Image("x.png", root=tmp_path).read()
    # Had it been opened for reading, a writer could open it now.
    with pytest.raises(OSError, match="No such device"):
        os.open(tmp_path / "x.png", os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(ImageError, match="not a regular file"):
        Image("/dev/zero").read()


def test_a_file_over_the_cap_of_bytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse.png").open("wb") as file:
        file.truncate(image_limits.MAX_BYTES + 1)
    for look in (Image("sparse.png", root=tmp_path).header, Image("sparse.png", root=tmp_path).read):
        with pytest.raises(ImageError, match="larger than 512 MiB") as caught:
            look()
        assert caught.value.code == "image_too_large"


def progressive(scans: int, side: int) -> bytes:
    """A grey JPEG whose last scan is there that many times more."""
    file = io.BytesIO()
    PILImage.new("L", (side, side), 128).save(file, "JPEG", progressive=True)
    body, end = file.getvalue()[:-2], file.getvalue()[-2:]
    return body + body[body.rindex(b"\xff\xda") :] * scans + end


def test_seconds_of_decoding_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_limits, "MAX_SECONDS", 0.05)
    with pytest.raises(ImageError, match=r"not within 0\.05 s"):
        Image("x", data=progressive(3000, 1000)).decode()


def test_sides_are_limited() -> None:
    """A decoder's tables of rows would take more than the pixels."""
    for size, good in (((1, 1_000_000), True), ((1, 1_000_001), False), ((1_000_001, 1), False)):
        data = corpus.png(*size, b"", depth=1, color=0)
        if good:
            assert Image("x.png", data=data).header().height == 1_000_000
            continue
        with pytest.raises(ImageError, match="a side has more than 1,000,000 pixels") as raised:
            Image("x.png", data=data).header()
        assert raised.value.code == "image_too_large"


@pytest.mark.parametrize(("mode", "side", "good"), [("F", 10, True), ("F", 11, False), ("I;16", 20, True)])
def test_pictures_of_32_bits_have_a_quarter_of_the_pixels(
    mode: str, side: int, good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_limits, "MAX_PIXELS", 400)
    file = io.BytesIO()
    PILImage.new(mode, (side, side)).save(file, "TIFF")
    image = Image("x.tif", data=file.getvalue())
    if good:
        assert image.decode().shape == (side, side, 3)
        return
    for look in (image.header, image.decode):
        with pytest.raises(ImageError, match="more than 100 pixels") as raised:
            look()
        assert raised.value.code == "image_too_large"


def test_want_of_memory_is_no_fault_of_the_picture(bad_images: BadImages, monkeypatch: pytest.MonkeyPatch) -> None:
    def starve(*arguments: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(images, "_to_rgb", starve)
    with pytest.raises(MemoryError):
        Image("plain.png", root=bad_images.folder).decode()


def test_pictures_are_decoded_side_by_side_only_as_far_as_memory_goes(
    bad_images: BadImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = image_limits.DECODING * corpus.WIDTH * corpus.HEIGHT
    monkeypatch.setattr(images, "_decoding", image_limits.Room(2 * size + 1))
    to_rgb, at_once, most = images._to_rgb, 0, 0

    def counted(image: PILImage.Image) -> PILImage.Image:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.005)
        at_once -= 1
        return to_rgb(image)

    monkeypatch.setattr(images, "_to_rgb", counted)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: Image("plain.png", root=bad_images.folder).decode(), range(40)))
    assert all(np.array_equal(pixels, found[0]) for pixels in found)
    assert most == 2


def test_a_relative_name_is_relative_to_the_root(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "x.png").write_bytes(corpus.png(1, 1, b"\0abc"))
    for name in ("../x.png", "a/../../x.png", str(tmp_path / "x.png")):
        (tmp_path / "set" / "a").mkdir(exist_ok=True)
        row = b'{"id":"a","task":"color_estimation","image":"%b"}' % name.encode()
        [image] = parse_row(row, root=tmp_path / "set").images()
        assert image.header().width == 1


def test_without_a_root_given_images_are_the_only_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(corpus.png(1, 1, b"\0abc"))
    row = b'{"id":"a","task":"color_estimation","image":"%b"}' % str(path).encode()
    [image] = parse_row(row, files={}).images()
    with pytest.raises(ImageError, match="not among the images that were given"):
        image.decode()
    [image] = parse_row(row, files={str(path): b"nothing"}).images()
    with pytest.raises(ImageError, match="not an image"):
        image.decode()
    [image] = parse_row(row).images()
    assert image.decode().tolist() == [[[97, 98, 99]]]


def test_control_characters_and_web_addresses(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="control characters"):
        parse_row(b'{"id":"a","task":"color_estimation","image":"a\\u001b[2Jb.png"}', root=tmp_path)
    with pytest.raises(ImageError, match="web addresses are not fetched"):
        Image("https://example.org/x.png", root=tmp_path).read()


def test_pillow_warns_nobody(bad_images: BadImages) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in ("broken_exif.jpg", "plain.tif"):
            Image(name, root=bad_images.folder).decode()
        warnings.warn("ours is still heard", stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["ours is still heard"]


def test_threads_see_what_one_thread_sees(bad_images: BadImages) -> None:
    names = bad_images.decodable * 3

    def look(name: str) -> bytes:
        return Image(name, root=bad_images.folder).decode().tobytes()

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(look, names))
    assert together == [look(name) for name in names]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_raise_nothing_but_image_errors(bad_images: BadImages, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(bad_images.decodable))
    whole = bytearray((bad_images.folder / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(whole) - 1, data.draw(st.sampled_from([40, 200, 100_000])))))
        whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(len(whole) // 2, len(whole)))
    image = Image(name, data=bytes(whole[:cut]))
    with suppress(ImageError):
        header = image.header()
        assert header.width * header.height <= image_limits.MAX_PIXELS
        if header.width * header.height < 4_000_000:
            assert image.decode().shape == (header.height, header.width, 3)


@pytest.mark.parametrize("side", [8, 40, 300])
def test_a_png_that_is_cut_off_shows_no_other_pixels(side: int) -> None:
    pixels = np.random.default_rng(side).integers(0, 256, (side, side, 3), np.uint8)
    pixels[side // 2 :] = 255  # compressed to a few bytes
    file = io.BytesIO()
    PILImage.fromarray(pixels).save(file, "PNG")
    whole = file.getvalue()
    cuts = {*range(len(whole) - 60, len(whole)), len(whole) // 2}
    for cut in cuts:
        with suppress(ImageError):
            assert np.array_equal(Image("x", data=whole[:cut]).decode(), pixels)
    with pytest.raises(ImageError, match="truncated"):
        Image("x", data=whole[: len(whole) // 2]).decode()


@settings(max_examples=200)
@given(
    start=st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"II*\0", b"MM\0+"]),
    rest=st.binary(max_size=200),
)
def test_any_bytes_raise_nothing_but_image_errors(start: bytes, rest: bytes) -> None:
    image = Image("x", data=start + rest)
    for look in (image.header, image.decode):
        with suppress(ImageError):
            look()
