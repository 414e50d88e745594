"""When a row of a batch is at its end: its end token, its stop strings, its limits, each row for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, StoppingCriteria

from agents.language.engines.request import Finish, Sampling


def first_stop(text: str, stops: Sequence[str], floor: int = 0) -> int | None:
    """Where the first of ``stops`` begins in ``text``, of those that end after its first ``floor`` characters."""
    found = [text.find(stop, max(0, floor - len(stop) + 1)) for stop in stops if stop]
    return min((place for place in found if place >= 0), default=None)


class AtLeast(LogitsProcessor):
    """No end token before a row has its least number of tokens; ``start`` is where the generated ones begin."""

    def __init__(self, least: Sequence[int], ends: Sequence[int], start: int) -> None:
        self._least = torch.tensor(least)[:, None]
        self._most = max(least, default=0)
        self._ends = torch.tensor(ends)
        self._start = start

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        step = input_ids.shape[1] - self._start
        if step >= self._most:
            return scores
        ends = self._ends.to(scores.device)
        early = (self._least > step).to(scores.device)
        return scores.index_copy(1, ends, scores[:, ends].masked_fill(early, -torch.inf))


class Ending(StoppingCriteria):
    """Which rows are done, and after how many tokens (``lengths``, the end token not counted) and why (``finishes``).

    A stop counts from the row's ``min_tokens`` on: what is complete within the text of so many tokens is passed over,
    as in vLLM. ``decode`` gives the text of some tokens.
    """

    def __init__(
        self, samplings: Sequence[Sampling], ends: Sequence[int], start: int, decode: Callable[[Sequence[int]], str]
    ) -> None:
        self._samplings = list(samplings)
        self._ends = frozenset(ends)
        self._start = start
        self._decode = decode
        self._done = [False] * len(self._samplings)
        self._pieces: dict[int, str] = {}
        self.lengths = [0] * len(self._samplings)
        self.finishes: list[Finish] = ["length"] * len(self._samplings)

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        for index, tokens in enumerate(input_ids[:, self._start :].tolist()):
            if not self._done[index]:
                self._look(index, tokens)
        return torch.tensor(self._done, device=input_ids.device)

    def read(self, rows: Sequence[list[int]]) -> None:
        """Find the ends in whole rows, which were generated without looking for stops and are padded behind them."""
        for index, tokens in enumerate(rows):
            self.lengths[index] = len(tokens)
            end = next((place for place, token in enumerate(tokens) if token in self._ends), None)
            if end is not None:
                self.lengths[index], self.finishes[index] = end, "stop"

    def floor(self, index: int, tokens: Sequence[int]) -> int:
        """How many characters of a row's text are before its stops count."""
        least = self._samplings[index].min_tokens
        return len(self._decode(tokens[:least])) if least and self._samplings[index].stops else 0

    def _look(self, index: int, tokens: list[int]) -> None:
        sampling = self._samplings[index]
        self.lengths[index] = len(tokens)
        if tokens[-1] in self._ends:
            self.lengths[index] -= 1
            self._done[index], self.finishes[index] = True, "stop"
        elif self._may_stop(tokens[-1], sampling.stops) and (
            first_stop(self._decode(tokens), sampling.stops, self.floor(index, tokens)) is not None
        ):
            self._done[index], self.finishes[index] = True, "stop"
        elif len(tokens) >= sampling.max_tokens:
            self._done[index] = True

    def _may_stop(self, token: int, stops: Sequence[str]) -> bool:
        """Whether a stop can be complete with this token: it has the last character, unless that is one that decoding
        may make of several tokens or leave out at an edge. Texts are decoded where it can only."""
        if not stops:
            return False
        if token not in self._pieces:
            self._pieces[token] = self._decode([token])
        return any(
            stop[-1] in self._pieces[token] or not stop[-1].isascii() or stop[-1].isspace() for stop in stops if stop
        )
