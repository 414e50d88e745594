"""Which columns of a table of verdicts its module does not describe."""

import re

import pandas as pd

from judging.statistics import verdict_table

FAMILIES = {"meta.": "meta.NAME", "judge.": "judge.QUESTION"}
"""How names of columns begin that are described together, and under which name."""


def described() -> set[str]:
    """The names before the colon in the list of the module's docstring."""
    items = re.findall(r"^- (.*?):", verdict_table.__doc__ or "", re.MULTILINE)
    return {name for item in items for name in re.findall(r"``([\w.]+)``", item)}


def undescribed(table: pd.DataFrame) -> set[str]:
    """The columns of ``table`` that the docstring does not describe."""
    names = set()
    for column in table.columns:
        family = next((name for beginning, name in FAMILIES.items() if column.startswith(beginning)), column)
        names.add(family)
    return names - described()
