"""``turinglike trials``: draw trials from runs, balanced and blinded, and say what could not be balanced."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.language.filters.texts import disclosures
from agents.stimuli import TASKS, Asked
from judging.candidates import Candidate, Candidates, parse_tasks, read_candidates
from judging.drawing import Order, Pool, arrange, draw_list, draw_pool, duplicates, in_common, least_used, unique
from judging.pairs import LENGTHS as PAIR_LENGTHS
from judging.pairs import draw_pair_list, draw_pairs, read_dialogues
from judging.trial_set import JudgesList, Row, about_path, key_path, write_trial_set
from serving.runs.row_problems import count

WITHOUT_PICTURE = ("word_association", "conversation")
LENGTHS = (3, 6, 9, 12, 15, 18, 21, 24)
PRESETS: Mapping[str, Mapping[Asked, int]] = {
    # 2022 paper, Table 1 and sections S2 to S7; captions are not stated, and are those of 2025.
    "2022": dict(zip(TASKS, (25, 25, 12, 40, 50, 20), strict=True)),
    # 2025 paper, Methods, "shown per judge"; words are not stated, and are those of 2022.
    "2025": dict(zip(TASKS, (25, 25, 12, 40, 50, 32), strict=True)),
}
Say = Callable[[str], None]


@dataclass(slots=True)
class TrialOptions:
    """The options of the command line."""

    runs: Sequence[Path]
    out: Path
    people: Sequence[Path] = ()
    task: str | None = None
    agents: str | None = None
    per_agent: int | None = None
    lists: int = 0
    per_judge: int | None = None
    preset: str | None = None
    lengths: Sequence[int] | None = None
    pairs: bool = False
    show_pseudo: bool = False
    common: bool = False
    unique: bool = False
    every: bool = False
    catch: float = 0.1
    repeats: float = 0.0
    seed: int | None = None
    force: bool = False


def compose(options: TrialOptions, say: Say) -> int:
    """Run the command; returns its exit code. Raises InputError and StorageError."""
    if not is_installed("sklearn"):
        raise UnavailableError("the package scikit-learn is not installed: pip install 'turinglike[judging]'")
    if options.repeats and options.per_judge is None and (options.pairs or options.preset is None):
        raise InputError("--repeats: trials come again in lists; say with --per-judge or --preset how long each is")
    # Who knows the seed, and which runs there were, can draw the same order again and read whose the answers are.
    seed = secrets.randbelow(1 << 53) if options.seed is None else options.seed
    if options.pairs:
        return _compose_pairs(options, seed, say)
    if options.show_pseudo:
        raise InputError("--show-pseudo: belongs to --pairs")
    read = read_candidates(options.runs, options.people, parse_tasks(options.task), options.lengths or LENGTHS)
    chosen = _of_agents(read, options.agents)
    if not chosen:
        raise InputError("the runs hold no answers that could be trials")
    lists: list[JudgesList] = []
    about: dict[str, Any] = {}
    unbalanced: list[str] = []
    for task in TASKS:
        if answers := [answer for answer in chosen if answer.stimulus.task == task]:
            chance = random.Random(f"trials {seed} {task}")
            pool, about[task] = _pool(answers, options, chance)
            _refuse_pictures_of_a_part(task, [*pool.trials(), *pool.catch])
            unbalanced += [f"{task}: {remark}" for remark in pool.unbalanced]
            lists += _lists(task, pool, options, chance)
    if not any(entry.trials for entry in lists):
        raise InputError("no trial can be drawn: " + ("; ".join(unbalanced) or "no answers are left"))
    notes = _notes(options, about, unbalanced, read.passed_over)
    rows, blind = write_trial_set(options.out, lists, notes, seed, force=options.force)
    for sentence in read.common:
        say(sentence)
    for name, numbers in about.items():
        _say_numbers(name, numbers, rows, options.unique, say)
    _say_end(options, notes, blind, say)
    return 0


def _compose_pairs(options: TrialOptions, seed: int, say: Say) -> int:
    if "conversation" not in parse_tasks(options.task):
        raise InputError("--pairs are of conversations")
    for name in ("preset", "common", "unique"):
        if getattr(options, name):
            raise InputError(f"--pairs goes without --{name}")
    passed_over: Counter[str] = Counter()
    dialogues = read_dialogues(options.runs, options.people, passed_over)
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
    passed_over += pairs.passed_over
    trials = pairs.trials()
    if not trials:
        why = "; ".join(f"{number:,} {why}" for why, number in sorted(passed_over.items())) or "there are none"
        raise InputError(f"no conversation with a machine can be paired with one of people: {why}")
    lists = [JudgesList("pairs-all", "conversation", arrange(trials, (), 0, chance))]
    used: Counter[int] = Counter()

    def draw(number: int) -> Order:
        return draw_pair_list(pairs, number, used, chance, repeats=options.repeats)

    if options.per_judge is not None:
        lists = _numbered("pairs", "conversation", options.lists, options.per_judge, draw)
    cells = [
        {"agent": agent, "length": turns, "pairs": len(of_cell)} for (agent, turns), of_cell in pairs.cells.items()
    ]
    about = {"pairs": len(trials), "conversations_of_people": pairs.people, "cells": cells}
    notes = _notes(options, {"conversation": about}, pairs.unbalanced, passed_over)
    _, blind = write_trial_set(options.out, lists, notes, seed, force=options.force)
    for (agent, turns), of_cell in pairs.cells.items():
        first = sum(pair.truth == "machine" for pair in of_cell)
        say(f"{agent}, {turns} turns: {count(len(of_cell), 'pair')}, in {first:,} the machine speaks in the first")
    say(f"conversations of people in them: {pairs.people:,}")
    _say_end(options, notes, blind, say)
    return 0


def _refuse_pictures_of_a_part(task: Asked, answers: Sequence[Candidate]) -> None:
    """A picture with a part of the answers alone would tell whose they are."""
    without = [answer for answer in answers if answer.stimulus.image() is None]
    if task not in WITHOUT_PICTURE and 0 < len(without) < len(answers):
        whose = "people's" if without[0].truth == "human" else f"{without[0].agent}'s"
        raise InputError(
            f"{task}: no run has the picture of {count(len(without), 'answer')}, of {len(answers):,} ({whose} to "
            f"{without[0].stimulus.id!r}, for one); give the set's stimuli these names as `benchmark_id`, or --common"
        )


def _of_agents(read: Candidates, agents: str | None) -> list[Candidate]:
    if agents is None:
        return read.answers
    machines = {answer.agent for answer in read.answers if answer.truth == "machine" and not answer.is_swapped}
    wanted = _named(agents, machines)
    return [answer for answer in read.answers if answer.truth == "human" or answer.is_catch or answer.agent in wanted]


def _named(text: str, there: Collection[str]) -> set[str]:
    wanted = {name.strip() for name in text.split(",") if name.strip()}
    if wanted - set(there):
        raise InputError(
            f"--agents: {', '.join(sorted(wanted - set(there)))}: the runs hold no answers of theirs, but of "
            f"{', '.join(sorted(there)) or 'no machine'}"
        )
    return wanted


def _pool(answers: Sequence[Candidate], options: TrialOptions, chance: random.Random) -> tuple[Pool, dict[str, Any]]:
    numbers: dict[str, Any] = {"candidates": len(answers)}
    if options.common:
        answers = in_common(answers)
        numbers["in_common"] = len(answers)
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


def _lists(task: Asked, pool: Pool, options: TrialOptions, chance: random.Random) -> list[JudgesList]:
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


def _notes(
    options: TrialOptions, about: Mapping[str, Any], unbalanced: Sequence[str], passed_over: Mapping[str, int]
) -> dict[str, Any]:
    names = ["per_agent", "lists", "per_judge", "every", "repeats"]
    names += ["pairs", "show_pseudo"] if options.pairs else ["preset", "common", "unique", "catch"]
    chosen: dict[str, Any] = {name: getattr(options, name) for name in names}
    chosen["lengths"] = list(options.lengths or (PAIR_LENGTHS if options.pairs else LENGTHS))
    notes = {"runs": [str(path) for path in options.runs], "options": chosen, "tasks": about}
    return notes | {"unbalanced": unbalanced, "passed_over": dict(passed_over)}


def _say_numbers(task: str, numbers: Mapping[str, Any], rows: Sequence[Row], is_unique: bool, say: Say) -> None:
    keys = [key for trial, key in rows if trial["asked"] == task]
    kinds = Counter({0: key["truth"], 1: "catch"}.get(key["catch"], "swapped") for key in keys)
    swapped = f", {kinds['swapped']:,} swapped" if kinds["swapped"] else ""
    say(
        f"{task}: {count(kinds.total(), 'trial')}, {kinds['human']:,} of people, {kinds['machine']:,} of "
        f"{count(len(numbers['agents']), 'agent')}, {kinds['catch']:,} to catch{swapped}"
    )
    alike = numbers["alike"]
    if alike["answers"]:
        kept = "; one of each is kept" if is_unique else " (--unique keeps one of each)"
        say(
            f"  equal answers to one stimulus: {count(alike['answers'], 'answer')}, by people and machines "
            f"{count(alike['of_people_and_machines'], 'time')}, by several machines "
            f"{count(alike['of_several_machines'], 'time')}{kept}"
        )
    if numbers["self_disclosed"]:
        say(f"  {count(numbers['self_disclosed'], 'answer')} say of themselves that a machine gave them")


def _say_end(options: TrialOptions, notes: Mapping[str, Any], blind: Sequence[Mapping[str, Any]], say: Say) -> None:
    for remark in notes["unbalanced"]:
        say(f"not balanced: {remark}")
    for why, number in sorted(notes["passed_over"].items()):
        say(f"passed over: {number:,} {why}")
    for entry in blind:
        if entry["hidden"] is None:
            say(f"{entry['asked']}: too few trials to test whether the set gives away whose the answers are")
            continue
        hidden, visible = (
            "{detectability:.2f} ({low:.2f} to {high:.2f})".format(**entry[name]) for name in ("hidden", "shown")
        )
        warning = "; something beside the answers gives them away" if entry["hidden"]["low"] > 0.5 else ""
        say(
            f"{entry['asked']}: a classifier detects machines at {hidden} by order, names and files{warning}; "
            f"at {visible} by the answers' length, numbers and punctuation"
        )
    say(f"trials: {options.out}; key, not for judges: {key_path(options.out)}; about it: {about_path(options.out)}")
