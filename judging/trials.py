"""``turinglike trials``: draw trials from runs, balanced and blinded, and say what could not be."""

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
from judging.candidates import Candidate, Candidates, read_candidates, tasks_given
from judging.drawing import Pool, arrange, draw_list, draw_pool, duplicates, in_common, least_used, unique
from judging.pairs import LENGTHS as PAIR_LENGTHS
from judging.pairs import draw_pair_list, draw_pairs, read_dialogues
from judging.trial_set import JudgesList, about_path, key_path, write_trial_set
from serving.runs.display_text import count

WITHOUT_PICTURE = ("word_association", "conversation")
LENGTHS = (3, 6, 9, 12, 15, 18, 21, 24)
PRESETS: Mapping[str, Mapping[Asked, int]] = {
    # 2022 paper, Table 1 and sections S2 to S7; captions are not stated, and are those of 2025.
    "2022": dict(zip(TASKS, (25, 25, 12, 40, 50, 20), strict=True)),
    # 2025 paper, Methods, "shown per judge"; words are not stated, and are those of 2022.
    "2025": dict(zip(TASKS, (25, 25, 12, 40, 50, 32), strict=True)),
}


@dataclass(slots=True)
class TrialOptions:
    """What the command line says."""

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


def compose(options: TrialOptions, say: Callable[[str], None]) -> int:
    """Run the command; returns its exit code. Raises InputError and StorageError."""
    if not is_installed("sklearn"):
        raise UnavailableError("the package scikit-learn is not installed: pip install 'turinglike[judging]'")
    # Who knows the seed, and which runs there were, can draw the same order again and read whose the answers are.
    seed = secrets.randbelow(1 << 53) if options.seed is None else options.seed
    if options.pairs:
        return _compose_pairs(options, seed, say)
    if options.show_pseudo:
        raise InputError("--show-pseudo: belongs to --pairs")
    found = read_candidates(options.runs, options.people, tasks_given(options.task), options.lengths or LENGTHS)
    chosen = _of_agents(found, options.agents)
    if not chosen:
        raise InputError("the runs hold no answers that could be trials")
    if options.repeats and options.per_judge is None and options.preset is None:
        raise InputError("--repeats: trials come again in lists; say with --per-judge or --preset how long each is")
    lists: list[JudgesList] = []
    about: dict[str, Any] = {}
    remarks: list[str] = []
    for asked in TASKS:
        some = [one for one in chosen if one.shown.asked == asked]
        if some:
            chance = random.Random(f"trials {seed} {asked}")
            pool, told = _pool(some, options, chance)
            _refuse_pictures_of_some(asked, [*pool.trials(), *pool.catch])
            remarks += [f"{asked}: {remark}" for remark in pool.unbalanced]
            lists += _lists(asked, pool, options, chance)
            about[asked] = told
    if not any(one.trials for one in lists):
        raise InputError("no trial can be drawn: " + ("; ".join(remarks) or "no answers are left"))
    notes = {"runs": [str(path) for path in options.runs], "options": _told(options), "tasks": about}
    notes |= {"unbalanced": remarks, "passed_over": dict(found.passed_over)}
    rows, blind = write_trial_set(options.out, lists, notes, seed, force=options.force)
    for sentence in found.common:
        say(sentence)
    _summarize(options, about, rows, remarks, found, blind, say)
    return 0


def _compose_pairs(options: TrialOptions, seed: int, say: Callable[[str], None]) -> int:
    """The same for pairs of conversations."""
    if "conversation" not in tasks_given(options.task):
        raise InputError("--pairs are of conversations")
    for name in ("preset", "common", "unique"):
        if getattr(options, name):
            raise InputError(f"--pairs goes without --{name}")
    if options.repeats and options.per_judge is None:
        raise InputError("--repeats: pairs come again in lists; say with --per-judge how long each is")
    passed_over: Counter[str] = Counter()
    found = read_dialogues(options.runs, options.people, passed_over)
    chance = random.Random(f"pairs {seed}")
    names = sorted({one.agent for one in found if one.has_machine})
    agents = names if options.agents is None else _named(options.agents, names)
    pairs = draw_pairs(
        found,
        options.lengths or PAIR_LENGTHS,
        chance,
        agents=agents,
        per_agent=options.per_agent,
        whole=options.every,
        show_pseudo=options.show_pseudo,
    )
    passed_over += pairs.passed_over
    every = pairs.trials()
    if not every:
        told = "; ".join(f"{number:,} {why}" for why, number in sorted(passed_over.items()))
        raise InputError(f"no conversation with a machine can be paired with one of people: {told or 'there are none'}")
    used: Counter[int] = Counter()
    lists = [JudgesList("pairs-all", "conversation", arrange(every, (), 0, chance))]
    if options.per_judge is not None:
        digits = max(3, len(str(options.lists)))
        lists = [
            JudgesList(
                f"pairs-{at:0{digits}}",
                "conversation",
                draw_pair_list(pairs, options.per_judge, used, chance, repeats=options.repeats),
            )
            for at in range(1, options.lists + 1)
        ]
    about = {
        "pairs": len(every),
        "conversations_of_people": pairs.people,
        "cells": [
            {"agent": agent, "length": turns, "pairs": len(some)} for (agent, turns), some in pairs.cells.items()
        ],
    }
    notes = {"runs": [str(path) for path in options.runs], "options": _told(options), "tasks": {"conversation": about}}
    notes |= {"unbalanced": pairs.unbalanced, "passed_over": dict(passed_over)}
    _, blind = write_trial_set(options.out, lists, notes, seed, force=options.force)
    for (agent, turns), some in pairs.cells.items():
        first = sum(pair.truth == "machine" for pair in some)
        say(f"{agent}, {turns} turns: {count(len(some), 'pair')}, in {first:,} the machine speaks in the first")
    say(f"conversations of people in them: {pairs.people:,}")
    _say_rest(options, pairs.unbalanced, passed_over, blind, say)
    return 0


def _refuse_pictures_of_some(asked: Asked, some: Sequence[Candidate]) -> None:
    """Raise InputError where a judge would see a picture with some answers alone, which tells whose they are."""
    without = [one for one in some if one.shown.image() is None]
    if asked not in WITHOUT_PICTURE and 0 < len(without) < len(some):
        whose = "people's" if without[0].truth == "human" else f"{without[0].agent}'s"
        raise InputError(
            f"{asked}: no run has the picture of {count(len(without), 'answer')}, of {len(some):,} ({whose} to "
            f"{without[0].shown.id!r}, for one); give the set's stimuli these names as `benchmark_id`, or --common"
        )


def _of_agents(found: Candidates, agents: str | None) -> list[Candidate]:
    """Those of people, of the agents named, and catch trials."""
    if agents is None:
        return found.found
    wanted = _named(agents, {one.agent for one in found.found if one.truth == "machine" and not one.is_swapped})
    return [one for one in found.found if one.truth == "human" or one.is_catch or one.agent in wanted]


def _named(given: str, there: Collection[str]) -> set[str]:
    """The agents of ``--agents``. Raises InputError for those that are not ``there``."""
    wanted = {name.strip() for name in given.split(",") if name.strip()}
    if wanted - set(there):
        raise InputError(
            f"--agents: {', '.join(sorted(wanted - set(there)))}: the runs hold no answers of theirs, but of "
            f"{', '.join(sorted(there)) or 'no machine'}"
        )
    return wanted


def _pool(some: Sequence[Candidate], options: TrialOptions, chance: random.Random) -> tuple[Pool, dict[str, Any]]:
    told: dict[str, Any] = {"candidates": len(some)}
    if options.common:
        some = in_common(some)
        told["in_common"] = len(some)
    alike = duplicates(some)
    told["alike"] = {
        "answers": sum(map(len, alike.values())),
        "of_people_and_machines": sum(len({one.truth for one in ones}) > 1 for ones in alike.values()),
        "of_several_machines": sum(
            len({one.agent for one in ones if one.truth == "machine"}) > 1 for ones in alike.values()
        ),
    }
    if options.unique:
        some = unique(some, chance)
    pool = draw_pool(some, chance, per_agent=options.per_agent, whole=options.every)
    told["people"] = len(pool.people)
    told["agents"] = {name: len(ones) for name, ones in pool.machines.items()}
    told["self_disclosed"] = sum(_discloses(one) for one in pool.trials())
    return pool, told


def _discloses(one: Candidate) -> bool:
    """Whether the answer says of itself that it is a machine's."""
    texts = [one.answer.text or ""]
    texts += [said.text for said in one.answer.messages or () if said.speaker == one.speaker]
    return any(map(disclosures, texts))


def _lists(asked: Asked, pool: Pool, options: TrialOptions, chance: random.Random) -> list[JudgesList]:
    number = options.per_judge
    if number is None and options.preset is not None:
        number = PRESETS[options.preset][asked]
    used: Counter[int] = Counter()
    if number is None:
        every = pool.trials()
        catch = least_used(pool.catch, round(options.catch * len(every)), used, set(), chance)
        return [JudgesList(f"{asked}-all", asked, arrange(every, catch, 0, chance))]
    digits = max(3, len(str(options.lists)))
    return [
        JudgesList(
            f"{asked}-{at:0{digits}}",
            asked,
            draw_list(pool, number, used, chance, catch=options.catch, repeats=options.repeats),
        )
        for at in range(1, options.lists + 1)
    ]


def _told(options: TrialOptions) -> dict[str, Any]:
    names = ["per_agent", "lists", "per_judge", "every", "repeats"]
    names += ["pairs", "show_pseudo"] if options.pairs else ["preset", "common", "unique", "catch"]
    lengths = options.lengths or (PAIR_LENGTHS if options.pairs else LENGTHS)
    return {**{name: getattr(options, name) for name in names}, "lengths": list(lengths)}


def _summarize(
    options: TrialOptions,
    about: Mapping[str, Any],
    rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    remarks: Sequence[str],
    found: Candidates,
    blind: Sequence[Mapping[str, Any]],
    say: Callable[[str], None],
) -> None:
    for asked, told in about.items():
        some = [key for trial, key in rows if trial["asked"] == asked]
        kinds = Counter({0: key["truth"], 1: "catch"}.get(key["catch"], "swapped") for key in some)
        swapped = f", {kinds['swapped']:,} swapped" if kinds["swapped"] else ""
        say(
            f"{asked}: {count(kinds.total(), 'trial')}, {kinds['human']:,} of people, {kinds['machine']:,} of "
            f"{count(len(told['agents']), 'agent')}, {kinds['catch']:,} to catch{swapped}"
        )
        alike = told["alike"]
        if alike["answers"]:
            say(
                f"  said alike about one stimulus: {count(alike['answers'], 'answer')}, by people and machines "
                f"{count(alike['of_people_and_machines'], 'time')}, by several machines "
                f"{count(alike['of_several_machines'], 'time')}"
                f"{'; one of each is kept' if options.unique else ' (--unique keeps one of each)'}"
            )
        if told["self_disclosed"]:
            say(f"  {count(told['self_disclosed'], 'answer')} say of themselves that a machine gave them")
    _say_rest(options, remarks, found.passed_over, blind, say)


def _say_rest(
    options: TrialOptions,
    remarks: Sequence[str],
    passed_over: Mapping[str, int],
    blind: Sequence[Mapping[str, Any]],
    say: Callable[[str], None],
) -> None:
    for remark in remarks:
        say(f"not balanced: {remark}")
    for why, number in sorted(passed_over.items()):
        say(f"passed over: {number:,} {why}")
    for one in blind:
        if one["hidden"] is None:
            say(f"{one['asked']}: too few trials to test whether the set gives away whose the answers are")
            continue
        parts = {
            name: "{detectability:.2f} ({low:.2f} to {high:.2f})".format(**one[name]) for name in ("hidden", "shown")
        }
        warning = "; something beside the answers gives them away" if one["hidden"]["low"] > 0.5 else ""
        say(
            f"{one['asked']}: a classifier detects machines at {parts['hidden']} by order, names and files{warning}; "
            f"at {parts['shown']} by the answers' length, numbers and punctuation"
        )
    say(f"trials: {options.out}; key, not for judges: {key_path(options.out)}; about it: {about_path(options.out)}")
