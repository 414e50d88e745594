"""Tokenizers for models with random weights: of the published size, with the published special tokens.

None is the published one, but a text becomes about as many tokens as with it. Beside the 256 bytes such a tokenizer
knows the most frequent English words after a space, small and capitalised, and their beginnings. It is the same every
time, for one version of the package wordfreq.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

SPACE = "Ġ"  # a space, as byte-level tokenizers write it


def make_tokenizer(about: Mapping[str, Any]) -> PreTrainedTokenizerFast:
    """The tokenizer that ``about`` describes, an entry of ``random/tokenizers.json``."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=make_bpe(about),
        clean_up_tokenization_spaces=False,
        **{f"{name}_token": about.get(name) for name in ("bos", "eos", "pad", "unk")},
    )
    tokenizer.chat_template = about.get("template")
    return tokenizer


def make_bpe(about: Mapping[str, Any]) -> Tokenizer:
    """The byte-level BPE alone.

    ``size`` is the number of tokens; ``special`` has the special ones by id, ``pieces`` ordinary ones. ``reserved`` is
    a range of ids without use. ``begins``: a text begins with ``bos``.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    special = {number: f"<|reserved_{number}|>" for number in range(*about.get("reserved", (0,)))}
    special |= {int(number): token for number, token in about["special"].items()}
    fixed = special | {int(number): token for number, token in about.get("pieces", {}).items()}
    tokens = {token: number for number, token in fixed.items()}
    free = (number for number in range(about["size"]) if number not in fixed)
    for byte in sorted(set(pre_tokenizers.ByteLevel.alphabet()) - tokens.keys()):
        tokens[byte] = next(free)
    merges = list(itertools.islice(_merges(), about["size"] - len(tokens)))
    tokens |= {"".join(merge): number for merge, number in zip(merges, free, strict=True)}

    bpe = Tokenizer(models.BPE(tokens, merges))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=about.get("prefix_space", False))
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(special[number], normalized=False) for number in sorted(special)])
    if about.get("begins"):
        begin = about["bos"]
        bpe.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A", special_tokens=[(begin, tokens[begin])]
        )
    return bpe


def _merges() -> Iterator[tuple[str, str]]:
    """The beginnings of words, each as the one before it and its last letter.

    All begin with the space, so that no two of them can be joined in more than one order.
    """
    from wordfreq import top_n_list

    known = {SPACE}
    for word in top_n_list("en", 1 << 20):
        if not (word.isascii() and word.isalpha()):
            continue
        for written in (word, word.capitalize()):
            for end in range(len(written)):
                before, letter = SPACE + written[:end], written[end]
                if before + letter not in known:
                    known.add(before + letter)
                    yield before, letter
