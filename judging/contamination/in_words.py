"""The table of contamination in sentences and as it is seen."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from judging.contamination.corrected_scores import Contamination
from judging.contamination.pairs import ContaminatedPairs, conversation_rate
from judging.contamination.rate_of_task import KNOWN
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

VIEW_OF_PAIRS = {
    "judge": "judge",
    "agent": "name",
    "turns": "turns",
    "mode": "mode",
    "pairs": "pairs",
    "verdicts": "verdicts",
    "pass rate": "pass_rate",
    "corrected": "pass_rate_corrected",
    "at the ends of the rate": "at_ends",
    "beside foreign conversations": "of_foreign",
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


def pair_sentences(rows: Table[ContaminatedPairs], cues: Collection[str]) -> Iterator[str]:
    """How many conversations of people in pairs are foreign, and pass rates corrected for these, by judge and agent.
    ``cues`` are judges by a single cue, of which tables tell."""
    if not rows:
        return
    first = rows.data[0]
    if all(row.why for row in rows):
        yield f"The contamination of people's conversations in pairs cannot be estimated: {first.why}"
        return
    value = f"{100 * conversation_rate(first.rate.value):.0f}"
    low = f"{100 * conversation_rate(first.rate.low):.0f}"
    high = f"{100 * conversation_rate(first.rate.high):.0f}"
    between = f"about {value} %" if low == high else f"about {value} % ({low} to {high} %)"
    told = (
        "A conversation of people beside a machine's counts as written by somebody else if the messages of either "
        f"participant are: {between} of them"
    )
    if first.source == KNOWN:
        told += "; judges are taken to guess there, so that the pass rate is 0.5"
    yield told
    several = {row.judge for row in rows if row.agent == ALL}
    for row in rows:
        if row.why or row.judge in cues or (row.judge in several and row.agent != ALL):
            continue
        turns = "" if row.turns is None else f", {row.turns} turns"
        mode = "" if row.mode is None else f", {row.mode}"
        yield (
            f"Judged by {row.judge}, the pass rate of {row.name}{turns}{mode} is {_percent(row.pass_rate)}; corrected "
            f"{_percent(row.pass_rate_corrected)}"
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


def pairs_grid(rows: Table[ContaminatedPairs]) -> Grid | None:
    """The table of pairs as the page shows it; None where nothing is corrected."""
    if all(row.why for row in rows):
        return None
    return rows.grid(VIEW_OF_PAIRS, "Pass rates as they are, and corrected, with 95 % intervals")


def contamination_grid(rows: Table[Contamination]) -> Grid | None:
    """The table of a task's ``rows`` as the page shows it; None where nothing is corrected."""
    if all(row.why for row in rows):
        return None
    return rows.grid(VIEW, "As they are, and corrected, with 95 % intervals")
