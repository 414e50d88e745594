"""What decoding a TIFF may take, from its first directory.

A small TIFF can ask for endless work: tiles that reach far beyond the picture, strips that all stand at one place,
lists as long as the file. libtiff decodes without asking back, so all of it is looked at before.
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from agents.image_limits import MAX_READS

# ImageWidth, ImageLength, Compression, RowsPerStrip, TileWidth, TileLength: one number each
DIMENSIONS = (256, 257, 259, 278, 322, 323)
JPEG_COMPRESSIONS = (6, 7)
OFFSETS, BYTE_COUNTS = (273, 324), (279, 325)  # of strips and of tiles
INTEGER_TYPES = {3: "H", 4: "I", 16: "Q"}
BYTE_TYPES = (1, 2, 7)  # bytes and text
MOST_TAGS = 1000
MOST_PARTS = 100_000  # strips or tiles


def work(source: BinaryIO) -> tuple[int, int]:
    """How many pixels all tiles have, with what of them lies beyond the picture (0 without tiles), and how many each
    scan of a JPEG goes through that is a strip or a tile (0 without such). Both are 0 of other formats.

    Raises ValueError for what would take too much, or is odd; struct.error, OSError and OverflowError where there is
    no such place in the file.
    """
    head = source.read(16)
    order = {b"II": "<", b"MM": ">"}.get(head[:2])
    if order is None or len(head) < 16:
        return 0, 0
    if head[:4] == b"MM\0\x2b":
        raise ValueError("a big-endian BigTIFF, which Pillow does not read")
    is_big = head[2] == 43
    number, entry, offset = ("Q", "HHQ8s", 8) if is_big else ("H", "HHI4s", 4)
    word = order + entry[2]
    source.seek(*struct.unpack_from(word, head, offset))
    [count] = struct.unpack(order + number, source.read(8 if is_big else 2))
    if count > MOST_TAGS:
        raise ValueError(f"{count:,} tags are too many")
    entries = source.read(count * struct.calcsize(order + entry))
    length = source.seek(0, os.SEEK_END)
    numbers = dict[int, int]()
    for tag, kind, values, field in struct.iter_unpack(order + entry, entries):
        if tag not in (*DIMENSIONS, *OFFSETS, *BYTE_COUNTS):
            if values > MAX_READS and kind not in BYTE_TYPES:
                raise ValueError(f"a list of {values:,} numbers is too long")
            continue
        if kind not in INTEGER_TYPES or tag in numbers or (tag in DIMENSIONS and values != 1):
            raise ValueError(f"an odd tag {tag}")
        if values > MOST_PARTS:
            raise ValueError(f"{values:,} strips or tiles are too many")
        numbers[tag] = values
        if tag in OFFSETS:
            continue
        form = f"{order}{values}{INTEGER_TYPES[kind]}"
        if struct.calcsize(form) > len(field):
            source.seek(*struct.unpack(word, field))
            field = source.read(struct.calcsize(form))
        numbers[tag] = sum(struct.unpack_from(form, field))
        if tag in BYTE_COUNTS and numbers[tag] > 2 * length:
            raise ValueError("its strips or tiles have more bytes than the file")
    width, height, compression, rows, across, down = (numbers.get(tag, 0) for tag in DIMENSIONS)
    tiles = -(-width // across) * across * -(-height // down) * down if across and down else 0
    part = across * down if tiles else width * min(rows or height, height)
    return tiles, part if compression in JPEG_COMPRESSIONS else 0
