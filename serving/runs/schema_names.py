"""The names that files give their forms, such as ``turinglike.record/1``, and whether one of them can be read."""

import re


def schema_names(schema: str) -> tuple[str, str]:
    """A form's name now, and when the project was called Understudy."""
    return schema, schema.replace("turinglike.", "understudy.")


def schema_mismatch(name: object, schema: str) -> str | None:
    """Why a file of schema ``name`` is not read as ``schema``, or None."""
    if name in schema_names(schema):
        return None
    if isinstance(name, str) and re.fullmatch(schema.rstrip("0123456789") + r"\d+", name):
        return f"made by a newer version of Turinglike: {name}; this one reads {schema}"
    return f"does not say {schema}"
