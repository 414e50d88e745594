"""The text of a table as programs and spreadsheets write it: its encoding, its separator, and what stands above it.

Excel in most of Europe writes ``;`` between cells, E-Prime and eye trackers write tabs and UTF-16, Expyriment begins
with lines of ``#``. All of it is found out here, once, for every command that reads a table.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from agents.errors import InputError, Problem

SEPARATORS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}  # and how sentences call them
WESTERN = "cp1252"  # of Windows and its spreadsheets in Western Europe and America
UNDECODED = re.compile("[\ud800-\udfff]")  # what ``surrogateescape`` makes of a byte that is not UTF-8
_BEYOND_ASCII = re.compile("[^\x00-\x7f\ud800-\udfff]")
_QUOTED = re.compile(r'"[^"]*("|$)')
_EXCELS_OWN = re.compile(r"sep=(.)\r?\n")


class DecodedText(NamedTuple):
    """The text in a file's bytes."""

    text: str
    """The text without a byte-order mark. Bytes that fit no encoding are lone surrogates."""
    remark: str = ""
    """A sentence on the encoding; "" for UTF-8."""
    is_guessed: bool = False
    """Whether the encoding is a guess, so that a user must see ``remark``."""


@dataclass(slots=True)
class TableText:
    """A table's text, and what was found out about it."""

    text: str
    """The lines from the header on."""
    line: int
    """The line of the file on which ``text`` begins, from 1."""
    separator: str
    """What stands between cells: one of :data:`SEPARATORS`."""
    comments: list[str] = field(default_factory=list)
    """The lines with ``#`` above the header, as they stand."""
    remarks: list[str] = field(default_factory=list)
    """Sentences on what a reader could not know: the separator, a guessed encoding."""
    guess: str = ""
    """The one of ``remarks`` that says which encoding was guessed; "" where none was."""


def table_text(data: bytes, where: str, *, may_guess: bool) -> TableText:
    """The text of a table's bytes.

    ``may_guess`` is that of :func:`decode`. Raises InputError for UTF-16 that is cut off.
    """
    decoded = decode(data, where, may_guess=may_guess)
    text = decoded.text
    remarks = [decoded.remark] if decoded.remark else []
    line = 1
    separator = None
    own = _EXCELS_OWN.match(text)
    if own is not None and own[1] in SEPARATORS:
        separator = own[1]
        text = text[own.end() :]
        line += 1
    comments: list[str] = []
    while text.startswith("#"):
        first, _, rest = text.partition("\n")
        if _is_header(first, rest):
            break
        comments.append(first.rstrip("\r"))
        text = rest
        line += 1
    if separator is None:
        separator = _separator(text)
    if comments:
        remarks.append(f"lines that begin with # above the table: {len(comments):,}")
    if separator != ",":
        remarks.append(f"{SEPARATORS[separator]} stand between the cells")
    return TableText(text, line, separator, comments, remarks, decoded.remark if decoded.is_guessed else "")


def decode(data: bytes, where: str, *, may_guess: bool) -> DecodedText:
    """The text in a file's bytes.

    UTF-8 and UTF-16 can be known. Any other encoding can only be guessed: with ``may_guess`` it is Windows-1252, and
    the remark shows a word of it. Else, and where bytes fit neither, they become lone surrogates, which a reader must
    refuse. Raises InputError for UTF-16 that is cut off.
    """
    wide = _utf_16(data)
    if wide is not None:
        return DecodedText(_wide_text(data, where, wide), "is UTF-16")
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    wrong = UNDECODED.search(text)
    if wrong is None or not may_guess or _BEYOND_ASCII.search(text):
        # Letters that are UTF-8 beside others that are not: a damaged file, of which nobody knows what it said.
        return DecodedText(text)
    try:
        western = data.decode(WESTERN)
    except UnicodeDecodeError:
        return DecodedText(text)
    line = western.count("\n", 0, wrong.start()) + 1
    word = _word_at(western, wrong.start())
    remark = f"is not UTF-8, and was read as Windows-1252: line {line} has {word!r}. If that is wrong, save it as UTF-8"
    return DecodedText(western, remark, is_guessed=True)


def _utf_16(data: bytes) -> str | None:
    """The name of the encoding if bytes are UTF-16: they have its mark, or one half of the first letter is zero."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    first = data[:2]
    if len(first) < 2 or first.count(0) != 1:
        return None
    return "utf-16-le" if first[1] == 0 else "utf-16-be"


def _wide_text(data: bytes, where: str, encoding: str) -> str:
    try:
        return data.decode(encoding, "surrogatepass")
    except UnicodeDecodeError:
        fault = "is UTF-16, but its end is cut off"
        raise InputError(f"{where}: {fault}", [Problem(where, None, None, fault)]) from None


def _word_at(text: str, place: int) -> str:
    start = place
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    end = place + 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return text[start:end]


def _cells(line: str, separator: str) -> int:
    return _QUOTED.sub("", line).count(separator) + 1


def _separator(text: str) -> str:
    """The separator of a table: what stands most often in its header outside of quotation marks; a comma if in
    doubt."""
    header = text.lstrip("\r\n").partition("\n")[0]
    return max(SEPARATORS, key=lambda separator: _cells(header, separator))


def _is_header(line: str, rest: str) -> bool:
    """Whether a line with ``#`` is the header itself, as ``#,cue,word`` or ``# subject,cue,word``: it has several
    cells, as many as the line below."""
    following = rest.partition("\n")[0]
    separator = _separator(line)
    number = _cells(line, separator)
    return number > 1 and number == _cells(following, separator)
