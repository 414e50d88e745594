"""The tables ``traces`` and ``checks`` of ``study.toml``: how somebody wrote, and what is asked beside.

Both are for studies in which participants write: answers to a set in words, conversations and live tests. What they
find marks an answer. Nothing is ever removed by it.
"""

from __future__ import annotations

from typing import Annotated

import regex
from pydantic import AfterValidator, Field

from agents.stimuli import Asked
from judging.study.design.tables import StudyTable, refuse

FREE = "free"
"""The word of ``people`` for a question whose answers are read by people, as no pattern tells them."""
LONGEST_PATTERN = 500
"""Letters of a pattern."""
MOST_QUESTIONS = 20
"""Questions of a study."""
UNWRITTEN: tuple[Asked, ...] = ("color_estimation",)
"""Tasks whose answer is chosen from a list: nothing is written, so there are no traces."""


def _is_pattern(pattern: str) -> str:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return pattern


class Traces(StudyTable):
    """Traces of writing: when keys wrote, what was pasted, when the page was hidden."""

    record: bool = False
    """Whether the pages record them; the consent page then says so by itself."""


class CheckQuestion(StudyTable):
    """A question that people answer easily and models answer by habit."""

    text: Annotated[str, Field(min_length=1, max_length=1000)]
    """The question, as the page shows it."""
    people: Annotated[str, Field(min_length=1, max_length=LONGEST_PATTERN), AfterValidator(_is_pattern)]
    """A regular expression for people's answers, of which neither capitals nor marks at the ends count; "free": no
    pattern tells."""


class Checks(StudyTable):
    """What tells of answers that a participant has not written: it marks, and removes nothing."""

    copied_instruction: bool = False
    """Whether pages hold an instruction that nobody sees, and that is there when the page is copied as a whole."""
    twice: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Stimuli that each participant answers a second time, as a share of ``answers.number``; at most half."""
    questions: Annotated[list[CheckQuestion], Field(max_length=MOST_QUESTIONS)] = Field(default_factory=list)
    """Questions of the study's own, each on a page at a random place."""

    @property
    def are_on(self) -> bool:
        """Whether the study makes any of these checks."""
        return self.copied_instruction or self.twice > 0 or bool(self.questions)


def refuse_unfit(traces: Traces, checks: Checks, task: Asked, consent: str, *, meets: bool) -> None:
    """Raise the error of a validator where these tables do not go with a study.

    ``consent`` is the study's own text, and ``meets`` whether its participants meet others.
    """
    is_chosen = task in UNWRITTEN
    refuse(traces.record and is_chosen, f"traces.record: nobody writes in {task}: the answer is chosen from a list")
    refuse(
        traces.record and not consent.strip(),
        "traces.record: participants must agree to it: write the consent text (texts.consent); the page adds a "
        "sentence on the traces to it",
    )
    refuse(
        checks.copied_instruction and is_chosen,
        f"checks.copied_instruction: nobody writes in {task}, so no answer can follow an instruction",
    )
    refuse(checks.twice > 0 and meets, "checks.twice: is for stimuli, not for people who meet")
