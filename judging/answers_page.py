"""The page of scores: the answers themselves, standard measures, published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from judging.published import MEASURES as NAMES
from judging.published import published, told_inside
from serving.runs.display_text import count, details, esc, table
from serving.web.viewer_provenance import TASK_NAMES

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


def captions_section(found: Mapping[str, Any]) -> list[str]:
    """Standard measures of captions, and their correlation with detectability."""
    if not found:
        return []
    names = ("bleu", "cider_d", "bleu_one_left_out", "cider_d_one_left_out")
    cells = [
        [esc(row["of"]), f"{row['captions']:,}", *(_figure(row[name]) for name in names)] for row in found["agents"]
    ]
    columns = ("of", "captions", "BLEU-4", "CIDEr-D", "BLEU-4, one reference left out", "CIDEr-D, one left out")
    parts = [f"<p>{esc(found['note'])}</p>", table(columns, cells, "Standard measures of captions")]
    if any(row["agents"] for row in found["correlations"]):
        cells = [
            [
                esc(row["judge"]),
                {"bleu": "BLEU-4", "cider_d": "CIDEr-D"}[row["measure"]],
                count(row["agents"], "agent"),
                *(_figure(row[name]) for name in ("pearson", "pearson_p", "spearman", "spearman_p")),
                row["why"] or "",
            ]
            for row in found["correlations"]
        ]
        tested = ("judge", "measure", "over", "Pearson", "p", "Spearman", "p", "")
        parts.append(table(tested, cells, "Correlation with detectability (three agents at least)"))
    return [details("Captions by standard measures", "".join(parts))]


def published_section(rows: Sequence[Row]) -> list[str]:
    """A paper's figures beside ours, and folded away those that have none of ours."""
    if not rows:
        return []
    theirs = ("task", "their judge", "their agent", "figure", "theirs")
    sources = ("source", "of the figure itself")
    beside, alone = [], []
    for row in rows:
        of = f"{row['agent']}, {row['only']}" if row["only"] else row["agent"]
        what = [TASK_NAMES[row["asked"]], row["kind"], of, NAMES[row["measure"]], f"{row['published']:.2f}"]
        source = [row["source"], row["note"]]
        if row["ours"] is None:
            alone.append([esc(one) for one in (*what, row["why"], *source)])
            continue
        ours = f"{row['ours']:.2f} <small>{row['low']:.2f} to {row['high']:.2f}</small>"
        told = [told_inside(row), row["judge"], row["our_agent"], row["why"] or "–"]
        beside.append([*map(esc, what), ours, *(esc(one) for one in (*told, *source))])
    paper = rows[0]["paper"]
    cite = published()["papers"][paper]["cite"]
    parts = [f"<section><h2>Beside the figures of {esc(paper)}</h2><p>{esc(cite)}.</p>"]
    if beside:
        columns = (*theirs, "ours, 95 %", "theirs is", "our judge", "our agent", "but", *sources)
        parts.append(table(columns, beside, "Published figures and ours"))
    if alone:
        shown = table((*theirs, "why", *sources), alone, "Published figures without ours")
        parts.append(details(f"{count(len(alone), 'figure')} without any of ours", shown))
    return [*parts, "</section>"]


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
