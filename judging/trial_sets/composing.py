"""``turinglike trials``: draw trials from runs, balanced and blinded."""

import argparse
import random
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.language.filters.texts import disclosures
from agents.stimuli import TASKS, Asked
from judging.trial_sets.candidates import PEOPLE_OF_PAIR, AnswerReader, Candidate
from judging.trial_sets.drawing import (
    Order,
    Pool,
    arrange,
    draw_list,
    draw_pool,
    duplicates,
    in_common,
    least_used,
    one_sided,
    unique,
)
from judging.trial_sets.pairs import LENGTHS as PAIR_LENGTHS
from judging.trial_sets.pairs import draw_pair_list, draw_pairs, read_dialogues
from judging.trial_sets.same_rules import SameRules
from judging.trial_sets.tells import told
from judging.trial_sets.trial_set import JudgesList, KeyedTrial, about_path, key_path, write_trial_set
from serving.files.words import count

WITHOUT_PICTURE = ("word_association", "conversation")
LENGTHS = (3, 6, 9, 12, 15, 18, 21, 24)
PRESETS: Mapping[str, Mapping[Asked, int]] = {
    # 2022 paper, Table 1 and sections S2 to S7; captions are not stated, and are those of 2025.
    "2022": dict(zip(TASKS, (25, 25, 12, 40, 50, 20), strict=True)),
    # 2025 paper, Methods, "shown per judge"; words are not stated, and are those of 2022.
    "2025": dict(zip(TASKS, (25, 25, 12, 40, 50, 32), strict=True)),
}
NOTED = ("per_agent", "lists", "per_judge", "every", "repeats")  # options that the set's file has
Say = Callable[[str], None]


@dataclass(slots=True)
class Drawn:
    lists: list[JudgesList] = field(default_factory=list)
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    unbalanced: list[str] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    common: list[str] = field(default_factory=list)
    rules: SameRules = field(default_factory=SameRules)


def compose(options: argparse.Namespace, say: Say) -> int:
    """Run the command; returns its exit code. Raises InputError and StorageError."""
    if not is_installed("sklearn"):
        raise UnavailableError("the package scikit-learn is not installed: pip install 'turinglike[judging]'")
    if (options.lists > 1 or options.repeats) and options.per_judge is None and options.preset is None:
        raise InputError("--lists, --repeats: say with --per-judge or --preset how long each list is")
    # Who knows the seed, and which runs there were, can draw the same order again and read whose the answers are.
    seed = secrets.randbelow(1 << 53) if options.seed is None else options.seed
    of_kind = ("pairs", "show_pseudo") if options.pairs else ("preset", "common", "unique", "catch", "as_written")
    others = ("preset", "common", "unique", "as_written") if options.pairs else ("show_pseudo",)
    if wrong := [name for name in others if getattr(options, name)]:
        raise InputError(f"--{wrong[0].replace('_', '-')} does not go {'with' if options.pairs else 'without'} --pairs")
    drawn = _draw_pairs(options, seed) if options.pairs else _draw_speakers(options, seed)
    chosen = {name: getattr(options, name) for name in (*NOTED, *of_kind)}
    chosen["lengths"] = list(options.lengths or (PAIR_LENGTHS if options.pairs else LENGTHS))
    notes = {"runs": [str(path) for path in options.runs], "options": chosen, "tasks": drawn.about}
    notes |= {"unbalanced": drawn.unbalanced, "passed_over": dict(drawn.passed_over)}
    notes["same_rules"] = drawn.rules.summary()
    rows, blind = write_trial_set(options.out, drawn.lists, notes, seed, force=options.force)
    for sentence in [*drawn.common, *drawn.rules.sentences()]:
        say(sentence)
    for task, numbers in drawn.about.items():
        for line in _summary_of_pairs(numbers) if options.pairs else _summary(task, numbers, rows):
            say(line)
    for remark in drawn.unbalanced:
        say(f"not balanced: {remark}")
    for why, number in sorted(drawn.passed_over.items()):
        say(f"passed over: {number:,} {why}")
    for entry in blind:
        say(f"{entry['asked']}: {_blindness(entry)}")
        for tell in entry["tells"]:
            say(f"  {told(tell)}")
    say(f"trials: {options.out}; key, not for judges: {key_path(options.out)}; about it: {about_path(options.out)}")
    return 0


def _draw_speakers(options: argparse.Namespace, seed: int) -> Drawn:
    reader = AnswerReader(options.runs, options.people, SameRules(as_written=options.as_written))
    answers = reader.candidates(options.task, options.lengths or LENGTHS)
    if options.agents is not None:
        machines = {answer.agent for answer in answers if answer.truth == "machine" and not answer.is_swapped}
        wanted = _named(options.agents, machines)
        answers = [answer for answer in answers if answer.truth == "human" or answer.is_catch or answer.agent in wanted]
    drawn = Drawn(passed_over=reader.passed_over, common=reader.common(), rules=reader.rules)
    for task in TASKS:
        if of_task := [answer for answer in answers if answer.stimulus.task == task]:
            chance = random.Random(f"trials {seed} {task}")
            pool, drawn.about[task] = _pool(of_task, options, chance)
            _refuse_pictures_of_a_part(task, [*pool.trials(), *pool.catch])
            drawn.unbalanced += [f"{task}: {remark}" for remark in pool.unbalanced]
            drawn.lists += _lists(task, pool, options, chance)
    if not any(entry.trials for entry in drawn.lists):
        reasons = [*drawn.unbalanced, *reader.rules.sentences()]
        raise InputError("no trial can be drawn: " + ("; ".join(reasons) or "the runs hold no such answers"))
    return drawn


def _draw_pairs(options: argparse.Namespace, seed: int) -> Drawn:
    if "conversation" not in options.task:
        raise InputError("--pairs are of conversations")
    reader = AnswerReader(options.runs, options.people)
    drawn = Drawn(passed_over=reader.passed_over)
    dialogues = read_dialogues(reader)
    chance = random.Random(f"pairs {seed}")
    names = sorted({dialogue.agent for dialogue in dialogues if dialogue.has_machine})
    pairs = draw_pairs(
        dialogues,
        options.lengths or PAIR_LENGTHS,
        chance,
        agents=names if options.agents is None else _named(options.agents, names),
        per_agent=options.per_agent,
        every=options.every,
        show_pseudo=options.show_pseudo,
    )
    drawn.passed_over += pairs.passed_over
    drawn.unbalanced = pairs.unbalanced
    trials = pairs.trials()
    if not trials:
        why = "; ".join(f"{number:,} {why}" for why, number in sorted(drawn.passed_over.items())) or "there are none"
        raise InputError(f"no conversation with a machine can be paired with one of people: {why}")
    order = arrange(trials, (), 0, chance)
    used = Counter[int]()

    def draw(number: int) -> Order:
        return draw_pair_list(pairs, number, used, chance, repeats=options.repeats)

    if options.per_judge is None:
        drawn.lists = [JudgesList("pairs-all", "conversation", order)]
    else:
        drawn.lists = _numbered("pairs", "conversation", options.lists, options.per_judge, draw)
    cells = [
        {"agent": agent, "length": turns, "pairs": len(of_cell)} for (agent, turns), of_cell in pairs.cells.items()
    ]
    people = {pair.columns[PEOPLE_OF_PAIR] for pair in trials}
    drawn.about["conversation"] = {"pairs": len(trials), "conversations_of_people": len(people), "cells": cells}
    return drawn


def _refuse_pictures_of_a_part(task: Asked, answers: Sequence[Candidate]) -> None:
    without = [answer for answer in answers if answer.stimulus.image() is None]
    if task not in WITHOUT_PICTURE and 0 < len(without) < len(answers):
        whose = "people's" if without[0].truth == "human" else f"{without[0].agent}'s"
        raise InputError(
            f"{task}: no run has the picture of {count(len(without), 'answer')}, of {len(answers):,} ({whose} to "
            f"{without[0].stimulus.id!r}, for one); give the set's stimuli these names as `benchmark_id`, or --common"
        )


def _named(text: str, there: Collection[str]) -> set[str]:
    wanted = {name.strip() for name in text.split(",") if name.strip()}
    if wanted - set(there):
        raise InputError(
            f"--agents: {', '.join(sorted(wanted - set(there)))}: the runs hold no answers of theirs, but of "
            f"{', '.join(sorted(there)) or 'no machine'}"
        )
    return wanted


def _pool(
    answers: Sequence[Candidate], options: argparse.Namespace, chance: random.Random
) -> tuple[Pool, dict[str, Any]]:
    numbers: dict[str, Any] = {"candidates": len(answers)}
    if options.common:
        answers = in_common(answers)
        numbers["in_common"] = len(answers)
    of_people, of_machines = one_sided(answers)
    numbers["stimuli_of_one_side"] = {"people": of_people, "machines": of_machines}
    alike = duplicates(answers)
    machines = [{answer.agent for answer in group if answer.truth == "machine"} for group in alike]
    numbers["alike"] = {
        "answers": sum(map(len, alike)),
        "of_people_and_machines": sum(len({answer.truth for answer in group}) > 1 for group in alike),
        "of_several_machines": sum(len(agents) > 1 for agents in machines),
    }
    if options.unique:
        answers = unique(answers, chance)
    pool = draw_pool(answers, chance, per_agent=options.per_agent, every=options.every)
    numbers["people"] = len(pool.people)
    numbers["agents"] = {name: len(of_agent) for name, of_agent in pool.machines.items()}
    numbers["self_disclosed"] = sum(map(_discloses_itself, pool.trials()))
    return pool, numbers


def _discloses_itself(trial: Candidate) -> bool:
    texts = [trial.answer.text or ""]
    texts += [message.text for message in trial.answer.messages or () if message.speaker == trial.speaker]
    return any(map(disclosures, texts))


def _lists(task: Asked, pool: Pool, options: argparse.Namespace, chance: random.Random) -> list[JudgesList]:
    number = options.per_judge
    if number is None and options.preset is not None:
        number = PRESETS[options.preset][task]
    used: Counter[int] = Counter()
    if number is None:
        trials = pool.trials()
        catch = least_used(pool.catch, round(options.catch * len(trials)), used, set(), chance)
        return [JudgesList(f"{task}-all", task, arrange(trials, catch, 0, chance))]

    def draw(number: int) -> Order:
        return draw_list(pool, number, used, chance, catch=options.catch, repeats=options.repeats)

    return _numbered(task, task, options.lists, number, draw)


def _numbered(name: str, task: Asked, lists: int, number: int, draw: Callable[[int], Order]) -> list[JudgesList]:
    digits = max(3, len(str(lists)))
    return [JudgesList(f"{name}-{at:0{digits}}", task, draw(number)) for at in range(1, lists + 1)]


def _summary(task: str, numbers: Mapping[str, Any], rows: Sequence[KeyedTrial]) -> Iterator[str]:
    keys = [key for trial, key in rows if trial["asked"] == task]
    kinds = Counter({0: key["truth"], 1: "catch"}.get(key["catch"], "swapped") for key in keys)
    swapped = f", {kinds['swapped']:,} swapped" if kinds["swapped"] else ""
    yield (
        f"{task}: {count(kinds.total(), 'trial')}, {kinds['human']:,} of people, {kinds['machine']:,} of "
        f"{count(len(numbers['agents']), 'agent')}, {kinds['catch']:,} to catch{swapped}"
    )
    one_side = numbers["stimuli_of_one_side"]
    if task != "conversation" and (one_side["people"] or one_side["machines"]):  # talks are stimuli of their own
        yield (
            f"  answered by people alone: {count(one_side['people'], 'stimulus', 'stimuli')}; by machines alone: "
            f"{one_side['machines']:,}. A judge may learn whose they are; --common leaves them out"
        )
    alike = numbers["alike"]
    if alike["answers"]:
        yield (
            f"  equal answers to a stimulus (--unique keeps one of each): {count(alike['answers'], 'answer')}, "
            f"{count(alike['of_people_and_machines'], 'time')} by people and machines, "
            f"{count(alike['of_several_machines'], 'time')} by several machines"
        )
    if numbers["self_disclosed"]:
        yield f"  {count(numbers['self_disclosed'], 'answer')} say of themselves that a machine gave them"


def _summary_of_pairs(numbers: Mapping[str, Any]) -> Iterator[str]:
    for cell in numbers["cells"]:
        yield f"{cell['agent']}, {cell['length']} turns: {count(cell['pairs'], 'pair')}"
    yield f"conversations of people in them: {numbers['conversations_of_people']:,}"


def _blindness(entry: Mapping[str, Any]) -> str:
    if entry["hidden"] is None:
        return "too few trials to test whether the set gives away whose the answers are"
    hidden, visible = (
        "{detectability:.2f} ({low:.2f} to {high:.2f}, p {p:.3f})".format(**entry[name]) for name in ("hidden", "shown")
    )
    warning = "; something beside the answers gives them away, or chance, as of one set in 20: draw with another --seed"
    warning = warning if entry["hidden"]["p"] < 0.05 else ""
    return (
        f"a classifier detects machines at {hidden} by orders, names and files{warning}; "
        f"at {visible} by the answers' length, numbers and punctuation"
    )
