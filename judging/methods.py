"""The paragraph that says how scores came about, to be put into a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from agents import __version__
from judging.measures import REPETITIONS
from judging.verdicts import SAID
from serving.runs.display_text import count

if TYPE_CHECKING:
    import pandas as pd

NO_CHOICES = ("trials", "key")  # settings that the command fills in
SCORED = """
Turinglike {version} ({packages}) scored {verdicts} of {judges} on {trials} about {stimuli}. Missing verdicts (refused,
unparsed, failed, or not judged yet), {missing:,} in number, are part of no rate; of several verdicts of a judge on a
trial the first counts.
"""
EXCLUDED = "Not scored, by rules that the study had stated ({rules}): {excluded}."
MEASURED = """
Detectability is the mean of p(H|H), the share of people's answers said to be a person's, and p(M|M), the share of an
agent's answers said to be a machine's; d' and the criterion use the log-linear correction (Hautus 1995). 95 % intervals
are by three Poisson bootstraps of {repetitions:,} repetitions each (seed {seed}), over judges, stimuli and verdicts,
whose variances are combined as by Cameron, Gelbach and Miller (2011); the rates of a single judge have exact binomial
intervals (Clopper and Pearson 1934), which take its verdicts for independent. Catch trials and repeated trials are part
of no rate. Against chance a single judge's rates are tested by the exact binomial test and its detectability by
Fisher's, several judges' by Wilcoxon's signed-rank test over judges; truth and verdict by generalized estimating
equations (Liang and Zeger 1986); agents by Friedman's test and exact permutation within judges; judges by McNemar's
exact test; values of a column by Mann and Whitney's test or analysis of variance. p values of one kind of test, one
task and one judge are corrected together, by Holm.
"""
PAIRED = """
The X-Turn pass rate of pairs of conversations is 1 less the share of verdicts that name the one in which the machine
speaks. Its 95 % intervals are exact (Clopper and Pearson 1934) where each pair has one verdict, all of one judge or
each of another; otherwise pairs and judges are random: the exact interval of so many independent verdicts as have the
variance of the bootstraps over judges, pairs and verdicts ({repetitions:,} repetitions each, seed {seed}; Korn and
Graubard 1998). Control pairs are part of no rate.
"""


def methods(
    table: pd.DataFrame, settings: Mapping[str, Mapping[str, Any]], sets: Sequence[Mapping[str, Any]], seed: int
) -> str:
    """``settings`` are the judges' own, ``sets`` what stands beside the trial sets (``TRIALS.trials.json``), ``seed``
    that of the bootstrap."""
    scored = SCORED.format(
        verdicts=count(len(table), "verdict"),
        judges=count(table["judge"].nunique(), "judge"),
        trials=count(table["trial"].nunique(), "trial"),
        stimuli=count(table["stimulus"].nunique(), "stimulus", "stimuli"),
        version=__version__,
        packages=_versions(),
        missing=int((~table["verdict"].isin(SAID)).sum()),
    )
    excluded = table["excluded"].dropna()
    is_paired = table["beside_truth"].notna()
    rules = sorted({rule for rules in excluded.unique() for rule in rules.split()})
    parts = [
        scored,
        *([EXCLUDED.format(excluded=count(len(excluded), "verdict"), rules=", ".join(rules))] if rules else []),
        *(
            f"Trials were drawn with seed {about.get('seed')}{_chosen(about.get('options', {}))}."
            for about in sets
            if "seed" in about
        ),
        *(f"{name}: {_settings(settings[name])}." for name in sorted(set(table["judge"]) & settings.keys())),
        *([MEASURED.format(repetitions=REPETITIONS, seed=seed)] if not is_paired.all() else []),
        *([PAIRED.format(repetitions=REPETITIONS, seed=seed)] if is_paired.any() else []),
    ]
    return " ".join(" ".join(parts).split())


def _versions() -> str:
    names = ("numpy", "scipy", "statsmodels", "scikit-learn")
    return ", ".join(f"{name} {metadata.version(name)}" for name in names)


def _chosen(options: Mapping[str, Any]) -> str:
    told = [f"{name} {value}" for name, value in options.items() if value not in (None, False, 0) and name != "lengths"]
    return f" ({', '.join(told).replace('_', ' ')})" if told else ""


def _settings(chosen: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value}" for name, value in chosen.items() if name not in NO_CHOICES and value is not None
    )
