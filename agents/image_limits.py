"""What reading one picture may take: pixels, bytes, pieces, seconds, and memory beside other pictures."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MAX_PIXELS = 1024**3 // 4 // 3  # 89 million: where Pillow, too, begins to speak of decompression bombs
MAX_SIDE = 1_000_000  # pixels: decoders keep something for each row
MAX_BYTES = 512 * 1024 * 1024
MAX_SCANNED = 32 * MAX_PIXELS  # pixels times scans of a JPEG, each of which goes through all pixels again
MAX_SECONDS = 30.0  # of a processor's time, to decode one picture
MAX_DECODING = 2 * 1024**3  # bytes that all the pictures may need that are being decoded in one process
MAX_READS = 1_000_000  # of a file's pieces, of each of which a header may hold something
BLOCK = 8192  # bytes that a decoder is given at once; between two its time is looked at
DECODING = 28  # bytes for each pixel while it is decoded, at worst: of an animated WEBP


class _Limited:
    """What a picture is read from: it ends after :data:`MAX_READS`, and once this thread has worked on it for
    :data:`MAX_SECONDS`. Most decoders ask for it piece by piece; the time of the others is limited by the number of
    pixels (WEBP) and by what :mod:`agents.tiff_header` says (TIFF)."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)  # type: ignore[call-arg]
        self._reads = 0
        self._until = time.thread_time() + MAX_SECONDS

    def read(self, size: int | None = -1, /) -> bytes:
        self._reads += 1
        if self._reads > MAX_READS:
            raise ValueError(f"more than {MAX_READS:,} pieces")
        if time.thread_time() > self._until:
            raise TimeoutError(f"not within {MAX_SECONDS:g} s of a processor's time")
        data: bytes = super().read(size)  # type: ignore[misc]
        return data


class LimitedBytes(_Limited, io.BytesIO):
    """Bytes in memory."""


class LimitedFile(_Limited, io.BufferedReader):
    """A file on disk."""


class Room:
    """So many bytes for all threads of the process; who finds none waits. One who needs more than there are has all."""

    def __init__(self, size: int) -> None:
        self._left = self._size = size
        self._freed = threading.Condition()

    @contextmanager
    def room(self, needed: int) -> Iterator[None]:
        needed = min(needed, self._size)
        with self._freed:
            self._freed.wait_for(lambda: self._left >= needed)
            self._left -= needed
        try:
            yield
        finally:
            with self._freed:
                self._left += needed
                self._freed.notify_all()
