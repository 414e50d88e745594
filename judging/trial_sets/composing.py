"""Trials drawn from runs, balanced and blinded: :func:`trials`, on which ``turinglike trials`` stands."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.language.filters.texts import disclosures
from agents.stimuli import SHORT, TASKS, Asked
from judging.tells.registry import check_names
from judging.trial_sets.answer_versions import VersionChoices, with_first_version
from judging.trial_sets.candidates import PEOPLE, PEOPLE_OF_PAIR, AnswerReader, Candidate
from judging.trial_sets.choices import PRESETS, Choices, Preset
from judging.trial_sets.composed import TrialSet, sentences_on_pairs, sentences_on_set, sentences_on_task
from judging.trial_sets.drawing import (
    Order,
    Pool,
    arrange,
    common_without,
    draw_list,
    draw_pool,
    duplicates,
    in_common,
    least_used,
    one_sided,
    unique,
)
from judging.trial_sets.drawn_from import digests_of_answers
from judging.trial_sets.pairs import PAIR_LENGTHS, draw_pair_list, draw_pairs, read_dialogues
from judging.trial_sets.same_rules import SameRules
from judging.trial_sets.studies_of_set import refuse_set_of_study
from judging.trial_sets.trial_set import WITHOUT_PICTURE, JudgesList, write_trial_set
from serving.files.words import count

Folder = str | PathLike[str]
LENGTHS = (3, 6, 9, 12, 15, 18, 21, 24)  # messages of excerpts


@dataclass(slots=True)
class _Drawn:
    """What was drawn, before it is written; ``about`` has by task the numbers that the set's file notes."""

    lists: list[JudgesList] = field(default_factory=list)
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    unbalanced: list[str] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    common: list[str] = field(default_factory=list)
    rules: SameRules = field(default_factory=SameRules)
    versions: VersionChoices = field(default_factory=VersionChoices)


def trials(
    runs: Folder | Sequence[Folder],
    out: Folder,
    *,
    people: Folder | Sequence[Folder] = (),
    task: str | Sequence[str] = TASKS,
    agents: str | Sequence[str] | None = None,
    per_agent: int | None = None,
    lists: int = 1,
    per_judge: int | None = None,
    preset: Preset | None = None,
    lengths: Sequence[int] | None = None,
    pairs: bool = False,
    show_pseudo: bool = False,
    show_delays: bool = False,
    common: bool = False,
    unique: bool = False,
    as_written: bool = False,
    without: str | Sequence[str] = (),
    plant: str | Sequence[str] = (),
    every: bool = False,
    catch: float = 0.1,
    repeats: float = 0.0,
    seed: int | None = None,
    force: bool = False,
) -> TrialSet:
    """Draw trials for judges from runs, half of them of people, the others of each agent equally often.

    >>> made = trials(["run", "people"], "trials", task="word", per_agent=40, seed=1)
    >>> print(*made.sentences(), sep="\\n")

    Folders and their answers: ``runs`` are run folders, of people too; of the run folders in ``people`` only people's
    answers count. ``task`` is one task or several, in full or short ("word"); ``agents`` are names, as a list or as
    "a,b". By default all answers to all tasks are drawn from.

    Numbers: ``per_agent`` trials of each agent; ``lists`` for so many judges of ``per_judge`` trials each, or as many
    as the paper ``preset`` ("2022", "2025") had by task; ``every`` takes all answers, balanced or not. ``catch`` and
    ``repeats`` are shares of a list: catch trials, where runs have any, and trials that come again under another id.

    Which answers: ``common`` takes stimuli that people and every agent answered, ``unique`` one of equal answers to a
    stimulus; ``as_written`` leaves out the papers' rules for words and colours. ``lengths`` are numbers of messages of
    excerpts. With ``pairs`` a conversation with a machine stands beside one of people, and ``lengths`` are in turns;
    ``show_pseudo`` then shows what a machine wrote beforehand. With ``show_delays`` each message but the first says how
    long it took, in seconds with one decimal; excerpts in which that is not known of all are left out, and counted.

    Versions: of each drawn answer ``without`` makes further trials that lack a property, such as "length" or
    ("length", "case"): each alone, all together, and all but each. ``plant`` makes trials in which machines' answers
    have participants' form of a property. :data:`judging.tells.registry.TRANSFORMATIONS` has the names. A judge's list
    has each answer in one version; the list "TASK-all" has all.

    ``seed`` (drawn by default) decides all that is drawn: who knows it, and the runs, can tell whose the answers are.
    ``force`` replaces a trial set at ``out``. Beside ``out`` stand the key and how the set was made.

    Raises InputError where the answers do not make such trials, UnavailableError without the extra ``judging``, and
    StorageError."""
    if not is_installed("sklearn"):
        raise UnavailableError("the package scikit-learn is not installed: pip install 'turinglike[judging]'")
    if force:
        refuse_set_of_study(Path(out))
    short = [task] if isinstance(task, str) else task
    # Who knows the seed, and which runs there were, can draw the same order again and read whose the answers are.
    choices = Choices(
        runs=_folders(runs),
        people=_folders(people),
        tasks=[SHORT.get(name, name) for name in short],
        agents=agents.split(",") if isinstance(agents, str) else agents,
        per_agent=per_agent,
        lists=lists,
        per_judge=per_judge,
        preset=preset,
        lengths=sorted({*(lengths or (PAIR_LENGTHS if pairs else LENGTHS))}),
        pairs=pairs,
        show_pseudo=show_pseudo,
        show_delays=show_delays,
        common=common,
        unique=unique,
        as_written=as_written,
        without=_names(without),
        plant=_names(plant),
        every=every,
        catch=catch,
        repeats=repeats,
        seed=secrets.randbelow(1 << 53) if seed is None else seed,
    )
    drawn_from = digests_of_answers([*choices.runs, *choices.people], choices.agents)  # before they are read
    drawn = _draw_pairs(choices) if choices.pairs else _draw_speakers(choices)
    notes: dict[str, Any] = {
        "runs": [str(path) for path in choices.runs],
        "options": choices.noted(),
        "tasks": drawn.about,
    }
    notes |= {"unbalanced": drawn.unbalanced, "passed_over": dict(drawn.passed_over)}
    notes["same_rules"] = drawn.rules.summary()
    if drawn.versions:
        notes["versions"] = drawn.versions.noted()
    notes["drawn_from"] = drawn_from
    folder = Path(out)
    rows, blind = write_trial_set(folder, drawn.lists, notes, choices.seed, force=force)
    sentences = [*drawn.common, *drawn.rules.sentences()]
    for name, numbers in drawn.about.items():
        if choices.pairs:
            sentences += sentences_on_pairs(numbers)
        else:
            sentences += sentences_on_task(name, numbers, rows)
    sentences += drawn.versions.sentences()
    sentences += sentences_on_set(drawn.unbalanced, drawn.passed_over, blind)
    return TrialSet(folder, len(rows), sentences)


def _folders(folders: Folder | Sequence[Folder]) -> list[Path]:
    """One folder, or several, as a list of paths."""
    return [Path(folders)] if isinstance(folders, str | PathLike) else [Path(folder) for folder in folders]


def _names(names: str | Sequence[str]) -> Sequence[str]:
    """Names of transformations as a list, of "a,b" too."""
    parts = names.split(",") if isinstance(names, str) else names
    return [name.strip() for name in parts if name.strip()]


def _draw_speakers(choices: Choices) -> _Drawn:
    rules = SameRules(as_written=choices.as_written)
    reader = AnswerReader(choices.runs, choices.people, rules, choices.agents, show_delays=choices.show_delays)
    answers = reader.candidates(choices.tasks, choices.lengths)
    if choices.show_delays:
        _refuse_without_delays(answers, reader.without_delays, choices.agents)
    if choices.agents is not None:
        machines = {answer.agent for answer in answers if answer.truth == "machine" and not answer.is_swapped}
        wanted = _named(choices.agents, machines | reader.not_asked)
        answers = [answer for answer in answers if answer.truth == "human" or answer.is_catch or answer.agent in wanted]
    drawn = _Drawn(passed_over=reader.passed_over, common=reader.common(), rules=reader.rules)
    for whose, number in reader.without_delays.items():
        drawn.passed_over[f"excerpts that ask about {_whose(whose)}, with a delay that is not known"] += number
    drawn.versions = VersionChoices(choices.without, choices.plant, choices.seed)
    if drawn.versions:
        there = {answer.stimulus.task for answer in answers}
        of_tasks = [task for task in TASKS if task in there]
        check_names(choices.without, choices.plant, of_tasks, shows_delays=choices.show_delays)
        answers = drawn.versions.usable(answers)
    for task in TASKS:
        if of_task := [answer for answer in answers if answer.stimulus.task == task]:
            chance = random.Random(f"trials {choices.seed} {task}")
            pool, drawn.about[task] = _pool(of_task, choices, chance)
            _refuse_pictures_of_a_part(task, [*pool.trials(), *pool.catch])
            drawn.unbalanced += [f"{task}: {remark}" for remark in pool.unbalanced]
            if drawn.versions:
                drawn.lists += _lists_of_versions(task, pool, choices, drawn.versions, chance)
            else:
                drawn.lists += _lists(task, pool, choices, chance)
    if not any(entry.trials for entry in drawn.lists):
        apart = [task for task, about in drawn.about.items() if about.get("stimuli_in_common", {}).get("common") == 0]
        reasons = [f"{task}: no stimulus was answered by people and by every agent (--common)" for task in apart]
        reasons += [*drawn.unbalanced, *reader.rules.sentences()]
        raise InputError("no trial can be drawn: " + ("; ".join(reasons) or "the runs hold no such answers"))
    return drawn


def _draw_pairs(choices: Choices) -> _Drawn:
    if "conversation" not in choices.tasks:
        raise InputError("pairs are of conversations")
    reader = AnswerReader(choices.runs, choices.people)
    drawn = _Drawn(passed_over=reader.passed_over)
    dialogues = read_dialogues(reader)
    chance = random.Random(f"pairs {choices.seed}")
    names = sorted({dialogue.agent for dialogue in dialogues if dialogue.has_machine})
    pairs = draw_pairs(
        dialogues,
        choices.lengths,
        chance,
        agents=names if choices.agents is None else _named(choices.agents, names),
        per_agent=choices.per_agent,
        every=choices.every,
        show_pseudo=choices.show_pseudo,
        show_delays=choices.show_delays,
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
        return draw_pair_list(pairs, number, used, chance, repeats=choices.repeats)

    if choices.per_judge is None:
        drawn.lists = [JudgesList("pairs-all", "conversation", order)]
    else:
        drawn.lists = _numbered("pairs", "conversation", choices.lists, choices.per_judge, draw)
    cells = [
        {"agent": agent, "length": turns, "pairs": len(of_cell)} for (agent, turns), of_cell in pairs.cells.items()
    ]
    people = {pair.columns[PEOPLE_OF_PAIR] for pair in trials}
    drawn.about["conversation"] = {"pairs": len(trials), "conversations_of_people": len(people), "cells": cells}
    return drawn


def _refuse_without_delays(
    answers: Sequence[Candidate], without: Mapping[str, int], asked: Sequence[str] | None
) -> None:
    """Raises InputError where there are no conversations, and where all of people's, or all of an agent's that is
    ``asked`` for, have a message without a known delay. ``without`` counts their excerpts, by whose they are."""
    there = {PEOPLE if answer.truth == "human" else answer.agent for answer in answers if answer.speaker is not None}
    if not there and not without:
        raise InputError("show_delays: the runs hold no conversations of the lengths that are asked for")
    wanted = None if asked is None else {PEOPLE, *(name.strip() for name in asked)}
    lost = [name for name in without if name not in there and (wanted is None or name in wanted)]
    if not lost:
        return
    whose = "; ".join(f"{count(without[name], 'excerpt')} of {_whose(name)}" for name in sorted(lost))
    way_out = "draw without show_delays (--show-delays)"
    if PEOPLE not in lost:
        way_out += ", or leave these agents out with agents (--agents)"
    raise InputError(
        "show_delays: each conversation has a message without a known delay, or with one below 0 or above a day: "
        f"{whose}. Imported conversations have no delays; {way_out}"
    )


def _whose(name: str) -> str:
    return "people" if name == PEOPLE else name


def _refuse_pictures_of_a_part(task: Asked, answers: Sequence[Candidate]) -> None:
    without = [answer for answer in answers if answer.stimulus.image() is None]
    if task not in WITHOUT_PICTURE and 0 < len(without) < len(answers):
        whose = "people's" if without[0].truth == "human" else f"{without[0].agent}'s"
        raise InputError(
            f"{task}: {len(without):,} of {count(len(answers), 'answer')} are about pictures that are in no run, such "
            f"as {whose} to {without[0].stimulus.id!r}. Correct the names in the table of answers, or give the set's "
            "stimuli these names as `benchmark_id`, or leave such answers out with common (--common)"
        )


def _named(names: Sequence[str], there: Collection[str]) -> set[str]:
    """The agents of these names. Raises InputError for names that are not ``there``."""
    wanted = {name.strip() for name in names if name.strip()}
    if wanted - set(there):
        raise InputError(
            f"agents: {', '.join(sorted(wanted - set(there)))}: the runs hold no answers of theirs, but of "
            f"{', '.join(sorted(there)) or 'no machine'}"
        )
    return wanted


def _pool(answers: Sequence[Candidate], choices: Choices, chance: random.Random) -> tuple[Pool, dict[str, Any]]:
    numbers: dict[str, Any] = {"candidates": len(answers)}
    if choices.common:
        numbers["common_without"] = common_without(answers)
        everywhere = len(_stimuli(answers))
        answers = in_common(answers)
        numbers["in_common"] = len(answers)
        numbers["stimuli_in_common"] = {"common": len(_stimuli(answers)), "all": everywhere}
    of_people, of_machines = one_sided(answers)
    numbers["stimuli_of_one_side"] = {"people": of_people, "machines": of_machines}
    alike = duplicates(answers)
    machines = [{answer.agent for answer in group if answer.truth == "machine"} for group in alike]
    numbers["alike"] = {
        "answers": sum(map(len, alike)),
        "of_people_and_machines": sum(len({answer.truth for answer in group}) > 1 for group in alike),
        "of_several_machines": sum(len(agents) > 1 for agents in machines),
    }
    if choices.unique:
        answers = unique(answers, chance)
    pool = draw_pool(answers, chance, per_agent=choices.per_agent, every=choices.every)
    numbers["people"] = len(pool.people)
    numbers["agents"] = {name: len(of_agent) for name, of_agent in pool.machines.items()}
    numbers["self_disclosed"] = sum(map(_discloses_itself, pool.trials()))
    return pool, numbers


def _stimuli(answers: Sequence[Candidate]) -> set[str]:
    """The stimuli of the answers, without catch trials."""
    return {answer.stimulus.id for answer in answers if not answer.is_catch}


def _discloses_itself(trial: Candidate) -> bool:
    texts = [trial.answer.text or ""]
    texts += [message.text for message in trial.answer.messages or () if message.speaker == trial.speaker]
    return any(map(disclosures, texts))


def _lists(task: Asked, pool: Pool, choices: Choices, chance: random.Random) -> list[JudgesList]:
    number = choices.per_judge
    if number is None and choices.preset is not None:
        number = PRESETS[choices.preset][task]
    used: Counter[int] = Counter()
    if number is None:
        trials = pool.trials()
        catch = least_used(pool.catch, round(choices.catch * len(trials)), used, set(), chance)
        return [JudgesList(f"{task}-all", task, arrange(trials, catch, 0, chance))]

    def draw(number: int) -> Order:
        return draw_list(pool, number, used, chance, catch=choices.catch, repeats=choices.repeats)

    return _numbered(task, task, choices.lists, number, draw)


def _lists_of_versions(
    task: Asked, pool: Pool, choices: Choices, versions: VersionChoices, chance: random.Random
) -> list[JudgesList]:
    """The lists that judges would get without versions, with each answer in one version; and a list of all."""
    pool.catch = with_first_version(pool.catch)
    drawn = versions.of_pool(task, pool.trials())
    dealing = random.Random(f"versions of lists {choices.seed} {task}")
    used: Counter[int] = Counter()
    lists = _lists(task, pool, choices, chance)
    catch = [trial for trial in pool.catch if any(trial is other for entry in lists for other, _ in entry.trials)]
    everything = JudgesList(f"{task}-all", task, arrange(drawn.all(), catch, 0, dealing))
    if lists[0].name == everything.name:  # there are no lists of single judges
        return [everything]
    return [replace(entry, trials=drawn.deal(entry.trials, used, dealing)) for entry in lists] + [everything]


def _numbered(name: str, task: Asked, lists: int, number: int, draw: Callable[[int], Order]) -> list[JudgesList]:
    digits = max(3, len(str(lists)))
    return [JudgesList(f"{name}-{place:0{digits}}", task, draw(number)) for place in range(1, lists + 1)]
