"""Pairs of conversations of a topic, mode and length: in which does a machine speak? (X-Turing, arXiv 2408.09853.)"""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.answers import ConversationAnswer
from judging.trial_sets.candidates import (
    MORE_THAN_TWO,
    PEOPLE_OF_PAIR,
    AnsweredStimulus,
    AnswerReader,
    Candidate,
    RunRecord,
    is_person,
    naming,
)
from judging.trial_sets.drawing import Order, arrange, half, least_used, shares
from judging.trial_sets.message_lines import (
    Letter,
    MessageLine,
    are_delays_known,
    as_shown,
    messages_of,
    pseudo_turns,
    turns,
)

PAIR_LENGTHS = (3, 10)


@dataclass(frozen=True, slots=True)
class PairCandidate:
    """A conversation that may stand beside another one."""

    stimulus: AnsweredStimulus
    """What the conversation is about."""
    agent: str
    """The machine's name; of two machines, or two people, both names ("a~b")."""
    has_machine: bool
    """Whether at least one of the two is a machine."""
    speaker: Letter | None
    """The letter of a machine that talks with a person; None where two machines or two people talk."""
    record: tuple[str, str, int]
    """The record that has the conversation: its run, agent and sample."""
    topic: str
    """In small letters; the stimulus's id where nothing names a topic."""
    mode: str
    """"ping-pong" or "burst", in which somebody may send several messages in a row."""
    turns: Sequence[Sequence[MessageLine]]
    """The messages by turns; a turn has all that one says before the other one does."""
    pseudo: Sequence[Sequence[MessageLine]]
    """Turns that a machine wrote beforehand."""

    def is_heard(self, number: int) -> bool:
        """Whether the machine, or anybody, speaks in the first ``number`` turns."""
        agents = [line.agent for turn in self.turns[:number] for line in turn if line.agent]
        return any(not self.has_machine or not is_person(agent) for agent in agents)

    def has_delays(self, number: int) -> bool:
        """Whether it is known of the first ``number`` turns how long their messages took."""
        return are_delays_known([line for turn in self.turns[:number] for line in turn])


@dataclass(slots=True)
class Pairs:
    """What was drawn of a set of conversations."""

    cells: dict[tuple[str, int], list[Candidate]] = field(default_factory=dict)
    """Pairs by the machine's name and the number of turns, without those written beforehand."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """How many conversations with machines found no place, by reason."""
    unbalanced: list[str] = field(default_factory=list)
    """What could not be made equal, each in a clause for the summary."""

    def trials(self) -> list[Candidate]:
        """The pairs of every cell in one list, cell by cell."""
        return [pair for pairs in self.cells.values() for pair in pairs]


def read_dialogues(reader: AnswerReader) -> list[PairCandidate]:
    """The conversations without catch trials. Raises InputError."""
    dialogues = []
    for record, stimulus in reader.answered(("conversation",)):
        if record["kind"] == "control":
            continue
        with naming(record):
            dialogue = _dialogue(record, stimulus)
        if dialogue is None:
            reader.passed_over[MORE_THAN_TWO] += 1
        elif len({line.speaker for turn in dialogue.turns for line in turn if line.agent}) < 2:
            reader.passed_over["conversations of one speaker alone"] += 1
        else:
            dialogues.append(dialogue)
    return dialogues


def _dialogue(record: RunRecord, stimulus: AnsweredStimulus) -> PairCandidate | None:
    answer = ConversationAnswer.model_validate(record["answer"])
    lines = messages_of(answer, stimulus.row)
    if lines is None:
        return None
    agents: dict[Letter, str] = {line.speaker: line.agent for line in reversed(lines) if line.agent}
    machines: list[Letter] = [letter for letter, agent in agents.items() if not is_person(agent)]
    speaker = machines[0] if len(machines) == 1 else None
    by_turns = turns(lines)
    raw: dict[str, Any] = record["raw"] if isinstance(record["raw"], dict) else {}
    is_burst = any(len(turn) > 1 for turn in by_turns)
    return PairCandidate(
        stimulus,
        agents[speaker] if speaker is not None else "~".join(agents[letter] for letter in sorted(agents)),
        bool(machines),
        speaker,
        (record["run"], record["agent"], record["sample"]),
        " ".join(str(stimulus.row.get("topic") or raw.get("topic") or stimulus.id).casefold().split()),
        stimulus.row.get("mode") or raw.get("mode") or ("burst" if is_burst else "ping-pong"),
        by_turns,
        pseudo_turns(answer, stimulus.row),
    )


def draw_pairs(
    dialogues: Sequence[PairCandidate],
    lengths: Sequence[int],
    chance: random.Random,
    *,
    agents: Collection[str],
    per_agent: int | None = None,
    every: bool = False,
    show_pseudo: bool = False,
    show_delays: bool = False,
) -> Pairs:
    """The pairs of each length in turns, of every agent ``per_agent`` or equally many; ``every``: all there are. With
    ``show_delays`` the messages of both conversations say how long they took."""
    drawn = Pairs()
    people: dict[tuple[str, str], list[PairCandidate]] = defaultdict(list)
    for dialogue in dialogues:
        if not dialogue.has_machine:
            people[dialogue.topic, dialogue.mode].append(dialogue)
    machines: dict[str, list[PairCandidate]] = {agent: [] for agent in sorted(agents)}
    for dialogue in dialogues:
        if dialogue.agent not in machines:
            continue
        if (dialogue.topic, dialogue.mode) in people:
            machines[dialogue.agent].append(dialogue)
        else:
            drawn.passed_over[
                f"conversations with a machine about a topic that people did not talk about in {dialogue.mode}"
            ] += 1
    used: Counter[int] = Counter()
    paired: dict[int, PairCandidate] = {}
    for length in sorted(lengths, reverse=True):
        both: dict[str, list[tuple[PairCandidate, PairCandidate]]] = {agent: [] for agent in machines}
        for agent, of_agent in machines.items():
            for dialogue in chance.sample(of_agent, len(of_agent)):
                visible = length + len(dialogue.pseudo) if show_pseudo else length
                others = people[dialogue.topic, dialogue.mode]
                partners = [other for other in others if len(other.turns) >= visible and other.is_heard(visible)]
                timed = [other for other in partners if not show_delays or other.has_delays(visible)]
                if len(dialogue.turns) < length:
                    drawn.passed_over[f"conversations of fewer than {length} turns with a machine"] += 1
                elif not dialogue.is_heard(length) and visible == length:
                    drawn.passed_over[
                        f"conversations in whose first {length} turns the machine says nothing of its own"
                    ] += 1
                elif not partners:
                    drawn.passed_over[
                        f"conversations with a machine whose topic people did not talk about for {visible} turns"
                    ] += 1
                elif show_delays and not dialogue.has_delays(length):
                    drawn.passed_over[
                        f"conversations with a machine in whose first {length} turns a delay is not known"
                    ] += 1
                elif not timed:
                    drawn.passed_over[
                        "conversations with a machine beside which all of people on the topic have a delay that is not "
                        f"known in the first {visible} turns"
                    ] += 1
                else:
                    same = [other for other in timed if other is paired.get(id(dialogue))]
                    partner = min(same or timed, key=lambda other: (used[id(other)], chance.random()))
                    paired[id(dialogue)] = partner
                    used[id(partner)] += 1
                    both[agent].append((dialogue, partner))
        fewest = min((len(pairs) for pairs in both.values() if pairs), default=0)
        wanted = max(map(len, both.values()), default=0) if every else per_agent or fewest
        for agent, pairs in both.items():
            if not every and len(pairs) < wanted:
                drawn.unbalanced.append(f"{agent} has {len(pairs):,} pairs of {length} turns, and not {wanted:,}")
            if drawn_pairs := pairs[:wanted]:
                drawn.cells[agent, length] = _placed(
                    drawn_pairs, length, chance, show_pseudo=show_pseudo, show_delays=show_delays
                )
    drawn.cells = {cell: drawn.cells[cell] for cell in sorted(drawn.cells, key=lambda cell: (cell[1], cell[0]))}
    return drawn


def draw_pair_list(pairs: Pairs, number: int, used: Counter[int], chance: random.Random, *, repeats: float) -> Order:
    """A judge's pairs: the machine speaks in the first of half of them; agents and lengths come equally often."""
    first = half(number, chance)
    drawn: list[Candidate] = []
    seen: set[str] = set()
    for truth, part in (("machine", first), ("human", number - first)):
        for cell, quota in shares(part, sorted(pairs.cells), chance).items():
            drawn += least_used([pair for pair in pairs.cells[cell] if pair.truth == truth], quota, used, seen, chance)
    return arrange(drawn, (), round(repeats * number), chance)


def _placed(
    both: Sequence[tuple[PairCandidate, PairCandidate]],
    length: int,
    chance: random.Random,
    *,
    show_pseudo: bool,
    show_delays: bool,
) -> list[Candidate]:
    first = half(len(both), chance)
    places = [number < first for number in range(len(both))]
    chance.shuffle(places)
    trials = []
    for (machine, people), is_first in zip(both, places, strict=True):
        total = len(machine.pseudo) + length
        visible = total if show_pseudo else length
        machines_turns = list(machine.turns[:length])
        if show_pseudo:
            machines_turns = [*machine.pseudo, *machines_turns]
        answer = _side(machine, machines_turns, show_delays=show_delays)
        beside = _side(people, people.turns[:visible], show_delays=show_delays)
        if not is_first:
            answer, beside = beside, answer
        run, agent, sample = people.record
        columns = {**answer.columns, PEOPLE_OF_PAIR: f"{run} {people.stimulus.id} {agent} {sample}"}
        # The stimulus is the machine's conversation's wherever that stands, so that it gives nothing away.
        trials.append(
            replace(answer, stimulus=machine.stimulus, length=visible, beside=beside, turns=total, columns=columns)
        )
    return trials


def _side(dialogue: PairCandidate, visible: Sequence[Sequence[MessageLine]], *, show_delays: bool) -> Candidate:
    lines = [line for turn in visible for line in turn]
    letters: dict[Letter, Letter] = {"A": "A", "B": "B"} if lines[0].speaker == "A" else {"A": "B", "B": "A"}
    return Candidate(
        dialogue.stimulus,
        dialogue.agent,
        "machine" if dialogue.has_machine else "human",
        False,
        dialogue.record,
        as_shown([line._replace(speaker=letters[line.speaker]) for line in lines], show_delays=show_delays),
        letters[dialogue.speaker] if dialogue.speaker is not None else None,
        delays=[line.delay for line in lines],
        columns={"topic": dialogue.topic, "mode": dialogue.mode},
    )
