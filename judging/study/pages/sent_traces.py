"""Traces of writing as a page sends them: read within bounds, kept only where the participant has agreed to it.

A browser may tell anything, so nothing here proves how a text was written. What a page sends is bounded, for an answer
must not fill a disk, and what it tells is compared with the text itself (:mod:`judging.study.results.writing`).
"""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from judging.study.log.traces import Inserted, TypingTraces
from judging.study.pages.page_answers import LONGEST_RT

MOST_TIMES = 5000
"""Keys, and deletions, of a text: the page records no more. A caption has at most 1,000 letters, a message 2,000."""
MOST_SPANS = 500
"""Texts that came in at once, and times at which the page was hidden or had no focus: the page records no more."""
MOST_CHARACTERS = 100_000
"""Characters of a text, or of what came into it: far more than any field holds."""


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
        sizes = [self.characters, *(each.characters for each in self.inserted)]
        _refuse(any(not 0 <= size <= MOST_CHARACTERS for size in sizes), "characters: is a number that cannot be")
        first = self.keys[0] if self.keys else None
        _refuse(self.first_key != first, "first_key: is not the first of keys")
        return self


def _refuse(is_broken: bool, why: str) -> None:
    if is_broken:
        raise PydanticCustomError("traces", "{why}", {"why": why})


def kept(sent: SentTraces | None, *, is_agreed: bool) -> dict[str, TypingTraces]:
    """The field ``traces`` of an event; none where the page sent none, or where the participant has not agreed to it.

    A page may still record after the study has ceased to: it was open meanwhile.
    """
    if sent is None or not is_agreed:
        return {}
    return {"traces": TypingTraces.model_validate(sent.model_dump())}
