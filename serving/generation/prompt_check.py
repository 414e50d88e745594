"""What agents' models would read about a set, before weights are loaded: whether their chat templates take the chats,
and the prompt of the first stimulus. Only tokenizers are opened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agents import catalogue
from agents.capabilities import Prompted, limits_of
from agents.contract import Agent, Draw, Entry, derive_seed
from agents.errors import AnswerError, InputError, Problem, UnavailableError
from agents.stimuli import ConversationStimulus, Stimulus, Utterance, parse_row
from serving.conversations.scenario import SIDES, draw_scenario
from serving.sets.kinds import is_asked, kind_of

TURNS = 6  # of a conversation: what a template takes of three messages of each speaker, it takes of more
SAID = "\u2026"  # in place of what nobody has said yet
BEGUN_BY_THE_OTHER = orjson.dumps(
    {"task": "conversation", "id": "of a person", "type": "HM", "exchanges": TURNS, "who_starts": "A"}
)
BEGUN_BY_THE_AGENT = BEGUN_BY_THE_OTHER.replace(b'"who_starts":"A"', b'"who_starts":"B"')


@dataclass(slots=True)
class CheckedPrompts:
    """What came out of the prompts of agents, members of pairs among them."""

    problems: dict[str, Problem] = field(default_factory=dict)
    """By agent: its first problem."""
    closed: dict[str, Problem] = field(default_factory=dict)
    """By agent: why its tokenizer or processor cannot be opened on this machine, such as a package that is missing."""
    cannot: dict[str, list[str]] = field(default_factory=dict)
    """By agent: what it cannot do, in words that continue its name."""
    first: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """By (agent or pair, member): its first prompt, as ``run.json`` keeps it."""

    def refuse(self, *, elsewhere: bool) -> None:
        """Raises InputError if there are problems. With ``elsewhere`` agents answer on other machines, which may have
        what is missing here."""
        problems = [*self.problems.values()]
        if not elsewhere:
            problems += self.closed.values()
        if problems:
            raise InputError("the agents cannot be used as asked", problems)


def check_prompts(
    asked: Mapping[str, Mapping[str, Any]],
    entries: Mapping[str, Entry],
    settings: Mapping[str, Mapping[str, Any]],
    rows: Iterable[bytes],
    root: Path | None,
    seed: int = 0,
) -> CheckedPrompts:
    """Make the agents' prompts for a set. ``asked`` are agents and pairs with their entries of ``run.json``, ``rows``
    the set's valid rows. Only the first row of each form is tried."""
    checked = CheckedPrompts()
    reading = {name: [member for member in _members(name) if reads(entries[member].load_class())] for name in asked}
    if not any(reading.values()):
        return checked
    forms: dict[Any, bytes] = {}
    for row in rows:
        forms.setdefault(form(orjson.loads(row)), row)
    for member in dict.fromkeys(member for members in reading.values() for member in members):
        agent = entries[member].make(settings.get(member))
        if getattr(agent, "random", False):  # whose tokenizer and template are made here
            continue
        try:
            agent.open()
        except (UnavailableError, InputError) as error:
            checked.closed[member] = Problem("agents", None, member, str(error))
            continue
        checked.cannot[member] = limits_of(agent)
        for name, members in reading.items():
            if member in members:
                of_agent = [row for row in forms.values() if is_asked(asked[name], kind_of(orjson.loads(row)))]
                _try_all(checked, name, agent, of_agent, root, seed)
        agent.close()
    return checked


def check_served(agent: Agent[Any], row: bytes) -> Problem | None:
    """The problem of an opened agent with a conversation in which it is B."""
    checked = CheckedPrompts()
    _try_all(checked, f"human~{agent.name}", agent, [row], None, 0)
    return checked.problems.get(agent.name)


def _members(name: str) -> list[str]:
    return [*dict.fromkeys(catalogue.pair(name))]


def reads(cls: type[Agent[Any]]) -> bool:
    """Whether its agents are models of texts."""
    return issubclass(cls, Prompted)


def form(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What chats about a stimulus depend on, beside its words."""
    parts = ("task", "type", "mode", "who_starts", "version", "asked")
    absent = ("opener", "pseudo", "personas", "topic", "target_image", "beside", "examples")
    speakers = tuple(message.get("speaker") for message in row.get("history") or ())
    return (*(row.get(part) for part in parts), *(bool(row.get(part)) for part in absent), speakers)


def _try_all(
    checked: CheckedPrompts, name: str, agent: Agent[Any], rows: Sequence[bytes], root: Path | None, seed: int
) -> None:
    pair = catalogue.pair(name) if "~" in name else ()
    assert isinstance(agent, Prompted)
    sides = [side for side, member in enumerate(pair) if member == agent.name] or [0, 1]
    for row in rows:
        for stimulus, draw in _moments(parse_row(row, root=root), name, sides, seed):
            try:
                text = agent.prompt(stimulus, draw)
            except AnswerError as error:
                if error.code == "bad_prompt":
                    where = "" if "turn" not in draw.options else f"message {draw.options['turn'] + 1} of "
                    reason = str(error).replace("the setting AGENT.", f"the setting {agent.name}.")
                    problem = Problem("agents", None, agent.name, f"{where}{stimulus.id}: {reason}")
                    checked.problems.setdefault(agent.name, problem)
                    return
                continue  # a picture that cannot be read, no room: a matter of this stimulus
            if text and (name, agent.name) not in checked.first:
                checked.first[name, agent.name] = {
                    "stimulus": stimulus.id,
                    "turn": draw.options.get("turn"),
                    "sha256": hashlib.sha256(text.encode(errors="replace")).hexdigest(),
                    "text": text,
                }


def _moments(stimulus: Stimulus, name: str, sides: Sequence[int], seed: int) -> Iterator[tuple[Stimulus, Draw]]:
    """What an agent is asked about a stimulus, with the draws of sample 0. In a conversation these are the first
    messages of the ``sides``; where the stimulus leaves open who begins, once for each beginner."""

    def draw(turn: int | None, options: Mapping[str, Any]) -> Draw:
        return Draw(derive_seed(seed, name, stimulus.id, 0, turn, 0), options=options)

    if not isinstance(stimulus, ConversationStimulus):
        yield stimulus, draw(None, {})
        return
    drawn = draw_scenario(stimulus, draw(None, {}).seed)
    first = SIDES.index(drawn.who_starts or "A")
    beginners = [first]
    if stimulus.who_starts is None:
        beginners.append(1 - first)
    for starts in beginners:
        for turn in range(min(TURNS, stimulus.exchanges)):
            side = (starts + turn) % 2
            is_given = turn == 0 and stimulus.opener is not None
            if side in sides and not is_given:
                yield _after(drawn, starts, turn), draw(turn, {"speaker": SIDES[side], "turn": turn})


def _after(stimulus: ConversationStimulus, starts: int, turn: int) -> ConversationStimulus:
    """The stimulus after ``turn`` messages of speakers who take turns."""
    assert stimulus.names is not None
    before = 0 if stimulus.pseudo is None else 2  # by turns, too
    said = []
    for number in range(before + turn):
        text = SAID if number != before or stimulus.opener is None else stimulus.opener
        said.append(Utterance(speaker=stimulus.names[(starts + number) % 2], text=text))
    return stimulus.model_copy(update={"history": [*stimulus.history, *said], "who_starts": SIDES[starts]})
