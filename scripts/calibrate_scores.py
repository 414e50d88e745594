"""Whether intervals and tests of scores hold what they promise: shares of drawn studies, with 95 % intervals.

Studies are those of :mod:`drawn_verdicts`, or drawn here where they have another form.

- Intervals that hold the truth: 0.93 at least is wanted. With a single judge it is the truth of this judge.
- False alarms of differences where there are none: 0.02 to 0.07 wanted, with few judges or stimuli less.
- Agents that pass though their detectability is at the bound: 0.05 at most.
- Studies as large as undecided ones say that they have to be: 0.80 at least decide, as those are told for which the
  variance seems larger than it is.
- With --trials half the people count as a machine, judged by `svm`: how often its interval is above and below 0.5.
"""

import argparse
import math
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
from drawn_verdicts import NAMES, Design, drawn, verdicts
from scipy.special import ndtr, ndtri

from agents import catalogue
from agents.errors import InputError, TuringlikeError
from judging.statistics.by_margin import area
from judging.statistics.contrasts import agent_tests, between_judges, by_column
from judging.statistics.jackknife import Clusters, Codes
from judging.statistics.ledger import detectability_difference
from judging.statistics.measures import MEASURES, share, summarize
from judging.statistics.needed import needed
from judging.statistics.tables import Estimate, Table
from judging.trial_sets.trial_set import TRIALS_FILE, key_path, read_trial_key
from serving.commands.command_line import positive

HOLDS = "0.93 at least"
ALARMS = "0.02 to 0.07"
FEW = "0.07 at most"
PASSES = "0.05 at most"
DECIDES = "0.80 at least"
PASS_RATES = (0.519, 0.389, 0.133, 0.011)  # GPT-4's after 3, 10 and 110 turns in X-Turing, and Qwen-110B's after 110
Outcomes = dict[str, bool]
Rows = Sequence[dict[str, Any]]
Share = namedtuple("Share", "part of wanted share low high studies")


INTERVALS = [
    *(Design(judges, number, number) for judges, number in ((1, 10), (1, 50), (2, 10), (3, 10), (5, 20))),
    *(Design(judges, number, number, (0.94, 0.94)) for judges, number in ((2, 10), (3, 10), (5, 20))),
    Design(10, 10, 10),
    Design(10, 40, 20),
    Design(10, 40, 20, (0.94, 0.94)),
    Design(30, 40, 12),
    Design(30, 40, 12, (0.98, 0.5)),
    Design(300, 400, 18, (0.6, 0.7)),
]
OF_FEW = [
    *(Design(judges, number, number, (0.6,) * 3) for judges, number in ((2, 10), (3, 10), (2, 40), (3, 40), (5, 40))),
    Design(2, 100, 100, (0.6, 0.6, 0.6), of_bias=0.2),
    Design(3, 40, 40, (0.6, 0.5, 0.5), of_bias=1),
    Design(3, 20, 20, (0.94, 0.94, 0.94)),
]
PEOPLE = (
    (3, 0.2, True),
    (3, 0.4, True),
    (5, 0.4, False),
    (10, 0.2, False),
    (10, 0.4, True),
    (30, 0.4, False),
    (2, 1.2, True),
    (4, 1.6, True),
)
OF_PEOPLE = [Design(30, 60, 20, people=number, of_people=sd, is_crossed=of_all) for number, sd, of_all in PEOPLE]
SIZES = ((20, 10, 10), (40, 25, 25), (50, 100, 10), (12, 20, 20), (60, 50, 10))
NOBODY_DIFFERS = [
    Design(judges, stimuli, answers, (0.5, 0.5), of_stimuli=0, of_answers=spread)
    for (judges, stimuli, answers), spread in (*product(SIZES, (0.5,)), *product(SIZES[1:2], (0, 0.1, 0.2, 0.3)))
]

UNDECIDED = [
    (Design(12, 20, 10, (0.5, 0.5)), 0.1),
    (Design(20, 30, 15, (0.57, 0.57)), 0.05),
    (Design(1, 60, 60, (0.57, 0.57), of_bias=0, of_sensitivity=0), 0.05),
    (Design(15, 30, 15, (0.62, 0.5), people=8, of_people=0.3, is_crossed=True), 0.1),
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether intervals and tests hold.", allow_abbrev=False)
    parser.add_argument("--studies", type=positive, default=100, metavar="N", help="of each design (100)")
    parser.add_argument("--trials", type=Path, metavar="TRIALS", help="a trial set with several people's answers")
    options = parser.parse_args()
    try:
        shares = calibration(options.studies)
        if options.trials is not None:
            shares += people_against_people(options.trials, options.studies)
    except TuringlikeError as error:
        parser.exit(error.exit_code, f"calibrate_scores: {error}\n")
    Table(shares).grid(" ".join(Share._fields)).print()
    print(orjson.dumps([row._asdict() for row in shares]).decode())


def calibration(studies: int) -> list[Share]:
    # Each part, what is wanted of it, its study, and of which designs it is, in words and as the study takes them.
    parts: list[tuple[str, str, Callable[..., Outcomes], str, Iterable[tuple[Any, ...]]]] = [
        ("intervals", HOLDS, holds, "{}", zip(INTERVALS)),
        (
            "pass rates",
            HOLDS,
            pass_rate,
            "{} judges, {} pairs, {}",
            [*product([300], [25], PASS_RATES), *product([2, 3, 6], [10], [0.6])],
        ),
        (
            "unequal judges",
            HOLDS,
            unequal,
            "{} judges, the first gives {:.0%} of the verdicts, bias's sd {}",
            [(10, 0.5, 0.5), (20, 0.5, 0.2), (20, 0.5, 1), (10, 0.3, 0.5), (40, 0.3, 0.5)],
        ),
        ("people", HOLDS, holds, "{}", zip(OF_PEOPLE)),
        ("numbers of verdicts", HOLDS, informative, "{} judges, tied to {}", product([12, 40], ["ability", "bias"])),
        ("areas", HOLDS, areas, "{} machines' and {} people's answers", [*product([5, 10], [50, 200]), (50, 50)]),
        ("differences", HOLDS, differences, "{}", zip(OF_FEW)),
        ("differences", HOLDS, above_a_cue, "12 judges, sensitivity's sd 0.6, less a cue", [()]),
        ("false alarms", ALARMS, alarms, "{}", zip(NOBODY_DIFFERS)),
        ("false alarms, people", FEW, alarms, "{}", zip(OF_PEOPLE)),
        ("false alarms", ALARMS, columns, "columns", [()]),
        ("false alarms", ALARMS, two_classifiers, "two classifiers on the same 200 trials", [()]),
        (
            "a single judge",
            ALARMS,
            single_judge,
            "{} stimuli, {} answers each, stimuli's sd {}",
            [(150, 5, 0.5), (40, 8, 1.5)],
        ),
        *(
            ("slopes", FEW, slope, "{} judges, {} stimuli, a column of the {}, {}", product(*sizes, ["even", "skewed"]))
            for sizes in (([6, 10, 12, 25], [30], ["judge"]), ([30], [6, 10, 25], ["stimulus"]))
        ),
        ("groups of judges", FEW, groups, "{} and {}", [(2, 20), (3, 12), (5, 5), (10, 12)]),
        (
            "groups that vary unlike",
            FEW,
            unlike,
            "{} judges of sd {} and {} of sd {}",
            [(3, 0.9, 3, 0.0), (3, 1.2, 6, 0.1), (5, 0.9, 5, 0.1), (20, 0.9, 3, 0.1)],
        ),
        (
            "passing",
            PASSES,
            passing,
            "{} judges, 100 stimuli ({} each), detectability {}, bounds {}",
            [(200, 20, 0.55, 0.05), (3, 100, 0.6, 0.1), (2, 100, 0.6, 0.1)],
        ),
        ("what would decide", DECIDES, enlarged, "{}, bounds {}", UNDECIDED),
    ]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        started = [
            (part, wanted, of.format(*design), pool.map(partial(study, *design), range(studies), chunksize=studies))
            for part, wanted, study, of, designs in parts
            for design in designs
        ]
        return [row for cell in started for row in _shares(*cell)]


def _shares(part: str, wanted: str, of: str, studies: Iterable[Outcomes]) -> Iterator[Share]:
    """The mean over studies with a normal interval; of none or all by the rule of three."""
    for name, outcomes in pd.DataFrame(studies).items():
        mean = float(outcomes.mean())
        number = len(outcomes)
        half = 1.96 * float(np.std(outcomes.to_numpy(), ddof=1)) / math.sqrt(number) or 3 / number
        yield Share(part, f"{of}: {name}", wanted, mean, max(0.0, mean - half), min(1.0, mean + half), number)


def holds(design: Design, study: int, of_others: int | None = None) -> Outcomes:
    """Of all measures; ``of_others`` is how many of a kind of answer each judge but the first has judged."""
    table, rates = drawn(design, study)
    if of_others is not None:
        table = table[(table["judge"] == 0) | (table.groupby(["judge", "agent"]).cumcount() < of_others)]
    row = summarize(table, ["a0"])[1]
    (human, machine) = rates
    (z_human, z_machine) = ndtri(rates)
    truths = [human, machine, (human + machine) / 2, z_human + z_machine, (z_human - z_machine) / 2]
    return {name: _is_inside(truth, getattr(row, name)) for name, truth in zip(MEASURES, truths, strict=True)}


def unequal(judges: int, part: float, of_bias: float, study: int) -> Outcomes:
    of_first = round(10 * (judges - 1) * part / (1 - part))
    return holds(Design(judges, of_first, of_first, of_bias=of_bias), study, of_others=10)


def _is_inside(truth: float, estimate: Estimate) -> bool:
    return bool(estimate.low <= truth <= estimate.high)


def informative(judges: int, tied: str, study: int) -> Outcomes:
    """Of each judge 4 to 40 verdicts on people's and on a machine's answers: more of abler judges, or more on people's
    of those who lean to "human"."""
    table, _ = drawn(Design(judges, 60, 40, (0.5, 0.5), people=30, of_people=0.2), study)
    bias, sensitivity = np.random.default_rng([study, 1]).normal(size=(2, judges))  # whose order is that of `drawn`
    rank = (sensitivity if tied == "ability" else bias).argsort().argsort()
    number = (4 + 36 * rank / (judges - 1)).astype(int)[table["judge"]]
    number = np.where((table["truth"] == "human") | (tied == "ability"), number, 44 - number)
    kept = table[table.groupby(["judge", "truth"]).cumcount() < number]
    is_alarm = _is_alarm(agent_tests(kept, ["a0"])["against_people"])
    return {"of judges": _is_inside(0.5, summarize(kept, ["a0"])[1].detectability_judges), "no alarm": not is_alarm}


def areas(few: int, many: int, study: int) -> Outcomes:
    """Under the ROC curve of a single judge whose scores of machines' answers are higher by a standard deviation."""
    is_machine = np.arange(few + many) < few
    score = np.random.default_rng([study, 7]).normal(size=few + many) + is_machine
    none = np.zeros(few + many, dtype=np.int64)
    each = np.arange(few + many)
    estimate = area(score, is_machine, Clusters(none, each, none - 1, np.ones(few + many)))
    return {"area": _is_inside(ndtr(math.sqrt(0.5)), estimate)}


def differences(design: Design, study: int) -> Outcomes:
    table, (human, first, second) = drawn(design, study)
    tests: Any = agent_tests(table, ["a0", "a1"])
    truths = [1 - first - human, first - second]
    names = ("against_people", "between_agents")
    return {name: _is_inside(truth, tests[name][0].difference) for name, truth in zip(names, truths, strict=True)}


def pass_rate(judges: int, pairs: int, rate: float, study: int) -> Outcomes:
    chance = np.random.default_rng([study, 2])
    each = 6 if judges > pairs else pairs
    judge = np.repeat(np.arange(judges), each)
    pair = np.argsort(chance.random((judges, pairs)), axis=1)[:, :each].ravel()
    noise = chance.normal(0, 0.5, judges)[judge] + chance.normal(0, 0.4, pairs)[pair] + chance.normal(size=len(judge))
    passes = math.hypot(1, 0.5, 0.4) * ndtri(rate) + noise > 0
    estimate, _ = share(passes.astype(np.float64), Clusters(judge, pair, np.full_like(judge, -1), np.ones(len(judge))))
    return {"pass rate": _is_inside(rate, estimate)}


def above_a_cue(study: int) -> Outcomes:
    people, _ = drawn(Design(12, 60, 60, (0.64, 0.64), of_bias=0, of_sensitivity=0.6, of_stimuli=0), study)
    cue = people[people["judge"] == 0].assign(judge="cue", judge_kind="machine")
    cue["verdict"] = NAMES[np.random.default_rng([study, 3]).integers(2, size=len(cue))]
    table = pd.concat([people.assign(judge=people["judge"].astype(str)), cue])
    return {"detectability": _is_inside(14, detectability_difference(table, "people", "cue"))}


def alarms(design: Design, study: int) -> Outcomes:
    table, _ = drawn(replace(design, rates=(0.5,) * 4), study)
    tests = agent_tests(table, ["a0", "a1"])
    return {"agents": _is_alarm(tests["between_agents"]), "agent less people": _is_alarm(tests["against_people"])}


def _is_alarm(tests: Sequence[Any]) -> bool:
    return tests[0].p is not None and tests[0].p < 0.05


def columns(study: int) -> Outcomes:
    """Two topics of other mixes of people and machines, judged by who says human of 70 %; lengths of conversations
    that differ, and two groups of judges who differ, of which none matters; two halves with other shares of agents."""
    chance = np.random.default_rng([study, 4])
    judge, stimulus = np.indices((30, 24)).reshape(2, -1)
    agent = (chance.random(len(judge)) > np.where(stimulus < 12, 0.7, 0.3)).astype(int)
    leaning = verdicts(judge, stimulus, agent, chance.random(len(judge)) > 0.7)
    conversation, length, _ = np.indices((40, 3, 5)).reshape(3, -1)
    judge = chance.integers(20, size=len(length))
    agent = conversation % 2
    right = chance.normal(0, 1.2, 40)[conversation] + chance.normal(size=len(length)) > 0
    excerpts = verdicts(judge, conversation, agent, right == (agent > 0))
    groups, _ = drawn(Design(24, 30, 15), study)
    mixed, _ = drawn(Design(30, 60, 40, (0.5, 0.5, 0.8)), study)  # one agent is more often in the first half
    is_first = (mixed["stimulus"] < 30) == (mixed["agent"] == "a0")
    is_kept = chance.random(len(mixed)) < 0.8
    mixed = mixed[(mixed["truth"] == "human") | (is_kept == is_first)]
    return {
        "topic": _differs(leaning, leaning["stimulus"] < 12),
        "length": _differs(excerpts, 3 + 3 * length),
        "young": _differs(groups, groups["judge"] % 2 == 0),
        "early": _differs(mixed, mixed["stimulus"] < 30),
    }


def _differs(table: pd.DataFrame, values: Any) -> bool:
    return _is_alarm(by_column(table.assign(x=values), "x"))


def two_classifiers(study: int) -> Outcomes:
    table, _ = drawn(Design(2, 100, 100, of_bias=0, of_sensitivity=0, of_stimuli=0, of_answers=0.5), study)
    return {"detectability": _is_alarm(between_judges(table.assign(judge_kind="machine")))}


def single_judge(stimuli: int, answers: int, spread: float, study: int) -> Outcomes:
    chance = np.random.default_rng([study, 5])
    agent, stimulus, _ = np.indices((2, stimuli, answers)).reshape(3, -1)
    says_machine = chance.normal(0, spread, (2, stimuli))[agent, stimulus] + chance.normal(size=len(agent)) > 0
    tests = agent_tests(verdicts(np.zeros_like(agent), agent * stimuli + stimulus, agent, says_machine), ["a0"])
    return {"p(H|H)": _is_alarm(tests["against_half"]), "agent less people": _is_alarm(tests["against_people"])}


def slope(judges: int, stimuli: int, name: str, kind: str, study: int) -> Outcomes:
    table, _ = drawn(Design(judges, stimuli, min(stimuli, 15), of_sensitivity=0.6, of_stimuli=0.8), study)
    value = np.random.default_rng([study, 6]).normal(size=max(judges, stimuli))[table[name]]
    return {"slope": _differs(table, ndtr(value) if kind == "even" else np.exp(value))}


def groups(few: int, many: int, study: int) -> Outcomes:
    table, _ = drawn(Design(few + many, 30, 15), study)
    return {"detectability": _differs(table, table["judge"] < few)}


def unlike(few: int, of_few: float, many: int, of_many: float, study: int) -> Outcomes:
    """Two groups of judges, each of other stimuli."""
    designs = [Design(number, 30, 30, (0.5, 0.5), sd, sd) for number, sd in ((few, of_few), (many, of_many))]
    tables = [drawn(design, 2 * study + at)[0] for at, design in enumerate(designs)]
    for name in ("judge", "stimulus", "trial"):
        tables[1][name] += tables[0][name].max() + 1
    table = pd.concat(tables)
    return {"detectability": _differs(table, table["judge"] < few)}


def enlarged(design: Design, bounds: float, study: int) -> Outcomes:
    """Whether an agent is decided in a study as large as an undecided one says that it has to be."""
    for attempt in range(100):
        table, _ = drawn(design, study + 100_000 * attempt)
        if not _is_decided(table, bounds):
            break
    [row] = needed(table, ["a0"], ["a0"], bounds, is_trained=False)
    large = replace(
        design,
        judges=design.judges + (row.more_judges or 0),
        stimuli=design.stimuli + (row.more_stimuli or 0),
        per_judge=design.per_judge + (row.more_stimuli or 0) * (design.judges == 1),
        people=design.people + (row.more_people or 0),
    )
    again, _ = drawn(large, study + 50_000)
    return {"decided": _is_decided(again, bounds)}


def _is_decided(table: pd.DataFrame, bounds: float) -> bool:
    test: Any = agent_tests(table, ["a0"], bounds)["against_people"][0]
    return bool(test.passes or test.holm < 0.05)


def passing(judges: int, each: int, rate: float, bounds: float, study: int) -> Outcomes:
    table, _ = drawn(Design(judges, 100, each, (rate, rate), *(() if judges > 3 else (0.8, 0.1))), study)
    return {"passes": bool(getattr(agent_tests(table, ["a0"], bounds)["against_people"][0], "passes", None))}


def people_against_people(folder: Path, studies: int) -> Iterator[Share]:
    """The false alarms of the classifier ``svm``, by task."""
    keys = read_trial_key(key_path(folder))
    by_task = defaultdict(list)
    for trial in map(orjson.loads, (folder / TRIALS_FILE).read_bytes().splitlines()):
        if keys[trial["id"]]["truth"] == "human" and not keys[trial["id"]]["catch"]:
            by_task[trial["asked"]].append(trial)
    judge: Any = catalogue.get("svm").make()
    for task, trials in by_task.items():
        groups = np.unique([trial["shown"] for trial in trials], return_inverse=True)[1]
        if np.bincount(groups).mean() < 2:
            raise InputError(f"{folder}: not two people's answers to a stimulus of {task}")
        of_trials = [keys[trial["id"]] for trial in trials]
        halves = partial(_halves, judge, judge.extract(task, trials, "cpu"), trials, of_trials, groups)
        yield from _shares("people against people", "at most 0.025", f"svm, {task}", map(halves, range(studies)))


def _halves(judge: Any, inputs: Any, trials: Rows, keys: Rows, groups: Codes, study: int) -> Outcomes:
    # Half of each stimulus's answers, drawn, are a machine's; of an odd number the last falls to either side.
    order = np.lexsort((np.random.default_rng([study, 3]).random(len(trials)), groups))
    agent = np.isin(np.arange(len(trials)), order[study % 2 :: 2]).astype(int)
    key = [row | {"truth": truth, "agent": "half"} for row, truth in zip(keys, NAMES[agent], strict=True)]
    of_study = type(judge)(judge.settings.model_copy(update={"seed": study}), judge.name)
    judged = of_study.judge_trials(trials, key, inputs)
    margin = np.array([judged[trial["id"]]["margin"] if trial["id"] in judged else math.nan for trial in trials])
    table = verdicts(np.zeros_like(groups), groups, agent, margin > 0).assign(margin=0.0)
    estimate = summarize(table[~np.isnan(margin)], ["a0"])[1].detectability
    return {"above": estimate.low > 0.5, "below": estimate.high < 0.5}


if __name__ == "__main__":
    main()
