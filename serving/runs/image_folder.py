"""The image files of a folder, by name, in an order that does not depend on the file system."""

from __future__ import annotations

import os
from collections.abc import Iterator

from agents.errors import InputError

# Formats that no agent can decode are among them, so that such a picture is reported and not silently left out.
SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff"),
        *(".jp2", ".jxl", ".heic", ".heif", ".avif", ".svg", ".eps", ".ico", ".psd", ".ppm", ".pgm", ".tga", ".exr"),
    )
)


def image_names(folder: bytes) -> Iterator[bytes]:
    """Names relative to ``folder``, at any depth, with "/" between the parts, sorted by their bytes.

    Whatever has an image's suffix in its name counts, regular file or not; names that begin with a dot do not. Links
    to folders are followed, but never in a circle. Of each level one folder's names are held, as one piece of bytes.
    Raises InputError for a folder that cannot be read.
    """
    levels: list[tuple[bytes, Iterator[bytes], tuple[int, int]]] = []

    def enter(prefix: bytes) -> None:
        here = os.path.join(folder, prefix)
        try:
            about = os.stat(here)
            mark = (about.st_dev, about.st_ino)
            if all(mark != above for _, _, above in levels):
                levels.append((prefix, _packed(_names(here)), mark))
        except OSError as error:
            shown = os.fsencode(here).decode("utf-8", "backslashreplace")
            raise InputError(f"{shown}: cannot be read: {error.strerror or error}") from None

    enter(b"")
    while levels:
        prefix, names, _ = levels[-1]
        name = next(names, None)
        if name is None:
            levels.pop()
        elif name.endswith(b"/"):
            enter(prefix + name)
        else:
            yield prefix + name


def _names(folder: bytes) -> list[bytes]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(b"."):
                continue
            if _is_folder(entry):
                found.append(entry.name + b"/")  # it sorts as the names in it will
            elif os.path.splitext(entry.name)[1].lower().decode("ascii", "replace") in SUFFIXES:
                found.append(entry.name)
    found.sort()
    return found


def _is_folder(entry: os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circle of links
        return False


def _packed(names: list[bytes]) -> Iterator[bytes]:
    together = b"\0".join(names)  # a million names as one object, not as a million
    names.clear()
    start = 0
    while start < len(together):
        end = together.find(b"\0", start)
        end = len(together) if end < 0 else end
        yield together[start:end]
        start = end + 1
