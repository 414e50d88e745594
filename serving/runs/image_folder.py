"""The image files of a folder, by name, in an order that does not depend on the file system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agents.errors import InputError

# Formats that no agent can decode are among them, so that such a picture is reported and not silently left out.
SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff"),
        *(".jp2", ".jxl", ".heic", ".heif", ".avif", ".svg", ".eps", ".ico", ".psd", ".ppm", ".pgm", ".tga", ".exr"),
    )
)


def image_names(folder: Path, above: tuple[tuple[int, int], ...] = ()) -> Iterator[str]:
    """Names relative to ``folder``, at any depth, with "/" between the parts, sorted as whole names.

    Whatever has an image's suffix in its name counts, regular file or not; names that begin with a dot do not. Links
    to folders are followed, but never in a circle: ``above`` are the device and number of the folders on the way.
    Raises InputError for a folder that cannot be read.
    """
    try:
        about = folder.stat()
        here = (about.st_dev, about.st_ino)
        if here in above:
            return
        with os.scandir(folder) as entries:
            # A folder sorts as the names in it will.
            names = sorted(entry.name + "/" * _is_folder(entry) for entry in entries if entry.name[0] != ".")
    except OSError as error:
        shown = os.fsencode(folder).decode("utf-8", "backslashreplace")
        raise InputError(f"{shown}: cannot be read: {error.strerror or error}") from None
    for name in names:
        if name.endswith("/"):
            for inner in image_names(folder / name, (*above, here)):
                yield name + inner
        elif os.path.splitext(name)[1].lower() in SUFFIXES:
            yield name


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
