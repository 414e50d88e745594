"""Whether the intervals of scores are true: studies with a known truth, and people set against people.

    python scripts/calibrate_scores.py [--studies N] [--judges N] [--stimuli N] [--per-judge N] [--trials TRIALS]

Each part is told as a share with its own 95 % interval:

- coverage: studies are drawn in which judges and stimuli differ (a probit model, so that the true rates are known in
  closed form); how often the intervals of p(H|H), p(M|M) and detectability hold the truth. 0.95 is wanted.
- pass rates: the same of the X-Turn pass rate, for 25 pairs of which each judge sees six.
- null judges: four who cannot tell (a coin, always human, one who hurries and mostly says human, one by length alone)
  judge agents that answer as people do; how often an agent's interval is above 0.5 (it is said to be detected), and how
  often below. Together at most 0.05 is wanted.
- people against people: with --trials (a trial set with several people's answers) half of people's answers, drawn anew
  for each study, are called a machine's, and the classifier `svm` judges them: the same two shares. Verdicts of a
  trained judge hang together by its training, too, which no interval over stimuli knows of.

A table goes to stdout, and one JSON line last.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.special import ndtr, ndtri

from agents import catalogue
from agents.errors import InputError, TuringlikeError
from judging.measures import share, summarize
from judging.trained import judge_trials
from judging.trial_set import key_path
from judging.verdicts import read_key
from serving.command_line import positive

AGENTS = 9
OF_JUDGES, OF_STIMULI = 0.5, 0.4  # standard deviations of judges and stimuli, in units of the verdicts' noise
REPETITIONS = 400  # of the bootstrap; scores have more, which moves an interval's ends by a hundredth of its width
PASS_RATES = (0.519, 0.389, 0.133, 0.011)  # GPT-4's after 3, 10 and 110 turns in X-Turing, and Qwen-110B's after 110
PAIRS, PAIRS_OF_A_JUDGE = 25, 6
NULL = ("coin", "always human", "hurries", "by length")


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether the intervals of scores are true.", allow_abbrev=False)
    parser.add_argument("--studies", type=positive, default=500, metavar="N", help="of each part (500)")
    parser.add_argument("--judges", type=positive, default=300, metavar="N", help="in a study (300)")
    parser.add_argument("--stimuli", type=positive, default=400, metavar="N", help="in a study (400)")
    parser.add_argument("--per-judge", type=positive, default=36, metavar="N", help="trials of a judge (36)")
    parser.add_argument("--trials", type=Path, metavar="TRIALS", help="a trial set with several people's answers")
    options = parser.parse_args()
    try:
        told = coverage(options) + pass_rates(options) + null_judges(options)
        if options.trials is not None:
            told += people_against_people(options.trials, options.studies)
    except TuringlikeError as error:
        print(f"calibrate_scores: {error}", file=sys.stderr)
        return error.exit_code
    table = Table("part", "of", "wanted", "found", "95 %", "studies")
    for row in told:
        table.add_row(
            row["part"], row["of"], row["wanted"], f"{row['share']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}",
            str(row["studies"]),
        )  # fmt: skip
    Console(width=110).print(table)
    print(orjson.dumps(told).decode())
    return 0


def coverage(options: argparse.Namespace) -> list[dict[str, Any]]:
    held: dict[str, list[float]] = defaultdict(list)
    names = ("p_human", "p_machine", "detectability")
    machines = np.linspace(-0.2, 0.6, AGENTS)  # from one who passes for a person to one who is told
    people = 0.3
    spread = math.sqrt(1 + OF_JUDGES**2 + OF_STIMULI**2)
    for study in range(options.studies):
        verdicts = drawn(options, study, people, machines)
        holds: dict[str, list[bool]] = defaultdict(list)
        for row in summarize(verdicts, [f"a{at}" for at in range(AGENTS)], study, REPETITIONS)[1:]:  # "all" is first
            of_machine = float(ndtr(machines[int(row["agent"][1:])] / spread))
            truth = {"p_human": float(ndtr(people / spread)), "p_machine": of_machine}
            truth["detectability"] = (truth["p_human"] + truth["p_machine"]) / 2
            for name in names:
                holds[name].append(row[f"{name}_low"] <= truth[name] <= row[f"{name}_high"])
        for name in names:
            held[name].append(float(np.mean(holds[name])))
    return [_told("coverage", name, "0.95", held[name]) for name in names]


def pass_rates(options: argparse.Namespace) -> list[dict[str, Any]]:
    told = []
    spread = math.sqrt(1 + OF_JUDGES**2 + OF_STIMULI**2)
    for rate in PASS_RATES:
        held = []
        for study in range(options.studies):
            chance = np.random.default_rng([study, 4])
            judge = np.repeat(np.arange(options.judges), PAIRS_OF_A_JUDGE)
            pair = np.argsort(chance.random((options.judges, PAIRS)), axis=1)[:, :PAIRS_OF_A_JUDGE].ravel()
            noise = chance.normal(0, OF_JUDGES, options.judges)[judge] + chance.normal(0, OF_STIMULI, PAIRS)[pair]
            passes = spread * ndtri(rate) + noise + chance.normal(size=len(judge)) > 0
            _, low, high, _ = share(passes.astype(np.float64), judge, pair, study, REPETITIONS)
            held.append(low <= rate <= high)
        told.append(_told("pass rates", f"{100 * rate:g} %", "0.95", held))
    return told


def drawn(options: argparse.Namespace, seed: int, people: float, machines: NDArray[np.float64]) -> pd.DataFrame:
    """A study: each judge sees stimuli that are drawn, half of them with people's answers. Whether a verdict is right
    is by the noise of judge, stimulus and verdict together, normal, above minus the mean of who answered."""
    chance = np.random.default_rng([seed, 1])
    judge = np.repeat(np.arange(options.judges), options.per_judge)
    stimulus = chance.integers(options.stimuli, size=len(judge))
    is_machine = chance.permuted(np.tile(np.arange(options.per_judge) % 2 == 1, (options.judges, 1)), axis=1).ravel()
    agent = chance.integers(len(machines), size=len(judge))
    noise = chance.normal(0, OF_JUDGES, options.judges)[judge] + chance.normal(0, OF_STIMULI, options.stimuli)[stimulus]
    right = np.where(is_machine, machines[agent], people) + noise + chance.normal(size=len(judge)) > 0
    return _verdicts(judge, stimulus, is_machine, agent, right == is_machine)


def null_judges(options: argparse.Namespace) -> list[dict[str, Any]]:
    told = []
    for name in NULL:
        sides: list[tuple[bool, bool]] = []
        for study in range(options.studies):
            chance = np.random.default_rng([study, 2])
            number = options.judges * options.per_judge
            judge, stimulus = (
                np.repeat(np.arange(options.judges), options.per_judge),
                chance.integers(options.stimuli, size=number),
            )
            is_machine, length = chance.random(number) < 0.5, chance.gamma(2, 5, number)
            says_machine = {
                "coin": chance.random(number) < 0.5,
                "always human": np.zeros(number, dtype=bool),
                "hurries": chance.random(number) < chance.beta(1, 4, options.judges)[judge],
                "by length": length > chance.normal(10, 3, options.judges)[judge],
            }[name]
            verdicts = _verdicts(judge, stimulus, is_machine, np.zeros(number, dtype=int), says_machine)
            [_, row] = summarize(verdicts, ["a0"], study, REPETITIONS)
            sides.append((row["detectability_low"] > 0.5, row["detectability_high"] < 0.5))
        told += _sides("null judges", name, sides)
    return told


def people_against_people(folder: Path, studies: int) -> list[dict[str, Any]]:
    """The classifier ``svm``, and its false alarms, by task."""
    keys = read_key(key_path(folder))
    by_task: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for line in (folder / "trials.jsonl").read_bytes().splitlines():
        trial = orjson.loads(line)
        if keys[trial["id"]]["truth"] == "human" and not keys[trial["id"]]["catch"]:
            by_task[trial["asked"]].append(trial)
    judge: Any = catalogue.get("svm").make()
    told = []
    for asked, trials in by_task.items():
        groups = np.unique([trial["shown"] for trial in trials], return_inverse=True)[1]
        if np.bincount(groups).mean() < 2:
            raise InputError(f"{folder}: not two people's answers to a stimulus of {asked}")
        given = judge.features(asked, trials, "cpu")
        sides: list[tuple[bool, bool]] = []
        for study in range(studies):
            # Half of each stimulus's answers, drawn; of an odd number the one that is left over falls to either side.
            order = np.lexsort((np.random.default_rng([study, 3]).random(len(trials)), groups))
            is_machine = np.zeros(len(trials), dtype=bool)
            is_machine[order[study % 2 :: 2]] = True
            truth = [{**keys[trial["id"]], "truth": "machine" if one else "human", "agent": "half"}
                     for trial, one in zip(trials, is_machine, strict=True)]  # fmt: skip
            chosen = judge.settings.model_copy(update={"seed": study})
            said = judge_trials(trials, truth, given, chosen, judge.new_model)
            judged = np.array([at for at, trial in enumerate(trials) if trial["id"] in said])
            says_machine = np.array([said[trials[at]["id"]]["margin"] > 0 for at in judged])
            nobody = np.zeros(len(judged), dtype=int)
            verdicts = _verdicts(nobody, groups[judged], is_machine[judged], nobody, says_machine)
            [_, row] = summarize(verdicts, ["a0"], study, REPETITIONS)
            sides.append((row["detectability_low"] > 0.5, row["detectability_high"] < 0.5))
        told += _sides("people against people", f"svm, {asked}", sides)
    return told


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


def _sides(part: str, of: str, sides: Sequence[tuple[bool, bool]]) -> list[dict[str, Any]]:
    above, below = zip(*sides, strict=True)
    return [_told(part, f"{of}: above", "at most 0.025", above), _told(part, f"{of}: below", "at most 0.025", below)]


def _told(part: str, of: str, wanted: str, studies: Sequence[float]) -> dict[str, Any]:
    """The mean of what was found in each study, with a normal interval; of none or all by the rule of three."""
    mean, number = float(np.mean(studies)), len(studies)
    half = 1.96 * float(np.std(studies, ddof=1)) / math.sqrt(number) or 3 / number
    low, high = max(0.0, mean - half), min(1.0, mean + half)
    return {"part": part, "of": of, "wanted": wanted, "share": mean, "low": low, "high": high, "studies": number}


if __name__ == "__main__":
    sys.exit(main())
