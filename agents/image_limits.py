"""What reading one image may take: pixels, bytes, seconds, and memory beside other images."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

MAX_PIXELS = 1024**3 // 4 // 3  # 89 million: where Pillow, too, begins to speak of decompression bombs
MAX_SIDE = 1_000_000  # pixels: decoders keep something for each row
MAX_BYTES = 512 * 1024 * 1024
MAX_PROFILE = 64 * 1024 * 1024  # bytes of a PNG's profile or text, unpacked
MAX_SECONDS = 30.0  # of a processor's time, to decode one image
MAX_DECODING = 2 * 1024**3  # bytes that all the images may need that are being decoded in one process
BLOCK = 8192  # bytes that a decoder is given at once; between two its time is looked at
DECODING = 28  # bytes for each pixel while it is decoded, at worst: of an animated WEBP


class LimitedBytes(io.BytesIO):
    """Bytes whose reading ends once this thread has worked for :data:`MAX_SECONDS`.

    Most decoders read piece by piece. WEBP and TIFF do not: the number of pixels limits their time.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._until = time.thread_time() + MAX_SECONDS

    def read(self, size: int | None = -1, /) -> bytes:
        if time.thread_time() > self._until:
            raise TimeoutError(f"not within {MAX_SECONDS:g} s of a processor's time")
        return super().read(size)


class Room:
    """A number of bytes for all threads of the process; who needs more than are free waits."""

    def __init__(self, size: int) -> None:
        self._left = self._size = size
        self._freed = threading.Condition()

    @contextmanager
    def room(self, needed: int) -> Iterator[None]:
        """Hold ``needed`` bytes, or all there are where that is less."""
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
