"""Machines' answers in online tests, cut to the length that people's answers have."""

import re
from bisect import bisect_right

from agents.word_boundaries import count_words

END = re.compile(r"[.!?…]['\"’”)\]]*$")
"""The end of a sentence's last word."""
IDEOGRAPHIC_END = re.compile(r"[。！？．｡]+[」』”’）】]*")
"""The end of a sentence that no space follows."""
TITLE = re.compile(r"\W*(?:mrs?|ms|dr|prof|st|e\.g|i\.e)\.", re.IGNORECASE)
"""Words with a dot that end no sentence."""


def shortened(text: str, words: int) -> str:
    """The first sentences that have at most ``words`` words together, or the first words where a sentence has more.

    :func:`agents.word_boundaries.count_words` counts, as it does for people's answers: with another count for machines,
    the judge could tell them by the length.
    """
    if count_words(text) <= words:
        return text
    # The longest beginning that has no more words ends where a word does: one character more begins the next.
    longest = bisect_right(range(len(text) + 1), words, key=lambda end: count_words(text[:end])) - 1
    text = text[:longest].rstrip()
    ends = [match.end() for match in IDEOGRAPHIC_END.finditer(text)]
    for part in re.finditer(r"\S+", text):
        if END.search(part.group()) and not TITLE.fullmatch(part.group()):
            ends.append(part.end())
    return text[: max(ends, default=len(text))]
