"""Which prompts a model may read together, measured when it is loaded. Padding can change a recurrent state, positions
or the parts of pictures: architectures differ, and so do their versions."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from transformers import LogitsProcessor

STEPS = 3  # tokens
TOLERANCE = {torch.float32: 1e-3}  # of the logits' spread
ROUGH = 0.1  # the same of other types

R = TypeVar("R")
# (rows, ready masks, whether a common start is read once, what reads the logits)
Generate = Callable[[Sequence[R], bool, bool, LogitsProcessor], object]


class Joining(NamedTuple):
    """Whether prompts of unlike length make a batch, by masks that are ready; whether prompts with pictures make a
    batch; whether what prompts begin with is read once."""

    pads: bool = False
    ready_masks: bool = False
    pictures: bool = False
    shares: bool = False


class LastLogits(LogitsProcessor):
    """Keeps those of the batch's last row."""

    def __init__(self) -> None:
        self.steps: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        self.steps.append(scores[-1].float().cpu())
        return scores


def joining(generate: Generate[R], texts: Sequence[R], pictures: Sequence[R], dtype: torch.dtype) -> Joining:
    """From two prompts of a kind, the second of which is the shorter; or none."""
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
