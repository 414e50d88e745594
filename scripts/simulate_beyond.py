"""How often :mod:`judging.populations` tells an agent that answers as people do from them by chance, and others.
Words are drawn from Zipf's distributions, fixations from ten places of a picture. With ``--rank``: how often the
intervals of :mod:`judging.rank_model` hold what is true of agents, of studies that share none, and of an agent that
joins with few verdicts; and how wide they are beside those of such verdicts alone."""

import argparse
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from wordfreq import top_n_list

from judging.populations import populations
from serving.command_line import positive

PEOPLE, CUES, WORDS, PICTURES, FIXATIONS, FRAME = 5, 30, 40, 20, 12, (1280, 1024)
# Of `rank`: standard deviations, their means, and by how much machines judge better than people.
TRUE = {"judges.bias": 0.5, "judges.skill": 0.3, "stimuli.bias": 0.3, "stimuli.skill": 0.3, "speakers.bias": 0.2,
        "answers.bias": 0.3, "tastes.taste": 0.2, "studies.bias": 0.2, "studies.skill": 0.2,
        "agents.spread": 0.6}  # fmt: skip
INTERCEPT, MEAN, OF_MACHINES, STIMULI, SPEAKERS = -0.3, 0.6, 0.4, 24, 12


def word_study(answers: int, chance: np.random.Generator) -> Iterator[dict[str, Any]]:
    vocabulary, zipf = np.array(top_n_list("en", 1000)), 1 / np.arange(1, WORDS + 1)
    zipf /= zipf.sum()
    shares = {"human": zipf, "as people": zipf, "commonest": np.eye(WORDS)[0], "evenly": np.full(WORDS, 1 / WORDS)}
    for cue in range(CUES):
        words = chance.choice(vocabulary, WORDS, replace=False)
        for agent, of_agent in shares.items():
            for word in chance.choice(words, PEOPLE if agent == "human" else answers, p=of_agent):
                yield _answer("word_association", cue, agent, word=str(word))


def path_study(answers: int, chance: np.random.Generator) -> Iterator[dict[str, Any]]:
    for picture in range(PICTURES):
        places = chance.normal(0.5, 0.18, (10, 2))
        anywhere = chance.normal(0.5, 0.18, (1000, 2))
        looked_at = {"human": places, "as people": places, "commonest": places[:1], "evenly": anywhere}
        for agent, there in looked_at.items():
            for _ in range(PEOPLE if agent == "human" else answers):
                points = chance.choice(there, FIXATIONS + 1) + chance.normal(0, 0.04, (FIXATIONS + 1, 2))
                yield _answer("attention_prediction", picture, agent, fixations=points * FRAME, frame=FRAME)


def _answer(task: str, stimulus: int, agent: str, **answer: Any) -> dict[str, Any]:
    truth = "human" if agent == "human" else "machine"
    return {"asked": task, "stimulus": str(stimulus), "agent": agent, "truth": truth, "answer": answer}


class World:
    """Judges, stimuli and agents of these spreads, the same whenever they are met."""

    def __init__(self, seed: int, spreads: dict[str, float]) -> None:
        self.chance, self.spreads = np.random.default_rng(seed), spreads
        self.drawn: dict[tuple[str, str], float] = {}

    def of(self, name: str, level: str) -> float:
        mean = MEAN if name == "agents.spread" else 0.0
        return self.drawn.setdefault((name, level), self.chance.normal(mean, self.spreads[name]))

    def judged(self, trials: pd.DataFrame) -> pd.DataFrame:
        probits = []
        for row in trials.itertuples():
            x, of_machine = (0.5 if row.truth == "machine" else -0.5), row.judge_kind == "machine"
            levels = {"judges": row.judge, "stimuli": row.stimulus, "answers": row.trial}
            levels |= {"agents": row.agent, "tastes": row.judge + row.agent} if x > 0 else {"speakers": row.agent}
            levels |= {} if of_machine else {"studies": row.folder}
            parts = [(*name.split("."), name) for name in TRUE if name.split(".")[0] in levels]
            effects = (self.of(name, levels[table]) * (x if kind == "skill" else 1) for table, kind, name in parts)
            probits.append(INTERCEPT + OF_MACHINES * x * of_machine + sum(effects))
        says_machine = np.array(probits) + self.chance.normal(size=len(trials)) > 0
        return trials.assign(verdict=np.where(says_machine, "machine", "human"))

    def humanness(self, agent: str) -> float:
        variance = {name: (of / 2 if "skill" in name else of) ** 2 for name, of in self.spreads.items()}
        others = variance.keys() - {"speakers.bias", "tastes.taste", "agents.spread"}
        either = 1 + sum(variance[name] for name in others)
        human, machine = math.sqrt(either + variance["speakers.bias"]), math.sqrt(either + variance["tastes.taste"])
        return INTERCEPT / human - (INTERCEPT + self.of("agents.spread", agent)) / machine


def judgements(agents: tuple[str, ...], study: int, people: int, trials: int) -> pd.DataFrame:
    """Half of a judge's trials are of people; two machines judge in every study."""
    chance, rows = np.random.default_rng(study), []
    for judge in [*(f"human:{study}.{at}" for at in range(people)), "machine1", "machine2"]:
        for at in range(trials):
            cue, truth = int(chance.integers(STIMULI)), ("machine" if at % 2 else "human")
            whose = agents[at // 2 % len(agents)] if at % 2 else f"human:{(cue + chance.integers(3)) % SPEAKERS}"
            kind = "human" if judge.startswith("human") else "machine"
            rows.append((judge, kind, str(study), f"s{cue}", truth, whose, f"{whose} {cue}"))
    return pd.DataFrame(rows, columns=["judge", "judge_kind", "folder", "stimulus", "truth", "agent", "trial"])


def rank_studies(studies: int) -> None:
    from judging.rank_model import Fit, design, fit

    tries = ((500, 0.8),)  # of one chain: an interval wants fewer draws than its diagnostics
    both = pd.concat([judgements(agents, study, 8, 36) for study, agents in enumerate((("a", "b"), ("c", "d")))])
    both = both.reset_index(drop=True)
    alike = TRUE | {"studies.bias": 0.0, "studies.skill": 0.0}  # as verdicts on an agent alone can only suppose
    holds: dict[str, list[bool]] = defaultdict(list)
    widths: dict[str, list[float]] = defaultdict(list)

    def check(name: str, world: World, result: Fit, agents: Sequence[str], times: Sequence[float] = (1,)) -> None:
        of_agents = [result.names["agents"].index(agent) for agent in agents]
        draws, truth = result.humanness[:, of_agents], np.array([world.humanness(agent) for agent in agents])
        if len(times) > 1:
            draws, truth = (draws @ times)[:, None], truth @ times
        low, high = np.quantile(draws, (0.025, 0.975), axis=0)
        holds[name] += ((low <= truth) & (truth <= high)).tolist()
        widths[name] += (high - low).tolist()

    for seed, (kind, spreads) in product(range(studies), (("two studies", TRUE), ("like studies", alike))):
        world = World(seed, spreads)
        verdicts = world.judged(both if spreads is TRUE else both.assign(folder="0"))
        old = fit(design(verdicts), tries, chains=1)
        check(kind, world, old, "abcd")
        check(f"{kind}, a less c", world, old, "ac", (1, -1))
        later = world.judged(judgements(("new",), 0, 8, 20))
        check(f"{kind}, 200 more with their prior", world, fit(design(later, old.posterior), tries, chains=1), ["new"])
        for number in (200, 400, 800) if spreads is alike else ():
            alone = world.judged(judgements(("new",), 0, number // 20 - 2, 20))
            check(f"{kind}, {number} alone", world, fit(design(alone), tries, chains=1), ["new"])
    for name in holds:
        share, width = np.mean(holds[name]), np.median(widths[name])
        print(f"{name}: {share:.1%} of {len(holds[name])} intervals hold the truth; width {width:.2f}")


def population_studies(studies: int) -> None:
    for study, answers in ((word_study, 5), (word_study, 1), (path_study, 1)):
        cells: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
        for seed in range(studies):
            for row in populations(study(answers, np.random.default_rng(seed))):
                holds = row.difference.low <= 0 <= row.difference.high
                cells[row.measure, row.agent].append((row.p < 0.05, holds))
        for (measure, agent), results in cells.items():
            differs, holds = np.mean(results, axis=0)
            cell = f"{study.__name__} of {answers}, {measure}, {agent}"
            print(f"{cell}: p < .05 in {differs:.1%}; 0 inside {holds:.1%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=positive, default=200, metavar="N", help="of each kind (200)")
    parser.add_argument("--rank", action="store_true", help="studies for `turinglike rank`")
    options = parser.parse_args()
    if options.rank:
        rank_studies(options.studies)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # of embeddings, which no other study needs
        population_studies(options.studies)


if __name__ == "__main__":
    main()
