"""What a participant sends from a conversation or a live test.

An act has further keys, such as the test's id, which the lobby reads before: unknown keys are passed over here.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from agents.answers import is_blank
from judging.study.pages.page_answers import LONGEST_MESSAGE, LONGEST_REASON, Sent, Written, WrittenOrNot, tidy
from judging.study.pages.sent_traces import TracesOfPage


def _not_blank(text: str) -> str:
    if is_blank(text):
        raise ValueError("says nothing")
    return tidy(text)


class Act(Sent):
    """Something that a participant does in a meeting."""

    model_config = ConfigDict(extra="ignore")


class TextAct(Act):
    """A message, a question or an answer."""

    text: Annotated[Written, Field(max_length=LONGEST_MESSAGE), AfterValidator(_not_blank)]
    """What is written, brought onto a single line; at most 2,000 letters, and never blank."""
    traces: TracesOfPage = None
    """How it was written; None where the page does not tell."""


class TimedTextAct(TextAct):
    """A message of an interrogation."""

    id: Annotated[str, Field(max_length=40)]
    """The page's number of it, by which a message that is sent twice is taken once."""
    side: Literal[1, 2]
    """The agent in whose conversation it is said."""


class VerdictAct(Act):
    """The verdict of a judge."""

    human: Literal[1, 2]
    """Which agent the judge takes for the human."""
    reason: Annotated[WrittenOrNot, Field(max_length=LONGEST_REASON), AfterValidator(tidy)] = ""
    """In the judge's own words, at most 2,000 letters; "" where they give none."""


class TimedVerdictAct(VerdictAct):
    """The verdict on an interrogation."""

    confidence: Annotated[float, Field(ge=0, le=1)]
    """How sure the judge is, from 0 to 1."""
    codes: list[str]
    """Why, among the study's ``codes``; others are passed over."""
