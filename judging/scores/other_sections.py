"""Sections of the page of scores on pairs, populations, a paper's figures and columns, and what all sections need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from judging.contamination.corrected_scores import Contamination
from judging.contamination.in_words import (
    contamination_grid,
    contamination_sentences,
    pair_sentences,
    pairs_grid,
)
from judging.contamination.pairs import ContaminatedPairs
from judging.scores import svg
from judging.scores.figures import PASS_RATES
from judging.scores.page_content import (
    ContaminationSection,
    DescribedSvg,
    PairsSection,
    PopulationSection,
    PublishedSection,
)
from judging.scores.papers.published import published
from judging.scores.score_tables import ScoreTables
from judging.statistics.measures import ALL
from judging.statistics.populations import SCOPE
from judging.statistics.tables import Grid, Table
from judging.statistics.verdict_table import TASK_NAMES
from serving.files.words import count

OF_PARTICIPANTS = "person."
"""Begins the columns that describe who answered, as ``person.age``."""


def picture(figures: Mapping[str, str], name: str, label: str) -> DescribedSvg | None:
    """A figure of this name as the page shows it, with links to its files; None where it was not drawn."""
    if name not in figures:
        return None
    files = [(form.upper(), f"figures/{quote(name)}.{form}") for form in svg.FORMS]
    return DescribedSvg(figures[name], label, files)


def headings(names: str) -> dict[str, str]:
    """The view of a table with these fields."""
    return {"compared with" if name == "beside" else name.replace("_", " "): name for name in names.split()}


def unless_empty(rows: Table[Any], view: Mapping[str, str] | str, caption: str) -> Grid | None:
    """A table; None without rows."""
    return rows.grid(view, caption) if rows else None


def pairs_section(tables: ScoreTables, figures: Mapping[str, str]) -> PairsSection | None:
    """Pass rates and what goes with them; None where no pairs of conversations were judged."""
    pairs = tables.pairs
    if pairs is None:
        return None
    of_rates = {"judge": "judge", "agent": "name", "turns": "turns", "mode": "mode", "pass rate": "with_notes"}
    of_columns = {"judge": "judge", "column": "column", "value": "value", "pass rate": "with_notes"}
    of_controls = {"judge": "judge", "machines": "machines", "verdicts": "verdicts", "the first named": "first"}
    return PairsSection(
        figure=picture(figures, PASS_RATES, "Pass rates by turns: the table below has them"),
        rates=pairs.rates.grid(of_rates, "X-Turn pass rates with 95 % intervals"),
        by=unless_empty(pairs.by, of_columns, "By a column, all agents"),
        tests=unless_empty(
            pairs.tests,
            headings("judge column value beside difference p holm family test"),
            "How much more often pairs were judged rightly, by columns",
        ),
        words=unless_empty(
            pairs.words,
            "agent turns mode conversations agent_words person_words difference",
            "Words per message of agent and person",
        ),
        alpha=pairs.alpha,
        controls=unless_empty(pairs.controls, of_controls, "Control pairs, of two machines or none"),
    )


def population_section(tables: ScoreTables, task: str, sentences: Sequence[str]) -> PopulationSection:
    """How the answers to a task are distributed, and in ``sentences`` what is said of it."""
    view = {
        "agent": "agent",
        "measure": "measure",
        "stimuli": "stimuli",
        "people's answers": "answers_of_people",
        "the agent's": "answers",
        "participants": "participants",
        "people": "people",
        "agent and people": "beside_people",
        "agent and itself": "itself",
        "difference": "difference",
        "interval over": "interval",
        "p": "p",
        "holm": "holm",
        "family": "family",
    }
    grid = tables.populations.where(task=task).grid(view, "Distributions of answers")
    return PopulationSection(TASK_NAMES[task], [*sentences, SCOPE], grid)


def contamination_sections(tables: ScoreTables) -> list[ContaminationSection]:
    """Whether the participants wrote their answers themselves, and what changes if not: by task, then of pairs."""
    cues = tables.ledger.where(is_cue=True).distinct("judge")
    sections = []
    for task in tables.contamination.distinct("task"):
        rows = tables.contamination.where(task=task)
        first = rows.data[0]
        counts = ""
        if first.answers:
            counts = (
                f"{_with_traces(first)} Of {count(first.judged_answers, 'verdict')} on people's answers "
                f"{first.judged_without_traces:,} are on answers without traces, and are not in the corrected figures. "
                "A rate above 0 is no proof: marks that go together on own answers raise it, too."
            )
        sentences = [f"{sentence}." for sentence in contamination_sentences(rows, cues)]
        sections.append(ContaminationSection(TASK_NAMES[task], sentences, contamination_grid(rows), counts))
    if of_pairs := tables.contamination_pairs:
        counts = _with_traces(of_pairs.data[0]) if of_pairs.data[0].answers else ""
        sentences = [f"{sentence}." for sentence in pair_sentences(of_pairs, cues)]
        sections.append(ContaminationSection("Pairs of conversations", sentences, pairs_grid(of_pairs), counts))
    return sections


def _with_traces(row: Contamination | ContaminatedPairs) -> str:
    return (
        f"{count(row.answers, 'answer')} of {count(row.persons, 'participant')} have traces; {row.foreign_answers:,} "
        "of these are more probably written by somebody else than not."
    )


def published_section(tables: ScoreTables) -> PublishedSection | None:
    """A paper's figures beside ours; None where no paper was asked for."""
    if not tables.published:
        return None
    paper = tables.published.data[0].paper
    theirs = {
        "task": "task",
        "their judge": "kind",
        "their agent": "agent",
        "part": "only",
        "figure": "name",
        "theirs": "published",
    }
    ours = {
        "ours, 95 %": "interval",
        "theirs is": "inside_word",
        "our judge": "judge",
        "our agent": "our_agent",
        "but": "why",
    }
    sources = {"source": "source", "of the figure itself": "note"}
    alone = tables.published.where(has_ours=False)
    return PublishedSection(
        paper=paper,
        cite=published()["papers"][paper]["cite"],
        beside=unless_empty(
            tables.published.where(has_ours=True), theirs | ours | sources, "Published figures and ours"
        ),
        number_alone=count(len(alone), "figure"),
        alone=alone.grid(theirs | {"why": "why"} | sources, "Published figures without ours"),
    )


def by_column(tables: ScoreTables, column: str) -> Grid:
    """All agents' rates at each value of a column."""
    view = {
        "task": "task",
        "judge": "judge",
        column: "value",
        "p(H|H)": "p_human",
        "p(M|M)": "p_machine",
        "detectability": "detectability",
    }
    return tables.by.where(column=column, agent=ALL).grid(view, f"By {column}, all agents")


def of_people_alone(tables: ScoreTables, column: str) -> str:
    """Why no machine has a rate by a column of the participants, ``person.age``; "" for other columns."""
    rows = tables.by.where(column=column)
    if not column.startswith(OF_PARTICIPANTS) or any(row.p_machine.value == row.p_machine.value for row in rows):
        return ""
    return (
        f"{column} describes the participants, and machines have none. So by it only p(H|H) is known: how often the "
        "participants with each value are taken for people. It is the same beside every agent."
    )


def others(tables: ScoreTables) -> list[Grid]:
    """Tables that stand by themselves at the end, each below its caption."""
    of_rankings = {
        "task": "task",
        "judge": "judge",
        "by": "by",
        "verdicts": "verdicts",
        "AUC of machines above people": "auc",
        "machines found at 1 % false alarms": "true_at_1",
        "AUC of right above wrong verdicts": "auc_2",
        "right as stated": "stated",
        "right in fact": "right",
        "calibration error": "calibration_error",
    }
    shown: list[tuple[Table[Any], str, Mapping[str, str] | str]] = [
        (
            tables.rankings,
            "How margins and confidence rank answers, and how well they are calibrated",
            of_rankings,
        ),
        (tables.sexes, "Speakers who were taken for male", "task judge of verdicts male"),
        (
            tables.catch,
            "Catch trials, before anybody is excluded",
            "task kind truth judge judges trials right",
        ),
        (tables.repeats, "Trials shown twice", "task judge verdicts alike"),
        (
            tables.samples,
            "Further verdicts on a trial, of which the first counts",
            "task judge verdicts alike",
        ),
    ]
    return [rows.grid(names, title) for rows, title, names in shown if rows]
