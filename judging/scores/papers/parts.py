"""The parts of verdicts that papers printed figures of, such as "judges after feedback", in our own verdicts.

A paper prints a figure of all verdicts, and beside it figures of a part: of conversations between people, of judges in
the laboratory, of a classifier that learned from 40 examples. The name of the part is ``only`` of
``published_scores.json``. Here stands for each name what it is in our table of verdicts
(:mod:`judging.statistics.verdict_table`), in judges' settings or among catch trials. So nobody has to ask for a column
with ``--by`` before a figure is compared. A name that is missing here would leave figures out without a reason; a test
looks for each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judging.judges.papers_classifiers import FEW_EXAMPLES, OTHER_PICTURES
from judging.statistics.verdict_table import FEEDBACK, TEST

if TYPE_CHECKING:
    import pandas as pd

# The folder or the answer that tells where people judged; the 2025 paper's online judges were of these platforms.
LABORATORY = frozenset({"lab", "inlab", "laboratory"})
ONLINE = frozenset({"online", "mturk", "amt", "prolific"})


@dataclass(frozen=True, slots=True)
class PartOfVerdicts:
    """A part that is told by columns of the table of verdicts."""

    chosen: Callable[[pd.DataFrame], pd.Series[bool]]
    """Takes a judge's verdicts; gives [verdicts] whether they are of the part."""
    lacking: str
    """Why there is no figure of ours, where no verdict is of the part."""


@dataclass(frozen=True, slots=True)
class PartOfJudges:
    """A part that is told by the settings of judges."""

    chosen: Callable[[Mapping[str, Any]], bool]
    """Takes a judge's settings; tells whether it is of the part."""
    setting: str
    """The setting in words, such as "train=40"."""


@dataclass(frozen=True, slots=True)
class PartOfCatchTrials:
    """Catch trials, which no other figure counts."""

    kind: str
    """The kind in ``catch.csv``."""
    lacking: str
    """Why there is no figure of ours, where there are no such trials."""


Part = PartOfVerdicts | PartOfJudges | PartOfCatchTrials


def _with_value(columns: Collection[str], values: Collection[str], lacking: str) -> PartOfVerdicts:
    """The verdicts that have one of ``values``, in small letters, in one of ``columns``."""

    def chosen(verdicts: pd.DataFrame) -> pd.Series[bool]:
        result = verdicts["judge"].isna()  # of none
        for column in columns:
            if column in verdicts.columns:
                result = result | verdicts[column].astype("string").str.casefold().isin(values).fillna(False)
        return result.astype(bool)

    return PartOfVerdicts(chosen, lacking)


def _of_conversations(kind: str, words: str) -> PartOfVerdicts:
    return _with_value(["meta.type"], [kind.casefold()], f"no verdicts on {words} conversations (type {kind})")


def _of_topic(topic: str) -> PartOfVerdicts:
    return _with_value(["meta.topic"], [topic], f"no verdicts on conversations with the topic {topic}")


def _of_gender(gender: str) -> PartOfVerdicts:
    letter = gender[0]
    return _with_value(["judge.gender", "judge.sex"], [gender, letter], f"no verdicts of judges of gender {gender}")


def _of_education(*values: str) -> PartOfVerdicts:
    named = " or ".join(values)
    return _with_value(["judge.education"], values, f"no verdicts of judges with education {named}")


def _of_platform(names: Collection[str]) -> PartOfVerdicts:
    listed = " or ".join(sorted(names))
    return _with_value(
        ["folder", "judge.platform"],
        names,
        f"no verdicts from a folder named {listed}, nor of judges whose platform is so called",
    )


def _before_feedback(verdicts: pd.DataFrame) -> pd.Series[bool]:
    return (verdicts["phase"] == TEST) & ~_after_feedback(verdicts)


def _after_feedback(verdicts: pd.DataFrame) -> pd.Series[bool]:
    """The verdicts without feedback of judges who had feedback on trials before.

    Where the place of a verdict is not known, all verdicts without feedback of such a judge count: the papers' test
    comes after the training."""
    with_feedback = verdicts["phase"] == FEEDBACK
    places = verdicts["place"] if "place" in verdicts.columns else verdicts["phase"].map({})
    places = places.astype("Float64")
    first = places.where(with_feedback).groupby(verdicts["judge"]).transform("min")
    is_trained = with_feedback.groupby(verdicts["judge"]).transform("any")
    is_later = (places > first).fillna(True)
    return ((verdicts["phase"] == TEST) & is_trained & is_later).astype(bool)


PARTS: Mapping[str, Part] = {
    "human-human conversations": _of_conversations("H-H", "human-human"),
    "human-AI conversations": _of_conversations("H-M", "human-AI"),
    "AI-AI conversations": _of_conversations("M-M", "AI-AI"),
    "the topic technology": _of_topic("technology"),
    "the topic music": _of_topic("music"),
    "male judges": _of_gender("male"),
    "female judges": _of_gender("female"),
    "judges of middle and high school": _of_education("middle school", "high school"),
    "judges of college": _of_education("bachelor"),
    "judges with a postgraduate degree": _of_education("master", "pg"),
    "judges in the laboratory": _of_platform(LABORATORY),
    "judges online": _of_platform(ONLINE),
    "judges before feedback": PartOfVerdicts(_before_feedback, "no verdicts before feedback"),
    "judges after feedback": PartOfVerdicts(
        _after_feedback,
        "no verdicts after feedback: no judge had trials with the truth after each, then trials without",
    ),
    "catch trials": PartOfCatchTrials("catch", "no catch trials were judged"),
    "trials with swapped pictures": PartOfCatchTrials("swapped", "no trials with swapped pictures were judged"),
    FEW_EXAMPLES: PartOfJudges(lambda settings: settings.get("train") == 40, "train=40"),
    OTHER_PICTURES[0]: PartOfJudges(lambda settings: settings.get("pictures") == "early", "pictures=early"),
    OTHER_PICTURES[1]: PartOfJudges(lambda settings: settings.get("pictures") == "none", "pictures=none"),
    "one example in the prompt": PartOfJudges(
        lambda settings: settings.get("example") is not None, "an example in its prompt (example=FILE)"
    ),
}
