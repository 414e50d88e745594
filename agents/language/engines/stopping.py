"""When a row of a batch ends, and its text while it is generated. Rows do not depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import LogitsProcessor, StoppingCriteria
from transformers.generation.streamers import BaseStreamer

from agents.language.engines.text_request import Sampling
from agents.transfer import Download, uploaded

CPU = torch.device("cpu")
Decode = Callable[[Sequence[int]], str]


def first_stop(tokens: Sequence[int], sampling: Sampling, decode: Decode) -> int | None:
    """Where in the text of ``tokens`` the first stop begins, or None.

    As in vLLM, a stop that is complete within the text of ``min_tokens`` is passed over.
    """
    if not sampling.stops:
        return None
    floor = len(decode(tokens[: sampling.min_tokens])) if sampling.min_tokens else 0
    return sampling.stop_in(decode(tokens), floor)


def settled(text: str, stops: Sequence[str]) -> str:
    """``text`` without what may be the beginning of a stop."""
    begun = [size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size])]
    return text[: len(text) - max(begun, default=0)]


class MinTokens(LogitsProcessor):
    """No end token before a row has its least number of tokens; generated tokens begin at ``start``."""

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

    ``prompts`` int64 [rows, longest] is padded with -1; the beams of a row stand together. One comparison replaces the
    loop over rows of transformers' EncoderNoRepeatNGramLogitsProcessor.
    """

    def __init__(self, size: int, prompts: Tensor) -> None:
        windows = nn.functional.pad(prompts, (0, max(0, size - prompts.shape[1])), value=-1).unfold(1, size, 1)
        self._before, self._last = windows[:, None, :, :-1], windows[:, None, :, -1]
        self._size = size

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """``input_ids`` [rows * beams, length], ``scores`` [rows * beams, vocabulary]."""
        if input_ids.shape[1] < self._size - 1:
            return scores
        newest = input_ids[:, input_ids.shape[1] - self._size + 1 :].unflatten(0, (len(self._last), -1))
        completed = (self._before == newest[:, :, None]).all(dim=-1) & (self._last >= 0)
        banned = torch.where(completed, self._last, scores.shape[1]).flatten(0, 1)  # an extra column for what is not
        hidden = torch.zeros(len(scores), scores.shape[1] + 1, dtype=torch.bool, device=scores.device)
        return scores.masked_fill(hidden.scatter_(1, banned, True)[:, :-1], -torch.inf)


class RowEnds(StoppingCriteria):
    """Which rows have ended.

    For a stop the host reads the text. On a GPU it reads each token while the next is computed, so that such a row ends
    a token late; :meth:`kept` drops that token.
    """

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
        self._end_tokens = frozenset(ends)
        self._read: dict[int, list[int]] = {row: [] for row, sampling in enumerate(samplings) if sampling.stops}
        self._lengths: dict[int, int] = {}  # of rows that have ended
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

    def kept(self, row: int, tokens: list[int]) -> list[int]:
        """A row's ``tokens`` up to its stop or limit; what follows an end token may still be there."""
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
            is_over = token in self._end_tokens or len(tokens) >= sampling.max_tokens
            if is_over or first_stop(tokens, sampling, self._decode) is not None:
                self._lengths[row] = len(self._read.pop(row))


class Streamer(BaseStreamer):
    """Passes each row's text to its listener after every token, as far as the text will not change any more."""

    def __init__(
        self,
        listeners: Sequence[Callable[[str], None] | None],
        samplings: Sequence[Sampling],
        ends: Sequence[int],
        decode: Decode,
    ) -> None:
        self._listeners = {row: say for row, say in enumerate(listeners) if say is not None}
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
            del self._listeners[row]

    def end(self) -> None:
        """Nothing: the engine returns the texts."""
