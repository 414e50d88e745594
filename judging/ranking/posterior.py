"""The posterior density of a ranking's model, with its gradient: plain arithmetic on sparse tables.

The model is that of :mod:`judging.ranking.model`. Here it is written so that a sampler needs few and cheap steps:

- Identical verdicts (same judge, answer and truth) are one row with a weight.
- An effect with a single verdict is integrated out. A normal effect of standard deviation s adds s² to the noise's
  variance of 1, so that the probit of this verdict is divided by sqrt(1 + s²). This is exact.
- Effects are centred in part: effect = s^(1-c) * coordinate, with c near 1 where many verdicts tell about the effect
  (Papaspiliopoulos, Roberts and Sköld 2007).
- The coordinates of people and agents are the mean probits of the verdicts on their answers, in units of their noise.
  So other effects, integrated out or not, can move without moving these means.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from judging.statistics.jackknife import Codes, Floats

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
# Tables whose effects with a single verdict are integrated out. Judges and studies are not: their effects are printed.
INTEGRATED = ("stimuli", "speakers", "answers", "tastes")
INFORMATION = 2 / math.pi  # of a verdict about its probit, at 0
ROOT = math.sqrt(2 * math.pi)
Flags = NDArray[np.bool_]


class PosteriorDensity:
    """The log density of a task's model where a sampler moves, and the figures at a point.

    A position has the fixed effects ``others.bias`` and ``others.skill``, by how much the mean d' of all agents differs
    from the mean of these agents, the standard logarithms of all spreads, the mean probits of people's and of each
    agent's verdicts, and the coordinates of the effects."""

    def __init__(
        self, names: Mapping[str, Sequence[str]], levels: Mapping[str, Codes], says_machine: Flags, is_other: Flags
    ) -> None:
        """``names`` are the levels of each table, ``levels`` has which of them each verdict has (-1: none).

        By verdict ``says_machine`` tells what was said, ``is_other`` whether a classifier or a language model judged
        among people."""
        stack = np.stack([*levels.values(), says_machine, is_other])
        _, rows, number = np.unique(stack, axis=1, return_index=True, return_counts=True)
        is_single = {table: self._has_one(levels[table])[rows] for table in INTEGRATED}
        levels = {table: codes[rows] for table, codes in levels.items()}
        self._weight = number.astype(float)
        self._sign = np.where(says_machine[rows], 1.0, -1.0)
        self._group = levels[AGENTS] + 1  # people's answers are group 0, then the agents
        self._groups = len(names[AGENTS]) + 1
        self._of_group = np.bincount(self._group, self._weight, self._groups)
        x = (self._group > 0) - 0.5
        self._side = np.sign(x)
        self._other = is_other[rows].astype(float)
        self._x = x
        self._is_used = np.array([len(names[name.partition(".")[0]]) > 0 for name in SPREADS])

        columns = list[Codes]()
        which = list[Codes]()
        values = list[Floats]()
        spread_of = list[Codes]()
        self._places = dict[str, slice]()
        alone = np.zeros((len(SPREADS), len(rows)))
        size = 0
        for number_of_spread, name in enumerate(SPREADS):
            table, _, kind = name.partition(".")
            codes = levels[table]
            value = np.asarray(x if kind == "skill" else np.ones(len(x)), np.float64)
            has = codes >= 0
            if table in is_single:
                alone[number_of_spread] = (value * is_single[table]) ** 2
                has = has & ~is_single[table]
            kept, column = np.unique(codes[has], return_inverse=True)
            which.append(np.flatnonzero(has))
            columns.append(size + column)
            values.append(value[has])
            spread_of.append(np.full(len(kept), number_of_spread))
            self._places[name] = slice(size, size + len(kept))
            size += len(kept)
        shape = (len(rows), size)
        self._design = csr_array(
            (np.concatenate(values), (np.concatenate(which), np.concatenate(columns))), shape=shape
        )
        self._transposed = self._design.T.tocsr()
        self._spread_of = np.concatenate(spread_of)
        self._patterns, self._pattern = np.unique(alone.T, axis=0, return_inverse=True)
        members = (self._weight / self._of_group[self._group], (self._group, np.arange(len(rows))))
        of_groups = csr_array(members, shape=(self._groups, len(rows)))
        self._means = np.asarray((of_groups @ self._design).todense())  # of the effects' columns, in each group
        self._alone = np.asarray(of_groups @ alone.T)  # the mean of what is integrated out, by group and spread
        self._other_means = np.stack([of_groups @ self._other, of_groups @ (self._other * x)], axis=1)
        told = self._transposed.multiply(self._transposed) @ self._weight * INFORMATION
        told = told * np.exp(2 * LOG_MEDIANS[self._spread_of])
        self._centred = told / (1 + told)
        self._judges = np.unique(levels["judges"], return_index=True)[1]  # a row of each
        self._of_judges = {kind: self._sums_of_judges(kind) for kind in ("bias", "skill")}
        self._spreads = slice(3, 3 + len(LOG_MEDIANS))
        self._mean_probits = slice(self._spreads.stop, self._spreads.stop + self._groups)
        self._coordinates = slice(self._mean_probits.stop, self._mean_probits.stop + size)
        self.size = self._coordinates.stop
        """How many numbers a position has."""

    def _sums_of_judges(self, kind: str) -> csr_array:
        """What adds the effects of a ``kind`` of each judge and of the judge's study [judge, effect]."""
        is_of_judges = np.zeros(self._design.shape[1])
        for table in ("judges", "studies"):
            is_of_judges[self._places[f"{table}.{kind}"]] = 1
        return csr_array((self._design[self._judges] != 0).astype(float).multiply(is_of_judges[None, :]))

    @staticmethod
    def _has_one(codes: Codes) -> Flags:
        """Whether a verdict is the only one of its level."""
        return np.asarray((codes >= 0) & (np.bincount(codes + 1)[codes + 1] == 1))

    def start(self, seed: int) -> Floats:
        """A position to begin at, near the middle of the prior."""
        position = np.random.default_rng(seed).normal(0, 0.5, self.size)
        position[self._mean_probits] *= 0.2
        return position

    def log_density(self, position: Floats) -> tuple[float, Floats]:
        """The logarithm of the posterior density at ``position``, up to a constant, and its gradient."""
        others = position[:2]
        standard = position[self._spreads]
        probits = position[self._mean_probits]
        coordinates = position[self._coordinates]
        with np.errstate(all="ignore"):  # far away is infinite, and the sampler turns back
            logs = LOG_MEDIANS + LOG_SPREAD * standard
            variances = np.exp(2 * logs)
            of_effects = logs[self._spread_of]
            scale = np.exp((1 - self._centred) * of_effects)
            precision = np.exp(-2 * self._centred * of_effects)
            effects = coordinates * scale
            of_units = 1 + self._alone @ variances[:-1]
            units = np.sqrt(of_units)
            base = probits * units - self._means @ effects - self._other_means @ others
            probit = self._design @ effects + base[self._group]
            probit += self._other * (others[0] + others[1] * self._x)
            noise = 1 + self._patterns @ variances[:-1]
            factor = self._sign * (noise**-0.5)[self._pattern]
            standardised = probit * factor
            share = ndtr(standardised)
            slope = self._weight * np.exp(-standardised * standardised / 2) / (ROOT * share)
            pull = slope * factor

            # the prior of the intercept, base[0], and of the agents' d', which are base[1:] - base[0]
            mean = position[2] + base[1:].mean() - base[0]
            from_mean = base[1:] - base[0] - mean
            of_prior = from_mean / variances[-1]
            weighted = coordinates * precision
            density = (self._weight @ np.log(share)) - (coordinates @ weighted) / 2 - self._centred @ of_effects
            density -= (base[0] ** 2 + others @ others + mean**2 + standard @ standard) / 2
            density -= from_mean @ of_prior / 2 + len(from_mean) * logs[-1] - np.log(units).sum()

            of_mean = of_prior.sum() - mean
            of_base = np.bincount(self._group, pull, self._groups)
            of_base[1:] += of_mean / len(from_mean) - of_prior
            of_base[0] += of_prior.sum() - of_mean - base[0]
            of_effect = self._transposed @ pull - of_base @ self._means
            of_noise = np.bincount(self._pattern, slope * standardised, len(noise)) / noise
            of_logs = np.empty(len(logs))
            by_units = (of_base * probits * units + 1) / of_units
            of_logs[:-1] = variances[:-1] * (by_units @ self._alone - of_noise @ self._patterns)
            by_scale = (1 - self._centred) * of_effect * effects + self._centred * (coordinates * weighted - 1)
            of_logs[:-1] += np.bincount(self._spread_of, by_scale, len(SPREADS))
            of_logs[-1] = from_mean @ of_prior - len(from_mean)

            gradient = np.empty(self.size)
            of_others = pull * self._other
            gradient[:2] = [of_others.sum(), of_others @ self._x] - of_base @ self._other_means - others
            gradient[2] = of_mean
            gradient[self._spreads] = LOG_SPREAD * of_logs - standard
            gradient[self._mean_probits] = of_base * units
            gradient[self._coordinates] = of_effect * scale - weighted
        return float(density), gradient

    def figures(self, position: Floats, chance: np.random.Generator) -> dict[str, Floats]:
        """By name what is printed at a ``position``.

        There are ``humanness`` and ``detectability`` of each agent, ``skill`` and ``criterion`` of each judge, and
        ``right``, the expected share of right verdicts on people's answers and on each agent's.

        Effects that were integrated out are drawn by ``chance``, given what was said."""
        others = position[:2]
        logs = LOG_MEDIANS + LOG_SPREAD * position[self._spreads]
        spreads = np.exp(logs)
        coordinates = position[self._coordinates]
        effects = coordinates * np.exp((1 - self._centred) * logs[self._spread_of])
        units = np.sqrt(1 + self._alone @ spreads[:-1] ** 2)
        base = position[self._mean_probits] * units - self._means @ effects - self._other_means @ others
        probit = self._design @ effects + base[self._group] + self._other * (others[0] + others[1] * self._x)

        added = (self._patterns @ spreads[:-1] ** 2)[self._pattern]
        deviation = np.sqrt(1 + added)
        side = self._sign
        share = ndtr(side * probit / deviation)
        latent = -side * deviation * ndtri((1 - chance.random(len(share))) * share)  # the noise that led to the verdict
        shift = added / (1 + added) * latent + np.sqrt(added / (1 + added)) * chance.normal(size=len(share))
        right = ndtr(self._side * (probit + np.where(added > 0, shift, 0)))
        right = np.bincount(self._group, right * self._weight, self._groups) / self._of_group

        # As all judges together see an agent: a normal variable of all that differs adds its variance to the noise's 1.
        variance = defaultdict[str, float](float)
        for name, spread, is_used in zip(SPREADS, spreads[:-1], self._is_used, strict=True):
            if is_used:
                variance[name] = float(spread / 2 if name.endswith(".skill") else spread) ** 2
        intercept = base[0]
        mean = position[2] + base[1:].mean() - base[0]
        noise = 1 + variance["stimuli.bias"] + variance["stimuli.skill"] + variance["answers.bias"]
        judges = sum(variance[f"{table}.{kind}"] for table in ("judges", "studies") for kind in ("bias", "skill"))
        of_people = noise + variance["speakers.bias"]
        of_machines = noise + variance["tastes.taste"]
        z_human = intercept / math.sqrt(of_people + judges)
        z_machine = base[1:] / math.sqrt(of_machines + judges)
        bias = self._of_judges["bias"] @ effects + self._other[self._judges] * others[0]
        skill = self._of_judges["skill"] @ effects + self._other[self._judges] * others[1]
        human = (intercept + bias - skill / 2) / math.sqrt(of_people)
        machine = (intercept + mean + bias + skill / 2) / math.sqrt(of_machines + spreads[-1] ** 2)
        return {
            "humanness": z_human - z_machine,
            "detectability": (ndtr(z_machine) + ndtr(-z_human)) / 2,
            "skill": machine - human,
            "criterion": -(machine + human) / 2,
            "right": right,
        }
