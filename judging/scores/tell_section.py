"""Sections of the page of scores on tells: sentences, a figure, and tables of what was taken away."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from judging.scores.other_sections import picture, unless_empty
from judging.scores.page_content import TellSection
from judging.scores.score_tables import ScoreTables
from judging.scores.tell_figure import TELLS
from judging.scores.tell_sentences import tell_sentences
from judging.statistics.tables import Table
from judging.statistics.verdict_table import TASK_NAMES

CHANGES = {
    "judge": "judge",
    "agent": "agent",
    "property": "tell",
    "taken": "taken",
    "with it": "before",
    "without": "after",
    "change": "change",
    "p": "p",
    "holm": "holm",
    "family": "family",
    "people's answers": "people_answers",
    "the agent's": "agent_answers",
}
LEFT = {
    "judge": "judge",
    "agent": "agent",
    "gone": "gone",
    "as drawn": "before",
    "remains": "remains",
    "p, against 0.5": "p",
    "holm": "holm",
    "family": "family",
    "all together": "above",
}
CORRELATED = {
    "judge": "judge",
    "agent": "agent",
    "property": "tell",
    "AUC, agent above people": "auc",
    "correlation with “machine”": "correlation",
    "share removed, alone": "removed",
    "share removed, last": "removed_last",
    "but": "disagrees",
}
CHANGED = {
    "version": "version",
    "of": "of",
    "answers": "answers",
    "share changed": "changed",
    "property": "measure",
    "before": "before",
    "after": "after",
    "d before": "differs_before",
    "d after": "differs_after",
}


def tell_sections(tables: ScoreTables, figures: Mapping[str, str], cues: Collection[str]) -> list[TellSection]:
    """The sections, task by task; sentences leave out judges that go by a single cue (``cues``)."""
    sentences = tell_sentences(tables, cues)
    sections = []
    for task in tables.tells.distinct("task"):
        rows = tables.tells.where(task=task)
        of_cues = _only(rows, cues)
        without_cues = _without(rows, cues)
        sections.append(
            TellSection(
                task=task,
                name=TASK_NAMES[task],
                sentences=[(row.headline, f"{row.why}.") for row in sentences if row.task == task],
                figure=picture(
                    figures,
                    f"{TELLS}-{task}",
                    "How much detectability falls without each property: the details have the figures",
                ),
                changes=(without_cues or rows).grid(CHANGES, "Changes of detectability, with 95 % intervals"),
                of_cues=unless_empty(of_cues, CHANGES, "Judges that go by one cue") if without_cues else None,
                left=unless_empty(
                    _without(tables.tells_left.where(task=task), cues), LEFT, "What remains when all of these are gone"
                ),
                correlated=unless_empty(
                    _without(tables.tells_correlated.where(task=task), cues),
                    CORRELATED,
                    "What correlation says of the same properties",
                ),
                changed=unless_empty(
                    tables.tells_changed.where(task=task), CHANGED, "What each version changed in the answers"
                ),
                is_trained=any(row.is_trained for row in rows),
            )
        )
    return sections


def _only(rows: Table[Any], cues: Collection[str]) -> Table[Any]:
    return replace(rows, data=[row for row in rows if row.judge in cues])


def _without(rows: Table[Any], cues: Collection[str]) -> Table[Any]:
    return replace(rows, data=[row for row in rows if row.judge not in cues])
