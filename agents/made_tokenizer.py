"""Tokenizers that are made here, for models with random weights: of the real size, with the real special tokens.

None is the published one. A text becomes about as many tokens as with it, so that prompts are as long: beside the 256
bytes a tokenizer knows the most frequent English words after a space, small and capitalised, and their beginnings.
What is left of its size stands for nothing. The same every time, for one version of the package wordfreq.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents.errors import UnavailableError
from agents.language.words import vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

SPACE = "Ġ"  # a space, as byte-level tokenizers write it


@dataclass(frozen=True, slots=True)
class Tokens:
    """What is known of a published tokenizer: its ``size``, and its special tokens by id.

    ``reserved`` are ids, from and to, of special tokens that have no use here. ``pieces`` are ordinary tokens that have
    to stand at their ids, as a byte-level tokenizer writes them. ``begins``: a text begins with ``bos``. ``template``
    (Jinja) says how a chat is written.
    """

    size: int
    special: Mapping[int, str]
    bos: str | None = None
    eos: str | None = None
    pad: str | None = None
    unk: str | None = None
    begins: bool = False
    prefix_space: bool = False
    template: str | None = None
    reserved: tuple[int, int] = (0, 0)
    pieces: Mapping[int, str] = field(default_factory=dict)

    def fixed(self) -> dict[int, str]:
        """The special tokens by id, the reserved ones included."""
        return {**{number: f"<|reserved_{number}|>" for number in range(*self.reserved)}, **self.special}


def make(tokens: Tokens) -> PreTrainedTokenizerFast:
    """The tokenizer. Raises UnavailableError without the package wordfreq."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=make_inner(tokens),
        bos_token=tokens.bos,
        eos_token=tokens.eos,
        pad_token=tokens.pad,
        unk_token=tokens.unk,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = tokens.template
    return tokenizer


def make_inner(tokens: Tokens) -> Tokenizer:
    """The byte-level BPE alone. Raises UnavailableError without the package wordfreq."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    special = tokens.fixed()
    numbers, merges = _fill(tokens.size, {**special, **tokens.pieces}, pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(numbers, merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=tokens.prefix_space)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(special[number], normalized=False) for number in sorted(special)])
    if tokens.begins and tokens.bos is not None:
        inner.post_processor = processors.TemplateProcessing(
            single=f"{tokens.bos} $A", special_tokens=[(tokens.bos, numbers[tokens.bos])]
        )
    return inner


def _fill(size: int, fixed: Mapping[int, str], alphabet: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """``size`` tokens by what they stand for, and how they are joined of two others: first the bytes, then words."""
    taken = set(fixed.values())
    merges: list[tuple[str, str]] = []
    free = (number for number in range(size) if number not in fixed)
    found = {piece: number for number, piece in fixed.items()}
    for piece in sorted(alphabet):
        if piece not in taken:
            found[piece] = next(free)
    for pair, number in zip(_joined(), free, strict=False):
        found["".join(pair)] = number
        merges.append(pair)
    if len(found) < size:
        raise UnavailableError(f"wordfreq has too few words for a tokenizer of {size:,} tokens")
    return found, merges


def _joined() -> Iterator[tuple[str, str]]:
    """The beginnings of words, each with the one that it goes on from and its last letter.

    All begin with the space, so that in a text no two of them can be joined in more than one order.
    """
    known = {SPACE}
    for small in vocabulary.most_frequent(1 << 20):
        for word in (small, small.capitalize()):
            begun = SPACE
            for letter in word:
                longer = begun + letter
                if longer not in known:
                    known.add(longer)
                    yield begun, letter
                begun = longer
