"""The lobby of online tests: the judge asks both agents the same questions, and sees both answers at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.word_boundaries import count_words
from judging.study.design.settings import OnlineSettings
from judging.study.log.meeting import AGENT_SIDES, OnlineTest
from judging.study.log.meeting_events import OnlineTestBegan, TestAnswered, TestAsked
from judging.study.meetings.acts import TextAct, VerdictAct
from judging.study.meetings.agent_server import text_of
from judging.study.meetings.cells import next_cell
from judging.study.meetings.lobby import View
from judging.study.meetings.lobby_of_tests import JudgedLobby, Seats
from judging.study.meetings.short_texts import shortened
from judging.study.pages.page_answers import LONGEST_MESSAGE, parsed_answer, tidy
from judging.study.pages.sent_traces import TracesFields
from serving.files.timestamps import now


class OnlineLobby(JudgedLobby[OnlineTest]):
    """Where participants wait for an online test. A machine's answer takes as long as a person's might."""

    meeting = OnlineTest
    settings: OnlineSettings

    def drawn(self, seats: Seats, begun: int, counted: Sequence[OnlineTest]) -> OnlineTestBegan:
        """The number of questions and who poses are drawn; the machine follows from who poses."""
        tests = self.settings.tests
        machines = self.settings.agents
        exchanges, condition = next_cell(tests, counted, self.chance(f"cell {begun}"), seats.pair)
        machine = machines.machine_argues if condition == "person_deceives" else machines.machine_deceives
        return OnlineTestBegan(
            test=seats.test,
            judge=seats.judge,
            parts=seats.parts,
            agents=seats.agents([machine, machine]),
            condition=condition,
            exchanges=exchanges,
            verdicts=tests.verdicts,
            at=now(),
        )

    def shown(self, test: OnlineTest, side: int, act: str | None) -> View:
        """The exchanges so far: to an agent with its own answers alone, to the judge once both answers are shown."""
        both = test.shown(self.clock(test))
        exchanges = []
        for number, (question, answers) in enumerate(zip(test.questions, test.answers, strict=True)):
            sides: tuple[int, ...] = ()
            if side:
                sides = (side,)
            elif number < both:
                sides = AGENT_SIDES
            texts = [answers[agent].text for agent in sides if agent in answers]
            exchanges.append({"question": question.text, "answers": texts})
        verdicts = [
            {"after": judged.exchanges, "human": 1 if judged.verdict == "human" else 2, "reason": judged.reason}
            for judged in test.judged
        ]
        done = sum(side in answers for answers in test.answers) if side else both
        return {
            "turn": _turn(test, act),
            "left": test.exchanges - done,
            "of": test.exchanges,
            "exchanges": exchanges,
            "verdicts": [] if side else verdicts,
        }

    async def acted(self, test: OnlineTest, side: int, body: Mapping[str, Any]) -> str | None:
        """Take a question, an answer or a verdict, known by the exchange's number (``turn``)."""
        act = body.get("act")
        turn = body.get("turn")
        if (act, turn) in _acts(test, side):
            return None  # it was sent before
        if (test.people[side], side, act) not in self.due(test) or turn != _turn(test, act):
            return "not_your_turn"
        if act == "judge":
            await self.judge(test, parsed_answer(VerdictAct, body))
            return None
        sent = parsed_answer(TextAct, body)
        traces = self.traces_of(test.people[side], sent)
        if act == "ask":
            await self._ask(test, sent.text, traces)
            return None
        if count_words(sent.text) >= self.settings.tests.words_below:
            return "too_many_words"
        await self._answer(test, side, sent.text, self.clock(test) - test.questions[-1].at, traces=traces)
        return None

    async def _ask(self, test: OnlineTest, text: str, traces: TracesFields) -> None:
        before = test.shown_at(-1) if test.questions else 0.0
        clock = self.clock(test)
        await self.note(
            TestAsked(
                test=test.id,
                who=test.people[0],
                text=text,
                clock=round(clock, 3),
                delay_s=round(max(0.0, clock - before), 3),
                raw=None,
                **traces,
                at=now(),
            )
        )

    async def _answer(
        self,
        test: OnlineTest,
        side: int,
        text: str,
        seconds: float,
        raw: str | None = None,
        traces: TracesFields | None = None,
    ) -> None:
        """Take an answer to the last question; it took ``seconds``. ``raw`` is a machine's text before it was cut, and
        ``traces`` the fields of a person's event."""
        await self.note(
            TestAnswered(
                side=side,
                test=test.id,
                who=test.people[side],
                text=text,
                clock=round(test.questions[-1].at + seconds, 3),
                delay_s=round(max(0.0, seconds), 3),
                raw=raw,
                **(traces or {}),
                at=now(),
            )
        )

    def machines(self, test: OnlineTest) -> list[int]:
        """The machines that have not answered the last question yet."""
        return [side for _, side, act in self.due(test) if act == "answer" and test.parts[side - 1] == "machine"]

    async def play(self, test: OnlineTest, side: int) -> None:
        """Ask a machine for its answer, cut it to the length of people's, and keep it with the time it would take."""
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
            seconds = max(self.clock(test) - question.at, modelled)
            await self._answer(test, side, text, seconds, raw if raw != text else None)


def _turn(test: OnlineTest, act: Any) -> int:
    """The number by which an act that is sent twice is known: that of the exchange, counted from 1."""
    if act == "ready":
        return 0  # a question that comes while an agent reads their part leaves their "ready" as it is
    return len(test.questions) + 1 if act == "ask" else len(test.questions)


def _acts(test: OnlineTest, side: int) -> list[tuple[str, int | None]]:
    """All that the one at a side has done, each with its number."""
    if side:
        return [("answer", number) for number, answers in enumerate(test.answers, start=1) if side in answers]
    asked = [("ask", number) for number in range(1, len(test.questions) + 1)]
    return [*asked, *(("judge", judged.exchanges) for judged in test.judged)]
