"""The names of the forms that are written, and the older names under which readers take the same forms.

Until it was renamed the project was called Understudy; what it wrote then is read as what is written now.
"""

from __future__ import annotations

import re

RECORD = "turinglike.record/1"
RUN = "turinglike.run/1"
IMPORT = "turinglike.import/1"
INDEX = b"turinglike.index/3\n"


def names(schema: str) -> tuple[str, str]:
    """The name of a form and its older one."""
    return schema, schema.replace("turinglike.", "understudy.")


def mismatch(found: object, schema: str) -> str | None:
    """Why something that calls itself ``found`` is not read as ``schema``, or None."""
    if found in names(schema):
        return None
    if isinstance(found, str) and re.fullmatch(schema.rstrip("0123456789") + r"\d+", found):
        return f"made by a newer version of Turinglike: {found}; this one reads {schema}"
    return f"does not say {schema}"
