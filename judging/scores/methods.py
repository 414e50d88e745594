"""The paragraph on how verdicts were scored, for a section on methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from agents import __version__
from judging.scores.conclusions import SCOPE
from judging.statistics.ledger import SettingsByJudge
from judging.statistics.measures import LOG_LINEAR, Correction
from judging.trial_sets.trial_set import VERDICTS
from serving.files.words import count
from serving.pages.rendering import render

if TYPE_CHECKING:
    import pandas as pd

CORRECTION_IN_WORDS: Mapping[Correction, str] = {
    "log-linear": "the log-linear correction, half a verdict added to each kind (Hautus 1995)",
    "1/2N": "rates of 0 and 1 as 1/(2N) and 1 minus 1/(2N) of N verdicts (Macmillan and Kaplan 1985)",
}


def methods(
    table: pd.DataFrame,
    settings: SettingsByJudge,
    sets: Sequence[Mapping[str, Any]],
    bounds: float,
    correction: Correction = LOG_LINEAR,
) -> str:
    """The paragraph; ``sets`` are the contents of ``TRIALS.trials.json``, ``correction`` is that of d'."""
    excluded = table["excluded"].dropna()
    is_paired = table["beside_truth"].notna()
    libraries = ("numpy", "scipy", "statsmodels", "scikit-learn")
    text = render(
        "judging.scores",
        "methods.txt",
        version=__version__,
        bounds=bounds,
        scope=SCOPE,
        correction=CORRECTION_IN_WORDS[correction],
        packages=", ".join(f"{name} {metadata.version(name)}" for name in libraries),
        verdicts=count(len(table), "verdict"),
        judges=count(table["judge"].nunique(), "judge"),
        trials=count(table["trial"].nunique(), "trial"),
        stimuli=count(table["stimulus"].nunique(), "stimulus", "stimuli"),
        missing=f"{int((~table['verdict'].isin(VERDICTS)).sum()):,}",
        rules=sorted({rule for rules in excluded.unique() for rule in rules.split()}),
        excluded=count(len(excluded), "verdict"),
        sets=[notes for notes in sets if "seed" in notes],
        settings={name: settings[name] for name in sorted(set(table["judge"]) & settings.keys())},
        has_single=not is_paired.all(),
        has_pairs=is_paired.any(),
    )
    return " ".join(text.split())
