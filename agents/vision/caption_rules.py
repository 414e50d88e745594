"""What is noticed in a caption: pure functions of its text.

The rules for people are those of the collection of captions in the Turing-like tests (2025 paper, Methods, "Image
captioning": instructions and the interface's controls). How long a caption is, is counted in what spaces separate, as
in the papers' programs. The rule that two successive answers differ has no meaning for machines whose stimuli have no
order, and is left out; so are those that no function of the text can tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

Flag = Literal[
    "empty",
    "special_tokens",
    "repeated_words",
    "too_few_words",
    "too_many_words",
    "special_characters",
    "there_is",
    "mentions_image",
]
FLAGS: tuple[Flag, ...] = get_args(Flag)

MIN_WORDS = 6
MOST_IDENTICAL = 4  # times that one word may stand in a caption
WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
# What tokenizers leave in text: "[unused0]", "[ unused0 ]", "[SEP]", "<s>", "<|endoftext|>", "<image>".
SPECIAL_TOKEN = re.compile(
    r"\[ ?(?:unused ?\d+|pad|unk|cls|sep|mask|bos|eos|dec|enc) ?\]|</?[\w|]{1,40}>", re.IGNORECASE
)
# Like !, #, $; ordinary punctuation and letters of any language are none.
SPECIAL_CHARACTER = re.compile(r"[!#$%&*+/<=>@\\^_`{|}~\[\]]|[\x00-\x08\x0e-\x1f\x7f]|[^\x00-\x7f‘’“”–—\w]")
THERE_IS = re.compile(r"\W*there(?:['’]s|\s+(?:is|are))\b", re.IGNORECASE)
MENTIONS_IMAGE = re.compile(r"\b(?:image|photo)(?:s|graphs?)?\b", re.IGNORECASE)


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return [word.lower() for word in WORD.findall(text)]


def flags(text: str, generated: Iterable[Flag] = ()) -> list[Flag]:
    """All that is noticed in ``text``, in the order of :data:`FLAGS`; ``generated`` is what was known before."""
    said = words(text)
    thrice = any(first == second == third for first, second, third in zip(said, said[1:], said[2:], strict=False))
    noticed: dict[Flag, bool] = {
        "empty": not said,
        "special_tokens": SPECIAL_TOKEN.search(text) is not None,
        "repeated_words": thrice or max(Counter(said).values(), default=0) > MOST_IDENTICAL,
        "too_few_words": len(text.split()) < MIN_WORDS,
        "special_characters": SPECIAL_CHARACTER.search(text) is not None,
        "there_is": THERE_IS.match(text) is not None,
        "mentions_image": MENTIONS_IMAGE.search(text) is not None,
    }
    known = set(generated)
    return [flag for flag in FLAGS if noticed.get(flag, False) or flag in known]
