"""The papers' figures beside ours: ``turinglike score --against 2025``.

``published_scores.json`` holds each figure that the papers print as a number in a text or a table, or their authors'
notebooks and program: its source, and in ``note`` how it was printed and what contradicts it. Most of the papers'
matrices are pictures, and differences ("4 points better") are figures of nobody: these are not there. ``only`` names a
part of the trials or judges that a figure is of. ``agents`` has the papers' agents with the names that imported answers
have (``published:NAME``) and those of the catalogue; ``papers`` their agents by task.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from agents import catalogue
from agents.contract import COMPARED
from agents.errors import InputError
from judging.measures import ALL
from judging.paper_judges import instead
from judging.verdicts import PEOPLE
from serving.terminal import plain_table, print_table

PAPERS = ("2022", "2025")
FILE = Path(__file__).parent / "published_scores.json"
MODEL, CLASSIFIER = "language model", "classifier"  # kinds of judges, beside people
Row = Mapping[str, Any]


@cache
def published() -> Mapping[str, Any]:
    """What the file holds."""
    loaded: Mapping[str, Any] = orjson.loads(FILE.read_bytes())
    return loaded


def beside_published(
    paper: str, scores: Sequence[Row], settings: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Each figure of a paper (one of :data:`PAPERS`) with ours of the same task, kind of judge and agent.

    ``scores`` are rows of :func:`judging.measures.summarize` with ``asked`` and ``judge``, ``settings`` those of the
    judges. A row for each figure and each of our judges and agents that stand in the same place: ``published``,
    ``source`` and ``note``, ``judge``, ``our_agent``, ``ours`` with ``low`` and ``high``, whether the figure is
    ``inside``, and ``why`` the two are not alike (empty if nothing is known). Where there is nothing of ours, one row
    with None for ``ours``, and why.
    """
    rows = []
    for cell in published()["cells"]:
        if cell["paper"] != paper:
            continue
        row = {name: cell.get(name, "") for name in ("paper", "asked", "judge", "agent", "measure", "only")}
        row["kind"] = row.pop("judge")
        row |= {"published": cell["value"], "source": cell["source"], "note": cell.get("note", "")}
        rows += [row | ours for ours in _ours(cell, scores, settings)]
    return rows


def _ours(cell: Row, scores: Sequence[Row], settings: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    asked, agent, measure = cell["asked"], cell["agent"], cell["measure"]
    task = [row for row in scores if row["asked"] == asked]
    alike = [row for row in task if kind(row["judge"], settings) == cell["judge"]]
    same = [
        row
        for row in alike
        if agent == (ALL if row["agent"] == ALL else stands_for(row["agent"], asked)) and row[measure] == row[measure]
    ]
    if "only" in cell:
        yield _nothing(f"it is of {cell['only']} alone")
    elif not task:
        yield _nothing("no trials of this task")
    elif not alike:
        yield _nothing("no people judged" if cell["judge"] == PEOPLE else f"no {cell['judge']} judged")
    elif not same:
        yield _nothing(f"no verdicts on {'any agent' if agent == ALL else agent}")
    else:
        for row in same:
            agents = [other["agent"] for other in alike if other["judge"] == row["judge"] and other["agent"] != ALL]
            why = [*_other_agents(cell, row["agent"], agents), *_other_judge(cell, row["judge"], settings)]
            low, high = row[f"{measure}_low"], row[f"{measure}_high"]
            yield {
                "judge": row["judge"],
                "our_agent": row["agent"],
                "ours": row[measure],
                "low": low,
                "high": high,
                "inside": low <= cell["value"] <= high,
                "why": "; ".join(why),
            }


def _nothing(why: str) -> dict[str, Any]:
    return {**dict.fromkeys(("judge", "our_agent", "ours", "low", "high", "inside")), "why": why}


def kind(judge: str, settings: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The kind of one of our judges, as the papers' judges are told; None of cues and others that they have not."""
    chosen = settings.get(judge, {})
    if judge == PEOPLE:
        return PEOPLE
    if "prompt" in chosen:
        return MODEL
    return CLASSIFIER if "split" in chosen and "cue" not in chosen else None


def stands_for(agent: str, asked: str) -> str | None:
    """The papers' name of an agent of ours that answered a task, or of an imported one; None of one they have not."""
    imported = agent.removeprefix("published:").casefold()
    for entry in published()["agents"]:
        if asked in entry["asked"] and (imported in entry["imported"] or agent in entry["ours"]):
            return str(entry["name"])
    return None


def _other_agents(cell: Row, agent: str, agents: Sequence[str]) -> Iterator[str]:
    """In what the agents differ."""
    if agent == ALL:
        theirs = published()["papers"][cell["paper"]]["agents"][cell["asked"]]
        named = {stands_for(one, cell["asked"]) for one in agents}
        lacking = [name for name in theirs if name not in named]
        more = [one for one in agents if stands_for(one, cell["asked"]) not in theirs]
        if lacking:
            yield f"without {', '.join(lacking)}"
        if more:
            yield f"also of {', '.join(more)}"
    elif not agent.startswith("published:"):
        with contextlib.suppress(InputError):  # a pair, or an agent that is not installed here
            if catalogue.get(agent).in_paper != COMPARED:
                yield f"{agent} is not quite theirs: other weights or parts"


def _other_judge(cell: Row, judge: str, settings: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """In what the judges differ; people are taken for people."""
    if cell["judge"] == MODEL:
        yield "another model, theirs is withdrawn"
        if settings[judge]["prompt"] != "papers":
            yield "asked in other words"
    elif cell["judge"] == CLASSIFIER:
        yield from instead(cell["paper"], cell["asked"], settings[judge])


MEASURES = {"p_human": "p(H|H)", "p_machine": "p(M|M)", "detectability": "detectability"}


def inside_word(row: Row) -> str:
    """Whether a figure that has ours beside it is inside our interval, in a word."""
    return "inside" if row["inside"] else "outside"


def print_published(rows: Sequence[Row], say: Callable[[str], None]) -> None:
    """The figures that have ours beside them, on the terminal."""
    table = plain_table("task", "judge", "agent", "", "theirs", "ours", "95 %", "theirs is", "but")
    for row in rows:
        if row["ours"] is not None:
            agent = row["agent"] if row["our_agent"] in (row["agent"], ALL) else f"{row['agent']}: {row['our_agent']}"
            table.add_row(
                row["asked"], row["judge"], agent, MEASURES[row["measure"]], f"{row['published']:.2f}",
                f"{row['ours']:.2f}", f"{row['low']:.2f} to {row['high']:.2f}", inside_word(row), row["why"],
            )  # fmt: skip
    if table.row_count:
        print_table(table)
    without = sum(row["ours"] is None for row in rows)
    if without:
        say(f"{without:,} published figures have none of ours beside them; published.csv says why")
