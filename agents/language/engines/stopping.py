"""When a row of a batch is at its end, and its text while it is generated. Rows do not depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import LogitsProcessor, StoppingCriteria
from transformers.generation.streamers import BaseStreamer

from agents.language.engines.request import Sampling
from agents.transfer import Download, uploaded

CPU = torch.device("cpu")
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
    return sampling.stop_in(text, floor)


class MinTokens(LogitsProcessor):
    """No end token before a row has its least number of tokens; ``start`` is where the generated ones begin."""

    def __init__(
        self, samplings: Sequence[Sampling], ends: Sequence[int], start: int, device: torch.device = CPU
    ) -> None:
        least = [sampling.min_tokens for sampling in samplings]
        self._most, self._start = max(least), start
        self._least, self._ends = uploaded([torch.tensor(least)[:, None], torch.tensor(ends)], device)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        step = input_ids.shape[1] - self._start
        if step >= self._most:
            return scores
        early = self._least > step
        return scores.index_copy(1, self._ends, scores[:, self._ends].masked_fill(early, -torch.inf))


class NoPromptNGrams(LogitsProcessor):
    """No ``size`` tokens stand in a text as they do in its prompt.

    ``prompts`` int64 [rows, longest], padded with -1; the beams of a row stand together. What transformers'
    EncoderNoRepeatNGramLogitsProcessor does row by row on the host is here one comparison for all.
    """

    def __init__(self, size: int, prompts: Tensor) -> None:
        windows = nn.functional.pad(prompts, (0, max(0, size - prompts.shape[1])), value=-1).unfold(1, size, 1)
        self._before, self._last = windows[:, None, :, :-1], windows[:, None, :, -1]
        self._size = size

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """``input_ids`` [rows * beams, length], ``scores`` [rows * beams, vocabulary]."""
        if input_ids.shape[1] < self._size - 1:
            return scores
        said = input_ids[:, input_ids.shape[1] - self._size + 1 :].unflatten(0, (len(self._last), -1))
        completed = (self._before == said[:, :, None]).all(dim=-1) & (self._last >= 0)
        banned = torch.where(completed, self._last, scores.shape[1]).flatten(0, 1)  # a column beyond for what is not
        hidden = torch.zeros(len(scores), scores.shape[1] + 1, dtype=torch.bool, device=scores.device)
        return scores.masked_fill(hidden.scatter_(1, banned, True)[:, :-1], -torch.inf)


class RowEnds(StoppingCriteria):
    """Which rows are at their end. For a stop the host has to read what is said: on a GPU it reads each token while the
    next is computed, so that such a row ends one token late, and :meth:`text` leaves that out. ``decode`` gives the
    text of some tokens."""

    def __init__(
        self,
        samplings: Sequence[Sampling],
        ends: Sequence[int],
        start: int,
        decode: Decode,
        device: torch.device = CPU,
    ) -> None:
        self._samplings = samplings
        most = [sampling.max_tokens for sampling in samplings]
        self._ends, self._most = uploaded([torch.tensor(ends), torch.tensor(most)], device)
        self._start = start
        self._decode = decode
        self._known_ends = frozenset(ends)
        self._read: dict[int, list[int]] = {row: [] for row, one in enumerate(samplings) if one.stops}
        self._lengths: dict[int, int] = {}  # of those that are at their end
        self._newest: Download | None = None

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        newest = input_ids[:, -1]
        done = (newest[:, None] == self._ends).any(dim=1) | (self._most <= input_ids.shape[1] - self._start)
        if not self._read:
            return done
        self._read_newest()
        self._newest = Download([newest])
        if not newest.is_cuda:
            self._read_newest()
        stopped = torch.tensor([row in self._lengths for row in range(len(self._samplings))])
        return done | uploaded([stopped], done.device)[0]

    def text(self, row: int, tokens: list[int]) -> list[int]:
        """What a row said of all that was generated for it: up to its stop or its limit, or whatever follows on an end
        token."""
        self._read_newest()
        return tokens[: self._lengths.get(row, self._samplings[row].max_tokens)]

    def _read_newest(self) -> None:
        if self._newest is None:
            return
        [newest] = self._newest.arrived()
        self._newest = None
        for row, token in enumerate(newest.tolist()):
            tokens, sampling = self._read.get(row), self._samplings[row]
            if tokens is None:
                continue
            tokens.append(token)
            is_over = token in self._known_ends or len(tokens) >= sampling.max_tokens
            if is_over or first_stop(tokens, sampling, self._decode) is not None:
                self._lengths[row] = len(self._read.pop(row))


class Streamer(BaseStreamer):
    """Tells each row's listener the row's text, as far as it will not change, after each of its tokens.

    Held back are a character whose last bytes are not said, and what may be the beginning of a stop.
    """

    def __init__(
        self,
        says: Sequence[Callable[[str], None] | None],
        samplings: Sequence[Sampling],
        ends: Sequence[int],
        decode: Decode,
    ) -> None:
        self._listeners = {row: say for row, say in enumerate(says) if say is not None}
        self._samplings, self._ends, self._decode = samplings, frozenset(ends), decode
        self._tokens: dict[int, list[int]] = {row: [] for row in self._listeners}
        self._is_prompt = True

    def put(self, value: Tensor) -> None:
        """``value``: int64 on the host, first the prompts [rows, tokens], then each row's next token [rows]."""
        if self._is_prompt:
            self._is_prompt = False
            return
        for row, token in enumerate(value.tolist()):
            if (say := self._listeners.get(row)) is None:
                continue
            tokens, sampling = self._tokens[row], self._samplings[row]
            if token not in self._ends:
                tokens.append(token)
                text = self._decode(tokens)
                if (stop := first_stop(tokens, sampling, self._decode)) is None:
                    say(settled(text.rstrip("\ufffd"), sampling.stops))
                    if len(tokens) < sampling.max_tokens:
                        continue
                else:
                    say(text[:stop])
            del self._listeners[row]  # the row is over

    def end(self) -> None:
        """Nothing: the whole texts are the engine's."""


def settled(text: str, stops: Sequence[str]) -> str:
    """``text`` without what may be the beginning of one of ``stops``."""
    begun = [size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size])]
    return text[: len(text) - max(begun, default=0)]
