"""Inspect's logs as Inspect keeps them, ``.eval``: an archive with a header and a file of JSON for each sample.

Inspect compresses the files with Zstandard, which Python's ``zipfile`` does not know before 3.14. The package pyarrow
of the extra ``parquet`` does.
"""

import io
import zipfile
import zlib
from typing import Any

from agents.errors import InputError
from serving.files.foreign_files import LARGEST, parse_json
from serving.sets.stimulus_set import arrow

HEADERS = ("header.json", "_journal/start.json")  # of a finished log, and of one that was broken off
SAMPLES = "samples/"
LOCAL_HEADER = 30  # bytes before a member's name
ZSTANDARD = 93  # the number of the method in an archive


def read_inspect_log(data: bytes) -> dict[str, Any]:
    """The log in the bytes of a ``.eval`` file, as ``inspect log dump`` writes it. Raises InputError, and
    UnavailableError without the package for Zstandard."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = {info.filename: info for info in archive.infolist()}
        header = next((members[name] for name in HEADERS if name in members), None)
        if header is None:
            raise InputError("is no log of Inspect: the archive has no header.json")
        log: dict[str, Any] = parse_json(_content(data, header))
        samples = [info for name, info in members.items() if name.startswith(SAMPLES) and name.endswith(".json")]
        log["samples"] = [parse_json(_content(data, info)) for info in samples]
    except (zipfile.BadZipFile, zlib.error, OSError, IndexError) as error:
        raise InputError(f"is no log of Inspect that can be read: {error}") from None
    return log


def _content(data: bytes, info: zipfile.ZipInfo) -> bytes:
    """A member's bytes. Raises InputError for one of more than 1 GiB."""
    start = info.header_offset + LOCAL_HEADER
    lengths = data[start - 4 : start]  # of the name and of what stands after it
    start += int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    packed = data[start : start + info.compress_size]
    if info.file_size > LARGEST:
        raise InputError(f"has a sample of more than {LARGEST >> 30} GiB: {info.filename}")
    if info.compress_type == zipfile.ZIP_STORED:
        return packed
    if info.compress_type == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, info.file_size)
    if info.compress_type != ZSTANDARD:
        raise InputError(f"is compressed in a way that is not read (method {info.compress_type})")
    stream = arrow().input_stream(io.BytesIO(packed), compression="zstd")
    return bytes(stream.read(info.file_size))
