"""When a row of a batch is at its end: its end token, its stop strings, its limits, each row for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, StoppingCriteria

from agents.language.engines.request import Sampling

Decode = Callable[[Sequence[int]], str]


def first_stop(tokens: Sequence[int], sampling: Sampling, decode: Decode) -> int | None:
    """Where in the text of ``tokens`` the first stop begins; None if there is none.

    A stop counts from the row's ``min_tokens`` on: what is complete within the text of so many tokens is passed over,
    as in vLLM.
    """
    if not sampling.stops:
        return None
    text = decode(tokens)
    floor = len(decode(tokens[: sampling.min_tokens])) if sampling.min_tokens else 0
    found = [text.find(stop, max(0, floor - len(stop) + 1)) for stop in sampling.stops if stop]
    return min((index for index in found if index >= 0), default=None)


class MinTokens(LogitsProcessor):
    """No end token before a row has its least number of tokens; ``start`` is where the generated ones begin."""

    def __init__(self, samplings: Sequence[Sampling], ends: Sequence[int], start: int) -> None:
        self._least = torch.tensor([sampling.min_tokens for sampling in samplings])[:, None]
        self._most = int(self._least.max())
        self._ends = torch.tensor(ends)
        self._start = start

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        step = input_ids.shape[1] - self._start
        if step >= self._most:
            return scores
        ends = self._ends.to(scores.device)
        early = (self._least > step).to(scores.device)
        return scores.index_copy(1, ends, scores[:, ends].masked_fill(early, -torch.inf))


class RowEnds(StoppingCriteria):
    """Which rows are at their end. ``lengths`` says after how many tokens, the end token included; what follows is
    padding. ``decode`` gives the text of some tokens."""

    def __init__(self, samplings: Sequence[Sampling], ends: Sequence[int], start: int, decode: Decode) -> None:
        self._samplings = samplings
        self._ends = frozenset(ends)
        self._start = start
        self._decode = decode
        self.lengths: list[int | None] = [None] * len(samplings)

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        for row, tokens in enumerate(input_ids[:, self._start :].tolist()):
            if self.lengths[row] is None and self._is_over(tokens, self._samplings[row]):
                self.lengths[row] = len(tokens)
        return torch.tensor([length is not None for length in self.lengths], device=input_ids.device)

    def _is_over(self, tokens: list[int], sampling: Sampling) -> bool:
        return (
            tokens[-1] in self._ends
            or len(tokens) >= sampling.max_tokens
            or first_stop(tokens, sampling, self._decode) is not None
        )
