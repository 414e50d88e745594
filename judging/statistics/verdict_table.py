"""The table of verdicts, a row each: its columns, which rows count, by judge and by trial.

:func:`judging.scores.verdicts.read_verdicts` makes the table. A judge has one row for each trial, or several, as
``sample`` and ``part`` say. A missing value is None, or NaN where pandas stores it so.
A column may lack where it would have no value.

Of the verdict, from its record:

- ``judge`` (text): who judged; people are "human:CODE".
- ``judge_kind`` (text): the kind of this judge, such as "human" or "machine".
- ``sample`` (int): 0 for a judge's first verdict on a trial, from 1 for further ones.
- ``verdict`` (text): "human" or "machine"; or why there is none: "refused", "unparsed", "failed", "unjudged". Of a part
  the verdict of this part.
- ``confidence`` (float, 0 to 1): how sure the judge is; None where it did not say.
- ``reason`` (text): why, in the judge's words; None where it did not say.
- ``margin`` (float): of a trained judge; above 0 it says "machine". None of any other judge.
- ``moves`` (list of floats): of a trained judge, how far ``margin`` moves when each fold is left out of training; the
  root of the sum of their squares is its standard error. Of the first partition, where there are several. Only where
  the trials have versions; None where not known.
- ``fold`` (int): the fold, from 0, in which the trial was judged; None where the judge is not trained.
- ``part`` (int): the number, from 0, of one of a trained judge's several verdicts on a trial. None where it has one.
- ``partition`` (int), ``embedding`` (text), ``trained_on`` (text): by which partition into folds, which embedding, and
  which agent's answers the part was trained. None where the judge has no parts, or does not tell them apart so.
- ``folder`` (text): the run folder of the verdict, by its name; None of an unjudged trial.

Of the study, from the same record; None of a machine's verdict, but for ``phase``:

- ``excluded`` (text): the rules that exclude it, with spaces between them; None where it counts.
- ``place`` (int): the verdict's place, from 0, among the judge's trials; None where the study did not say.
- ``sex`` (text): whom the judge took the speaker for; None where that was not asked.
- ``phase`` (text): "feedback" where the judge was then told the truth, else "test", of machines too. None of an
  unjudged trial.
- ``judge.QUESTION``: what a person answered to a question about themselves, or what an imported table tells about the
  judge; a column for each question.

Of the trial, from its row of the key:

- ``trial`` (text): the trial's id; with "1:" and so on before it, where the table has several trial sets.
- ``asked`` (text): the task that was answered; "elsewhere" for other studies' stimuli.
- ``truth`` (text): whose the answer is, "human" or "machine"; of a pair, "machine" where one speaks in the
  first conversation.
- ``agent`` (text): the name of who answered; of a pair, in the first conversation.
- ``stimulus`` (text): the id of what was answered.
- ``speaker`` (text): who is judged in a conversation, "A" or "B"; None of any other answer.
- ``record`` (text): the agent of the record that holds the answer; of a conversation both speakers, as "a~b".
- ``said`` (text): a digest of the answer; answers that look equal have the same.
- ``length`` (int): the messages of an excerpt, or the turns that are seen of a pair; None of any other answer.
- ``turns`` (int): of a pair, ``length`` with the turns that were written beforehand; None of any other answer.
- ``catch`` (bool): whether the trial only tests whether the judge attends.
- ``swapped`` (bool): whether it is a catch trial with a scanpath on another picture.
- ``repeat_of`` (text): the trial that this one repeats; None where it repeats none.
- ``version`` (text): which transformations were applied to the answer, "" for none (:mod:`judging.tells`); None of a
  trial set without versions. The column lacks where no set has versions, and so does the next one.
- ``version_of`` (text): the trial of the same answer as it was drawn; None of this one, and of a set without versions.
- ``beside_truth``, ``beside_agent``, ``beside_speaker`` (text): of a pair, the same of the second conversation; None
  of any other answer.
- ``meta.NAME``: what stimulus and answer have in their column NAME; a column for each. ``meta.person.NAME`` is what an
  imported table tells about who answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
PUBLISHED_PREFIX = "published:"  # of the names of machines whose answers were imported
# between two columns that are told by together, and between their values
AND = "*"
BOTH = ", "
# phases: with the truth after each trial, and without
FEEDBACK = "feedback"
TEST = "test"
JudgedAnswers = Sequence[Mapping[str, Any]]  # trials with their rows of the key


def counted(verdicts: pd.DataFrame, column: str | None = None) -> pd.DataFrame:
    """The verdicts that count where one scores by ``column``.

    After a verdict with feedback the judge learned the truth, and so may have learned to judge. These verdicts count by
    the column ``phase`` alone."""
    if column == "phase" or "phase" not in verdicts.columns:
        return verdicts
    without_feedback = verdicts["phase"] != FEEDBACK
    return verdicts if without_feedback.all() else verdicts[without_feedback]


def as_drawn(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts on answers as they were drawn. Further versions of an answer are no further answers."""
    if "version_of" not in verdicts.columns:
        return verdicts
    return verdicts[verdicts["version_of"].isna()]


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
