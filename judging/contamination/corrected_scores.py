"""The table of contamination: by task the rate, by judge and agent the plain and the corrected figures.

Rules mark and never remove: the plain figures stay what they are, and no verdict is left out of the corrected ones."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.errors import InputError
from judging.contamination.asked import KnownRate, Traced
from judging.contamination.correction import Corrected, by_known_rate, by_traces
from judging.contamination.latent_classes import Floats
from judging.contamination.marks import AnswerKey
from judging.contamination.pairs import ContaminatedPairs, contaminated_pairs, shows_any
from judging.contamination.rate_of_task import (
    NOWHERE,
    RateOfTask,
    probabilities,
    rates_of_tasks,
    source_and_rate,
)
from judging.statistics.jackknife import Cells, Clusters, Codes
from judging.statistics.measures import ALL, Score, clusters, is_right
from judging.statistics.tables import NO_FIGURE, Estimate
from judging.statistics.verdict_table import as_drawn, by_judge, counted
from judging.trial_sets.trial_set import VERDICTS
from serving.files.csv_tables import load_table, unguarded

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Contamination:
    """Of a judge and agent the figures as they are, and corrected for answers that participants did not write."""

    task: str
    """The task that was answered; files call it ``asked``."""
    judge: str
    """Who judged; "people" are all people together."""
    agent: str
    """Whose answers stand beside people's; "all" are all agents together."""
    source: str
    """Where the rate comes from: "traces" or "known rate"."""
    rate: Estimate = NO_FIGURE
    """The contamination rate of participants' answers, 0 to 1; of a known one its bounds."""
    persons: int = 0
    """How many participants have answers with traces."""
    answers: int = 0
    """How many answers with traces these are."""
    foreign_answers: int = 0
    """How many of them are more probably foreign than not."""
    judged_answers: int = 0
    """How many verdicts are on answers of people."""
    judged_without_traces: int = 0
    """How many of these are on answers without traces. Corrected figures do without them: who refuses traces may paste
    more often than others, and nobody knows."""
    p_human: Estimate = NO_FIGURE
    """p(H|H) as it is."""
    p_human_corrected: Estimate = NO_FIGURE
    """p(H|H) of answers that participants wrote themselves."""
    p_foreign: float = float("nan")
    """The share of foreign answers that is judged human."""
    detectability: Estimate = NO_FIGURE
    """The mean of p(H|H) as it is and of p(M|M)."""
    detectability_corrected: Estimate = NO_FIGURE
    """The mean of the corrected p(H|H) and of p(M|M)."""
    detectability_judges: Estimate = NO_FIGURE
    """Detectability as it is, each judge counted once."""
    detectability_judges_corrected: Estimate = NO_FIGURE
    """The same, corrected."""
    within_bounds: bool | None = None
    """Whether the 90 % interval of ``detectability_judges`` lies within the bounds; before Holm's correction."""
    within_bounds_corrected: bool | None = None
    """The same of the corrected figure."""
    p_human_at_low: float = float("nan")
    """The corrected p(H|H) if the rate is at the lower end of its interval."""
    p_human_at_high: float = float("nan")
    """The same at the upper end."""
    detectability_at_low: float = float("nan")
    """The corrected detectability if the rate is at the lower end."""
    detectability_at_high: float = float("nan")
    """The same at the upper end."""
    like: str = ""
    """Of a known rate: the agents whose answers are judged as foreign ones are."""
    why: str = ""
    """Why nothing is corrected; "" where it is."""

    @property
    def name(self) -> str:
        """The agent as tables call it."""
        return "all agents" if self.agent == ALL else self.agent

    @property
    def of_foreign(self) -> Estimate:
        """``p_foreign`` as tables write figures."""
        return Estimate(self.p_foreign)

    @property
    def p_human_at_ends(self) -> str:
        """The corrected p(H|H) at both ends of the rate's interval, in words."""
        return _between(self.p_human_at_low, self.p_human_at_high)

    @property
    def detectability_at_ends(self) -> str:
        """The corrected detectability at both ends, in words."""
        return _between(self.detectability_at_low, self.detectability_at_high)

    @property
    def within(self) -> str:
        """Whether detectability is within the bounds, as it is and corrected, in words."""
        words = {True: "yes", False: "no", None: "not known"}
        plain = words[self.within_bounds]
        corrected = words[self.within_bounds_corrected]
        return plain if plain == corrected else f"{plain}; corrected {corrected}"


def contamination(
    verdicts: pd.DataFrame,
    scores: Iterable[Score],
    asked: KnownRate | Traced,
    keys: Iterable[tuple[str, Path]],
    bounds: float,
) -> tuple[list[Contamination], list[ContaminatedPairs]]:
    """The rows of the table, in the order of ``scores``, and those of pairs of conversations.

    ``verdicts`` are those that count, as :func:`judging.scores.computing.compute_scores` takes them. ``keys`` are the
    keys of their trials, each with the prefix of the trials' names. An agent is within ``bounds`` of 0.5 or not. Raises
    InputError for traces of other answers than those judged, and for agents that were not judged."""
    verdicts = as_drawn(verdicts)
    is_plain = (verdicts["sample"] == 0) & ~verdicts["catch"] & verdicts["repeat_of"].isna()
    is_pair = verdicts["beside_truth"].notna()
    single = verdicts[is_plain & ~is_pair]
    pairs = verdicts[is_plain & is_pair]
    by_task: dict[str, RateOfTask] = {}
    answer_of: dict[str, AnswerKey] = {}
    if isinstance(asked, Traced):
        by_task = rates_of_tasks(asked)
        known = {key for of_task in by_task.values() for key in of_task.pattern_of}
        answer_of = judged_answers(keys, known)
        human = single["trial"][single["truth"] == "human"]
        is_judged = not known.isdisjoint(answer_of[trial] for trial in human.unique() if trial in answer_of)
        if not is_judged and not shows_any(pairs, by_task.get("conversation")):
            raise InputError(
                f"{asked.field}: none of its answers was judged; give the run folder from which the trials were drawn"
            )
    elif asked.like is not None:
        wanted = set(asked.like.split(","))
        if missing := wanted - set(single["agent"][single["truth"] == "machine"]):
            raise InputError(f"pasted_like: no answers of {', '.join(sorted(missing))} were judged")
    plain = {(score.task, score.judge, score.agent): score for score in scores}
    rows: list[Contamination] = []
    for task in dict.fromkeys(name for name, _, _ in plain):
        for judge, of_judge in by_judge(single[single["asked"] == task]):
            agents = [agent for of_task, by, agent in plain if (of_task, by) == (task, judge)]
            of_agents = [plain[task, judge, agent] for agent in agents]
            rows += _of_judge(counted(of_judge), of_agents, asked, by_task.get(task), answer_of, bounds)
    return rows, contaminated_pairs(pairs, asked, by_task.get("conversation"))


def _between(low: float, high: float) -> str:
    return "–" if np.isnan(low) else f"{Estimate(low)} to {Estimate(high)}"


def judged_answers(keys: Iterable[tuple[str, Path]], known: Container[AnswerKey]) -> dict[str, AnswerKey]:
    """By the name of a trial which answer it shows, from keys with the prefix of their trials' names.

    The stimulus has the name that is ``known``: that of the set from which the trials were drawn, or else its
    ``benchmark_id``, as the stimuli of a card have names of their own."""
    answers = {}
    for prefix, path in dict.fromkeys(keys):
        for _, cells in load_table(path).rows:
            cell = {name: unguarded(text) for name, text in cells.items()}
            if "record" in cell and not cell.get("beside_agent"):
                sample = int(cell["sample"] or 0)
                key = AnswerKey(cell["asked"], cell["record"], cell["stimulus"], sample, cell["speaker"])
                if key not in known:
                    key = key._replace(stimulus=cell["benchmark_id"])
                answers[f"{prefix}{cell['trial']}"] = key
    return answers


def _of_judge(
    verdicts: pd.DataFrame,
    scores: Sequence[Score],
    asked: KnownRate | Traced,
    of_task: RateOfTask | None,
    answer_of: dict[str, AnswerKey],
    bounds: float,
) -> list[Contamination]:
    """A judge's rows of a task, one for each of its ``scores``."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    is_human = (judged["truth"] == "human").to_numpy()
    agent = judged["agent"].to_numpy()
    cells = [is_human, *(~is_human & ((agent == score.agent) | (score.agent == ALL)) for score in scores)]
    is_known = np.array([cell.any() for cell in cells])
    figures, why = source_and_rate(asked, of_task)
    common: dict[str, Any] = {**figures, "judged_answers": int(is_human.sum())}
    patterns = np.full(len(judged), NOWHERE)
    if isinstance(asked, KnownRate):
        common["like"] = asked.like or "all agents"
    else:
        if of_task is not None:
            of_trial = {trial: of_task.pattern_of.get(key, NOWHERE) for trial, key in answer_of.items()}
            patterns = np.array([of_trial.get(trial, NOWHERE) for trial in judged["trial"]])
        common["judged_without_traces"] = int((is_human & (patterns == NOWHERE)).sum())
    rows = []
    for number, score in enumerate(scores, start=1):
        row: dict[str, Any] = {
            "task": score.task,
            "judge": score.judge,
            "agent": score.agent,
            "p_human": score.p_human,
            "detectability": score.detectability,
            "detectability_judges": score.detectability_judges,
            **common,
        }
        if why or not (is_known[0] and is_known[number]):
            row["why"] = why or "no verdicts on people's answers, or none on the agent's"
        elif common.get("judged_without_traces") == common["judged_answers"]:
            row["why"] = "no answer that was judged has traces"
        else:
            both = np.array([cells[0], cells[number]])
            row |= _figures(judged, both, asked, of_task, patterns, bounds)
            if np.isnan(row["p_human_corrected"].value):
                row["why"] = "the rate does not fit these verdicts, or no answers like foreign ones were judged"
        rows.append(Contamination(**row))
    return rows


def _figures(
    judged: pd.DataFrame,
    cells: Cells,
    asked: KnownRate | Traced,
    of_task: RateOfTask | None,
    patterns: Codes,
    bounds: float,
) -> dict[str, Any]:
    """The corrected figures of an agent, from verdicts on people's answers and on its own: ``cells`` [2, verdicts]."""
    right = is_right(judged)
    drawn_from = clusters(judged)
    [plain] = by_traces(right, cells, drawn_from, np.zeros((7, len(judged))), by_judge=True)
    both: list[Corrected] = []
    for is_by_judge in (False, True):
        if isinstance(asked, KnownRate):
            both += _of_known(judged, right, cells, drawn_from, asked, is_by_judge)
        else:
            assert of_task is not None
            foreign = np.where(cells[0], probabilities(of_task.rate, patterns), 0.0)
            with_traces = np.array([cells[0] & (patterns != NOWHERE), cells[1]])
            both += by_traces(right, with_traces, drawn_from, foreign, by_judge=is_by_judge)
    corrected, of_judges = both
    low, high, whole_low, whole_high = corrected.at_ends
    return {
        "p_human_corrected": corrected.p_human,
        "p_foreign": corrected.p_foreign,
        "detectability_corrected": corrected.detectability,
        "detectability_judges_corrected": of_judges.detectability,
        "within_bounds": _is_within(plain.within, bounds),
        "within_bounds_corrected": _is_within(of_judges.within, bounds),
        "p_human_at_low": low,
        "p_human_at_high": high,
        "detectability_at_low": whole_low,
        "detectability_at_high": whole_high,
    }


def _of_known(
    judged: pd.DataFrame, right: Floats, cells: Cells, drawn_from: Clusters, asked: KnownRate, is_by_judge: bool
) -> list[Corrected]:
    is_machine = (judged["truth"] == "machine").to_numpy()
    if asked.like is not None:
        is_machine = is_machine & judged["agent"].isin(asked.like.split(",")).to_numpy()
    return by_known_rate(right, cells, drawn_from, (asked.low, asked.high), is_machine[None], by_judge=is_by_judge)


def _is_within(estimate: Estimate, bounds: float) -> bool | None:
    """Whether the interval lies within 0.5 ± ``bounds``; None without an interval."""
    if np.isnan(estimate.low):
        return None
    return bool(0.5 - bounds < estimate.low and estimate.high < 0.5 + bounds)
