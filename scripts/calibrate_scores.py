"""Whether intervals and tests of scores hold what they promise: shares of drawn studies, with 95 % intervals.

Studies are drawn from a probit model in which judges differ by bias and by sensitivity, and stimuli, answers and the
people who answered by how hard they are.

- Intervals that hold the truth: 0.93 at least is wanted. With a single judge it is the truth of this judge.
- False alarms of differences where there are none: 0.02 to 0.07 wanted, with few judges or stimuli less.
- Agents that pass though their detectability is at the bound: 0.05 at most.
- With --trials half the people count as a machine, judged by `svm`: how often its interval is above and below 0.5.
"""

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from agents import catalogue
from agents.errors import InputError, TuringlikeError
from judging.contrasts import between_judges, by_column, of_agents
from judging.jackknife import Clusters
from judging.measures import MEASURES, difference, share, summarize
from judging.ranking import area
from judging.tables import Table
from judging.trial_set import key_path, read_trial_key
from serving.command_line import positive

HOLDS, ALARMS, FEW, PASSES = "0.93 at least", "0.02 to 0.07", "0.07 at most", "0.05 at most"
PASS_RATES = (0.519, 0.389, 0.133, 0.011)  # GPT-4's after 3, 10 and 110 turns in X-Turing, and Qwen-110B's after 110
NAMES = np.array(["human", "machine"], dtype=object)
Outcomes = dict[str, bool]


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


@dataclass(frozen=True)
class Design:
    """Each judge judges ``per_judge`` answers of people and as many of each machine; ``rates`` are p(H|H) and each
    p(M|M). The standard deviations are in units of the verdicts' noise."""

    judges: int
    stimuli: int
    per_judge: int
    rates: tuple[float, ...]
    of_bias: float = 0.5
    of_sensitivity: float = 0.3
    of_stimuli: float = 0.4
    of_answers: float = 0.3
    people: int = 1  # who answered, each of them a part of the stimuli, or all
    of_people: float = 0.0
    is_crossed: bool = False

    def __str__(self) -> str:
        seen = f" ({self.per_judge} each)" if self.per_judge < self.stimuli else ""
        rates = " and ".join(f"{rate:.2f}" for rate in self.rates[:2])
        who = f", {self.people} people of sd {self.of_people}{' on all' if self.is_crossed else ''}"
        people = who if self.people > 1 else ""
        return f"{self.judges} judges, {self.stimuli} stimuli{seen}, {rates}, answers' sd {self.of_answers}{people}"


INTERVALS = [
    Design(judges, stimuli, per_judge, rates)
    for judges, stimuli, per_judge, rates in (
        *((judges, stimuli, stimuli, (0.6, 0.6)) for judges, stimuli in ((1, 10), (1, 50), (2, 10), (3, 10), (5, 20))),
        *((judges, stimuli, stimuli, (0.94, 0.94)) for judges, stimuli in ((2, 10), (3, 10), (5, 20))),
        *((10, stimuli, per_judge, (0.6, 0.6)) for stimuli, per_judge in ((10, 10), (40, 20))),
        (10, 40, 20, (0.94, 0.94)),
        (30, 40, 12, (0.6, 0.6)),
        (30, 40, 12, (0.98, 0.5)),
        (300, 400, 18, (0.6, 0.7)),
    )
]
OF_FEW = [
    *(Design(judges, stimuli, stimuli, (0.6, 0.6, 0.6))
      for judges, stimuli in ((2, 10), (3, 10), (2, 40), (3, 40), (5, 40))),
    Design(2, 100, 100, (0.6, 0.6, 0.6), of_bias=0.2),
    Design(3, 40, 40, (0.6, 0.5, 0.5), of_bias=1),
    Design(3, 20, 20, (0.94, 0.94, 0.94)),
]  # fmt: skip
OF_PEOPLE = [
    Design(30, 60, 20, (0.6, 0.6), people=people, of_people=spread, is_crossed=is_crossed)
    for people, spread, is_crossed in (
        *((3, spread, True) for spread in (0.2, 0.4)),
        (5, 0.4, False),
        (10, 0.2, False),
        (10, 0.4, True),
        (30, 0.4, False),
    )
]
NULL = (0.5, 0.5, 0.5, 0.5)
NOBODY_DIFFERS = [
    *(Design(judges, stimuli, per_judge, NULL, of_stimuli=0, of_answers=0.5)
      for judges, stimuli, per_judge in ((20, 10, 10), (40, 25, 25), (50, 100, 10), (12, 20, 20), (60, 50, 10))),
    *(Design(40, 25, 25, NULL, of_stimuli=0, of_answers=spread) for spread in (0, 0.1, 0.2, 0.3)),
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether intervals and tests hold.", allow_abbrev=False)
    parser.add_argument("--studies", type=positive, default=100, metavar="N", help="of each design (100)")
    parser.add_argument("--trials", type=Path, metavar="TRIALS", help="a trial set with several people's answers")
    options = parser.parse_args()
    try:
        shares = calibration(options.studies)
        if options.trials is not None:
            shares += people_against_people(options.trials, options.studies)
    except TuringlikeError as error:
        print(f"calibrate_scores: {error}", file=sys.stderr)
        return error.exit_code
    table = Table(shares)
    table.grid("part of wanted share low high studies").print()
    print(orjson.dumps(table.records()).decode())
    return 0


def calibration(studies: int) -> list[Share]:
    parts: list[tuple[str, str, str, Callable[[int], Outcomes]]] = [
        *(("intervals", HOLDS, str(design), partial(holds, design)) for design in INTERVALS),
        *(("pass rates", HOLDS, f"{judges} judges, {pairs} pairs, {rate}", partial(pass_rate, judges, pairs, rate))
          for judges, pairs, rate in [*((300, 25, rate) for rate in PASS_RATES), *((n, 10, 0.6) for n in (2, 3, 6))]),
        *(("unequal judges", HOLDS, f"{judges} judges, the first gives {part:.0%} of the verdicts, bias's sd {bias}",
           partial(unequal, judges, part, bias))
          for judges, part, bias in ((10, 0.5, 0.5), (20, 0.5, 0.2), (20, 0.5, 1), (10, 0.3, 0.5), (40, 0.3, 0.5))),
        *(("people", HOLDS, str(design), partial(holds, design)) for design in OF_PEOPLE),
        *(("numbers of verdicts", HOLDS, f"{judges} judges, tied to {tied}", partial(informative, judges, tied))
          for judges in (12, 40) for tied in ("ability", "bias")),
        *(("areas", HOLDS, f"{few} machines' and {many} people's answers", partial(areas, few, many))
          for few, many in ((5, 50), (5, 200), (10, 50), (10, 200), (50, 50))),
        *(("differences", HOLDS, str(design), partial(differences, design)) for design in OF_FEW),
        ("differences", HOLDS, "12 judges, sensitivity's sd 0.6, less a cue", above_a_cue),
        *(("false alarms", ALARMS, str(design), partial(alarms, design)) for design in NOBODY_DIFFERS),
        *(("false alarms, people", FEW, str(design), partial(alarms, replace(design, rates=NULL)))
          for design in OF_PEOPLE),
        ("false alarms", ALARMS, "columns", columns),
        ("false alarms", ALARMS, "two classifiers on the same 200 trials", two_classifiers),
        *(("a single judge", ALARMS, f"{stimuli} stimuli, {answers} answers each, stimuli's sd {spread}",
           partial(single_judge, stimuli, answers, spread))
          for stimuli, answers, spread in ((150, 5, 0.5), (40, 8, 1.5))),
        *(("slopes", FEW, f"{judges} judges, {stimuli} stimuli, a column of the {name}, {kind}",
           partial(slope, judges, stimuli, name, kind))
          for judges, stimuli, name in ((6, 30, "judge"), (10, 30, "judge"), (12, 30, "judge"), (25, 30, "judge"),
                                        (30, 6, "stimulus"), (30, 10, "stimulus"), (30, 25, "stimulus"))
          for kind in ("even", "skewed")),
        *(("groups of judges", FEW, f"{few} and {many}", partial(groups, few, many))
          for few, many in ((2, 20), (3, 12), (5, 5), (10, 12))),
        *(("passing", PASSES, f"{judges} judges, 100 stimuli ({each} each), detectability {rate}, bounds {bounds}",
           partial(passing, judges, each, rate, bounds))
          for judges, each, rate, bounds in ((200, 20, 0.55, 0.05), (3, 100, 0.6, 0.1), (2, 100, 0.6, 0.1))),
    ]  # fmt: skip
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        of_parts = pool.map(partial(_outcomes, studies), [study for *_, study in parts])
        return [
            _share(part, f"{of}: {name}", wanted, values)
            for (part, wanted, of, _), outcomes in zip(parts, of_parts, strict=True)
            for name, values in outcomes.items()
        ]


def _outcomes(studies: int, study: Callable[[int], Outcomes]) -> dict[str, list[bool]]:
    outcomes: dict[str, list[bool]] = defaultdict(list)
    for number in range(studies):
        for name, value in study(number).items():
            outcomes[name].append(value)
    return outcomes


def drawn(design: Design, study: int) -> tuple[pd.DataFrame, list[float]]:
    """Verdicts, and the true rates: of all judges, or of the single judge who is drawn."""
    chance, number = np.random.default_rng([study, 1]), len(design.rates)
    bias, sensitivity = chance.normal(0, 1, (2, design.judges)) * [[design.of_bias], [design.of_sensitivity]]
    judge, agent, _ = (part.ravel() for part in np.indices((design.judges, number, design.per_judge)))
    order = np.argsort(chance.random((design.judges, number, design.stimuli)), axis=-1)
    stimulus = order[..., : design.per_judge].ravel()
    person = np.where(agent == 0, (stimulus + judge * design.is_crossed) % design.people, 0)
    of_answers = [design.of_stimuli, design.of_answers, 1.0]
    scale = np.full(number, math.hypot(design.of_bias, design.of_sensitivity, *of_answers))
    scale[0] = math.hypot(scale[0], design.of_people)
    side = np.where(np.arange(number) > 0, -1, 1)[:, None]
    middle = (scale * ndtri(design.rates))[:, None] + sensitivity + side * bias
    difficulty = chance.normal(0, design.of_stimuli, design.stimuli)[:, None]
    difficulty = difficulty + chance.normal(0, design.of_answers, (number, design.stimuli, design.people))
    difficulty[0] += chance.normal(0, design.of_people, design.people)
    right = middle[agent, judge] + difficulty[agent, stimulus, person] + chance.normal(size=len(judge)) > 0
    truth = ndtr(middle[:, 0] / math.hypot(*of_answers)) if design.judges == 1 else np.array(design.rates)
    return verdicts(judge, stimulus, agent, right == (agent > 0), person), truth.tolist()


def verdicts(
    judge: NDArray[Any],
    stimulus: NDArray[Any],
    agent: NDArray[Any],
    says_machine: NDArray[Any],
    person: NDArray[Any] | int = 0,
    **columns: Any,
) -> pd.DataFrame:
    """Verdicts on answers to each stimulus by each agent; 0 are people, of whom each is a ``person``."""
    number, people = int(agent.max(initial=0)), int(np.max(person)) + 1
    names = np.array([f"a{at - 1}" if at else "" for at in range(number + 1)], dtype=object)[agent]
    whose = np.array([f"human:{at + 1}" for at in range(people)], dtype=object)[person]
    trial = (stimulus * (number + 1) + agent) * people + person
    table = {"judge": judge, "stimulus": stimulus, "trial": trial, "agent": np.where(agent > 0, names, whose)}
    words = {"truth": NAMES[(agent > 0).astype(int)], "verdict": NAMES[says_machine.astype(int)]}
    return pd.DataFrame(table | words | {"judge_kind": "human"} | columns)


def holds(design: Design, study: int) -> Outcomes:
    return _held(*drawn(design, study))


def unequal(judges: int, part: float, of_bias: float, study: int) -> Outcomes:
    of_first = round(10 * (judges - 1) * part / (1 - part))
    table, truth = drawn(Design(judges, of_first, of_first, (0.6, 0.6), of_bias), study)
    return _held(table[(table["judge"] == 0) | (table.groupby(["judge", "agent"]).cumcount() < 10)], truth)


def informative(judges: int, tied: str, study: int) -> Outcomes:
    """Of each judge 4 to 40 verdicts on people's and on a machine's answers: more of abler judges, or more on people's
    of those who lean to "human"."""
    design = Design(judges, 60, 40, (0.5, 0.5), people=30, of_people=0.2)
    table, _ = drawn(design, study)
    bias, sensitivity = np.random.default_rng([study, 1]).normal(size=(2, judges))  # whose order is that of `drawn`
    rank = (sensitivity if tied == "ability" else bias).argsort().argsort()
    number = (4 + 36 * rank / (judges - 1)).astype(int)[table["judge"]]
    number = np.where((table["truth"] == "human") | (tied == "ability"), number, 44 - number)
    kept = table[table.groupby(["judge", "truth"]).cumcount() < number]
    [test] = of_agents(kept, ["a0"])["against_people"]
    end = summarize(kept, ["a0"])[1].detectability_judges
    return {"of judges": bool(end.low <= 0.5 <= end.high), "no alarm": not _is_alarm([test])}


def _held(table: pd.DataFrame, truth: list[float]) -> Outcomes:
    human, machine = truth
    row, z_human, z_machine = summarize(table, ["a0"])[1], float(ndtri(human)), float(ndtri(machine))
    truths = [human, machine, (human + machine) / 2, z_human + z_machine, (z_human - z_machine) / 2]
    ends = {name: getattr(row, name) for name in MEASURES}
    return {
        name: bool(ends[name].low <= truth <= ends[name].high) for name, truth in zip(MEASURES, truths, strict=True)
    }


def areas(few: int, many: int, study: int) -> Outcomes:
    """Under the ROC curve of a single judge whose scores of machines' answers are higher by a standard deviation."""
    is_machine = np.arange(few + many) < few
    score = np.random.default_rng([study, 7]).normal(size=few + many) + is_machine
    none, each = np.zeros(few + many, dtype=np.int64), np.arange(few + many)
    estimate = area(score, is_machine, Clusters(none, each, none - 1, np.ones(few + many)))
    return {"area": bool(estimate.low <= ndtr(math.sqrt(0.5)) <= estimate.high)}


def differences(design: Design, study: int) -> Outcomes:
    table, (human, first, second) = drawn(design, study)
    tests: dict[str, Sequence[Any]] = of_agents(table, ["a0", "a1"])
    truths = {"against_people": 1 - first - human, "between_agents": first - second}
    ends = {name: tests[name][0].difference for name in truths}
    return {name: bool(end.low <= truths[name] <= end.high) for name, end in ends.items()}


def pass_rate(judges: int, pairs: int, rate: float, study: int) -> Outcomes:
    chance = np.random.default_rng([study, 2])
    judge = np.repeat(np.arange(judges), min(pairs, 6 if judges > pairs else pairs))
    pair = np.argsort(chance.random((judges, pairs)), axis=1)[:, : len(judge) // judges].ravel()
    noise = chance.normal(0, 0.5, judges)[judge] + chance.normal(0, 0.4, pairs)[pair] + chance.normal(size=len(judge))
    passes = math.hypot(1, 0.5, 0.4) * ndtri(rate) + noise > 0
    estimate, _ = share(passes.astype(np.float64), Clusters(judge, pair, np.full_like(judge, -1), np.ones(len(judge))))
    return {"pass rate": estimate.low <= rate <= estimate.high}


def above_a_cue(study: int) -> Outcomes:
    chance, design = np.random.default_rng([study, 3]), Design(12, 60, 60, (0.64, 0.64), 0, 0.6, 0, 0.3)
    people, _ = drawn(design, study)
    cue = people[people["judge"] == 0].assign(judge="cue", judge_kind="machine")
    cue["verdict"] = NAMES[chance.integers(2, size=len(cue))]
    result = difference(pd.concat([people.assign(judge=people["judge"].astype(str)), cue]), "people", "cue")
    return {"detectability": result.low <= 14 <= result.high}


def alarms(design: Design, study: int) -> Outcomes:
    return _alarms(drawn(design, study)[0])


def _alarms(table: pd.DataFrame) -> Outcomes:
    tests = of_agents(table, ["a0", "a1"])
    return {"agents": _is_alarm(tests["between_agents"]), "agent less people": _is_alarm(tests["against_people"])}


def columns(study: int) -> Outcomes:
    """Two topics of other mixes of people and machines, judged by who says human of 70 %; lengths of conversations
    that differ, and two groups of judges who differ, of which none matters; two halves with other shares of agents."""
    chance = np.random.default_rng([study, 4])
    judge, stimulus = (part.ravel() for part in np.indices((30, 24)))
    agent = (chance.random(len(judge)) > np.where(stimulus < 12, 0.7, 0.3)).astype(int)
    leaning = verdicts(judge, stimulus, agent, chance.random(len(judge)) > 0.7, topic=stimulus < 12)
    conversation, length, _ = (part.ravel() for part in np.indices((40, 3, 5)))
    judge, agent = chance.integers(20, size=len(length)), conversation % 2
    right = chance.normal(0, 1.2, 40)[conversation] + chance.normal(size=len(length)) > 0
    excerpts = verdicts(judge, conversation, agent, right == (agent > 0), length=3 + 3 * length)
    groups, _ = drawn(Design(24, 30, 15, (0.6, 0.6)), study)
    groups["young"] = groups["judge"] % 2 == 0
    mixed, _ = drawn(Design(30, 60, 40, (0.5, 0.5, 0.8)), study)  # one agent is more often in the first half
    is_early, is_kept = mixed["stimulus"] < 30, chance.random(len(mixed)) < 0.8
    mixed = mixed[(mixed["truth"] == "human") | (is_kept == (is_early == (mixed["agent"] == "a0")))]
    tables = {"topic": leaning, "length": excerpts, "young": groups, "early": mixed.assign(early=is_early)}
    return {column: _is_alarm(by_column(table, column)) for column, table in tables.items()}


def two_classifiers(study: int) -> Outcomes:
    table, _ = drawn(Design(2, 100, 100, (0.6, 0.6), 0, 0, 0, 0.5), study)
    return {"detectability": _is_alarm(between_judges(table.assign(judge_kind="machine")))}


def single_judge(stimuli: int, answers: int, spread: float, study: int) -> Outcomes:
    chance = np.random.default_rng([study, 5])
    agent, stimulus, _ = (part.ravel() for part in np.indices((2, stimuli, answers)))
    says_machine = chance.normal(0, spread, (2, stimuli))[agent, stimulus] + chance.normal(size=len(agent)) > 0
    tests = of_agents(verdicts(np.zeros_like(agent), agent * stimuli + stimulus, agent, says_machine), ["a0"])
    return {"p(H|H)": _is_alarm(tests["against_half"]), "agent less people": _is_alarm(tests["against_people"])}


def slope(judges: int, stimuli: int, name: str, kind: str, study: int) -> Outcomes:
    table, _ = drawn(Design(judges, stimuli, min(stimuli, 15), (0.6, 0.6), 0.5, 0.6, 0.8), study)
    value = np.random.default_rng([study, 6]).normal(size=max(judges, stimuli))
    return {
        "slope": _is_alarm(by_column(table.assign(x=(ndtr if kind == "even" else np.exp)(value)[table[name]]), "x"))
    }


def groups(few: int, many: int, study: int) -> Outcomes:
    table, _ = drawn(Design(few + many, 30, 15, (0.6, 0.6)), study)
    return {"detectability": _is_alarm(by_column(table.assign(young=table["judge"] < few), "young"))}


def passing(judges: int, each: int, rate: float, bounds: float, study: int) -> Outcomes:
    table, _ = drawn(Design(judges, 100, each, (rate, rate), *(() if judges > 3 else (0.8, 0.1))), study)
    [test] = of_agents(table, ["a0"], bounds)["against_people"]
    return {"passes": bool(getattr(test, "passes", None))}


def _is_alarm(tests: Sequence[Any]) -> bool:
    return tests[0].p is not None and tests[0].p < 0.05


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
        sides: dict[str, list[bool]] = defaultdict(list)
        for study in range(studies):
            # Half of each stimulus's answers, drawn; of an odd number the last falls to either side.
            order = np.lexsort((np.random.default_rng([study, 3]).random(len(trials)), groups))
            is_machine = np.zeros(len(trials), dtype=bool)
            is_machine[order[study % 2 :: 2]] = True
            truth = [{**keys[trial["id"]], "truth": "machine" if is_half else "human", "agent": "half"}
                     for trial, is_half in zip(trials, is_machine, strict=True)]  # fmt: skip
            of_study = type(judge)(judge.settings.model_copy(update={"seed": study}), judge.name)
            margins = of_study.judge_trials(trials, truth, inputs)
            judged = np.array([at for at, trial in enumerate(trials) if trial["id"] in margins])
            says_machine = np.array([margins[trials[at]["id"]]["margin"] > 0 for at in judged])
            agent = is_machine[judged].astype(int)
            table = verdicts(np.zeros_like(agent), groups[judged], agent, says_machine).assign(margin=0.0)
            [_, row] = summarize(table, ["a0"])
            sides["above"].append(row.detectability.low > 0.5)
            sides["below"].append(row.detectability.high < 0.5)
        for name, values in sides.items():
            yield _share("people against people", f"svm, {task}: {name}", "at most 0.025", values)


def _share(part: str, of: str, wanted: str, studies: Sequence[bool]) -> Share:
    mean, number = float(np.mean(studies)), len(studies)
    half = 1.96 * float(np.std(studies, ddof=1)) / math.sqrt(number) or 3 / number
    return Share(part, of, wanted, mean, max(0.0, mean - half), min(1.0, mean + half), number)


if __name__ == "__main__":
    sys.exit(main())
