"""The table of verdicts, a row each: which rows count, by judge and by trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

ELSEWHERE = "elsewhere"  # what was asked about stimuli of others
UNJUDGED = "unjudged"  # a trial that an unfinished run has still before it
PEOPLE = "people"  # all judges who are people, together
PREFIX = "published:"  # of the names of machines whose answers were imported
# between two columns that are told by together, and between their values
AND = "*"
BOTH = ", "
# phases: with the truth after each trial, and without
FEEDBACK = "feedback"
TEST = "test"
JudgedAnswers = Sequence[Mapping[str, Any]]  # trials with their rows of the key


def counted(verdicts: pd.DataFrame, column: str | None = None) -> pd.DataFrame:
    """The verdicts without those that were followed by the truth, which are scored by the column ``phase`` alone."""
    if column == "phase" or "phase" not in verdicts.columns:
        return verdicts
    return verdicts[verdicts["phase"] != FEEDBACK]


def on_trials(judged: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The verdicts with ``right``, 1 or 0, in a row for each judge and trial.

    A judge that is trained by several partitions, seeds or embeddings has several verdicts on a trial (``part``). They
    are about the same answer, and mostly alike. As units of a test each seed would add as many again: by five equal
    ones 35 of 100 slopes were false alarms, where 5 are due. The papers average over seeds (2025 paper, L1311), and so
    ``right`` is their mean. Where ``columns`` differ between parts, as ``trained_on`` does, there is a row for each."""
    right = (judged["verdict"] == judged["truth"]).astype(float)
    if "part" not in judged.columns or judged["part"].isna().all():
        return judged.assign(right=right)
    keys = ["judge", "trial", *columns]
    means = right.groupby([judged[key] for key in keys]).transform("mean")
    return judged.assign(right=means).drop_duplicates(keys)


def by_judge(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each judge's verdicts; people's all together."""
    is_human = table["judge_kind"] == "human"
    if is_human.any():
        yield PEOPLE, table[is_human]
    for judge, verdicts in table[~is_human].groupby("judge"):
        yield str(judge), verdicts


def verdicts_by_judge(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Each judge's (column) first verdict on each trial (row): 0 human, 1 machine, NaN none."""
    first = _first_verdicts(verdicts)
    is_machine = first.assign(is_machine=(first["verdict"] == "machine").astype(float))
    return is_machine.pivot(index="trial", columns="judge", values="is_machine")


def verdicts_by_trial(verdicts: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many judges took each trial [row] for each of :data:`VERDICTS` [column], and the number of its stimulus;
    first samples."""
    counts = _first_verdicts(verdicts).groupby(["stimulus", "trial", "verdict"]).size().unstack(fill_value=0)
    table: NDArray[np.int64] = counts.reindex(columns=VERDICTS, fill_value=0).to_numpy()
    return table, counts.index.get_level_values("stimulus").factorize()[0].astype(table.dtype)


def _first_verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    in_order = verdicts.sort_values("sample", kind="stable")
    return in_order[in_order["verdict"].isin(VERDICTS)].drop_duplicates(["trial", "judge"])
