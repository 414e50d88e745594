"""What an export tells of how people wrote: traces of each text, and marks of the study's checks. Nothing is removed.

A browser may tell anything, so a trace proves nothing by itself. It is compared with the text that came:
``unexplained_characters`` counts those that no event of the page accounts for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from judging.study.design.settings import WRITTEN, StudySettings
from judging.study.design.writing_tables import Checks
from judging.study.log.meeting import AGENT_SIDES, JudgedMeeting, Line, Meeting, OnlineTest
from judging.study.log.participant_events import CheckAnswered, StimulusAnswered
from judging.study.log.state import Judge, State
from judging.study.log.steps import MaterialStep
from judging.study.log.traces import InsertedKind, Span, TypingTraces
from judging.study.pages.codewords import has_word
from judging.study.pages.sent_traces import MOST_TIMES
from judging.study.results.contradictions import contradictions

Told = dict[str, Any]
"""A part of ``raw`` of a record."""


def traces_told(traces: TypingTraces, text: str, rt: float | None = None) -> Told:
    """The traces of a text as its record has them: with sums, times in milliseconds, and what they leave open.

    Characters are code points of the text as it was kept. ``typing_ms`` is from the first key to the last, and None
    without a key; ``characters_per_s`` is the number of keys by that time, and None where it is 0. What came in
    otherwise does not make anybody a fast typist. ``rt`` are the milliseconds of the answer, where they are known.

    ``unexplained_characters`` are those of the text that are more than the keys wrote and was inserted, without what
    was deleted: each deletion takes one character or more, so it is a lower bound. A composition counts once, by what
    it added: neither its keys nor its deletions count beside it. It is 0 where the page had recorded all that it may.
    """
    characters = len(text)
    typing = traces.keys[-1] - traces.keys[0] if traces.keys else None
    inserted = sum(each.characters for each in traces.inserted)
    is_full = traces.cut or (traces.typed is None and MOST_TIMES in (len(traces.keys), len(traces.deletions)))
    typed = len(traces.keys) if traces.typed is None else traces.typed
    explained = typed + inserted - (len(traces.deletions) - traces.composed_deletions)
    return {
        "inserted": [each.model_dump() for each in traces.inserted],
        "keys": len(traces.keys),
        "deletions": len(traces.deletions),
        "first_key_ms": traces.first_key,
        "typing_ms": typing,
        "hidden_ms": _length(traces.hidden),
        "unfocused_ms": _length(traces.unfocused),
        "characters": characters,
        "pasted_characters": _characters(traces, "paste"),
        "dropped_characters": _characters(traces, "drop"),
        "autofilled_characters": _characters(traces, "autofill"),
        "composed_characters": _characters(traces, "composition"),
        "own_characters": _characters(traces, "own"),
        "restored_characters": _characters(traces, "restored"),
        "other_characters": _characters(traces, "other"),
        "contradictions": contradictions(traces, text, rt),
        "unexplained_characters": 0 if is_full else max(0, characters - max(0, explained)),
        "characters_per_s": round(1000 * len(traces.keys) / typing, 3) if typing else None,
    }


def _characters(traces: TypingTraces, kind: InsertedKind) -> int:
    return sum(each.characters for each in traces.inserted if each.kind == kind)


def _length(spans: Sequence[Span]) -> int:
    return sum(end - begin for begin, end in spans)


def has_codeword(judge: Judge, texts: Sequence[str], heard: Sequence[str] = ()) -> bool | None:
    """Whether a participant's texts have the word of the hidden instruction; None where their pages had none.

    Whoever takes the word up from what they ``heard`` before, in a conversation, has not followed an instruction.
    """
    if judge.codeword is None:
        return None
    word = judge.codeword
    return any(has_word(text, word) for text in texts) and not any(has_word(text, word) for text in heard)


class WritingResults:
    """The traces and checks of a study's participants, for its export."""

    def __init__(self, state: State, settings: StudySettings, *, personal: bool) -> None:
        self.state = state
        self.personal = personal
        """Whether what tells people apart is told, too: the times of single keys, and answers in their own words."""
        self.checks = Checks()
        self.records = False
        """Whether the study records traces now; what it has recorded is told in any case."""
        if isinstance(settings, WRITTEN):
            self.checks = settings.checks
            self.records = settings.traces.record
        self._persons: dict[str, Told] = {}
        self._meetings: defaultdict[str, list[Meeting]] = defaultdict(list)
        for meeting in state.counted(Meeting):  # type: ignore[type-abstract]  # of either kind
            for who in meeting.people:
                self._meetings[who].append(meeting)

    def of_answer(self, judge: Judge, answer: StimulusAnswered) -> Told:
        """The keys ``traces``, ``checks`` and ``person_checks`` of ``raw``, as far as the study has them."""
        told: Told = {}
        if self.records or answer.traces is not None or answer.traces_refused is not None:
            text = "".join(answer.answer)
            told["traces"] = None if answer.traces is None else self._traces(answer.traces, text, answer.rt)
            told["traces_refused"] = answer.traces_refused
        if self.checks.are_on or judge.codeword is not None:
            texts = [*answer.answer, *(old.said for old in judge.returned if old.step == answer.step)]
            step = judge.steps[answer.step]
            is_again = isinstance(step, MaterialStep) and step.again
            told["checks"] = {
                "copied_instruction": has_codeword(judge, texts),
                "twice_of": 0 if is_again else None,
            }
            told["person_checks"] = self.of_person(judge)
        return told

    def of_conversation(self, people: Sequence[str], lines: Sequence[Line]) -> Told:
        """The same for a conversation of ``people``, A and B: lists by the messages' positions, null for machines, and
        ``person_checks`` by participants' codes."""
        judges = [self.state.judges.get(who) for who in people]
        told: Told = {}
        if self.records or any(line.traces is not None or line.traces_refused is not None for line in lines):
            told["traces"] = [None if line.traces is None else self._traces(line.traces, line.text) for line in lines]
            told["traces_refused"] = [line.traces_refused for line in lines]
        if self.checks.are_on or any(judge is not None and judge.codeword is not None for judge in judges):
            told["checks"] = []
            for line, heard in _with_heard(lines):
                judge = judges["AB".index(line.speaker)]
                marks = None
                if judge is not None:
                    marks = {"copied_instruction": has_codeword(judge, [line.text], heard), "twice_of": None}
                told["checks"].append(marks)
            told["person_checks"] = {judge.code: self.of_person(judge) for judge in judges if judge is not None}
        return told

    def _traces(self, traces: TypingTraces, text: str, rt: float | None = None) -> Told:
        """As :func:`traces_told`. Somebody's rhythm of keys is much like a fingerprint, and so it is told only with
        personal data, and no finer than it must be."""
        told = traces_told(traces, text, rt)
        if self.personal:
            told["key_times"] = [10 * round(time / 10) for time in traces.keys]
            told["deletion_times"] = [10 * round(time / 10) for time in traces.deletions]
        return told

    def of_person(self, judge: Judge) -> Told:
        """How a participant did in the study's checks, with their answers to its own questions."""
        if judge.code not in self._persons:
            self._persons[judge.code] = self._of_person(judge)
        return self._persons[judge.code]

    def _of_person(self, judge: Judge) -> Told:
        answers = [answer for answer in judge.answers if isinstance(answer, CheckAnswered)]
        asked = [judge.steps[answer.step] for answer in answers]
        marked = [has_codeword(judge, texts, heard) for texts, heard, _ in self._written(judge)]
        told: Told = {
            "questions_right": sum(answer.passed is True for answer in answers),
            "questions": sum(answer.passed is not None for answer in answers),
            "copied": sum(mark is True for mark in marked),
        }
        if self.personal:
            told["answers"] = [
                {"question": getattr(step, "text", ""), "answer": answer.answer, "passed": answer.passed}
                for step, answer in zip(asked, answers, strict=True)
            ]
        return told

    def sums_of_person(self, judge: Judge) -> dict[str, int]:
        """Columns of ``participants.csv``: how often a participant pasted or dropped a text, and failed a check."""
        person = self.of_person(judge)
        pastes = 0
        for _, _, traces in self._written(judge):
            if traces is not None:
                pastes += sum(each.kind in ("paste", "drop") for each in traces.inserted)
        failed = person["questions"] - person["questions_right"] + person["copied"]
        return {"pastes": pastes, "checks_failed": failed}

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns of ``participants.csv``, as far as the study has them."""
        columns = ["pastes"] if self.records else []
        return (*columns, "checks_failed") if self.checks.are_on else (*columns,)

    def _written(self, judge: Judge) -> Iterator[tuple[list[str], list[str], TypingTraces | None]]:
        """The texts of each answer and message of a participant, what they had heard before it, and its traces; void
        meetings do not count."""
        for answer in judge.answers:
            if isinstance(answer, StimulusAnswered):
                returned = [old.said for old in judge.returned if old.step == answer.step]
                yield [*answer.answer, *returned], [], answer.traces
        for meeting in self._meetings[judge.code]:
            for line, heard in _lines_of(meeting, meeting.people.index(judge.code)):
                yield [line.text], heard, line.traces


def _with_heard(lines: Sequence[Line]) -> Iterator[tuple[Line, list[str]]]:
    """Each line with what the other one had said before it."""
    for at, line in enumerate(lines):
        yield line, [before.text for before in lines[:at] if before.speaker != line.speaker]


def _lines_of(meeting: Meeting, place: int) -> Iterator[tuple[Line, list[str]]]:
    """What one of a meeting's people said, and what they had heard before.

    A question of an online test is there once, though both agents get it, and follows the answers of both.
    """
    if isinstance(meeting, OnlineTest) and not place:
        first = _of_speaker("A", meeting.lines(1))
        second = _of_speaker("A", meeting.lines(2))
        for (question, heard), (_, of_second) in zip(first, second, strict=True):
            yield question, heard + of_second
        return
    sides: Sequence[int] = (1,)
    if isinstance(meeting, JudgedMeeting):
        sides = (place,) if place else AGENT_SIDES
    for side in sides:
        yield from _of_speaker("B" if place else "A", meeting.lines(side))


def _of_speaker(speaker: str, lines: Sequence[Line]) -> Iterator[tuple[Line, list[str]]]:
    return ((line, heard) for line, heard in _with_heard(lines) if line.speaker == speaker)
