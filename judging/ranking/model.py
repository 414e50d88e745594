"""Judges and agents on a common scale: signal detection as a probit mixed model with crossed random effects.

The probit of "machine" is, with x = -1/2 for a person's answer and 1/2 for an agent's,

    intercept + bias (judge, stimulus, speaker, answer) + x * skill (judge, stimulus) + [d' of the agent + taste]

(DeCarlo 1998; Rouder et al. 2007; Wright, Horry and Skagerberg 2009). A speaker is a person who answered. An answer is
what an agent or person has for a stimulus, and a taste what a judge has for an agent. People who judge are drawn around
the mean of their study, a folder of verdicts; where people judge, classifiers and language models have another mean.
All spreads are estimated, with log-normal priors. Of how studies differ a single study says nothing, so that one study
has no such effects: its figures are about judges of this study.

nutpie (Seyboldt and the PyMC developers; MIT) samples by NUTS (Hoffman and Gelman 2014) from the density that
:mod:`judging.ranking.posterior` computes. statsmodels has no maximum likelihood for crossed binary effects.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from judging.ranking.convergence import effective_draws, split_rhat
from judging.ranking.posterior import AGENTS, PosteriorDensity
from judging.statistics.jackknife import Codes, Floats
from judging.statistics.measures import NAMELESS

if TYPE_CHECKING:
    import pandas as pd

FIGURES = ("humanness", "detectability", "skill", "criterion")
CHAINS = 4
TRIES = (450, 0.8), (1500, 0.9)  # draws of a chain, and the rate of acceptance to aim at
ADAPTING = 300  # draws before, or as many as are kept if these are fewer
# limits of the figures (after Vehtari et al. 2021), and a share of all draws
RHAT = 1.01
ESS = 400
DIVERGENT = 0.005
LIMITS = f"limits: R-hat {RHAT}, {ESS} effective draws, {DIVERGENT:.1%} divergent"


@dataclass(frozen=True, slots=True)
class Posterior:
    """Draws of the posterior of a task's model."""

    agents: Sequence[str]
    """Their names, in the order of the draws' columns."""
    judges: Sequence[str]
    """Their names, in the order of the draws' columns."""
    draws: Mapping[str, Floats]
    """By figure [draw, agent or judge]. In ``right``, the expected share of right verdicts (0 to 1), people's answers
    come first."""
    convergence: Mapping[str, float]
    """R-hat (``rhat``), the effective number of draws (``ess``), ``divergent`` of all ``draws``, ``is_converged``."""


def fit(verdicts: pd.DataFrame, tries: Sequence[tuple[int, float]] = TRIES, chains: int = CHAINS) -> Posterior:
    """The model of a task's verdicts on single answers, fitted by NUTS in ``chains``; the same draws each time.

    A try is the number of draws of a chain, after at most ``ADAPTING`` to adapt, and the rate of acceptance to aim at.
    The next of ``tries`` follows where one has not converged, and the last is returned however it went."""
    names, levels = _levels(verdicts)
    of_people = (verdicts["judge_kind"] == "human").to_numpy()
    is_other = ~of_people & of_people.any()  # as the reference is people, if any judge
    posterior = PosteriorDensity(names, levels, (verdicts["verdict"] == "machine").to_numpy(), is_other)
    for draws, accept in tries:
        samples, divergent = _sample(posterior, draws, accept, chains)
        figures = np.concatenate([samples[name] for name in FIGURES], axis=2)
        rhat = float(np.max(split_rhat(figures)))
        ess = float(np.min(effective_draws(figures)))
        number = chains * draws
        is_converged = rhat <= RHAT and ess >= ESS and divergent <= DIVERGENT * number
        if is_converged:
            break
    of_draws = {name: samples[name].reshape(number, -1) for name in (*FIGURES, "right")}
    checks = {"rhat": rhat, "ess": ess, "divergent": divergent, "draws": number, "is_converged": is_converged}
    return Posterior(names[AGENTS], names["judges"], of_draws, checks)


def _sample(posterior: PosteriorDensity, draws: int, accept: float, chains: int) -> tuple[dict[str, Floats], int]:
    """The figures of the draws of ``chains`` [chain, draw, figure], and how many draws were divergent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its next version when it is imported
        import nutpie
        from nutpie.compiled_pyfunc import from_pyfunc

    shapes = {
        name: figure.shape for name, figure in posterior.figures(posterior.start(0), np.random.default_rng(0)).items()
    }
    adapting = min(draws, ADAPTING)
    before = {name: np.full(shape, np.nan) for name, shape in shapes.items()}

    def figures_of_chain(seed: int, more: int, chain: int) -> Callable[[Floats], Mapping[str, Floats]]:
        chance = np.random.default_rng([seed, more, chain])
        draw = count()

        def figures(position: Floats) -> Mapping[str, Floats]:
            if next(draw) < adapting:  # it adapts, and these draws are dropped
                return before
            return posterior.figures(np.asarray(position), chance)

        return figures

    model = from_pyfunc(
        posterior.size,
        lambda: lambda position: posterior.log_density(np.asarray(position)),
        figures_of_chain,
        [np.dtype(np.float64)] * len(shapes),
        [*shapes.values()],
        [*shapes],
        make_initial_point_fn=posterior.start,
    )
    sampler = nutpie.sample(
        model,
        draws=draws,
        tune=adapting,
        chains=chains,
        cores=min(chains, os.cpu_count() or 1),
        seed=0,
        target_accept=accept,
        save_warmup=False,
        progress_bar=False,
        blocking=False,
    )
    try:
        trace = sampler.wait()
    except BaseException:  # Ctrl+C too: draws so far are no ranking
        sampler.cancel()
        raise
    samples = {name: trace.posterior[name].to_numpy() for name in shapes}
    return samples, int(trace.sample_stats["diverging"].sum())


def _levels(verdicts: pd.DataFrame) -> tuple[dict[str, list[str]], dict[str, Codes]]:
    """The names of the levels of each table, and which each verdict has; -1 of none."""
    import pandas as pd

    is_machine = verdicts["truth"] == "machine"
    is_nameless = verdicts["agent"].isin(NAMELESS)
    whose = verdicts["agent"].where(~is_nameless, verdicts["trial"].map("trial {}".format))
    folders = verdicts["folder"].where(verdicts["judge_kind"] == "human")
    columns = {
        "judges": verdicts["judge"],
        "stimuli": verdicts["stimulus"],
        "speakers": verdicts["agent"].where(~is_machine & ~is_nameless),
        "answers": whose + " | " + verdicts["stimulus"],
        "tastes": (verdicts["judge"] + " | " + verdicts["agent"]).where(is_machine),
        "studies": folders.groupby(verdicts["judge"]).transform("first"),
        AGENTS: verdicts["agent"].where(is_machine),
    }
    if columns["studies"].nunique() == 1:
        columns["studies"] = columns["studies"].mask(columns["studies"].notna())
    levels = {table: pd.factorize(column, sort=True) for table, column in columns.items()}
    names = {table: list(map(str, of_table)) for table, (_, of_table) in levels.items()}
    return names, {table: codes for table, (codes, _) in levels.items()}
