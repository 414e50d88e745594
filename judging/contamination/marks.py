"""Marks of answers: what traces and checks say of how a participant wrote, yes or no.

A study records traces with consent, and its export has them as ``raw.traces``, ``raw.checks`` and ``raw.person_checks``
of each record. A mark is a coarse sign on purpose: a model that counts on the form of a distribution would find classes
wherever people type unlike that form. No mark says that an answer was not written by the participant; how often each
stands on own answers and on foreign ones is estimated (:mod:`judging.contamination.rate`). Four marks are read:

- ``inserted``: half of the text or more came by paste or drop, or by nothing that the page saw. Autofill, spelling
  correction, an input method and dictation do not count.
- ``away``: the page was hidden, or another window had the keyboard, for three seconds or more.
- ``smooth``: the text was typed faster than people type, or in 60 keystrokes or more without a single deletion. People
  type 4 characters a second, hardly anybody more than 10, and delete with 1 keystroke in 16 (Dhakal, Feit, Kristensson,
  Oulasvirta 2018, Observations on Typing from 136 Million Keystrokes). An inserted text was not typed: there the mark
  is not known, as it is with fewer than 20 keystrokes.
- ``failed_check``: the answer follows the instruction that a copied page alone carries, or the participant answered
  more than half of the check questions wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.errors import InputError, Problem
from judging.contamination.latent_classes import Counts, Floats
from serving.runs.run import Run

PERSON = "human:"
HALF = 0.5
AWAY_MS = 3000
FASTEST = 10.0  # characters a second
LEAST_KEYS = 20
KEYS_WITHOUT_DELETION = 60
MOST_NAMED = 20
# Each mark with the share of foreign answers that have it, at least. Without such a share any rate would fit.
MARKS = {"inserted": 0.3, "away": 0.3, "smooth": 0.0, "failed_check": 0.0}
NUMBERS = ("characters", "pasted_characters", "dropped_characters", "keys", "deletions", "hidden_ms")
LATER = ("unexplained_characters", "unfocused_ms", "characters_per_s")  # may be null or missing


class AnswerKey(NamedTuple):
    """Which answer it is, as the key of a trial says it."""

    task: str
    """The task that was answered."""
    record: str
    """The agent of the record: "human:CODE", or both who conversed."""
    stimulus: str
    """The id of what was answered."""
    sample: int
    """The number of the answer among those of this agent to this stimulus, from 0."""
    speaker: str
    """Who it is in a conversation, "A" or "B"; "" of any other answer."""


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    """A participant's answer with its marks."""

    key: AnswerKey
    """Which answer it is."""
    person: str
    """Who wrote it, as "human:CODE"."""
    marks: tuple[float | None, ...]
    """By the order of :data:`MARKS`: 1 or 0, None where it is not known."""

    @property
    def has_traces(self) -> bool:
        """Whether any mark is known."""
        return any(mark is not None for mark in self.marks)


def read_marks(folders: Sequence[Path]) -> list[MarkedAnswer]:
    """The answers of people in run folders, with and without traces. Raises InputError for folders without any trace,
    and for traces that are none, all problems at once."""
    answers: list[MarkedAnswer] = []
    problems: list[Problem] = []
    for folder in folders:
        run = Run(folder)
        before = len(answers)
        for name in [*run.imports(), *run.agents()]:
            for record in run.latest(name):
                if record["task"] != "judgement" and record["answer"] is not None:
                    answers += _answers_of(record, run.records_path(name), problems)
        if not problems and not any(answer.has_traces for answer in answers[before:]):
            raise InputError(
                f"{folder} has no answer of a participant with traces: give the export of a study whose [traces] has "
                "record = true, or a known rate such as 0.1"
            )
    if problems:
        more = len(problems) - MOST_NAMED
        and_more = f"; {more:,} more" if more > 0 else ""
        raise InputError(f"traces that no study writes{and_more}", problems[:MOST_NAMED])
    return answers


def count_patterns(field: Sequence[MarkedAnswer], laboratory: Sequence[MarkedAnswer]) -> tuple[Counts, list[int]]:
    """The answers with traces by person and pattern of marks, and the pattern of each of ``field``; -1 without
    traces."""
    texts: dict[tuple[float | None, ...], int] = {}
    for answer in [*field, *laboratory]:
        if answer.has_traces:
            texts.setdefault(answer.marks, len(texts))
    patterns = np.array(list(texts), dtype=np.float64).reshape(len(texts), len(MARKS))
    of_field = [texts.get(answer.marks, -1) if answer.has_traces else -1 for answer in field]
    by_person = []
    for answers in (field, laboratory):
        persons: dict[str, int] = {}
        with_traces = [answer for answer in answers if answer.has_traces]
        for answer in with_traces:
            persons.setdefault(answer.person, len(persons))
        table = np.zeros((len(persons), len(texts)))
        for answer in with_traces:
            table[persons[answer.person], texts[answer.marks]] += 1
        by_person.append(table)
    least: Floats = np.array(list(MARKS.values()))
    return Counts(patterns, by_person[0], by_person[1], least), of_field


def _answers_of(record: Mapping[str, Any], path: Path, problems: list[Problem]) -> Iterator[MarkedAnswer]:
    """A record's answer by a person, or in a conversation each person's messages."""
    raw = record["raw"] if isinstance(record["raw"], dict) else {}
    where = f"{record['agent']}, {record['stimulus']}"
    key = AnswerKey(record["task"], record["agent"], record["stimulus"], record["sample"], "")
    if record["task"] != "conversation":
        if record["agent"].startswith(PERSON):
            of_answer = _read(raw.get("traces"), where, path, problems)
            yield MarkedAnswer(key, record["agent"], marks_of([of_answer], raw))
        return
    messages = record["answer"]["messages"]
    of_messages = raw.get("traces") or [None] * len(messages)
    if len(of_messages) != len(messages):
        problems.append(Problem(str(path), None, f"{where}: raw.traces", f"are not {len(messages)}, one a message"))
        return
    for speaker in "AB":
        said = [at for at, message in enumerate(messages) if message["speaker"] == speaker]
        person = messages[said[0]]["agent"] if said else ""
        if person.startswith(PERSON):
            traces = [_read(of_messages[at], f"{where}, message {at}", path, problems) for at in said]
            checks = _checks_of_speaker(raw, said, person.removeprefix(PERSON))
            yield MarkedAnswer(key._replace(speaker=speaker), person, marks_of(traces, checks))


def _checks_of_speaker(raw: Mapping[str, Any], said: Sequence[int], code: str) -> dict[str, Any]:
    """The checks of a person in a conversation as an answer has them: ``raw`` has those of messages by position, and
    those of persons by code. ``said`` are the positions of the person's messages."""
    of_messages = raw.get("checks") or []
    flags = [of_messages[at]["copied_instruction"] for at in said if at < len(of_messages) and of_messages[at]]
    known = [flag for flag in flags if flag is not None]
    return {
        "checks": {"copied_instruction": any(known) if known else None},
        "person_checks": (raw.get("person_checks") or {}).get(code),
    }


def _read(traces: Any, where: str, path: Path, problems: list[Problem]) -> Mapping[str, float] | None:
    """The numbers of ``raw.traces``; None without traces."""
    if traces is None:
        return None
    if not isinstance(traces, dict):
        problems.append(Problem(str(path), None, f"{where}: raw.traces", "is no object"))
        return None
    numbers = {}
    for name in (*NUMBERS, *LATER):
        value = traces.get(name)
        if value is None and name in LATER:
            value = 0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < np.inf:
            problems.append(Problem(str(path), None, f"{where}: raw.traces.{name}", "is no number from 0"))
            return None
        numbers[name] = float(value)
    return numbers


def marks_of(traces: Sequence[Mapping[str, Any] | None], raw: Mapping[str, Any]) -> tuple[float | None, ...]:
    """The marks of an answer, in the order of :data:`MARKS`, from the ``traces`` of its texts and the checks in
    ``raw``. Texts without traces count for nothing."""
    texts = [text for text in traces if text is not None]
    check = _failed_check(raw)
    characters = sum(text["characters"] for text in texts)
    if not texts or characters == 0:
        return (None, None, None, check)
    other = ("pasted_characters", "dropped_characters", "unexplained_characters")
    inserted = sum(text[name] for text in texts for name in other)
    is_inserted = inserted >= HALF * characters
    is_away = sum(max(text["hidden_ms"], text.get("unfocused_ms") or 0) for text in texts) >= AWAY_MS
    keys = sum(text["keys"] for text in texts)
    smooth = None
    if keys >= LEAST_KEYS and not is_inserted:
        is_fast = max(text["characters_per_s"] or 0 for text in texts) > FASTEST
        deletions = sum(text["deletions"] for text in texts)
        smooth = float(is_fast or (keys >= KEYS_WITHOUT_DELETION and deletions == 0))
    return (float(is_inserted), float(is_away), smooth, check)


def _failed_check(raw: Mapping[str, Any]) -> float | None:
    """Whether a check was failed: 1, 0, or None where nothing was checked."""
    of_answer = raw.get("checks") or {}
    of_person = raw.get("person_checks") or {}
    copied = of_answer.get("copied_instruction")
    questions = of_person.get("questions") or 0
    if copied is None and not questions:
        return None
    is_wrong = questions > 0 and (of_person.get("questions_right") or 0) < HALF * questions
    return float(bool(copied) or is_wrong)
