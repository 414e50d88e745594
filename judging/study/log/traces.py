"""Traces of writing: when keys wrote, what came in otherwise, and when nobody looked at the page.

A trace holds times and numbers, and never what a key wrote. Times are whole milliseconds from when the answer could be
given; for a message, from when the place to write came up, or from the message before.
"""

from typing import Annotated, Literal

from pydantic import Field

from judging.study.log.logged import Logged

InsertedKind = Literal["paste", "drop", "autofill", "composition", "own", "restored", "other"]
"""How text came in that no single key wrote; the page tells it by the ``inputType`` of the browser's event (W3C, Input
Events Level 2). ``autofill`` is what the browser fills in or corrects. ``composition`` is an input method's text, also
that of many phones. ``own`` was copied, cut or dragged out of the same fields before. ``restored`` is a draft that came
back without its traces, because the browser ended before it could keep them. ``other`` is what no browser tells
apart: dictation, a suggested word, a tool that types, undo."""
Span = Annotated[list[int], Field(min_length=2, max_length=2)]
"""From when to when, in milliseconds."""


class Inserted(Logged):
    """Text that came in at once, and not by a key."""

    kind: InsertedKind
    """How it came in."""
    at: int
    """When, in milliseconds; of a composition, when it began."""
    characters: int
    """How many characters (code points of Unicode) it added."""


class TypingTraces(Logged):
    """How an answer, or a message, was written, by what the browser tells."""

    inserted: list[Inserted]
    """What came in, in order; not what single keys wrote."""
    keys: list[int]
    """When keys wrote something, in milliseconds; also within a composition."""
    deletions: list[int]
    """When something was deleted, in milliseconds."""
    hidden: list[Span]
    """When the page was hidden: another tab was up, or the window was minimized."""
    unfocused: list[Span]
    """When another window, or the browser's own bars, had the keyboard; also while the page was hidden."""
    first_key: int | None
    """When the first key wrote, in milliseconds; None where none did."""
    characters: int
    """The characters (code points) of the text when it was sent, on a single line; of several fields together."""
    typed: int | None = None
    """The characters that keys wrote outside of compositions: some keys write two. None where it is not told."""
    composed_deletions: int = 0
    """How many of ``deletions`` were within a composition, which tells by itself how much it added."""
    cut: bool = False
    """Whether there was more of anything than a page records."""
