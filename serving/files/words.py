"""Texts and numbers as sentences have them."""

from collections.abc import Sequence

from agents.errors import printable

LONGEST = 200  # characters of a message


def shown(text: str) -> str:
    """A text of anybody's in a message: printable, and cut after 200 characters."""
    return printable(text if len(text) <= LONGEST else text[:LONGEST] + "…")


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: "1 stimulus", "2,000 stimuli". Without ``plural`` an s is added."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence in a row: "a", "a and b", "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def per_second(rate: float) -> str:
    """A rate for a person: "0.25/s", "1,234/s"."""
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"


def duration(seconds: float) -> str:
    """Seconds for a person: "3.4 s", "2 min 5 s", "1 h 7 min"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"
