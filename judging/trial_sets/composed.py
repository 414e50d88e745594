"""A trial set that :func:`judging.trials` has made, and what is to be said of it."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.trial_sets.tells import told
from judging.trial_sets.trial_set import KeyedTrial, about_path, key_path, read_trial_key
from serving.files.words import count

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class TrialSet:
    """The folder ``path`` with what judges may see; may stand where a path is wanted, as in :func:`judging.judge`.

    ``number`` counts its trials; ``remarks`` say how it was drawn. ``len(trial_set)`` is ``number``."""

    path: Path
    number: int
    remarks: Sequence[str]

    @property
    def key(self) -> Path:
        """The CSV file that says whose the answers are: not for judges."""
        return key_path(self.path)

    @property
    def about(self) -> Path:
        """The JSON file that says how the set was made: its choices, its seed, how blind it is."""
        return about_path(self.path)

    def sentences(self) -> list[str]:
        """What `turinglike trials` prints: numbers by task, what could not be balanced, and how blind the set is."""
        places = f"trials: {self.path}; answer key, not for judges: {self.key}; how they were drawn: {self.about}"
        return [*self.remarks, places]

    def to_pandas(self) -> pd.DataFrame:
        """The key, a row per trial: ``trial``, ``asked`` (its task), ``truth``, ``agent``, ``stimulus`` and further
        columns; those of the stimuli are ``meta.NAME``. Raises InputError where the key is gone or was changed."""
        import pandas as pd

        return pd.DataFrame.from_records(list(read_trial_key(self.key).values()))

    def __len__(self) -> int:
        return self.number

    def __fspath__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences())
        return f"<ul>{items}</ul>"


def sentences_on_task(task: str, numbers: Mapping[str, Any], rows: Sequence[KeyedTrial]) -> Iterator[str]:
    """How many trials a ``task`` has, whose they are, and what a judge could learn beside the answers.

    ``numbers`` are those of the set's file, ``rows`` all trials with their rows of the key."""
    keys = [key for trial, key in rows if trial["asked"] == task and not key["version_of"]]
    kinds = Counter({0: key["truth"], 1: "catch"}.get(key["catch"], "swapped") for key in keys)
    swapped = f", {kinds['swapped']:,} swapped" if kinds["swapped"] else ""
    yield (
        f"{task}: {count(kinds.total(), 'trial')}: {kinds['human']:,} from people, {kinds['machine']:,} from "
        f"{count(len(numbers['agents']), 'agent')}, {count(kinds['catch'], 'catch trial')}{swapped}"
    )
    if (shared := numbers.get("stimuli_in_common")) is not None:
        yield (
            f"  {shared['common']:,} of {count(shared['all'], 'stimulus', 'stimuli')} are common (--common): people "
            "and every agent answered them"
        )
    for agent, number in numbers.get("common_without", {}).items():
        yield f"  without {agent}, {number:,} would be common: leave it out with --agents"
    one_side = numbers["stimuli_of_one_side"]
    if task != "conversation" and (one_side["people"] or one_side["machines"]):  # talks are stimuli of their own
        yield (
            f"  only people answered {count(one_side['people'], 'stimulus', 'stimuli')}, and only machines "
            f"{one_side['machines']:,}. A judge may learn this; common (--common) leaves these stimuli out"
        )
    alike = numbers["alike"]
    if alike["answers"]:
        yield (
            f"  {count(alike['answers'], 'answer')} have an equal answer to the same stimulus by somebody else; "
            "unique (--unique) keeps one of the equal answers"
        )
    if alike["of_people_and_machines"]:
        times = count(alike["of_people_and_machines"], "time")
        yield f"  people and machines gave the same answer {times}: no judge can tell these apart"
    if alike["of_several_machines"]:
        yield f"  several machines gave the same answer {count(alike['of_several_machines'], 'time')}"
    if numbers["self_disclosed"]:
        yield f"  {count(numbers['self_disclosed'], 'answer')} say that a machine wrote them, as 'I am an AI' does"


def sentences_on_pairs(numbers: Mapping[str, Any]) -> Iterator[str]:
    """How many pairs of conversations each agent has at each length in turns."""
    for cell in numbers["cells"]:
        yield f"{cell['agent']}, {cell['length']} turns: {count(cell['pairs'], 'pair')}"
    yield f"conversations between people in these pairs: {numbers['conversations_of_people']:,}"


def sentences_on_set(
    unbalanced: Sequence[str], passed_over: Mapping[str, int], blind: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """What was not balanced, what was passed over and why, and whether the set gives away whose the answers are."""
    for remark in unbalanced:
        yield f"not balanced: {remark}"
    for why, number in sorted(passed_over.items()):
        yield f"left out ({why}): {number:,}"
    for entry in blind:
        if entry.get("version") and entry["hidden"] is None:
            continue  # as of the answers as they were drawn, of which it is said
        version = f" {entry['version']}" if entry.get("version") else ""
        yield f"{entry['asked']}{version}: {_blindness(entry)}"
        for tell in entry["tells"]:
            yield f"  {told(tell)}"


def _blindness(entry: Mapping[str, Any]) -> str:
    if entry["hidden"] is None:
        return "too few trials to check that order, names and files reveal nothing"
    numbers = "{detectability:.2f} ({low:.2f} to {high:.2f}, p {p:.3f})"
    hidden = numbers.format(**entry["hidden"])
    visible = numbers.format(**entry["shown"])
    warning = ""
    if entry["hidden"]["p"] < 0.05:
        warning = ". They may give machines away, or this is chance, as in one set in 20: draw with another seed"
    delays = ", delays" if entry.get("delays") else ""
    return (
        f"by orders, names and files alone, a classifier has a detectability of {hidden}{warning}. "
        f"By the answers' length, numbers{delays} and punctuation, it has {visible}"
    )
