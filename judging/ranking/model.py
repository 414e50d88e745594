"""Judges and agents on a common scale: signal detection as a probit mixed model with crossed random effects.

The probit of "machine" is, with x = -1/2 for a person's answer and 1/2 for an agent's,

    intercept + bias (judge, stimulus, speaker, answer) + x * skill (judge, stimulus) + [d' of the agent + taste]

(DeCarlo 1998; Rouder et al. 2007; Wright, Horry and Skagerberg 2009). A speaker is a person who answered. An answer is
what an agent or person has for a stimulus, and a taste what a judge has for an agent. People who judge are drawn around
the mean of their study, a folder of verdicts; where people judge, classifiers and language models have another mean.
All spreads are estimated, with log-normal priors: of how studies differ a single study says nothing, the prior does.

NumPyro (Phan, Pradhan and Jankowiak 2019; Apache-2.0) samples by NUTS (Hoffman and Gelman 2014). statsmodels has no
maximum likelihood for crossed binary effects; PyMC and Bambi want a C compiler for the same speed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.scipy.special import log_ndtr, ndtr
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.distributions import Normal
from numpyro.infer import MCMC, NUTS, init_to_uniform

from judging.statistics.jackknife import Codes, Floats
from judging.statistics.measures import NAMELESS

if TYPE_CHECKING:
    import pandas as pd

# Effects drawn around 0, and the medians of their spreads; 95 % of a spread's prior is within four times that.
SPREADS = {
    "judges.bias": 0.4,
    "judges.skill": 0.25,
    "stimuli.bias": 0.25,
    "stimuli.skill": 0.25,
    "speakers.bias": 0.25,
    "answers.bias": 0.25,
    "tastes.taste": 0.25,
    "studies.bias": 0.3,
    "studies.skill": 0.3,
}
# d', drawn around their mean, and the median of their spread
AGENTS = "agents"
OF_AGENTS = 0.5
LOG_MEDIANS = np.log([*SPREADS.values(), OF_AGENTS])
LOG_SPREAD = 0.7
FIXED = ("intercept", "others.bias", "others.skill", "agents.mean")  # others: classifiers and language models
FIGURES = ("humanness", "detectability", "skill", "criterion")
CHAINS = 4
TRIES = (750, 0.9), (1500, 0.95)  # draws of a chain, as many to adapt before, and the rate of acceptance
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

    A try is the number of draws of a chain, after as many to adapt, and the rate of acceptance to aim at. The next of
    ``tries`` follows where one has not converged, and the last is returned however it went."""
    names, levels = _levels(verdicts)
    is_machine = (verdicts["truth"] == "machine").to_numpy()
    of_people = (verdicts["judge_kind"] == "human").to_numpy()
    data = {
        "says": np.where(verdicts["verdict"] == "machine", 1.0, -1.0),
        "x": is_machine - 0.5,
        "is_other": ~of_people & of_people.any(),  # as the reference is people, if any judge
        "levels": levels,
        "zeros": {table: np.zeros(len(of_table)) for table, of_table in names.items()},
        "number": np.bincount(levels[AGENTS] + 1, minlength=len(names[AGENTS]) + 1),
        "of_judges": np.unique(levels["judges"], return_index=True)[1],  # a verdict of each
    }
    for draws, accept in tries:
        chain = _chain(draws, accept)
        keys = jax.random.split(jax.random.PRNGKey(0), chains)
        with ThreadPoolExecutor(min(chains, os.cpu_count() or 1)) as threads:
            of_chains = [*threads.map(jax.device_get, threads.map(chain, keys, repeat(data)))]
        samples = {name: np.stack([of_chain[name] for of_chain in of_chains]) for name in of_chains[0]}
        figures = np.concatenate([samples[name] for name in FIGURES], axis=2)
        rhat = float(np.max(split_gelman_rubin(figures)))
        ess = float(np.min(effective_sample_size(figures)))
        divergent = int(samples["diverging"].sum())
        number = samples["diverging"].size
        is_converged = rhat <= RHAT and ess >= ESS and divergent <= DIVERGENT * number
        if is_converged:
            break
    of_draws = {name: samples[name].reshape(number, -1) for name in (*FIGURES, "right")}
    checks = {"rhat": rhat, "ess": ess, "divergent": divergent, "draws": number, "is_converged": is_converged}
    return Posterior(names[AGENTS], names["judges"], of_draws, checks)


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
    levels = {table: pd.factorize(column, sort=True) for table, column in columns.items()}
    names = {table: list(map(str, of_table)) for table, (_, of_table) in levels.items()}
    return names, {table: codes for table, (codes, _) in levels.items()}


def _model(data: Mapping[str, Any]) -> None:
    """The model of the module's text, for NumPyro; ``data`` is as :func:`fit` makes it.

    ``of_verdicts`` has by kind of effect (bias, skill, taste) its sum for each verdict, ``of_judges`` the same for each
    judge. A name of ``SPREADS`` says which table an effect belongs to and which kind it is, so that a new name adds an
    effect here by itself. Every line is part of the posterior: a change changes the printed humanness. Run
    ``scripts/simulate_ranking.py`` after it, which counts how often the intervals hold the truth.
    """
    fixed = numpyro.sample("fixed", Normal().expand([len(FIXED)]).to_event(1))
    standard = numpyro.sample("spreads", Normal().expand([len(LOG_MEDIANS)]).to_event(1))
    intercept, other_bias, other_skill, mean = fixed
    of_verdicts = {"bias": data["is_other"] * other_bias, "skill": data["is_other"] * other_skill, "taste": 0}
    of_judges = {name: effect[data["of_judges"]] for name, effect in of_verdicts.items() if name != "taste"}
    variance = defaultdict[str, Any](int)
    for number, name in enumerate(SPREADS):
        table, _, kind = name.partition(".")
        if size := len(data["zeros"][table]):
            spread = jnp.exp(LOG_MEDIANS[number] + LOG_SPREAD * standard[number])
            effects = numpyro.sample(name, Normal().expand([size]).to_event(1)) * spread
            effects = jnp.append(effects, 0)[data["levels"][table]]
            of_verdicts[kind] += effects
            variance[name] = (spread / 2 if kind == "skill" else spread) ** 2
            if table in ("judges", "studies"):
                of_judges[kind] += effects[data["of_judges"]]
    of_agents = jnp.exp(LOG_MEDIANS[-1] + LOG_SPREAD * standard[-1])
    dprimes = numpyro.sample(AGENTS, Normal(mean, of_agents).expand([len(data["zeros"][AGENTS])]).to_event(1))
    probit = intercept + of_verdicts["bias"] + data["x"] * of_verdicts["skill"] + of_verdicts["taste"]
    probit += jnp.append(dprimes, 0)[data["levels"][AGENTS]]
    numpyro.factor("verdicts", log_ndtr(data["says"] * probit).sum())

    right = ndtr(jnp.sign(data["x"]) * probit)
    shares = jax.ops.segment_sum(right, data["levels"][AGENTS] + 1, len(data["number"])) / data["number"]
    numpyro.deterministic("right", shares)
    # As all judges together see an agent: a normal variable of all that differs adds its variance to the noise's 1.
    noise = 1 + variance["stimuli.bias"] + variance["stimuli.skill"] + variance["answers.bias"]
    judges = sum(variance[f"{table}.{kind}"] for table in ("judges", "studies") for kind in ("bias", "skill"))
    of_people = noise + variance["speakers.bias"]
    of_machines = noise + variance["tastes.taste"]
    z_human = intercept / jnp.sqrt(of_people + judges)
    z_machine = (intercept + dprimes) / jnp.sqrt(of_machines + judges)
    numpyro.deterministic("humanness", z_human - z_machine)
    numpyro.deterministic("detectability", (ndtr(z_machine) + ndtr(-z_human)) / 2)
    human = intercept + of_judges["bias"] - of_judges["skill"] / 2
    machine = intercept + mean + of_judges["bias"] + of_judges["skill"] / 2
    human = human / jnp.sqrt(of_people)
    machine = machine / jnp.sqrt(of_machines + of_agents**2)
    numpyro.deterministic("skill", machine - human)
    numpyro.deterministic("criterion", -(machine + human) / 2)


@cache
def _chain(draws: int, accept: float) -> Callable[[Any, Mapping[str, Any]], dict[str, Any]]:
    """Compiled once for all data of the same shapes."""
    numpyro.enable_x64()

    def run(key: Any, data: Mapping[str, Any]) -> dict[str, Any]:
        kernel = NUTS(_model, target_accept_prob=accept, init_strategy=init_to_uniform(radius=0.5))
        chain = MCMC(kernel, num_warmup=draws, num_samples=draws, progress_bar=False)
        chain.run(key, data, extra_fields=("diverging",))
        return {**chain.get_samples(), **chain.get_extra_fields()}

    compiled: Callable[..., Any] = jax.jit(run)
    return compiled
