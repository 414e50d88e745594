"""Judges and agents on a common scale: signal detection as a probit mixed model with crossed random effects.

The probit of "machine" is, with x = -1/2 for a person's answer and 1/2 for an agent's,

    intercept + bias (judge, stimulus, speaker, answer) + x * skill (judge, stimulus) + [d' of the agent + taste]

(DeCarlo 1998; Rouder et al. 2007; Wright, Horry and Skagerberg 2009). A speaker is a person who answered, an answer
what an agent or person has for a stimulus, a taste what a judge has for an agent. People who judge are drawn around
the mean of their study, where there are several folders of verdicts; judges of the other kind than the ``reference``
(people, where people judge) have another mean. All spreads are estimated, with log-normal priors: so a posterior is
nearly normal and can be the prior of the next ranking.

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
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.distributions import Normal
from numpyro.infer import MCMC, NUTS, init_to_uniform
from scipy.special import ndtr

from judging.jackknife import Codes, Floats
from judging.measures import NAMELESS

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
    "studies.bias": 0.25,
    "studies.skill": 0.25,
}
# agents.mean is their mean d', others.… how judges of the other kind differ; then come logarithms of spreads.
LINEAR = ("intercept", "others.bias", "others.skill", "agents.mean")
FIXED = (*LINEAR, *SPREADS, "agents.spread")
AT = {name: at for at, name in enumerate(FIXED)}
SPREAD_OF_AGENTS, LOG_SPREAD = 0.5, 0.7
CHAINS = 4
TRIES = (750, 0.9), (1500, 0.95)  # draws of a chain, as many to adapt before, and the rate of acceptance
RHAT, ESS, DIVERGENT = 1.01, 400, 0.005  # limits of the figures (Vehtari et al. 2021), and a share of all draws
REPLICATED = 200  # draws that verdicts are drawn anew by


@dataclass(frozen=True, slots=True)
class Design:
    """``names`` are the levels of each table, and the agents. ``rows`` has for each verdict what it ``says`` (1:
    machine, -1: human) and the weights of the fixed (``linear``) and, with their numbers (``index``), of its effects
    and agent. ``known`` is what an earlier fit says: mean, deviation, and how effects go with the fixed (``on``)."""

    names: dict[str, list[str]]
    rows: dict[str, Any]
    known: dict[str, Any]
    is_machine: Any  # the answer, by verdict
    of_judges: Codes  # [judge, number of bias, skill, and of its study]
    is_other: Any  # by judge
    old: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fit:
    """Draws [draw, agent or judge]; ``right`` is the share of right verdicts drawn anew, on people's answers first."""

    names: dict[str, list[str]]
    humanness: Floats
    detectability: Floats
    skill: Floats
    criterion: Floats
    right: Floats
    rhat: float
    ess: float
    divergent: int
    draws: int
    posterior: dict[str, Any]

    @property
    def is_converged(self) -> bool:
        return self.rhat <= RHAT and self.ess >= ESS and self.divergent <= DIVERGENT * self.draws


def design(verdicts: pd.DataFrame, prior: Mapping[str, Any] | None = None) -> Design:
    """Of a task's ``verdicts`` on single answers; ``prior`` is the ``posterior`` of an earlier fit."""
    import pandas as pd

    of_people = (verdicts["judge_kind"] == "human").to_numpy()
    reference = "people" if of_people.any() else "machines"
    old = prior or {"reference": reference, "names": [*FIXED], "effects": {}}
    is_machine = (verdicts["truth"] == "machine").to_numpy()
    is_nameless = verdicts["agent"].isin(NAMELESS)
    whose = verdicts["agent"].where(~is_nameless, verdicts["trial"].map("trial {}".format))
    folders = verdicts["folder"].where(of_people & ~verdicts["judge"].isin(old["effects"].get("judges.bias", {})))
    studies = folders.groupby(verdicts["judge"]).transform("first")
    columns = {
        "judges": verdicts["judge"],
        "stimuli": verdicts["stimulus"],
        "speakers": verdicts["agent"].where(~is_machine & ~is_nameless),
        "answers": whose + " | " + verdicts["stimulus"],
        "tastes": (verdicts["judge"] + " | " + verdicts["agent"]).where(is_machine),
        "studies": studies if folders.nunique() > 1 else studies.mask(studies.notna()),
    }
    levels = {table: pd.factorize(column, sort=True) for table, column in columns.items()}
    names = {table: list(map(str, of_table)) for table, (_, of_table) in levels.items()}
    before = old["names"][len(FIXED) :]
    names["agents"] = [*before, *sorted(set(verdicts["agent"][is_machine]) - set(before))]
    agents = pd.Categorical(verdicts["agent"].where(is_machine), categories=names["agents"]).codes.astype(np.int64)
    x = is_machine - 0.5
    weights = {"bias": np.ones_like(x), "skill": x, "taste": np.ones_like(x)}
    effects = [(name, level) for name in SPREADS for level in names[name.split(".")[0]]]
    last = len(effects) + len(names["agents"])  # the number of nothing
    start, index = dict[str, int](), []
    for name in SPREADS:
        codes, _ = levels[name.split(".")[0]]
        start[name] = sum(len(names[other.split(".")[0]]) for other in start)
        index.append(np.where(codes >= 0, start[name] + codes, last))
    index.append(np.where(agents >= 0, len(effects) + agents, last))
    is_other = of_people != (old["reference"] == "people")
    first = np.unique(levels["judges"][0], return_index=True)[1]
    of_judges = np.array([index[[*SPREADS].index(f"{table}.{column}")][first]
                          for table in ("judges", "studies") for column in ("bias", "skill")]).T  # fmt: skip
    rows = {
        "says": np.where(verdicts["verdict"] == "machine", 1.0, -1.0),
        "linear": np.array([np.ones_like(x), is_other, is_other * x]).T,
        "index": np.array(index).T,
        "times": np.array([*(weights[name.split(".")[1]] for name in SPREADS), np.ones_like(x)]).T,
    }
    known = _known(prior, effects, len(names["agents"]) - len(before))
    return Design(names, rows, known, is_machine, of_judges, is_other[first], old)


def _known(prior: Mapping[str, Any] | None, effects: list[tuple[str, str]], new: int) -> dict[str, Any]:
    spread_of = [[*SPREADS].index(name) for name, _ in effects]
    shared = {"spread_of": np.array(spread_of, dtype=np.int64), "new": np.zeros(new)}
    if prior is None:
        medians = np.log([*SPREADS.values(), SPREAD_OF_AGENTS])
        mean = np.concatenate([np.zeros(len(LINEAR)), medians])
        return shared | {"fixed": mean, "root": np.diag([1.0] * len(LINEAR) + [LOG_SPREAD] * len(medians))}
    size = len(prior["names"])
    levels = [prior["effects"].get(name, {}).get(level) for name, level in effects]
    table = np.array([level or [0.0] * (2 + size) for level in levels]).reshape(len(effects), 2 + size)
    root = np.linalg.cholesky(np.array(prior["covariance"]) + 1e-9 * np.eye(size))
    is_known = np.array([level is not None for level in levels], dtype=bool)
    of_effects = {"is_known": is_known, "mean": table[:, 0], "deviation": table[:, 1], "on": table[:, 2:]}
    return shared | of_effects | {"fixed": np.array(prior["mean"]), "root": root}


def _model(rows: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    shift = known["root"] @ numpyro.sample("fixed.standard", Normal().expand([len(known["fixed"])]).to_event(1))
    fixed = known["fixed"] + shift
    spreads = jnp.exp(fixed[len(LINEAR) : len(FIXED)])
    around = Normal(fixed[AT["agents.mean"]], spreads[-1])
    new = numpyro.sample("new", around.expand(known["new"].shape).to_event(1))
    standard = numpyro.sample("standard", Normal().expand(known["spread_of"].shape).to_event(1))
    effects = spreads[known["spread_of"]] * standard
    if "is_known" in known:
        expected = known["mean"] + known["on"] @ shift
        effects = jnp.where(known["is_known"], expected + known["deviation"] * standard, effects)
    numpyro.deterministic("fixed", jnp.concatenate([fixed, new]))
    numpyro.deterministic("effects", effects)
    every = jnp.concatenate([effects, fixed[len(FIXED) :], new, jnp.zeros(1)])
    probit = rows["linear"] @ fixed[:3] + (every[rows["index"]] * rows["times"]).sum(axis=1)
    numpyro.factor("verdicts", jnp.log(jax.lax.erfc(-rows["says"] * probit / np.sqrt(2)) / 2).sum())


@cache
def _sampler(draws: int, accept: float) -> Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]:
    """Of one chain; compiled for all data of the same shapes."""
    numpyro.enable_x64()

    def run(key: Any, rows: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
        kernel = NUTS(_model, target_accept_prob=accept, init_strategy=init_to_uniform(radius=0.5))
        chain = MCMC(kernel, num_warmup=draws, num_samples=draws, progress_bar=False)
        chain.run(key, rows, known, extra_fields=("diverging",))
        samples = chain.get_samples()
        return samples["fixed"], samples["effects"], chain.get_extra_fields()["diverging"]

    sampler: Callable[..., Any] = jax.jit(run)
    return sampler


def fit(data: Design, tries: Sequence[tuple[int, float]] = TRIES, chains: int = CHAINS) -> Fit:
    """The same draws each time. The next of ``tries`` follows where one has not converged; the last is returned."""
    for draws, accept in tries:
        chain, keys = _sampler(draws, accept), jax.random.split(jax.random.PRNGKey(0), chains)
        with ThreadPoolExecutor(min(chains, os.cpu_count() or 1)) as threads:
            of_chains = [*threads.map(jax.device_get, threads.map(chain, keys, repeat(data.rows), repeat(data.known)))]
        fixed, effects, divergent = map(np.stack, zip(*of_chains, strict=True))
        result = _summary(data, fixed, effects, int(divergent.sum()))
        if result.is_converged:
            break
    return result


def _summary(data: Design, fixed: Floats, effects: Floats, divergent: int) -> Fit:
    """``fixed`` and ``effects`` are [chain, draw, number]."""
    chains, draws = fixed.shape[:2]
    of_table = {name: data.names[name.split(".")[0]] or data.old["effects"].get(name) for name in SPREADS}
    variance = {name: np.exp(2 * fixed[..., AT[name], None]) * bool(of_table[name]) for name in SPREADS}
    variance |= {name: variance[name] / 4 for name in SPREADS if name.endswith("skill")}  # x is a half
    of_agents = np.exp(2 * fixed[..., AT["agents.spread"], None])
    intercept, mean, dprime = fixed[..., :1], fixed[..., AT["agents.mean"], None], fixed[..., len(FIXED) :]
    # As all judges together see an agent: a normal variable of all that differs adds its variance to the noise's 1.
    either = 1 + sum(variance[name] for name in SPREADS if name not in ("speakers.bias", "tastes.taste"))
    of_people, of_machines = np.sqrt(either + variance["speakers.bias"]), np.sqrt(either + variance["tastes.taste"])
    z_machine, z_human = (intercept + dprime) / of_machines, intercept / of_people
    padded = np.concatenate([effects, np.zeros((chains, draws, 1))], axis=-1)
    bias, skill, *of_study = np.moveaxis(padded[..., np.minimum(data.of_judges, effects.shape[-1])], -1, 0)
    with_study = {"judges.bias": bias + of_study[0], "judges.skill": skill + of_study[1]}
    bias = with_study["judges.bias"] + data.is_other * fixed[..., AT["others.bias"], None]
    skill = mean + with_study["judges.skill"] + data.is_other * fixed[..., AT["others.skill"], None]
    noise = 1 + sum(variance[name] for name in ("stimuli.bias", "stimuli.skill", "answers.bias"))
    machine = (intercept + bias + (mean + skill) / 2) / np.sqrt(noise + variance["tastes.taste"] + of_agents)
    human = (intercept + bias + (mean - skill) / 2) / np.sqrt(noise + variance["speakers.bias"])
    figures = [z_human - z_machine, machine - human, -(machine + human) / 2]
    checked = np.concatenate(figures, axis=-1)
    humanness, skills, criterion = (figure.reshape(chains * draws, -1) for figure in figures)
    return Fit(
        data.names,
        humanness,
        ((ndtr(z_machine) + ndtr(-z_human)) / 2).reshape(chains * draws, -1),
        skills,
        criterion,
        _replicated(data, _flat(fixed), _flat(effects)),
        float(np.max(split_gelman_rubin(checked))),
        float(np.min(effective_sample_size(checked))),
        divergent,
        chains * draws,
        _posterior(data, _flat(fixed), _flat(effects), {name: _flat(values) for name, values in with_study.items()}),
    )


def _flat(values: Floats) -> Floats:
    return values.reshape(-1, values.shape[-1])


def _replicated(data: Design, fixed: Floats, effects: Floats) -> Floats:
    """Shares of right verdicts, drawn anew on the same trials by the same judges."""
    chance, rows = np.random.default_rng(0), data.rows
    of = np.where(data.is_machine, rows["index"][:, -1] - effects.shape[1] + 1, 0)
    number = np.bincount(of, minlength=len(data.names["agents"]) + 1)
    shares = []
    for at in np.linspace(0, len(fixed) - 1, REPLICATED).astype(int):
        every = np.concatenate([effects[at], fixed[at, len(FIXED) :], [0.0]])
        probit = rows["linear"] @ fixed[at, :3] + (every[rows["index"]] * rows["times"]).sum(axis=1)
        right = chance.random(len(of)) < ndtr(np.where(data.is_machine, probit, -probit))
        shares.append(np.bincount(of, right, len(number)) / np.maximum(number, 1))
    return np.array(shares)


def _posterior(data: Design, fixed: Floats, effects: Floats, with_study: Mapping[str, Floats]) -> dict[str, Any]:
    """The fixed and agents as normal with their covariance; each effect as linear in them, with a normal rest. Effects
    without new verdicts move with the fixed as they did."""
    mean, names = fixed.mean(axis=0), [*FIXED, *data.names["agents"]]
    around = fixed - mean
    kept: dict[str, dict[str, list[float]]] = {}
    start = 0
    for name in SPREADS:
        levels = data.names[name.split(".")[0]]
        values = with_study.get(name, effects[:, start : start + len(levels)])
        start += len(levels)
        if not name.startswith("studies"):
            of_levels = values.mean(axis=0)
            on = np.linalg.lstsq(around, values - of_levels, rcond=None)[0]
            rest = (values - of_levels - around @ on).std(axis=0)
            kept[name] = dict(zip(levels, np.vstack([of_levels, rest, on]).T.round(5).tolist(), strict=True))
            moved = mean[: len(data.old["names"])] - data.old.get("mean", 0)
            for level, (value, deviation, *slopes) in data.old["effects"].get(name, {}).items():
                unseen = [value + float(moved @ slopes), deviation, *slopes, *[0.0] * (len(names) - len(slopes))]
                kept[name].setdefault(level, unseen)
    covariance = np.cov(fixed.T)
    about = {"reference": data.old["reference"], "names": names, "mean": mean.tolist()}
    return about | {"covariance": covariance.tolist(), "effects": kept}
