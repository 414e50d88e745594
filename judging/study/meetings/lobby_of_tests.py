"""The lobby of online tests. Parts are drawn anew for each test, among those who have waited longest, and the kind by
its share alone. Who is not heard of, or is late with a move, has left: the test is void."""

from __future__ import annotations

import hashlib
import random
import re
import time
from abc import abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import orjson

from agents.word_boundaries import count_words
from judging.study.events import Judge
from judging.study.meetings.agent_server import LONGEST_MESSAGE, text_of, tidy
from judging.study.meetings.lobby import Lobby, View
from judging.study.meetings.meeting import IDLE, PARTS, SIDES, Condition, JudgedMeeting, Move, OnlineTest, Pair
from judging.study.pages.page_answers import TextAct, VerdictAct, parsed
from judging.study.settings import OnlineSettings, TestsOfAll, TestsSettings
from judging.study.settings import Tests as TestSettings

if TYPE_CHECKING:
    from judging.study.study import Study

END = re.compile(r"[.!?…]['\"’”)\]]*$")  # of a sentence's last word
IDEOGRAPHIC_END = re.compile(r"[。！？．｡]+[」』”’）】]*")  # of a sentence that no space follows
J = TypeVar("J", bound=JudgedMeeting)
TITLE = re.compile(r"\W*(?:mrs?|ms|dr|prof|st|e\.g|i\.e)\.", re.IGNORECASE)


class JudgedLobby(Lobby[J]):
    """``awaited`` is what is awaited of whom in a test, and since when."""

    kind = "test"
    noun = "test"
    voids = "test_void"
    settings: TestsSettings

    def __init__(self, study: Study, settings: TestsSettings) -> None:
        super().__init__(study, settings.tests, settings.agents.server, settings.delays)
        self.settings = settings
        self.seed = settings.tests.seed
        self.awaited: dict[str, tuple[list[Move], float]] = {}

    def is_over(self, test: J) -> bool:
        return test.is_over()

    def is_enough(self) -> bool:
        return sum(test.is_over() for test in self.state.counted(self.meeting)) >= self.settings.tests.wanted

    def due(self, test: J) -> list[Move]:
        return test.due(self.clock(test))

    def chance(self, what: str) -> random.Random:
        """Numbers for a purpose, always the same."""
        return random.Random(f"{self.seed} {what}")

    async def look(self, judge: Judge) -> View:
        view = await super().look(judge)
        news = {name: value for name, value in view.items() if name != "seconds_left"}
        return view | {"version": hashlib.sha256(orjson.dumps(news)).hexdigest()[:16]}

    async def pair(self, judge: Judge) -> None:
        kinds = shares_of_pairs(self.settings.tests)
        needed = max(map(people_of, kinds))
        while len(there := self.there()) >= needed:
            counted = self.state.counted(self.meeting)
            if len(counted) >= self.settings.tests.wanted:  # who waits is there for a test that becomes void
                return
            begun = len(self.state.meetings)
            [kind] = self.chance(f"pair {begun}").choices(list(kinds), list(kinds.values()))
            machines, about = self.drawn(counted, begun, kind)
            chosen = there[:needed]
            self.chance(f"people {begun}").shuffle(chosen)
            judge_code, *others = chosen[: people_of(kind)]
            name = f"test-{begun + 1:05}"
            parts = list(PARTS[kind])
            self.chance(name).shuffle(parts)
            agents = [machines.pop(0) if part == "machine" else others.pop(0) for part in parts]
            await self.note(
                {"event": "test", "test": name, "judge": judge_code, "parts": parts, "agents": agents, **about}
            )

    def why_void(self, test: J) -> str | None:
        due = [move for move in self.due(test) if move[0] in self.state.judges]
        if self.awaited.get(test.id, (None, 0.0))[0] != due:
            self.awaited[test.id] = (due, time.monotonic())
        is_late = due and time.monotonic() - self.awaited[test.id][1] > self.settings.tests.seconds_to_act
        return super().why_void(test) or (f"{due[0][0]} {IDLE}" if is_late else None)

    def view(self, test: J, code: str) -> View:
        side = test.people.index(code)
        of_agents = "person_deceives" if test.condition == "person_deceives" else "person_argues"
        role = of_agents if side else "judge"
        act = next((act for who, _, act in self.due(test) if who == code), None)
        about = {"state": self.phase(test), "test": test.id, "role": role, "text": getattr(self.settings.roles, role)}
        return about | {"void": test.void_to(code), "act": act, **self.shown(test, side, act)}

    # each act is checked and taken into the state at once, so that of two tabs the first counts

    async def moved(self, judge: Judge, body: Mapping[str, Any]) -> str | None:
        test = self.meeting_of(judge.code)
        act = body.get("act")
        if test is None or test.id != body.get("test"):
            return "test_void"
        event = {"test": test.id, "who": judge.code}
        if test.void is not None:
            if act != "back":
                return "test_void"
            await self.note({"event": "test_left", **event})
        elif act != "ready":
            return await self.acted(test, test.people.index(judge.code), body, event)
        elif judge.code not in test.ready:  # or it was sent before
            await self.note({"event": "test_ready", **event})
        return None

    async def judge(self, test: J, event: View, sent: VerdictAct, **more: Any) -> None:
        about = {"verdict": "human" if sent.human == 1 else "machine", "reason": sent.reason or None, **more}
        await self.note({"event": "test_judged", **event, **about, "clock": round(self.clock(test), 3)})

    @abstractmethod
    def drawn(self, counted: Sequence[J], begun: int, kind: Pair) -> tuple[list[str], View]:
        """The machines of the next test, and what else is drawn of it."""

    @abstractmethod
    def shown(self, test: J, side: int, act: str | None) -> View:
        """What the judge, or the agent of a side, sees of what was said; and when they may act."""

    @abstractmethod
    async def acted(self, test: J, side: int, body: Mapping[str, Any], event: View) -> str | None:
        """Take the act of whom the ``event`` names; returns the phrase that refuses it. Raises BadAnswer."""


class OnlineLobby(JudgedLobby[OnlineTest]):
    meeting = OnlineTest
    settings: OnlineSettings

    def drawn(self, counted: Sequence[OnlineTest], begun: int, kind: Pair) -> tuple[list[str], View]:
        tests = self.settings.tests
        agents = self.settings.agents
        exchanges, condition = next_cell(tests, counted, self.chance(f"cell {begun}"), kind)
        machine = agents.machine_argues if condition == "person_deceives" else agents.machine_deceives
        return [machine] * len(SIDES), {"condition": condition, "exchanges": exchanges, "verdicts": tests.verdicts}

    def shown(self, test: OnlineTest, side: int, act: str | None) -> View:
        both = test.shown(self.clock(test))
        exchanges = []
        for number, (question, answers) in enumerate(zip(test.questions, test.answers, strict=True)):
            sides = [side] if side else [*SIDES] if number < both else []
            texts = [answers[at].text for at in sides if at in answers]
            exchanges.append({"question": question.text, "answers": texts})
        verdicts = [
            {"after": judged.exchanges, "human": 1 if judged.verdict == "human" else 2, "reason": judged.reason}
            for judged in test.judged
        ]
        return {
            "turn": _turn(test, act),
            "left": test.exchanges - (sum(side in answers for answers in test.answers) if side else both),
            "of": test.exchanges,
            "exchanges": exchanges,
            "verdicts": [] if side else verdicts,
        }

    async def acted(self, test: OnlineTest, side: int, body: Mapping[str, Any], event: View) -> str | None:
        act = body.get("act")
        turn = body.get("turn")
        if (act, turn) in _acts(test, side):
            return None  # it was sent before
        if (event["who"], side, act) not in self.due(test) or turn != _turn(test, act):
            return "not_your_turn"
        if act == "judge":
            await self.judge(test, event, parsed(VerdictAct, body))
            return None
        text = parsed(TextAct, body).text
        before = 0.0
        if act == "answer" and count_words(text) >= self.settings.tests.words_below:
            return "too_many_words"
        if test.questions:
            before = test.questions[-1].at if act == "answer" else test.shown_at(-1)
        await self._say(event, side, text, before, self.clock(test) - before)
        return None

    async def _say(
        self, about: View, side: int, text: str, before: float, taken: float, raw: str | None = None
    ) -> None:
        event = {"event": "test_answered", "side": side} if side else {"event": "test_asked"}
        times = {"clock": round(before + taken, 3), "delay_s": round(max(0.0, taken), 3)}
        await self.note({**event, **about, "text": text, **times, "raw": raw})

    def machines(self, test: OnlineTest) -> list[int]:
        return [side for _, side, act in self.due(test) if act == "answer" and test.parts[side - 1] == "machine"]

    async def play(self, test: OnlineTest, side: int) -> None:
        tests = self.settings.tests
        question = test.questions[-1]
        number = len(test.questions)
        machine = test.people[side]
        history = [{"speaker": line.speaker, "text": line.text} for line in test.lines(side)]
        row = {
            "id": f"{test.id}/{side}",
            "task": "conversation",
            "type": "HM",
            "who_starts": "A",
            "exchanges": 2 * test.exchanges,
            "history": history,
        }
        raw = await self.client.answer(self.server, machine, row, text_of, seconds=tests.seconds_to_act, seed=self.seed)
        if (machine, side, "answer") in self.due(test):
            text = shortened(tidy(raw), tests.words_below - 1)[:LONGEST_MESSAGE]
            modelled = self.delays.draw(len(text), len(question.text), self.chance(f"{test.id} delay {number} {side}"))
            taken = max(self.clock(test) - question.at, modelled)
            cut = raw if raw != text else None
            await self._say({"test": test.id, "who": machine}, side, text, question.at, taken, cut)


def _turn(test: OnlineTest, act: Any) -> int:
    # A question that comes while an agent reads their part leaves their "ready" as it is.
    return 0 if act == "ready" else len(test.questions) + int(act == "ask")


def _acts(test: OnlineTest, side: int) -> list[tuple[str, int | None]]:
    if side:
        return [("answer", at) for at, answers in enumerate(test.answers, start=1) if side in answers]
    asked = [("ask", at) for at in range(1, len(test.questions) + 1)]
    return [*asked, *(("judge", judged.exchanges) for judged in test.judged)]


def shortened(text: str, words: int) -> str:
    """The sentences with at most ``words`` words together, or the first words, as
    :func:`agents.word_boundaries.count_words` counts. People's answers are counted so, too: with other words for
    machines, the judge could tell them by the length."""
    if count_words(text) <= words:
        return text
    # The longest beginning that has no more words ends where a word does: one character more begins the next.
    longest = bisect_right(range(len(text) + 1), words, key=lambda end: count_words(text[:end])) - 1
    text = text[:longest].rstrip()
    ends = [match.end() for match in IDEOGRAPHIC_END.finditer(text)]
    for part in re.finditer(r"\S+", text):
        if END.search(part.group()) and not TITLE.fullmatch(part.group()):
            ends.append(part.end())
    return text[: max(ends, default=len(text))]


def people_of(pair: Pair) -> int:
    return 1 + PARTS[pair].count("person")


def shares_of_pairs(settings: TestsOfAll) -> dict[Pair, float]:
    """The wanted share of each kind of pair that there is."""
    alike = (1 - settings.two_machines - settings.two_people, settings.two_machines, settings.two_people)
    return {pair: round(share, 9) for pair, share in zip(PARTS, alike, strict=True) if round(share, 9)}


def shares(settings: TestSettings) -> tuple[dict[int, float], dict[Condition, float], dict[Pair, float]]:
    """The wanted share of each number of exchanges, condition and pair."""
    deceit = settings.person_deceives
    conditions = zip(get_args(Condition), (deceit, 1 - deceit), strict=True)
    return (
        dict.fromkeys(settings.exchanges, 1 / len(settings.exchanges)),
        {condition: share for condition, share in conditions if share},
        shares_of_pairs(settings),
    )


def next_cell(
    settings: TestSettings, held: Iterable[OnlineTest], chance: random.Random, pair: Pair
) -> tuple[int, Condition]:
    """The exchanges and condition of the next test: what lacks most to its share after those ``held``."""
    exchanges, conditions, pairs = shares(settings)
    cells = Counter((test.exchanges, test.condition, test.pair) for test in held)
    total = cells.total() + 1

    def lack(cell: tuple[int, Condition]) -> tuple[float, float, float]:
        number, condition = cell
        lacks = (exchanges[number] + conditions[condition]) * total
        lacks -= sum(times * ((at == number) + (other == condition)) for (at, other, _), times in cells.items())
        expected = exchanges[number] * conditions[condition] * pairs[pair] * total
        return round(lacks, 9), round(expected - cells[number, condition, pair], 9), chance.random()

    return max(product(exchanges, conditions), key=lack)
