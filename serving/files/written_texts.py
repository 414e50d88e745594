"""Texts that people write in an editor, such as settings: UTF-8, also with the mark that editors of Windows write."""

from pathlib import Path

MARK = b"\xef\xbb\xbf"
WIDE = (b"\xff\xfe", b"\xfe\xff")  # how UTF-16 begins


def read_written(path: Path) -> str:
    """The text of a file without a byte-order mark. Raises OSError, and ValueError that names the line which is not
    UTF-8."""
    data = path.read_bytes()
    if data.startswith(WIDE):
        raise ValueError("is UTF-16; save it as UTF-8")
    data = data.removeprefix(MARK)
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is not UTF-8; save the file as UTF-8") from None
