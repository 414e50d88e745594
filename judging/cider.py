"""CIDEr-D: how like people's captions of a picture a caption is (Vedantam, Zitnick and Parikh 2015, section 5).

A caption is a vector of its n-grams' frequencies times log(pictures / pictures whose captions have the n-gram), for
each n from 1 to 4. With h of the caption, r of a reference, and l(.) their numbers of words,

    CIDEr-D = 10 / 4 sum_n mean_r exp(-(l(h) - l(r))^2 / (2 6^2)) (min(h, r) . r) / (|h| |r|)

from 0 to 10. Words are taken as they are; the authors' stems are left out, as in the evaluation program of COCO, whose
figures the field reports. It counts the same except that it takes bigrams for words in l.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

Words = Sequence[str]
Grams = Counter[tuple[str, ...]]
LONGEST = 4
SIGMA = 6.0


def ngrams(words: Words) -> list[Grams]:
    """How often each n-gram occurs, for n from 1 to :data:`LONGEST`."""
    return [Counter(zip(*(words[at:] for at in range(n)), strict=False)) for n in range(1, LONGEST + 1)]


class CiderD:
    """CIDEr-D with the weights of n-grams in ``references``: of each picture, people's captions in words."""

    def __init__(self, references: Iterable[Sequence[Words]]) -> None:
        pictures, self._pictures_with = 0, Grams()
        for captions in references:
            pictures += 1
            self._pictures_with.update({gram for words in captions for grams in ngrams(words) for gram in grams})
        self._log_pictures = math.log(pictures) if pictures else 0.0

    def score(self, words: Words, references: Sequence[Words]) -> float:
        """The score of one caption beside ``references``, of which there is at least one."""
        caption = [self._weighted(grams) for grams in ngrams(words)]
        total = 0.0
        for reference in references:
            near = math.exp(-((len(words) - len(reference)) ** 2) / (2 * SIGMA**2))
            others = [self._weighted(grams) for grams in ngrams(reference)]
            total += near * sum(_clipped_cosine(first, second) for first, second in zip(caption, others, strict=True))
        return 10 * total / (LONGEST * len(references))

    def _weighted(self, grams: Grams) -> dict[tuple[str, ...], float]:
        return {
            gram: number * (self._log_pictures - math.log(max(1, self._pictures_with[gram])))
            for gram, number in grams.items()
        }


def _clipped_cosine(first: Mapping[tuple[str, ...], float], second: Mapping[tuple[str, ...], float]) -> float:
    lengths = math.hypot(*first.values()) * math.hypot(*second.values())
    return (
        sum(min(first[gram], second[gram]) * second[gram] for gram in first.keys() & second) / lengths
        if lengths
        else 0.0
    )
