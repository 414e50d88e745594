"""Rules that say which rows of a table are read: ``phase=test``, ``phase!=practice``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowRule:
    """A rule of ``--rows``: a table's rows are taken whose cell in ``column`` is ``value``; if ``unlike``, those whose
    cell is another."""

    column: str
    value: str
    unlike: bool = False

    def __str__(self) -> str:
        return f"{self.column}{'!=' if self.unlike else '='}{self.value}"


def row_rule(text: str) -> RowRule:
    """The rule in a text; ``phase=`` are the rows in which it is empty. Raises ValueError."""
    column, sign, value = text.partition("=")
    if not sign or not column.strip("! "):
        raise ValueError(f"must be as phase=test or phase!=practice, not {text!r}")
    return RowRule(column.removesuffix("!").strip(), value.strip(), unlike=column.endswith("!"))
