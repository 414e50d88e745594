"""Whether contamination rates and corrected scores hold what they promise, in studies whose truth is known.

Of 150 participants a share pastes: each of these gives a share of foreign answers of their own, two thirds on average,
and the others none. Each gives 10 answers, with the four marks of :mod:`judging.contamination.marks`. How often own
answers have a mark differs between persons, more than a binomial distribution would; the check questions are a person's
own. 60 judges see 20 answers of people and 20 of a machine each. Judges, participants and stimuli differ in how often
their answers are taken for a person's. A laboratory has 30 further persons with 10 own answers each. The functions are
those of `turinglike score --contamination`.

A cell is a rate, how well the marks tell own answers from foreign ones, and whether there is a laboratory. Its shares
of studies are compared with nominal values: 95 % of intervals hold the truth; at rate 0 at most 5 % of studies are
found contaminated. A share fails if its exact 95 % interval (Clopper, Pearson 1934) leaves the nominal value out, and
for what is nominal on one side only if it lies beyond it. The mean correction at rate 0 has to be 0: its 95 % interval
must contain 0. At most 1 share in 10 may fail.

Near a rate of 0 its intervals are nominal on one side: they hold the truth in at least 95 % of studies. No rate is
below 0. So within two standard errors of 0 the likelihood ratio of the true rate is smaller than chi-squared: at 0
itself it is 0 in half of all studies (Self, Liang 1987, case 5). And an interval begins at 0 unless the alarm is given,
so that it cannot miss a small rate from above. A cell is near 0 if more of its intervals begin at 0 than may lie above
the truth, 1 in 40. The script also tells how many of these hold it more often than 95 %.

With `--restless SHARE` the model is wrong. This share of participants leaves the page and types smoothly more often
than others, by 0.3 each, so that two marks go together on own answers. What comes of it is told, not judged.

With `--pairs` studies are of pairs of conversations. The 150 participants have two conversations each, and 60 judges
see 20 pairs each. They are wrong about 0.3 of the pairs, and about half of those whose conversation of people is
foreign. Again, what comes of it is told.
"""

import argparse
import math
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from judging.contamination.asked import Traced
from judging.contamination.correction import Corrected, by_traces
from judging.contamination.latent_classes import Counts, Floats
from judging.contamination.marks import MARKS, AnswerKey
from judging.contamination.pairs import BY_CHANCE, contaminated_pairs
from judging.contamination.rate import Rate, estimate_rate
from judging.contamination.rate_of_task import RateOfTask
from judging.statistics.jackknife import Cells, Clusters, Codes
from judging.statistics.pass_rate import PEOPLE_COLUMN
from judging.statistics.tables import Estimate, Grid
from serving.commands.command_line import share

PERSONS = 150
IN_LABORATORY = 30
ANSWERS = 10
STIMULI = 60
JUDGES = 60
PER_JUDGE = 20  # answers of people, and as many of the machine
WITHIN_PERSON = 0.1  # the correlation of a mark on two own answers of a person
OWN = 0.64  # p(H|H) of own answers
FOREIGN = 0.35  # p(H|H) of foreign ones
MACHINE = 0.62  # p(M|M)
TALKS = 2  # conversations of each participant, with --pairs
PASSES = 0.3  # the pass rate beside own conversations, with --pairs
RATES = (0.0, 0.1, 0.3)
# by name the shares of own and of foreign answers with each mark
SEPARABILITY = {
    "weak": ((0.10, 0.20, 0.15, 0.08), (0.5, 0.5, 0.4, 0.2)),
    "middle": ((0.05, 0.15, 0.10, 0.05), (0.7, 0.6, 0.5, 0.3)),
    "strong": ((0.02, 0.10, 0.05, 0.03), (0.9, 0.8, 0.7, 0.5)),
}
INSERTED = 0
AWAY = 1
SMOOTH = 2
CHECK = 3
MOST_FAILING = 0.1
TAIL = 0.025  # of intervals may lie above the truth, and as many below
HOLDS = "holds"
FAILS = "fails"
WIDER = "holds more"  # than the nominal share, where at least this is nominal

Share = tuple[str, float, float, float, int, float, str]
Means = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """A drawn study."""

    counts: Counts
    """Its answers by person and pattern of marks."""
    pattern: Codes
    """[persons, answers] the pattern of each answer."""
    right: Floats
    """[verdicts] 1 for each right verdict."""
    judged: tuple[Codes, Codes]
    """[people's verdicts] the person and the answer that is judged."""
    clusters: Clusters
    """Of the verdicts; people's stand first."""


def main() -> None:
    """Simulate all cells, print the shares, and exit with 1 if too many fail."""
    parser = argparse.ArgumentParser(description="Whether rates and corrected scores hold.", allow_abbrev=False)
    parser.add_argument("--studies", type=int, default=2000, metavar="N", help="of each cell (2000)")
    parser.add_argument("--cells", default="", metavar="TEXT", help="only cells whose name contains this")
    parser.add_argument("--restless", type=share, default=0.0, metavar="SHARE", help="of participants (0)")
    parser.add_argument("--pairs", action="store_true", help="studies of pairs of conversations instead")
    options = parser.parse_args()
    if options.pairs:
        _tell_of_pairs(options.studies, options.cells)
        return
    shares = []
    corrections = []
    for name, laboratory, rate in product(SEPARABILITY, (False, True), RATES):
        cell = f"{name}, {'with' if laboratory else 'without'} a laboratory, rate {rate:g}"
        if options.cells in cell:
            of_cell, correction = simulate(name, laboratory, rate, options.studies, options.restless)
            shares += [(cell, *row) for row in of_cell]
            corrections.append((cell, *correction))
            print(cell, *of_cell, correction, file=sys.stderr, flush=True)
    headings = ("cell", "figure", "share in %", "low", "high", "studies", "nominal", "verdict")
    Grid("Shares", headings, [_in_percent(row) for row in shares]).print()
    of_means = ("cell", "rate", "width", "correction", "error", "true correction", "no figure")
    Grid("Means", of_means, [_with_digits(row) for row in corrections]).print()
    if options.restless:
        sys.exit(0)
    failing = sum(row[-1] == FAILS for row in shares)
    print(f"{failing} of {len(shares)} shares fail; at most {math.floor(MOST_FAILING * len(shares))} may")
    wider = sum(row[-1] == WIDER for row in shares)
    print(f"{wider} more, all of the rate near 0, hold the truth more often than 95 %")
    sys.exit(failing > MOST_FAILING * len(shares))


def _in_percent(row: tuple[Any, ...]) -> list[Any]:
    cell, figure, value, low, high, number, nominal, verdict = row
    percent = [f"{100 * one:.1f}" for one in (value, low, high)]
    return [cell, figure, *percent, number, f"{100 * nominal:.0f}", verdict]


def _with_digits(row: tuple[Any, ...]) -> list[Any]:
    cell, *means, without = row
    return [cell, *(f"{mean:.4f}" for mean in means), without]


def simulate(
    name: str, laboratory: bool, rate: float, studies: int, restless: float = 0.0
) -> tuple[list[Share], Means]:
    """The shares of a cell's studies, each with its interval, and its mean rate, width and correction."""
    outcomes: dict[str, list[bool]] = defaultdict(list)
    numbers = []
    begins_at_zero = 0
    for study in range(studies):
        rng = np.random.default_rng([study, int(1000 * rate), laboratory, list(SEPARABILITY).index(name)])
        drawn = draw(rng, name, laboratory, rate, restless)
        found = estimate_rate(drawn.counts)
        if found.why:
            continue
        corrected, plain = figures(drawn, found)
        outcomes["rate"].append(_holds(found.estimate, rate))
        outcomes["p(H|H)"].append(_holds(corrected.p_human, OWN))
        outcomes["detectability"].append(_holds(corrected.detectability, (OWN + MACHINE) / 2))
        if rate == 0:
            outcomes["alarm"].append(found.is_contaminated)
        begins_at_zero += found.estimate.low == 0
        width = found.estimate.high - found.estimate.low
        numbers.append((found.estimate.value, width, corrected.p_human.value - plain))
    shares = []
    for figure, is_so in outcomes.items():
        number = len(is_so)
        interval = binomtest(sum(is_so), number).proportion_ci(0.95)
        nominal = 0.05 if figure == "alarm" else 0.95
        is_beyond = interval.high < nominal
        is_wider = interval.low > nominal
        if figure == "alarm":
            verdict = FAILS if is_wider else HOLDS
        elif figure == "rate" and begins_at_zero > TAIL * number:
            verdict = FAILS if is_beyond else WIDER if is_wider else HOLDS
        else:
            verdict = FAILS if is_beyond or is_wider else HOLDS
        shares.append((figure, sum(is_so) / number, interval.low, interval.high, number, nominal, verdict))
    means = np.mean(numbers, axis=0)
    error = float(np.std(numbers, axis=0, ddof=1)[2]) / math.sqrt(len(numbers))
    if rate == 0:
        ends = (means[2] - 1.96 * error, means[2] + 1.96 * error)
        verdict = HOLDS if ends[0] <= 0 <= ends[1] else FAILS
        shares.append(("correction", float(means[2]), *ends, len(numbers), 0.0, verdict))
    true = OWN - ((1 - rate) * OWN + rate * FOREIGN)
    return shares, (*means.tolist(), error, true, studies - len(numbers))


def figures(drawn: Study, found: Rate) -> tuple[Corrected, float]:
    """The corrected figures of the machine, and the plain p(H|H)."""
    is_human = np.arange(len(drawn.right)) < len(drawn.judged[0])
    posterior = np.zeros((len(found.posterior), len(drawn.right)))
    posterior[:, is_human] = found.posterior[:, drawn.pattern[drawn.judged]]
    [corrected] = by_traces(drawn.right, np.array([is_human, ~is_human]), drawn.clusters, posterior)
    return corrected, float(drawn.right[is_human].mean())


def draw(rng: np.random.Generator, name: str, laboratory: bool, rate: float, restless: float = 0.0) -> Study:
    """A study of the cell."""
    own, foreign = np.array(SEPARABILITY[name])
    pastes = rng.random(PERSONS) < 1.5 * rate
    is_foreign = rng.random((PERSONS, ANSWERS)) < (pastes * rng.beta(4, 2, PERSONS))[:, None]
    code = _patterns(rng, is_foreign, own, foreign, restless)
    in_laboratory = np.zeros((0, ANSWERS), dtype=np.int64)
    if laboratory:
        in_laboratory = _patterns(rng, np.zeros((IN_LABORATORY, ANSWERS), dtype=bool), own, foreign, restless)
    codes = np.unique(np.concatenate([code, in_laboratory]))
    digits = codes[:, None] // 3 ** np.arange(len(MARKS)) % 3
    patterns = np.where(digits == 2, np.nan, digits)
    by_person = [np.stack([(table == one).sum(axis=1) for one in codes], axis=1) for table in (code, in_laboratory)]
    in_field, elsewhere = by_person
    counts = Counts(patterns, in_field.astype(float), elsewhere.astype(float), np.array(list(MARKS.values())))

    judges = np.repeat(np.arange(JUDGES), PER_JUDGE)
    drawn = np.concatenate([rng.choice(PERSONS * ANSWERS, PER_JUDGE, replace=False) for _ in range(JUDGES)])
    person, answer = np.divmod(drawn, ANSWERS)
    stimulus_of = np.stack([rng.permutation(STIMULI)[:ANSWERS] for _ in range(PERSONS)])
    stimuli = np.concatenate([stimulus_of[person, answer], rng.integers(STIMULI, size=len(drawn))])
    bias = rng.uniform(-0.1, 0.1, JUDGES)[judges]
    ability = rng.uniform(-0.08, 0.08, JUDGES)[judges]
    of_person = rng.uniform(-0.08, 0.08, PERSONS)[person]
    of_stimulus = rng.uniform(-0.08, 0.08, STIMULI)[stimuli]
    human = np.where(is_foreign[person, answer], FOREIGN, OWN) + ability + bias
    human += of_person + of_stimulus[: len(drawn)]
    machine = MACHINE + ability - bias + of_stimulus[len(drawn) :]
    right = (rng.random(2 * len(drawn)) < np.concatenate([human, machine])).astype(np.float64)
    both = np.concatenate([judges, judges])
    people = np.concatenate([person, np.full(len(drawn), -1)])
    clusters = Clusters(both, stimuli, people, np.ones(len(right)))
    return Study(counts, np.searchsorted(codes, code).astype(np.int64), right, (person, answer), clusters)


def _tell_of_pairs(studies: int, cells: str) -> None:
    """Simulate pairs of conversations, and print how often intervals hold the pass rate of own conversations."""
    rows = []
    for name, rate in product(SEPARABILITY, RATES):
        cell = f"{name}, rate {rate:g}"
        if cells not in cell:
            continue
        held = []
        values = []
        for study in range(studies):
            rng = np.random.default_rng([study, int(1000 * rate), 2, list(SEPARABILITY).index(name)])
            verdicts, of_task = draw_pairs(rng, name, rate)
            [row] = contaminated_pairs(verdicts, Traced(Path("field")), of_task)
            if not row.why:
                held.append((_holds(row.pass_rate, PASSES), _holds(row.pass_rate_corrected, PASSES)))
                values.append((row.pass_rate.value, row.pass_rate_corrected.value))
        plain, corrected = np.sum(held, axis=0).tolist()
        interval = binomtest(corrected, len(held)).proportion_ci(0.95)
        in_percent = [100 * share for share in (plain / len(held), corrected / len(held), interval.low, interval.high)]
        means = np.mean(values, axis=0).tolist()
        rows.append([cell, *(f"{one:.1f}" for one in in_percent), *(f"{one:.3f}" for one in means), len(held)])
    headings = ("cell", "plain holds %", "corrected holds %", "low", "high", "mean plain", "mean corrected", "studies")
    Grid(f"Pass rates; the true one is {PASSES}", headings, rows).print()


def draw_pairs(rng: np.random.Generator, name: str, rate: float) -> tuple[pd.DataFrame, RateOfTask]:
    """Verdicts on pairs of conversations, and what the traces of these say."""
    own, foreign = np.array(SEPARABILITY[name])
    pastes = rng.random(PERSONS) < 1.5 * rate
    is_foreign = rng.random((PERSONS, TALKS)) < (pastes * rng.beta(4, 2, PERSONS))[:, None]
    code = _patterns(rng, is_foreign, own, foreign, 0.0)
    codes = np.unique(code)
    digits = codes[:, None] // 3 ** np.arange(len(MARKS)) % 3
    by_person = np.stack([(code == one).sum(axis=1) for one in codes], axis=1).astype(float)
    least = np.array(list(MARKS.values()))
    found = estimate_rate(Counts(np.where(digits == 2, np.nan, digits), by_person, by_person[:0], least))
    speaker = np.concatenate([rng.permutation(PERSONS) for _ in range(TALKS)]).reshape(-1, 2)
    number = np.repeat(np.arange(TALKS), PERSONS).reshape(-1, 2)
    names = [f"human:{first}~human:{second}" for first, second in speaker]
    pattern_of = {}
    for talk, people in enumerate(names):
        for side, letter in enumerate("AB"):
            pattern = np.searchsorted(codes, code[speaker[talk, side], number[talk, side]])
            pattern_of[AnswerKey("conversation", people, f"talk-{talk}", 0, letter)] = int(pattern)
    is_either = is_foreign[speaker, number].any(axis=1)
    of_talk = rng.uniform(-0.08, 0.08, len(names))
    rows = []
    for judge, ability in enumerate(rng.uniform(-0.1, 0.1, JUDGES)):
        for talk in rng.choice(len(names), PER_JUDGE, replace=False):
            is_wrong = rng.random() < (BY_CHANCE if is_either[talk] else PASSES) + ability + of_talk[talk]
            words = ("machine", "human") if (talk + judge) % 2 else ("human", "machine")
            both = ("machine", names[talk]) if words[0] == "machine" else (names[talk], "machine")
            rows.append(
                {
                    "judge": f"human:{judge}",
                    "judge_kind": "human",
                    "trial": f"talk-{talk}",
                    "stimulus": f"talk-{talk}",
                    "truth": words[0],
                    "beside_truth": words[1],
                    "agent": both[0],
                    "beside_agent": both[1],
                    "turns": 3,
                    PEOPLE_COLUMN: f"field talk-{talk} {names[talk]} 0",
                    "verdict": words[int(is_wrong)],
                }
            )
    of_task = RateOfTask(found, PERSONS, PERSONS * TALKS, 0, pattern_of)
    return pd.DataFrame(rows), of_task


def _patterns(rng: np.random.Generator, is_foreign: Cells, own: Floats, foreign: Floats, restless: float) -> Codes:
    """The marks [persons, answers] as digits of a number to base 3; 2 is a mark that is not known."""
    spread = (1 - WITHIN_PERSON) / WITHIN_PERSON
    of_persons = rng.beta(own * spread, (1 - own) * spread, size=(len(is_foreign), len(own)))
    if restless:
        is_restless = rng.random(len(is_foreign)) < restless
        of_persons[:, [AWAY, SMOOTH]] += 0.3 * is_restless[:, None]
        of_persons = np.minimum(of_persons, 1)
    of_persons[:, CHECK] = rng.random(len(is_foreign)) < own[CHECK]  # the same questions on all answers
    chance = np.where(is_foreign[..., None], foreign, of_persons[:, None, :])
    marks = (rng.random(chance.shape) < chance).astype(np.int64)
    marks[..., CHECK] |= of_persons[:, None, CHECK].astype(np.int64)
    marks[..., SMOOTH] = np.where(marks[..., INSERTED] == 1, 2, marks[..., SMOOTH])
    return np.asarray(marks @ 3 ** np.arange(len(own)), dtype=np.int64)


def _holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


if __name__ == "__main__":
    main()
