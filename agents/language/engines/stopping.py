"""What ends a batch's rows: end tokens, limits, stops, and listeners that have heard enough. Also a rule on
repetition."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import NoRepeatNGramLogitsProcessor, StoppingCriteria

from agents.language.engines.text_request import TextRequest, settled
from agents.models.transfer import HostCopy, uploaded


class NoRepeats(NoRepeatNGramLogitsProcessor):
    """Keeps sequences of ``size`` tokens from standing twice in a text and its prompt.

    ``prompts``, int64 [rows, longest], hold a row for each text; a row's beams stand together. transformers' own rule
    looks at the decoder's tokens alone, and so would not see an encoder's prompt.
    """

    def __init__(self, size: int, prompts: Tensor) -> None:
        super().__init__(size)
        self._prompts = prompts

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The logits [rows, vocabulary], -inf for tokens that would repeat a sequence of prompt and text."""
        prompts = self._prompts.repeat_interleave(len(input_ids) // len(self._prompts), dim=0)
        processed: Tensor = super().__call__(torch.cat([prompts, input_ids], dim=1), scores)
        return processed


class RowEnds(StoppingCriteria):
    """Says which rows of a batch have ended, and tells listeners the text that will not change any more.

    - ``requests``: a request for each row, with its limit, stops and listener
    - ``ends``: the model's end tokens
    - ``start``: the number of tokens before the generated ones
    - ``decode``: gives a row's answer so far, and whether a mark in its text has ended it
    - ``reads_all``: every row's text is read, and not only where a request has stops or listeners

    Why so: reading a token on the host makes a GPU wait. So each step reads the tokens of the step before, which have
    arrived by then. A row on a GPU ends a token late for that, and :meth:`kept` drops the token. Without it, a text
    would depend on where it was generated.
    """

    def __init__(
        self,
        requests: Sequence[TextRequest],
        ends: Sequence[int],
        start: int,
        decode: Callable[[int, Sequence[int]], tuple[str, bool]],
        device: torch.device,
        *,
        reads_all: bool = False,
    ) -> None:
        self._requests = requests
        most = [request.sampling.limit for request in requests]
        self._ends, self._most = uploaded([torch.tensor(ends), torch.tensor(most)], device)
        self._start = start
        self._decode = decode
        self._end_tokens = frozenset(ends)
        self._read: dict[int, list[int]] = {
            row: []
            for row, request in enumerate(requests)
            if reads_all or request.sampling.stops or request.say or request.is_enough
        }
        self._lengths: dict[int, int] = {}  # of rows that have ended
        self._newest: HostCopy | None = None

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        """Which rows have ended: bool [rows], by an end token, their limit, or a text that is enough."""
        newest = input_ids[:, -1]
        done = (newest[:, None] == self._ends).any(dim=1) | (self._most <= input_ids.shape[1] - self._start)
        if not self._read:
            return done
        self._read_newest()
        self._newest = HostCopy([newest])
        if not newest.is_cuda:
            self._read_newest()
        stopped = torch.tensor([row in self._lengths for row in range(len(self._requests))])
        return done | uploaded([stopped], done.device)[0]

    def kept(self, row: int, tokens: list[int]) -> list[int]:
        """A row's generated ``tokens`` up to its stop or limit."""
        self._read_newest()
        return tokens[: self._lengths.get(row, self._requests[row].sampling.limit)]

    def _read_newest(self) -> None:
        if self._newest is None:
            return
        [newest] = self._newest.arrived()
        self._newest = None
        for row, token in enumerate(newest.tolist()):
            if (tokens := self._read.get(row)) is None:
                continue
            tokens.append(token)
            request = self._requests[row]
            is_end = token in self._end_tokens
            text, is_ended = self._decode(row, tokens)
            stop = request.sampling.stop_in(text)
            so_far = settled(text, request.sampling.stops) if stop is None else text[:stop]
            if request.say is not None and not is_end:
                request.say(so_far)
            is_enough = request.is_enough is not None and request.is_enough(so_far)
            if is_end or is_ended or is_enough or stop is not None or len(tokens) >= request.sampling.limit:
                self._lengths[row] = len(self._read.pop(row))
