"""The page of scores: what is told of the answers themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from serving.runs.display_text import details, esc, table

Row = Mapping[str, Any]


def statistics_section(rows: Sequence[Row]) -> list[str]:
    """The statistics of one task's answers, a line for each statistic and speaker."""
    if not rows:
        return []
    cells = []
    for statistic, some in groupby(rows, key=lambda row: row["statistic"]):
        for row in some:
            own = f"{row['mean']:.3g}" + ("" if row["sd"] is None else f" ± {row['sd']:.3g}")
            effects = ["–" if row[name] is None else f"{row[name]:+.2f}" for name in ("d", "delta")]
            cells.append([esc(statistic), esc(row["of"]), f"{row['number']:,}", own, *effects, row["direction"] or "–"])
    columns = ("statistic", "of", "answers", "mean ± standard deviation", "Cohen's d", "Cliff's delta", "than people")
    return [details("The answers themselves", table(columns, cells, "Statistics of the answers, beside people's"))]
