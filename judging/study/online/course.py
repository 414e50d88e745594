"""The course of online tests, read from the study's events and from nothing else, and which test is held next.

A test is a list of exchanges: a question of the judge's and an answer of each agent, whom the judge knows as 1 and 2.
Times (``clock``) are seconds from when the test began: in a test with people the wall's, without them what the model of
delays says that it would have taken. An answer's ``clock`` may lie ahead; both of an exchange are shown when the later
is over.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

from judging.study.settings import Tests as TestSettings
from judging.trial_set import QUESTION_OF_PAIRS

Condition = Literal["person_deceives", "machine_deceives"]
Pair = Literal["person machine", "two machines", "two people"]
Part = Literal["person", "machine"]
Act = Literal["ready", "ask", "answer", "judge"]
EVENTS = ("test", "test_ready", "test_asked", "test_answered", "test_judged", "test_void", "test_left")
SIDES = (1, 2)
PARTS: Mapping[Pair, tuple[Part, Part]] = {
    "person machine": ("person", "machine"),
    "two machines": ("machine", "machine"),
    "two people": ("person", "person"),
}


END = re.compile(r"[.!?…]['\"’”)\]]*$")  # of a sentence's last word
TITLE = re.compile(r"\W*(?:mrs?|ms|dr|prof|st|e\.g|i\.e)\.", re.IGNORECASE)


@dataclass(slots=True)
class Said:
    """A question or an answer; ``raw`` is a machine's text before it was cut, ``delay_s`` what it took."""

    text: str
    clock: float
    delay_s: float
    raw: str | None = None


@dataclass(slots=True)
class Judged:
    """A verdict after so many ``exchanges``, as on the trial in which agent 1 stands for the answer and agent 2 beside
    it: ``human`` is that 1 is the human, ``machine`` that 2 is."""

    who: str
    exchanges: int
    verdict: str
    reason: str | None
    clock: float


@dataclass(slots=True)
class OnlineTest:
    """A test. ``judge`` and the two ``agents`` are participants' codes or agents' names; ``parts`` say whose part each
    of the two takes. ``answers`` are of each exchange, by side."""

    id: str
    at: str
    judge: str
    agents: list[str]
    parts: list[Part]
    condition: Condition
    exchanges: int
    verdicts: Literal["each", "end"]
    ready: set[str] = field(default_factory=set)
    questions: list[Said] = field(default_factory=list)
    answers: list[dict[int, Said]] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    void: str | None = None

    @property
    def pair(self) -> Pair:
        return next(pair for pair, parts in PARTS.items() if sorted(parts) == sorted(self.parts))

    @property
    def people(self) -> list[str]:
        return [self.judge, *self.agents]

    def began(self) -> float:
        """When, in seconds of the epoch."""
        return datetime.fromisoformat(self.at).timestamp()

    def last_clock(self) -> float:
        """The clock of the last question or verdict."""
        clocks = [question.clock for question in self.questions] + [judged.clock for judged in self.judged]
        return max(clocks, default=0.0)

    def shown_at(self, exchange: int) -> float:
        """The clock at which both answers of an exchange, which are there, are shown."""
        return max(answer.clock for answer in self.answers[exchange].values())

    def shown(self, clock: float) -> int:
        """How many exchanges the judge may see in full."""
        return sum(len(both) == len(SIDES) and self.shown_at(at) <= clock for at, both in enumerate(self.answers))

    def is_over(self) -> bool:
        return bool(self.judged) and self.judged[-1].exchanges == self.exchanges

    def due(self, clock: float, participants: Collection[str]) -> list[tuple[str, int, Act]]:
        """What is awaited: (of whom, the side of an agent or 0 of the judge, what). Only ``participants`` have to say
        that they have read their part; the judge may ask before the others have, lest their time tell that they are
        people. Nothing where the test is over or void, or answers are there that are not yet shown."""
        if self.void is not None or self.is_over():
            return []
        sides = list(zip(self.people, (0, *SIDES), strict=True))
        reading = {who for who in self.people if who in participants and who not in self.ready}
        due: list[tuple[str, int, Act]] = [(who, side, "ready") for who, side in sides if who in reading]
        number = len(self.questions)
        if number and len(self.answers[-1]) < len(SIDES):
            left = [(who, side) for who, side in sides[1:] if side not in self.answers[-1] and who not in reading]
            return [*due, *((who, side, "answer") for who, side in left)]
        if self.shown(clock) < number or self.judge in reading:
            return due
        is_judging = number == self.exchanges or (number and self.verdicts == "each" and len(self.judged) < number)
        return [*due, (self.judge, 0, "judge" if is_judging else "ask")]

    def trial(self, exchanges: int) -> dict[str, Any]:
        """The test as a trial after so many exchanges, without its id: the conversation with agent 1 is the answer,
        that with agent 2 stands beside it; the judge is A in both."""
        first, second = ({"messages": self.messages(side, exchanges)} for side in SIDES)
        return {"asked": "conversation", "question": QUESTION_OF_PAIRS, "answer": first, "beside": second}

    def messages(self, side: int, exchanges: int | None = None) -> list[dict[str, str]]:
        """The first ``exchanges`` (all) with an agent, or as the judge has them (side 0), to whom B is both agents."""
        messages = []
        for question, answers in zip(self.questions[:exchanges], self.answers, strict=False):
            messages.append({"speaker": "A", "text": question.text})
            if side == 0:
                messages.append({"speaker": "B", "text": "\n".join(f"{at}: {answers[at].text}" for at in SIDES)})
            elif side in answers:
                messages.append({"speaker": "B", "text": answers[side].text})
        return messages


@dataclass(slots=True)
class Tests:
    """All tests by id, in the order in which they began, and which test each participant is in until they leave it."""

    by_id: dict[str, OnlineTest] = field(default_factory=dict)
    of: dict[str, str] = field(default_factory=dict)

    def apply(self, event: dict[str, Any]) -> None:
        """Take an event in. Raises KeyError for what no server of ours has written."""
        if event["event"] == "test":
            names = ("at", "judge", "agents", "parts", "condition", "exchanges", "verdicts")
            test = OnlineTest(event["test"], **{name: event[name] for name in names})
            self.by_id[test.id] = test
            self.of.update(dict.fromkeys(test.people, test.id))
            return
        test = self.by_id[event["test"]]
        match event["event"]:
            case "test_ready":
                test.ready.add(event["who"])
            case "test_asked":
                test.questions.append(_said(event))
                test.answers.append({})
            case "test_answered":
                test.answers[-1][event["side"]] = _said(event)
            case "test_judged":
                number = len(test.questions)
                test.judged.append(Judged(event["who"], number, event["verdict"], event["reason"], event["clock"]))
            case "test_void":
                test.void = event["why"]
            case "test_left":
                self.leave(event["who"])

    def test_of(self, code: str) -> OnlineTest | None:
        """The test that a participant is in."""
        return self.by_id.get(self.of.get(code, ""))

    def leave(self, code: str) -> None:
        self.of.pop(code, None)

    def counted(self) -> list[OnlineTest]:
        """Those that are not void."""
        return [test for test in self.by_id.values() if test.void is None]


def _said(event: dict[str, Any]) -> Said:
    return Said(event["text"], event["clock"], event["delay_s"], event["raw"])


def shortened(text: str, words: int) -> str:
    """The sentences of ``text`` that have at most so many words together; if the first has more, its first words."""
    parts = text.split()
    if len(parts) > words:
        ends = [at for at, word in enumerate(parts[:words], start=1) if END.search(word) and not TITLE.fullmatch(word)]
        text = " ".join(parts[: ends[-1] if ends else words])
    return text


# which test is held next


class Cell(NamedTuple):
    """What is drawn for a test."""

    exchanges: int
    condition: Condition
    pair: Pair


def drawn_pair(settings: TestSettings, chance: random.Random) -> tuple[Pair, int]:
    """A kind of pair by its share alone, and the number of people that every kind has enough of."""
    shares: dict[Pair, float] = {pair: share for pair, share in _shares(settings)[2].items() if share}
    return chance.choices(list(shares), list(shares.values()))[0], max(map(people_of, shares))


def people_of(pair: Pair) -> int:
    """The people of a test, with the judge."""
    return 1 + PARTS[pair].count("person")


def next_cell(
    settings: TestSettings, held: Iterable[OnlineTest], chance: random.Random, pair: Pair | None = None
) -> Cell:
    """The next test after those that were ``held``: the cell, of the kind ``pair`` if stated, whose number of
    exchanges, condition and kind lack most to their shares; among equals by chance."""
    shares = _shares(settings)
    values = [(test.exchanges, test.condition, test.pair) for test in held]
    counts = [Counter(cell[at] for cell in values) for at in range(len(shares))]
    cells, total = Counter(values), len(values) + 1
    possible = [
        each for each in product(*shares) if all(share[value] for share, value in zip(shares, each, strict=True))
    ]

    def lack(each: tuple[Any, ...]) -> tuple[float, float, float]:
        lacks, expected = 0.0, float(total)
        for share, value, number in zip(shares, each, counts, strict=True):
            lacks += share[value] * total - number[value]
            expected *= share[value]
        return round(lacks, 9), round(expected - cells[each], 9), chance.random()

    return Cell(*max((each for each in possible if pair in (None, each[2])), key=lack))


def _shares(settings: TestSettings) -> list[dict[Any, float]]:
    """The share of each number of exchanges, condition and kind of pair."""
    number, deceit = len(settings.exchanges), settings.person_deceives
    alike = (1 - settings.two_machines - settings.two_people, settings.two_machines, settings.two_people)
    return [
        dict.fromkeys(settings.exchanges, 1 / number),
        dict(zip(get_args(Condition), (deceit, 1 - deceit), strict=True)),
        dict(zip(get_args(Pair), (round(share, 9) for share in alike), strict=True)),
    ]
