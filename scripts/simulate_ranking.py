"""How often ``turinglike rank`` and the stopping rule of ``turinglike study status`` are right, in drawn studies.

Verdicts are drawn from the model of :mod:`judging.ranking.model`, a favourable case: two studies of other agents with
two classifiers in common, and a new agent with 200 verdicts. With ``--stopping`` judges join one by one.

``--time`` prints how long a ranking takes: of one study, in which each judge sees an answer of a person and of each of
37 agents.
"""

import argparse
import math
import resource
import time
from collections import defaultdict
from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
from drawn_verdicts import Design
from drawn_verdicts import drawn as drawn_study

from judging.study.results.stopping import decide
from serving.commands.command_line import positive

# Standard deviations of effects; that of agents is around MEAN. Machines judge better than people.
TRUE = {
    "judges.bias": 0.5,
    "judges.skill": 0.3,
    "stimuli.bias": 0.3,
    "stimuli.skill": 0.3,
    "speakers.bias": 0.2,
    "answers.bias": 0.3,
    "tastes.taste": 0.2,
    "studies.bias": 0.3,
    "studies.skill": 0.3,
    "agents": 0.6,
}
INTERCEPT = -0.3
MEAN = 0.6
OF_MACHINES = 0.4
STIMULI = 24
SPEAKERS = 12
STUDIES = ("ab", 36), ("cd", 36), (("new",), 20)  # agents, and trials of each of eight people and two machines
# of stopping: how judges differ, trials of each, judges
OF_JUDGES = 0.08
TRIALS = 40
MOST = 400
IN_STUDY = "new, in its study"


def drawn(seed: int, spreads: Mapping[str, float] = TRUE) -> tuple[pd.DataFrame, dict[str, float]]:
    """The verdicts of three studies, half of them on people's answers, and the agents' true humanness.

    It is that in studies like these. ``IN_STUDY`` is that of the agent "new" to judges like those of its study."""
    # the same trials each time
    order = np.random.default_rng(0)
    chance = np.random.default_rng(seed)
    rows = []
    for study, (agents, trials) in enumerate(STUDIES):
        for judge in [*(f"human:{study}.{at}" for at in range(8)), "machine1", "machine2"]:
            for at in range(trials):
                cue = int(order.integers(STIMULI))
                is_machine = at % 2
                whose = agents[at // 2 % len(agents)] if is_machine else f"human:{(cue + order.integers(3)) % SPEAKERS}"
                kind = judge.partition(":")[0].rstrip("12")
                truth = "machine" if is_machine else "human"
                rows.append((judge, kind, str(study), f"s{cue}", truth, whose, f"{whose} {cue}"))
    verdicts = pd.DataFrame(rows, columns=["judge", "judge_kind", "folder", "stimulus", "truth", "agent", "trial"])
    is_machine = verdicts["truth"] == "machine"
    by_machine = verdicts["judge_kind"] == "machine"
    columns = {
        "judges": verdicts["judge"],
        "stimuli": verdicts["stimulus"],
        "answers": verdicts["trial"],
        "speakers": verdicts["agent"].mask(is_machine),
        "agents": verdicts["agent"].where(is_machine),
        "tastes": (verdicts["judge"] + verdicts["agent"]).where(is_machine),
        "studies": verdicts["folder"].mask(by_machine),
    }
    x = (is_machine - 0.5).to_numpy()
    probit = INTERCEPT + OF_MACHINES * x * by_machine.to_numpy()
    dprimes = dict[str, float]()
    of_study = dict[str, float]()  # its effects, of the study of the agent "new"
    for name, spread in spreads.items():
        codes, levels = pd.factorize(columns[name.partition(".")[0]])
        effects = chance.normal(MEAN if name == "agents" else 0, spread, len(levels))
        if name.startswith("studies"):
            of_study[name] = effects[list(levels).index("2")]
        dprimes = dict(zip(levels, effects.tolist(), strict=True))  # at last those of agents
        probit += np.append(effects, 0)[codes] * (x if name.endswith("skill") else 1)
    verdicts["verdict"] = np.where(probit + chance.normal(size=len(x)) > 0, "machine", "human")
    variance = {name: (of / 2 if name.endswith("skill") else of) ** 2 for name, of in spreads.items()}
    either = 1 + sum(of for name, of in variance.items() if name not in ("speakers.bias", "tastes.taste", "agents"))
    z_human = INTERCEPT / math.sqrt(either + variance["speakers.bias"])
    of_machines = math.sqrt(either + variance["tastes.taste"])
    humanness = {agent: z_human - (INTERCEPT + dprime) / of_machines for agent, dprime in dprimes.items()}
    within = either - variance["studies.bias"] - variance["studies.skill"]
    middle = INTERCEPT + of_study["studies.bias"]
    human = middle - of_study["studies.skill"] / 2
    machine = middle + of_study["studies.skill"] / 2 + dprimes["new"]
    humanness[IN_STUDY] = human / math.sqrt(within + variance["speakers.bias"])
    humanness[IN_STUDY] -= machine / math.sqrt(within + variance["tastes.taste"])
    return verdicts, humanness


def rankings(studies: int) -> None:
    from judging.ranking.model import fit

    holds = defaultdict[str, list[bool]](list)
    widths = defaultdict[str, list[float]](list)
    for seed in range(studies):
        verdicts, humanness = drawn(seed)
        is_new = verdicts["folder"] == "2"
        cases = [("two studies", "abcd", ~is_new), ("200", ["new"], is_new)]
        cases.append(("200 verdicts and the earlier", ["new"], is_new | ~is_new))
        for of, agents, kept in cases:
            result = fit(verdicts[kept].reset_index(drop=True), ((500, 0.8),), chains=1)  # enough for an interval
            draws = {agent: result.draws["humanness"][:, result.agents.index(agent)] for agent in agents}
            truths = humanness | {"new": humanness[IN_STUDY]} if of == "200" else humanness  # of one study
            compared = [(of, draws[agent], truths[agent]) for agent in agents]
            if "a" in draws:
                compared += [("an agent of each", draws["a"] - draws["c"], humanness["a"] - humanness["c"])]
            for name, values, truth in compared:
                low, high = np.quantile(values, (0.025, 0.975))
                holds[name].append(bool(low <= truth <= high))
                widths[name].append(float(high - low))
    for name, each in holds.items():
        print(f"{name}: {np.mean(each):.1%} of {len(each)} intervals hold it; width {np.median(widths[name]):.2f}")


def stopping(studies: int) -> None:
    deviation = math.hypot(OF_JUDGES, 0.5 / math.sqrt(TRIALS))  # of a judge's detectability
    for bounds, times in product((0.05, 0.1), (0, 1, 2)):
        decisions = []
        for seed in range(studies):
            chance = np.random.default_rng(seed)
            rates = np.clip(chance.normal(0.5 + times * bounds, OF_JUDGES, MOST), 0, 1)
            decisions.append(decide((chance.binomial(TRIALS, rates) / TRIALS).tolist(), bounds))
        shares = pd.Series([name for name, _ in decisions]).value_counts(normalize=True).to_dict()
        judges = np.quantile([number for _, number in decisions], 0.9)
        fixed = math.ceil((2 * 1.645 * deviation / bounds) ** 2)  # passes in 90 %
        print(f"{bounds}, at {0.5 + times * bounds:.2f}: {shares}; 90 % after {judges:.0f} judges, fixed {fixed}")


def time_ranking(number: int) -> None:
    from judging.ranking.model import fit

    rates = (0.6,) * 38
    verdicts, _ = drawn_study(Design(max(2, round(number / len(rates))), stimuli=100, per_judge=1, rates=rates), 0)
    verdicts = verdicts.head(number).astype({"judge": str, "stimulus": str, "trial": str}).assign(folder="study")
    begun = time.perf_counter()
    begun_cpu = time.process_time()
    convergence = fit(verdicts).convergence
    seconds = time.perf_counter() - begun
    of_cpu = time.process_time() - begun_cpu
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(verdicts):,} verdicts of {verdicts['judge'].nunique():,} judges: {seconds:.0f} s, {of_cpu:.0f} s of CPU"
    )
    print(f"{megabytes:,.0f} MB at most; {dict(convergence)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=positive, default=200, metavar="N", help="of each kind (200)")
    parser.add_argument("--stopping", action="store_true", help="the rule that stops early")
    parser.add_argument("--time", type=positive, metavar="VERDICTS", help="how long a ranking of as many takes")
    options = parser.parse_args()
    if options.time:
        time_ranking(options.time)
    elif options.stopping:
        stopping(options.studies)
    else:
        rankings(options.studies)


if __name__ == "__main__":
    main()
