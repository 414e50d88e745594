"""Settings of all captioners, and the 2025 paper's rules for people."""

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
FLAGS: tuple[Flag, ...] = get_args(Flag)

MIN_WORDS = 6
MOST_IDENTICAL = 4  # times that a word may stand in a caption
# What tokenizers leave in text: "[unused0]", "[ unused0 ]", "[SEP]", "<s>", "<|endoftext|>", "<image>".
SPECIAL_TOKEN = re.compile(
    r"\[ ?(?:unused ?\d+|pad|unk|cls|sep|mask|bos|eos|dec|enc) ?\]|</?[\w|]{1,40}>", re.IGNORECASE
)
# Like !, #, $; ordinary punctuation is none.
SPECIAL_CHARACTER = re.compile(r"[!#$%&*+/<=>@\\^_`{|}~\[\]]|[\x00-\x08\x0e-\x1f\x7f]")
THERE_IS = re.compile(r"\W*there(?:['’]s|\s+(?:is|are))\b", re.IGNORECASE)
MENTIONS_IMAGE = re.compile(r"\b(?:image|photo)(?:s|graphs?)?\b", re.IGNORECASE)


def flags(text: str, generated: Iterable[Flag] = ()) -> list[Flag]:
    """In the order of :data:`FLAGS`, with those ``generated``. Too few are words between spaces, as in the papers'
    program for people."""
    said = words(text)
    thrice = any(first == second == third for first, second, third in zip(said, said[1:], said[2:], strict=False))
    checks: dict[Flag, bool] = {
        "empty": not said,
        "special_tokens": SPECIAL_TOKEN.search(text) is not None,
        "repeated_words": thrice or max(Counter(said).values(), default=0) > MOST_IDENTICAL,
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
    prompt: str = ""
    """Text that the caption continues, or the question that it answers; it is not part of the answer."""
    decoding: Literal["beam", "sample"] = "beam"
    """beam: beam search, greedy with 1 beam, sample k is the beam of rank k. sample: drawn by the seed."""
    beams: int = Field(1, ge=1, le=64)
    """Width of the beam search."""
    length_penalty: float = Field(1.0, ge=-10, le=10)
    """Beam scores are divided by the length to this power; below 0 favours short captions."""
    early_stopping: bool = False
    """Whether beam search ends as soon as there are as many finished beams as its width."""
    no_repeat_ngram: int = Field(0, ge=0, le=20)
    """No sequence of so many tokens occurs twice; 0: no such rule."""
    min_tokens: int = Field(0, ge=0, le=4096)
    """The least number of tokens before the text may end."""
    max_tokens: int = Field(50, ge=1, le=4096)
    """The largest number of tokens."""
    count_prompt: bool = False
    """Whether the two limits count the prompt's tokens and the start token too, as transformers' max_length does."""
    temperature: float = Field(1.0, ge=0, le=10)
    """For drawn captions: divides the logits; 0 takes the likeliest token."""
    top_k: int = Field(0, ge=0, le=1_000_000)
    """For drawn captions: only the so many likeliest tokens; 0: all."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """For drawn captions: only the likeliest tokens that have this mass together."""
    image_processor: Literal["pil"] = "pil"
    """What resizes: Pillow, as for the published answers."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """fp32 gives the same answers for any batch; auto: fp32 on CPU, on CUDA bf16, or fp16 as weights are stored."""
    reject: tuple[Flag, ...] = ()
    """Flags that make an attempt be rejected; all flags are in the record anyway."""
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
