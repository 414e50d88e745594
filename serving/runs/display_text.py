"""Numbers of things in plain words."""

from __future__ import annotations


def count(number: int, one: str, many: str | None = None) -> str:
    """ "1 picture", "1,200 pictures"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
