"""Pairs of conversations: words per message, and the **X-Turn pass rate** (X-Turing, arXiv 2408.09853).

The rate is 1 minus the mean share of right verdicts; 0.5 is a perfect imitator."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri, stdtrit

from agents.word_boundaries import count_words
from judging.statistics.contrasts import ByColumn, by_column, corrected
from judging.statistics.jackknife import CONFIDENCE, Clusters, Codes, Drawn, Floats
from judging.statistics.krippendorff import alpha_of_people
from judging.statistics.measures import (
    ALL,
    LOG_LINEAR,
    NAMELESS,
    Correction,
    Judged,
    clusters,
    count_missing,
    share,
    z_scores,
)
from judging.statistics.tables import NO_FIGURE, Estimate, Table
from judging.statistics.verdict_table import JudgedAnswers, by_judge
from judging.trial_sets.candidates import PEOPLE_OF_PAIR, is_person
from judging.trial_sets.trial_set import VERDICTS
from serving.files.words import count
from serving.runs.answer_numbers import rounding

if TYPE_CHECKING:
    import pandas as pd

EXACT = "exact"
TWO_WAY = "pairs and judges"
PEOPLE_COLUMN = f"meta.{PEOPLE_OF_PAIR}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRate(Judged):
    """How often a judge was wrong about pairs of conversations, one with a machine; 0.5 is a perfect imitator.

    The binomial test is that of Jones and Bergen (2025, arXiv 2503.23674). d' is that of two-alternative forced
    choice (Macmillan and Creelman 2005), corrected as :data:`judging.statistics.measures.Correction` says."""

    turns: int | None = None
    """How many turns the machine's conversation has, with those that it wrote itself beforehand; None if unknown."""
    mode: str | None = None
    """How the conversations went, such as "ping-pong" or "burst"; None if unknown."""
    pairs: int
    """How many pairs have a verdict."""
    judges: int
    """How many judges gave one."""
    verdicts: int
    """How many verdicts there are."""
    right: int
    """How many of them are right."""
    pass_rate: Estimate
    """The share of wrong verdicts, 0 to 1."""
    interval: str
    """What the 95 % intervals are: :data:`EXACT`, of independent verdicts, or :data:`TWO_WAY`."""
    p_exact: float | None
    """p of the two-sided binomial test against 0.5, as if no verdicts shared a judge or a pair; None without any."""
    first: Estimate
    """The share of verdicts that name the first conversation; 0.5 without a bias."""
    dprime: Estimate
    """The square root of 2 times z of the share right, corrected."""

    @property
    def with_notes(self) -> Markup:
        """The rate for the page, with counts, what is missing, and how often the first conversation was named."""
        notes = [count(self.pairs, "pair"), count(self.judges, "judge"), count(self.verdicts, "verdict")]
        notes += filter(None, [self.missing, "exact" if self.interval == EXACT else ""])
        if self.p_exact is not None:
            notes.append(f"exact p {self.p_exact:.2g} for these verdicts alone")
        if self.verdicts:
            notes.append(f"the first named in {self.first}, d' {self.dprime}")
        return Markup("{}<br><small>{}</small>").format(self.pass_rate, ", ".join(notes))


@dataclass(frozen=True, slots=True)
class ControlPairs:
    """Verdicts on pairs with two machines or none, where no answer is right."""

    judge: str
    """Whose verdicts they are; "people" are all people together."""
    machines: int
    """How many of the two conversations are with a machine: 0 or 2."""
    verdicts: int
    """How many verdicts there are."""
    first: float
    """The share that names the first conversation; far from 0.5 it is a bias. NaN without verdicts."""


@dataclass(frozen=True, slots=True)
class WordsPerMessage:
    """How long messages are in conversations of a person with an agent."""

    agent: str
    """Who converses with people."""
    turns: int
    """How many turns a conversation has, with those that the agent wrote beforehand."""
    mode: str | None
    """How the conversations went, such as "ping-pong" or "burst"; None if unknown."""
    conversations: int
    """How many conversations; each counts once in the means."""
    agent_words: float
    """The agent's mean words per message."""
    person_words: float
    """The same for its partner, a person."""
    difference: Estimate
    """The agent's minus the person's, with Student's interval; none for a single conversation."""


@dataclass(frozen=True, slots=True)
class PassRates:
    """All figures of pairs of conversations."""

    rates: Table[PassRate]
    """By judge, agent, turns and mode."""
    by: Table[PassRate]
    """The same by judge and each value of a column, over all agents."""
    controls: Table[ControlPairs]
    """By judge, pairs of two machines and of none."""
    tests: Table[ByColumn]
    """Tests of detectability by columns: agent, turns, mode, and those that were asked for."""
    alpha: Estimate
    """Krippendorff's alpha of people who judged; NaN where it is not defined, as where no two judged a pair."""
    words: Table[WordsPerMessage]
    """By agent, turns and mode."""


def pass_rates(
    table: pd.DataFrame, by: Sequence[str], correction: Correction = LOG_LINEAR, answers: JudgedAnswers = ()
) -> PassRates:
    """The pass rates of verdicts that count; to intervals, connected pairs are a single pair. The tests are of
    detectability, the mean share of right verdicts with the machine in the first and in the second conversation."""

    table = _with_machine(table)
    is_pair = table["truth"] != table["beside_truth"]
    pairs = table[is_pair]
    agents = sorted(pairs["agent"].unique())
    rates = list[PassRate]()
    by_columns = list[PassRate]()
    controls = list[ControlPairs]()
    tests = list[ByColumn]()
    for judge, of_judge in by_judge(pairs):
        clustered = of_judge.assign(stimulus=_connected(of_judge))
        drawn = drawn_of_pairs(of_judge)
        columns = dict.fromkeys(("agent", "turns", "mode", *by))
        compared = corrected([test for column in columns for test in by_column(clustered, column)])
        tests += [replace(test, judge=judge) for test in compared]
        for cell, part in cells_of_pairs(of_judge, agents):
            rates.append(replace(rate_of_pairs(part, drawn, correction), judge=judge, **cell))
        for column in by:
            for value, part in of_judge.groupby(column):
                name = column.removeprefix("meta.")
                by_columns.append(
                    replace(rate_of_pairs(part, drawn, correction), judge=judge, column=name, value=value)
                )
    for judge, of_judge in by_judge(table[~is_pair]):
        for truth, part in of_judge.groupby("truth"):
            judged = part[part["verdict"].isin(VERDICTS)]
            first = float((judged["verdict"] == "machine").mean())
            controls.append(ControlPairs(judge, 2 if truth == "machine" else 0, len(judged), first))
    return PassRates(
        Table(rates, omit=("task", "column", "value")),
        Table(by_columns, omit=("task", "agent", "turns", "mode")),
        Table(controls),
        Table(tests),
        alpha_of_people(pairs),
        words_per_message(answers),
    )


def cells_of_pairs(of_judge: pd.DataFrame, agents: Sequence[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The parts of a judge's verdicts on pairs (:func:`verdicts_on_pairs`) that have a rate each, with their ``agent``,
    ``turns`` and ``mode``: of all ``agents``, where there are several, and then of each."""
    import pandas as pd

    names = [ALL, *agents] if len(agents) > 1 else agents
    for agent in names:
        of_agent = of_judge if agent == ALL else of_judge[of_judge["agent"] == agent]
        for (turns, mode), part in of_agent.groupby(["turns", "mode"], dropna=False):
            cell = {
                "agent": agent,
                "turns": None if pd.isna(turns) else int(turns),
                "mode": None if pd.isna(mode) else mode,
            }
            yield cell, part


def words_per_message(answers: JudgedAnswers) -> Table[WordsPerMessage]:
    """By agent, turns and mode, of conversations of a person with the machine; Student's t over conversations."""
    cells: dict[tuple[Any, ...], list[tuple[float, float]]] = defaultdict(list)
    for answer in answers:
        if answer.get("beside_truth") is None or answer["truth"] == answer["beside_truth"]:
            continue
        is_first = answer["truth"] == "machine"
        side = "answer" if is_first else "beside"
        prefix = "" if is_first else "beside_"
        agent = answer[f"{prefix}agent"]
        letter = answer[f"{prefix}speaker"]
        messages = answer[side]["messages"]
        delays = (answer.get("delays") or {}).get(side) or [None] * len(messages)
        means = [_mean_words(messages, delays, letter, is_machine) for is_machine in (True, False)]
        if letter is not None and means[0] is not None and means[1] is not None:
            cells[agent, answer["turns"], answer.get("meta.mode")].append((means[0], means[1]))
    rows = []
    for agent, turns, mode in sorted(cells, key=lambda cell: (cell[0], cell[1] or 0, str(cell[2]))):
        means_of_cell = np.array(cells[agent, turns, mode])
        agent_words, person_words = map(float, means_of_cell.mean(axis=0))
        difference = _mean_interval(means_of_cell[:, 0] - means_of_cell[:, 1])
        rows.append(WordsPerMessage(agent, turns, mode, len(means_of_cell), agent_words, person_words, difference))
    return Table(rows)


def _mean_words(
    messages: Sequence[Mapping[str, Any]], delays: Sequence[float | None], letter: str | None, is_machine: bool
) -> float | None:
    numbers = [
        (count_words(line["text"]), delay is not None)
        for line, delay in zip(messages, delays, strict=True)
        if (line["speaker"] == letter) == is_machine
    ]
    words = [number for number, is_timed in numbers if is_timed] or [number for number, _ in numbers]
    return float(np.mean(words)) if words else None


def verdicts_on_pairs(table: pd.DataFrame) -> pd.DataFrame:
    """The verdicts on pairs of which one conversation is with a machine: ``agent`` is the machine, whichever
    conversation it speaks in, ``person`` the one in the other (None without a name), ``mode`` how they conversed."""
    table = _with_machine(table)
    return table[table["truth"] != table["beside_truth"]]


def _with_machine(table: pd.DataFrame) -> pd.DataFrame:
    mode = table["meta.mode"] if "meta.mode" in table.columns else None
    machine = table["agent"].where(table["truth"] == "machine", table["beside_agent"])
    person = table["agent"].where(table["truth"] == "human", table["beside_agent"])
    return table.assign(agent=machine, person=person.where(person.map(_is_named)), mode=mode)


def drawn_of_pairs(verdicts: pd.DataFrame) -> Drawn:
    """Whether a judge's ``verdicts`` on pairs have several judges, pairs and people; connected pairs are one."""
    return clusters_of_pairs(verdicts).drawn()


def clusters_of_pairs(verdicts: pd.DataFrame) -> Clusters:
    """The judges, pairs and people of ``verdicts`` on pairs; connected pairs are one."""
    return clusters(verdicts.assign(stimulus=_connected(verdicts)))


def rate_of_pairs(verdicts: pd.DataFrame, drawn: Drawn, correction: Correction = LOG_LINEAR) -> PassRate:
    """The pass rate of ``verdicts`` on pairs (:func:`verdicts_on_pairs`), without judge, agent, turns and mode."""
    from scipy.stats import binomtest

    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    right = judged["verdict"] == judged["truth"]
    pairs = clusters_of_pairs(judged)
    number = len(judged)
    rate, is_exact = share((~right).to_numpy(dtype=np.float64), pairs, drawn)
    names_first = (judged["verdict"] == "machine").to_numpy(dtype=np.float64)
    z = z_scores(np.array([right.sum()], dtype=np.float64), np.array([number], dtype=np.float64), correction)
    dprime = math.sqrt(2) * np.concatenate([z, ndtri([1 - rate.high, 1 - rate.low])])
    return PassRate(
        pairs=int(judged["trial"].nunique()),
        judges=int(judged["judge"].nunique()),
        verdicts=len(judged),
        right=int(right.sum()),
        **count_missing(verdicts["verdict"].to_numpy()),
        pass_rate=rate,
        interval=EXACT if is_exact else TWO_WAY,
        p_exact=float(binomtest(int(right.sum()), number).pvalue) if number else None,
        first=share(names_first, pairs, drawn)[0],
        dprime=Estimate(*dprime.tolist()) if number else NO_FIGURE,
    )


def _is_named(person: str | None) -> bool:
    """Whether ``person``, or both of two who converse ("a~b"), have names of their own."""
    return all(is_person(name) and name not in NAMELESS for name in (person or "").split("~"))


def _connected(verdicts: pd.DataFrame) -> Codes:
    import pandas as pd

    stimuli, names = pd.factorize(verdicts["stimulus"])
    if PEOPLE_COLUMN not in verdicts.columns:
        return np.asarray(stimuli, dtype=np.int64)
    people, others = pd.factorize(verdicts[PEOPLE_COLUMN])
    is_known = people >= 0
    size = len(names) + len(others)
    links = coo_array((np.ones(is_known.sum()), (stimuli[is_known], len(names) + people[is_known])), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1][stimuli], dtype=np.int64)


def _mean_interval(differences: Floats) -> Estimate:
    number = len(differences)
    mean = float(differences.mean())
    if number < 2 or np.ptp(differences) <= rounding(differences):
        return Estimate(mean, form="+.1f")
    half = float(stdtrit(number - 1, (1 + CONFIDENCE) / 2)) * float(differences.std(ddof=1)) / math.sqrt(number)
    return Estimate(mean, mean - half, mean + half, "+.1f")
