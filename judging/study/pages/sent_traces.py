"""Traces of writing as a page sends them: read within bounds, kept only where the participant has agreed to it.

A browser may tell anything, so nothing here proves how a text was written. What a page sends is bounded, for an answer
must not fill a disk, and what it tells is compared with the text itself (:mod:`judging.study.results.writing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self, TypedDict

from pydantic import ConfigDict, PlainValidator, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from judging.study.log.traces import Inserted, TypingTraces
from judging.study.pages.page_answers import LONGEST_RT, writable
from serving.files.row_problems import field_problems

MOST_TIMES = 5000
"""Keys, and deletions, of a text: the page records no more. A caption has at most 1,000 letters, a message 2,000."""
MOST_SPANS = 500
"""Texts that came in at once, and times at which the page was hidden or had no focus: the page records no more."""
MOST_CHARACTERS = 100_000
"""Characters of a text, or of what came into it: far more than any field holds."""

LONGEST_WHY = 200
"""Letters of why traces were refused."""


class SentInserted(Inserted):
    """Text that came in at once, as a page sends it."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SentTraces(TypingTraces):
    """The traces of a text, as a page sends them."""

    model_config = ConfigDict(extra="forbid", strict=True)
    inserted: list[SentInserted]  # type: ignore[assignment]  # lists of models that are written nowhere
    """What came in, in order; not what single keys wrote."""

    @model_validator(mode="after")
    def _is_within_bounds(self) -> Self:
        lists = {"keys": self.keys, "deletions": self.deletions, "inserted": [each.at for each in self.inserted]}
        for name, times in lists.items():
            most = MOST_SPANS if name == "inserted" else MOST_TIMES
            _refuse(len(times) > most, f"{name}: has more than {most:,} entries")
            _refuse(any(not 0 <= time <= LONGEST_RT for time in times), f"{name}: has a time that cannot be")
            _refuse(times != sorted(times), f"{name}: is not in order")
        for name, spans in {"hidden": self.hidden, "unfocused": self.unfocused}.items():
            _refuse(len(spans) > MOST_SPANS, f"{name}: has more than {MOST_SPANS:,} entries")
            ends = [time for span in spans for time in span]
            is_odd = ends != sorted(ends) or any(not 0 <= time <= LONGEST_RT for time in ends)
            _refuse(is_odd, f"{name}: has times that cannot be")
        sizes = {"characters": [self.characters], "typed": [self.typed or 0]}
        sizes["inserted"] = [each.characters for each in self.inserted]
        for name, numbers in sizes.items():
            is_odd = any(not 0 <= number <= MOST_CHARACTERS for number in numbers)
            _refuse(is_odd, f"{name}: has a number that cannot be")
        first = self.keys[0] if self.keys else None
        _refuse(self.first_key != first, "first_key: is not the first of keys")
        is_odd = not 0 <= self.composed_deletions <= len(self.deletions) and not self.cut
        _refuse(is_odd or self.composed_deletions < 0, "composed_deletions: is a number that cannot be")
        return self


def _refuse(is_broken: bool, why: str) -> None:
    if is_broken:
        raise PydanticCustomError("traces", "{why}", {"why": why})


@dataclass(frozen=True, slots=True)
class RefusedTraces:
    """Traces that break a rule. Whoever wrote the answer has no part in that, so the answer is taken without them."""

    why: str
    """Which rule, for people to read."""


def read_traces(sent: Any) -> SentTraces | RefusedTraces | None:
    """The traces that a page sent, as far as they can be; None for None."""
    if sent is None:
        return None
    try:
        return SentTraces.model_validate(sent)
    except ValidationError as error:
        problems = "; ".join(f"{field}: {why}" if field else why for field, why in field_problems(error))
        return RefusedTraces(writable(problems)[:LONGEST_WHY])


TracesOfPage = Annotated[SentTraces | RefusedTraces | None, PlainValidator(read_traces)]
"""The field ``traces`` of what a page sends: no trace costs anybody their answer."""


class TracesFields(TypedDict, total=False):
    """The fields of an event that tell of traces."""

    traces: TypingTraces
    """How something was written."""
    traces_refused: str
    """Why that is not known."""


def kept(sent: SentTraces | RefusedTraces | None, *, is_agreed: bool) -> TracesFields:
    """The field ``traces`` of an event, or ``traces_refused``.

    There is none where the page sent nothing, or where the participant has not agreed to it. A page may still record
    after the study has ceased to: it was open meanwhile.
    """
    if sent is None or not is_agreed:
        return {}
    if isinstance(sent, RefusedTraces):
        return {"traces_refused": sent.why}
    return {"traces": TypingTraces.model_validate(sent.model_dump())}
