"""The posterior density of a ranking's model, with its gradient.

The model is that of :mod:`judging.ranking.model`. Here it is written so that a sampler needs few and cheap steps:

- Identical verdicts (same judge, answer and truth) are one row with a weight.
- An effect with a single verdict is integrated out. A normal effect of standard deviation s adds s² to the noise's
  variance of 1, so that the probit of this verdict is divided by sqrt(1 + s²). This is exact.
- Effects are centred in part: effect = s^(1-c) * coordinate, with c near 1 where many verdicts tell about the effect
  (Papaspiliopoulos, Roberts and Sköld 2007).
- A judge, stimulus or study has two effects. If most of its verdicts are on answers of one kind, these tell only a sum
  of the two. So their coordinates are the mean effect on its verdicts, and its skill beyond what this mean lets expect.
- The coordinates of people and agents are the mean probits of the verdicts on their answers, in units of their noise.
  So other effects, integrated out or not, can move without moving these means.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from judging.ranking.verdict_rows import by_effects, likelihood, probits
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
# Tables whose effects with a single verdict are integrated out. Judges and studies are not: their effects are printed.
INTEGRATED = ("stimuli", "speakers", "answers", "tastes")
PAIRED = tuple(name.removesuffix(".skill") for name in SPREADS if name.endswith(".skill"))  # with a bias and a skill
INFORMATION = 2 / math.pi  # of a verdict about its probit, at 0
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
        x = np.where(self._group > 0, 0.5, -0.5)
        self._side = np.sign(x)
        self._is_used = np.array([len(names[name.partition(".")[0]]) > 0 for name in SPREADS])

        columns = list[Codes]()
        which = list[Codes]()
        values = list[Floats]()
        leans = list[Floats]()
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
            value = value[has]
            if kind == "skill":
                weight = self._weight[has]
                lean = np.bincount(column, weight * value, len(kept)) / np.bincount(column, weight, len(kept))
                value = value - lean[column]
                leans.append(lean)
            which.append(np.flatnonzero(has))
            columns.append(size + column)
            values.append(value)
            spread_of.append(np.full(len(kept), number_of_spread))
            self._places[name] = slice(size, size + len(kept))
            size += len(kept)
        self._spread_of = np.concatenate(spread_of)
        self._lean = np.concatenate(leans)  # the mean x of each judge's, stimulus's and study's verdicts
        self._biases = self._columns_of([f"{table}.bias" for table in PAIRED])
        self._skills = self._columns_of([f"{table}.skill" for table in PAIRED])
        others = np.flatnonzero(is_other[rows])
        for last, (kind, of_kind) in enumerate((("bias", np.ones(len(x))), ("skill", x)), start=size):
            which.append(others)
            columns.append(np.full(len(others), last))
            values.append(of_kind[others])
            self._places[f"others.{kind}"] = slice(last, last + 1)
        entries = (np.concatenate(values), (np.concatenate(which), np.concatenate(columns)))
        self._design = csr_array(entries, shape=(len(rows), size + 2))  # of verdicts by effects, the others' at last
        self._patterns, self._pattern = np.unique(alone.T, axis=0, return_inverse=True)
        self._share = self._weight / self._of_group[self._group]  # of the verdicts of its group
        members = csr_array((self._share, (self._group, np.arange(len(rows)))), shape=(self._groups, len(rows)))
        self._alone = np.asarray(members @ alone.T)  # the mean of what is integrated out, by group and spread
        told = self._design.multiply(self._design).T[:size] @ self._weight * INFORMATION
        told = told * np.exp(2 * self._log_scales(LOG_MEDIANS)[0])
        self._centred = told / (1 + told)
        judges = np.unique(levels["judges"], return_index=True)[1]  # a verdict of each
        of_judges = self._design[judges]
        structure = csr_array((np.ones(of_judges.nnz), of_judges.indices, of_judges.indptr), shape=of_judges.shape)
        self._x_of_judges = x[judges]
        self._probits_of_judges = csr_array(of_judges.multiply(self._are_of_judges("bias", "skill")[None, :]))
        self._skills_of_judges = csr_array(structure.multiply(self._are_of_judges("skill")[None, :]))
        self._spreads = slice(3, 3 + len(LOG_MEDIANS))
        self._mean_probits = slice(self._spreads.stop, self._spreads.stop + self._groups)
        self._coordinates = slice(self._mean_probits.stop, self._mean_probits.stop + size)
        self.size = self._coordinates.stop
        """How many numbers a position has."""

    def _are_of_judges(self, *kinds: str) -> Floats:
        """1 for effects of ``kinds`` of judges and of their studies and kind, 0 for others."""
        are = np.zeros(self._design.shape[1])
        for table, kind in product(("judges", "studies", "others"), kinds):
            are[self._places[f"{table}.{kind}"]] = 1
        return are

    def _columns_of(self, names: Sequence[str]) -> Codes:
        """The columns of the effects of ``names``, in their order."""
        return np.concatenate([np.arange(place.start, place.stop) for place in (self._places[name] for name in names)])

    @staticmethod
    def _has_one(codes: Codes) -> Flags:
        """Whether a verdict is the only one of its level."""
        return np.asarray((codes >= 0) & (np.bincount(codes + 1)[codes + 1] == 1))

    def start(self, seed: int) -> Floats:
        """A position to begin at, near the middle of the prior."""
        position = np.random.default_rng(seed).normal(0, 0.5, self.size)
        position[self._mean_probits] *= 0.2
        return position

    def _log_scales(self, logs: Floats) -> tuple[Floats, Floats, Floats]:
        """The logarithm of each coordinate's standard deviation, given the logarithms of the spreads.

        Also for each pair of bias and skill: the share of the bias in the variance of the mean effect, and the skill
        that is expected for each unit of the mean effect."""
        of_effects = logs[self._spread_of]
        ratio = np.exp(2 * (of_effects[self._skills] - of_effects[self._biases]))
        of_bias = 1 / (1 + self._lean**2 * ratio)
        of_effects[self._biases] -= np.log(of_bias) / 2
        of_effects[self._skills] += np.log(of_bias) / 2
        return of_effects, of_bias, self._lean * ratio * of_bias

    def _effects(self, scaled: Floats, expected: Floats, others: Floats) -> Floats:
        """The effects by which the design is multiplied, of coordinates in units of probits."""
        effects = np.concatenate([scaled, others])
        effects[self._skills] += expected * effects[self._biases]
        return effects

    def _probits(self, effects: Floats) -> tuple[Floats, Floats]:
        """The sum of each verdict's ``effects``, and their mean in each group."""
        design = self._design
        return probits(design.indptr, design.indices, design.data, effects, self._group, self._share, self._groups)

    def log_density(self, position: Floats) -> tuple[float, Floats]:
        """The logarithm of the posterior density at ``position``, up to a constant, and its gradient."""
        others = position[:2]
        standard = position[self._spreads]
        mean_probits = position[self._mean_probits]
        coordinates = position[self._coordinates]
        with np.errstate(all="ignore"):  # far away is infinite, and the sampler turns back
            logs = LOG_MEDIANS + LOG_SPREAD * standard
            variances = np.exp(2 * logs)
            of_effects, of_bias, expected = self._log_scales(logs)
            scale = np.exp((1 - self._centred) * of_effects)
            precision = np.exp(-2 * self._centred * of_effects)
            effects = self._effects(coordinates * scale, expected, others)
            of_units = 1 + self._alone @ variances[:-1]
            units = np.sqrt(of_units)
            sums, means = self._probits(effects)
            base = mean_probits * units - means
            noise = 1 + self._patterns @ variances[:-1]
            density, of_sums, of_base, of_deviation = likelihood(
                sums, base, self._group, np.sqrt(noise), self._pattern, self._sign, self._weight
            )

            # the prior of the intercept, base[0], and of the agents' d', which are base[1:] - base[0]
            mean = position[2] + base[1:].mean() - base[0]
            from_mean = base[1:] - base[0] - mean
            of_prior = from_mean / variances[-1]
            weighted = coordinates * precision
            density -= (coordinates @ weighted) / 2 + self._centred @ of_effects
            density -= (base[0] ** 2 + others @ others + mean**2 + standard @ standard) / 2
            density -= from_mean @ of_prior / 2 + len(from_mean) * logs[-1] - np.log(units).sum()

            of_mean = of_prior.sum() - mean
            of_base[1:] += of_mean / len(from_mean) - of_prior
            of_base[0] += of_prior.sum() - of_mean - base[0]
            design = self._design
            of_each = by_effects(
                design.indptr, design.indices, design.data, len(effects), of_sums, -of_base, self._group, self._share
            )
            of_skills = of_each[self._skills]
            of_each[self._biases] += expected * of_skills
            of_coordinates = of_each[:-2] * scale
            of_logs = np.empty(len(logs))
            by_units = (of_base * mean_probits * units + 1) / of_units
            of_logs[:-1] = variances[:-1] * (by_units @ self._alone + (of_deviation / noise) @ self._patterns)
            by_scale = (1 - self._centred) * of_coordinates * coordinates + self._centred * (coordinates * weighted - 1)
            of_logs[:-1] += np.bincount(self._spread_of, by_scale, len(SPREADS))
            of_ratio = (by_scale[self._skills] - by_scale[self._biases]) * (1 - of_bias)
            of_ratio -= 2 * expected * of_bias * of_skills * effects[self._biases]
            of_logs[:-1] += np.bincount(self._spread_of[self._biases], of_ratio, len(SPREADS))
            of_logs[:-1] -= np.bincount(self._spread_of[self._skills], of_ratio, len(SPREADS))
            of_logs[-1] = from_mean @ of_prior - len(from_mean)

            gradient = np.empty(self.size)
            gradient[:2] = of_each[-2:] - others
            gradient[2] = of_mean
            gradient[self._spreads] = LOG_SPREAD * of_logs - standard
            gradient[self._mean_probits] = of_base * units
            gradient[self._coordinates] = of_coordinates - weighted
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
        of_effects, _, expected = self._log_scales(logs)
        effects = self._effects(coordinates * np.exp((1 - self._centred) * of_effects), expected, others)
        units = np.sqrt(1 + self._alone @ spreads[:-1] ** 2)
        sums, means = self._probits(effects)
        base = position[self._mean_probits] * units - means
        probit = sums + base[self._group]

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
        skill = self._skills_of_judges @ effects
        bias = self._probits_of_judges @ effects - self._x_of_judges * skill
        human = (intercept + bias - skill / 2) / math.sqrt(of_people)
        machine = (intercept + mean + bias + skill / 2) / math.sqrt(of_machines + spreads[-1] ** 2)
        return {
            "humanness": z_human - z_machine,
            "detectability": (ndtr(z_machine) + ndtr(-z_human)) / 2,
            "skill": machine - human,
            "criterion": -(machine + human) / 2,
            "right": right,
        }
