"""Tells in sentences: by which property a judge tells an agent from people, and what remains without all of them.

A sentence names a tell only where Holm's p of a change is below 0.05. That no change is shown does not prove that there
is none, and no sentence says so. Planting
shows a tell as well. A tell that is found last alone goes with another, which still gave the agent away
when this one was taken away alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from judging.scores.score_tables import ScoreTables
from judging.statistics.contrasts import ALPHA
from judging.statistics.tell_changes import ALONE, LAST, PLANTED, TellChange, TellsLeft
from judging.statistics.verdict_table import PEOPLE
from serving.files.words import listed

LEAST_P = 0.001  # a smaller one is written as this


@dataclass(frozen=True, slots=True)
class TellSentence:
    """What taking properties away shows of an agent by a judge."""

    task: str
    """The task that was answered."""
    headline: str
    """By which properties the judge tells the agent."""
    why: str
    """The figures, and what remains."""


def tell_sentences(tables: ScoreTables, cues: Collection[str] = ()) -> list[TellSentence]:
    """A sentence for each task, judge and agent; without judges that go by a single cue (``cues``)."""
    sentences = []
    places = dict.fromkeys((row.task, row.judge, row.agent) for row in tables.tells if row.judge not in cues)
    for task, judge, agent in places:
        rows = tables.tells.where(task=task, judge=judge, agent=agent).data
        left = tables.tells_left.where(task=task, judge=judge, agent=agent).data
        disagreeing = [
            row.disagrees for row in tables.tells_correlated.where(task=task, judge=judge, agent=agent) if row.disagrees
        ]
        shown = list(_shown(rows))
        parts = [*shown, *_planted(rows), *map(_remains, left), *_alike(rows), *disagreeing]
        sentences.append(TellSentence(task, _headline(rows, judge, agent), ". ".join(parts)))
    return sentences


def _headline(rows: Sequence[TellChange], judge: str, agent: str) -> str:
    found = list(dict.fromkeys(row.tell for row in rows if _is_tell(row)))
    verb = "tell" if judge == PEOPLE else "tells"
    if found:
        return f"{judge} {verb} {agent} by {listed(found)}"
    tried = list(dict.fromkeys(row.tell for row in rows if not row.is_alike))
    if not tried:
        return f"nothing was to be taken away from {agent} and people"
    if len(tried) == 1:
        return f"{tried[0]} is not shown to be a tell of {agent} for {judge}"
    return f"no tell of {agent} is shown for {judge} among {listed(tried)}"


def _shown(rows: Sequence[TellChange]) -> Iterator[str]:
    """A clause for each tell whose change is shown: alone if it is shown so, else last."""
    tells = dict.fromkeys(row.tell for row in rows if row.taken != PLANTED)
    for tell in tells:
        by_way = {row.taken: row for row in rows if row.tell == tell}
        alone = by_way.get(ALONE)
        last = by_way.get(LAST)
        if alone is not None and _is_shown(alone):
            yield f"Without {tell} detectability {_moves(alone)}"
        elif last is not None and _is_shown(last):
            yield f"Without {tell}, when all others are gone, detectability {_moves(last)}"
    if not any(map(_is_shown, rows)):
        largest = max(
            (row for row in rows if row.p is not None and row.taken != PLANTED),
            key=lambda row: row.change.value,
            default=None,
        )
        if largest is None and any(row.is_alike for row in rows):
            return
        if largest is None:
            yield "There are too few verdicts for a test"
        else:
            yield (
                f"The largest fall is that without {largest.tell}{_when(largest)}: from {largest.before:.2f} to "
                f"{largest.after:.2f} ({_figures(largest)})"
            )


def _planted(rows: Sequence[TellChange]) -> Iterator[str]:
    for row in rows:
        if row.taken == PLANTED and _is_shown(row):
            yield f"With people's {row.tell} planted detectability {_moves(row)}"


def _alike(rows: Sequence[TellChange]) -> Iterator[str]:
    """Of which properties nothing was to be taken away."""
    alike = [row.tell for row in rows if row.taken == ALONE and row.is_alike]
    if alike:
        yield f"No answer looks otherwise without {listed(alike)}"


def _moves(row: TellChange) -> str:
    verb = "falls" if row.change.value > 0 else "rises"
    return f"{verb} from {row.before:.2f} to {row.after:.2f} ({_figures(row)})"


def _figures(row: TellChange) -> str:
    change = row.change.apart_from(0)
    digits = f"{change.form[:-1]}f".lstrip("+")
    low = format(change.low, digits)
    high = format(change.high, digits)
    return f"change {format(change.value, digits)}, {low} to {high}; p {_p(row.holm)} after Holm"


def _when(row: TellChange) -> str:
    return ", when all others are gone" if row.taken == LAST else ""


def _remains(row: TellsLeft) -> str:
    gone = "all of these are" if "+" in row.gone else "it is"
    remains = row.remains.apart_from(0.5)
    text = f"When {gone} gone, {remains} remains"
    if row.holm is None:
        return text
    if row.holm >= ALPHA:
        return f"{text}, which may be chance (p {_p(row.holm)} after Holm)"
    side = "above" if row.remains.value > 0.5 else "below"
    return f"{text}, {side} chance (p {_p(row.holm)} after Holm)"


def _is_shown(row: TellChange) -> bool:
    return row.holm is not None and row.holm < ALPHA


def _is_tell(row: TellChange) -> bool:
    return _is_shown(row) and row.change.value > 0


def _p(p: float | None) -> str:
    if p is None:
        return "–"
    if p < LEAST_P:
        return f"below {LEAST_P:g}"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
