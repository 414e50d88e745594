"""Whether the intervals of scores are true: shares of drawn studies, with 95 % intervals.

- Coverage of p(H|H), p(M|M), detectability and pass rates in a probit model: 0.95 wanted.
- Null judges: intervals above and below 0.5, together at most 0.05 wanted.
- With --trials half the people count as a machine, judged by `svm`: the same two shares.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from agents import catalogue
from agents.errors import InputError, TuringlikeError
from judging.classifier import judge_trials
from judging.measures import share, summarize
from judging.tables import Table
from judging.trial_set import key_path, read_trial_key
from serving.command_line import positive

AGENTS = 9
OF_JUDGES, OF_STIMULI = 0.5, 0.4  # standard deviations of judges and stimuli, in units of the verdicts' noise
REPETITIONS = 400  # of the bootstrap; scores have more, which moves an interval's ends by a hundredth of its width
PASS_RATES = (0.519, 0.389, 0.133, 0.011)  # GPT-4's after 3, 10 and 110 turns in X-Turing, and Qwen-110B's after 110
PAIRS, PAIRS_OF_A_JUDGE = 25, 6
NULL = ("coin", "always human", "hurries", "by length")
Sides = list[tuple[bool, bool]]  # of each study, whether an interval is above 0.5, and below


@dataclass(slots=True)
class Share:
    """The mean over studies with a normal interval; of none or all by the rule of three."""

    part: str
    of: str
    wanted: str
    share: float
    low: float
    high: float
    studies: int


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether the intervals of scores are true.", allow_abbrev=False)
    parser.add_argument("--studies", type=positive, default=500, metavar="N", help="of each part (500)")
    parser.add_argument("--judges", type=positive, default=300, metavar="N", help="in a study (300)")
    parser.add_argument("--stimuli", type=positive, default=400, metavar="N", help="in a study (400)")
    parser.add_argument("--per-judge", type=positive, default=36, metavar="N", help="trials of a judge (36)")
    parser.add_argument("--trials", type=Path, metavar="TRIALS", help="a trial set with several people's answers")
    options = parser.parse_args()
    try:
        shares = [*coverage(options), *pass_rates(options), *null_judges(options)]
        if options.trials is not None:
            shares += people_against_people(options.trials, options.studies)
    except TuringlikeError as error:
        print(f"calibrate_scores: {error}", file=sys.stderr)
        return error.exit_code
    table = Table(shares)
    table.grid("part of wanted share low high studies").print()
    print(orjson.dumps(table.records()).decode())
    return 0


def coverage(options: argparse.Namespace) -> Iterator[Share]:
    held: dict[str, list[float]] = defaultdict(list)
    machines = np.linspace(-0.2, 0.6, AGENTS)  # from an agent that passes for a person to one that is recognized
    people = 0.3
    spread = math.sqrt(1 + OF_JUDGES**2 + OF_STIMULI**2)
    for study in range(options.studies):
        verdicts = drawn(options, study, people, machines)
        holds: dict[str, list[bool]] = defaultdict(list)
        for row in summarize(verdicts, [f"a{at}" for at in range(AGENTS)], study, REPETITIONS)[1:]:  # "all" is first
            of_machine = float(ndtr(machines[int(row.agent[1:])] / spread))
            truth = {"p_human": float(ndtr(people / spread)), "p_machine": of_machine}
            truth["detectability"] = (truth["p_human"] + truth["p_machine"]) / 2
            for name, value in truth.items():
                holds[name].append(getattr(row, name).low <= value <= getattr(row, name).high)
        for name, values in holds.items():
            held[name].append(float(np.mean(values)))
    for name, values in held.items():
        yield _share("coverage", name, "0.95", values)


def pass_rates(options: argparse.Namespace) -> Iterator[Share]:
    spread = math.sqrt(1 + OF_JUDGES**2 + OF_STIMULI**2)
    for rate in PASS_RATES:
        held = []
        for study in range(options.studies):
            chance = np.random.default_rng([study, 4])
            judge = np.repeat(np.arange(options.judges), PAIRS_OF_A_JUDGE)
            pair = np.argsort(chance.random((options.judges, PAIRS)), axis=1)[:, :PAIRS_OF_A_JUDGE].ravel()
            noise = chance.normal(0, OF_JUDGES, options.judges)[judge] + chance.normal(0, OF_STIMULI, PAIRS)[pair]
            passes = spread * ndtri(rate) + noise + chance.normal(size=len(judge)) > 0
            estimate, _ = share(passes.astype(np.float64), judge, pair, study, REPETITIONS)
            held.append((estimate.low or 0.0) <= rate <= (estimate.high or 0.0))
        yield _share("pass rates", f"{100 * rate:g} %", "0.95", held)


def drawn(options: argparse.Namespace, seed: int, people: float, machines: NDArray[np.float64]) -> pd.DataFrame:
    """Verdicts of a study: right when the noise exceeds minus the mean of who answered."""
    chance = np.random.default_rng([seed, 1])
    judge = np.repeat(np.arange(options.judges), options.per_judge)
    stimulus = chance.integers(options.stimuli, size=len(judge))
    is_machine = chance.permuted(np.tile(np.arange(options.per_judge) % 2 == 1, (options.judges, 1)), axis=1).ravel()
    agent = chance.integers(len(machines), size=len(judge))
    noise = chance.normal(0, OF_JUDGES, options.judges)[judge] + chance.normal(0, OF_STIMULI, options.stimuli)[stimulus]
    right = np.where(is_machine, machines[agent], people) + noise + chance.normal(size=len(judge)) > 0
    return _verdicts(judge, stimulus, is_machine, agent, right == is_machine)


def null_judges(options: argparse.Namespace) -> Iterator[Share]:
    for name in NULL:
        sides: Sides = []
        for study in range(options.studies):
            chance = np.random.default_rng([study, 2])
            number = options.judges * options.per_judge
            judge = np.repeat(np.arange(options.judges), options.per_judge)
            stimulus = chance.integers(options.stimuli, size=number)
            is_machine, length = chance.random(number) < 0.5, chance.gamma(2, 5, number)
            says_machine = {
                "coin": chance.random(number) < 0.5,
                "always human": np.zeros(number, dtype=bool),
                "hurries": chance.random(number) < chance.beta(1, 4, options.judges)[judge],
                "by length": length > chance.normal(10, 3, options.judges)[judge],
            }[name]
            agent = np.zeros(number, dtype=int)
            sides.append(_side(_verdicts(judge, stimulus, is_machine, agent, says_machine), study))
        yield from _false_alarms("null judges", name, sides)


def people_against_people(folder: Path, studies: int) -> Iterator[Share]:
    """The false alarms of the classifier ``svm``, by task."""
    keys = read_trial_key(key_path(folder))
    by_task: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for trial in map(orjson.loads, (folder / "trials.jsonl").read_bytes().splitlines()):
        if keys[trial["id"]]["truth"] == "human" and not keys[trial["id"]]["catch"]:
            by_task[trial["asked"]].append(trial)
    judge: Any = catalogue.get("svm").make()
    for task, trials in by_task.items():
        groups = np.unique([trial["shown"] for trial in trials], return_inverse=True)[1]
        if np.bincount(groups).mean() < 2:
            raise InputError(f"{folder}: not two people's answers to a stimulus of {task}")
        inputs = judge.extract(task, trials, "cpu")
        sides: Sides = []
        for study in range(studies):
            # Half of each stimulus's answers, drawn; of an odd number the last falls to either side.
            order = np.lexsort((np.random.default_rng([study, 3]).random(len(trials)), groups))
            is_machine = np.zeros(len(trials), dtype=bool)
            is_machine[order[study % 2 :: 2]] = True
            truth = [{**keys[trial["id"]], "truth": "machine" if is_half else "human", "agent": "half"}
                     for trial, is_half in zip(trials, is_machine, strict=True)]  # fmt: skip
            chosen = judge.settings.model_copy(update={"seed": study})
            margins = judge_trials(trials, truth, inputs, chosen, judge.new_model)
            judged = np.array([at for at, trial in enumerate(trials) if trial["id"] in margins])
            says_machine = np.array([margins[trials[at]["id"]]["margin"] > 0 for at in judged])
            nobody = np.zeros(len(judged), dtype=int)
            sides.append(_side(_verdicts(nobody, groups[judged], is_machine[judged], nobody, says_machine), study))
        yield from _false_alarms("people against people", f"svm, {task}", sides)


def _verdicts(
    judge: NDArray[Any], stimulus: NDArray[Any], is_machine: NDArray[Any], agent: NDArray[Any], says: NDArray[Any]
) -> pd.DataFrame:
    names = np.array([f"a{at}" for at in range(int(agent.max(initial=0)) + 1)])
    return pd.DataFrame(
        {
            "judge": judge,
            "stimulus": stimulus,
            "trial": np.arange(len(judge)),
            "truth": np.where(is_machine, "machine", "human"),
            "agent": np.where(is_machine, names[agent], "human:1"),
            "verdict": np.where(says, "machine", "human"),
        }
    )


def _side(verdicts: pd.DataFrame, seed: int) -> tuple[bool, bool]:
    [_, row] = summarize(verdicts, ["a0"], seed, REPETITIONS)
    return (row.detectability.low or 0.0) > 0.5, (row.detectability.high or 0.0) < 0.5


def _false_alarms(part: str, of: str, sides: Sides) -> Iterator[Share]:
    for name, values in zip(("above", "below"), zip(*sides, strict=True), strict=True):
        yield _share(part, f"{of}: {name}", "at most 0.025", values)


def _share(part: str, of: str, wanted: str, studies: Sequence[float]) -> Share:
    mean, number = float(np.mean(studies)), len(studies)
    half = 1.96 * float(np.std(studies, ddof=1)) / math.sqrt(number) or 3 / number
    return Share(part, of, wanted, mean, max(0.0, mean - half), min(1.0, mean + half), number)


if __name__ == "__main__":
    sys.exit(main())
