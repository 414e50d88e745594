"""The steps of a participant: pages and meetings, drawn when the participant joins and kept in that event.

A participant's steps never change afterwards. An answer names its step by position, counted from 0.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field

from judging.study.log.logged import Logged

Phase = Literal["practice", "feedback", "test"]
"""``practice`` comes before all that counts; after ``practice`` and ``feedback`` the truth is shown."""
MaterialKind = Literal["trial", "ask", "talk", "test"]
"""What a study is about: verdicts on trials, answers to stimuli, conversations, live tests."""
MEETINGS = ("talk", "test")
"""The kinds of steps in which people meet somebody."""


class Page(Logged):
    """A page that is the same for all participants."""

    kind: Literal["consent", "questions", "break", "after"]
    """``questions`` are asked before the study's own steps, ``after`` are asked behind them."""


class Instructions(Logged):
    """What is to be done, with examples where the study shows some."""

    kind: Literal["instructions"]
    """Tells this step from pages and from material, in the log and in the browser."""
    examples: list[list[str]] = Field(default_factory=list)
    """Ids of the trials of each example, which stand on a page together; version 0.2.0 had the same for everybody."""


class CheckStep(Logged):
    """A question of the study's own, on a page of its own. It is kept as it was when the participant joined."""

    kind: Literal["check"]
    """Tells this step from pages and from material, in the log and in the browser."""
    text: str
    """The question."""
    people: str
    """A regular expression that people's answers fit; "free" where none tells."""


class MaterialStep(Logged):
    """A page of trials, a stimulus, a conversation or a live test."""

    kind: MaterialKind
    """Which of these it is; in one study all such steps are of one kind."""
    trials: list[str]
    """Ids of the trials on the page, or the id of the stimulus; empty for a meeting, whose partner is not known yet."""
    phase: Phase
    """Whether the step counts, and whether the truth is shown after it."""
    again: bool
    """Whether the participant has had this page before."""

    @property
    def is_counted(self) -> bool:
        """Whether the step is one of those that a participant is to do, as practice is not."""
        return self.phase != "practice"


Step = Annotated[Page | Instructions | CheckStep | MaterialStep, Field(discriminator="kind")]
BREAK = Page(kind="break")


def is_counted(step: Step) -> bool:
    """Whether a step counts among those that a participant is to do: it is no page beside them and no practice."""
    return isinstance(step, MaterialStep) and step.is_counted


def with_breaks(steps: Iterable[Step], every: int) -> Iterator[Step]:
    """The steps with a break after each ``every`` that count, if more follow; ``every`` 0 means no break.

    With ``every`` 2, five trials become trial, trial, break, trial, trial, break, trial.
    """
    done = 0
    for step in steps:
        if is_counted(step):
            if every and done and done % every == 0:
                yield BREAK
            done += 1
        yield step
