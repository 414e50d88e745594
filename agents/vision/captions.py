"""Settings of all captioners, and the rules that the 2025 paper gave to people for their captions (Methods)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, get_args

from pydantic import Field, model_validator

from agents.models.pretrained import PretrainedSettings
from agents.word_boundaries import count_words, words

if TYPE_CHECKING:
    import regex

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
"""What may be wrong with a caption: it is empty, a tokenizer's marks stand in it, a word comes too often, it has too
few or too many words, or special characters, it begins with "There is", or it mentions the image itself."""
FLAGS: tuple[Flag, ...] = get_args(Flag)
"""All flags, in the order in which a record has them."""

MIN_WORDS = 6
"""The fewest words of a caption."""
MOST_IDENTICAL = 4
"""How many times a word may stand in a caption."""
SPECIAL_TOKEN = re.compile(
    r"\[ ?(?:unused ?\d+|pad|unk|cls|sep|mask|bos|eos|dec|enc) ?\]|</?[\w|]{1,40}>", re.IGNORECASE
)
"""What tokenizers leave in texts: "[unused0]", "[ unused0 ]", "[SEP]", "<s>", "<|endoftext|>", "<image>"."""
SPECIAL_CHARACTER = re.compile(r"[!#$%&*+/<=>@\\^_`{|}~\[\]]|[\x00-\x08\x0e-\x1f\x7f]")
"""Signs like !, #, $; ordinary punctuation is none."""
THERE_IS = re.compile(r"\W*there(?:['’]s|\s+(?:is|are))\b", re.IGNORECASE)
""""There is", "There are", "There's" at the beginning."""
MENTIONS_IMAGE = re.compile(r"\b(?:image|photo)(?:s|graphs?)?\b", re.IGNORECASE)
"""The words image and photo, and what is made of them."""


def flags(text: str, generated: Iterable[Flag] = ()) -> list[Flag]:
    """The flags of a caption in the order of :data:`FLAGS`; ``generated`` are those that only generation can tell.

    Too few words are counted between spaces, as the papers' program does for people.
    """
    spoken = words(text)
    in_threes = zip(spoken, spoken[1:], spoken[2:], strict=False)
    has_thrice = any(first == second == third for first, second, third in in_threes)
    checks: dict[Flag, bool] = {
        "empty": not spoken,
        "special_tokens": SPECIAL_TOKEN.search(text) is not None,
        "repeated_words": has_thrice or max(Counter(spoken).values(), default=0) > MOST_IDENTICAL,
        "too_few_words": count_words(text) < MIN_WORDS,
        "special_characters": _has_special_character(text),
        "there_is": THERE_IS.match(text) is not None,
        "mentions_image": MENTIONS_IMAGE.search(text) is not None,
    }
    raised = {*generated, *(flag for flag, holds in checks.items() if holds)}
    return [flag for flag in FLAGS if flag in raised]


def _has_special_character(text: str) -> bool:
    if SPECIAL_CHARACTER.search(text) is not None:
        return True
    return not text.isascii() and _special_beyond_ascii().search(text) is not None


@cache
def _special_beyond_ascii() -> regex.Pattern[str]:
    """Symbols, emoji and marks like "…" and "‼"; letters with what belongs to them, and what ends a sentence or a part
    of one in any script, are none."""
    import regex

    return regex.compile(r"[^\x00-\x7f‘’“”–—\w\p{Terminal_Punctuation}]|[‼⁇⁈⁉]", regex.V1)


class CaptionSettings(PretrainedSettings):
    """How a caption is generated, and which captions are generated again."""

    prompt: str = ""
    """Text that the caption continues, or the question that it answers; it is not part of the answer."""
    decoding: Literal["beam", "sample"] = "beam"
    """beam: beam search, greedy with 1 beam, sample k is the beam of rank k. sample: drawn by the seed."""
    beams: int = Field(1, ge=1, le=64)
    """Width of the beam search."""
    length_penalty: float = Field(1.0, ge=-10, le=10)
    """Beam scores are divided by the length to this power; below 0 it favours short captions."""
    early_stopping: bool = False
    """Whether beam search ends as soon as there are as many finished beams as its width."""
    no_repeat_ngram: int = Field(0, ge=0, le=20)
    """A sequence of this many tokens stands once at most; 0: no such rule."""
    min_tokens: int = Field(0, ge=0, le=4096)
    """The least number of tokens before the text may end."""
    max_tokens: int = Field(50, ge=1, le=4096)
    """The largest number of tokens."""
    count_prompt: bool = False
    """Whether both limits also count the prompt's tokens and the start token, as transformers' max_length does."""
    temperature: float = Field(1.0, ge=0, le=10)
    """For drawn captions: divides the logits; 0 takes the likeliest token."""
    top_k: int = Field(0, ge=0, le=1_000_000)
    """For drawn captions: draws are among this many of the likeliest tokens; 0: among all."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """For drawn captions: draws are among the likeliest tokens that together have this probability."""
    image_processor: Literal["pil"] = "pil"
    """What resizes images: Pillow, as for the published answers."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """fp32 gives the same answers for any batch; auto: fp32 on CPU, on CUDA bf16, or fp16 as weights are stored."""
    reject: tuple[Flag, ...] = ()
    """Flags for which an attempt is rejected; the record has all flags anyway."""
    attempts: int = Field(1, ge=1, le=100)
    """How often a caption is generated again while it is rejected, the first time included."""
    keep_last: bool = False
    """Whether the last attempt is kept whatever its flags."""

    @model_validator(mode="after")
    def _fits_together(self) -> CaptionSettings:
        if self.attempts > 1 and self.decoding == "beam":
            raise ValueError("attempts above 1 need decoding 'sample': beam search says the same each time")
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens {self.min_tokens} is more than max_tokens {self.max_tokens}")
        return self


C = TypeVar("C", bound=CaptionSettings)
