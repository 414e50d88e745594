"""Pairs of conversations: one with a machine and one of people alone, of which a judge says where the machine speaks.

As in X-Turing (ACL 2025, arXiv 2408.09853), a conversation with a machine is paired with one of people on the same
topic and in the same mode, both cut to the same number of turns. A conversation of people may stand in several pairs;
those are taken first that stand in fewer. Which one is shown first is drawn so that of every agent and length the
machine speaks in the first in half of the pairs.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.answers import ConversationAnswer
from judging.candidates import (
    MORE_THAN_TWO,
    PEOPLE_OF_PAIR,
    Candidate,
    Record,
    Shown,
    Truth,
    as_shown,
    naming,
    read_answered,
)
from judging.dialogues import Letter, Line, heard, is_person, turns, written
from judging.drawing import arrange, least_used, shares

LENGTHS = (3, 10)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A whole conversation. ``agent`` is the machine that speaks in it, or, where machines or people speak alone, both
    of them; ``speaker`` is the machine's letter where a person speaks with it. ``turns`` are those that were said,
    ``pseudo`` those that the machine wrote itself beforehand."""

    shown: Shown
    agent: str
    has_machine: bool
    speaker: Letter | None
    record: tuple[str, str, int]
    topic: str
    mode: str
    turns: Sequence[Sequence[Line]]
    pseudo: Sequence[Sequence[Line]]

    @property
    def name(self) -> str:
        """Tells it from all others."""
        run, agent, sample = self.record
        return f"{run} {self.shown.id} {agent} {sample}"

    def is_heard(self, number: int) -> bool:
        """Whether in the first ``number`` turns the machine, or of people one, says what the stimulus does not give."""
        agents = [line.agent for turn in self.turns[:number] for line in turn if line.agent]
        return any(not self.has_machine or not is_person(agent) for agent in agents)

    def cut(self, number: int, *, show_pseudo: bool) -> list[Line]:
        """The messages of the first ``number`` turns, after what the machine wrote itself if that is shown."""
        begin = self.pseudo if show_pseudo else ()
        return [line for turn in [*begin, *self.turns[:number]] for line in turn]


@dataclass(slots=True)
class Pairs:
    """The pairs by agent and length. ``passed_over`` counts conversations, by why they are in no pair; ``unbalanced``
    says what could not be made equal, in sentences."""

    cells: dict[tuple[str, int], list[Candidate]] = field(default_factory=dict)
    passed_over: Counter[str] = field(default_factory=Counter)
    unbalanced: list[str] = field(default_factory=list)
    people: int = 0

    def trials(self) -> list[Candidate]:
        """All of them."""
        return [pair for pairs in self.cells.values() for pair in pairs]


def read_dialogues(runs: Sequence[Path], people: Sequence[Path], passed_over: Counter[str]) -> list[Dialogue]:
    """The conversations of all ``runs``, and people's of ``people``; catch trials are none. Raises InputError as
    :func:`judging.candidates.read_answered`."""
    dialogues = []
    for record, shown in read_answered(runs, people, ("conversation",), passed_over):
        if record["kind"] == "control":
            continue
        with naming(record):
            dialogue = _dialogue(record, shown)
        if dialogue is None:
            passed_over[MORE_THAN_TWO] += 1
        elif len({line.speaker for turn in dialogue.turns for line in turn if line.agent}) < 2:
            passed_over["of one speaker alone"] += 1
        else:
            dialogues.append(dialogue)
    return dialogues


def draw_pairs(
    dialogues: Sequence[Dialogue],
    lengths: Sequence[int],
    chance: random.Random,
    *,
    agents: Collection[str],
    per_agent: int | None = None,
    whole: bool = False,
    show_pseudo: bool = False,
) -> Pairs:
    """The pairs of each length in turns: of every agent as many as of any other, ``per_agent``, or with ``whole`` all
    that there are. A conversation has one partner at all lengths: who saw it beside two would know it."""
    drawn = Pairs()
    people: dict[tuple[str, str], list[Dialogue]] = defaultdict(list)
    for dialogue in dialogues:
        if not dialogue.has_machine:
            people[dialogue.topic, dialogue.mode].append(dialogue)
    topics = {topic for topic, _ in people}
    machines: dict[str, list[Dialogue]] = {agent: [] for agent in sorted(agents)}
    for dialogue in dialogues:
        if dialogue.agent not in machines:
            continue
        if (dialogue.topic, dialogue.mode) in people:
            machines[dialogue.agent].append(dialogue)
        else:
            mode = f" in {dialogue.mode}" if dialogue.topic in topics else ""
            drawn.passed_over[f"with a machine about a topic that people did not talk about{mode}"] += 1
    used: Counter[int] = Counter()
    placed: set[int] = set()
    paired: dict[int, Dialogue] = {}
    for length in sorted(lengths, reverse=True):
        both: dict[str, list[tuple[Dialogue, Dialogue]]] = {agent: [] for agent in machines}
        for agent, of_agent in machines.items():
            for dialogue in chance.sample(of_agent, len(of_agent)):
                shown = length + (len(dialogue.pseudo) if show_pseudo else 0)
                others = people[dialogue.topic, dialogue.mode]
                partners = [other for other in others if len(other.turns) >= shown and other.is_heard(shown)]
                if len(dialogue.turns) < length:
                    drawn.passed_over[f"with a machine of fewer than {length} turns"] += 1
                elif not dialogue.is_heard(length) and shown == length:
                    drawn.passed_over[f"in whose first {length} turns the machine says nothing of its own"] += 1
                elif not partners:
                    drawn.passed_over[f"with a machine whose topic people did not talk about for {shown} turns"] += 1
                else:
                    same = [other for other in partners if other is paired.get(id(dialogue))]
                    partner = min(same or partners, key=lambda other: (used[id(other)], chance.random()))
                    paired[id(dialogue)] = partner
                    used[id(partner)] += 1
                    both[agent].append((dialogue, partner))
        fewest = min((len(pairs) for pairs in both.values() if pairs), default=0)
        wanted = max(map(len, both.values()), default=0) if whole else per_agent or fewest
        for agent, pairs in both.items():
            if not whole and len(pairs) < wanted:
                drawn.unbalanced.append(f"{agent} has {len(pairs):,} pairs of {length} turns, and not {wanted:,}")
            kept = pairs[:wanted]
            if kept:
                drawn.cells[agent, length] = _placed(kept, length, chance, show_pseudo)
                placed.update(id(partner) for _, partner in kept)
    drawn.people = len(placed)
    drawn.cells = {cell: drawn.cells[cell] for cell in sorted(drawn.cells, key=lambda cell: (cell[1], cell[0]))}
    return drawn


def draw_pair_list(
    pairs: Pairs, number: int, used: Counter[int], chance: random.Random, *, repeats: float
) -> list[tuple[Candidate, bool]]:
    """One judge's pairs, in order, each with whether it comes for the second time: in half of them the machine speaks
    in the first, and of either half agents and lengths have equally many; no stimulus twice, nor a conversation of
    people, while there are others."""
    first = number // 2 + (chance.random() < 0.5 if number % 2 else 0)
    chosen: list[Candidate] = []
    seen: set[str] = set()
    for truth, part in (("machine", first), ("human", number - first)):
        for cell, quota in shares(part, sorted(pairs.cells), chance).items():
            chosen += least_used([pair for pair in pairs.cells[cell] if pair.truth == truth], quota, used, seen, chance)
    return arrange(chosen, (), round(repeats * number), chance)


def _dialogue(record: Record, shown: Shown) -> Dialogue | None:
    answer = ConversationAnswer.model_validate(record["answer"])
    lines = heard(answer, shown.row)
    if lines is None:
        return None
    by: dict[Letter, str] = {line.speaker: line.agent for line in reversed(lines) if line.agent}
    machines: dict[Letter, str] = {letter: agent for letter, agent in by.items() if not is_person(agent)}
    alone = len(machines) == 1
    [*speaker] = machines
    said_turns = turns(lines)
    raw: dict[str, Any] = record["raw"] if isinstance(record["raw"], dict) else {}
    several = any(len(turn) > 1 for turn in said_turns)
    return Dialogue(
        shown,
        machines[speaker[0]] if alone else "~".join(by[letter] for letter in sorted(by)),
        bool(machines),
        speaker[0] if alone else None,
        (record["run"], record["agent"], record["sample"]),
        " ".join(str(shown.row.get("topic") or raw.get("topic") or shown.id).casefold().split()),
        shown.row.get("mode") or raw.get("mode") or ("burst" if several else "ping-pong"),
        said_turns,
        written(answer, shown.row),
    )


def _placed(
    both: Sequence[tuple[Dialogue, Dialogue]], length: int, chance: random.Random, show_pseudo: bool
) -> list[Candidate]:
    """The pairs of one cell as trials: in half of them the conversation with the machine is the answer."""
    first = len(both) // 2 + (chance.random() < 0.5 if len(both) % 2 else 0)
    places = [at < first for at in range(len(both))]
    chance.shuffle(places)
    made = []
    for (machine, people), is_first in zip(both, places, strict=True):
        total = len(machine.pseudo) + length
        sides = [
            _side(machine, machine.cut(length, show_pseudo=show_pseudo)),
            _side(people, people.cut(total if show_pseudo else length, show_pseudo=False)),
        ]
        answer, beside = sides if is_first else reversed(sides)
        # The stimulus is the machine's conversation's wherever that stands, so that it does not tell.
        columns = {**answer.columns, PEOPLE_OF_PAIR: people.name}
        seen = total if show_pseudo else length
        made.append(replace(answer, shown=machine.shown, length=seen, beside=beside, turns=total, columns=columns))
    return made


def _side(dialogue: Dialogue, lines: Sequence[Line]) -> Candidate:
    truth: Truth = "machine" if dialogue.has_machine else "human"
    letters: dict[Letter, Letter] = {"A": "A", "B": "B"} if lines[0].speaker == "A" else {"A": "B", "B": "A"}
    seen = as_shown([line._replace(speaker=letters[line.speaker]) for line in lines])
    speaker = letters[dialogue.speaker] if dialogue.speaker is not None else None
    delays = [line.delay for line in lines]
    columns = {"topic": dialogue.topic, "mode": dialogue.mode}
    return Candidate(
        dialogue.shown, dialogue.agent, truth, False, dialogue.record, seen, speaker, delays=delays, columns=columns
    )
