"""Traces and checks of a study in which participants write: what they agree to, what pages hold, what is asked beside.

Everything here marks an answer, and nothing refuses one. A participant may read the page's source and find the hidden
instruction, and a browser may tell anything: see docs/contamination.md.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from agents.errors import InputError
from judging.study.design.english_texts import is_template
from judging.study.design.settings import WRITTEN, StudySettings
from judging.study.design.writing_tables import FREE, Checks
from judging.study.log.participant_events import CheckAnswered
from judging.study.log.state import Judge
from judging.study.log.steps import CheckStep, MaterialStep, Step, is_counted
from judging.study.pages.codewords import fit_words
from judging.study.pages.material import Material
from judging.study.pages.page_answers import BadAnswer, SentWithTime, Written, parsed_answer, tidy, visible
from judging.study.pages.patterns import SlowPatternError, fits, slow_patterns
from judging.study.pages.phrases import read_phrases
from judging.study.pages.sent_traces import TracesOfPage, kept
from serving.files.terminal import print_line

LONGEST_CHECK = 200
"""Letters of an answer to a question of the study's own."""


class CheckSent(SentWithTime):
    """What the page of a question of the study's own sends."""

    answer: Annotated[Written, Field(max_length=LONGEST_CHECK)]
    """What the participant wrote."""
    traces: TracesOfPage = None
    """How it was written; None where the page does not tell."""


class WritingChecks:
    """The traces and checks of a study, whose folder and material are given. Raises InputError for the phrases."""

    def __init__(self, folder: Path, material: Material) -> None:
        settings: StudySettings = material.settings
        self.material = material
        self.checks = Checks()
        self.records = False
        """Whether the pages record traces of whoever agrees."""
        if isinstance(settings, WRITTEN):
            self.checks = settings.checks
            self.records = settings.traces.record
        self.consent = settings.texts.consent
        """The text that participants agree to; a sentence on the traces ends it where they are recorded, so that no
        study can forget to tell of them."""
        self._codewords: list[str] = []
        self._phrases = read_phrases(folder, settings) if isinstance(settings, WRITTEN) else {}
        if self.records or self.checks.copied_instruction:
            phrases = self._phrases
            words = phrases["codewords"].split()
            if not words:
                raise InputError(f"{folder / settings.phrases}: codewords: give words, parted by blanks")
            self._codewords = fit_words(words, material)
            if self.checks.copied_instruction and not self._codewords:
                raise InputError(
                    f"{folder}: checks.copied_instruction: each word of the phrase codewords stands in the set or in "
                    "the texts of the study, so people may write it of themselves: give other words (`phrases`)"
                )
            if self.records:
                self.consent = f"{self.consent.rstrip()}\n\n{phrases['consent_traces']}\n"

    def warnings(self) -> list[str]:
        """Patterns that take too long, checks that check nothing, and a consent text that nobody has written."""
        warnings = slow_patterns(self.checks)
        if self.checks.twice and self.material.number < 2:
            warnings.append(
                f"checks.twice = {self.checks.twice:g}: repeats nothing, because a participant has a single stimulus"
            )
        if self.records and is_template(self.material.settings, "consent"):
            warnings.append(
                "texts.consent is still the text that `study new` wrote, and participants agree to traces by it: write "
                "who you are, what is kept, and whom people can ask"
            )
        return warnings

    def codeword(self, chance: random.Random) -> str | None:
        """The word of the hidden instruction, drawn for somebody new; None where pages hold no instruction."""
        return chance.choice(self._codewords) if self.checks.copied_instruction else None

    def with_questions(self, steps: Sequence[Step], chance: random.Random) -> list[Step]:
        """The steps with the study's own questions, each at a random place behind a step that counts.

        So no question comes before there is anything to answer, and each participant has them elsewhere.
        """
        mixed = list(steps)
        for question in chance.sample(self.checks.questions, len(self.checks.questions)):
            places = [at + 1 for at, step in enumerate(mixed) if is_counted(step)]
            step = CheckStep(kind="check", text=question.text, people=question.people)
            mixed.insert(chance.choice(places), step)
        return mixed

    def shown(self, judge: Judge, step: Step) -> dict[str, Any]:
        """What the page of a step on which a participant writes gets: whether it records, and the hidden line.

        Pages have it with the step, and never before: what all pages are sent at once tells nothing of it.
        """
        page: dict[str, Any] = {}
        if self.material.records_traces(judge):
            page["traces"] = True
        if judge.codeword is not None and isinstance(step, MaterialStep):
            page["line"] = self._phrases["copied_instruction"].replace("{codeword}", judge.codeword)
        return page

    def told(self, judge: Judge) -> dict[str, Any]:
        """What the last page tells of the checks, as far as a participant has met them."""
        begun = judge.steps[: 1 + (judge.step if judge.left_at is None else judge.left_at)]
        pages = [step for step in begun if isinstance(step, MaterialStep)]
        told: list[str] = []
        if judge.codeword is not None and pages:
            told.append(self._phrases["debriefing_copied"].replace("{codeword}", judge.codeword))
        if any(step.kind == "ask" and step.again for step in pages):
            told.append(self._phrases["debriefing_twice"])
        if any(isinstance(step, CheckStep) for step in begun):
            told.append(self._phrases["debriefing_questions"])
        return {"debriefing": told} if told else {}

    def read(self, judge: Judge, step: CheckStep, number: int, answer: dict[str, Any], at: str) -> CheckAnswered:
        """The event of an answer to a question, and whether it fits the pattern. Raises BadAnswer."""
        sent = parsed_answer(CheckSent, answer)
        text = tidy(visible(sent.answer))
        if not text:
            raise BadAnswer("answer: is empty")
        passed = None
        if step.people != FREE:
            try:
                passed = fits(step.people, text)
            except SlowPatternError:
                print_line(
                    f"checks.questions: people = {step.people!r}: took too long for an answer, which counts as not "
                    "answered"
                )
        return CheckAnswered(
            judge=judge.code,
            at=at,
            step=number,
            kind="check",
            answer=text,
            passed=passed,
            rt=sent.rt,
            away=sent.away,
            **kept(sent.traces, is_agreed=self.material.records_traces(judge)),
        )
