"""How well ``cue-delay`` tells a slow machine from people as drawn, without delays, and with planted ones.

Conversations are drawn whose texts are all alike. A message of people takes 8 seconds on average, one of the machine
20; ``--people`` is the standard deviation of the logarithm of a person's own speed. The program itself takes the delays
away, plants them, and judges. Without anything to go by a judge is right in half of the trials. In "alike" the machine
has people's distribution, drawn anew: what a classifier reaches when nothing is copied.

    python scripts/simulate_delays.py --sets 20
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.stimuli import ShownAnswer
from judging.judges.classifier import CueJudge, CueSettings
from judging.tells.blocks import blocks_of
from judging.tells.seen import SeenAnswer
from judging.tells.transformation import PARTICIPANTS, Owner
from judging.tells.versions import make_versions
from serving.commands.command_line import positive

MESSAGES = 6
SHAPE = 4  # of the gamma distribution of a message's seconds
SECONDS = {"people": 2.0, "machine": 5.0}  # its scale
MACHINE = "machine"
NAMES = {"": "as drawn", "delay": "without", "plant:delay": "planted"}


def drawn(number: int, speed: float, seconds: float, chance: np.random.Generator) -> list[SeenAnswer]:
    """Both speakers of ``number`` conversations, A before B, with the delays of all messages but the first."""
    answers = []
    for _ in range(number):
        speeds = np.exp(chance.normal(0, speed, 2))
        messages: list[dict[str, Any]] = [{"speaker": "AB"[turn % 2], "text": "yes"} for turn in range(MESSAGES)]
        for turn, message in enumerate(messages[1:], start=1):
            message["delay_s"] = round(float(speeds[turn % 2] * chance.gamma(SHAPE, seconds)), 1)
        shown = ShownAnswer.model_validate({"messages": messages})
        answers += [SeenAnswer("conversation", shown, letter) for letter in "AB"]
    return answers


def stimuli_of(groups: Sequence[str]) -> list[int]:
    """The stimulus of each answer: the conversations of each group are about the same ones, and have two answers."""
    return [place % groups.count(group) // 2 for place, group in enumerate(groups)]


def detectability(answers: Sequence[SeenAnswer], owners: Sequence[Owner], order: Sequence[int]) -> float:
    """The mean of both rates of ``cue-delay``, which meets the trials in this order, as a set mixes them."""
    judge = CueJudge(CueSettings(cue="delay"), "cue-delay")
    trials = []
    keys = []
    stimuli = stimuli_of([owner.group for owner in owners])
    for place in order:
        seen = answers[place]
        owner = owners[place]
        trial = {"id": str(place), "asked": "conversation", "shown": f"s{stimuli[place]}", "speaker": seen.speaker}
        trials.append(trial | {"answer": seen.answer.model_dump(exclude_none=True)})
        truth = "human" if owner.group == PARTICIPANTS else "machine"
        key = {"truth": truth, "agent": owner.group, "catch": False, "repeat_of": None, "version": None}
        keys.append(key | {"block": owner.block})
    found = judge.judge_trials(trials, keys, judge.extract("conversation", trials, "cpu"))
    says_machine = np.array([found[str(place)]["margin"] > 0 for place in range(len(trials))])
    is_machine = np.array([owner.group != PARTICIPANTS for owner in owners])
    return float((says_machine[is_machine].mean() + (~says_machine[~is_machine]).mean()) / 2)


def simulate(number: int, speed: float, seed: int) -> dict[str, float]:
    """The detectability of one set of ``number`` conversations of each kind, by version."""
    chance = np.random.default_rng([seed, number, round(100 * speed)])
    people = drawn(number, speed, SECONDS["people"], chance)
    machine = drawn(number, speed, SECONDS["machine"], chance)
    groups = [PARTICIPANTS] * len(people) + [MACHINE] * len(machine)
    blocks = blocks_of(stimuli_of(groups), groups, random.Random(seed))
    owners = [Owner(group, block) for group, block in zip(groups, blocks, strict=True)]
    versions = make_versions("conversation", [*people, *machine], owners, ["delay"], ["delay"], seed)
    order = chance.permutation(len(groups)).tolist()
    found = {NAMES[version]: detectability(answers, owners, order) for version, answers in versions.answers.items()}
    alike = drawn(number, speed, SECONDS["people"], chance)
    return found | {"alike": detectability([*people, *alike], owners, order)}


def main() -> None:
    """Print the means over drawn sets, each with its standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=positive, default=20, help="sets of each kind (default 20)")
    parser.add_argument("--conversations", type=positive, nargs="+", default=[20, 60, 200], help="of each kind")
    parser.add_argument("--people", type=float, nargs="+", default=[0.0, 0.5], help="how people differ in speed")
    options = parser.parse_args()
    for number in options.conversations:
        for speed in options.people:
            sets = [simulate(number, speed, seed) for seed in range(options.sets)]
            parts = []
            for name in sets[0]:
                values = np.array([one[name] for one in sets])
                parts.append(f"{name} {values.mean():.3f} ({values.std(ddof=1) / len(values) ** 0.5:.3f})")
            print(f"{number} conversations, people {speed:g}: {', '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
