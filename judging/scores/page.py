"""The page of scores, and the paragraph on methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from agents import __version__
from judging.scores.conclusions import SCOPE, sentences
from judging.scores.figures import TASK_NAMES, figure_of, without_repetition
from judging.scores.papers.published import published
from judging.statistics.answer_statistics import KAPPA
from judging.statistics.measures import ALL, LOG_LINEAR, Correction, Score, SettingsByJudge
from judging.statistics.populations import sentences as population_sentences
from judging.statistics.tables import Grid, Table
from judging.trial_sets.trial_set import VERDICTS
from serving.files.words import count
from serving.pages.rendering import render

if TYPE_CHECKING:
    import pandas as pd

    from judging.scores.scores import Scores

CORRECTION_IN_WORDS: Mapping[Correction, str] = {
    "log-linear": "the log-linear correction, half a verdict added to each kind (Hautus 1995)",
    "1/2N": "rates of 0 and 1 as 1/(2N) and 1 minus 1/(2N) of N verdicts (Macmillan and Kaplan 1985)",
}
FITS = "display:block;max-width:100%;height:auto"


def page(scores: Scores, figures: Mapping[str, str]) -> str:
    return render(
        "judging.scores",
        "scores.html",
        title="Scores",
        scores=scores,
        correction=CORRECTION_IN_WORDS[scores.dprime_correction],
        figures=figures,
        task_names=TASK_NAMES,
        papers=published()["papers"],
        all_agents=ALL,
        count=count,
        picture=_picture,
        scope=SCOPE,
        kappa_name=KAPPA,
        sentences=sentences,
        population_sentences=population_sentences,
        figure_of=figure_of,
        without_repetition=without_repetition,
        as_table=Table,
        judges_by_agents=_judges_by_agents,
    )


def _picture(svg: str, label: str) -> Markup:
    start = Markup('<svg role="img" aria-label="{}" style="{}"').format(label, FITS)
    return Markup(svg[svg.index("<svg") :].replace("<svg", start, 1))


def _judges_by_agents(scores: Table[Score]) -> Grid | None:
    agents = [agent for agent in scores.distinct("agent") if agent != ALL]
    judges = scores.distinct("judge")
    if len(agents) < 2 or len(judges) < 2:
        return None
    rates = {(score.judge, score.agent): score.p_machine.value for score in scores}
    rows = [[judge, *(rates.get((judge, agent)) for agent in agents)] for judge in judges]
    return Grid("p(M|M) by judge and agent", ["judge", *agents], rows)


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
        sets=[about for about in sets if "seed" in about],
        settings={name: settings[name] for name in sorted(set(table["judge"]) & settings.keys())},
        has_single=not is_paired.all(),
        has_pairs=is_paired.any(),
    )
    return " ".join(text.split())
