"""What of a PNG its pixels need.

Profiles and texts are not used, and Pillow refuses a picture that has long ones; so they are passed over, whatever they
would unpack to. Their checksums count: a file in which one is wrong is damaged.
"""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO

from agents.image_limits import LimitedBytes

MAGIC = b"\x89PNG\r\n\x1a\n"
KEPT = (b"tRNS", b"eXIf")  # beside the critical chunks; others say nothing of the first picture
END = b"\0\0\0\0IEND\xae\x42\x60\x82"
PIECE = 1 << 20  # bytes that are read at once


def needed(source: BinaryIO, *, pixels: bool) -> BinaryIO:
    """The PNG in ``source`` without the chunks that its first picture does not need, up to its pixels or with them;
    ``source`` itself if it is no PNG. Raises ValueError where a checksum is wrong."""
    size = source.seek(0, 2)
    source.seek(0)
    if source.read(len(MAGIC)) != MAGIC:
        return source
    parts, data = [MAGIC], (0, 0)
    while True:
        head = source.read(8)
        length, kind = struct.unpack(">I4s", head) if len(head) == 8 else (0, b"")
        if kind == b"IDAT" and pixels:
            start = data[0] or source.tell() - 8
            data = start, source.seek(length + 4, 1)
            if data[1] > size:  # cut off: the decoder says so, where no end follows
                source.seek(start)
                return LimitedBytes(b"".join([*parts, source.read()]))
        elif data[0]:
            source.seek(data[0])
            return LimitedBytes(b"".join([*parts, source.read(data[1] - data[0]), END]))
        elif not kind.isalpha() or kind in (b"IDAT", b"IEND"):
            return LimitedBytes(b"".join([*parts, head, source.read() if pixels else b""]))
        elif kind in KEPT or kind[:1].isupper():
            parts += head, source.read(length + 4)
        else:
            _check(source, kind, length)


def _check(source: BinaryIO, kind: bytes, length: int) -> None:
    """Pass over a chunk. Raises ValueError if its checksum is wrong, or it is longer than the file."""
    checksum = zlib.crc32(kind)
    while length:
        piece = source.read(min(length, PIECE))
        if not piece:
            raise ValueError("a damaged PNG, which is cut off")
        checksum, length = zlib.crc32(piece, checksum), length - len(piece)
    if source.read(4) != struct.pack(">I", checksum):
        raise ValueError(f"a damaged PNG: the checksum of its chunk {kind.decode()} is wrong")
