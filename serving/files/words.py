"""Texts and numbers as sentences have them."""

from agents.errors import printable

LONGEST = 200  # characters of a message


def shown(text: str) -> str:
    """A text of anybody's in a message: printable, and cut after 200 characters."""
    return printable(text if len(text) <= LONGEST else text[:LONGEST] + "…")


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: "1 stimulus", "2,000 stimuli". Without ``plural`` an s is added."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
