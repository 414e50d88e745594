"""The table of verdicts, a row each: its columns, which rows count, by judge and by trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.errors import InputError
from judging.statistics.tables import Table
from judging.trial_sets.trial_set import VERDICTS
from serving.pages import task_names

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

ELSEWHERE = "elsewhere"  # what was asked about stimuli of others
TASK_NAMES = task_names.TASK_NAMES | {ELSEWHERE: "Stimuli of others"}
UNJUDGED = "unjudged"  # a trial that an unfinished run has still before it
PEOPLE = "people"  # all judges who are people, together
PREFIX = "published:"  # of the names of machines whose answers were imported
# between two columns that are told by together, and between their values
AND = "*"
BOTH = ", "
# phases: with the truth after each trial, and without
FEEDBACK = "feedback"
TEST = "test"
PLAIN_COLUMNS = ("length", "place", "phase", "agent", "folder")  # columns of all verdicts that scores may be told by
# No columns to score by.
OUTCOMES = ("truth", "beside_truth", "verdict", "confidence", "reason", "catch", "swapped", "repeat_of", "sample")
JudgedAnswers = Sequence[Mapping[str, Any]]  # trials with their rows of the key


@dataclass(frozen=True, slots=True)
class CatchRate:
    """How often catch trials were judged rightly (2025 paper, Table S3); a trial counts once for each judge."""

    task: str
    """The task that was answered."""
    kind: str
    """Either "catch", or "swapped" for scanpaths on another picture."""
    truth: str
    """Whose the answers are: "human" or "machine"."""
    judge: str
    """Who judged; "people" are all people together, excluded ones too."""
    judges: int
    """How many judges that is."""
    trials: int
    """How many trials they judged."""
    right: float
    """The share that was judged rightly, 0 to 1."""


def counted(verdicts: pd.DataFrame, column: str | None = None) -> pd.DataFrame:
    """The verdicts that count where one scores by ``column``.

    After a verdict with feedback the judge learned the truth, and so may have learned to judge. These verdicts count by
    the column ``phase`` alone."""
    if column == "phase" or "phase" not in verdicts.columns:
        return verdicts
    return verdicts[verdicts["phase"] != FEEDBACK]


def on_trials(judged: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The verdicts with ``right``, 1 or 0, in a row for each judge and trial.

    A judge that is trained by several partitions, seeds or embeddings has several verdicts on a trial (``part``). They
    are about the same answer, and mostly alike. As units of a test each seed would add as many again: with five equal
    seeds 35 of 100 slopes were false alarms, where 5 are due. The papers average over seeds (2025 paper, L1311), and so
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


def with_columns(table: pd.DataFrame, names: str) -> tuple[pd.DataFrame, list[str]]:
    """The table with the columns of ``by`` under the names that it has there, and these names; ``A*B`` has the values
    of both, and with ``agent`` those of machines alone. Raises InputError for what no verdict has."""
    listed = [name.strip(f" {AND}") for name in names.split(",") if name.strip(f" {AND}")]
    columns = {name.removeprefix("meta.").removeprefix("judge."): name for name in table.columns if "." in name}
    columns |= {name: name for name in table.columns if "." not in name and name not in (*OUTCOMES, "part")}
    column_of = {name: column for name, column in columns.items() if table[column].notna().any()}
    unknown = [part for name in listed for part in name.split(AND) if part not in column_of]
    if unknown:
        there = [name for name in PLAIN_COLUMNS if name in column_of]
        there += [name for name, column in column_of.items() if name != column]
        raise InputError(f"by: the verdicts have no {', '.join(unknown)}; they have {', '.join(there)}")
    table = table.assign(**{part: table[column_of[part]] for name in listed for part in name.split(AND)})
    for name in listed:
        if AND in name:
            factors = name.split(AND)
            texts = [table[part].astype(str) for part in factors]
            is_known = table[factors].notna().all(axis=1) & ((table["truth"] == "machine") | ("agent" not in factors))
            table[name] = texts[0].str.cat(texts[1:], sep=BOTH).where(is_known)
    return table, listed


def catch_rates(table: pd.DataFrame) -> Table[CatchRate]:
    """By task, kind and truth, of all people together, excluded ones too, and of each other judge."""
    catch = table[table["catch"] & (table["sample"] == 0) & table["verdict"].isin(VERDICTS)]
    rows = []
    for (task, swapped, truth), verdicts in catch.groupby(["asked", "swapped", "truth"]):
        name = "swapped" if swapped else "catch"
        for judge, part in by_judge(verdicts):
            right = float((part["verdict"] == part["truth"]).mean())
            trials = int(part.groupby("judge")["trial"].nunique().sum())
            rows.append(CatchRate(task, name, truth, judge, int(part["judge"].nunique()), trials, right))
    return Table(rows)


def verdicts_by_judge(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Each judge's (column) first verdict on each trial (row): 0 human, 1 machine, NaN none."""
    first = _first_verdicts(verdicts)
    is_machine = first.assign(is_machine=(first["verdict"] == "machine").astype(float))
    return is_machine.pivot(index="trial", columns="judge", values="is_machine")


def verdicts_by_trial(verdicts: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two arrays: how many judges took each trial [row] for a person's, and for a machine's [column]; and the number of
    the trial's stimulus [row]. The first of a judge's several verdicts on a trial counts."""
    counts = _first_verdicts(verdicts).groupby(["stimulus", "trial", "verdict"]).size().unstack(fill_value=0)
    table: NDArray[np.int64] = counts.reindex(columns=VERDICTS, fill_value=0).to_numpy()
    return table, counts.index.get_level_values("stimulus").factorize()[0].astype(table.dtype)


def _first_verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    in_order = verdicts.sort_values("sample", kind="stable")
    return in_order[in_order["verdict"].isin(VERDICTS)].drop_duplicates(["trial", "judge"])
