"""Which prompts a model may read together, measured when it is loaded.

Padding can change a recurrent state, positions or the parts of pictures. Architectures differ in this, and so do their
versions in transformers. So no list of models is kept: the same prompt is read alone and in a batch, and the logits of
some steps are compared.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from transformers import LogitsProcessor

STEPS = 3
"""How many tokens are generated for a comparison."""
TOLERANCE = {torch.float32: 1e-3}
"""By how much of their spread logits may differ."""
ROUGH = 0.1
"""The same for types of number with fewer digits."""

R = TypeVar("R")
Generate = Callable[[Sequence[R], bool, bool, LogitsProcessor], object]
"""A function that generates for (rows, ready masks, whether a common start is read once, what reads the logits)."""


class Joining(NamedTuple):
    """What may be done to prompts without a change of their texts."""

    pads: bool = False
    """Prompts of unlike length may be a batch."""
    ready_masks: bool = False
    """Their masks may be made beforehand, which is quicker."""
    pictures: bool = False
    """Prompts with pictures may be a batch."""
    shares: bool = False
    """What all prompts begin with may be read once."""


class LastLogits(LogitsProcessor):
    """Keeps the logits of the batch's last row, a tensor [vocabulary] for each step, and changes nothing."""

    def __init__(self) -> None:
        self.steps: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The logits [rows, vocabulary] of a step, unchanged; the last row goes to the CPU as fp32."""
        self.steps.append(scores[-1].float().cpu())
        return scores


def joining(generate: Generate[R], texts: Sequence[R], pictures: Sequence[R], dtype: torch.dtype) -> Joining:
    """What a model allows, found with two texts and two prompts with pictures, if it reads any; the second of each is
    the shorter."""
    pads = False
    is_ready = False
    if (alone := _logits(generate, texts[1:], False)) is not None:
        for is_ready in (True, False):
            batches = [texts, texts[1:]] if is_ready else [texts]
            pads = all(_alike(_logits(generate, rows, is_ready), alone, dtype) for rows in batches)
            if pads:
                break
    picture = _logits(generate, pictures[1:], False) if pictures else None
    is_joined = picture is not None and _alike(_logits(generate, pictures, False), picture, dtype)
    pairs = [texts, [*texts[1:], *texts[1:]]] if pads else []
    shares = pads and all(_alike(_logits(generate, rows, is_ready, True), alone or [], dtype) for rows in pairs)
    return Joining(pads, pads and is_ready, is_joined, shares)


def _logits(generate: Generate[R], rows: Sequence[R], is_ready: bool, shares: bool = False) -> list[Tensor] | None:
    """None where the model cannot read such a batch."""
    last = LastLogits()
    try:
        generate(rows, is_ready, shares, last)
    except Exception:  # whatever an architecture raises
        return None
    return last.steps


def _alike(steps: list[Tensor] | None, expected: list[Tensor], dtype: torch.dtype) -> bool:
    for logits, wanted in zip(steps or [], expected, strict=False):
        spread = (wanted - wanted.mean()).norm()
        if not (logits - wanted).norm() <= TOLERANCE.get(dtype, ROUGH) * spread:
            return False
        if logits.argmax() != wanted.argmax():  # a tie, after which the texts differ
            break
    return bool(steps)
