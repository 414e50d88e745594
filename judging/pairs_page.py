"""What the page of scores, and the terminal, tell of pairs of conversations and of the timing channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judging.measures import ALL, MISSING
from judging.pass_rate import EXACT
from judging.timing import TRUTH
from serving.runs.display_text import count, esc, table
from serving.terminal import plain_table, print_table

Row = Mapping[str, Any]
SAID = (
    "The X-Turn pass rate is 1 less the mean, over pairs and judges, of how often a judge of two conversations said "
    "rightly in which of them a machine speaks: at 0.5 nobody can tell, and above it people were taken for the "
    "machine. Turns are those of the machine's conversation, with those that it wrote itself beforehand."
)


def pairs_section(found: Mapping[str, Any], drawn: str) -> list[str]:
    """The section on pairs, ``found`` being :func:`judging.pass_rate.pass_rates` with ``words``, ``drawn`` their figure
    as it is shown; empty where there are none."""
    if not found:
        return []
    rates: Sequence[Row] = found["rates"]
    modes = sorted({str(row["mode"] or "") for row in rates}, reverse=True)
    cells: dict[tuple[str, str, Any], dict[str, Row]] = {}
    for row in rates:
        cells.setdefault((row["judge"], row["agent"], row["turns"]), {})[str(row["mode"] or "")] = row
    lines = [
        [
            esc(judge),
            esc("all agents" if agent == ALL else agent),
            esc("–" if turns is None else turns),
            *(_rate(by.get(mode)) for mode in modes),
        ]
        for (judge, agent, turns), by in cells.items()
    ]
    columns = ["judge", "agent", "turns", *(mode or "pass rate" for mode in modes)]
    parts = [
        f"<section><h2>Pairs of conversations</h2><p>{SAID}</p>",
        drawn,
        table(columns, lines, "X-Turn pass rates with 95 % intervals"),
    ]
    if found["by"]:
        by_cells = [[esc(row["judge"]), esc(row["column"]), esc(row["value"]), _rate(row)] for row in found["by"]]
        parts.append("<h3>By a column</h3>" + table(("judge", "column", "value", "pass rate"), by_cells, "All agents"))
    if found["words"]:
        parts.append(_words(found["words"]))
    told = []
    if found["alpha"] is not None:
        told.append(f"Krippendorff's alpha over all judges of pairs: {found['alpha']:.2f}.")
    for row in found["controls"]:
        which = "two machines" if row["machines"] else "no machine"
        share = f", the first named in {row['first']:.2f} of them" if row["verdicts"] else ""
        told.append(f"{row['judge']}: {count(row['verdicts'], 'verdict')} on control pairs with {which}{share}.")
    return [*parts, *(f"<p>{esc(one)}</p>" for one in told), "</section>"]


def timing_section(rows: Sequence[Row]) -> list[str]:
    """The section on the timing channel, ``rows`` being :func:`judging.timing.timing_channel`."""
    if not rows:
        return []
    said = (
        "How well whose conversation it is, and what judges said, can be told by a logistic regression from lengths "
        "and delays alone, in folds without a common topic: the mean of the shares of both kinds that are told "
        "rightly; 0.5 is chance."
    )
    cells = [
        [
            esc(row["shown"]),
            esc("truth" if row["told"] == TRUTH else f"what {row['told']} said"),
            esc(row["by"]),
            f"{row['number']:,}",
            _interval(row, "rate"),
        ]
        for row in rows
    ]
    shown = table(("shown", "told", "by", "of", "rate"), cells, "The timing channel with 95 % intervals")
    return [f"<section><h2>Timing</h2><p>{said}</p>{shown}</section>"]


def print_pairs(found: Mapping[str, Any]) -> None:
    """The pass rates as a table on the terminal."""
    if not found:
        return
    shown = plain_table("judge", "agent", "mode", "turns", "pass rate", "pairs", "judges", "verdicts", "interval")
    for row in found["rates"]:
        rate, low, high = (f"{row[f'pass_rate{end}']:.2f}" for end in ("", "_low", "_high"))
        numbers = [f"{row[name]:,}" for name in ("pairs", "judges", "verdicts")]
        who = [row["judge"], "all agents" if row["agent"] == ALL else row["agent"]]
        cell = [str(row["mode"] or "–"), str("–" if row["turns"] is None else row["turns"])]
        shown.add_row(*who, *cell, f"{rate} ({low} to {high})" if row["verdicts"] else "–", *numbers, row["interval"])
    print_table(shown)


def _rate(row: Row | None) -> str:
    if row is None:
        return "–"
    told = [count(row[f"{name}s"], name) for name in ("pair", "judge", "verdict")]
    told += [f"{row[why]:,} {why}" for why in MISSING if row[why]]
    told += ["exact"] if row["interval"] == EXACT else []
    told += [f"the first named in {row['first']:.2f}"] if row["verdicts"] else []
    return f"{_interval(row, 'pass_rate')}<br><small>{esc(', '.join(told))}</small>"


def _words(rows: Sequence[Row]) -> str:
    cells = [
        [
            esc(row["agent"]),
            esc("–" if row["turns"] is None else row["turns"]),
            esc(row["mode"] or "–"),
            f"{row['conversations']:,}",
            f"{row['agent_words']:.1f}",
            f"{row['person_words']:.1f}",
            _difference(row),
        ]
        for row in rows
    ]
    names = ("agent", "turns", "mode", "conversations", "agent", "person", "difference")
    return "<h3>Words per message</h3>" + table(names, cells, "Words per message of agent and person")


def _difference(row: Row) -> str:
    if row["difference_low"] is None:
        return f"{row['difference']:+.1f}"
    low, high = row["difference_low"], row["difference_high"]
    return f"{row['difference']:+.1f} <small>({low:+.1f} to {high:+.1f})</small>"


def _interval(row: Row, name: str) -> str:
    if row[name] != row[name]:
        return "–"
    value, low, high = (f"{row[one]:.2f}" for one in (name, f"{name}_low", f"{name}_high"))
    return f"{value} <small>({low} to {high})</small>"
