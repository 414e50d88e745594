"""Codes that people copy and that spreadsheets open: of judges, of who has finished, of conversations and of kits."""

import hashlib
import random
import secrets

LETTERS = "bcdfghjkmnpqrstvwxz"
"""What codes are of; see :func:`draw_code` before you add a letter."""
LENGTH = 10
"""Letters of a code, which are 42 bits."""


def draw_code(chance: random.Random | None = None) -> str:
    """``LENGTH`` small consonants, drawn by the system's own randomness unless ``chance`` is given.

    Spreadsheets and pandas read a cell for themselves: ``0123456789`` becomes 123456789, ``123456e123`` a power of ten,
    ``3-5`` a date, ``true`` a truth and ``nan`` nothing. The code is then matched with nobody. Without a digit
    there is no number and no date; without a vowel and ``y`` there is no month, no ``true``, ``nan``, ``inf`` or
    ``none``, and no word at all; ``l`` looks like 1. Whoever adds a letter must keep to this.
    """
    choose = secrets.choice if chance is None else chance.choice
    return "".join(choose(LETTERS) for _ in range(LENGTH))


def hashed(token: str) -> str:
    """The SHA-256 of a text, in hexadecimal; all that is kept of links and of sessions."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
