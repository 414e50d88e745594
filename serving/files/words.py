"""Texts and numbers as sentences have them."""

from agents.errors import printable

LONGEST = 200  # characters of a message


def shown(text: str) -> str:
    return printable(text if len(text) <= LONGEST else text[:LONGEST] + "…")


def count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
