"""How often :mod:`judging.statistics.populations` tells an agent that answers as people do from them by chance,
and others. Words are drawn from Zipf's distributions, fixations from ten places of a picture."""

import argparse
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from wordfreq import top_n_list

from judging.statistics.populations import populations
from serving.commands.command_line import positive

PEOPLE = 5
CUES = 30
WORDS = 40
PICTURES = 20
FIXATIONS = 12
FRAME = (1280, 1024)


def word_study(answers: int, chance: np.random.Generator) -> Iterator[dict[str, Any]]:
    vocabulary = np.array(top_n_list("en", 1000))
    zipf = 1 / np.arange(1, WORDS + 1)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=positive, default=200, metavar="N", help="of each kind (200)")
    studies = parser.parse_args().studies
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # of embeddings, which no other study needs
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


if __name__ == "__main__":
    main()
