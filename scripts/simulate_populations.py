"""How often :mod:`judging.statistics.populations` tells a further participant from people by chance, and others.

Participants have tastes of their own, which hold over all stimuli: how common the words are that they give, which
colours they prefer, where and how widely they look, how they word captions. A further participant is drawn like them
and takes the agent's place: a test at 0.05 may tell such a one in 5 % of studies. Other agents are not as people are.

A cell is a measure in a design. It fails if the exact 95 % interval of its share of false alarms lies above 5 %, and
the command then ends with exit code 1. If the interval lies below 5 %, the test is cautious, which is printed, too."""

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest
from wordfreq import top_n_list

from agents.language.embedder import Embedder
from agents.language.minilm import PACKAGE
from judging.statistics.populations import populations
from serving.commands.command_line import positive

ALPHA = 0.05
MOST_WORDS = 1000  # of which each cue has some
WORDS = 40
COLORS = ("black", "blue", "brown", "gray", "green", "orange", "pink", "purple", "red", "white", "yellow")
FIXATIONS = 12
FRAME = (1280, 1024)
FURTHER = "a further participant"
CAPTIONS = ("a picture of {}", "{} in the street", "there is {} here", "this shows {}", "{}, seen from above")
THINGS = ("a dog", "two men", "a red bus", "some food", "a cat", "the sea", "an old house", "children")
TEXTS = [caption.format(thing) for caption in CAPTIONS for thing in THINGS]


@dataclass(frozen=True, slots=True)
class Design:
    """How many answer what."""

    people: int
    """How many participants there are."""
    stimuli: int
    """How many stimuli the agent answers."""
    answered: int
    """How many of these each participant answers."""
    tastes: float = 1.0
    """How strong participants' tastes are."""
    agents: Sequence[str] = (FURTHER,)
    """Who stands in the agent's place."""

    def __str__(self) -> str:
        strong = "" if self.tastes == 1 else f", tastes x {self.tastes:g}"
        return f"{self.people} people, {self.answered} of {self.stimuli} stimuli each{strong}"


Study = Callable[[Design, np.random.Generator], Iterator[dict[str, Any]]]


def word_study(design: Design, chance: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Words of Zipf's distribution, which a participant's taste makes steeper or flatter."""
    vocabulary = np.array(top_n_list("en", MOST_WORDS))
    rank = np.arange(1, WORDS + 1)
    words = [chance.choice(vocabulary, WORDS, replace=False) for _ in range(design.stimuli)]
    for agent, answered in _who(design, chance):
        steep = np.exp(design.tastes * chance.normal(0, 0.25))
        for cue in answered:
            shares = {"the commonest word": rank == 1, "any word": np.ones(WORDS)}.get(agent, rank**-steep)
            word = chance.choice(words[cue], p=shares / shares.sum())
            yield _answer("word_association", cue, agent, word=str(word))


def color_study(design: Design, chance: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Colours of a picture, some of which a participant prefers everywhere."""
    weights = chance.dirichlet(np.full(len(COLORS), 0.5), design.stimuli) + 0.01
    for agent, answered in _who(design, chance):
        taste = np.exp(design.tastes * chance.normal(0, 0.5, len(COLORS)))
        for picture in answered:
            shares = weights[picture] * taste
            if agent == "the commonest color":
                shares = weights[picture] == weights[picture].max()
            elif agent == "any color":
                shares = np.ones(len(COLORS))
            color = chance.choice(COLORS, p=shares / shares.sum())
            yield _answer("color_estimation", picture, agent, color=str(color))


def path_study(design: Design, chance: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Fixations of ten places of a picture; a participant looks to one side of them, and more or less exactly."""
    places = chance.normal(0.5, 0.15, (design.stimuli, 10, 2))
    for agent, answered in _who(design, chance):
        aside = design.tastes * chance.normal(0, 0.02, 2)
        width = 0.04 * np.exp(design.tastes * chance.normal(0, 0.2))
        for picture in answered:
            there = {"one place": places[picture][:1], "anywhere": chance.random((1000, 2))}.get(agent, places[picture])
            points = chance.choice(there, FIXATIONS + 1) + aside + chance.normal(0, width, (FIXATIONS + 1, 2))
            fixations = np.clip(points, 0, 0.999) * FRAME
            yield _answer("attention_prediction", picture, agent, fixations=fixations, frame=FRAME)


def caption_study(design: Design, chance: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Captions of what a picture shows, in words that a participant prefers everywhere."""
    weights = chance.dirichlet(np.full(len(THINGS), 0.7), design.stimuli)
    for agent, answered in _who(design, chance):
        habits = chance.dirichlet(np.full(len(CAPTIONS), 3 / design.tastes))
        for picture in answered:
            thing = str(chance.choice(THINGS, p=weights[picture]))
            text = str(chance.choice(CAPTIONS, p=habits)).format(thing)
            if agent == "always the same":
                text = "a picture of a dog"
            yield _answer("image_captioning", picture, agent, text=text)


STUDIES: dict[str, tuple[Study, Sequence[str]]] = {
    "words": (word_study, ("the commonest word", "any word")),
    "colors": (color_study, ("the commonest color", "any color")),
    "paths": (path_study, ("one place", "anywhere")),
    "captions": (caption_study, ("always the same",)),
}
DESIGNS = (Design(6, 25, 25), Design(20, 25, 25), Design(24, 32, 12))


def _who(design: Design, chance: np.random.Generator) -> Iterator[tuple[str, list[int]]]:
    """Participants and agents, each with the stimuli that they answer."""
    everything = list(range(design.stimuli))
    for number in range(design.people):
        answered = chance.permutation(design.stimuli)[: design.answered]
        yield f"human:{number}", sorted(answered.tolist())
    for name in design.agents:
        yield name, everything


def _answer(task: str, stimulus: int, agent: str, **answer: Any) -> dict[str, Any]:
    truth = "human" if agent.startswith("human:") else "machine"
    return {"asked": task, "stimulus": str(stimulus), "agent": agent, "truth": truth, "answer": answer}


def _study(name: str, design: Design, has_others: bool, seed: int) -> list[tuple[str, str, float, bool]]:
    """Of a study's tests (measure, agent, p, whether the interval holds 0)."""
    study, others = STUDIES[name]
    asked = replace(design, agents=others if has_others else (FURTHER,))
    rows = populations(study(asked, np.random.default_rng([seed, design.people])))
    return [
        (row.measure, row.agent, row.p, row.difference.low <= 0 <= row.difference.high)
        for row in rows
        if row.p is not None
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--studies", type=positive, default=2000, metavar="N", help="of a further participant (2,000)")
    parser.add_argument("--others", type=positive, default=100, metavar="N", help="of other agents (100)")
    parser.add_argument("--only", choices=STUDIES, metavar="KIND", help=f"only these: {', '.join(STUDIES)}")
    parser.add_argument("--tastes", type=float, default=1.0, metavar="X", help="how strong tastes are (1)")
    options = parser.parse_args()
    fails = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # of embeddings, which no other study needs
        Embedder(PACKAGE, "mean", "cpu").vectors([*top_n_list("en", MOST_WORDS), *TEXTS])
        for name in [options.only] if options.only else STUDIES:
            for design in DESIGNS:
                fails += _cells(name, replace(design, tastes=options.tastes), options.studies, options.others)
    print(f"{fails} cells fail")
    return 1 if fails else 0


def _cells(name: str, design: Design, studies: int, others: int) -> int:
    """Print the cells of a design; how many of them fail."""
    found: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    with ProcessPoolExecutor(2) as pool:
        for has_others, number in ((False, studies), (True, others)):
            for results in pool.map(partial(_study, name, design, has_others), range(number), chunksize=10):
                for measure, agent, p, holds in results:
                    found[measure, agent].append((p, holds))
    fails = 0
    for (measure, agent), tests in found.items():
        alarms = sum(p < ALPHA for p, _ in tests)
        inside = sum(holds for _, holds in tests) / len(tests)
        ends = binomtest(alarms, len(tests)).proportion_ci(method="exact")
        verdict = ""
        if agent == FURTHER:
            verdict = "holds"
            if ends.low > ALPHA:
                verdict = "FAILS"
                fails += 1
            elif ends.high < ALPHA:
                verdict = "cautious"
        share = f"p < .05 in {alarms / len(tests):.1%} ({ends.low:.1%} to {ends.high:.1%})"
        print(f"{name}, {design}: {measure}, {agent}: {share}, 0 inside {inside:.1%} {verdict}", flush=True)
    return fails


if __name__ == "__main__":
    sys.exit(main())
