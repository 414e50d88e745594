"""What a command prints while it does something long, so that nobody takes it for dead. Imports nothing slow."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agents.errors import printable
from serving.files.words import duration

# seconds
FIRST_SIGN = 10.0  # until the first line; each pause after it is twice as long
LONGEST_PAUSE = 600.0
THREAD = "signs of life"


@contextmanager
def still(what: str, *, quiet: bool = False) -> Iterator[None]:
    """While the block runs, print "still WHAT (10 s)" on stderr from time to time; nothing if ``quiet``. How long the
    block takes is not known beforehand, so no line says how much time is left."""
    if quiet:
        yield
        return
    over = threading.Event()

    def print_signs() -> None:
        began = time.monotonic()
        pause = FIRST_SIGN
        while not over.wait(pause):
            print(printable(f"still {what} ({duration(time.monotonic() - began)})"), file=sys.stderr, flush=True)
            pause = min(2 * pause, LONGEST_PAUSE)

    signs = threading.Thread(target=print_signs, name=THREAD, daemon=True)
    signs.start()
    try:
        yield
    finally:
        over.set()
        signs.join()
