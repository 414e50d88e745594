"""Times of records and files."""

import time


def now() -> str:
    """The time: ISO 8601, UTC, milliseconds."""
    seconds = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"
