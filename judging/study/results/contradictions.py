"""What traces of writing say that cannot be, or that no page of a study sends.

A page that records what it sees hardly sends any of it: who holds a key down is as fast as a program. So each of these
says that a program may have written the traces, or changed the page. None says who wrote the text.
"""

from collections.abc import Sequence
from itertools import chain

from judging.study.log.traces import Span, TypingTraces

FASTEST = 20.0
"""Keys a second that nobody presses through a whole text. The fastest of 168,000 people wrote some 120 words of five
letters a minute, which are 10 keys a second (Dhakal, Feit, Kristensson and Oulasvirta: Observations on Typing from 136
Million Keystrokes, CHI 2018); this is twice as fast."""
FEWEST = 20
"""Keys of a text in which a speed says something: two keys may well be struck at once."""
MARGIN = 100
"""Milliseconds that may lie between two events of the browser about the same thing."""
AFTER = 1000
"""Milliseconds by which a trace may be later than its answer: both are rounded, and told by different clocks."""


def contradictions(traces: TypingTraces, text: str, rt: float | None = None) -> list[str]:
    """Names of what cannot be, in the order of the documentation; [] where all fits.

    ``text`` is as it was kept, and ``rt`` the answer's milliseconds; None where they are not known.
    """
    found = {
        "characters_differ": traces.characters != len(text),
        "more_keys_than_time": _is_too_fast(traces.keys),
        "keys_while_hidden": any(_is_within(key, span) for key in traces.keys for span in traces.hidden),
        "hidden_without_unfocused": not all(_is_covered(span, traces.unfocused) for span in traces.hidden),
        "later_than_the_answer": rt is not None and _latest(traces) > rt + AFTER,
    }
    if traces.cut:
        found["hidden_without_unfocused"] = False  # what belongs together may have been left out
    return [name for name, is_so in found.items() if is_so]


def _is_too_fast(keys: Sequence[int]) -> bool:
    return len(keys) >= FEWEST and 1000 * len(keys) > FASTEST * (keys[-1] - keys[0])


def _is_within(time: int, span: Span) -> bool:
    begin, end = span
    return begin + MARGIN < time < end - MARGIN


def _is_covered(span: Span, others: Sequence[Span]) -> bool:
    begin, end = span
    return any(other[0] <= begin + MARGIN and end - MARGIN <= other[1] for other in others)


def _latest(traces: TypingTraces) -> int:
    inserted = (each.at for each in traces.inserted)
    return max(chain(traces.keys, traces.deletions, inserted), default=0)
