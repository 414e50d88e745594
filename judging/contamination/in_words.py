"""The table of contamination in sentences and as it is seen."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from judging.contamination.corrected_scores import KNOWN, Contamination
from judging.statistics.measures import ALL
from judging.statistics.tables import Estimate, Grid, Table
from judging.statistics.verdict_table import TASK_NAMES

VIEW = {
    "judge": "judge",
    "agent": "name",
    "p(H|H)": "p_human",
    "corrected p(H|H)": "p_human_corrected",
    "at the ends of the rate": "p_human_at_ends",
    "p(H|foreign)": "of_foreign",
    "detectability": "detectability",
    "corrected detectability": "detectability_corrected",
    "detectability at the ends": "detectability_at_ends",
    "within bounds": "within",
}


def contamination_sentences(rows: Table[Contamination], cues: Collection[str]) -> Iterator[str]:
    """By task the rate, and p(H|H) corrected by each judge; then each agent whose place within the bounds changes.
    ``cues`` are judges by a single cue, of which tables tell."""
    for task in rows.distinct("task"):
        of_task = rows.where(task=task)
        first = of_task.data[0]
        name = TASK_NAMES[task].lower()
        if all(row.why for row in of_task):
            yield f"The contamination of participants' answers ({name}) cannot be estimated: {first.why}"
            continue
        yield _rate(first, name)
        for row in of_task.where(agent=ALL):
            if not row.why and row.judge not in cues:
                yield (
                    f"Judged by {row.judge}, p(H|H) ({name}) is {_percent(row.p_human)}; corrected "
                    f"{_percent(row.p_human_corrected)}"
                )
        for row in of_task:
            if row.agent != ALL and row.judge not in cues and row.within_bounds != row.within_bounds_corrected:
                is_now = "is" if row.within_bounds_corrected else "is no longer"
                yield (
                    f"Judged by {row.judge}, the detectability of {row.agent} {is_now} within the bounds when corrected"
                )


def _rate(row: Contamination, name: str) -> str:
    if row.source == KNOWN:
        is_exact = row.rate.low == row.rate.high
        rate = f"{100 * row.rate.value:.3g} %"
        if not is_exact:
            rate = f"{100 * row.rate.low:.3g} to {100 * row.rate.high:.3g} %"
        return (
            f"{rate} of participants' answers ({name}) are taken to be written by somebody else, and to be judged as "
            f"the answers of {row.like} are"
        )
    low = f"{100 * row.rate.low:.0f}"
    high = f"{100 * row.rate.high:.0f}"
    if row.rate.low > 0:
        return (
            f"About {100 * row.rate.value:.0f} % ({low} to {high} %) of participants' answers ({name}) were probably "
            "not written by them"
        )
    return (
        f"Traces do not show that participants' answers ({name}) were written by somebody else: the rate is between 0 "
        f"and {high} %"
    )


def _percent(estimate: Estimate) -> str:
    return str(Estimate(100 * estimate.value, 100 * estimate.low, 100 * estimate.high, ".0f")).replace(" (", " % (", 1)


def contamination_grid(rows: Table[Contamination]) -> Grid | None:
    """The table of a task's ``rows`` as the page shows it; None where nothing is corrected."""
    if all(row.why for row in rows):
        return None
    return rows.grid(VIEW, "As they are, and corrected, with 95 % intervals")
