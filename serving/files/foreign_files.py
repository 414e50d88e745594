"""Files that other programs wrote: read whole, and JSON that they call JSON."""

import stat
from pathlib import Path
from typing import Any

from agents.errors import InputError
from serving.files.json_values import clean
from serving.files.row_problems import strict_json

LARGEST = 1 << 30  # bytes of a file, which is held in memory


def read_bytes(path: Path) -> bytes:
    """A file's bytes. Raises InputError for a device, a pipe, and more than 1 GiB."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"is a folder; give the files in it, such as {path}/*.csv")
        if not stat.S_ISREG(status.st_mode):
            raise InputError("is not a plain file")
        if status.st_size > LARGEST:
            raise InputError(f"has {status.st_size / 2**30:,.1f} GiB; at most {LARGEST >> 30} GiB is read")
        return path.read_bytes()
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
        if isinstance(error, FileNotFoundError) and {*"*?["} & {*path.name}:
            fault += ". If this stands for several files, leave the quotation marks out: the shell finds them"
        raise InputError(fault) from error


def parse_json(data: bytes) -> Any:
    """Strict JSON with lone surrogates replaced. Raises InputError."""
    try:
        return clean(strict_json(data))
    except ValueError as error:
        raise InputError(f"is not JSON in UTF-8: {error}") from None
