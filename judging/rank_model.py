"""Judges and agents on a common scale: signal detection as a probit mixed model with crossed random effects.

The probit of "machine" is, with x = -1/2 for a person's answer and 1/2 for an agent's,

    intercept + bias (judge, stimulus, speaker, answer) + x * skill (judge, stimulus) + [d' of the agent + taste]

(DeCarlo 1998; Rouder et al. 2007; Wright, Horry and Skagerberg 2009). A speaker is a person who answered, an answer
what an agent or person has for a stimulus, a taste what a judge has for an agent. People who judge are drawn around
the mean of their study, a folder of verdicts; where people judge, classifiers and language models have another mean.
All spreads are estimated, with log-normal priors: of how studies differ a single study says nothing, the prior does.

NumPyro (Phan, Pradhan and Jankowiak 2019; Apache-2.0) samples by NUTS (Hoffman and Gelman 2014). statsmodels has no
maximum likelihood for crossed binary effects; PyMC and Bambi want a C compiler for the same speed.
"""

from __future__ import annotations

import os
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
from jax.scipy.special import log_ndtr
from jax.scipy.special import ndtr as jax_ndtr
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.distributions import Normal
from numpyro.infer import MCMC, NUTS, init_to_uniform
from scipy.special import ndtr

from judging.jackknife import Codes, Floats
from judging.measures import NAMELESS

if TYPE_CHECKING:
    import pandas as pd

# Effects drawn around 0, and the medians of their spreads; 95 % of a spread's prior is within four times that.
SPREADS = {"judges.bias": 0.4, "judges.skill": 0.25, "stimuli.bias": 0.25, "stimuli.skill": 0.25, "speakers.bias": 0.25,
           "answers.bias": 0.25, "tastes.taste": 0.25, "studies.bias": 0.15, "studies.skill": 0.15}  # fmt: skip
AGENTS, OF_AGENTS = "agents", 0.5  # d', drawn around their mean, and the median of their spread
LOG_MEDIANS, LOG_SPREAD = np.log([*SPREADS.values(), OF_AGENTS]), 0.7
FIXED = ("intercept", "others.bias", "others.skill", "agents.mean")  # others: classifiers and language models
CHAINS = 4
TRIES = (750, 0.9), (1500, 0.95)  # draws of a chain, as many to adapt before, and the rate of acceptance
RHAT, ESS, DIVERGENT = 1.01, 400, 0.005  # limits of the figures (Vehtari et al. 2021), and a share of all draws


@dataclass(frozen=True, slots=True)
class Fit:
    """Draws [draw, agent or judge]; ``right`` is the expected share of right verdicts, on people's answers first."""

    agents: Sequence[str]
    judges: Sequence[str]
    humanness: Floats
    detectability: Floats
    skill: Floats
    criterion: Floats
    right: Floats
    rhat: float
    ess: float
    divergent: int
    draws: int

    @property
    def is_converged(self) -> bool:
        return self.rhat <= RHAT and self.ess >= ESS and self.divergent <= DIVERGENT * self.draws


def fit(verdicts: pd.DataFrame, tries: Sequence[tuple[int, float]] = TRIES, chains: int = CHAINS) -> Fit:
    """Of a task's verdicts on single answers; the same draws each time. The next of ``tries`` follows where one has not
    converged; the last is returned."""
    names, levels = _levels(verdicts)
    is_machine, of_people = (verdicts["truth"] == "machine").to_numpy(), (verdicts["judge_kind"] == "human").to_numpy()
    data = {
        "says": np.where(verdicts["verdict"] == "machine", 1.0, -1.0),
        "x": is_machine - 0.5,
        "is_other": ~of_people & of_people.any(),  # as the reference is people, if any judge
        "levels": levels,
        "zeros": {table: np.zeros(len(of_table)) for table, of_table in names.items()},
        "number": np.bincount(levels[AGENTS] + 1, minlength=len(names[AGENTS]) + 1),
    }
    for draws, accept in tries:
        chain, keys = _chain(draws, accept), jax.random.split(jax.random.PRNGKey(0), chains)
        with ThreadPoolExecutor(min(chains, os.cpu_count() or 1)) as threads:
            of_chains = [*threads.map(jax.device_get, threads.map(chain, keys, repeat(data)))]
        samples = {name: np.stack([of[name] for of in of_chains]) for name in of_chains[0]}
        result = _summary(names, data, samples)
        if result.is_converged:
            break
    return result


def _levels(verdicts: pd.DataFrame) -> tuple[dict[str, list[str]], dict[str, Codes]]:
    """The names of the levels of each table, and which each verdict has; -1 of none."""
    import pandas as pd

    is_machine, is_nameless = verdicts["truth"] == "machine", verdicts["agent"].isin(NAMELESS)
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
    fixed = numpyro.sample("fixed", Normal().expand([len(FIXED)]).to_event(1))
    standard = numpyro.sample("spreads", Normal().expand([len(LOG_MEDIANS)]).to_event(1))
    probit = fixed[0] + data["is_other"] * (fixed[1] + data["x"] * fixed[2])
    for at, name in enumerate([*SPREADS, AGENTS]):
        table, _, kind = name.partition(".")
        if size := len(data["zeros"][table]):
            spread = jnp.exp(LOG_MEDIANS[at] + LOG_SPREAD * standard[at])
            around = Normal(fixed[3], spread) if table == AGENTS else Normal()
            effects = numpyro.sample(name, around.expand([size]).to_event(1)) * (1 if table == AGENTS else spread)
            padded = jnp.concatenate([effects, jnp.zeros(1)])
            probit += padded[data["levels"][table]] * (data["x"] if kind == "skill" else 1)
    numpyro.factor("verdicts", log_ndtr(data["says"] * probit).sum())
    right = jax_ndtr(jnp.sign(data["x"]) * probit)
    shares = jax.ops.segment_sum(right, data["levels"][AGENTS] + 1, len(data["number"])) / data["number"]
    numpyro.deterministic("right", shares)


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


def _summary(names: Mapping[str, Sequence[str]], data: Mapping[str, Any], samples: Mapping[str, Floats]) -> Fit:
    """``samples`` are [chain, draw, number]."""
    logarithms = LOG_MEDIANS + LOG_SPREAD * samples["spreads"]
    spreads = {name: np.exp(logarithms[..., at, None]) for at, name in enumerate([*SPREADS, AGENTS])}
    variance = {name: of**2 * (name in samples) / (4 if "skill" in name else 1) for name, of in spreads.items()}
    intercept, other_bias, other_skill, mean = np.moveaxis(samples["fixed"][..., None], 2, 0)
    # As all judges together see an agent: a normal variable of all that differs adds its variance to the noise's 1.
    either = 1 + sum(variance[name] for name in SPREADS if name not in ("speakers.bias", "tastes.taste"))
    of_people, of_machines = np.sqrt(either + variance["speakers.bias"]), np.sqrt(either + variance["tastes.taste"])
    z_machine, z_human = (intercept + samples[AGENTS]) / of_machines, intercept / of_people
    first = np.unique(data["levels"]["judges"], return_index=True)[1]  # a verdict of each judge

    def of_judges(kind: str, other: Floats) -> Floats:
        total = data["is_other"][first] * other
        for table in ("judges", "studies"):
            if (name := f"{table}.{kind}") in samples:
                effects = np.append(spreads[name] * samples[name], np.zeros((*samples[name].shape[:2], 1)), axis=2)
                total = total + effects[..., data["levels"][table][first]]
        return np.asarray(total)

    bias, skill = of_judges("bias", other_bias), mean + of_judges("skill", other_skill)
    noise = 1 + sum(variance[name] for name in ("stimuli.bias", "stimuli.skill", "answers.bias"))
    machine = (intercept + bias + (mean + skill) / 2) / np.sqrt(noise + variance["tastes.taste"] + variance[AGENTS])
    human = (intercept + bias + (mean - skill) / 2) / np.sqrt(noise + variance["speakers.bias"])
    figures = [z_human - z_machine, machine - human, -(machine + human) / 2]
    checked, flat = np.concatenate(figures, axis=2), (intercept.size, -1)
    humanness, skills, criterion = (figure.reshape(flat) for figure in figures)
    detectability = ((ndtr(z_machine) + ndtr(-z_human)) / 2).reshape(flat)
    rhat, ess = float(np.max(split_gelman_rubin(checked))), float(np.min(effective_sample_size(checked)))
    return Fit(names[AGENTS], names["judges"], humanness, detectability, skills, criterion,
               samples["right"].reshape(flat), rhat, ess, int(samples["diverging"].sum()), intercept.size)  # fmt: skip
