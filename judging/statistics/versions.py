"""Changes of detectability between versions of the same answers: how they are added up from a judge's verdicts.

A *version* is named by what was taken away of answers: "case+length" has neither case nor length, "" is an answer as
drawn, and "plant:length" gives machines participants' lengths. Judges may see all versions of an answer, as classifiers
do, which are retrained on each, and language models; or each stimulus in a single version, as people do. Both go one
way here: verdicts on several versions share judges and stimuli, and so their errors are taken off each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from judging.statistics.crossed import Crossed, crossed, unseen
from judging.statistics.flips import flips
from judging.statistics.jackknife import Clusters, Codes, Floats
from judging.statistics.measures import clusters
from judging.statistics.training import coupling, is_trained
from judging.statistics.verdict_table import on_trials
from judging.tells.registry import AND, PLANT, TRANSFORMATIONS
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

DRAWN = ""  # the version of answers as they were drawn
WELL_KNOWN = 1e6  # degrees of freedom of a variance that margins tell
SEEN = "seen"  # a column of verdicts that this module alone reads: what the judge saw, as a text
Change = tuple[str, str, str | None]
"""An agent, and two versions: its detectability in the first minus that in the second; None for 0.5, which is
chance."""


@dataclass(frozen=True)
class Taken:
    """Which properties were taken away of the answers to a task, and which were planted."""

    tells: Sequence[str]
    """The names of what was taken away, in the order of the version that has none of it."""
    planted: Sequence[str]
    """The names of what was planted."""

    @property
    def all_gone(self) -> str:
        """The version without any of these."""
        return AND.join(self.tells)

    def but(self, tell: str) -> str:
        """The version in which this one alone is left."""
        return AND.join(name for name in self.tells if name != tell)


def taken(versions: Sequence[str]) -> Taken:
    """What the names of ``versions`` say."""
    without = [version for version in versions if version and not version.startswith(PLANT)]
    longest = max(without, key=lambda version: len(version.split(AND)), default="")
    planted = [version.removeprefix(PLANT) for version in versions if version.startswith(PLANT)]
    return Taken([name for name in longest.split(AND) if name], sorted(planted))


def _is_matched(change: Change) -> bool:
    """Whether answers of one of the versions were matched with others of their block, or have got their forms."""
    _, *both = change
    for version in both:
        if version is not None and version.startswith(PLANT):
            return True
        for name in (version or "").split(AND):
            if name in TRANSFORMATIONS and TRANSFORMATIONS[name].is_matched:
                return True
    return False


@dataclass(frozen=True)
class JudgedVersions:
    """A judge's verdicts on versions of answers to a task, a row for each trial and judge (or for all people)."""

    right: Floats
    """[verdicts] the share of right ones among a judge's verdicts on a trial."""
    agents: Mapping[str, int]
    """The numbers of the agents that were judged."""
    agent: Codes
    """[verdicts] the number of the agent that answered; -1 for a person."""
    versions: Mapping[str, int]
    """The numbers of the versions that were judged."""
    version: Codes
    """[verdicts] the number of the version."""
    answer: Codes
    """[verdicts] the number of the answer, in all its versions the same."""
    clusters: Clusters
    """Which verdicts have judges, stimuli and people in common."""
    in_blocks: Clusters | None = None
    """The same with blocks in place of stimuli; None where nothing was matched."""
    margin: Floats | None = None
    """[verdicts] of a trained judge, above 0 where it says "machine"; None of any other."""
    seen: Codes | None = None
    """[verdicts] a number for what the judge saw of the answer; None where not known."""
    moves: Floats | None = None
    """[verdicts, models] how far margins move with each fold of training answers, NaN where not told; None as above."""

    def changes(self, changes: Sequence[Change]) -> Crossed:
        """The changes with their errors; NaN where a version was not judged."""
        sums = [self._sum(change) for change in changes]
        value = np.array([of_sum for of_sum, _, _ in sums])
        weights = np.array([of_sum for _, of_sum, _ in sums]).reshape(len(sums), len(self.right))
        errors = np.array([of_sum for _, _, of_sum in sums]).reshape(weights.shape)
        of_judge = self.clusters.judges * (self.answer.max(initial=0) + 1) + self.answer
        units = np.unique(of_judge, return_inverse=True)[1].astype(np.int64)
        least = unseen(weights, errors, self.clusters.people >= 0, units)
        added = least
        if self.margin is not None:  # of changes between versions its margins say more
            added = np.where([second is None for _, _, second in changes], least, 0.0)
        by_stimuli = crossed(value, weights, errors, self.clusters, added)
        result = by_stimuli
        is_matched = np.zeros(len(changes), dtype=bool)
        if self.in_blocks is not None:
            of_blocks = crossed(value, weights, errors, self.in_blocks, added)
            is_matched = np.array([_is_matched(change) for change in changes], dtype=bool)
            # Where verdicts of each block add up to nothing, blocks tell no variance.
            is_matched &= ~np.isnan(of_blocks.variance)
            if self._are_blocks_crossed():
                is_matched &= of_blocks.variance > by_stimuli.variance
            result = of_blocks.where(is_matched, by_stimuli)
        if self.margin is None:
            return result
        return self._of_trained(changes, result, by_stimuli, least, is_matched)

    def _are_blocks_crossed(self) -> bool:
        """Whether a stimulus is in several blocks, as it is where sets of the same stimuli are scored together. Then
        answers of other blocks have something in common, too, and the larger variance counts."""
        assert self.in_blocks is not None
        both = np.stack([self.clusters.stimuli, self.in_blocks.stimuli])
        return bool(np.unique(both, axis=1).shape[1] > len(np.unique(both[0])))

    def detectability(self, agent: str, version: str) -> float:
        """Of an agent's answers in a version; NaN where it was not judged."""
        return self._sum((agent, version, None))[0] + 0.5

    def are_alike(self, agent: str, first: str, second: str) -> bool:
        """Whether no answer of people or of the agent looks otherwise in one version than in the other, as where a
        property is taken away that nobody has. A trained judge has learned from all agents' answers, so that it is
        asked of all. False where it is not known."""
        if self.seen is None:
            return False
        looks = []
        for version in (first, second):
            used = (self.agent < 0) | (self.agent == self.agents[agent]) | (self.margin is not None)
            is_in = used & (self.version == self.versions.get(version, -1))
            look = np.full(int(self.answer.max(initial=-1)) + 1, -1)
            look[self.answer[is_in]] = self.seen[is_in]
            looks.append(look)
        in_both = (looks[0] >= 0) & (looks[1] >= 0)
        return bool(in_both.any() and (looks[0] == looks[1])[in_both].all())

    def number(self, agent: str) -> tuple[int, int]:
        """How many answers of people and of the agent were judged in some version."""
        of_people = len(np.unique(self.answer[self.agent < 0]))
        of_agent = len(np.unique(self.answer[self.agent == self.agents[agent]]))
        return of_people, of_agent

    @cached_property
    def _cells(self) -> dict[tuple[int, str], tuple[float, Floats, Floats]]:
        return {}

    def _cell(self, agent: int, version: str) -> tuple[float, Floats, Floats]:
        """The mean judge's rate of an agent's answers (-1: people's) in a version, and the weights and errors of
        verdicts in it; NaN and zeros without any."""
        if (agent, version) in self._cells:
            return self._cells[agent, version]
        is_in = (self.agent == agent) & (self.version == self.versions.get(version, -1))
        judges = self.clusters.judges
        weights = is_in / np.maximum(np.bincount(judges, is_in), 1)[judges]
        cell = (np.nan, weights, weights)
        total = weights.sum()
        if total > 0:
            weights = weights / total
            rate = float(weights @ self.right)
            cell = (rate, weights, weights * (self.right - rate))
        self._cells[agent, version] = cell
        return cell

    def _sum(self, change: Change) -> tuple[float, Floats, Floats]:
        """A change, and the weights and errors of verdicts in it; where a version was not judged NaN and zeros."""
        agent, first, second = change
        value = -0.5 if second is None else 0.0
        weights = np.zeros(len(self.right))
        errors = np.zeros(len(self.right))
        for version, sign in ((first, 0.5), (second, -0.5)):
            if version is None:
                continue
            for whose in (-1, self.agents[agent]):
                rate, of_verdicts, of_errors = self._cell(whose, version)
                value += sign * rate
                weights = weights + sign * of_verdicts
                errors = errors + sign * of_errors
        if np.isnan(value):
            return value, np.zeros(len(self.right)), np.zeros(len(self.right))
        return value, weights, errors

    def _of_trained(
        self,
        changes: Sequence[Change],
        found: Crossed,
        by_stimuli: Crossed,
        least: Floats,
        is_matched: NDArray[np.bool_],
    ) -> Crossed:
        """A trained judge's changes: their variances are corrected by how many verdicts margins say that change, and
        get what :meth:`_coupling` adds. Where few verdicts change, the variance is that ``by_stimuli``, with a gradual
        passage (:mod:`judging.statistics.flips`); where margins say that none does, it is the ``least``."""
        margins, _, agent = self._margins
        variance = found.variance.copy()
        freedom = found.freedom.copy()
        for at, (name, first, second) in enumerate(changes):
            if second is None or first not in self.versions or second not in self.versions:
                continue
            if self._is_at_one_stimulus(name):  # nothing is known then, whatever margins say
                continue
            both = margins[[self.versions[first], self.versions[second]]]
            is_used = (agent < 0) | (agent == self.agents[name])
            number_of_versions = (~np.isnan(both[:, is_used])).sum(axis=0)
            if (number_of_versions == 1).any():  # verdicts on answers in one version alone vary by themselves
                continue
            of_both = flips(both[0], both[1], agent < 0, agent == self.agents[name])
            if of_both.number and not np.isnan(variance[at]):
                part = of_both.fewness()
                variance[at] = by_stimuli.variance[at] ** part * variance[at] ** (1 - part) * of_both.correction()
                freedom[at] = by_stimuli.freedom[at] ** part * freedom[at] ** (1 - part)
                freedom[at] = min(freedom[at] / (1 - part), WELL_KNOWN) if part < 1 else WELL_KNOWN
            else:  # no verdict changes, or those that do are at one stimulus and add up to nothing
                variance[at] = of_both.by_margins if of_both.by_margins > 0 else least[at]
                freedom[at] = WELL_KNOWN
        corrected = Crossed(found.value, variance, freedom)
        added = corrected.with_added(self._coupling(changes))
        # What is a multiple of a variance by blocks is known as little as that.
        return Crossed(added.value, added.variance, np.where(is_matched, freedom, added.freedom))

    def _is_at_one_stimulus(self, name: str) -> bool:
        """Whether all people, or the agent of this name, answered one and the same stimulus."""
        sides = (self.agent < 0, self.agent == self.agents[name])
        return any(np.ptp(self.clusters.stimuli[side]) == 0 for side in sides if side.any())

    @cached_property
    def _margins(self) -> tuple[Floats, Floats, Codes]:
        """Margins [versions, answers] of a trained judge, their moves [versions, answers, models], and the answers'
        agents [answers]."""
        assert self.margin is not None
        assert self.moves is not None
        shape = (len(self.versions), int(self.answer.max(initial=-1)) + 1)
        margins = np.full(shape, np.nan)
        moves = np.full((*shape, self.moves.shape[1]), np.nan)
        margins[self.version, self.answer] = self.margin
        moves[self.version, self.answer] = self.moves
        agent = np.zeros(shape[1], dtype=np.int64)
        agent[self.answer] = self.agent
        return margins, moves, agent

    def _coupling(self, changes: Sequence[Change]) -> Floats:
        """What :func:`judging.statistics.training.coupling` adds to the variances of changes [changes]."""
        left = self._left_in_blocks()
        added = np.zeros(len(changes))
        for at, (name, *both) in enumerate(changes):
            judged = [self.versions[version] for version in both if version is not None and version in self.versions]
            shares = np.sqrt(left[self.agents[name], judged])
            for share, version in zip(shares, judged, strict=True):
                added[at] += share**2 * self._coupled(name, [version])[0, 0]
            if len(judged) > 1:
                added[at] -= 2 * shares[0] * shares[1] * self._coupled(name, judged)[0, 1]
        return np.maximum(added, 0.0)

    def _coupled(self, name: str, versions: Sequence[int]) -> Floats:
        """The covariances [versions, versions] of an agent's detectabilities that come of training, by the answers that
        have a margin in each of the ``versions``."""
        margins, moves, agent = self._margins
        in_all = ~np.isnan(margins[versions]).any(axis=0)
        of_all = agent[in_all]
        chosen = np.ix_(np.array(versions), in_all)
        return coupling(margins[chosen], moves[chosen], of_all >= 0, of_all == self.agents[name])

    def _left_in_blocks(self) -> Floats:
        """How much of the variance of detectability [agents, versions] by stimuli the variance by blocks is, 1 at most:
        less than 1 where answers of a block were matched and so make up for each other."""
        left = np.ones((len(self.agents), len(self.versions)))
        if self.in_blocks is None or self._are_blocks_crossed():
            return left
        for version, number in self.versions.items():
            of_agents = [(agent, version, None) for agent in self.agents]
            if not _is_matched(of_agents[0]):
                continue
            sums = [self._sum(change) for change in of_agents]
            value = np.array([of_sum for of_sum, _, _ in sums])
            weights = np.array([of_sum for _, of_sum, _ in sums])
            errors = np.array([of_sum for _, _, of_sum in sums])
            none = np.zeros(len(sums))
            by_stimuli = crossed(value, weights, errors, self.clusters, none).variance
            by_blocks = crossed(value, weights, errors, self.in_blocks, none).variance
            shares = np.nan_to_num(by_blocks, nan=0.0) / by_stimuli
            left[:, number] = np.minimum(np.nan_to_num(shares, nan=1.0), 1.0)
        return left


def judged_versions(verdicts: pd.DataFrame) -> JudgedVersions:
    """Of one judge's, or all people's, ``verdicts`` that count, with the columns ``version``, ``version_of`` and, where
    it is known, :data:`SEEN`."""
    import pandas as pd

    counted = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts["version"].notna()]
    if is_trained(counted):  # the margin of a trial is the mean of its parts, as its share of right verdicts is
        margin = counted["margin"].astype(float)
        counted = counted.assign(margin=margin.groupby([counted["judge"], counted["trial"]]).transform("mean"))
    judged = on_trials(counted)
    of_answers = judged.assign(trial=judged["version_of"].where(judged["version_of"].notna(), judged["trial"]))
    answer = pd.factorize(of_answers["trial"])[0].astype(np.int64)
    agent, agents = pd.factorize(judged["agent"].where(judged["truth"] == "machine"))
    version, versions = pd.factorize(judged["version"])
    seen = None
    if SEEN in judged.columns and judged[SEEN].notna().all():
        seen = pd.factorize(judged[SEEN])[0].astype(np.int64)
    in_blocks = None
    if "block" in judged.columns and judged["block"].notna().any():
        alone = judged["stimulus"].map("stimulus {}".format)  # of a set, beside others, in which nothing was matched
        blocks = judged["block"].map("block {}".format).where(judged["block"].notna(), alone)
        in_blocks = clusters(of_answers.assign(stimulus=blocks))
    margin = None
    moves = None
    if is_trained(judged):
        margin = judged["margin"].to_numpy(dtype=np.float64)
        moves = _moves(judged)
    return JudgedVersions(
        right=judged["right"].to_numpy(dtype=np.float64),
        agents={name: number for number, name in enumerate(agents)},
        agent=agent.astype(np.int64),
        versions={name: number for number, name in enumerate(versions)},
        version=version.astype(np.int64),
        answer=answer,
        clusters=clusters(of_answers),
        in_blocks=in_blocks,
        margin=margin,
        seen=seen,
        moves=moves,
    )


def _moves(judged: pd.DataFrame) -> Floats:
    """The moves of margins [verdicts, models]; NaN [verdicts, 1] where some are not told, or have other folds."""
    unknown = np.full((len(judged), 1), np.nan)
    if "moves" not in judged.columns:
        return unknown
    told = judged["moves"].tolist()
    if not all(isinstance(moves, list) and moves and len(moves) == len(told[0]) for moves in told):
        return unknown
    if not all(isinstance(move, float | int) for moves in told for move in moves):
        return unknown
    return np.array(told, dtype=np.float64)
